"""What stands for Android's SDK and for LiteRT where Java is compiled."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.jdk import COMPILE

STUBS = Path(__file__).parent / "stubs"


@pytest.fixture(scope="session")
def litert_api(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of compiled stubs of the classes of Android and LiteRT that ours use."""
    if shutil.which("javac") is None:
        pytest.skip("no javac")
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([*COMPILE, "-d", folder, *STUBS.rglob("*.java")], check=True)
    return folder

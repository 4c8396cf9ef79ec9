"""What stands for Android's SDK and for LiteRT where Java is compiled."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

STUBS = Path(__file__).parent / "stubs"


@pytest.fixture(scope="session")
def javac() -> str:
    return shutil.which("javac") or pytest.skip("no javac")


@pytest.fixture(scope="session")
def litert_api(javac: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of compiled stubs of the classes of Android and LiteRT that ours use."""
    folder = tmp_path_factory.mktemp("stubs")
    command = [javac, "--release", "8", "-Xlint:all,-options", "-Werror", "-d", folder]
    subprocess.run([*command, *STUBS.rglob("*.java")], check=True)
    return folder

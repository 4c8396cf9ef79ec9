"""Versions, Pythons and platforms in pyproject.toml are valid and consistent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clgpu_delegate

metadata = pytest.importorskip("packaging.metadata")
ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "pyproject.toml").read_text()
PYTHONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory):
    """The metadata of the wheel, as a build writes them."""
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("metadata")
    script = (
        "import sys, scikit_build_core.build as b; b.prepare_metadata_for_build_wheel(sys.argv[1])"
    )
    command = [sys.executable, "-c", script, folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.dist-info/METADATA")
    return metadata.Metadata.from_email(path.read_bytes(), validate=True)


def test_metadata_are_valid_and_name_each_python(written):
    named = [c.removeprefix("Programming Language :: Python :: ") for c in written.classifiers]
    assert [name for name in named if re.fullmatch(r"3\.\d+", name)] == PYTHONS
    assert all(python in written.requires_python for python in PYTHONS)
    assert "3.8.18" not in written.requires_python
    assert written.license_expression == "Apache-2.0"
    assert written.license_files == ["LICENSE"]


def test_each_python_gets_a_numpy_and_a_runtime(written):
    """Extras require only packages that exist for the Python; each Python has one runtime."""
    for python in PYTHONS:
        environment = {"python_version": python, "python_full_version": f"{python}.0"}
        asked = {
            extra: [
                str(requirement.name) + str(requirement.specifier)
                for requirement in written.requires_dist
                if requirement.marker
                and requirement.marker.evaluate({**environment, "extra": extra})
            ]
            for extra in ("tflite", "litert")
        }
        minor = int(python.split(".")[1])
        assert asked["tflite"] == (["tflite-runtime==2.14.0", "numpy<2"] if minor < 12 else [])
        assert asked["litert"] == (["ai-edge-litert>=2.3"] if minor >= 10 else [])


def test_the_version_is_written_once(written):
    version = re.search(r'^version = "(.*)"$', TEXT, re.MULTILINE)[1]
    assert str(written.version) == version
    assert clgpu_delegate._core.__version__ == version
    assert f"VERSION {version}" not in (ROOT / "CMakeLists.txt").read_text()


def test_wheels_are_built_for_each_python_and_architecture():
    pytest.importorskip("cibuildwheel")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CIBW_")}
    listing = subprocess.run(
        [sys.executable, "-m", "cibuildwheel", "--platform", "linux", "--archs", "x86_64,aarch64",
         "--print-build-identifiers", ROOT],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert sorted(listing) == sorted(
        f"cp{python.replace('.', '')}-manylinux_{arch}"
        for python in PYTHONS
        for arch in ("x86_64", "aarch64")
    )

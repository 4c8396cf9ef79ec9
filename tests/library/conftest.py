"""The library without Python, installed from a build tree that has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


def tool(*names: str) -> str:
    """Path of the first of these programs that exists; skips the test if none does."""
    for name in names:
        if found := shutil.which(name, path=TOOLS):
            return found
    return pytest.skip(f"no {names[0]}")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program and show its output if the test fails."""
    result = subprocess.run(
        [str(part) for part in command],
        env={**os.environ, "PATH": TOOLS, **environment},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    print(result.stdout, result.stderr, sep="\n", file=sys.stderr)
    return result


def skip_without_opencl(code: int) -> None:
    """Skip if a program has exited with 77: it found no OpenCL library."""
    if code == 77:
        pytest.skip("only the Python package finds the OpenCL runtime that pip installed")


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder into which ``cmake --install`` has installed the library."""
    # With the extension beside it: for this machine, and not by another toolchain. Sanitizers are
    # for programs that are linked with them, too.
    trees = [ROOT / "build", *(ROOT / "build").glob("*/")]
    built = [
        tree / "libclgpu_delegate.so" for tree in trees
        if (tree / "libclgpu_delegate.so").exists() and list(tree.glob("_core*.so"))
        and "CLGPU_SANITIZE:BOOL=ON" not in (tree / "CMakeCache.txt").read_text()
    ]  # fmt: skip
    if not built:
        pytest.skip("no build with CLGPU_BUILD_LIBRARY=ON below build/")
    newest = max(built, key=lambda path: path.stat().st_mtime)
    prefix = tmp_path_factory.mktemp("installed")
    command = [tool("cmake"), "--install", newest.parent, "--prefix", prefix]
    result = run(*command, "--component", "library", "--strip")
    assert result.returncode == 0
    return prefix


@pytest.fixture(scope="session")
def library(installed: Path) -> Path:
    """The installed library."""
    (path,) = installed.glob("lib*/**/libclgpu_delegate.so")
    return path

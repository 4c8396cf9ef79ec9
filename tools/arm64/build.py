"""The delegate, built for ARM."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from tools.arm64.common import FOLDER, REPOSITORY, Missing, require, run
from tools.arm64.system import PYTHON, PYTHON_NAME

PRESET = "linux-aarch64"


def build_wheel() -> Path:
    """Build a wheel for the ARM system's Python; return its path."""
    chosen = []
    if sys.version_info[:2] != PYTHON:
        chosen = ["--python", require(PYTHON_NAME, f"{PYTHON_NAME}-venv")]
    for module in ("ziglang", "auditwheel"):
        if importlib.util.find_spec(module) is None:
            raise Missing(f"{module} is not installed: the extra 'cross' has it")
    tool = REPOSITORY / "tools" / "build_wheel.py"
    printed = run([sys.executable, tool, "--arch", "aarch64", "--out", FOLDER / "wheels", *chosen])
    return Path(printed.splitlines()[-1])


def build_library() -> Path:
    """Build libclgpu_delegate.so with the preset of the cross compiler; return its path.

    For tests: with half of the preset's optimizations, in half the time.
    """
    require("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
    # Uses CMake and ninja of this Python's environment if it has them.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    cmake = require("cmake", "cmake", path)
    folder = FOLDER / "library"
    environment = {**os.environ, "PATH": path}
    fast = ["-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DCLGPU_PRECOMPILE=ON"]
    run([cmake, "--preset", PRESET, "-B", folder, *fast], cwd=REPOSITORY, env=environment)
    run([cmake, "--build", folder], env=environment)
    return folder / "libclgpu_delegate.so"

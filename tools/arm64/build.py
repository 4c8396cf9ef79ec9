"""The delegate, built for ARM."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tools.arm64.common import REPOSITORY, require, run

PRESET = "linux-aarch64"


def build_library() -> Path:
    """Build libclgpu_delegate.so by the preset of the cross compiler; return its path."""
    require("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
    # CMake and ninja are those of the environment that this Python is in, where it has them.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run(
        ["cmake", "--workflow", "--preset", PRESET],
        cwd=REPOSITORY,
        env={**os.environ, "PATH": path},
    )
    return REPOSITORY / "build" / PRESET / "libclgpu_delegate.so"

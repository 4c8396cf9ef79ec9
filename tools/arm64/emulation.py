"""Programs of the ARM system, run by qemu's user emulation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tools.arm64.common import FOLDER, require, run
from tools.arm64.system import LIBRARIES, PROCESSOR, PYTHON_NAME, make_system


def _tool(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)
        path.chmod(0o755)


def environment(root: Path, sites: Sequence[Path] = ()) -> dict[str, str]:
    """Environment variables of emulated programs: OpenCL is PoCL, Python's modules are `sites`.

    PoCL links every kernel with the program `ld`, here this machine's linker for ARM. The OpenCL
    loader checks its drivers with faccessat(), which qemu does not redirect, so their paths are
    those of the host.
    """
    folder = FOLDER / "emulation"
    compiler = require("aarch64-linux-gnu-gcc", "g++-aarch64-linux-gnu")
    files = [
        Path(run([compiler, f"-print-file-name={name}"]).strip()) for name in ("crt1.o", "libgcc.a")
    ]
    search = " ".join(f"-L{file.resolve().parent}" for file in files)
    linker = require("aarch64-linux-gnu-ld", "g++-aarch64-linux-gnu")
    _tool(folder / "bin" / "ld", f'#!/bin/sh\nexec {linker} {search} "$@"\n')
    _tool(folder / "icd" / "pocl.icd", f"{root / LIBRARIES / 'libpocl.so.2'}\n")
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "TMPDIR", "LANG")}
    return {
        **kept,
        "QEMU_CPU": PROCESSOR,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "OCL_ICD_VENDORS": str(folder / "icd"),
        "POCL_CACHE_DIR": str(folder / "kernels"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONHOME": str(root / "usr"),
        "PYTHONPATH": ":".join(map(str, sites)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def python_command() -> list[str]:
    """Start of the command line of the ARM system's Python."""
    root = make_system()
    return [
        require("qemu-aarch64", "qemu-user"),
        "-L",
        str(root),
        str(root / "usr/bin" / PYTHON_NAME),
    ]

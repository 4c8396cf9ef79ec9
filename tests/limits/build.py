"""Builds the layer, once per version of its sources, and finds the real library.

Other libraries of C that stand in for OpenCL are built in the same way.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.limits.profiles import PROFILES

FOLDER = Path(__file__).parent
RUSTICL = Path("/etc/OpenCL/vendors/rusticl.icd")
SYSTEM_LOADER = "libOpenCL.so.1"


class LayerError(Exception):
    """The layer cannot be built here; the message says why."""


def layer(folder: Path) -> Path:
    """Return the path of the layer, compiled into ``folder`` unless it exists there."""
    sources = sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h")])
    return shared_library("limits", sources, folder, "limits of devices are emulated by")


def shared_library(
    name: str, sources: Sequence[Path], folder: Path, what: str, include: Path | None = None
) -> Path:
    """Return the path of a library of sources and headers, compiled unless it exists.

    Sources are all in C or all in C++. Processes may call this at the same time. ``what`` begins
    the sentence of an error.
    """
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    path = folder / f"lib{name}_{digest[:16]}.so"
    if path.exists():
        return path
    is_cpp = any(source.suffix == ".cpp" for source in sources)
    language, command = ("C++", ["c++", "-std=c++17"]) if is_cpp else ("C", ["cc", "-std=c11"])
    if shutil.which(command[0]) is None:
        message = f"{what} a {language} library, and there is no compiler ({command[0]})"
        raise LayerError(message)
    if include is not None:
        command.append(f"-I{include}")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / path.name
        done = subprocess.run(
            [
                *command, "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", made,
                *(source for source in sources if source.suffix in (".c", ".cpp")),
                "-ldl", "-lpthread",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            message = f"{what} a {language} library, which does not compile: {done.stderr}"
            raise LayerError(message)
        made.replace(path)
    return path


def rusticl() -> dict[str, str]:
    """Return the variables with which a process sees one device: the CPU through Mesa's rusticl."""
    if not RUSTICL.is_file():
        message = f"{RUSTICL} does not exist (Debian: mesa-opencl-icd)"
        raise LayerError(message)
    return {
        "CLGPU_OPENCL_LIBRARY": SYSTEM_LOADER,
        "CLGPU_LIMITS": "rusticl",
        "OCL_ICD_VENDORS": RUSTICL.name,
        "RUSTICL_ENABLE": "llvmpipe",
    }


def environment(profile: str, folder: Path) -> dict[str, str]:
    """Return the variables with which a process sees one device, with the limits of a profile.

    It is a CPU, unless the variable LIMITS_ANY_DEVICE is set; LIMITS_LIBRARY may name its library.
    """
    from clgpu_delegate.base.embedded import libraries  # noqa: PLC0415  # conftest imports this file

    real = os.environ.get("LIMITS_LIBRARY") or str(next(iter(libraries()), SYSTEM_LOADER))
    return {
        "CLGPU_OPENCL_LIBRARY": str(layer(folder)),
        "CLGPU_LIMITS": profile,
        "LIMITS_LIBRARY": real,
        **PROFILES[profile].environment(),
    }

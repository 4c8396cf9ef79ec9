"""OpenCL runtimes that pip installed, found without the system's OpenCL loader.

Such a runtime is a shared library that implements the whole OpenCL API, so it can be opened
directly; no ``.icd`` file, no root and no ``LD_LIBRARY_PATH`` are needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clgpu_delegate import _core
from clgpu_delegate.base import children
from clgpu_delegate.errors import DeviceError

if TYPE_CHECKING:
    import importlib.metadata

# Distribution on PyPI -> the file that implements OpenCL.
_RUNTIMES = {"intel-opencl-rt": "libintelocl.so"}


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """Register the runtimes before devices are listed, and extend a DeviceError raised inside.

    The addition says why an installed runtime could not be used.
    """
    # With this variable set, the one library it names is the only one to use.
    if os.environ.get("CLGPU_OPENCL_LIBRARY"):
        yield
        return
    problems = _register()
    try:
        yield
    except DeviceError as error:
        if not problems:
            raise
        raise DeviceError(f"{error}; {'; '.join(problems)}") from None


def libraries() -> list[Path]:
    """Files of the OpenCL runtimes that are installed in this environment."""
    return [path for path in _find() if path is not None]


@functools.cache
def _register() -> tuple[str, ...]:
    """Register every runtime with the C++ side once; returns why some cannot be used."""
    problems = []
    for path, distribution in zip(_find(), _RUNTIMES):
        if path is not None:
            missing = _open(path, ctypes.RTLD_LOCAL)
            if missing is None:
                _core.add_library(str(path))
            else:
                problems.append(f"{path} cannot be used: {missing}")
        elif _installed(distribution):
            problems.append(
                f"{distribution} is installed without its libraries (as `pip install --target` "
                "leaves them out); install it into a virtual environment"
            )
    return tuple(problems)


def _find() -> list[Path | None]:
    return [_find_one(distribution, name) for distribution, name in _RUNTIMES.items()]


def _find_one(distribution: str, name: str) -> Path | None:
    paths: list[Path] = []
    for installed in _installed(distribution):
        for file in installed.files or ():
            if file.name == name:
                paths.append(Path(str(file.locate())))
    # Packagers other than pip may keep no list of files.
    prefixes = [sysconfig.get_path("data"), sys.prefix, sys.base_prefix, site.getuserbase()]
    paths += [Path(prefix) / "lib" / name for prefix in prefixes]
    return next((path.resolve() for path in paths if path.is_file()), None)


def _installed(distribution: str) -> list[importlib.metadata.Distribution]:
    """The installed distributions of a name, without any in the current folder."""
    import importlib.metadata  # noqa: PLC0415

    found = importlib.metadata.Distribution.discover(name=distribution, path=children.import_path())
    return list(found)


def _open(path: Path, mode: int) -> str | None:
    """Load a library permanently, after its missing dependencies from its own folder.

    Intel's current wheels find each other by RUNPATH. Where one does not, the missing library is
    loaded by its full path, and the next attempt succeeds. Returns None, or the linker's error.
    """
    seen = set()
    while True:
        try:
            ctypes.CDLL(str(path), mode=mode)
        except OSError as error:
            complaint = str(error)
        else:
            return None
        match = re.match(r"(\S+): cannot open shared object file", complaint)
        if match is None or match[1] in seen:
            return complaint
        seen.add(match[1])
        dependency = path.parent / match[1]
        if dependency == path or not dependency.is_file():
            return complaint
        nested = _open(dependency, ctypes.RTLD_GLOBAL)
        if nested is not None:
            return nested

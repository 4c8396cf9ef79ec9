"""The compiled extension: found in another copy of the package, or replaced by a stand-in.

Python looks into the current folder first. In a clone, ``import clgpu_delegate`` therefore finds
the sources, which have no compiled extension after ``pip install .`` has installed it elsewhere.

Where there is no extension at all, a stand-in takes its place. The package can then be imported, so
that ``clgpu doctor`` can report what is wrong; the first use of anything that needs the extension
raises an ImportError that is a `ClgpuError`, too.
"""

from __future__ import annotations

import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_NAME = "clgpu_delegate"
_EXTENSION = "clgpu_delegate._core"


def folder_of_another_copy() -> str | None:
    """The folder of an installed copy, where this one has no compiled extension and that one has.

    Import hooks count: an editable install takes this folder's modules and its own extension.
    """
    if find_spec(_EXTENSION) is not None:
        return None
    here = Path(__file__).resolve().parent
    for entry in sys.path:
        folder = Path(entry, _NAME)
        extensions = (folder / f"_core{suffix}" for suffix in EXTENSION_SUFFIXES)
        is_package = (folder / "__init__.py").is_file() and any(e.is_file() for e in extensions)
        if is_package and folder.resolve() != here:
            return str(folder)
    return None


class ClgpuError(RuntimeError):
    """As of the extension; so are the others."""


class OptionError(ClgpuError, ValueError): ...


class DeviceError(ClgpuError): ...


class OpenCLError(ClgpuError): ...


class BuildError(ClgpuError): ...


class ShapeError(ClgpuError): ...


class InternalError(ClgpuError): ...


class MissingExtensionError(ClgpuError, ImportError):
    """The compiled extension is needed but missing."""


class _StandIn(types.ModuleType):
    reason: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by Python's own machinery
            raise AttributeError(name)
        raise MissingExtensionError(self.reason)


def install_stand_in(error: ImportError) -> None:
    """Register a module that raises where the extension is used; ``error`` is why it is not."""
    module = _StandIn(_EXTENSION)
    if isinstance(error, ModuleNotFoundError) and error.name == _EXTENSION:
        module.reason = (
            f"the compiled extension of clgpu_delegate is missing beside {Path(__file__).parent}; "
            "run `pip install .` in the source folder, or leave that folder if it is installed "
            "already"
        )
    else:
        module.reason = f"the compiled extension of clgpu_delegate cannot be loaded: {error}"
    module.reason += " (`clgpu doctor` shows details)"
    for known in (
        ClgpuError, OptionError, DeviceError, OpenCLError, BuildError, ShapeError, InternalError,
    ):  # fmt: skip
        setattr(module, known.__name__, known)
    sys.modules[_EXTENSION] = module

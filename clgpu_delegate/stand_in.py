"""Takes the place of the compiled extension where it is missing or cannot be loaded.

The package can then be imported, so that ``clgpu doctor`` can tell what is wrong; the first use of
anything that needs the extension raises an ImportError that is a `ClgpuError`, too.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

_NAME = "clgpu_delegate._core"


class ClgpuError(RuntimeError):
    """As of the extension; so are the others."""


class OptionError(ClgpuError, ValueError): ...


class DeviceError(ClgpuError): ...


class OpenCLError(ClgpuError): ...


class BuildError(ClgpuError): ...


class ShapeError(ClgpuError): ...


class InternalError(ClgpuError): ...


class MissingExtensionError(ClgpuError, ImportError):
    """The compiled extension was needed."""


class _StandIn(types.ModuleType):
    reason: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by Python's own machinery
            raise AttributeError(name)
        raise MissingExtensionError(self.reason)


def install(error: ImportError) -> None:
    """Register a module that raises where the extension is used; ``error`` is why it is not."""
    module = _StandIn(_NAME)
    if isinstance(error, ModuleNotFoundError) and error.name == _NAME:
        module.reason = (
            f"the compiled extension of clgpu_delegate is missing beside {Path(__file__).parent}; "
            "run `pip install .` in the source folder, or leave that folder if it is installed "
            "already"
        )
    else:
        module.reason = f"the compiled extension of clgpu_delegate cannot be loaded: {error}"
    module.reason += " (`clgpu doctor` tells more)"
    for known in (
        ClgpuError, OptionError, DeviceError, OpenCLError, BuildError, ShapeError, InternalError,
    ):  # fmt: skip
        setattr(module, known.__name__, known)
    sys.modules[_NAME] = module

"""The exceptions of the package; all derive from `ClgpuError`, a RuntimeError.

``BuildError`` carries the compiler's output in ``log``; ``OptionError`` is a ValueError too.
"""

from __future__ import annotations

try:
    from clgpu_delegate._core import (
        BuildError,
        ClgpuError,
        DeviceError,
        InternalError,
        OpenCLError,
        OptionError,
    )
except ModuleNotFoundError as error:
    if error.name != "clgpu_delegate._core":
        raise
    raise ImportError(
        f"the compiled extension of clgpu_delegate is missing beside {__file__}; "
        "run `pip install .` in the source folder, or leave that folder if it is installed already"
    ) from None

__all__ = [
    "BuildError",
    "ClgpuError",
    "DeviceError",
    "InternalError",
    "OpenCLError",
    "OptionError",
    "RuntimeNotFoundError",
]


class RuntimeNotFoundError(ClgpuError, ImportError):
    """No TensorFlow Lite runtime that was asked for can be imported."""

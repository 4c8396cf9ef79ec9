"""The exceptions of the package; all derive from `ClgpuError`, a RuntimeError.

``BuildError`` carries the compiler's output in ``log``; ``OptionError`` is a ValueError too.
"""

from __future__ import annotations

import importlib

from clgpu_delegate import extension

try:
    importlib.import_module("clgpu_delegate._core")
except ImportError as _missing:
    extension.install_stand_in(_missing)

from clgpu_delegate._core import (
    BuildError,
    ClgpuError,
    DeviceError,
    InternalError,
    OpenCLError,
    OptionError,
    ShapeError,
)

__all__ = [
    "BuildError",
    "ClgpuError",
    "DependencyError",
    "DeviceError",
    "FileError",
    "InputError",
    "InternalError",
    "ModelError",
    "OpenCLError",
    "OptionError",
    "QuantizationError",
    "RuntimeNotFoundError",
    "ShapeError",
]

_MEANINGS = {
    ClgpuError: "Base of all errors of this package.",
    OptionError: "An option is unknown, malformed or out of range.",
    DeviceError: "No OpenCL library, platform or device matches the options.",
    OpenCLError: "A call of the OpenCL driver failed.",
    BuildError: "A kernel did not compile; ``log`` has the compiler's messages.",
    ShapeError: "The shapes of a node's tensors do not fit together.",
    InternalError: "A bug in this package; please report it.",
}
for _error, _meaning in _MEANINGS.items():
    _error.__doc__ = _meaning


class RuntimeNotFoundError(ClgpuError, ImportError):
    """The requested TensorFlow Lite runtime, or any at all, cannot be imported."""


class DependencyError(ClgpuError, ImportError):
    """An optional package that the call needs is not installed."""


class FileError(ClgpuError):
    """A file that cannot be read or written."""


class ModelError(ClgpuError, ValueError):
    """A file or bytes that are no model, or a model that a runtime rejects."""


class InputError(ClgpuError, ValueError):
    """Arrays or shapes that a model does not take."""


class QuantizationError(ClgpuError, ValueError):
    """A model or calibration data that cannot be quantised, or be quantised with."""

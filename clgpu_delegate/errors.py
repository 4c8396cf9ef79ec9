"""The exceptions of the package; all derive from `ClgpuError`, a RuntimeError.

``BuildError`` carries the compiler's output in ``log``; ``OptionError`` is a ValueError too.

Examples
--------
>>> try:
...     clgpu_delegate.load(precision="int8")
... except clgpu_delegate.errors.ClgpuError as error:
...     print(error)
option 'precision' is 'int8'; allowed: fp32, fp16, tf32, mixed, a plan
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

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
    "PoolError",
    "QuantizationError",
    "RuntimeNotFoundError",
    "ShapeError",
]

_HANDLED = """>>> try:
...     delegate = clgpu_delegate.load()
... except clgpu_delegate.{name} as error:
...     print("without the delegate:", {what})"""
_MEANINGS = {
    ClgpuError: (
        "Base of all errors of this package.",
        _HANDLED.format(name="ClgpuError", what="error"),
    ),
    OptionError: (
        "An option is unknown, malformed or out of range.",
        """>>> try:
...     clgpu_delegate.load(min_nodes=0)
... except clgpu_delegate.OptionError as error:
...     print(error)
option 'min_nodes' is 0; allowed: 1 to 999999""",
    ),
    DeviceError: (
        "No OpenCL library, platform or device matches the options.",
        """>>> try:
...     clgpu_delegate.load(device="abacus")
... except clgpu_delegate.DeviceError as error:
...     print(error)  # doctest: +ELLIPSIS
no OpenCL device has 'abacus' in its name; found: ...""",
    ),
    OpenCLError: (
        "A call of the OpenCL driver failed.",
        _HANDLED.format(name="OpenCLError", what="error"),
    ),
    BuildError: (
        "A kernel did not compile; ``log`` has the compiler's messages.",
        _HANDLED.format(name="BuildError", what="error.log"),
    ),
    ShapeError: (
        "The shapes of a node's tensors do not fit together.",
        _HANDLED.format(name="ShapeError", what="error"),
    ),
    InternalError: (
        "A bug in this package; please report it.",
        _HANDLED.format(name="InternalError", what="error"),
    ),
}
for _error, (_meaning, _example) in _MEANINGS.items():
    _error.__doc__ = f"{_meaning}\n\nExamples\n--------\n{_example}\n"


class RuntimeNotFoundError(ClgpuError, ImportError):
    """The requested TensorFlow Lite runtime, or any at all, cannot be imported.

    Examples
    --------
    >>> try:
    ...     clgpu_delegate.Runner("model.tflite", runtime="numpy")
    ... except clgpu_delegate.RuntimeNotFoundError as error:
    ...     print(error)
    unknown runtime 'numpy'; runtimes are: ai_edge_litert, tflite_runtime, tensorflow
    """


class DependencyError(ClgpuError, ImportError):
    """An optional package that the call needs is not installed.

    Examples
    --------
    >>> profile = clgpu_delegate.profile_model("model.tflite", runs=1)
    >>> try:
    ...     profile.plot("profile.png")
    ... except clgpu_delegate.DependencyError as error:
    ...     print("without a picture:", error)
    """


class FileError(ClgpuError):
    """A file that cannot be read or written.

    Examples
    --------
    >>> try:
    ...     clgpu_delegate.explain_model("nowhere.tflite")
    ... except clgpu_delegate.FileError as error:
    ...     print(error)
    cannot read the model nowhere.tflite: No such file or directory
    """


class ModelError(ClgpuError, ValueError):
    """A file or bytes that are no model, or a model that a runtime rejects.

    Examples
    --------
    >>> try:
    ...     clgpu_delegate.Runner(b"nothing")
    ... except clgpu_delegate.ModelError as error:
    ...     print(error)
    this value of 7 bytes is not a .tflite model: it lacks the mark TFL3
    """


class InputError(ClgpuError, ValueError):
    """Arrays or shapes that a model does not take.

    Examples
    --------
    >>> with clgpu_delegate.Runner("model.tflite") as runner:
    ...     try:
    ...         runner.run(x[0])
    ...     except clgpu_delegate.InputError as error:
    ...         print(error)  # doctest: +ELLIPSIS
    input ... the first axis, the batch, is missing: give x[None]
    """


class PoolError(ClgpuError):
    """Every device of a `Pool`, or of an actor of `clgpu_delegate.ray`, has failed.

    Attributes
    ----------
    failures
        Index, name and error of each device.

    Examples
    --------
    >>> try:
    ...     with clgpu_delegate.Pool("model.tflite") as pool:
    ...         results = list(pool.map([x]))
    ... except clgpu_delegate.PoolError as error:
    ...     for index, name, why in error.failures:
    ...         print(index, name, why)
    """

    def __init__(self, failures: Sequence[tuple[int, str, str]]) -> None:
        told = "; ".join(f"{index} ({name}): {why}" for index, name, why in failures)
        super().__init__(f"all devices have failed: {told}")
        self.failures = list(failures)

    def __reduce__(self) -> tuple[type[PoolError], tuple[list[tuple[int, str, str]]]]:
        return PoolError, (self.failures,)


class QuantizationError(ClgpuError, ValueError):
    """A model or calibration data that cannot be quantised, or be quantised with.

    Examples
    --------
    >>> try:
    ...     clgpu_delegate.quantize("model.tflite", [], "int8.tflite")
    ... except clgpu_delegate.QuantizationError as error:
    ...     print(error)
    the set of calibration samples is empty
    """

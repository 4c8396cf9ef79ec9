"""Inputs and outputs of a model, and the arrays that are given for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np

from clgpu_delegate.base.arranging import arrange
from clgpu_delegate.errors import InputError

Array = np.ndarray[Any, Any]
Named = Mapping[str, Array]
Unnamed = Union[Array, Sequence[Array]]
Arrays = Union[Unnamed, Named]
# An array, where the model has one output (input), else a list of them. The model decides, which
# type checkers do not know: they take it as an array, and let it be used as a list.
ArrayOrList = Union[Array, Any]


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model.

    Examples
    --------
    >>> with clgpu_delegate.Runner("model.tflite") as runner:
    ...     (tensor,) = runner.inputs
    >>> tensor.describe()
    'float32 of shape (1, 4, 4, 2)'
    """

    name: str

    shape: tuple[int, ...]
    """Of the moment; see `Runner.resize`."""

    dtype: np.dtype[Any]

    scale: float
    """Of a quantised tensor: a number ``q`` in it stands for ``scale * (q - zero_point)``; 0 of one
    that is not quantised."""

    zero_point: int

    index: int
    """In the model."""

    @property
    def nbytes(self) -> int:
        """Bytes of its array."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def describe(self) -> str:
        """Shape and dtype, for messages."""
        return f"{self.dtype.name} of shape {self.shape}"


def tensor(detail: Mapping[str, Any]) -> TensorSpec:
    """A tensor as an interpreter's details tell it."""
    scale, zero_point = detail["quantization"]
    shape = tuple(int(size) for size in detail["shape"])
    dtype = np.dtype(detail["dtype"])
    return TensorSpec(
        detail["name"], shape, dtype, float(scale), int(zero_point), int(detail["index"])
    )


def bind(
    given: Arrays, tensors: Sequence[TensorSpec], kind: str, *, write: bool = False
) -> list[Any]:
    """The arrays for all tensors of a kind ("input", "output"), in their order, checked.

    Raises
    ------
    InputError
        If there are too few or too many, one has another shape or dtype, or, with ``write``, cannot
        be written to as it is.
    """
    names = [t.name for t in tensors]
    for name, value in zip(names, arranged := arrange(given, names, kind)):
        if not hasattr(value, "__array__"):
            raise InputError(f"{kind} {name!r} takes a NumPy array, not {type(value).__name__}")
    arrays = [np.asarray(value) for value in arranged]
    for wanted, array in zip(tensors, arrays):
        if array.shape != wanted.shape or not _same(array.dtype, wanted.dtype):
            hint = ""
            if kind == "input" and (1, *array.shape) == wanted.shape:
                hint = "; the first axis, the batch, is missing: give x[None]"
            elif array.shape != wanted.shape and kind == "input":
                hint = "; resize() changes the shape"
            elif array.shape == wanted.shape:
                hint = f"; convert it, e.g. with .astype(np.{wanted.dtype.name})"
            raise InputError(
                f"{kind} {wanted.name!r} is {wanted.describe()}; given is {array.dtype.name} of "
                f"shape {array.shape}{hint}"
            )
        if write and not (array.flags.c_contiguous and array.flags.writeable):
            raise InputError(f"{kind} {wanted.name!r} needs a contiguous array that is writeable")
    return arrays


def like(results: Sequence[Array], given: Any, tensors: Sequence[TensorSpec]) -> Any:
    """Results in the form in which inputs were given: a dict, one array, or a list."""
    if isinstance(given, Mapping):
        return {t.name: result for t, result in zip(tensors, results)}
    return results[0] if len(results) == 1 else list(results)


def _same(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    if wanted.kind in "SO":  # texts
        return given.kind in "SUO"
    return given == wanted

"""Calibration samples: checked, and brought into the form that the runtimes take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from clgpu_delegate.base.files import read_arrays
from clgpu_delegate.base.rendering import printable
from clgpu_delegate.errors import QuantizationError
from clgpu_delegate.tflite.graph import Array, Tensor


def load_file(
    path: str | os.PathLike[str], inputs: Sequence[Tensor], what: str = "calibration data"
) -> list[tuple[Any, ...]]:
    """Read samples from a file.

    Parameters
    ----------
    path
        A .npy file with an array of samples, for models with one input, or a .npz file with one
        such array per input, named like it. The first axis counts the samples.
    inputs
        Of the model.
    what
        As messages name them.

    Raises
    ------
    FileError
        If it cannot be read.
    QuantizationError
        If it does not fit the inputs.
    """
    arrays = read_arrays(path)
    if isinstance(arrays, np.ndarray):
        return [(sample,) for sample in np.atleast_1d(arrays)]
    return split(arrays, inputs, f"the {what} {os.fspath(path)}")


def split(arrays: Mapping[str, Any], inputs: Sequence[Tensor], what: str) -> list[tuple[Any, ...]]:
    """Samples of one array per input, from an array of all samples by each input's name."""
    columns = [np.atleast_1d(column) for column in _by_name(arrays, inputs, what)]
    if len({len(column) for column in columns}) > 1:
        counts = ", ".join(f"{printable(t.name)}: {len(c)}" for t, c in zip(inputs, columns))
        raise QuantizationError(f"{what} has different numbers of samples per input ({counts})")
    return list(zip(*columns))


def checked(
    samples: Iterable[Any], inputs: Sequence[Tensor], kind: str = "calibration sample"
) -> Iterator[list[Array]]:
    """Yield for each sample one array per input, of the model's shape and type.

    Parameters
    ----------
    samples
        Each an array (for models with one input), a sequence of one array per input, or a mapping
        from the inputs' names.
    inputs
        Of the model.
    kind
        As messages name a sample.

    Raises
    ------
    QuantizationError
        If a sample does not fit the inputs or holds a value that is not finite.
    """
    for number, sample in enumerate(samples):
        what = f"{kind} {number}"
        if isinstance(sample, Mapping):
            values = _by_name(sample, inputs, what)
        elif isinstance(sample, (tuple, list)):
            values = list(sample)
        else:
            values = [sample]
        if len(values) != len(inputs):
            raise QuantizationError(
                f"{what} has {len(values)} arrays; the model has {len(inputs)} inputs "
                f"({_names(inputs)})"
            )
        yield [_fit(v, t, f"{what}, input {t.name!r}") for v, t in zip(values, inputs)]


def _by_name(arrays: Mapping[str, Any], inputs: Sequence[Tensor], what: str) -> list[Any]:
    names = {t.name for t in inputs}
    if set(arrays) != names:
        raise QuantizationError(
            f"{what} has arrays for {', '.join(sorted(arrays)) or 'nothing'}; "
            f"the model's inputs are {_names(inputs)}"
        )
    return [arrays[t.name] for t in inputs]


def _fit(value: Any, tensor: Tensor, what: str) -> Array:
    if tensor.dtype == "string":
        raise QuantizationError(f"{what}: inputs of strings are not supported")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise QuantizationError(f"{what} is not an array: {error}") from None
    wanted = np.dtype(tensor.dtype)
    # Wider types are accepted if the numbers fit; another kind is a mistake, such as raw pixels.
    if array.dtype.kind != wanted.kind or not np.can_cast(array.dtype, wanted, "same_kind"):
        raise QuantizationError(f"{what} is of type {array.dtype}; the model takes {wanted}")
    if wanted.kind != "f" and not np.array_equal(array, array.astype(wanted)):
        raise QuantizationError(f"{what} contains numbers that are too large for {wanted}")
    with np.errstate(over="ignore"):  # reported below
        array = array.astype(wanted)
    shape = tensor.signature or tensor.shape
    if array.ndim == len(shape) - 1 and shape[0] in (1, -1):
        array = array[None]  # one sample without its axis of batches
    fits = array.ndim == len(shape) and all(s in (-1, n) for s, n in zip(shape, array.shape))
    if not fits or not array.size:
        raise QuantizationError(
            f"{what} is of shape {np.shape(value)}; the model takes {tuple(shape)}"
        )
    if wanted.kind == "f" and not np.isfinite(array).all():
        raise QuantizationError(f"{what} holds NaN or infinity")
    return np.ascontiguousarray(array)


def _names(inputs: Sequence[Tensor]) -> str:
    return ", ".join(printable(t.name) for t in inputs)

"""The inputs of a model that is to be captured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np

from clgpu_delegate.base.files import read_arrays
from clgpu_delegate.base.number_types import kind_of
from clgpu_delegate.errors import InputError, ModelError
from clgpu_delegate.tflite.graph import Array
from clgpu_delegate.tflite.inference import random_inputs

Inputs = Union[str, "os.PathLike[str]", Mapping[str, Any], Sequence[Any], None]


def inputs_of(interpreter: Any, given: Inputs, seed: int) -> list[Array]:
    """One array per input of a model, in its order; random ones where none are given.

    Raises
    ------
    FileError
        If a file of them cannot be read, or is none.
    ModelError
        If the model takes text and none is given.
    InputError
        If they do not fit the model.
    """
    details = interpreter.get_input_details()
    if given is None:
        for detail in details:
            if kind_of(np.dtype(detail["dtype"])) not in "fiubc":
                raise ModelError(
                    f"input {detail['name']!r} is text, which cannot be random; give inputs"
                )
        return list(random_inputs(interpreter, seed))
    arrays: Any = read_arrays(given) if isinstance(given, (str, os.PathLike)) else given
    if isinstance(arrays, np.ndarray):
        arrays = [arrays]
    if isinstance(arrays, Mapping):
        arrays = _by_name(arrays, [detail["name"] for detail in details])
    if len(arrays) != len(details):
        raise InputError(f"the model has {len(details)} inputs, and {len(arrays)} were given")
    return [_fitting(detail, np.asarray(value)) for detail, value in zip(details, arrays)]


def _by_name(given: Mapping[str, Any], names: list[str]) -> list[Any]:
    if len(names) == len(given) == 1:
        return list(given.values())  # a single array belongs to the only input, whatever its name
    have = ", ".join(map(repr, names))
    for name in given:
        if name not in names:
            raise InputError(f"the model's inputs are {have}; {name!r} is none of them")
    for name in names:
        if name not in given:
            raise InputError(f"the model's inputs are {have}; {name!r} is missing")
    return [given[name] for name in names]


def _fitting(detail: Mapping[str, Any], value: Array) -> Array:
    dtype, shape = np.dtype(detail["dtype"]), tuple(int(n) for n in detail["shape"])
    is_open = [n == -1 for n in detail.get("shape_signature", ())] or [False] * len(shape)
    what = f"input {detail['name']!r}"
    if value.dtype != dtype and kind_of(dtype) in "fiub":
        raise InputError(f"{what} is {value.dtype}; the model takes {dtype}")
    # The batch may always be another one: models can be resized.
    fits = value.ndim == len(shape) and all(
        v == s or o or i == 0 for i, (v, s, o) in enumerate(zip(value.shape, shape, is_open))
    )
    if not fits or value.size == 0:
        raise InputError(f"{what} has shape {list(value.shape)}; the model takes {list(shape)}")
    return np.ascontiguousarray(value).reshape(value.shape)

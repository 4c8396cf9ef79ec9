"""The inputs of a model that is to be captured."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

import numpy as np

from clgpu_delegate.errors import FileError, ModelError, ShapeError
from clgpu_delegate.inference import random_inputs
from clgpu_delegate.quantization.graph import Array

Inputs = Union[str, "os.PathLike[str]", Mapping[str, Any], Sequence[Any], None]


def inputs_of(interpreter: Any, given: Inputs, seed: int) -> list[Array]:
    """One array per input of a model, in its order; random ones where none are given.

    Raises
    ------
    FileError, ModelError
        If a file of them cannot be read, or is none.
    ShapeError
        If they do not fit the model.
    """
    details = interpreter.get_input_details()
    if given is None:
        for detail in details:
            if np.dtype(detail["dtype"]).kind not in "fiubc":
                raise ModelError(
                    f"input {detail['name']!r} is text, which nobody can make up; give inputs"
                )
        return list(random_inputs(interpreter, seed))
    if isinstance(given, (str, os.PathLike)):
        given = _read(given)
    if isinstance(given, Mapping):
        given = _by_name(given, [detail["name"] for detail in details])
    if len(given) != len(details):
        raise ShapeError(f"the model has {len(details)} inputs, and {len(given)} were given")
    return [_fitting(detail, np.asarray(value)) for detail, value in zip(details, given)]


def _read(path: str | os.PathLike[str]) -> dict[str, Array]:
    name = os.fspath(path)
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except OSError as error:
        raise FileError(f"cannot read the inputs {name}: {error.strerror or error}") from None
    except Exception:  # what a damaged archive leads to is the affair of zipfile and zlib
        raise ModelError(f"{name} is not a .npz file of numbers, or is damaged") from None


def _by_name(given: Mapping[str, Any], names: list[str]) -> list[Any]:
    if len(names) == len(given) == 1:
        return list(given.values())  # whatever its name, what else could be meant
    have = ", ".join(map(repr, names))
    for name in given:
        if name not in names:
            raise ShapeError(f"the model's inputs are {have}; {name!r} is none of them")
    for name in names:
        if name not in given:
            raise ShapeError(f"the model's inputs are {have}; {name!r} is missing")
    return [given[name] for name in names]


def _fitting(detail: Mapping[str, Any], value: Array) -> Array:
    dtype, shape = np.dtype(detail["dtype"]), tuple(int(n) for n in detail["shape"])
    is_open = [n == -1 for n in detail.get("shape_signature", ())] or [False] * len(shape)
    what = f"input {detail['name']!r}"
    if value.dtype != dtype and dtype.kind in "fiub":
        raise ShapeError(f"{what} is {value.dtype}; the model takes {dtype}")
    # The batch may always be another one: models can be resized.
    fits = value.ndim == len(shape) and all(
        v == s or o or i == 0 for i, (v, s, o) in enumerate(zip(value.shape, shape, is_open))
    )
    if not fits or value.size == 0:
        raise ShapeError(f"{what} has shape {list(value.shape)}; the model takes {list(shape)}")
    return np.ascontiguousarray(value).reshape(value.shape)

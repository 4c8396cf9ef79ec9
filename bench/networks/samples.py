"""Seeded inputs for running and comparing networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tflite

_TOKENS = 100  # ids below this exist in any vocabulary
_SCALES = ((4, 1.0), (16, 0.5), (64, 0.25), (1024, 0.15))  # (grid, amplitude): coarse dominates


class Input(NamedTuple):
    """An input of a network, with its batch axis."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.float32)


def inputs_of(model: bytes) -> list[Input]:
    """Read the inputs that a .tflite file declares."""
    graph = tflite.Model.GetRootAsModel(model, 0).Subgraphs(0)
    types = {value: name for name, value in vars(tflite.TensorType).items() if name.isupper()}
    tensors = [graph.Tensors(graph.Inputs(i)) for i in range(graph.InputsLength())]
    return [
        Input(
            t.Name().decode(),
            tuple(int(t.Shape(axis)) for axis in range(t.ShapeLength())),
            np.dtype(types[t.Type()].lower()),
        )
        for t in tensors
    ]


def sample(inputs: Sequence[Input], seed: int = 0) -> list[np.ndarray]:
    """Draw a value for each input.

    Returns
    -------
    list of arrays
        Float inputs of rank 4: images with the smooth structure of photographs, in -1..1; other
        floats: standard normal numbers; integers: 0 or 1, or token ids if the name contains
        ``ids``; booleans: random.
    """
    random = np.random.default_rng(seed)
    return [_draw(random, i).astype(i.dtype) for i in inputs]


def _draw(random: np.random.Generator, spec: Input) -> np.ndarray:
    if np.issubdtype(spec.dtype, np.floating):
        if len(spec.shape) == 4:
            return _image(random, spec.shape)
        return random.standard_normal(spec.shape)
    return random.integers(0, _TOKENS if "ids" in spec.name else 2, spec.shape)


def _image(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Add noise of several scales, each interpolated bilinearly from a coarser grid."""
    n, h, w, c = shape
    image = np.zeros(shape, np.float32)
    for grid, amplitude in _SCALES:
        rows, cols = min(grid, h), min(grid, w)
        noise = random.uniform(-1, 1, (n, rows, cols, c))
        # With optimization, these become matrix products.
        spread = np.einsum("hr,nrkc->nhkc", _interpolation(rows, h), noise, optimize=True)
        image += amplitude * np.einsum(
            "wk,nhkc->nhwc", _interpolation(cols, w), spread, optimize=True
        )
    return image / np.abs(image).max()


def _interpolation(points: int, size: int) -> np.ndarray:
    """Return the ``(size, points)`` matrix that interpolates linearly between points."""
    at = np.linspace(0, points - 1, size)[:, None]
    return np.maximum(0, 1 - np.abs(at - np.arange(points)))

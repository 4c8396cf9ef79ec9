"""Normalisations by mean and variance, for the tests of their families."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.model_maker import ModelMaker

EPSILON = 1e-3


class Case(NamedTuple):
    """The shape of x, and what follows its normalisation."""

    x: tuple[int, ...]
    scale: bool = True
    bias: bool = True
    activation: str = ""
    residual: bool = False


def make_model(case: Case, over: tuple[int, ...], scale: np.ndarray, bias: np.ndarray) -> bytes:
    """The elementary operations that normalise over these axes, as a converter writes them."""
    m = ModelMaker()
    x = m.input("x", case.x)
    residual = m.input("residual", case.x) if case.residual else None
    axes = m.constant(np.array(over, dtype=np.int32))
    rank = len(case.x)
    reduced = {axis % rank for axis in over}
    kept = tuple(1 if axis in reduced else size for axis, size in enumerate(case.x))
    mean = m.op("MEAN", [x, axes], kept, keep_dims=True)
    squares = m.op("SQUARED_DIFFERENCE", [x, mean], case.x)
    variance = m.op("MEAN", [squares, axes], kept, keep_dims=True)
    shifted = m.op("ADD", [variance, m.constant(np.float32(EPSILON))], kept)
    y = m.op("SUB", [x, mean], case.x)
    y = m.op("MUL", [y, m.op("RSQRT", [shifted], kept)], case.x)
    if case.scale:
        y = m.op("MUL", [y, m.constant(scale)], case.x)
    if case.bias:
        y = m.op("ADD", [y, m.constant(bias)], case.x)
    if residual is not None:
        y = m.op("ADD", [residual, y], case.x)
    if case.activation:
        options = {"alpha": 0.2} if case.activation == "LEAKY_RELU" else {}
        y = m.op(case.activation, [y], case.x, **options)
    m.output(y)
    return m.build()


def reference(
    case: Case,
    over: tuple[int, ...],
    inputs: list[np.ndarray],
    scale: np.ndarray,
    bias: np.ndarray,
) -> np.ndarray:
    """What they compute, in float64."""
    x = inputs[0].astype(np.float64)
    y = (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + EPSILON)
    y = y * (scale if case.scale else 1) + (bias if case.bias else 0)
    y = y + (inputs[1] if case.residual else 0)
    functions = {
        "": lambda y: y,
        "LEAKY_RELU": lambda y: np.where(y > 0, y, np.float32(0.2) * y),
        "RELU": lambda y: np.maximum(y, 0),
        "RELU6": lambda y: np.clip(y, 0, 6),
    }
    return functions[case.activation](y)

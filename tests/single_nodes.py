"""Models of one node, in one expression each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.model_maker import ModelMaker, Quantization

I8, U8, I16, I32, I64 = np.int8, np.uint8, np.int16, np.int32, np.int64
F32, BOOL = np.float32, np.bool_
Q = Quantization(0.1, 0)
Build = Callable[[ModelMaker], Any]


def ints(*values: int) -> Any:
    """A constant of int32."""
    return np.array(values, I32)


def node(
    name: str,
    *inputs: Any,
    to: Any = (2, 4),
    dtype: Any = None,
    q: Any = None,
    **options: Any,
) -> Build:
    """A model of one node.

    Inputs are arrays (constants), or (shape, type) or (shape, type, quantisation) of what is given.
    """

    def build(m: ModelMaker) -> Any:
        ids = []
        for i, given in enumerate(inputs):
            if isinstance(given, np.ndarray):
                ids.append(m.constant(given))
            elif given is None:
                ids.append(None)
            else:
                shape, type_, *scale = given
                ids.append(m.input(f"x{i}", shape, type_, quantization=scale[0] if scale else None))
        return m.op(name, ids, to, dtype=dtype, quantization=q, **options)

    return build


def custom(name: str, options: bytes, *inputs: Any, outputs: int = 1, dtype: Any = F32) -> Build:
    """A model of one node of a custom operation."""

    def build(m: ModelMaker) -> Any:
        ids = [m.input(f"x{i}", shape, type_) for i, (shape, type_) in enumerate(inputs)]
        shapes = [(1, 2, 2, 2)] * outputs
        return m.custom(name, ids, shapes if outputs > 1 else shapes[0], options, dtype=dtype)

    return build

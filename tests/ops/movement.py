"""Checks of the operations that move elements without arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.model_maker import ModelMaker
from tests.ops.harness import check

Array = Any
Add = Callable[[ModelMaker, int], "int | tuple[int, ...]"]  # adds the op to an input: its outputs
Move = Callable[[Array], "Array | Sequence[Array]"]  # the reference

# Every element size; a kernel that is right for these is right for all.
TYPES = [np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_]


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: Any = np.float32) -> Array:
    """Numbers that differ from each other, where the type allows; of the full range."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def _listed(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def check_moves(
    add: Add,
    move: Move,
    value: Array,
    *,
    device: str,
    precision: str = "fp32",
    reference: bool = True,
    **options: Any,
) -> None:
    """One op on one input; in fp16 its tensors are half on both sides."""
    m = ModelMaker()
    m.output(*_listed(add(m, m.input("x", value.shape, value.dtype))))
    check(
        m.build(),
        [value],
        [np.asarray(want) for want in _listed(move(value))],
        device=device,
        precision=precision,
        reference=reference,
        half_io=precision == "fp16",
        **options,
    )


def check_converts(add: Add, move: Move, value: Array, *, device: str) -> None:
    """The op from float to half, and from half to float.

    In fp16 the inputs and outputs of a model are float and all that lies between them is half.
    """
    m = ModelMaker()
    x = m.input("x", value.shape)
    narrowing = _listed(add(m, x))
    m.output(*[m.op("NEG", [y], m.shape(y)) for y in narrowing])
    m.output(*_listed(add(m, m.op("NEG", [x], value.shape))))
    wanted = [-np.asarray(want, np.float64) for want in _listed(move(value))]
    check(m.build(), [value], wanted + wanted, device=device, precision="fp16")

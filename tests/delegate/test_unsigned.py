"""uint16 and uint32 tensors: what the reference kernels compute with them, and moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check

TYPES = [np.uint16, np.uint32]
pytest.importorskip("ai_edge_litert", reason="tflite_runtime moves few unsigned numbers")

Array = Any


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:
    """Of the whole range, the ends included."""
    x = rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    x.flat[:4] = [0, 1, np.iinfo(dtype).max, np.iinfo(dtype).max // 2 + 1]
    return x


FUNCTIONS = {
    "BITWISE_XOR": np.bitwise_xor,
    "STABLEHLO_ADD": np.add,
    "STABLEHLO_MULTIPLY": np.multiply,
    "STABLEHLO_MAXIMUM": np.maximum,
    "STABLEHLO_MINIMUM": np.minimum,
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_two_tensors(device, rng, name, dtype):
    x, y = (numbers(rng, (5, 12), dtype) for _ in range(2))
    m = ModelMaker()
    m.output(m.op(name, [m.input("x", x.shape, dtype), m.input("y", y.shape, dtype)], x.shape))
    check(m.build(), [x, y], [FUNCTIONS[name](x, y)], device=device, precision="fp32")


@pytest.mark.parametrize("shape", [(5, 12), (12,), (5, 1)], ids=str)
def test_products_wrap(device, rng, shape):
    x, y = numbers(rng, (5, 12), np.uint32), numbers(rng, shape, np.uint32)
    m = ModelMaker()
    inputs = [m.input("x", x.shape, np.uint32), m.input("y", shape, np.uint32)]
    m.output(m.op("MUL", inputs, x.shape))
    check(m.build(), [x, y], [x * y], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 12), (12,)], ids=str)
def test_shifts_do_not_copy_the_upper_bit(device, rng, dtype, shape):
    x = numbers(rng, (5, 12), dtype)
    width = np.iinfo(dtype).bits
    y = rng.integers(0, width + 3, shape).astype(dtype)
    y.flat[:2] = [np.iinfo(dtype).max, width]
    m = ModelMaker()
    inputs = [m.input("x", x.shape, dtype), m.input("y", shape, dtype)]
    m.output(m.op("RIGHT_SHIFT", inputs, x.shape))
    want = x >> np.minimum(y, width - 1).astype(dtype)
    check(m.build(), [x, y], [want], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_are_moved(device, rng, dtype):
    """By operations whose reference kernels take both types."""
    x = numbers(rng, (4, 6), dtype)
    m = ModelMaker()
    src = m.input("x", x.shape, dtype)

    def ints(*values: int) -> int:
        return m.constant(np.int32(values))

    m.output(
        m.op("SLICE", [src, ints(1, 2), ints(2, 3)], (2, 3)),
        m.op("TRANSPOSE", [src, ints(1, 0)], (6, 4)),
        m.op("RESHAPE", [src, ints(2, 12)], (2, 12), new_shape=[2, 12]),
        m.op("TILE", [src, ints(2, 1)], (8, 6)),
        m.op("BROADCAST_TO", [src, ints(2, 4, 6)], (2, 4, 6), version=2),
        m.op("MIRROR_PAD", [src, m.constant(np.int32([[1, 0], [0, 2]]))], (5, 8), mode="REFLECT"),
        m.op("EMBEDDING_LOOKUP", [ints(3, 1), src], (2, 6), dtype=dtype),
        m.op("SELECT_V2", [m.constant(x % 3 == 0), src, m.constant(x[::-1])], x.shape, dtype=dtype),
    )
    expected = [
        x[1:3, 2:5], x.T, x.reshape(2, 12), np.tile(x, (2, 1)), np.broadcast_to(x, (2, 4, 6)),
        np.pad(x, ((1, 0), (0, 2)), mode="reflect"), x[[3, 1]], np.where(x % 3 == 0, x, x[::-1]),
    ]  # fmt: skip
    check(m.build(), [x], expected, device=device, precision="fp32")


@pytest.mark.parametrize("dtype", TYPES)
def test_elements_are_moved_as_without_a_reference(device, rng, dtype):
    """By operations whose reference kernels lack at least one of the types."""
    x = numbers(rng, (4, 6), dtype)
    m = ModelMaker()
    src = m.input("x", x.shape, dtype)
    m.output(
        m.op("CONCATENATION", [src, src], (8, 6), axis=0),
        m.op("GATHER", [src, m.constant(np.int32([3, 0]))], (2, 6), axis=0),
        m.op("PAD", [src, m.constant(np.int32([[1, 0], [0, 2]]))], (5, 8)),
        m.op("REVERSE_V2", [src, m.constant(np.int32([1]))], (4, 6)),
        m.op("PACK", [src, src], (2, 4, 6), values_count=2, axis=0),
    )
    expected = [
        np.concatenate([x, x]), x[[3, 0]], np.pad(x, ((1, 0), (0, 2))), x[:, ::-1], np.stack([x, x])
    ]  # fmt: skip
    check(m.build(), [x], expected, device=device, precision="fp32", reference=False)

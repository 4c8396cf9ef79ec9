"""BITWISE_XOR, RIGHT_SHIFT, STABLEHLO_SHIFT_LEFT and STABLEHLO_AND."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, op_runtime
from tests.runtimes import run_reference

TYPES = [np.int32, np.int16, np.int8, np.uint8]
SHAPES = [((1,), (1,)), ((3, 5), (3, 5)), ((2, 3, 7), (7,)), ((2, 1, 5), (3, 1)), ((9,), (1,))]


def shift(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x >> np.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(x.dtype)


def models(name, dtype):
    m = ModelMaker()
    for i, (a, b) in enumerate(SHAPES):
        x, y = m.input(f"a{i}", a, dtype), m.input(f"b{i}", b, dtype)
        m.output(m.op(name, [x, y], np.broadcast_shapes(a, b), dtype=dtype))
    return m.build()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["BITWISE_XOR", "RIGHT_SHIFT"])
def test_integers(device, rng, name, dtype):
    limits = np.iinfo(dtype)
    inputs = []
    for a, b in SHAPES:
        inputs.append(rng.integers(limits.min, limits.max, a, dtype, endpoint=True))
        low, high = (limits.min, limits.max) if name == "BITWISE_XOR" else (limits.min // 16, 40)
        inputs.append(rng.integers(low, high, b, dtype, endpoint=True))
    pairs = list(zip(inputs[::2], inputs[1::2]))
    want = [a ^ b if name == "BITWISE_XOR" else shift(a, b) for a, b in pairs]
    check(models(name, dtype), inputs, want, device=device, precision="fp32")


@pytest.mark.parametrize("dtype", [np.int32, np.int16, np.int8])
def test_shifts_to_the_left(device, rng, dtype):
    bits = np.iinfo(dtype).bits
    x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 5, 7), dtype, endpoint=True)
    y = rng.integers(0, bits, x.shape, dtype)
    m = ModelMaker()
    operands = [m.input("x", x.shape, dtype), m.input("y", x.shape, dtype)]
    m.output(m.op("STABLEHLO_SHIFT_LEFT", operands, x.shape, dtype=dtype))
    options = {"device": device, "precision": "fp32", "reference": False}
    check(m.build(), [x, y], [x << y], **options)
    (stock,) = run_reference(m.build(), [x, y], op_runtime(), "builtin")
    np.testing.assert_array_equal(stock, x << y)
    # There the stock kernels do what the processor does.
    beyond = np.where(y % 2 == 0, -1, bits).astype(dtype)
    check(m.build(), [x, beyond], [np.zeros_like(x)], **options)


@pytest.mark.parametrize("dtype", [*TYPES, np.int64, bool])
def test_and(device, rng, dtype):
    m = ModelMaker()
    shape = (3, 5, 7)
    inputs = [rng.integers(0, 2**62, shape).astype(dtype) for _ in range(2)]
    if dtype is bool:
        inputs = [rng.random(shape) < 0.5 for _ in range(2)]
    operands = [m.input(name, shape, dtype) for name in "ab"]
    m.output(m.op("STABLEHLO_AND", operands, shape, dtype=dtype))
    options = {"device": device, "precision": "fp32", "reference": False}
    check(m.build(), inputs, [inputs[0] & inputs[1]], **options)
    if op_runtime() == "ai_edge_litert":  # the resolver of reference kernels lacks it
        (stock,) = run_reference(m.build(), inputs, op_runtime(), "builtin")
        np.testing.assert_array_equal(stock, inputs[0] & inputs[1])


def test_types_are_refused():
    for types, why in (
        ((np.float32, np.float32), "input 0 is float32; supported: int32, int16, int8, uint8"),
        ((np.int32, np.int16), "the inputs have different types"),
    ):
        m = ModelMaker()
        inputs = [m.input(f"x{i}", (3,), dtype) for i, dtype in enumerate(types)]
        m.output(m.op("BITWISE_XOR", inputs, (3,), dtype=types[0]))
        check_refused(m.build(), why)


@pytest.mark.parametrize(
    ("name", "dtype", "reason"),
    [
        ("STABLEHLO_AND", np.float32, "input 0 is float32; supported: int64, int32, int16, int8"),
        ("STABLEHLO_SHIFT_LEFT", np.uint8, "input 0 is uint8; supported: int32, int16, int8"),
    ],
)
def test_types_of_stablehlo_are_refused(name, dtype, reason):
    m = ModelMaker()
    m.output(m.op(name, [m.input(i, (3,), dtype) for i in "ab"], (3,), dtype=dtype))
    check_refused(m.build(), reason)

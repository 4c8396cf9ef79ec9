"""DEQUANTIZE to float."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact

CASES = [  # input type, scale, zero point
    (np.int8, 0.3, 3),
    (np.uint8, 0.5, 128),
    (np.int16, 0.001, 0),
]


def dequantize_model(shape: tuple, dtype, scale: float, zero_point: int) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, dtype, quantization=(scale, zero_point))
    y = m.op("DEQUANTIZE", [x], shape, dtype=np.float32)
    m.output(m.op("NEG", [y], shape))  # fp16 stores y in half
    return m.build()


@pytest.mark.parametrize(("dtype", "scale", "zero_point"), CASES)
def test_integers_are_scaled(device, precision, rng, dtype, scale, zero_point):
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, (3, 17), dtype, endpoint=True)
    expected = -np.float64(np.float32(scale)) * (x.astype(np.float64) - zero_point)
    data = dequantize_model(x.shape, dtype, scale, zero_point)
    check(data, [x], [expected], device=device, precision=precision)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (1200,)], ids=str)
def test_float16_constant_is_widened(device, precision, rng, shape):
    x = rng.standard_normal(shape).astype(np.float16)
    y = half_exact(rng.standard_normal(shape).astype(np.float32))
    m = ModelMaker()
    wide = m.op("DEQUANTIZE", [m.constant(x)], shape, dtype=np.float32)
    m.output(m.op("ADD", [m.input("y", shape), wide], shape))
    check(m.build(), [y], [x.astype(np.float64) + y], device=device, precision=precision)


def test_int8_constant_is_scaled_once_and_for_all(device, precision, rng):
    x = rng.integers(-128, 128, (3, 5)).astype(np.int8)
    y = half_exact(rng.standard_normal((3, 5)).astype(np.float32))
    m = ModelMaker()
    wide = m.op("DEQUANTIZE", [m.constant(x, quantization=(0.5, -3))], (3, 5), dtype=np.float32)
    m.output(m.op("MUL", [m.input("y", (3, 5)), wide], (3, 5)))
    check(m.build(), [y], [y * (0.5 * (x + 3.0))], device=device, precision=precision)


@hypothesis.given(scale=st.floats(2**-10, 2, width=32), zero_point=st.integers(-128, 127))
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_scale(device, scale, zero_point):
    x = np.arange(-128, 128).astype(np.int8)
    data = dequantize_model(x.shape, np.int8, scale, zero_point)
    expected = -np.float64(scale) * (x.astype(np.float64) - zero_point)
    check(data, [x], [expected], device=device, precision="fp32")


def test_missing_scale_is_refused():
    m = ModelMaker()
    m.output(m.op("DEQUANTIZE", [m.input("x", (4,), np.int8)], (4,), dtype=np.float32))
    check_refused(m.build(), "input has no scale")


def test_other_types_are_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.int32, quantization=(0.5, 0))
    m.output(m.op("DEQUANTIZE", [x], (4,), dtype=np.float32))
    check_refused(m.build(), "input is int32; supported: float16, bfloat16, int8, uint8, int16")

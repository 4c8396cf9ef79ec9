"""QUANTIZE from float."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused

CASES = [  # output type, scale, zero point
    (np.int8, 0.25, 3),
    (np.uint8, 0.5, 128),
    (np.int16, 0.125, 0),
    (np.int8, 0.1, -7),
]


def quantize_model(shape: tuple, dtype, scale: float, zero_point: int) -> bytes:
    m = ModelMaker()
    y = m.op(
        "QUANTIZE", [m.input("x", shape)], shape, dtype=dtype, quantization=(scale, zero_point)
    )
    m.output(y)
    return m.build()


def quantize(x: np.ndarray, dtype, scale: float, zero_point: int) -> np.ndarray:
    quotient = x / np.float32(scale)
    steps = np.trunc(quotient + np.copysign(0.5, quotient)) + zero_point
    return np.clip(steps, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize(("dtype", "scale", "zero_point"), CASES)
def test_halves_go_away_from_zero_and_ends_are_clamped(device, dtype, scale, zero_point):
    x = np.float32(scale) * np.float32([-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 1.3, 7, -100.7])
    x = np.append(x, np.float32([1e6, -1e6]))
    data = quantize_model(x.shape, dtype, scale, zero_point)
    check(data, [x], [quantize(x, dtype, scale, zero_point)], device=device, precision="fp32")


def test_half_storage_is_quantized(device, precision):
    x = np.float32([-1.5, 0.25, 3])
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", x.shape)], x.shape)
    m.output(m.op("QUANTIZE", [h], x.shape, dtype=np.int8, quantization=(0.25, 1)))
    expected = quantize(-x, np.int8, 0.25, 1)
    check(m.build(), [x], [expected], device=device, precision=precision)


@hypothesis.given(scale=st.floats(2**-6, 2, width=32), zero_point=st.integers(-128, 127))
@hypothesis.settings(max_examples=4 * EXAMPLES)
def test_any_scale(device, rng, scale, zero_point):
    x = (50 * rng.standard_normal((7, 11))).astype(np.float32)
    data = quantize_model(x.shape, np.int8, scale, zero_point)
    check(data, [x], None, device=device, precision="fp32")


def test_missing_scale_is_refused():
    m = ModelMaker()
    m.output(m.op("QUANTIZE", [m.input("x", (4,))], (4,), dtype=np.int8))
    check_refused(m.build(), "output has no scale")


def test_other_types_are_refused():
    m = ModelMaker()
    m.output(m.op("QUANTIZE", [m.input("x", (4,))], (4,), dtype=np.int32, quantization=(0.5, 0)))
    check_refused(m.build(), "output is int32; supported: int8, uint8, int16")

"""QUANTIZE of floats and of integers equals the reference kernels."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check_refused
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    ZERO_POINTS,
    check_exact,
    random_integers,
    random_quantization,
)

PAIRS = [
    *[(src, dst) for src in (np.int8, np.uint8) for dst in ACTIVATION_TYPES],
    *[(np.int16, dst) for dst in (np.int8, np.int16, np.int32)],
    *[(np.int32, dst) for dst in (np.int8, np.int16)],
]


def build(shape, src, dst, scales) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, src, quantization=scales[0])
    m.output(m.op("QUANTIZE", [x], shape, dtype=dst, quantization=scales[1]))
    return m.build()


def any_quantization(rng, dtype, scale=(0.005, 0.1)) -> Quantization:
    if dtype in ZERO_POINTS:
        return random_quantization(rng, dtype, scale)
    return Quantization(random_quantization(rng, np.int16, scale).scales, int(rng.integers(-9, 9)))


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_rescaled_integers_equal_the_reference(src, dst, device, rng):
    scales = any_quantization(rng, src), any_quantization(rng, dst)
    values = random_integers(rng, (7, 13), src)
    if src == np.int32:
        values >>= 8
    check_exact(build(values.shape, src, dst, scales), [values], device=device)


@pytest.mark.parametrize(
    ("src", "dst", "zero_points"),
    [
        (np.int16, np.int32, (-32768, 7)),
        (np.int16, np.int8, (32767, -128)),
        (np.int8, np.int16, (-3, -32768)),
        (np.int32, np.int16, (5, 1234)),
        (np.float32, np.int16, (None, -32768)),
    ],
)
def test_zero_points_of_int16_equal_the_reference(src, dst, zero_points, device, rng):
    scales = [None if zero is None else Quantization(0.001, zero) for zero in zero_points]
    if dst == np.int8:
        scales[1] = Quantization(0.3, zero_points[1])
    values = 20 * rng.standard_normal((7, 13))
    if src != np.float32:
        values = random_integers(rng, (7, 13), src) >> (14 if src == np.int32 else 0)
    content = build(values.shape, src, dst, scales)
    check_exact(content, [values.astype(src)], device=device)


@pytest.mark.parametrize("zero_points", [(5, 0), (0, 5)])
def test_int16_that_becomes_int16_has_no_zero_points(zero_points):
    scales = [Quantization(0.5, zero) for zero in zero_points]
    reason = "int16 that becomes int16 has the scale 0.500000 and the zero point 5; supported: any"
    check_refused(build((4,), np.int16, np.int16, scales), reason)


@hypothesis.given(ratio=st.floats(-5, 3))
@hypothesis.settings(max_examples=EXAMPLES)
def test_scales_far_from_each_other(device, ratio):
    values = np.arange(-128, 128).astype(np.int8)
    scales = Quantization(0.05 * 10**ratio, -7), Quantization(0.05, 3)
    check_exact(build((256,), np.int8, np.int8, scales), [values], device=device)


@pytest.mark.parametrize("dst", ACTIVATION_TYPES)
def test_floats_equal_the_reference(dst, device, rng):
    x = (4 * rng.standard_normal((7, 13))).astype(np.float32)
    scales = None, random_quantization(rng, dst)
    check_exact(build(x.shape, np.float32, dst, scales), [x], device=device)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_floats_have_a_scale_for_each_channel(axis, device, rng):
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    size = x.shape[axis]
    scales = [float(s) for s in rng.uniform(0.005, 0.05, size).astype(np.float32)]
    q = Quantization(scales, [int(z) for z in rng.integers(-20, 20, size)], axis)
    check_exact(build(x.shape, np.float32, np.int8, (None, q)), [x], device=device)


def test_pairs_without_reference_kernels_are_refused():
    q = Quantization(0.5)
    check_refused(
        build((4,), np.int16, np.uint8, (q, q)), "output is uint8; supported: int8, int16"
    )
    check_refused(
        build((4,), np.int64, np.int8, (q, q)), "input is int64; supported: float32, int8"
    )

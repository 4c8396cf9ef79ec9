"""Comparisons of quantised integers equal the reference kernels."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check_refused
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    check_exact,
    random_integers,
    random_quantization,
)

NAMES = ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]


def build(a, b, dtype, scales) -> bytes:
    m = ModelMaker()
    x = m.input("x", a, dtype, quantization=scales[0])
    y = m.input("y", b, dtype, quantization=scales[1])
    shape = np.broadcast_shapes(a, b)
    m.output(*(m.op(name, [x, y], shape, dtype=bool) for name in NAMES))
    return m.build()


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("same", [True, False])
def test_all_comparisons_equal_the_reference(same, dtype, device, rng):
    a = random_quantization(rng, dtype)
    b = a if same else random_quantization(rng, dtype)
    x, y = random_integers(rng, (41, 13), dtype), random_integers(rng, (13,), dtype)
    x[7] = y
    check_exact(build(x.shape, y.shape, dtype, (a, b)), [x, y], device=device)


@hypothesis.given(ratio=st.floats(-5, 0), scale=st.floats(-5, -0.01))
@hypothesis.settings(max_examples=EXAMPLES)
def test_scales_far_from_each_other(device, rng, ratio, scale):
    scales = Quantization(10**scale, 3), Quantization(10 ** (scale + ratio), -5)
    x, y = (random_integers(rng, (200,), np.int8) for _ in range(2))
    check_exact(build(x.shape, y.shape, np.int8, scales), [x, y], device=device)


def test_scales_of_one_and_more_are_refused():
    scales = Quantization(1.0), Quantization(0.5)
    check_refused(
        build((4,), (4,), np.int8, scales), "input 0 has the scale 1.000000; supported: below 1"
    )

"""SOFTMAX of quantised integers equals the reference kernels."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check, check_refused
from tests.quantized.parameters import check_exact, random_integers, random_quantization

UNIT = {
    np.int8: Quantization(1 / 256, -128),
    np.uint8: Quantization(1 / 256),
    np.int16: Quantization(1 / 32768),
}
PAIRS = [
    (np.int8, np.int8),
    (np.uint8, np.uint8),
    (np.int8, np.int16),
    (np.uint8, np.int16),
    (np.int16, np.int16),
]
SHAPES = [(1, 1), (3, 7), (2, 3, 65), (1, 300)]


def build(shape, src, dst, q, out=None, *, beta=1.0) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, src, quantization=q)
    m.output(m.op("SOFTMAX", [x], shape, dtype=dst, quantization=out or UNIT[dst], beta=beta))
    return m.build()


@pytest.mark.parametrize(("src", "dst"), PAIRS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_equal_the_reference(shape, src, dst, device, rng):
    scale = (1e-4, 1e-3) if src == np.int16 else (0.05, 0.2)
    q = random_quantization(rng, src, scale)
    model = build(shape, src, dst, q)
    check_exact(model, [random_integers(rng, shape, src)], device=device)


@pytest.mark.parametrize("src", [np.int8, np.uint8])
def test_results_of_int16_may_have_a_zero_point(src, device, rng):
    """Their values are those without one: converters write what the arithmetic implies."""
    q = random_quantization(rng, src, (0.05, 0.2))
    model = build((3, 7), src, np.int16, q, Quantization(1 / 65536, -32768))
    check_exact(model, [random_integers(rng, (3, 7), src)], device=device)


def test_inputs_of_int16_have_no_zero_point():
    model = build((3, 7), np.int16, np.int16, Quantization(0.5, 5))
    check_refused(model, "input has the scale 0.500000 and the zero point 5; supported: any and 0")


@pytest.mark.parametrize("cols", [511, 512, 520, 1030, 4095, 4096, 9000])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_long_rows_of_equal_inputs(cols, dtype, device):
    """Reference kernels abort where the exponentials sum up to 512, and overflow at 4096."""
    x = np.full((2, cols), 31, dtype)
    share = 1 if cols < 512 else 0  # 256 / cols, and half a step counts as none
    expected = [np.full(x.shape, UNIT[dtype].zero_points + share, dtype)]
    model = build(x.shape, dtype, dtype, Quantization(0.01))
    check(model, [x], expected, device=device, precision="fp32", reference=False)


@hypothesis.given(
    scale=st.floats(-6, 1), beta=st.floats(0.25, 4, width=32), pair=st.sampled_from(PAIRS)
)
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_scale(device, rng, scale, beta, pair):
    q = Quantization(10**scale * (0.01 if pair[0] == np.int16 else 1))
    model = build((4, 40), *pair, q, beta=beta)
    check_exact(model, [random_integers(rng, (4, 40), pair[0])], device=device)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_largest_difference_of_two_bytes(dtype, device):
    """Such a small scale that the least number still has a share of the sum."""
    ends = np.iinfo(dtype)
    x = np.array([[ends.min, ends.max], [ends.max, ends.min + 1]], dtype)
    check_exact(build(x.shape, dtype, dtype, Quantization(0.005)), [x], device=device)


def test_other_output_scales_are_refused():
    model = build((4, 4), np.int8, np.int8, Quantization(0.1), Quantization(0.5, -128))
    check_refused(
        model, "output has the scale 0.500000 and the zero point -128; supported: 1/256 and -128"
    )


def logarithm(shape, q) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, np.int8, quantization=q)
    m.output(m.op("LOG_SOFTMAX", [x], shape, quantization=Quantization(1 / 16, 127)))
    return m.build()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_logarithm_equals_the_reference(shape, device, rng):
    model = logarithm(shape, random_quantization(rng, np.int8, (0.05, 0.2)))
    check_exact(model, [random_integers(rng, shape, np.int8)], device=device)


@hypothesis.given(scale=st.floats(-5, 0.7))
@hypothesis.settings(max_examples=EXAMPLES)
def test_logarithm_of_any_scale(device, rng, scale):
    model = logarithm((4, 40), Quantization(10**scale))
    check_exact(model, [random_integers(rng, (4, 40), np.int8)], device=device)


def test_logarithm_of_other_types_is_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.uint8, quantization=Quantization(0.1))
    m.output(m.op("LOG_SOFTMAX", [x], (4,), quantization=Quantization(1 / 16, 255)))
    check_refused(m.build(), "input is uint8; supported: float32, int8")

"""DEPTHWISE_CONV_2D of quantised integers equals the reference kernels."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.convolutions import GEOMETRIES
from tests.ops.harness import EXAMPLES
from tests.ops.test_depthwise_conv2d import CASES as FLOAT_CASES
from tests.ops.test_depthwise_conv2d import Case
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)

CASES = {**FLOAT_CASES, "blocks": Case((1, 5, 9, 16), (3, 2))}
# Types share all that geometry is about; the stock kernels demand a bias.
BRANCHES = {
    np.int8: [
        "odd",
        "four_channels_strided",
        "blocks",
        "filter_higher_than_image",
        "strided_columns",
        "multiplied_by_a_vector",
    ],
    np.uint8: ["blocks", "strided_columns"],
    np.int16: ["odd", "strided_columns"],
}
COMMON = GEOMETRIES.keys() - set(BRANCHES[np.int8])
NAMES = {**BRANCHES, np.int8: [*BRANCHES[np.int8], *sorted(COMMON)]}


def build(rng: np.random.Generator, case: Case, dtype: type, *, per_channel: bool) -> bytes:
    m = ModelMaker()
    src = random_quantization(rng, dtype)
    weights_type = np.uint8 if dtype == np.uint8 else np.int8
    channels = case.weights[3]
    weights = weights_quantization(rng, weights_type, channels, 3, per_channel)
    x = m.input("x", case.image, dtype, quantization=src)
    w = m.constant(random_integers(rng, case.weights, weights_type), quantization=weights)
    bias = add_bias(m, rng, dtype, src, weights, channels)
    dst = output_quantization(rng, dtype, src, weights, int(np.prod(case.filter)))
    m.output(m.op("DEPTHWISE_CONV_2D", [x, w, bias], case.output, quantization=dst, **case.options))
    return m.build()


@pytest.mark.parametrize(("dtype", "name"), [(t, name) for t in NAMES for name in NAMES[t]])
def test_depthwise_convolution_equals_the_reference(name, dtype, device, rng):
    case = CASES[name]
    model = build(rng, case, dtype, per_channel=dtype != np.uint8)
    engines = {"depthwise_conv2d": "auto"} if name in COMMON else {}
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device, engines=engines)


def test_weights_of_int4_equal_the_reference(device, rng):
    case = CASES["odd"]
    m = ModelMaker()
    src = random_quantization(rng, np.int8)
    channels = case.weights[3]
    weights = weights_quantization(rng, np.int8, channels, 3, per_channel=True)
    w = m.int4_constant(rng.integers(-7, 8, case.weights).astype(np.int8), weights)
    bias = add_bias(m, rng, np.int8, src, weights, channels)
    dst = output_quantization(rng, np.int8, src, weights, int(np.prod(case.filter)))
    dst = dst._replace(scales=dst.scales / 16)
    x = m.input("x", case.image, np.int8, quantization=src)
    m.output(m.op("DEPTHWISE_CONV_2D", [x, w, bias], case.output, quantization=dst, **case.options))
    check_exact(m.build(), [random_integers(rng, case.image, np.int8)], device=device)


@pytest.mark.parametrize("exponents", [(-18, -1), (-40, 3)], ids=str)
def test_factors_and_biases_of_any_size(exponents, device, rng):
    """Factors from 2^-19 to 1/2 take fewer steps; others saturate, or leave next to nothing."""
    case = Case((1, 5, 30, 16), (3, 3))
    m = ModelMaker()
    x = m.input("x", case.image, np.int8, quantization=Quantization(1.0, -5))
    scales = np.ldexp(rng.uniform(0.5, 1, 16), rng.integers(exponents[0], exponents[1] + 1, 16))
    scales[:2] = np.ldexp([0.5, 0.999], exponents)
    w = m.constant(
        random_integers(rng, case.weights, np.int8),
        quantization=Quantization([float(s) for s in scales.astype(np.float32)], 0, 3),
    )
    bias = np.trunc(rng.uniform(-200, 200, 16) / scales).clip(-(2**31) + 2**23, 2**31 - 2**23)
    inputs = [x, w, m.constant(bias.astype(np.int32))]
    dst = Quantization(1.0, 7)
    m.output(m.op("DEPTHWISE_CONV_2D", inputs, case.output, quantization=dst, **case.options))
    check_exact(m.build(), [random_integers(rng, case.image, np.int8)], device=device)


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_depthwise_convolution_of_any_geometry(draw, device, rng):
    steps = st.integers(1, 3)
    filter_size = draw.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    dilation = draw.draw(st.tuples(steps, steps))
    size = [(n - 1) * d + draw.draw(st.integers(1, 6)) for n, d in zip(filter_size, dilation)]
    case = Case(
        (draw.draw(st.integers(1, 2)), *size, draw.draw(st.integers(1, 17))),
        filter_size,
        draw.draw(steps),
        draw.draw(st.tuples(steps, steps)),
        dilation,
        draw.draw(st.sampled_from(["SAME", "VALID"])),
        draw.draw(st.sampled_from(["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])),
    )
    dtype = draw.draw(st.sampled_from(ACTIVATION_TYPES))
    model = build(rng, case, dtype, per_channel=dtype != np.uint8 and draw.draw(st.booleans()))
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device)

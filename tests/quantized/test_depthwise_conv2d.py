"""DEPTHWISE_CONV_2D of quantised integers equals the reference kernels."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES
from tests.ops.test_depthwise_conv2d import CASES, Case
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)

# The stock kernels demand a bias.
NAMES = [name for name, case in CASES.items() if case.bias]


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


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_depthwise_convolution_equals_the_reference(name, dtype, device, rng):
    case = CASES[name]
    model = build(rng, case, dtype, per_channel=dtype != np.uint8)
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device)


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_depthwise_convolution_of_any_geometry(draw, device, rng):
    steps = st.integers(1, 3)
    filter_size = draw.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
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

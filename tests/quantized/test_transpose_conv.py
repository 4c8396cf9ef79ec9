"""TRANSPOSE_CONV of quantised integers equals the reference kernels."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES
from tests.ops.test_transpose_conv import CASES, COMMON, Case
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    typed,
    weights_quantization,
)


def build(rng: np.random.Generator, case: Case, dtype: type, *, per_channel: bool) -> bytes:
    m = ModelMaker()
    src = random_quantization(rng, dtype)
    weights_type = np.uint8 if dtype == np.uint8 else np.int8
    channels = case.weights[0]
    weights = weights_quantization(rng, weights_type, channels, 0, per_channel)
    inputs = [
        m.constant(np.array(case.output, np.int32)),
        m.constant(random_integers(rng, case.weights, weights_type), quantization=weights),
        m.input("x", case.image, dtype, quantization=src),
    ]
    if case.bias:
        inputs.append(add_bias(m, rng, dtype, src, weights, channels))
    depth = max(1, case.depth // np.prod(case.stride))
    dst = output_quantization(rng, dtype, src, weights, depth)
    m.output(m.op("TRANSPOSE_CONV", inputs, case.output, quantization=dst, **case.options))
    return m.build()


@pytest.mark.parametrize(("dtype", "name"), typed(CASES, CASES.keys() - COMMON))
def test_transposed_convolution_equals_the_reference(name, dtype, device, rng):
    case = CASES[name]
    model = build(rng, case, dtype, per_channel=dtype != np.uint8)
    engines = {"transpose_conv": "auto"} if name in COMMON else {}
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device, engines=engines)


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_transposed_convolution_of_any_geometry(draw, device, rng):
    small, steps = st.integers(1, 6), st.integers(1, 3)
    depth = draw.draw(st.integers(1, 9))
    case = Case(
        (draw.draw(st.integers(1, 2)), draw.draw(small), draw.draw(small), depth),
        (draw.draw(st.integers(1, 19)), draw.draw(steps), draw.draw(small), depth),
        draw.draw(st.tuples(steps, steps)),
        draw.draw(st.sampled_from(["SAME", "VALID"])),
        draw.draw(st.sampled_from(["NONE", "RELU", "RELU6"])),
        draw.draw(st.booleans()),
    )
    dtype = draw.draw(st.sampled_from(ACTIVATION_TYPES))
    model = build(rng, case, dtype, per_channel=dtype != np.uint8 and draw.draw(st.booleans()))
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device)

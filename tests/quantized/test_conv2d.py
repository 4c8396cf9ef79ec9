"""CONV_2D of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.test_conv2d import CASES, Case
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)

# Geometry that integer kernels have branches for; the rest is that of the float kernels.
NAMES = [
    "one_element",
    "three_channels",
    "pointwise",
    "pointwise_strided",
    "valid",
    "dilated",
    "tile_edges",
    "deep_groups",
    "few_pixels_great_depth",
    "dilated_chunks",
    "two_panels_of_outputs",
]


def build(rng: np.random.Generator, case: Case, dtype: type, *, per_channel: bool) -> bytes:
    m = ModelMaker()
    src = random_quantization(rng, dtype)
    weights_type = np.uint8 if dtype == np.uint8 else np.int8
    channels = case.weights[0]
    weights = weights_quantization(rng, weights_type, channels, 0, per_channel)
    x = m.input("x", case.image, dtype, quantization=src)
    values = random_integers(rng, case.weights, weights_type)
    if weights_type == np.int8:
        values = np.maximum(values, -127)
    w = m.constant(values, quantization=weights)
    bias = add_bias(m, rng, dtype, src, weights, channels)  # the stock kernels demand one
    dst = output_quantization(rng, dtype, src, weights, case.depth)
    m.output(m.op("CONV_2D", [x, w, bias], case.output, quantization=dst, **case.options))
    return m.build()


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_convolution_equals_the_reference(name, dtype, device, rng):
    case = CASES[name]
    per_channel = dtype != np.uint8
    model = build(rng, case, dtype, per_channel=per_channel)
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device)

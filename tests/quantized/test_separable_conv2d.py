"""A depthwise convolution of int8 and the following 1x1 convolution as one node."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.test_separable_conv2d import ALWAYS, CHANNELS, PARTS, Case
from tests.quantized.parameters import (
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)

CASES = {
    "doubling": Case.of("doubling", *CHANNELS["doubling"]),
    "strided_columns": Case.of("strided_columns", *CHANNELS["strided_columns"]),
    "edges": Case((2, 5, 7, 36), 40, activations=("RELU6", "RELU")),
    "strided": Case((1, 7, 9, 64), 72, stride=(2, 2)),
    "valid_narrow_filter": Case((1, 5, 6, 132), 16, (3, 2), padding="VALID"),
}


def build(rng: np.random.Generator, case: Case) -> bytes:
    m = ModelMaker()
    c, output = case.image[3], case.output
    quantization = random_quantization(rng, np.int8)
    x = m.input("image", case.image, np.int8, quantization=quantization)
    for op, shape, axis, activation in (
        ("DEPTHWISE_CONV_2D", (1, *case.kernel, c), 3, case.activations[0]),
        ("CONV_2D", (case.filters, 1, 1, c), 0, case.activations[1]),
    ):
        channels = shape[axis]
        weights = weights_quantization(rng, np.int8, channels, axis, per_channel=True)
        values = m.constant(random_integers(rng, shape, np.int8), quantization=weights)
        bias = add_bias(m, rng, np.int8, quantization, weights, channels)
        depth = int(np.prod(shape)) // channels
        dst = output_quantization(rng, np.int8, quantization, weights, depth)
        stride = case.stride if axis == 3 else (1, 1)
        depthwise = {"depth_multiplier": 1} if axis == 3 else {}
        x = m.op(
            op, [x, values, bias], (*output[:3], channels), quantization=dst,
            padding=case.padding, stride_h=stride[0], stride_w=stride[1], version=3,
            fused_activation_function=activation, **depthwise,
        )  # fmt: skip
        quantization = dst
    m.output(x)
    return m.build()


@pytest.mark.parametrize("name", CASES)
def test_separable_convolution_equals_the_reference(name, device, rng):
    case = CASES[name]
    model = build(rng, case)
    image = random_integers(rng, case.image, np.int8)
    # Fused where that pays, then by all of its candidates.
    check_exact(model, [image], device=device, engines=PARTS)
    check_exact(model, [image], device=device, engines={**PARTS, **ALWAYS})

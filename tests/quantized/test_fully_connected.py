"""FULLY_CONNECTED of quantised integers equals the reference kernels of the newer runtime."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check_refused
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)

# Input shape, columns; all of them make one model. Rows of 1, few, and more than a tile; depths of
# less than a vector, and more; the sums of the last are the longest.
CASES = [((1, 3), 5), ((2, 7), 1), ((3, 65), 7), ((9, 20), 4), ((35, 36), 40), ((2, 3, 1, 5), 7)]
ACTIVATIONS = ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"]


def add_product(
    m: ModelMaker,
    rng: np.random.Generator,
    shape: tuple,
    cols: int,
    dtype: type,
    *,
    depth: int | None = None,
    per_channel: bool = False,
    bias: bool = True,
    narrow_bias: bool = False,
    weights_zero: int = 0,
    dst: Quantization | None = None,
    **options,
) -> None:
    """Append an input, its weights and their product as an output."""
    depth = depth or shape[-1]
    weights_type = np.uint8 if dtype == np.uint8 else np.int8
    src = random_quantization(rng, dtype)
    weights = weights_quantization(rng, weights_type, cols, 0, per_channel)
    if weights_zero:
        weights = weights._replace(zero_points=weights_zero)
    operands = [m.input(f"x{shape}", shape, dtype, quantization=src)]
    operands.append(
        m.constant(random_integers(rng, (cols, depth), weights_type), quantization=weights)
    )
    if bias and narrow_bias:
        values = rng.integers(-20000, 20000, cols).astype(np.int32)
        scale = float(np.float32(src.scales) * np.float32(weights.scales))
        operands.append(m.constant(values, quantization=Quantization(scale)))
        options["quantized_bias_type"] = "INT32"
    elif bias:
        operands.append(add_bias(m, rng, dtype, src, weights, cols))
        if dtype == np.int16:
            options["quantized_bias_type"] = "INT64"
    dst = dst or output_quantization(rng, dtype, src, weights, depth)
    result = (
        (*shape[:-1], cols) if options.get("keep_num_dims") else (np.prod(shape) // depth, cols)
    )
    m.output(m.op("FULLY_CONNECTED", operands, result, quantization=dst, **options))


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_products_equal_the_reference(dtype, per_channel, device, rng):
    if dtype == np.uint8 and per_channel:
        pytest.skip("uint8 weights have one scale")
    m = ModelMaker()
    for i, (shape, cols) in enumerate(CASES):
        depth = 15 if len(shape) > 2 else None
        add_product(
            m, rng, shape, cols, dtype, depth=depth, per_channel=per_channel, bias=i % 2 == 0
        )
    inputs = [random_integers(rng, shape, dtype) for shape, _ in CASES]
    check_exact(m.build(), inputs, device=device)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_clamp_and_dimensions_are_kept(activation, device, rng):
    m = ModelMaker()
    dst = Quantization(0.07, -7)
    add_product(
        m,
        rng,
        (2, 3, 9),
        5,
        np.int8,
        dst=dst,
        keep_num_dims=True,
        fused_activation_function=activation,
    )
    check_exact(m.build(), [random_integers(rng, (2, 3, 9), np.int8)], device=device)


def test_int8_weights_may_have_a_zero_point(device, rng):
    m = ModelMaker()
    add_product(m, rng, (3, 33), 5, np.int8, weights_zero=-11)
    check_exact(m.build(), [random_integers(rng, (3, 33), np.int8)], device=device)


def test_bias_of_int16_activations_may_be_int32(device, rng):
    m = ModelMaker()
    add_product(m, rng, (3, 33), 5, np.int16, narrow_bias=True)
    check_exact(m.build(), [random_integers(rng, (3, 33), np.int16)], device=device)


def test_halves_go_away_from_zero(device):
    """Sums that the scales take to halves, or next to them: a product of doubles says which way."""
    sums = np.arange(-127, 128, dtype=np.int8).reshape(-1, 1)
    for scale in (
        0.5,
        float(np.float32(1 / 6)),
        float(np.nextafter(np.float32(0.5), np.float32(0))),
    ):
        m = ModelMaker()
        x = m.input("x", sums.shape, np.int8, quantization=Quantization(scale))
        w = m.constant(np.array([[1], [3]], np.int8), quantization=Quantization(1.0))
        m.output(m.op("FULLY_CONNECTED", [x, w], (255, 2), quantization=Quantization(1.0)))
        check_exact(m.build(), [sums], device=device)


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    rows=st.integers(1, 9),
    depth=st.integers(1, 70),
    cols=st.integers(1, 20),
    dtype=st.sampled_from(ACTIVATION_TYPES),
    seed=st.integers(0, 99),
)
def test_any_size_and_scale(rows, depth, cols, dtype, seed, device):
    rng = np.random.default_rng(seed)
    m = ModelMaker()
    per_channel = dtype != np.uint8 and cols > 1 and bool(rng.integers(2))
    add_product(m, rng, (rows, depth), cols, dtype, per_channel=per_channel)
    check_exact(m.build(), [random_integers(rng, (rows, depth), dtype)], device=device)


def test_what_the_reference_kernels_refuse_stays_on_the_cpu(device, rng):
    def refused(reason, **options):
        m = ModelMaker()
        add_product(m, rng, (2, 8), 4, np.int8, **options)
        check_refused(m.build(), reason, device=device)

    refused("not defined on integers", fused_activation_function="TANH")
    m = ModelMaker()
    x = m.input("x", (2, 8), np.int8, quantization=Quantization(0.1))
    w = m.constant(np.ones((4, 8), np.int8), quantization=Quantization([0.1] * 8, [0] * 8, 1))
    m.output(m.op("FULLY_CONNECTED", [x, w], (2, 4), quantization=Quantization(0.1)))
    check_refused(m.build(), "supported: axis 0, that of the output channels", device=device)

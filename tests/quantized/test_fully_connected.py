"""FULLY_CONNECTED of quantised integers equals the reference kernels of the newer runtime."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from tests.model_maker import Blocks, ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact, op_runtime
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)
from tests.runtimes import make_interpreter, run_interpreter

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


# Weights of int4


def int4_weights(rng, cols, depth, bits=4):
    reach = 2 ** (bits - 1)
    return rng.integers(-reach, reach, (cols, depth)).astype(np.int8)


def int4_quantization(rng, cols, per_channel):
    if not per_channel:
        return Quantization(0.03)
    return Quantization([float(s) for s in rng.uniform(0.01, 0.1, cols).astype(np.float32)], 0, 0)


# Whole vectors of 32, in two rounds of a work-group.
LONG_CASES = [((1, 4128), 5), ((3, 96), 6)]
# Depths that tensor cores take, and more columns than some devices have compute units for.
DEEP_CASES = [((1, 4160), 37), ((2, 128), 2130), ((1, 64), 5), ((5, 192), 20)]


@pytest.mark.parametrize(
    ("cases", "depth"), [(CASES[:5], 65), (LONG_CASES, 4128), (DEEP_CASES, 4160)]
)
@pytest.mark.parametrize(("bits", "per_channel"), [(4, False), (4, True), (2, True)])
def test_floats_times_int4(bits, per_channel, cases, depth, device, precision, rng):
    """In the arithmetic of floats, as int8 weights; stock kernels round the floats to int8."""
    m, inputs, expected = ModelMaker(), [], []
    for i, (shape, cols) in enumerate(cases):
        stored = int4_weights(rng, cols, shape[-1], bits)
        quantization = int4_quantization(rng, cols, per_channel and cols > 1)
        bias = rng.standard_normal(cols).astype(np.float32) if i % 2 == 0 else np.zeros(cols)
        x = m.input(f"x{i}", shape)
        operands = [x, m.int4_constant(stored, quantization, bits=bits)]
        if i % 2 == 0:
            operands.append(m.constant(bias))
        m.output(m.op("FULLY_CONNECTED", operands, (shape[0], cols), version=6))
        inputs.append(half_exact(rng.standard_normal(shape).astype(np.float32)))
        scales = np.asarray(quantization.scales, np.float64).reshape(-1, 1)
        expected.append(inputs[-1].astype(np.float64) @ (stored * scales).T + bias)
    check(
        m.build(), inputs, expected, device=device, precision=precision, accumulation=depth,
        reference=False,
    )  # fmt: skip


@pytest.mark.parametrize("bits", [4, 8])
def test_elements_of_a_row_may_be_of_any_size(bits, device, precision, rng):
    """A kernel may round elements to parts of the largest one of their row."""
    depth, cols = 256, 24
    stored = int4_weights(rng, cols, depth, bits)
    quantization = Quantization(0.03)
    m = ModelMaker()
    x = m.input("x", (2, depth))
    constant = (
        m.int4_constant(stored, quantization) if bits == 4
        else m.constant(stored, quantization=quantization)
    )  # fmt: skip
    m.output(m.op("FULLY_CONNECTED", [x, constant], (2, cols), version=6))
    delegate = clgpu_delegate.load(device=device, precision=precision)
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    weights = (stored * np.float32(0.03)).astype(np.float64)
    rows = rng.standard_normal((2, depth)).astype(np.float32)
    outlier = rows.copy()
    outlier[0, 7], outlier[1, 3] = 4096, -1e-3
    for given in (rows, outlier, 1e-4 * rows, np.stack([0 * rows[0], 64 * rows[1]])):
        values = half_exact(given)
        (result,) = run_interpreter(interpreter, [values])
        expected = values.astype(np.float64) @ weights.T
        lengths = np.linalg.norm(values, axis=1, keepdims=True) * np.linalg.norm(weights, axis=1)
        assert np.all(np.abs(result - expected) <= 1e-3 * lengths + 1e-7)
    for bad in (np.nan, np.inf):
        values = half_exact(rows)
        values[0, 5] = bad
        (result,) = run_interpreter(interpreter, [values])
        reached = stored[:, 5] != 0
        assert not np.any(np.isfinite(result[0, reached]))
        expected = values[1].astype(np.float64) @ weights.T
        np.testing.assert_allclose(result[1], expected, rtol=1e-2, atol=1e-2)


# Input shape, columns, elements of a block, activation.
BLOCKWISE = [
    ((1, 64), 5, 32, "NONE"),
    ((5, 48), 9, 8, "RELU"),
    ((2, 3, 24), 4, 24, "NONE"),
]
LONG_BLOCKWISE = [((1, 4160), 6, 32, "NONE"), ((3, 192), 5, 64, "NONE")]


@pytest.mark.parametrize(("cases", "depth"), [(BLOCKWISE, 64), (LONG_BLOCKWISE, 4160)])
@pytest.mark.parametrize("scale_type", [np.float16, np.float32])
def test_blocks_of_int4_with_scales_of_their_own(scale_type, cases, depth, device, precision, rng):
    """The runtimes read scales of float16 only; it is loaded, not run, with others."""
    m, inputs, expected = ModelMaker(), [], []
    for i, (shape, cols, block, activation) in enumerate(cases):
        stored = int4_weights(rng, cols, shape[-1])
        scales = rng.uniform(0.01, 0.1, (cols, shape[-1] // block)).astype(scale_type)
        bias = rng.standard_normal(cols).astype(np.float32)
        x = m.input(f"x{i}", shape)
        weights = m.int4_constant(stored, Blocks(m.constant(scales), block))
        m.output(
            m.op(
                "FULLY_CONNECTED", [x, weights, m.constant(bias)], (*shape[:-1], cols), version=6,
                keep_num_dims=True, fused_activation_function=activation,
            )
        )  # fmt: skip
        inputs.append(half_exact(rng.standard_normal(shape).astype(np.float32)))
        real = stored * np.repeat(scales.astype(np.float64), block, axis=1)
        y = inputs[-1].astype(np.float64) @ real.T + bias
        expected.append(np.maximum(y, 0) if activation == "RELU" else y)
    check(
        m.build(), inputs, expected, device=device, precision=precision, accumulation=depth,
        reference=False,
    )  # fmt: skip


@pytest.mark.parametrize(("bits", "per_channel"), [(4, False), (4, True), (2, True)])
def test_int8_times_int4_equals_the_reference(bits, per_channel, device, rng):
    m, inputs = ModelMaker(), []
    for shape, cols in CASES[:5]:
        src = random_quantization(rng, np.int8)
        weights = int4_quantization(rng, cols, per_channel and cols > 1)
        x = m.input(f"x{shape}", shape, np.int8, quantization=src)
        values = int4_weights(rng, cols, shape[-1], bits)
        constant = m.int4_constant(values, weights, bits=bits)
        dst = output_quantization(rng, np.int8, src, weights, shape[-1])
        dst = dst._replace(scales=dst.scales / 4 ** (4 - bits // 2))
        bias = add_bias(m, rng, np.int8, src, weights, cols)
        operands = [x, constant, bias]
        m.output(m.op("FULLY_CONNECTED", operands, (shape[0], cols), quantization=dst, version=6))
        inputs.append(random_integers(rng, shape, np.int8))
    check_exact(m.build(), inputs, device=device)


def test_verification_reads_int4(device, rng):
    for blocks in (False, True):
        m = ModelMaker()
        quantization = Quantization([0.02, 0.03, 0.05], 0, 0)
        if blocks:
            scales = m.constant(rng.uniform(0.01, 0.1, (3, 2)).astype(np.float16))
            quantization = Blocks(scales, 16)
        operands = [m.input("x", (2, 32)), m.int4_constant(int4_weights(rng, 3, 32), quantization)]
        m.output(m.op("FULLY_CONNECTED", operands, (2, 3), version=6))
        delegate = clgpu_delegate.load(device=device, verify="first")
        interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
        run_interpreter(interpreter, [rng.standard_normal((2, 32)).astype(np.float32)])
        (check,) = delegate.explain().verification.partitions
        assert check.relative_l2 < 1e-6, check


def test_int4_elsewhere_is_refused(rng):
    def product(quantization, dtype=np.float32, src=None, dst=None):
        m = ModelMaker()
        q = quantization(m) if callable(quantization) else quantization
        operands = [m.input("x", (2, 16), dtype, quantization=src)]
        operands.append(m.int4_constant(int4_weights(rng, 3, 16), q))
        m.output(
            m.op("FULLY_CONNECTED", operands, (2, 3), dtype=dtype, quantization=dst, version=6)
        )
        return m.build()

    def blocks(shape, size, **more):
        return lambda m: Blocks(m.constant(np.ones(shape, np.float16)), size, **more)

    reason = "input 1 has other blocks than kernels read"
    check_refused(product(blocks((3, 4), 4)), reason)
    check_refused(product(blocks((3, 3), 8)), reason)
    check_refused(product(blocks((3, 2), 8, axis=1)), reason)
    check_refused(product(Quantization(0.5, 1)), "have a zero point other than 0")
    one = Quantization(0.5)
    wide = product(one, np.int16, one, one)
    check_refused(wide, "weights tensor is int4; supported: int8")
    integers = product(blocks((3, 2), 8), np.int8, one, one)
    check_refused(integers, "the weights have scales of blocks, the input integers")
    m = ModelMaker()
    constant = m.int4_constant(int4_weights(rng, 2, 4), Quantization(0.5))
    m.output(m.op("RESHAPE", [constant, m.constant(np.array([8], np.int32))], (8,), dtype="INT4"))
    check_refused(m.build(), "input 0 is int4")

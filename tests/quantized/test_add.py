"""ADD of quantised integers equals the reference kernels."""

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

ACTIVATIONS = ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"]
SHAPES = [  # of both operands
    ((2, 5, 7), (2, 5, 7)),  # flat, and no multiple of a vector
    ((3, 1, 16), (2, 16)),
    ((2, 3, 4), (4,)),
    ((2, 3, 5), (2, 1, 5)),
    ((), (33,)),
]


def build(dtype, a, b, scales, *, name="ADD", **options) -> bytes:
    m = ModelMaker()
    x = m.input("x", a, dtype, quantization=scales[0])
    y = m.input("y", b, dtype, quantization=scales[1])
    shape = np.broadcast_shapes(a, b)
    m.output(m.op(name, [x, y], shape, quantization=scales[2], **options))
    return m.build()


def random_scales(rng, dtype) -> list[Quantization]:
    return [random_quantization(rng, dtype) for _ in range(3)]


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_sum_equals_the_reference(a, b, dtype, device, rng):
    activation = ACTIVATIONS[SHAPES.index((a, b)) % 4]
    scales = random_scales(rng, dtype)
    model = build(dtype, a, b, scales, fused_activation_function=activation)
    inputs = [random_integers(rng, shape, dtype) for shape in (a, b)]
    check_exact(model, inputs, device=device)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_all_pairs(dtype, device, rng):
    values = np.arange(256).astype(np.uint8).view(dtype)
    model = build(dtype, (256, 1), (256,), random_scales(rng, dtype))
    check_exact(model, [values[:, None], values], device=device)


@pytest.mark.parametrize("name", ["ADD", "SUB"])
def test_powers_of_two_shift_int16(name, device, rng):
    scales = [Quantization(2.0**-13), Quantization(2.0**-11), Quantization(2.0**-11)]
    model = build(np.int16, (5, 9), (5, 9), scales, name=name)
    check_exact(model, [random_integers(rng, (5, 9), np.int16) for _ in range(2)], device=device)


@hypothesis.given(ratio=st.floats(-6, 6), scale=st.floats(-5, 6))
@hypothesis.settings(max_examples=EXAMPLES)
def test_scales_far_from_each_other(device, rng, ratio, scale):
    # The reference kernels end the process where the output's scale is 2^-19 of the inputs'.
    a, b = 10**ratio, 0.1
    scales = [Quantization(a, 3), Quantization(b, -5), Quantization(max(a, b) * 10**scale)]
    model = build(np.int8, (64,), (64,), scales)
    check_exact(model, [random_integers(rng, (64,), np.int8) for _ in range(2)], device=device)


def test_slices_of_a_concatenation_are_written(device, rng):
    q = random_quantization(rng, np.int8)
    m = ModelMaker()
    x = m.input("x", (1, 2, 3, 16), np.int8, quantization=q)
    sums = [m.op("ADD", [x, x], (1, 2, 3, 16), quantization=q) for _ in range(2)]
    m.output(m.op("CONCATENATION", sums, (1, 2, 3, 32), axis=3, quantization=q))
    check_exact(m.build(), [random_integers(rng, (1, 2, 3, 16), np.int8)], device=device)


def test_tiny_scale_of_the_output_is_refused():
    scales = [Quantization(1.0), Quantization(1.0), Quantization(1e-7)]
    check_refused(build(np.int8, (4,), (4,), scales), "the scale of the output is too small")


def test_scales_are_required():
    scales = [Quantization(0.5), None, Quantization(0.5)]
    check_refused(build(np.int8, (4,), (4,), scales), "input 1 has no scale")

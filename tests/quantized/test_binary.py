"""Functions of two quantised tensors other than ADD equal the reference kernels."""

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

NAMES = ["SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "PRELU"]
FUSES = {"SUB", "MUL", "DIV"}
SHAPES = [((2, 5, 7), (2, 5, 7)), ((2, 3, 16), (16,)), ((2, 3, 5), (2, 1, 5))]


def functions_of(dtype) -> list[str]:
    return [*NAMES, "SQUARED_DIFFERENCE"] if dtype == np.int8 else NAMES


def operands(rng, shapes, dtype, zero: int) -> list[np.ndarray]:
    """Integers of all of a type's range; no divisor is zero, at which reference kernels stop."""
    x, y = (random_integers(rng, shape, dtype) for shape in shapes)
    return [x, np.where(y == zero, zero ^ 1, y).astype(dtype)]


def result_scale(name: str, a: float, b: float, dtype) -> float:
    """A scale with which results use the range of their type and exceed it."""
    wide = 200 if dtype == np.int16 else 1
    scales = {
        "MUL": a * b * 100 * wide,
        "PRELU": a * b * 100,
        "SQUARED_DIFFERENCE": max(a, b) ** 2 * 200,
        "DIV": a / b / 20,
    }
    return float(np.float32(scales.get(name, max(a, b) * 1.5)))


def build(rng, names, shapes, dtype, a, b, *, activation="NONE", ratio=1.0) -> bytes:
    """One node for each function of the two inputs; slopes, of int16 too, are a constant int8."""
    m = ModelMaker()
    x = m.input("x", shapes[0], dtype, quantization=a)
    y = m.input("y", shapes[1], dtype, quantization=b)
    for name in names:
        options = {"fused_activation_function": activation} if name in FUSES else {}
        scale = result_scale(name, a.scales, b.scales, dtype) * ratio
        dst = Quantization(scale, random_quantization(rng, dtype).zero_points)
        second = y
        if name == "PRELU" and dtype == np.int16:
            second = m.constant(random_integers(rng, shapes[1], np.int8), quantization=b)
        shape = np.broadcast_shapes(*shapes)
        m.output(m.op(name, [x, second], shape, quantization=dst, **options))
    return m.build()


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_functions_equal_the_reference(dtype, shapes, device, rng):
    activation = ["NONE", "RELU", "RELU6"][SHAPES.index(shapes)]
    a, b = random_quantization(rng, dtype), random_quantization(rng, dtype)
    model = build(rng, functions_of(dtype), shapes, dtype, a, b, activation=activation)
    check_exact(model, operands(rng, shapes, dtype, b.zero_points), device=device)


def test_all_pairs_of_int8(device, rng):
    a, b = random_quantization(rng, np.int8), random_quantization(rng, np.int8)
    values = np.arange(-128, 128).astype(np.int8)
    x, y = np.meshgrid(values, values[values != b.zero_points], indexing="ij")
    model = build(rng, functions_of(np.int8), (x.shape, y.shape), np.int8, a, b)
    check_exact(model, [x, y], device=device)


@hypothesis.given(ratio=st.floats(-4, 3))
@hypothesis.settings(max_examples=EXAMPLES)
def test_scales_far_from_each_other(device, rng, ratio):
    a, b = random_quantization(rng, np.int8), random_quantization(rng, np.int8)
    shapes = (64,), (64,)
    model = build(rng, ["MUL", "PRELU", "DIV"], shapes, np.int8, a, b, ratio=10**ratio)
    check_exact(model, operands(rng, shapes, np.int8, b.zero_points), device=device)


@pytest.mark.parametrize("name", ["SQUARED_DIFFERENCE", "FLOOR_DIV", "POW"])
def test_types_without_reference_kernels_are_refused(name):
    m = ModelMaker()
    q = Quantization(0.5)
    x = m.input("x", (4,), np.uint8, quantization=q)
    m.output(m.op(name, [x, x], (4,), quantization=q))
    check_refused(m.build(), "input 0 is uint8; supported: float32, int32, int64")


def test_tiny_scale_of_the_output_is_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.int8, quantization=Quantization(1.0))
    m.output(m.op("MUL", [x, x], (4,), quantization=Quantization(1e-10)))
    check_refused(m.build(), "the scale of the output is too small")

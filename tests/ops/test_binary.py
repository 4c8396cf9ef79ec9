"""Element-wise operations on two tensors apart from ADD, PRELU, and ADD_N."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker, Quantization
from tests.ops.halves import check_halves
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact

FUNCTIONS = {
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "SQUARED_DIFFERENCE": lambda a, b: (a - b) ** 2,
    "FLOOR_DIV": np.floor_divide,
    "FLOOR_MOD": np.mod,
}
INTEGER_FUNCTIONS = {
    **FUNCTIONS,
    "DIV": lambda a, b: (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype),
}
# What the runtimes define on each type.
SUPPORTED = {
    np.int32: list(FUNCTIONS),
    np.int64: ["SUB", "MUL", "MAXIMUM", "MINIMUM", "FLOOR_MOD"],
}
CASES = [  # shapes of both operands; test_add.py has the rest for the same kernel
    ((3, 17), (3, 17)),
    ((2, 3, 8), (8,)),
    ((2, 3, 5), (2, 1, 5)),
]


def eighths(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    """Nonzero multiples of 1/8 that half storage holds exactly: some functions have steps."""
    return ((rng.integers(1, 64, shape) * rng.choice([-1, 1], shape)) / 8).astype(np.float32)


@pytest.mark.parametrize(("a", "b"), CASES, ids=str)
def test_all_functions_of_floats(device, precision, rng, a, b):
    x, y = eighths(rng, a), eighths(rng, b)
    shape = np.broadcast_shapes(a, b)
    m = ModelMaker()
    # Nodes around them, so that fp16 stores operands and results in half.
    h, k = m.op("NEG", [m.input("a", a)], a), m.op("NEG", [m.input("b", b)], b)
    names = FUNCTIONS if a == b else ["SUB", "DIV"]
    m.output(*(m.op("NEG", [m.op(name, [h, k], shape)], shape) for name in names))
    expected = [-FUNCTIONS[name](-x.astype(np.float64), -y.astype(np.float64)) for name in names]
    check(m.build(), [x, y], expected, device=device, precision=precision)


MANY_AXES = (2, 1, 3, 2, 1, 2, 1, 3)


def test_equal_shapes_may_have_eight_axes(device, precision, rng):
    x, y = eighths(rng, MANY_AXES), eighths(rng, MANY_AXES)
    m = ModelMaker()
    h, k = (m.op("NEG", [m.input(name, MANY_AXES)], MANY_AXES) for name in "xy")
    m.output(*(m.op(name, [h, k], MANY_AXES) for name in ("ADD", *FUNCTIONS)))
    functions = [np.add, *FUNCTIONS.values()]
    expected = [function(-x.astype(np.float64), -y.astype(np.float64)) for function in functions]
    check(m.build(), [x, y], expected, device=device, precision=precision)


def test_quantised_numbers_may_have_eight_axes(device, rng):
    m = ModelMaker()
    scale = Quantization(0.5)
    x = m.op("QUANTIZE", [m.input("x", MANY_AXES)], MANY_AXES, dtype=np.int8, quantization=scale)
    total = m.op("ADD", [x, x], MANY_AXES, quantization=Quantization(0.75))
    flag = m.op("GREATER", [total, x], MANY_AXES, dtype=bool)
    chosen = m.op("SELECT_V2", [flag, x, x], MANY_AXES, dtype=np.int8, quantization=scale)
    result = m.op("DEQUANTIZE", [chosen], MANY_AXES, dtype=np.float32)
    number = {"in_data_type": np.float32, "out_data_type": np.int32}
    m.output(m.op("CAST", [result], MANY_AXES, dtype=np.int32, **number))
    x = rng.integers(-20, 20, MANY_AXES).astype(np.float32)
    check(m.build(), [x], [x.astype(np.int32)], device=device, precision="fp32")


def test_seven_axes_are_not_broadcast():
    m = ModelMaker()
    x, y = m.input("x", MANY_AXES[1:]), m.input("y", (3,))
    m.output(m.op("MUL", [x, y], MANY_AXES[1:]))
    check_refused(m.build(), "differ; shapes of more than 6 axes do not broadcast")


def test_floor_division_of_multiples_is_exact(device):
    y = np.float32([3, 5, 7, 0.1, 0.3, 11, 13])
    x = np.float32(np.outer(np.arange(-8, 9), y))
    m = ModelMaker()
    m.output(m.op("FLOOR_DIV", [m.input("x", x.shape), m.constant(y)], x.shape))
    check(m.build(), [x], [np.floor(x / y.astype(np.float64))], device=device, precision="fp32")


def test_power_of_floats(device, precision, rng):
    x, y = np.abs(eighths(rng, (3, 7))), eighths(rng, (3, 7)) / 4
    m = ModelMaker()
    m.output(m.op("POW", [m.input("x", x.shape), m.input("y", y.shape)], x.shape))
    expected = x.astype(np.float64) ** y
    check(m.build(), [x, y], [expected], device=device, precision=precision)


def test_power_of_negative_bases(device):
    x, y = np.float32([-2, -2, -0.5, 0, 0, -3]), np.float32([3, -2, 4, 0, 2, 0])
    m = ModelMaker()
    m.output(m.op("POW", [m.input("x", x.shape), m.input("y", y.shape)], x.shape))
    check(m.build(), [x, y], [x.astype(np.float64) ** y], device=device, precision="fp32")


def test_angles_of_vectors(device, precision, rng):
    y, x = eighths(rng, (3, 17)), eighths(rng, (3, 17))
    y[0, :4], x[0, :4] = [0, 0, 1, -1], [1, -1, 0, 0]
    m = ModelMaker()
    m.output(m.op("ATAN2", [m.input("y", y.shape), m.input("x", x.shape)], x.shape))
    expected = np.arctan2(y.astype(np.float64), x)
    check(m.build(), [y, x], [expected], device=device, precision=precision)


def test_angles_are_of_floats(device):
    m = ModelMaker()
    m.output(m.op("ATAN2", [m.input(n, (3,), np.int8) for n in "yx"], (3,), dtype=np.int8))
    check_refused(m.build(), "input 0 is int8; supported: float32", device=device)


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_all_functions_of_integers(device, rng, dtype):
    a, b = (3, 7), (7,)
    x = rng.integers(-100, 100, a, dtype)
    y = rng.integers(1, 9, b, dtype) * rng.choice([-1, 1], b).astype(dtype)
    m = ModelMaker()
    h, k = m.input("a", a, dtype), m.input("b", b, dtype)
    names = SUPPORTED[dtype]
    m.output(*(m.op(name, [h, k], a) for name in names))
    expected = [INTEGER_FUNCTIONS[name](x, y) for name in names]
    check(m.build(), [x, y], expected, device=device, precision="fp32")


def test_power_of_integers(device):
    x, y = np.int32([-3, -2, -1, 0, 0, 1, 2, 7]), np.int32([3, 4, 31, 0, 3, 9, 30, 1])
    m = ModelMaker()
    m.output(m.op("POW", [m.input("x", x.shape, x.dtype), m.input("y", y.shape, y.dtype)], x.shape))
    check(m.build(), [x, y], [x**y], device=device, precision="fp32")


STABLEHLO = {"ADD": np.add, "MULTIPLY": np.multiply, "MAXIMUM": np.maximum, "MINIMUM": np.minimum}


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_functions_of_stablehlo(device, rng, dtype):
    x, y = (rng.integers(-100, 100, (3, 7)).astype(dtype) for _ in "xy")
    m = ModelMaker()
    h, k = m.input("x", x.shape, dtype), m.input("y", y.shape, dtype)
    m.output(*(m.op(f"STABLEHLO_{name}", [h, k], x.shape) for name in STABLEHLO))
    expected = [function(x, y) for function in STABLEHLO.values()]
    check(m.build(), [x, y], expected, device=device, precision="fp32")


def test_small_integers_of_stablehlo_are_refused(device):
    """They have no scale there, and their sums wrap around."""
    m = ModelMaker()
    x = m.input("x", (3,), np.int8)
    m.output(m.op("STABLEHLO_ADD", [x, x], (3,)))
    check_refused(m.build(), "input 0 is int8; supported: float32, int32, int64", device=device)


@pytest.mark.parametrize("name", ["DIV", "FLOOR_DIV", "FLOOR_MOD"])
def test_integer_division_does_not_trap(device, name):
    lowest = np.iinfo(np.int32).min
    x, y = np.int32([5, -5, 0, lowest, lowest, 7]), np.int32([0, 0, 0, 1, -1, 2])
    m = ModelMaker()
    m.output(m.op(name, [m.input("x", x.shape, x.dtype), m.input("y", y.shape, y.dtype)], x.shape))
    expected = [0, 0, 0, 0, 0, 1] if name == "FLOOR_MOD" else [0, 0, 0, lowest, lowest, 3]
    check(m.build(), [x, y], [np.int32(expected)], device=device, precision="fp32", reference=False)


@pytest.mark.parametrize("width", [7, 8])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("ADD", np.int16),
        ("MUL", np.int16),
        ("FLOOR_DIV", np.int8),
        ("FLOOR_DIV", np.int16),
        ("FLOOR_MOD", np.int8),
        ("FLOOR_MOD", np.int16),
    ],
)
def test_small_integers_without_a_scale_wrap(device, rng, name, dtype, width):
    bounds = np.iinfo(dtype)
    x = rng.integers(bounds.min, bounds.max, (2, 3, width), dtype, endpoint=True)
    y = rng.integers(bounds.min, -1, (3, 1), dtype)
    x[0, 0, :2], y[0] = [bounds.min, bounds.max], -1
    m = ModelMaker()
    m.output(m.op(name, [m.input("x", x.shape, dtype), m.input("y", y.shape, dtype)], x.shape))
    functions = {"ADD": np.add, **FUNCTIONS}
    expected = functions[name](x.astype(np.int64), y).astype(dtype)
    check(m.build(), [x, y], [expected], device=device, precision="fp32")


@pytest.mark.parametrize("name", ["ADD", "MUL"])
def test_small_integers_wrap_before_the_activation(device, rng, name):
    x, y = (rng.integers(-(2**15), 2**15, (3, 5)).astype(np.int16) for _ in "xy")
    m = ModelMaker()
    a, b = m.input("x", x.shape, x.dtype), m.input("y", y.shape, y.dtype)
    names = ["RELU", "RELU6", "RELU_N1_TO_1"]
    m.output(*(m.op(name, [a, b], x.shape, fused_activation_function=n) for n in names))
    value = {"ADD": np.add, "MUL": np.multiply}[name](x, y)
    expected = [np.clip(value, 0, None), np.clip(value, 0, 6), np.clip(value, -1, 1)]
    check(m.build(), [x, y], expected, device=device, precision="fp32")


@pytest.mark.parametrize("name", ["FLOOR_DIV", "FLOOR_MOD"])
def test_scales_do_not_change_the_quotient_of_stored_values(device, rng, name):
    """As in the reference kernels."""
    x, y = rng.integers(-128, 128, (3, 5)).astype(np.int8), np.int8([-9, -2, 1, 3, 7])
    m = ModelMaker()
    a = m.input("x", x.shape, x.dtype, quantization=Quantization(0.5, 3))
    b = m.input("y", y.shape, y.dtype, quantization=Quantization(0.25))
    m.output(m.op(name, [a, b], x.shape, quantization=Quantization(2.0)))
    expected = FUNCTIONS[name](x.astype(np.int64), y).astype(np.int8)
    check(m.build(), [x, y], [expected], device=device, precision="fp32")


def test_stored_values_keep_their_type():
    m = ModelMaker()
    x = m.input("x", (3,), np.int8, quantization=Quantization(0.5))
    m.output(m.op("FLOOR_DIV", [x, x], (3,), dtype=np.int16, quantization=Quantization(0.5)))
    check_refused(m.build(), "output is int16; supported: int8")


def test_floor_division_of_uint8_is_refused():
    m = ModelMaker()
    x = m.input("x", (3,), np.uint8)
    m.output(m.op("FLOOR_MOD", [x, x], (3,)))
    check_refused(m.build(), "input 0 is uint8; supported: float32, int32, int64, int8, int16")


def test_differences_of_int16_need_a_scale():
    m = ModelMaker()
    x = m.input("x", (3,), np.int16)
    m.output(m.op("SUB", [x, x], (3,)))
    check_refused(m.build(), "input 0 has no scale")


@pytest.mark.parametrize("name", ["SUB", "MUL", "DIV"])
def test_activation_is_fused(device, rng, name):
    x, y = eighths(rng, (3, 5)), eighths(rng, (5,))
    m = ModelMaker()
    a, b = m.input("x", x.shape), m.input("y", y.shape)
    m.output(m.op(name, [a, b], x.shape, fused_activation_function="RELU6"))
    expected = np.clip(FUNCTIONS[name](x.astype(np.float64), y), 0, 6)
    check(m.build(), [x, y], [expected], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", SUPPORTED)
@pytest.mark.parametrize(
    ("activation", "bounds"), [("RELU", (0, None)), ("RELU6", (0, 6)), ("RELU_N1_TO_1", (-1, 1))]
)
def test_fused_activation_bounds_integers(device, rng, dtype, activation, bounds):
    x, y = rng.integers(-9, 9, (3, 5), dtype), rng.integers(-9, 9, (5,), dtype)
    m = ModelMaker()
    a, b = m.input("x", x.shape, dtype), m.input("y", y.shape, dtype)
    names = ["SUB", "MUL"]
    fused = {"fused_activation_function": activation}
    m.output(*(m.op(name, [a, b], x.shape, **fused) for name in names))
    expected = [np.clip(FUNCTIONS[name](x, y), *bounds) for name in names]
    check(m.build(), [x, y], expected, device=device, precision="fp32")


def test_following_activation_is_taken_over(device, rng):
    x, y = eighths(rng, (3, 5)), eighths(rng, (3, 5))
    m = ModelMaker()
    product = m.op("MUL", [m.input("x", x.shape), m.input("y", y.shape)], x.shape)
    m.output(m.op("LOGISTIC", [product], x.shape))
    expected = 1 / (1 + np.exp(-x.astype(np.float64) * y))
    check(m.build(), [x, y], [expected], device=device, precision="fp32")


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("slopes", [(5,), (1, 1, 5), (3, 2, 5)], ids=str)
def test_prelu_has_a_slope_for_negatives(device, precision, rng, slopes, constant):
    x, y = eighths(rng, (1, 3, 2, 5)), half_exact(rng.random(slopes).astype(np.float32))
    m = ModelMaker()
    src = m.op("NEG", [m.input("x", x.shape)], x.shape)
    alpha = m.constant(y) if constant else m.input("y", slopes)
    m.output(m.op("PRELU", [src, alpha], x.shape))
    expected = np.where(-x >= 0, -x, -x * y.astype(np.float64))
    inputs = [x] if constant else [x, y]
    check(m.build(), inputs, [expected], device=device, precision=precision)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_add_n_sums_all_inputs(device, precision, rng, count):
    arrays = [half_exact(rng.standard_normal((3, 7)).astype(np.float32)) for _ in range(count)]
    m = ModelMaker()
    inputs = [m.op("NEG", [m.input(f"x{i}", (3, 7))], (3, 7)) for i in range(count)]
    m.output(m.op("ADD_N", inputs, (3, 7)))
    expected = -np.sum(np.float64(arrays), axis=0)
    check(m.build(), arrays, [expected], device=device, precision=precision, accumulation=count)


def test_add_n_takes_constants_and_runs_again(device, rng):
    a, b, c, d = (rng.standard_normal((3, 7)).astype(np.float32) for _ in range(4))
    m = ModelMaker()
    constants = [m.constant(a), m.constant(b)]
    m.output(m.op("ADD_N", [*constants, m.input("c", c.shape), m.input("d", d.shape)], c.shape))
    check(m.build(), [c, d], [a + b + c + d], device=device, precision="fp32", accumulation=4)


def test_add_n_of_integers(device):
    x = np.int32([1, -2, 3])
    m = ModelMaker()
    a = m.input("x", x.shape, np.int32)
    m.output(m.op("ADD_N", [a, a, a], x.shape))
    check(m.build(), [x], [3 * x], device=device, precision="fp32")


@hypothesis.given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), axis=st.integers(0, 3))
@hypothesis.settings(max_examples=EXAMPLES)
def test_second_operand_broadcasts_along_any_axis(device, rng, shape, axis):
    other = tuple(1 if i == axis else d for i, d in enumerate(shape))
    x, y = eighths(rng, tuple(shape)), eighths(rng, other)
    m = ModelMaker()
    m.output(m.op("SUB", [m.input("x", x.shape), m.input("y", y.shape)], x.shape))
    check(m.build(), [x, y], [x - y], device=device, precision="fp32")


def test_different_types_are_refused():
    m = ModelMaker()
    x, y = m.input("x", (4,), np.int32), m.input("y", (4,), np.int64)
    m.output(m.op("MUL", [x, y], (4,)))
    check_refused(m.build(), "the inputs have different types")


def test_fused_activation_that_integers_lack_is_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.int32)
    m.output(m.op("MUL", [x, x], (4,), fused_activation_function="TANH"))
    check_refused(m.build(), "the fused activation is not one of integers")


def test_prelu_of_integers_is_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.int32)
    m.output(m.op("PRELU", [x, x], (4,)))
    check_refused(m.build(), "input 0 is int32; supported: float32")


def test_add_n_of_one_input_is_refused():
    m = ModelMaker()
    m.output(m.op("ADD_N", [m.input("x", (4,))], (4,)))
    check_refused(m.build(), "it has 1 input; the operation takes at least 2 inputs")


def test_only_add_is_a_core_operation():
    m = ModelMaker()
    x = m.input("x", (4,))
    m.output(m.op("MUL", [x, x], (4,)))
    check_refused(m.build(), "not one of the core operations", ops="core")


HALF_FUNCTIONS = {
    "ADD": np.add,
    "MUL": np.multiply,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "ATAN2": np.arctan2,
    "STABLEHLO_ADD": np.add,
    "STABLEHLO_MULTIPLY": np.multiply,
    "STABLEHLO_MAXIMUM": np.maximum,
    "STABLEHLO_MINIMUM": np.minimum,
}


@pytest.mark.parametrize(("a", "b"), CASES, ids=str)
def test_functions_of_half(device, rng, a, b):
    x, y = (rng.normal(0, 3, shape).astype(np.float16) for shape in (a, b))
    shape = np.broadcast_shapes(a, b)
    # The reference kernels of the others take equal shapes only.
    names = list(HALF_FUNCTIONS) if a == b else ["ADD", "MUL", "MAXIMUM", "MINIMUM"]
    expected = [HALF_FUNCTIONS[n](x.astype(np.float64), y.astype(np.float64)) for n in names]
    check_halves(
        lambda m, inputs: [m.op(name, inputs, shape) for name in names], [x, y], expected, device
    )


def test_activations_of_half_sums(device, rng):
    x, y = (rng.normal(0, 3, (3, 17)).astype(np.float16) for _ in range(2))
    expected = [np.clip(x.astype(np.float64) + y, 0, 6)]
    check_halves(
        lambda m, inputs: [m.op("ADD", inputs, x.shape, fused_activation_function="RELU6")],
        [x, y], expected, device,
    )  # fmt: skip


def test_functions_of_half_without_a_reference_are_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.float16)
    m.output(m.op("SUB", [x, x], (4,)))
    check_refused(m.build(), "input 0 is float16; supported: float32, int32, int64")


def test_unsigned_numbers_without_a_reference_are_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.uint32)
    m.output(m.op("MUL", [x, x], (4,), fused_activation_function="RELU"))
    check_refused(m.build(), "the fused activation is not one of unsigned integers")
    m = ModelMaker()
    x = m.input("x", (4,), np.uint16)
    m.output(m.op("MUL", [x, x], (4,)))
    check_refused(m.build(), "input 0 is uint16; supported: float32")

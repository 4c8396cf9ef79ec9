"""Element-wise operations on one tensor."""

from __future__ import annotations

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.halves import check_halves
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact

erf = np.vectorize(math.erf, otypes=[np.float64])

ANY = {  # defined on all numbers; the functions with steps jump where half_exact inputs do not lie
    "ABS": np.abs,
    "NEG": np.negative,
    "EXP": np.exp,
    "SQUARE": np.square,
    "SIN": np.sin,
    "COS": np.cos,
    "FLOOR": np.floor,
    "SIGN": np.sign,
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
    "LEAKY_RELU": lambda x: np.where(x > 0, x, 0.125 * x),
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "TANH": np.tanh,
}
UNREFERENCED = {  # not among the runtimes' reference kernels
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "CEIL": np.ceil,
    "ROUND": np.round,
}
OPTIONS = {"LEAKY_RELU": {"alpha": 0.125}}
POSITIVE = {"LOG": np.log, "SQRT": np.sqrt, "RSQRT": lambda x: 1 / np.sqrt(x)}
CASES = [(1,), (7,), (3, 17), (2, 3, 1, 5), (1, 2, 1, 2, 1, 4)]


def gelu(x: np.ndarray, approximate: bool) -> np.ndarray:
    if approximate:
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def one_op(name: str, shape: tuple, dtype=np.float32, **options) -> bytes:
    m = ModelMaker()
    m.output(m.op(name, [m.input("x", shape, dtype)], shape, **options))
    return m.build()


def all_ops(functions: dict, shape: tuple) -> bytes:
    """Every function of ``-x``, in nodes before and after which fp16 stores tensors in half."""
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", shape)], shape)
    results = [m.op(name, [h], shape, **OPTIONS.get(name, {})) for name in functions]
    m.output(*(m.op("NEG", [y], shape) for y in results))
    return m.build()


def test_functions_of_any_number(device, precision, rng):
    x = half_exact(3 * rng.standard_normal((3, 17)).astype(np.float32))
    expected = [-f(-x.astype(np.float64)) for f in ANY.values()]
    check(all_ops(ANY, x.shape), [x], expected, device=device, precision=precision)


def test_functions_without_reference_kernels(device, precision, rng):
    x = half_exact(3 * rng.standard_normal((3, 17)).astype(np.float32))
    data = all_ops(UNREFERENCED, x.shape)
    expected = [-f(-x.astype(np.float64)) for f in UNREFERENCED.values()]
    check(data, [x], expected, device=device, precision=precision, reference=False)


def test_functions_of_positive_numbers(device, precision, rng):
    x = half_exact(-8 * rng.random((3, 17)).astype(np.float32) - 0.01)
    expected = [-f(-x.astype(np.float64)) for f in POSITIVE.values()]
    check(all_ops(POSITIVE, x.shape), [x], expected, device=device, precision=precision)


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu(device, precision, rng, approximate):
    x = half_exact(2 * rng.standard_normal((3, 17)).astype(np.float32))
    data = one_op("GELU", x.shape, approximate=approximate)
    expected = gelu(x.astype(np.float64), approximate)
    check(data, [x], [expected], device=device, precision=precision)


def test_functions_keep_their_limits_far_from_zero(device):
    x = np.float32([-300, -100, -20, 0, 20, 100, 300])
    functions = {name: ANY[name] for name in ["TANH", "LOGISTIC", "HARD_SWISH", "RELU6"]}
    functions["ELU"] = UNREFERENCED["ELU"]
    expected = [-f(-x.astype(np.float64)) for f in functions.values()]
    data = all_ops(functions, x.shape)
    check(data, [x], expected, device=device, precision="fp32", reference=False)


def test_hard_swish_of_large_numbers_is_the_number(device):
    """TFLite's kernel multiplies by 6 first, which overflows."""
    x = np.array([6e37, 3e38, -3e38, 4], np.float32)
    data = one_op("HARD_SWISH", x.shape)
    expected = [np.maximum(x, 0).astype(np.float64)]
    check(data, [x], expected, device=device, precision="fp32", reference=False)


def test_gelu_vanishes_far_below_zero(device):
    x = np.float32([-1e3, -30, 0, 30, 1e3])
    for approximate in (False, True):
        data = one_op("GELU", x.shape, approximate=approximate)
        check(data, [x], [np.maximum(x, 0)], device=device, precision="fp32")


def test_round_takes_halves_to_the_even_neighbour(device):
    x = np.float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, -2.6])
    data = one_op("ROUND", x.shape)
    check(data, [x], [np.round(x)], device=device, precision="fp32", reference=False)


@pytest.mark.parametrize("shape", CASES, ids=str)
def test_any_shape(device, rng, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    check(
        one_op("SQUARE", shape), [x], [x.astype(np.float64) ** 2], device=device, precision="fp32"
    )


@pytest.mark.parametrize(
    ("name", "dtype"), [("ABS", np.int32), ("SIGN", np.int32), ("NEG", np.int32), ("NEG", np.int64)]
)
def test_functions_of_integers(device, rng, name, dtype):
    x = rng.integers(-(2**30), 2**30, (3, 5), dtype)
    x[0, 0] = 0
    data = one_op(name, x.shape, dtype)
    check(data, [x], [ANY[name](x)], device=device, precision="fp32")


def test_activation_is_taken_over_by_the_node_before(device, rng):
    x = rng.standard_normal((3, 7)).astype(np.float32)
    m = ModelMaker()
    y = m.op("SIN", [m.input("x", x.shape)], x.shape)
    m.output(m.op("LEAKY_RELU", [y], x.shape, alpha=0.3))
    y = np.sin(x.astype(np.float64))
    check(m.build(), [x], [np.where(y > 0, y, 0.3 * y)], device=device, precision="fp32")


def test_activations_in_a_row_are_all_applied(device, rng):
    x = 9 * rng.standard_normal((3, 7)).astype(np.float32)
    m = ModelMaker()
    y = m.input("x", x.shape)
    for name in ("NEG", "RELU6", "TANH", "RELU"):
        y = m.op(name, [y], x.shape)
    m.output(y)
    expected = np.tanh(np.clip(-x.astype(np.float64), 0, 6))
    check(m.build(), [x], [expected], device=device, precision="fp32")


@hypothesis.given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=6))
@hypothesis.settings(max_examples=EXAMPLES)
def test_sign_of_any_shape(device, rng, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    check(one_op("SIGN", tuple(shape)), [x], [np.sign(x)], device=device, precision="fp32")


def test_shape_may_be_resized(device, rng):
    x = rng.standard_normal((5, 3)).astype(np.float32)
    data = one_op("ABS", (-1, 3))
    check(data, [x], [np.abs(x)], device=device, precision="fp32", resize={0: (5, 3)})


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("EXP", "float32, int8, int16"), ("ABS", "float32, int32, int64, int8, int16")],
)
def test_other_types_are_refused(name, allowed):
    check_refused(one_op(name, (4,), np.uint8), f"input is uint8; supported: {allowed}")


@pytest.mark.parametrize("shape", [(3, 5, 7), (129,)], ids=str)
def test_functions_of_half(device, rng, shape):
    x = rng.uniform(-1.5, 5, shape).astype(np.float16)  # GELU cancels far below zero
    functions = {
        "NEG": np.negative,
        "SIN": np.sin,
        "COS": np.cos,
        "FLOOR": np.floor,
        "GELU": lambda x: gelu(x, approximate=False),
        "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
        "TANH": np.tanh,
    }
    expected = [function(x.astype(np.float64)) for function in functions.values()]
    check_halves(
        lambda m, inputs: [m.op(name, inputs, shape) for name in functions], [x], expected, device
    )


def test_functions_of_half_without_a_reference_are_refused():
    check_refused(one_op("ABS", (4,), np.float16), "input is float16; supported: float32, int32")
    check_refused(one_op("RELU", (4,), np.float16), "input is float16; supported: float32, int8")

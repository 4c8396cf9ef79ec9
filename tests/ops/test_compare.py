"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.halves import check_halves
from tests.ops.harness import EXAMPLES, check, check_refused

FUNCTIONS = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
}
CASES = [  # shapes of both operands
    ((1,), (1,)),
    ((3, 7), (3, 7)),
    ((3, 7), (1,)),
    ((2, 3, 5), (2, 1, 5)),
    ((2, 1, 3, 1), (1, 2, 1, 5)),
]


def compare(names: list[str], a: tuple, b: tuple, dtype, negate: bool = False) -> bytes:
    shape = np.broadcast_shapes(a, b)
    m = ModelMaker()
    x, y = m.input("x", a, dtype), m.input("y", b, dtype)
    if negate:
        x, y = m.op("NEG", [x], a), m.op("NEG", [y], b)
    m.output(*(m.op(name, [x, y], shape, dtype=bool) for name in names))
    return m.build()


def few(rng: np.random.Generator, shape: tuple, dtype) -> np.ndarray:
    """Numbers of which many are equal; half storage holds them exactly."""
    return rng.integers(-2, 3, shape).astype(dtype)


def test_all_comparisons_of_floats(device, precision, rng):
    x, y = (few(rng, (3, 7), np.float32) / 8 for _ in range(2))
    data = compare(list(FUNCTIONS), (3, 7), (3, 7), np.float32, negate=True)
    expected = [f(-x, -y) for f in FUNCTIONS.values()]
    check(data, [x, y], expected, device=device, precision=precision)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_comparisons_of_integers(device, rng, dtype):
    x, y = (few(rng, (3, 7), dtype) for _ in range(2))
    names = ["EQUAL", "LESS"]
    data = compare(names, (3, 7), (3, 7), dtype)
    check(data, [x, y], [FUNCTIONS[n](x, y) for n in names], device=device, precision="fp32")


def test_large_integers_keep_all_their_bits(device):
    x = np.array([2**40, 2**40, -(2**40)], np.int64)
    y = np.array([2**40 + 1, 2**40, 0], np.int64)
    data = compare(["LESS"], (3,), (3,), np.int64)
    check(data, [x, y], [x < y], device=device, precision="fp32")


def test_equality_of_booleans(device, rng):
    x, y = (rng.integers(0, 2, (3, 7)).astype(bool) for _ in range(2))
    data = compare(["EQUAL", "NOT_EQUAL"], (3, 7), (3, 7), bool)
    check(data, [x, y], [x == y, x != y], device=device, precision="fp32")


def test_comparisons_of_int16_without_a_scale(device, rng):
    x, y = (few(rng, (3, 7), np.int16) for _ in range(2))
    x[0, 0], y[0, 0] = -(2**15), 2**15 - 1
    names = ["EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]
    data = compare(names, (3, 7), (3, 7), np.int16)
    check(data, [x, y], [FUNCTIONS[n](x, y) for n in names], device=device, precision="fp32")


def test_inequality_of_int16_needs_a_scale():
    check_refused(compare(["NOT_EQUAL"], (4,), (4,), np.int16), "input 0 has no scale")


@pytest.mark.parametrize(("a", "b"), CASES, ids=str)
def test_operands_broadcast(device, rng, a, b):
    x, y = few(rng, a, np.float32), few(rng, b, np.float32)
    check(compare(["GREATER"], a, b, np.float32), [x, y], [x > y], device=device, precision="fp32")


def test_constant_operand(device, rng):
    x, y = few(rng, (3, 7), np.float32), few(rng, (), np.float32)
    m = ModelMaker()
    m.output(m.op("GREATER_EQUAL", [m.input("x", (3, 7)), m.constant(y)], (3, 7), dtype=bool))
    check(m.build(), [x], [x >= y], device=device, precision="fp32")


@hypothesis.given(
    drawn=st.lists(st.tuples(st.integers(1, 4), st.sampled_from("abd")), min_size=1, max_size=4)
)
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_broadcast_agrees_with_numpy(device, rng, drawn):
    a = tuple(1 if axis == "b" else size for size, axis in drawn)
    b = tuple(1 if axis == "a" else size for size, axis in drawn)
    x, y = few(rng, a, np.float32), few(rng, b, np.float32)
    check(compare(["LESS"], a, b, np.float32), [x, y], [x < y], device=device, precision="fp32")


def test_different_types_are_refused():
    m = ModelMaker()
    x, y = m.input("x", (4,), np.int32), m.input("y", (4,), np.int64)
    m.output(m.op("LESS", [x, y], (4,), dtype=bool))
    check_refused(m.build(), "the inputs have different types")


def test_another_result_than_a_bool_is_refused():
    m = ModelMaker()
    x, y = m.input("x", (4,)), m.input("y", (4,))
    m.output(m.op("LESS", [x, y], (4,), dtype=np.int32))
    check_refused(m.build(), "output is int32; supported: bool")


def test_other_types_are_refused():
    check_refused(compare(["LESS"], (4,), (4,), np.uint8), "input 0 has no scale")


def test_comparisons_of_half(device, rng):
    x, y = (rng.integers(-3, 3, (3, 17)).astype(np.float16) for _ in range(2))
    functions = {
        "EQUAL": np.equal,
        "NOT_EQUAL": np.not_equal,
        "GREATER": np.greater,
        "GREATER_EQUAL": np.greater_equal,
        "LESS": np.less,
        "LESS_EQUAL": np.less_equal,
    }
    check_halves(
        lambda m, inputs: [m.op(name, inputs, x.shape, dtype=bool) for name in functions],
        [x, y], [function(x, y) for function in functions.values()], device,
    )  # fmt: skip

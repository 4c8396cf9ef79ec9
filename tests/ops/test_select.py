"""SELECT and SELECT_V2."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.halves import check_halves
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact

CASES = [  # shapes of condition, x and y
    ((3, 7), (3, 7), (3, 7)),
    ((1,), (3, 7), (3, 7)),
    ((7,), (3, 7), (3, 7)),
    ((3, 1), (1, 7), (1,)),
    ((2, 1, 3, 1), (1, 5, 1, 1), (1, 1, 1, 2)),
]


def select(name: str, condition: tuple, x: tuple, y: tuple, dtype=np.float32) -> bytes:
    m = ModelMaker()
    inputs = [m.input("c", condition, bool), m.input("x", x, dtype), m.input("y", y, dtype)]
    shape = x if name == "SELECT" else np.broadcast_shapes(condition, x, y)
    m.output(m.op(name, inputs, shape, dtype=dtype))
    return m.build()


def bits(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    return rng.integers(0, 2, shape).astype(bool)


@pytest.mark.parametrize("shapes", CASES, ids=str)
def test_select_v2_broadcasts(device, rng, shapes):
    c = bits(rng, shapes[0])
    x, y = (rng.standard_normal(s).astype(np.float32) for s in shapes[1:])
    check(
        select("SELECT_V2", *shapes), [c, x, y], [np.where(c, x, y)], device=device,
        precision="fp32",
    )  # fmt: skip


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_one_element_keeps_the_rank_that_the_model_gives_it(device, rank):
    m = ModelMaker()
    c, x = m.input("c", (1,), bool), m.input("x", (1, 1), np.float32)
    m.output(m.op("SELECT_V2", [c, x, m.constant(np.float32([2]))], (1,) * rank, dtype=np.float32))
    for value in (True, False):
        arrays = [np.array([value]), np.float32([[1]])]
        wanted = np.full((1,) * rank, 1 if value else 2, np.float32)
        check(m.build(), arrays, [wanted], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int16, np.int8, np.uint8, bool])
def test_select_v2_carries_any_type(device, rng, dtype):
    c = bits(rng, (3, 7))
    x, y = (rng.integers(0, 100, (3, 7)).astype(dtype) for _ in range(2))
    data = select("SELECT_V2", c.shape, x.shape, y.shape, dtype)
    check(data, [c, x, y], [np.where(c, x, y)], device=device, precision="fp32")


def test_select_v2_keeps_half_values(device, precision, rng):
    c = bits(rng, (3, 7))
    x, y = (half_exact(rng.standard_normal((3, 7)).astype(np.float32)) for _ in range(2))
    m = ModelMaker()
    condition = m.input("c", c.shape, bool)
    h, k = m.op("NEG", [m.input("x", (3, 7))], (3, 7)), m.op("NEG", [m.constant(y)], (3, 7))
    z = m.op("SELECT_V2", [condition, h, k], (3, 7), dtype=np.float32)
    m.output(m.op("NEG", [z], (3, 7)))
    check(m.build(), [c, x], [np.where(c, x, y)], device=device, precision=precision)


@pytest.mark.parametrize("condition", [(2, 3, 5), (2,)], ids=str)
def test_select_takes_elements_or_slices_of_the_first_axis(device, rng, condition):
    c = bits(rng, condition)
    x, y = (rng.standard_normal((2, 3, 5)).astype(np.float32) for _ in range(2))
    wide = c if c.ndim == 3 else c[:, None, None]
    data = select("SELECT", condition, x.shape, y.shape)
    check(data, [c, x, y], [np.where(wide, x, y)], device=device, precision="fp32")


def test_select_takes_a_scalar_condition(device, rng):
    x, y = (rng.standard_normal((3, 5)).astype(np.float32) for _ in range(2))
    m = ModelMaker()
    inputs = [m.constant(np.bool_(True)), m.input("x", x.shape), m.input("y", y.shape)]
    m.output(m.op("SELECT", inputs, x.shape, dtype=np.float32))
    check(m.build(), [x, y], [x], device=device, precision="fp32")


@hypothesis.given(
    drawn=st.lists(
        st.tuples(st.integers(1, 4), st.booleans(), st.booleans()), min_size=1, max_size=4
    )
)
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_broadcast_agrees_with_numpy(device, rng, drawn):
    a = tuple(size if flag else 1 for size, flag, _ in drawn)
    b = tuple(size if flag else 1 for size, _, flag in drawn)
    c, x, y = bits(rng, a), *(rng.standard_normal(s).astype(np.float32) for s in (b, a))
    check(
        select("SELECT_V2", a, b, a), [c, x, y], [np.where(c, x, y)], device=device,
        precision="fp32",
    )  # fmt: skip


def test_different_types_are_refused():
    m = ModelMaker()
    inputs = [m.input("c", (4,), bool), m.input("x", (4,)), m.input("y", (4,), np.int32)]
    m.output(m.op("SELECT_V2", inputs, (4,), dtype=np.float32))
    check_refused(m.build(), "the inputs have different types")


def test_condition_of_another_type_is_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.int32)
    m.output(m.op("SELECT", [x, x, x], (4,)))
    check_refused(m.build(), "the condition is int32; supported: bool")


@pytest.mark.parametrize("name", ["SELECT", "SELECT_V2"])
def test_half_numbers_are_selected(device, rng, name):
    condition = bits(rng, (3, 17))
    x, y = (rng.normal(0, 3, (3, 17)).astype(np.float16) for _ in range(2))
    check_halves(
        lambda m, inputs: [m.op(name, inputs, x.shape, dtype=np.float16)],
        [condition, x, y], [np.where(condition, x, y).astype(np.float64)], device,
    )  # fmt: skip

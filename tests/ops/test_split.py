"""SPLIT, SPLIT_V and UNPACK."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, axis, number of parts
SPLITS = [
    ((6,), 0, 3),
    ((5, 6), -1, 2),
    ((4, 5), 0, 2),
    ((3, 5, 8), 2, 2),  # multiples of four: wide units
    ((2, 3, 4, 5), 1, 3),
    ((1, 2, 3, 2, 5), -2, 2),
    ((3, 4), 1, 1),
]
# shape, axis, sizes
SIZES = [
    ((7,), 0, (3, 4)),
    ((5, 7), 1, (1, 5, 1)),
    ((3, 5, 7), -2, (2, -1)),
    ((2, 3, 12), 2, (4, 8)),
]
# shape, axis
UNPACKS = [((3,), 0), ((3, 5), 1), ((2, 3, 4), -2), ((2, 3, 4, 5), 0)]


def _replaced(shape, axis, size):
    axis %= len(shape)
    return (*shape[:axis], size, *shape[axis + 1 :])


def _split(axis, parts):
    def add(m, x):
        shape = m.shape(x)
        shapes = [_replaced(shape, axis, shape[axis] // parts)] * parts
        axis_input = m.constant(np.int32(axis))
        return m.op("SPLIT", [axis_input, x], shapes, num_splits=parts)

    return add


def _split_v(axis, sizes):
    def add(m, x):
        shape = m.shape(x)
        rest = shape[axis] - sum(s for s in sizes if s != -1)
        shapes = [_replaced(shape, axis, rest if s == -1 else s) for s in sizes]
        inputs = [x, m.constant(np.array(sizes, np.int32)), m.constant(np.int32(axis))]
        return m.op("SPLIT_V", inputs, shapes, num_splits=len(sizes))

    return add


def _unpack(axis):
    def add(m, x):
        shape = m.shape(x)
        left = tuple(np.delete(shape, axis))
        return m.op("UNPACK", [x], [left] * shape[axis], num=shape[axis], axis=axis)

    return add


@pytest.mark.parametrize(("shape", "axis", "parts"), SPLITS)
def test_split_makes_equal_parts(shape, axis, parts, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(
        _split(axis, parts),
        lambda x: np.split(x, parts, axis),
        x,
        device=device,
        precision=precision,
    )


@pytest.mark.parametrize(("shape", "axis", "sizes"), SIZES)
def test_split_v_makes_parts_of_the_sizes(shape, axis, sizes, rng, device, precision):
    x = random_array(rng, shape)
    rest = shape[axis] - sum(s for s in sizes if s != -1)
    ends = np.cumsum([rest if s == -1 else s for s in sizes])[:-1]
    check_moves(
        _split_v(axis, sizes),
        lambda x: np.split(x, ends, axis),
        x,
        device=device,
        precision=precision,
    )


@pytest.mark.parametrize(("shape", "axis"), UNPACKS)
def test_unpack_drops_the_axis(shape, axis, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(
        _unpack(axis),
        lambda x: list(np.moveaxis(x, axis, 0)),
        x,
        device=device,
        precision=precision,
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (3, 6), dtype)
    # The stock SPLIT knows fewer types.
    known = dtype not in (np.bool_, np.int64)
    check_moves(_split(1, 2), lambda x: np.split(x, 2, 1), x, device=device, reference=known)


def test_float_becomes_half_and_back(rng, device):
    x = random_array(rng, (3, 10))
    check_converts(_split(1, 2), lambda x: np.split(x, 2, 1), x, device=device)


def test_parts_follow_a_resized_axis(rng, device):
    m = ModelMaker()
    m.output(*_split(0, 2)(m, m.input("x", (2, 3))))
    value = random_array(rng, (6, 3))
    wanted = np.split(value, 2)
    check(m.build(), [value], wanted, device=device, precision="fp32", resize={0: (6, 3)})


@given(
    before=st.lists(st.integers(1, 3), max_size=2),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    behind=st.lists(st.integers(1, 5), max_size=2),
)
@settings(max_examples=EXAMPLES)
def test_any_sizes_along_any_axis(before, sizes, behind, device):
    shape, axis = (*before, sum(sizes), *behind), len(before)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    check_moves(
        _split_v(axis, sizes), lambda x: np.split(x, np.cumsum(sizes)[:-1], axis), x, device=device
    )


def test_axis_that_does_not_divide_is_refused():
    m = ModelMaker()
    x = m.input("x", (3, 5))
    m.output(*m.op("SPLIT", [m.constant(np.int32(1)), x], [(3, 2), (3, 3)], num_splits=2))
    check_refused(m.build(), "axis 1 of [3, 5] does not divide into 2 equal parts")


def test_axis_at_run_time_is_refused():
    m = ModelMaker()
    x, axis = m.input("x", (2, 3)), m.input("axis", (MANY,), np.int32)
    m.output(*m.op("SPLIT", [axis, x], [(1, 3)] * 2, dtype=np.float32, num_splits=2))
    check_refused(m.build(), "the axis is computed at run time")


def test_axis_outside_of_the_input_is_refused():
    m = ModelMaker()
    x = m.input("x", (2, 3))
    m.output(*m.op("SPLIT", [m.constant(np.int32(2)), x], [(1, 3)] * 2, num_splits=2))
    check_refused(m.build(), "the axis is 2; supported: -2 to 1")


def test_unpacked_axis_outside_of_the_input_is_refused():
    m = ModelMaker()
    m.output(*m.op("UNPACK", [m.input("x", (2, 3))], [(3,)] * 2, num=2, axis=2))
    check_refused(m.build(), "the axis is 2; supported: -2 to 1")


def test_sizes_at_run_time_are_refused():
    m = ModelMaker()
    x, sizes = m.input("x", (2, 3)), m.input("sizes", (MANY,), np.int32)
    m.output(*m.op("SPLIT_V", [x, sizes, m.constant(np.int32(1))], [(2, 1), (2, 2)], num_splits=2))
    check_refused(m.build(), "the tensor of sizes is computed at run time")


def test_two_unknown_sizes_are_refused():
    m = ModelMaker()
    m.output(*_split_v(1, (-1, -1))(m, m.input("x", (2, 3))))
    check_refused(m.build(), "more than one size is -1")


def test_negative_size_is_refused():
    m = ModelMaker()
    inputs = [
        m.input("x", (2, 3)),
        m.constant(np.array([-2, 5], np.int32)),
        m.constant(np.int32(1)),
    ]
    m.output(*m.op("SPLIT_V", inputs, [(2, 1), (2, 2)], num_splits=2))
    check_refused(m.build(), "a size is -2")


def test_sizes_for_another_number_of_outputs_are_refused():
    m = ModelMaker()
    inputs = [m.input("x", (2, 3)), m.constant(np.array([3], np.int32)), m.constant(np.int32(1))]
    m.output(*m.op("SPLIT_V", inputs, [(2, 1), (2, 2)], num_splits=2))
    check_refused(m.build(), "there are 1 sizes for 2 outputs")

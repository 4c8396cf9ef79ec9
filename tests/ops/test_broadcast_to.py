"""BROADCAST_TO."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, new shape
CASES = [
    ((1,), (7,)),
    ((5,), (3, 5)),
    ((8,), (3, 5, 8)),  # whole rows: wide units
    ((3, 1), (3, 7)),
    ((1, 3, 1, 5), (2, 3, 7, 5)),
    ((3, 1, 5), (2, 3, 3, 5)),
    ((2, 1, 3, 1, 2, 1), (2, 3, 3, 2, 2, 3)),
    ((2, 1, 3, 2, 1, 1, 2), (2, 2, 3, 2, 1, 3, 2)),  # more axes than kernels have
    ((1, 3, 1, 1, 2, 2, 1, 1), (2, 3, 2, 3, 2, 2, 1, 1)),
]


def test_axes_that_do_not_merge_are_refused():
    m = ModelMaker()
    shape, new = (2, 1, 2, 1, 2, 1, 2), (2, 2, 2, 2, 2, 2, 2)
    m.output(_broadcast(new)(m, m.input("x", shape)))
    check_refused(m.build(), "is a broadcast along 7 axes after neighbours are merged")


def _broadcast(shape, dtype=np.int32):
    def add(m, x):
        return m.op(
            "BROADCAST_TO", [x, m.constant(np.array(shape, dtype))], tuple(shape), version=2
        )

    return add


@pytest.mark.parametrize(("shape", "new"), CASES)
def test_axes_of_size_1_are_repeated(shape, new, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(
        _broadcast(new), lambda x: np.broadcast_to(x, new), x, device=device, precision=precision
    )


def test_a_scalar_is_repeated(rng, device):
    def add(m, x):
        return _broadcast((3, 5))(m, m.op("RESHAPE", [x], ()))

    x = random_array(rng, (1,))
    check_moves(add, lambda x: np.broadcast_to(x, (3, 5)), x, device=device)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (3, 1), dtype)
    add = _broadcast((3, 5), np.int64)
    check_moves(add, lambda x: np.broadcast_to(x, (3, 5)), x, device=device)


def test_float_becomes_half_and_back(rng, device):
    x = random_array(rng, (3, 1))
    check_converts(_broadcast((3, 5)), lambda x: np.broadcast_to(x, (3, 5)), x, device=device)


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_shape_to_any_that_fits(data, device):
    new = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rank = data.draw(st.integers(1, len(new)))
    keep = data.draw(st.lists(st.booleans(), min_size=rank, max_size=rank))
    shape = [n if kept else 1 for n, kept in zip(new[-rank:], keep)]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    check_moves(_broadcast(new), lambda x: np.broadcast_to(x, new), x, device=device)


def test_shape_that_does_not_fit_is_refused():
    m = ModelMaker()
    m.output(_broadcast((3, 5))(m, m.input("x", (3, 2))))
    check_refused(m.build(), "[3, 2] does not broadcast to [3, 5]")


def test_shape_at_run_time_is_refused():
    m = ModelMaker()
    x, new = m.input("x", (1, 3)), m.input("shape", (MANY,), np.int32)
    m.output(m.op("BROADCAST_TO", [x, new], (2, 3), version=2))
    check_refused(m.build(), "the new shape is computed at run time")


def test_shape_of_fewer_axes_is_refused():
    m = ModelMaker()
    m.output(_broadcast((3,))(m, m.input("x", (1, 3))))
    check_refused(m.build(), "the new shape has fewer axes than the input")


def test_negative_size_is_refused():
    m = ModelMaker()
    x = m.input("x", (3,))
    new = m.constant(np.array([-1, 3], np.int32))
    m.output(m.op("BROADCAST_TO", [x, new], (2, 3), version=2))
    check_refused(m.build(), "a size of the new shape is -1; supported: 0 and more")

"""TILE."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, multiples
CASES = [
    ((5,), (3,)),
    ((3, 5), (1, 1)),
    ((3, 5), (2, 3)),
    ((3, 8), (2, 1)),  # rows as a whole: wide units
    ((1, 7, 3), (3, 1, 2)),
    ((2, 1, 3, 5), (1, 3, 2, 1)),
    ((2, 3, 1, 2, 3), (2, 1, 2, 3, 2)),
    ((2, 1, 3, 1, 2, 3), (2, 2, 1, 3, 2, 2)),
]


def _tile(multiples, dtype=np.int32):
    def add(m, x):
        shape = tuple(int(n) for n in np.multiply(m.shape(x), multiples))
        return m.op("TILE", [x, m.constant(np.array(multiples, dtype))], shape)

    return add


@pytest.mark.parametrize(("shape", "multiples"), CASES)
def test_axes_are_repeated(shape, multiples, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(
        _tile(multiples), lambda x: np.tile(x, multiples), x, device=device, precision=precision
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (3, 5), dtype)
    # The stock kernel does not know int16.
    add = _tile((2, 3), np.int64)
    check_moves(
        add, lambda x: np.tile(x, (2, 3)), x, device=device, reference=dtype is not np.int16
    )


def test_float_becomes_half_and_back(rng, device):
    x = random_array(rng, (3, 5))
    check_converts(_tile((2, 3)), lambda x: np.tile(x, (2, 3)), x, device=device)


def test_output_follows_a_resized_axis(rng, device):
    m = ModelMaker()
    m.output(_tile((2, 1))(m, m.input("x", (1, 3))))
    value = random_array(rng, (4, 3))
    wanted = [np.tile(value, (2, 1))]
    check(m.build(), [value], wanted, device=device, precision="fp32", resize={0: (4, 3)})


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_multiples_of_any_shape(data, device):
    rank = data.draw(st.integers(1, 4))
    sizes = st.lists(st.integers(1, 4), min_size=rank, max_size=rank)
    shape, multiples = data.draw(sizes), data.draw(sizes)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    check_moves(_tile(multiples), lambda x: np.tile(x, multiples), x, device=device)


def test_multiples_at_run_time_are_refused():
    m = ModelMaker()
    x, multiples = m.input("x", (2, 3)), m.input("multiples", (MANY,), np.int32)
    m.output(m.op("TILE", [x, multiples], (4, 3)))
    check_refused(m.build(), "the tensor of multiples is computed at run time")


def test_multiples_of_another_rank_are_refused():
    m = ModelMaker()
    x = m.input("x", (2, 3))
    m.output(m.op("TILE", [x, m.constant(np.array([2], np.int32))], (4, 3)))
    check_refused(m.build(), "there is not one multiple per axis of the input")


def test_negative_multiple_is_refused():
    m = ModelMaker()
    x = m.input("x", (2, 3))
    m.output(m.op("TILE", [x, m.constant(np.array([2, -1], np.int32))], (4, 3)))
    check_refused(m.build(), "a multiple is -1")

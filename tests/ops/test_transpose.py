"""TRANSPOSE."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, permutation
CASES = [
    ((7,), (0,)),
    ((3, 5), (1, 0)),
    ((65, 33), (1, 0)),  # several tiles, none of them full
    ((32, 64), (1, 0)),
    ((2, 3, 5, 7), (0, 3, 1, 2)),
    ((2, 7, 3, 5), (0, 2, 3, 1)),
    ((3, 1, 17, 40), (0, 1, 3, 2)),
    ((2, 3, 5, 8), (0, 2, 1, 3)),  # the last axis stays: wide units
    ((3, 5, 7), (2, 1, 0)),
    ((1, 1, 1), (2, 0, 1)),
    ((2, 3, 2, 3, 2), (4, 2, 0, 3, 1)),
    ((3, 2, 3, 2, 3, 2), (1, 3, 5, 0, 2, 4)),
]


def _add(perm):
    def add(m, x):
        shape = tuple(m.shape(x)[axis] for axis in perm)
        return m.op("TRANSPOSE", [x, m.constant(np.array(perm, np.int32))], shape)

    return add


def _transpose(perm):
    return lambda x: np.transpose(x, perm)


@pytest.mark.parametrize(("shape", "perm"), CASES)
def test_axes_come_in_the_order_of_the_permutation(shape, perm, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(_add(perm), _transpose(perm), x, device=device, precision=precision)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (2, 3, 5), dtype)
    check_moves(_add((0, 2, 1)), _transpose((0, 2, 1)), x, device=device)


def test_float_becomes_half_and_back(rng, device):
    x = random_array(rng, (3, 5, 7))
    check_converts(_add((0, 2, 1)), _transpose((0, 2, 1)), x, device=device)


def test_negative_axes_count_from_the_back(rng, device):
    x = random_array(rng, (2, 3, 5, 7))
    add, move = _add((0, -1, 1, 2)), _transpose((0, 3, 1, 2))
    check_moves(add, move, x, device=device, reference=False)


def test_shape_follows_a_resized_batch(rng, device):
    m = ModelMaker()
    x = m.input("x", (1, 3, 5))
    m.output(_add((0, 2, 1))(m, x))
    value = random_array(rng, (4, 3, 5))
    check(
        m.build(),
        [value],
        [value.transpose(0, 2, 1)],
        device=device,
        precision="fp32",
        resize={0: (4, 3, 5)},
    )


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_permutation_of_any_rank(data, device):
    rank = data.draw(st.integers(2, 6))
    shape = data.draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    perm = data.draw(st.permutations(range(rank)))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    check_moves(_add(perm), _transpose(perm), x, device=device)


def test_permutation_at_run_time_is_refused():
    m = ModelMaker()
    x, perm = m.input("x", (2, 3)), m.input("perm", (MANY,), np.int32)
    m.output(m.op("TRANSPOSE", [x, perm], (3, 2)))
    check_refused(m.build(), "the permutation is computed at run time")


def test_permutation_that_repeats_an_axis_is_refused():
    m = ModelMaker()
    m.output(_add((0, 0))(m, m.input("x", (2, 3))))
    check_refused(m.build(), "the permutation does not name every axis once")


def test_permutation_of_another_rank_is_refused():
    m = ModelMaker()
    m.output(_add((1, 0))(m, m.input("x", (2, 3, 1))))
    check_refused(m.build(), "the permutation has 2 axes, the input 3")

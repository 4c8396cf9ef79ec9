"""REVERSE_V2."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, axes
CASES = [
    ((7,), (0,)),
    ((3, 5), (1,)),
    ((3, 8), (0,)),  # rows as a whole: wide units
    ((3, 5, 7), (1,)),
    ((2, 3, 5, 7), (3,)),
    ((2, 3, 2, 3, 2, 3), (2,)),
]
# The stock kernel takes one axis, or some that follow each other.
SEVERAL = [((3, 5, 7), (0, 2)), ((2, 3, 5, 7), (1, -1)), ((3, 5), (0, 1))]


def _reverse(axes):
    def add(m, x):
        return m.op("REVERSE_V2", [x, m.constant(np.array(axes, np.int32))], m.shape(x))

    return add


@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_the_axis_is_turned_round(shape, axes, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(_reverse(axes), lambda x: np.flip(x, axes), x, device=device, precision=precision)


@pytest.mark.parametrize(("shape", "axes"), SEVERAL)
def test_several_axes_are_turned_round(shape, axes, rng, device):
    x = random_array(rng, shape)
    check_moves(_reverse(axes), lambda x: np.flip(x, axes), x, device=device, reference=False)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (3, 5), dtype)
    check_moves(_reverse((1,)), lambda x: np.flip(x, 1), x, device=device)


def test_float_becomes_half_and_back(rng, device):
    x = random_array(rng, (3, 5))
    check_converts(_reverse((1,)), lambda x: np.flip(x, 1), x, device=device)


def test_output_follows_a_resized_axis(rng, device):
    m = ModelMaker()
    m.output(_reverse((0,))(m, m.input("x", (1, 3))))
    value = random_array(rng, (4, 3))
    check(m.build(), [value], [value[::-1]], device=device, precision="fp32", resize={0: (4, 3)})


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_axes_of_any_shape(data, device):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    add = _reverse(sorted(axes))
    check_moves(add, lambda x: np.flip(x, tuple(axes)), x, device=device, reference=False)


def test_axes_at_run_time_are_refused():
    m = ModelMaker()
    x, axes = m.input("x", (2, 3)), m.input("axes", (MANY,), np.int32)
    m.output(m.op("REVERSE_V2", [x, axes], (2, 3)))
    check_refused(m.build(), "the tensor of axes is computed at run time")


def test_axis_outside_of_the_input_is_refused():
    m = ModelMaker()
    m.output(_reverse((2,))(m, m.input("x", (2, 3))))
    check_refused(m.build(), "the axis is 2; supported: -2 to 1")


def test_axis_named_twice_is_refused():
    m = ModelMaker()
    m.output(_reverse((1, -1))(m, m.input("x", (2, 3))))
    check_refused(m.build(), "axis 1 is named twice")

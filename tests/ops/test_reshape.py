"""The views: RESHAPE, SQUEEZE and EXPAND_DIMS."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, check, check_refused
from tests.ops.movement import TYPES, check_moves, random_array
from tests.runtimes import make_interpreter

# shape, new shape as given, shape of the result
RESHAPES = [
    ((6,), (2, 3), (2, 3)),
    ((2, 3, 5), (5, -1), (5, 6)),
    ((1, 7), (-1,), (7,)),
    ((3, 1, 5), (1, 3, 1, 5, 1, 1), (1, 3, 1, 5, 1, 1)),
    ((2, 3, 2, 3, 2, 3), (-1, 6), (36, 6)),
]
SQUEEZES = [
    ((1, 3, 1, 5), (), (3, 5)),
    ((1, 3, 1, 5), (0,), (3, 1, 5)),
    ((1, 3, 1, 5, 1), (2, -1), (1, 3, 5)),
]
EXPANSIONS = [((3, 5), 0, (1, 3, 5)), ((3, 5), -1, (3, 5, 1)), ((3, 5), 1, (3, 1, 5))]


def _reshape(new, result, given_as):
    def add(m, x):
        if given_as == "input":
            return m.op("RESHAPE", [x, m.constant(np.array(new, np.int32))], result)
        return m.op("RESHAPE", [x], result, new_shape=list(new))

    return add


@pytest.mark.parametrize("given_as", ["input", "parameter"])
@pytest.mark.parametrize(("shape", "new", "result"), RESHAPES)
def test_reshape_keeps_the_order_of_elements(shape, new, result, given_as, rng, device, precision):
    x = random_array(rng, shape)
    add = _reshape(new, result, given_as)
    check_moves(add, lambda x: x.reshape(result), x, device=device, precision=precision)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_is_viewed(dtype, rng, device):
    x = random_array(rng, (3, 5), dtype)
    check_moves(_reshape((5, 3), (5, 3), "input"), lambda x: x.reshape(5, 3), x, device=device)


def test_a_parameter_of_zero_means_a_scalar(rng, device):
    x = random_array(rng, (1, 1))
    check_moves(_reshape((0,), (), "parameter"), lambda x: x.reshape(()), x, device=device)


def test_views_of_views_lie_between_kernels(rng, device, precision):
    m = ModelMaker()
    x = m.input("x", (2, 3, 4))
    y = m.op("NEG", [x], (2, 3, 4))
    y = _reshape((6, 4), (6, 4), "input")(m, y)
    y = m.op("EXPAND_DIMS", [y, m.constant(np.int32(0))], (1, 6, 4))
    m.output(m.op("NEG", [y], (1, 6, 4)), y)
    value = random_array(rng, (2, 3, 4))
    wanted = [value.reshape(1, 6, 4), -value.reshape(1, 6, 4)]
    check(m.build(), [value], wanted, device=device, precision=precision)


@pytest.mark.parametrize(("shape", "axes", "result"), SQUEEZES)
def test_squeeze_drops_axes_of_size_1(shape, axes, result, rng, device):
    def add(m, x):
        return m.op("SQUEEZE", [x], result, squeeze_dims=list(axes))

    check_moves(add, lambda x: x.reshape(result), random_array(rng, shape), device=device)


@pytest.mark.parametrize(("shape", "axis", "result"), EXPANSIONS)
def test_expand_dims_adds_an_axis_of_size_1(shape, axis, result, rng, device):
    def add(m, x):
        return m.op("EXPAND_DIMS", [x, m.constant(np.array([axis], np.int32))], result)

    x = random_array(rng, shape)
    check_moves(add, lambda x: np.expand_dims(x, axis), x, device=device)


def test_unknown_size_follows_a_resized_batch(rng, device):
    m = ModelMaker()
    m.output(_reshape((-1, 6), (1, 6), "input")(m, m.input("x", (1, 2, 3))))
    value = random_array(rng, (4, 2, 3))
    wanted = [value.reshape(4, 6)]
    check(m.build(), [value], wanted, device=device, precision="fp32", resize={0: (4, 2, 3)})


def test_shape_that_a_resized_batch_does_not_fill_is_an_error(runtime):
    m = ModelMaker()
    m.output(_reshape((1, 6), (1, 6), "input")(m, m.input("x", (1, 2, 3))))
    delegate = clgpu_delegate.load(warm_up=False)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    interpreter.resize_tensor_input(0, [4, 2, 3])
    with pytest.raises(RuntimeError, match=r"\[4, 2, 3\] has 24 elements"):
        interpreter.allocate_tensors()


def test_shape_at_run_time_is_refused():
    m = ModelMaker()
    x, new = m.input("x", (2, 3)), m.input("shape", (MANY,), np.int32)
    m.output(m.op("RESHAPE", [x, new], (3, 2)))
    check_refused(m.build(), "the new shape is computed at run time")


def test_two_unknown_sizes_are_refused():
    m = ModelMaker()
    m.output(_reshape((-1, -1), (3, 2), "input")(m, m.input("x", (2, 3))))
    check_refused(m.build(), "the new shape contains -1 more than once")


def test_negative_size_is_refused():
    m = ModelMaker()
    m.output(_reshape((-2, 3), (2, 3), "input")(m, m.input("x", (2, 3))))
    check_refused(m.build(), "a size of the new shape is -2; supported: -1 and more")


def test_axis_outside_of_the_input_is_refused():
    m = ModelMaker()
    m.output(m.op("SQUEEZE", [m.input("x", (1, 3))], (3,), squeeze_dims=[2]))
    check_refused(m.build(), "the axis is 2; supported: -2 to 1")


def test_new_axis_at_run_time_is_refused():
    m = ModelMaker()
    x, axis = m.input("x", (2, 3)), m.input("axis", (MANY,), np.int32)
    m.output(m.op("EXPAND_DIMS", [x, axis], (1, 2, 3)))
    check_refused(m.build(), "the axis is computed at run time")


def test_new_axis_outside_of_the_output_is_refused():
    m = ModelMaker()
    x = m.input("x", (2, 3))
    m.output(m.op("EXPAND_DIMS", [x, m.constant(np.int32(3))], (2, 3, 1)))
    check_refused(m.build(), "the axis is 3; supported: -3 to 2")

"""ONE_HOT."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, check, check_refused
from tests.ops.movement import TYPES

# shape of the indices, depth, axis
CASES = [((7,), 5, -1), ((7,), 5, 0), ((3, 5), 4, 1), ((2, 3, 5), 1, 2), ((2, 3, 2, 3), 3, -1)]


def _model(shape, depth, axis, on=1.0, off=0.0, dtype=np.float32, index_type=np.int32):
    m = ModelMaker()
    indices = m.input("indices", shape, index_type)
    at = axis % (len(shape) + 1)
    constants = [m.constant(np.array(v, dtype)) for v in (on, off)]
    inputs = [indices, m.constant(np.int32(depth)), *constants]
    m.output(m.op("ONE_HOT", inputs, (*shape[:at], depth, *shape[at:]), dtype=dtype, axis=axis))
    return m.build()


def _one_hot(indices, depth, axis, on=1.0, off=0.0):
    at = axis % (indices.ndim + 1)
    places = np.arange(depth).reshape(-1, *[1] * (indices.ndim - at))
    return np.where(np.expand_dims(indices, at) == places, on, off)


def _indices(rng, shape, depth, dtype=np.int32):
    return rng.integers(-1, depth + 1, shape, dtype)  # some are outside, where there is no one


@pytest.mark.parametrize(("shape", "depth", "axis"), CASES)
def test_on_is_where_the_index_says(shape, depth, axis, rng, device, precision):
    indices = _indices(rng, shape, depth)
    check(
        _model(shape, depth, axis, 2.5, -0.5),
        [indices],
        [_one_hot(indices, depth, axis, 2.5, -0.5)],
        device=device,
        precision=precision,
        half_io=precision == "fp16",
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_on_and_off_may_be_of_any_type(dtype, rng, device):
    indices = _indices(rng, (7,), 5, np.int64)
    check(
        _model((7,), 5, -1, dtype(1), dtype(0), dtype, np.int64),
        [indices],
        [_one_hot(indices, 5, -1, dtype(1), dtype(0))],
        device=device,
        precision="fp32",
        reference=dtype is not np.int16,  # which the stock kernel does not know
    )


def test_on_and_off_may_be_computed_at_run_time(rng, device, precision):
    m = ModelMaker()
    indices, on, off = m.input("i", (3,), np.int32), m.input("on", (1,)), m.input("off", (1,))
    inputs = [indices, m.constant(np.int32(4)), on, m.op("NEG", [off], (1,))]
    m.output(m.op("ONE_HOT", inputs, (3, 4), dtype=np.float32, axis=-1))
    chosen = _indices(rng, (3,), 4)
    values = [chosen, np.array([1.5], np.float32), np.array([0.25], np.float32)]
    wanted = [_one_hot(chosen, 4, -1, 1.5, -0.25)]
    # The stock kernel insists on scalars.
    check(m.build(), values, wanted, device=device, precision=precision, reference=False)


def test_output_follows_resized_indices(rng, device):
    indices = _indices(rng, (5,), 3)
    wanted = [_one_hot(indices, 3, -1)]
    model = _model((1,), 3, -1)
    check(model, [indices], wanted, device=device, precision="fp32", resize={0: (5,)})


def _refused(reason, depth=3, axis=-1, on=1.0, off=0.0, index_type=np.int32):
    m = ModelMaker()
    inputs = [m.input("indices", (2,), index_type), m.constant(np.int32(depth))]
    inputs += [m.constant(v) for v in (on, off)]
    m.output(m.op("ONE_HOT", inputs, (2, 3), dtype=np.float32, axis=axis))
    check_refused(m.build(), reason)


def test_depth_at_run_time_is_refused():
    m = ModelMaker()
    inputs = [m.input("indices", (2,), np.int32), m.input("depth", (MANY,), np.int32)]
    inputs += [m.constant(np.float32(v)) for v in (1, 0)]
    m.output(m.op("ONE_HOT", inputs, (2, 3), dtype=np.float32, axis=-1))
    check_refused(m.build(), "the depth is computed at run time")


def test_negative_depth_is_refused():
    _refused("the depth is -3", depth=-3, on=np.float32(1), off=np.float32(0))


def test_axis_outside_of_the_output_is_refused():
    reason = "the axis is 2; supported: -1 to 1"
    _refused(reason, axis=2, on=np.float32(1), off=np.float32(0))


def test_values_of_different_types_are_refused():
    _refused("the values on and off differ in type", on=np.float32(1), off=np.int32(0))


def test_values_of_several_elements_are_refused():
    one, two = np.float32(0), np.zeros(2, np.float32)
    for on, off in ((two, one), (one, two)):
        _refused("the value on or off is not a scalar", on=on, off=off)


def test_indices_of_another_type_are_refused():
    values = {"on": np.float32(1), "off": np.float32(0)}
    _refused("the tensor of indices is uint8", index_type=np.uint8, **values)

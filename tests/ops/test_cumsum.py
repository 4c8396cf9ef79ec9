"""CUMSUM: running sums along one axis."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused

# Shape and axis; all of them make one model. Lines of more than a work-group and more than two.
CASES = [
    ((1,), 0),
    ((7,), -1),
    ((3, 5), 0),
    ((3, 5), 1),
    ((2, 3, 17), 1),
    ((2, 33, 1, 3), -3),
    ((2, 1, 3, 2, 1, 5), 3),
    ((2, 65), 1),
    ((300, 2), 0),
]
MODES = [(False, False), (False, True), (True, False), (True, True)]


def reference(x, axis, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    y = np.cumsum(x, axis, dtype=x.dtype)
    y = y - x if exclusive else y
    return np.flip(y, axis) if reverse else y


def all_cases(dtype, exclusive, reverse, cases=CASES):
    m = ModelMaker()
    for i, (shape, axis) in enumerate(cases):
        inputs = [m.input(f"x{i}", shape, dtype), m.constant(np.array(axis, np.int32))]
        m.output(m.op("CUMSUM", inputs, shape, exclusive=exclusive, reverse=reverse))
    return m.build()


@pytest.mark.parametrize(("exclusive", "reverse"), MODES)
def test_floats(exclusive, reverse, device, precision, rng):
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape, _ in CASES]
    expected = [
        reference(x.astype(np.float64), axis, exclusive, reverse)
        for x, (_, axis) in zip(inputs, CASES)
    ]
    model = all_cases(np.float32, exclusive, reverse)
    check(model, inputs, expected, device=device, precision=precision, accumulation=300)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("exclusive", "reverse"), MODES[1:3])
def test_integers(exclusive, reverse, dtype, device, rng):
    inputs = [rng.integers(-1000, 1000, shape, dtype=dtype) for shape, _ in CASES]
    expected = [reference(x, axis, exclusive, reverse) for x, (_, axis) in zip(inputs, CASES)]
    model = all_cases(dtype, exclusive, reverse)
    check(model, inputs, expected, device=device, precision="fp32")


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    data=st.data(),
    seed=st.integers(0),
)
def test_any_axis(device, shape, data, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(seed).integers(-9, 9, shape, dtype=np.int32)
    model = all_cases(np.int32, False, False, [(shape, axis)])
    check(model, [x], [reference(x, axis, False, False)], device=device, precision="fp32")


def test_an_axis_computed_at_run_time_is_refused():
    m = ModelMaker()
    x, axis = m.input("x", (2, 3)), m.input("axis", (MANY,), np.int32)
    m.output(m.op("CUMSUM", [x, axis], (2, 3)))
    check_refused(m.build(), "the axis is computed at run time")

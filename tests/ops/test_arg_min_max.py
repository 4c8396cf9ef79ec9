"""ARG_MAX and ARG_MIN: the first index of an extreme element."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused, half_exact

FUNCTIONS = {"ARG_MAX": np.argmax, "ARG_MIN": np.argmin}
# Shape and axis; all of them make one model.
CASES = [
    ((1,), 0),
    ((7,), -1),
    ((3, 5), 0),
    ((3, 5), 1),
    ((2, 17, 3), 1),
    ((2, 3, 1, 5), -4),
    ((2, 1, 3, 2, 1, 5), 3),
    ((3, 1001), 1),
    ((257, 3), 0),
]


def all_cases(name, dtype, index, cases=CASES):
    m = ModelMaker()
    for i, (shape, axis) in enumerate(cases):
        inputs = [m.input(f"x{i}", shape, dtype), m.constant(np.array(axis, np.int32))]
        out = np.empty(shape, np.int8).max(axis).shape
        m.output(m.op(name, inputs, out, dtype=index, output_type=index))
    return m.build()


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_floats(name, index, device, precision, rng):
    inputs = [half_exact(rng.standard_normal(shape).astype(np.float32)) for shape, _ in CASES]
    expected = [FUNCTIONS[name](x, axis) for x, (_, axis) in zip(inputs, CASES)]
    check(all_cases(name, np.float32, index), inputs, expected, device=device, precision=precision)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "values"), [(np.int32, 5), (np.bool_, 2), (np.float32, 3)])
def test_the_first_of_equals_is_found(name, dtype, values, device, rng):
    inputs = [rng.integers(0, values, shape).astype(dtype) for shape, _ in CASES]
    expected = [FUNCTIONS[name](x, axis) for x, (_, axis) in zip(inputs, CASES)]
    check(all_cases(name, dtype, np.int32), inputs, expected, device=device, precision="fp32")


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    data=st.data(),
    seed=st.integers(0),
)
def test_any_axis(device, shape, data, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(seed).integers(-9, 9, shape, dtype=np.int32)
    model = all_cases("ARG_MIN", np.int32, np.int32, [(shape, axis)])
    check(model, [x], [np.argmin(x, axis)], device=device, precision="fp32")


def test_an_output_of_another_type_than_the_option_says_is_refused():
    m = ModelMaker()
    x, axis = m.input("x", (2, 3)), m.constant(np.array(1, np.int32))
    m.output(m.op("ARG_MAX", [x, axis], (2,), dtype=np.int32, output_type=np.int64))
    check_refused(m.build(), "the output type is not that of the output")


def test_an_axis_computed_at_run_time_is_refused():
    m = ModelMaker()
    x, axis = m.input("x", (2, 3)), m.input("axis", (MANY,), np.int32)
    m.output(m.op("ARG_MAX", [x, axis], (-1,), dtype=np.int32, output_type=np.int32))
    check_refused(m.build(), "the axis is computed at run time")

"""L2_NORMALIZATION over the last axis."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused

# All shapes of an entry make one model.
CASES = {"short": [(1, 1), (3, 5), (70, 3), (2, 3, 1, 7), (2, 3, 17)], "long": [(2, 1001)]}


def reference(x):
    x = x.astype(np.float64)
    return x / np.maximum(np.sqrt((x**2).sum(-1, keepdims=True)), 1e-6)


def all_cases(shapes):
    m = ModelMaker()
    for i, shape in enumerate(shapes):
        m.output(m.op("L2_NORMALIZATION", [m.input(f"x{i}", shape)], shape))
    return m.build()


@pytest.mark.parametrize("rows", CASES)
def test_rows_have_length_one(rows, device, precision, rng):
    shapes = CASES[rows]
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = [reference(x) for x in inputs]
    terms = shapes[-1][-1]
    model = all_cases(shapes)
    check(model, inputs, expected, device=device, precision=precision, accumulation=terms)


def test_zeros_stay_zeros(device, precision):
    x = np.zeros((3, 5), np.float32)
    check(all_cases([x.shape]), [x], [np.zeros(x.shape)], device=device, precision=precision)


def test_tiny_rows_are_divided_by_epsilon(device):
    x = np.full((2, 4), 1e-7, np.float32)
    check(all_cases([x.shape]), [x], [reference(x)], device=device, precision="fp32")


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    shape=st.lists(st.integers(1, 20), min_size=2, max_size=4).map(tuple), seed=st.integers(0)
)
def test_any_shape(device, shape, seed):
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    model = all_cases([shape])
    check(model, [x], [reference(x)], device=device, precision="fp32", accumulation=shape[-1])


def test_integers_are_refused():
    m = ModelMaker()
    m.output(m.op("L2_NORMALIZATION", [m.input("x", (2, 3), np.int32)], (2, 3)))
    check_refused(m.build(), "input is int32")

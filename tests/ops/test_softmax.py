"""SOFTMAX and LOG_SOFTMAX over the last axis."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.halves import check_halves
from tests.ops.harness import EXAMPLES, check, check_refused

# All shapes of an entry make one model.
CASES = {
    "short": [(1,), (7,), (1, 1), (3, 5), (70, 3), (2, 33), (3, 5, 17), (2, 3, 1, 7), (1, 65)],
    "long": [(2, 1001)],
}


def softmax(x, beta):
    e = np.exp(beta * (x - x.max(-1, keepdims=True)))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def all_cases(name, shapes, **options):
    m = ModelMaker()
    for i, shape in enumerate(shapes):
        m.output(m.op(name, [m.input(f"x{i}", shape)], shape, **options))
    return m.build()


@pytest.mark.parametrize("rows", CASES)
@pytest.mark.parametrize("beta", [1.0, 0.375])
def test_softmax(rows, beta, device, precision, rng):
    shapes = CASES[rows]
    inputs = [2 * rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = [softmax(x.astype(np.float64), beta) for x in inputs]
    model = all_cases("SOFTMAX", shapes, beta=beta)
    check(model, inputs, expected, device=device, precision=precision, accumulation=shapes[-1][-1])


@pytest.mark.parametrize("rows", CASES)
def test_log_softmax(rows, device, precision, rng):
    shapes = CASES[rows]
    inputs = [2 * rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = [log_softmax(x.astype(np.float64)) for x in inputs]
    model = all_cases("LOG_SOFTMAX", shapes)
    check(model, inputs, expected, device=device, precision=precision, accumulation=shapes[-1][-1])


def test_softmax_of_equal_inputs_is_uniform(device, precision):
    x = np.full((3, 33), 7, np.float32)
    expected = [np.full(x.shape, 1 / 33)]
    model = all_cases("SOFTMAX", [x.shape], beta=1.0)
    check(model, [x], expected, device=device, precision=precision)


def test_large_inputs_do_not_overflow(device, precision):
    x = np.array([[30000, 30001, -30000, 29999]], np.float32)
    if precision == "fp16":
        x = np.array([[30000, 30016, -30000, 29984]], np.float32)  # neighbours in half
    expected = [softmax(x.astype(np.float64), 1.0)]
    model = all_cases("SOFTMAX", [x.shape], beta=1.0)
    check(model, [x], expected, device=device, precision=precision)


def test_masked_elements_get_nothing(device, precision):
    x = np.array([[1, -np.inf, 2, -np.inf, 3]] * 2, np.float32)
    expected = [softmax(x.astype(np.float64), 1.0)]
    model = all_cases("SOFTMAX", [x.shape], beta=1.0)
    check(model, [x], expected, device=device, precision=precision)


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    shape=st.lists(st.integers(1, 20), min_size=1, max_size=4).map(tuple), seed=st.integers(0)
)
def test_softmax_of_any_shape(device, shape, seed):
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    expected = [softmax(x.astype(np.float64), 1.0)]
    model = all_cases("SOFTMAX", [shape], beta=1.0)
    check(model, [x], expected, device=device, precision="fp32", accumulation=shape[-1])


def test_integers_are_refused():
    m = ModelMaker()
    m.output(m.op("LOG_SOFTMAX", [m.input("x", (2, 3), np.int32)], (2, 3)))
    check_refused(m.build(), "input is int32")


@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 129)], ids=str)
def test_softmax_of_half(device, rng, shape):
    x = rng.normal(0, 3, shape).astype(np.float16)
    check_halves(
        lambda m, inputs: [m.op("SOFTMAX", inputs, shape, beta=1.0)],
        [x], [softmax(x.astype(np.float64), 1.0)], device,
    )  # fmt: skip

"""TOPK_V2: the largest elements of the last axis, sorted, and where they are."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused, half_exact

# Shape and k; all of them make one model.
CASES = [((1,), 1), ((7,), 7), ((3, 5), 2), ((2, 3, 17), 5), ((1, 2, 1, 33), 1), ((2, 301), 3)]


def reference(x, k):
    indices = np.argsort(-x, axis=-1, kind="stable")[..., :k]
    return [np.take_along_axis(x, indices, -1), indices]


def all_cases(dtype, cases=CASES):
    m = ModelMaker()
    for i, (shape, k) in enumerate(cases):
        out = (*shape[:-1], k)
        inputs = [m.input(f"x{i}", shape, dtype), m.constant(np.array(k, np.int32))]
        m.output(*m.op("TOPK_V2", inputs, [out, out], dtype=[dtype, np.int32]))
    return m.build()


def expect(inputs, cases=CASES):
    return [array for x, (_, k) in zip(inputs, cases) for array in reference(x, k)]


def test_floats(device, precision, rng):
    inputs = [half_exact(rng.standard_normal(shape).astype(np.float32)) for shape, _ in CASES]
    check(all_cases(np.float32), inputs, expect(inputs), device=device, precision=precision)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_equals_keep_their_order(dtype, device, rng):
    inputs = [rng.integers(-2, 2, shape).astype(dtype) for shape, _ in CASES]
    check(all_cases(dtype), inputs, expect(inputs), device=device, precision="fp32")


def test_infinities_and_zeros_of_both_signs(device, precision):
    x = np.array([[-np.inf, 0.0, -0.0, 1, np.inf, -1, -0.0, 0.0, -np.inf]], np.float32)
    cases = [(x.shape, 9)]
    model = all_cases(np.float32, cases)
    check(model, [x], expect([x], cases), device=device, precision=precision)


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(rows=st.integers(1, 5), cols=st.integers(1, 40), data=st.data())
def test_any_k(device, rows, cols, data):
    cases = [((rows, cols), data.draw(st.integers(1, cols)))]
    x = np.random.default_rng(cols).integers(-9, 9, (rows, cols), dtype=np.int32)
    model = all_cases(np.int32, cases)
    check(model, [x], expect([x], cases), device=device, precision="fp32")


@pytest.mark.parametrize("k_type", [np.int32, np.int16])
def test_short_indices(device, rng, k_type):
    m = ModelMaker()
    inputs = [m.input("x", (3, 300)), m.constant(np.array(4, k_type))]
    m.output(*m.op("TOPK_V2", inputs, [(3, 4)] * 2, dtype=[np.float32, np.int16]))
    x = rng.standard_normal((3, 300)).astype(np.float32)
    check(m.build(), [x], reference(x, 4), device=device, precision="fp32")


def test_axes_that_short_indices_cannot_name_are_refused():
    m = ModelMaker()
    inputs = [m.input("x", (1, 40000)), m.constant(np.int32(1))]
    m.output(*m.op("TOPK_V2", inputs, [(1, 1)] * 2, dtype=[np.float32, np.int16]))
    check_refused(m.build(), "is too long for indices of int16")


def test_k_computed_at_run_time_is_refused():
    m = ModelMaker()
    x, k = m.input("x", (2, 3)), m.input("k", (MANY,), np.int32)
    m.output(*m.op("TOPK_V2", [x, k], [(2, -1), (2, -1)], dtype=[np.float32, np.int32]))
    check_refused(m.build(), "k is computed at run time")

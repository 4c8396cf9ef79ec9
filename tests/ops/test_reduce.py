"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY, REDUCE_ALL over any axes."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.limits import needs
from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused


def integer_mean(x, axis, keepdims):
    total = x.astype(np.int64).sum(axis, keepdims=keepdims)
    count = x.size // total.size
    return np.sign(total) * (np.abs(total) // count)  # cut towards zero


FLOAT = {
    "MEAN": np.mean,
    "SUM": np.sum,
    "REDUCE_MAX": np.max,
    "REDUCE_MIN": np.min,
    "REDUCE_PROD": np.prod,
}
INTEGER = {**FLOAT, "MEAN": integer_mean}
BOOLEAN = {"REDUCE_ANY": np.any, "REDUCE_ALL": np.all}
# Shape, axes, keep_dims. All of them make one model.
CASES = [
    ((7,), (0,), False),
    ((5,), (-1,), True),
    ((3, 17), (1,), False),
    ((3, 17), (0,), True),
    ((33, 3), (0, 1), False),
    ((2, 5, 7, 3), (1, 2), False),
    ((2, 5, 7, 3), (1, 2), True),
    ((2, 5, 7, 3), (-1, -3), False),
    ((2, 5, 7, 3), (0, 2), True),
    ((3, 2, 5), (1, 1, -2), False),  # one axis, named three times
    ((2, 1, 5), (1,), False),  # nothing to add up
    ((2, 3, 2, 5, 2, 3), (0, 2, 4), False),
    ((2, 3, 2, 5, 2, 3), (5, 3, 1), True),
    ((1, 3, 1, 7, 1, 2), (0, 4, 3), False),
]
FEW_CASES = [CASES[i] for i in (0, 2, 3, 4, 5)]  # one reduced axis, once merged: few programs


def all_cases(name, dtype, cases=CASES):
    m = ModelMaker()
    for i, (shape, axes, keep) in enumerate(cases):
        out = np.empty(shape, np.int8).max(tuple({a % len(shape) for a in axes}), keepdims=keep)
        inputs = [m.input(f"x{i}", shape, dtype), m.constant(np.array(axes, np.int32))]
        m.output(m.op(name, inputs, out.shape, keep_dims=keep))
    return m.build()


def run_reference(function, inputs, cases=CASES):
    return [
        function(x, axis=tuple({a % x.ndim for a in axes}), keepdims=keep)
        for x, (_, axes, keep) in zip(inputs, cases)
    ]


def draw(rng, shape, name):
    x = rng.standard_normal(shape)
    # Terms near 1: a sum that cancels by chance may have no accurate digit, a product may vanish.
    return (x if name in ("REDUCE_MAX", "REDUCE_MIN") else 1 + 0.25 * x).astype(np.float32)


@pytest.mark.parametrize("name", FLOAT)
def test_floats(name, device, precision, rng):
    inputs = [draw(rng, shape, name) for shape, _, _ in CASES]
    expected = run_reference(FLOAT[name], [x.astype(np.float64) for x in inputs])
    model = all_cases(name, np.float32)
    check(model, inputs, expected, device=device, precision=precision, accumulation=99)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, np.int32) for name in INTEGER), ("MEAN", np.int64), ("REDUCE_MAX", np.int64)],
)
def test_integers(name, dtype, device, rng):
    top = 9 if name == "REDUCE_PROD" else 1000
    inputs = [rng.integers(-top, top, shape, dtype=dtype) for shape, _, _ in FEW_CASES]
    expected = run_reference(INTEGER[name], inputs, FEW_CASES)
    expected = [e.astype(dtype) for e in expected]  # products wrap
    check(all_cases(name, dtype, FEW_CASES), inputs, expected, device=device, precision="fp32")


@pytest.mark.parametrize("name", BOOLEAN)
def test_booleans(name, device, rng):
    inputs = [rng.random(shape) < 0.5 for shape, _, _ in FEW_CASES]
    expected = run_reference(BOOLEAN[name], inputs, FEW_CASES)
    check(all_cases(name, np.bool_, FEW_CASES), inputs, expected, device=device, precision="fp32")


@pytest.mark.parametrize("name", ["SUM", "MEAN"])
def test_long_sums_stay_accurate(name, device):
    needs.long_loops()
    # A single float accumulator would be off by some thousand eps.
    x = np.full((2, 100_001), 0.1, np.float32)
    cases = [(x.shape, (1,), False), (x.T.shape, (0,), False)]
    inputs = [x, x.T.copy()]
    expected = run_reference(FLOAT[name], [x.astype(np.float64) for x in inputs], cases)
    model = all_cases(name, np.float32, cases)
    check(
        model,
        inputs,
        expected,
        device=device,
        precision="fp32",
        accumulation=1000,
        reference=False,
    )


def test_infinities_are_kept(device, precision):
    x = np.array([[1, np.inf, 2], [-np.inf, -np.inf, -np.inf], [3, -np.inf, 4]], np.float32)
    cases = [(x.shape, (1,), False)]
    for name in ("SUM", "REDUCE_MAX", "REDUCE_MIN"):
        expected = run_reference(FLOAT[name], [x.astype(np.float64)], cases)
        model = all_cases(name, np.float32, cases)
        # The runtime takes the lowest finite float for the largest of infinities.
        check(model, [x], expected, device=device, precision=precision, reference=False)


def test_shapes_follow_a_resized_input(device, rng):
    x = draw(rng, (5, 3, 7), "MEAN")
    model = all_cases("MEAN", np.float32, [((1, 3, 7), (1,), False)])
    expected = [x.astype(np.float64).mean(1)]
    check(
        model,
        [x],
        expected,
        device=device,
        precision="fp32",
        accumulation=3,
        resize={0: x.shape},
    )


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=6).map(tuple),
    data=st.data(),
    seed=st.integers(0),
)
def test_any_axes(device, shape, data, seed):
    rank = len(shape)
    axes = tuple(data.draw(st.lists(st.integers(-rank, rank - 1), min_size=1, max_size=rank)))
    cases = [(shape, axes, data.draw(st.booleans()))]
    x = draw(np.random.default_rng(seed), shape, "SUM")
    expected = run_reference(np.sum, [x.astype(np.float64)], cases)
    model = all_cases("SUM", np.float32, cases)
    check(model, [x], expected, device=device, precision="fp32", accumulation=x.size)


def test_axes_computed_at_run_time_are_refused():
    m = ModelMaker()
    x, axes = m.input("x", (2, 3)), m.input("axes", (MANY,), np.int32)
    m.output(m.op("SUM", [x, axes], (-1,)))
    check_refused(m.build(), "the tensor of axes is computed at run time")

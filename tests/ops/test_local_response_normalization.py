"""LOCAL_RESPONSE_NORMALIZATION across neighbouring channels."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused

# Shape, radius, bias, alpha, beta.
CASES = [
    ((1, 1, 1, 1), 1, 1.0, 1.0, 0.5),
    ((1, 3, 5, 7), 2, 1.0, 0.5, 0.75),
    ((2, 3, 1, 17), 5, 2.0, 0.25, 0.5),
    ((2, 3, 3, 3), 7, 1.0, 1.0, 1.0),  # the window is wider than the channels
    ((1, 3, 3, 5), 0, 0.5, 2.0, 0.75),
    ((2, 3, 2, 12), 2, 1.0, 0.5, 0.75),
    ((1, 5, 3, 20), 4, 2.0, 0.25, 0.6),
    ((1, 2, 3, 4), 3, 1.0, 1.0, 0.75),
    ((1, 2, 5, 8), 0, 0.5, 2.0, 0.5),
]


def reference(x, radius, bias, alpha, beta):
    x = x.astype(np.float64)
    channels = range(x.shape[-1])
    near = np.array([[float(abs(i - j) <= radius) for j in channels] for i in channels])
    return x * (bias + alpha * (x**2 @ near)) ** -beta


def one_op(shape, radius, bias, alpha, beta):
    m = ModelMaker()
    options = {"radius": radius, "bias": bias, "alpha": alpha, "beta": beta}
    m.output(m.op("LOCAL_RESPONSE_NORMALIZATION", [m.input("x", shape)], shape, **options))
    return m.build()


# The runtime's reference kernel, unlike its optimised one, leaves out the channel at +radius.
@pytest.mark.parametrize("case", CASES)
def test_channels_are_divided_by_their_neighbourhood(case, device, precision, rng):
    shape, *numbers = case
    x = rng.standard_normal(shape).astype(np.float32)
    expected = [reference(x, *numbers)]
    check(
        one_op(*case),
        [x],
        expected,
        device=device,
        precision=precision,
        accumulation=2 * numbers[0] + 1,
        reference=False,
    )


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(channels=st.integers(1, 20), radius=st.integers(0, 9), seed=st.integers(0))
def test_any_radius(device, channels, radius, seed):
    x = np.random.default_rng(seed).standard_normal((1, 2, 3, channels)).astype(np.float32)
    numbers = radius, 1.0, 0.5, 0.75
    expected = [reference(x, *numbers)]
    check(
        one_op(x.shape, *numbers),
        [x],
        expected,
        device=device,
        precision="fp32",
        accumulation=2 * radius + 1,
        reference=False,
    )


def test_integers_are_refused():
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 3), np.int32)
    m.output(m.op("LOCAL_RESPONSE_NORMALIZATION", [x], (1, 2, 2, 3), radius=1))
    check_refused(m.build(), "input is int32")

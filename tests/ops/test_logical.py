"""LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused

FUNCTIONS = {"LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or}
CASES = [((3, 7), (3, 7)), ((2, 3, 5), (5,)), ((2, 1, 3, 1), (1, 2, 1, 5))]


def bits(rng: np.random.Generator, shape: tuple) -> np.ndarray:
    return rng.integers(0, 2, shape).astype(bool)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("a", "b"), CASES, ids=str)
def test_two_operands_broadcast(device, rng, name, a, b):
    x, y = bits(rng, a), bits(rng, b)
    m = ModelMaker()
    inputs = [m.input("x", a, bool), m.input("y", b, bool)]
    m.output(m.op(name, inputs, np.broadcast_shapes(a, b)))
    check(m.build(), [x, y], [FUNCTIONS[name](x, y)], device=device, precision="fp32")


@hypothesis.given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=6))
@hypothesis.settings(max_examples=EXAMPLES)
def test_not_inverts(device, rng, shape):
    x = bits(rng, tuple(shape))
    m = ModelMaker()
    m.output(m.op("LOGICAL_NOT", [m.input("x", x.shape, bool)], x.shape))
    check(m.build(), [x], [~x], device=device, precision="fp32")


def test_other_types_are_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.int32)
    m.output(m.op("LOGICAL_AND", [x, x], (4,)))
    check_refused(m.build(), "input 0 is int32; supported: bool")

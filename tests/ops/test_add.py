"""ADD, with broadcasting."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact

# Shapes of both operands: the number of axes after merging decides the kernel variant.
CASES = [
    ((1,), (1,)),
    ((7,), (7,)),
    ((2, 3, 17), (2, 3, 17)),
    ((2, 3, 5), (1,)),
    ((2, 3, 5, 8), (8,)),
    ((2, 3, 5, 7), (1, 1, 1, 7)),
    ((2, 1, 1, 4), (2, 3, 5, 4)),
    ((2, 3, 5, 1), (2, 3, 5, 3)),
    ((3, 1), (1, 5)),
    ((2, 3, 1, 5), (1, 3, 4, 1)),
    ((2, 1, 3, 1, 2), (1, 2, 1, 2, 1)),
    ((2, 1, 3, 1, 2, 1), (1, 2, 1, 2, 1, 3)),
    ((2, 1, 3, 1, 2, 1), (1, 2, 1, 2, 1, 4)),
]


def add_model(a: tuple, b: tuple, constant: np.ndarray | None = None, **options) -> bytes:
    """``-(-a + -b)``: in nodes around it, so that fp16 stores operands and sum in half."""
    shape = np.broadcast_shapes(a, b)
    m = ModelMaker()
    x = m.op("NEG", [m.input("a", a)], a)
    y = m.op("NEG", [m.input("b", b)], b) if constant is None else m.constant(-constant)
    m.output(m.op("NEG", [m.op("ADD", [x, y], shape, **options)], shape))
    return m.build()


@pytest.mark.parametrize(("a", "b"), CASES, ids=str)
def test_add_broadcasts(device, precision, rng, a, b):
    x, y = (half_exact(rng.standard_normal(s).astype(np.float32)) for s in (a, b))
    check(add_model(a, b), [x, y], [x.astype(np.float64) + y], device=device, precision=precision)


def test_first_operand_may_be_the_smaller_one(device, rng):
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((5,), (2, 3, 5)))
    check(add_model((5,), (2, 3, 5)), [x, y], [x + y], device=device, precision="fp32")


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3, 6)], ids=str)
def test_operand_may_be_a_constant(device, precision, rng, shape):
    x, y = (half_exact(rng.standard_normal(s).astype(np.float32)) for s in ((2, 3, 6), shape))
    check(add_model((2, 3, 6), shape, y), [x], [x + y], device=device, precision=precision)


def test_both_operands_may_be_one_tensor(device, rng):
    x = rng.standard_normal((3, 5)).astype(np.float32)
    m = ModelMaker()
    a = m.input("x", x.shape)
    m.output(m.op("ADD", [a, a], x.shape))
    check(m.build(), [x], [2.0 * x], device=device, precision="fp32")


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
def test_activation_is_fused(device, rng, activation):
    x, y = (4 * rng.standard_normal((3, 7)).astype(np.float32) for _ in range(2))
    low, high = {"RELU": (0, np.inf), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}[activation]
    data = add_model(x.shape, y.shape, fused_activation_function=activation)
    check(data, [x, y], [-np.clip(-x - y, low, high)], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_added(device, rng, dtype):
    x, y = (rng.integers(-(2**20), 2**20, s, dtype) for s in ((2, 3, 5), (5,)))
    m = ModelMaker()
    m.output(m.op("ADD", [m.input("a", x.shape, dtype), m.input("b", y.shape, dtype)], x.shape))
    check(m.build(), [x, y], [x + y], device=device, precision="fp32")


def test_shapes_may_be_resized(device, rng):
    m = ModelMaker()
    x, y = m.input("x", (-1, 3)), m.input("y", (3,))
    m.output(m.op("ADD", [x, y], (-1, 3)))
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((5, 3), (3,)))
    check(m.build(), [a, b], [a + b], device=device, precision="fp32", resize={0: (5, 3)})


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_broadcast_agrees_with_numpy(device, rng, data):
    rank = data.draw(st.integers(1, 5))
    sizes = st.lists(st.tuples(st.integers(1, 5), st.sampled_from("abd")), min_size=rank)
    drawn = data.draw(sizes)[:rank]
    a = tuple(1 if axis == "b" else size for size, axis in drawn)
    b = tuple(1 if axis == "a" else size for size, axis in drawn)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in (a, b))
    check(add_model(a, b), [x, y], [x + y], device=device, precision="fp32")


def test_fused_activation_that_integers_lack_is_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.int32)
    m.output(m.op("ADD", [x, x], (4,), fused_activation_function="TANH"))
    check_refused(m.build(), "the fused activation is not one of integers")


def test_other_types_are_refused():
    m = ModelMaker()
    x = m.input("x", (4,), np.bool_)
    m.output(m.op("ADD", [x, x], (4,)))
    check_refused(
        m.build(), "input 0 is bool; supported: float32, int32, int64, int8, uint8, int16"
    )

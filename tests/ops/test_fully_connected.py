"""FULLY_CONNECTED: rows of the flattened input times a weights matrix."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused

# Input shape, columns; all of them make one model, every second node has a bias. Rows of 1, few,
# and more than a tile; depths of less than a vector, and more.
CASES = [
    ((1, 3), 5),
    ((1, 33), 17),
    ((2, 7), 1),
    ((3, 65), 7),
    ((9, 5), 3),
    ((33, 17), 33),
    ((70, 35), 67),
    ((70, 40), 68),
    ((2, 3, 1, 5), 7),  # 2 rows of 15
]
# Whole vectors, in two rounds of a work-group.
LONG_CASES = [((1, 1320), 9), ((5, 1048), 6)]
ACTIVATIONS = {
    "RELU": lambda x: np.maximum(x, 0),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
}


def reference(x, weights, bias=None, keep=False):
    y = x.astype(np.float64).reshape(-1, weights.shape[1]) @ weights.astype(np.float64).T
    y = y if bias is None else y + bias
    return y.reshape(*x.shape[:-1], len(weights)) if keep else y


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def one_op(x, weights, bias=None, keep=False, activation="NONE", shape=None):
    m = ModelMaker()
    inputs = [m.input("x", x.shape), m.constant(weights)]
    if bias is not None:
        inputs.append(m.constant(bias))
    shape = shape or reference(x, weights, keep=keep).shape
    options = {"keep_num_dims": keep, "fused_activation_function": activation}
    m.output(m.op("FULLY_CONNECTED", inputs, shape, **options))
    return m.build()


@pytest.mark.parametrize("precision", ["fp32", "fp16", "tf32"])
@pytest.mark.parametrize(("cases", "depth"), [(CASES, 65), (LONG_CASES, 1320)])
def test_rows_times_weights_plus_bias(cases, depth, device, precision, rng):
    m = ModelMaker()
    inputs, expected = [], []
    for i, (shape, cols) in enumerate(cases):
        x, bias = draw(rng, *shape), draw(rng, cols)
        weights = draw(rng, cols, 15 if len(shape) > 2 else shape[-1])
        expected.append(reference(x, weights, bias if i % 2 else None))
        operands = [m.input(f"x{i}", shape), m.constant(weights)]
        operands.append(m.constant(bias) if i % 2 else None)
        m.output(m.op("FULLY_CONNECTED", operands, expected[-1].shape))
        inputs.append(x)
    model = m.build()
    check(model, inputs, expected, device=device, precision=precision, accumulation=depth)


def test_last_axis_is_replaced_where_dimensions_are_kept(device, precision, rng):
    x, weights = draw(rng, 3, 1, 5, 7), draw(rng, 5, 7)
    model = one_op(x, weights, keep=True)
    expected = reference(x, weights, keep=True)
    assert expected.shape == (3, 1, 5, 5)
    check(model, [x], [expected], device=device, precision=precision, accumulation=7)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused_activation(activation, device, rng):
    x, weights, bias = 2 * draw(rng, 3, 9), draw(rng, 5, 9), draw(rng, 5)
    expected = ACTIVATIONS[activation](reference(x, weights, bias))
    model = one_op(x, weights, bias, activation=activation)
    check(model, [x], [expected], device=device, precision="fp32", accumulation=9)


def test_weights_and_bias_computed_at_run_time(device, precision, rng):
    arrays = draw(rng, 5, 17), draw(rng, 7, 17), draw(rng, 7)
    m = ModelMaker()
    inputs = [m.input(f"x{i}", a.shape) for i, a in enumerate(arrays)]
    m.output(m.op("FULLY_CONNECTED", inputs, (5, 7)))
    expected = reference(*arrays)
    check(m.build(), arrays, [expected], device=device, precision=precision, accumulation=17)


@pytest.mark.parametrize(("rows", "cols", "depth"), [(3, 5, 17), (1, 7, 1048), (2, 9, 40)])
def test_half_weights(rows, cols, depth, device, precision, rng):
    x, weights = draw(rng, rows, depth), draw(rng, cols, depth).astype(np.float16)
    m = ModelMaker()
    w = m.op("DEQUANTIZE", [m.constant(weights)], weights.shape, dtype=np.float32)
    m.output(m.op("FULLY_CONNECTED", [m.input("x", x.shape), w], (rows, cols)))
    expected = reference(x, weights)
    check(m.build(), [x], [expected], device=device, precision=precision, accumulation=depth)


def test_rows_follow_a_resized_input(device, precision, rng):
    x, weights = draw(rng, 11, 7), draw(rng, 5, 7)
    model = one_op(x[:1], weights)
    expected = reference(x, weights)
    check(
        model,
        [x],
        [expected],
        device=device,
        precision=precision,
        accumulation=7,
        resize={0: x.shape},
    )


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    rows=st.integers(1, 40), cols=st.integers(1, 40), depth=st.integers(1, 70), seed=st.integers(0)
)
def test_any_size(device, rows, cols, depth, seed):
    rng = np.random.default_rng(seed)
    x, weights = draw(rng, rows, depth), draw(rng, cols, depth)
    expected = reference(x, weights)
    model = one_op(x, weights)
    check(model, [x], [expected], device=device, precision="fp32", accumulation=depth)


def test_shuffled_weights_are_refused():
    m = ModelMaker()
    x, w = m.input("x", (1, 16)), m.input("w", (4, 16), np.uint8)
    options = {"weights_format": "SHUFFLED4x16INT8"}
    m.output(m.op("FULLY_CONNECTED", [x, w], (1, 4), **options))
    check_refused(m.build(), "the weights are shuffled (SHUFFLED4x16INT8)")

"""BATCH_MATMUL: products of matrices, either of them transposed, batches broadcast."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused

# Batches of x, of y, then rows, cols, depth. All of one adjoint pair make one model.
CASES = [
    ((), (), (1, 1, 1)),
    ((), (), (5, 7, 3)),
    ((3,), (3,), (1, 17, 5)),
    ((3,), (3,), (7, 1, 9)),
    ((2,), (), (3, 5, 7)),
    ((), (3,), (9, 10, 11)),
    ((2, 1), (3,), (5, 3, 17)),
    ((1, 3), (2, 1), (3, 18, 2)),
    ((3, 1, 2), (2, 1), (5, 7, 3)),
    ((2, 1, 3), (1, 2, 1), (3, 5, 7)),
    ((), (), (33, 35, 17)),
    ((2,), (2,), (70, 67, 19)),
    ((2,), (2,), (33, 40, 72)),
    ((3,), (), (23, 68, 40)),
    ((), (3,), (40, 18, 66)),
]
ADJOINTS = [(False, False), (False, True), (True, False), (True, True)]


def draw(rng, batches, rows, cols, transposed):
    matrix = (cols, rows) if transposed else (rows, cols)
    return rng.standard_normal((*batches, *matrix)).astype(np.float32)


def reference(x, y, adj_x, adj_y):
    x, y = x.astype(np.float64), y.astype(np.float64)
    return (np.swapaxes(x, -1, -2) if adj_x else x) @ (np.swapaxes(y, -1, -2) if adj_y else y)


def products(pairs, adj_x, adj_y):
    """A model with a product of each pair; also its inputs and outputs."""
    m = ModelMaker()
    inputs, expected = [], []
    for i, (x, y) in enumerate(pairs):
        expected.append(reference(x, y, adj_x, adj_y))
        operands = [m.input(f"x{i}", x.shape), m.input(f"y{i}", y.shape)]
        options = {"adj_x": adj_x, "adj_y": adj_y}
        m.output(m.op("BATCH_MATMUL", operands, expected[-1].shape, **options))
        inputs += [x, y]
    return m.build(), inputs, expected


@pytest.mark.parametrize("precision", ["fp32", "fp16", "tf32"])
@pytest.mark.parametrize(("adj_x", "adj_y"), ADJOINTS)
def test_batches_broadcast_and_either_side_is_transposed(adj_x, adj_y, device, precision, rng):
    pairs = [
        (draw(rng, a, rows, depth, adj_x), draw(rng, b, depth, cols, adj_y))
        for a, b, (rows, cols, depth) in CASES
    ]
    model, inputs, expected = products(pairs, adj_x, adj_y)
    check(model, inputs, expected, device=device, precision=precision, accumulation=72)


@pytest.mark.parametrize(("adj_x", "adj_y"), ADJOINTS)
def test_square_matrices_show_a_missing_transposition(adj_x, adj_y, device, rng):
    pair = draw(rng, (2,), 9, 9, False), draw(rng, (2,), 9, 9, False)
    model, inputs, expected = products([pair], adj_x, adj_y)
    check(model, inputs, expected, device=device, precision="fp32", accumulation=9)


def test_rank_six(device, rng):
    pair = draw(rng, (1, 2, 1, 3), 3, 5, False), draw(rng, (2, 1, 2, 1), 5, 7, False)
    model, inputs, expected = products([pair], False, False)
    assert expected[0].shape == (2, 2, 2, 3, 3, 7)
    # The runtime's own kernels stop at rank 5.
    check(
        model,
        inputs,
        expected,
        device=device,
        precision="fp32",
        accumulation=5,
        reference=False,
    )


@pytest.mark.parametrize("constant", [0, 1])
def test_a_constant_side(constant, device, precision, rng):
    pair = draw(rng, (2,), 5, 17, False), draw(rng, (), 7, 17, False)
    m = ModelMaker()
    sides = [m.constant(a) if i == constant else m.input("x", a.shape) for i, a in enumerate(pair)]
    m.output(m.op("BATCH_MATMUL", sides, (2, 5, 7), adj_y=True))
    check(
        m.build(),
        [pair[1 - constant]],
        [reference(*pair, False, True)],
        device=device,
        precision=precision,
        accumulation=17,
    )


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    sizes=st.tuples(*[st.integers(1, 40)] * 3),
    adj_x=st.booleans(),
    adj_y=st.booleans(),
    seed=st.integers(0),
)
def test_any_size(device, sizes, adj_x, adj_y, seed):
    rng = np.random.default_rng(seed)
    rows, cols, depth = sizes
    pair = draw(rng, (2, 1), rows, depth, adj_x), draw(rng, (3,), depth, cols, adj_y)
    model, inputs, expected = products([pair], adj_x, adj_y)
    check(model, inputs, expected, device=device, precision="fp32", accumulation=depth)


def test_integers_are_refused():
    m = ModelMaker()
    x, y = m.input("x", (2, 3), np.int32), m.input("y", (3, 2), np.int32)
    m.output(m.op("BATCH_MATMUL", [x, y], (2, 2)))
    check_refused(m.build(), "x is int32")


def test_a_product_of_floats_that_is_no_float_is_refused():
    m = ModelMaker()
    x, y = m.input("x", (2, 3)), m.input("y", (3, 2))
    m.output(m.op("BATCH_MATMUL", [x, y], (2, 2), dtype=np.int32))
    check_refused(m.build(), "output is int32")


def test_a_vector_is_refused():
    m = ModelMaker()
    x, y = m.input("x", (3,)), m.input("y", (3, 2))
    m.output(m.op("BATCH_MATMUL", [x, y], (2,)))
    check_refused(m.build(), "x has rank 1; supported: 2 to 6")

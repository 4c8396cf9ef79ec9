"""DENSIFY of sparse constants, which the host unpacks at load time."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact

CASES = [  # shape, elements per block
    ((7,), 1),
    ((3, 8), 1),
    ((3, 8), 4),
    ((5, 1, 1, 24), 4),
    ((2, 3, 3, 5), 1),
]


def sparse(rng: np.random.Generator, shape: tuple, block: int, density: float = 0.4) -> np.ndarray:
    kept = rng.random((*shape[:-1], shape[-1] // block, 1)) < density
    kept.flat[0] = True  # a constant without data is another thing
    values = rng.standard_normal((*kept.shape[:-1], block))
    return (values * kept).reshape(shape).astype(np.float32)


def sum_model(weights: np.ndarray, block: int = 1) -> bytes:
    m = ModelMaker()
    dense = m.op("DENSIFY", [m.sparse_constant(weights, block=block)], weights.shape)
    if weights.dtype == np.float16:
        dense = m.op("DEQUANTIZE", [dense], weights.shape, dtype=np.float32)
    m.output(m.op("ADD", [m.input("x", weights.shape), dense], weights.shape))
    return m.build()


@pytest.mark.parametrize(("shape", "block"), CASES, ids=str)
def test_sparse_floats_are_unpacked(device, precision, rng, shape, block):
    weights = sparse(rng, shape, block)
    x = half_exact(rng.standard_normal(shape).astype(np.float32))
    expected = weights + np.float64(x)
    check(sum_model(weights, block), [x], [expected], device=device, precision=precision)


@pytest.mark.parametrize("block", [1, 4])
def test_sparse_float16_passes_through_dequantize(device, precision, rng, block):
    weights = sparse(rng, (3, 16), block).astype(np.float16)
    x = half_exact(rng.standard_normal((3, 16)).astype(np.float32))
    expected = weights + np.float64(x)
    check(sum_model(weights, block), [x], [expected], device=device, precision=precision)


@pytest.mark.parametrize("density", [0.0, 1.0])
def test_all_and_nothing(device, rng, density):
    weights = sparse(rng, (3, 8), 1, density)
    x = rng.standard_normal((3, 8)).astype(np.float32)
    check(sum_model(weights), [x], [weights + np.float64(x)], device=device, precision="fp32")


@hypothesis.given(
    rows=st.lists(st.integers(1, 4), max_size=3), columns=st.integers(1, 5),
    block=st.sampled_from([1, 2, 4]),
)  # fmt: skip
@hypothesis.settings(max_examples=2 * EXAMPLES)
def test_any_shape(device, rng, rows, columns, block):
    weights = sparse(rng, (*rows, columns * block), block)
    x = np.zeros(weights.shape, np.float32)
    check(sum_model(weights, block), [x], [weights], device=device, precision="fp32")


def test_dense_constant_is_refused():
    m = ModelMaker()
    dense = m.op("DENSIFY", [m.constant(np.ones((2, 3), np.float32))], (2, 3))
    m.output(m.op("ABS", [dense], (2, 3)))
    check_refused(m.build(), "input is not a sparse constant", exclude=["ABS"])


def test_computed_input_is_refused():
    m = ModelMaker()
    m.output(m.op("DENSIFY", [m.input("x", (2, 3))], (2, 3)))
    check_refused(m.build(), "input is not a sparse constant")

"""Layer normalisation: one node, made of the elementary operations that converters write."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops import moments
from tests.ops.harness import check, half_exact
from tests.ops.moments import EPSILON, Case

# Sizes meet the edges of vectors, of what a work-item keeps, and of work-groups.
CASES = {
    "small": Case((1, 3, 8)),
    "one_row": Case((1, 48)),
    "odd_columns": Case((2, 5, 7), activation="RELU6"),
    "plain": Case((3, 4), scale=False, bias=False),
    "scale_only": Case((1, 6, 20), bias=False),
    "bias_only": Case((1, 6, 20), scale=False),
    "sixteens": Case((2, 33, 128), activation="LEAKY_RELU"),
    "many_columns": Case((3, 1000)),
    "more_than_is_kept": Case((2, 3, 9000)),
    "many_odd_columns": Case((1, 2, 2501)),
    "many_rows": Case((2, 301, 12)),
    "two_columns": Case((5, 2)),
    "residual": Case((1, 9, 32), residual=True),
    "residual_odd": Case((2, 9, 5), activation="RELU", residual=True),
    "rank_4": Case((1, 3, 5, 24)),
    "rank_5": Case((2, 3, 2, 2, 16)),
}


def make_model(case: Case, scale: np.ndarray, bias: np.ndarray) -> bytes:
    return moments.make_model(case, (-1,), scale, bias)


def reference(
    case: Case, inputs: list[np.ndarray], scale: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    return moments.reference(case, (-1,), inputs, scale, bias)


def draw(case: Case, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    cols = case.x[-1]
    rows = (*case.x[:-1], 1)
    x = rng.standard_normal(case.x) * rng.uniform(0.5, 2, rows) + rng.uniform(-1, 1, rows)
    inputs = [half_exact(x.astype(np.float32))]
    if case.residual:
        inputs.append(half_exact(rng.standard_normal(case.x).astype(np.float32)))
    scale = rng.uniform(0.5, 1.5, cols).astype(np.float32)
    return inputs, scale, rng.standard_normal(cols).astype(np.float32)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_candidate_normalises(case, device, precision, rng):
    inputs, scale, bias = draw(case, rng)
    model, want = make_model(case, scale, bias), reference(case, inputs, scale, bias)
    check(model, inputs, [want], device=device, precision=precision, accumulation=case.x[-1])


@pytest.mark.parametrize("mean", [0.0, 100.0, -200.0])
def test_variance_survives_a_large_mean(mean, device, rng):
    """As a difference of mean squares it would lose four digits more."""
    case = CASES["sixteens"]
    inputs, scale, bias = draw(case, rng)
    inputs[0] = (inputs[0] + mean).astype(np.float32)
    want = reference(case, inputs, scale, bias)
    check(
        make_model(case, scale, bias), inputs, [want], device=device, precision="fp32",
        accumulation=case.x[-1], reference=False,
    )  # fmt: skip


def test_flat_row_has_the_bias_for_a_result(device, precision, rng):
    case = CASES["small"]
    inputs, scale, bias = draw(case, rng)
    inputs[0][:] = 3
    check(
        make_model(case, scale, bias), inputs, [np.broadcast_to(bias, case.x)], device=device,
        precision=precision,
    )  # fmt: skip


def test_other_sizes_after_loading(device, rng):
    case = CASES["sixteens"]._replace(x=(3, 50, 128))
    inputs, scale, bias = draw(case, rng)
    model = make_model(CASES["sixteens"], scale, bias)
    check(
        model, inputs, [reference(case, inputs, scale, bias)], device=device, precision="fp32",
        accumulation=128, resize={0: case.x},
    )  # fmt: skip


def test_rows_of_a_band(device, precision, rng):
    """Each row of an image needs the same row alone."""
    m = ModelMaker()
    shape = (1, 7, 3, 8)
    x = m.op("ABS", [m.input("x", shape)], shape)
    axes = m.constant(np.array([3], dtype=np.int32))
    mean = m.op("MEAN", [x, axes], (1, 7, 3, 1), keep_dims=True)
    squares = m.op("SQUARED_DIFFERENCE", [x, mean], shape)
    variance = m.op("MEAN", [squares, axes], (1, 7, 3, 1), keep_dims=True)
    shifted = m.op("ADD", [variance, m.constant(np.float32(EPSILON))], (1, 7, 3, 1))
    y = m.op("SUB", [x, mean], shape)
    y = m.op("MUL", [y, m.op("RSQRT", [shifted], (1, 7, 3, 1))], shape)
    m.output(m.op("NEG", [y], shape))
    image = half_exact(rng.standard_normal(shape).astype(np.float32))
    check(m.build(), [image], None, device=device, precision=precision, row_band=3, accumulation=8)

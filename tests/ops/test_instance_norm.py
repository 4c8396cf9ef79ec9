"""Instance normalisation: one node, made of the elementary operations that converters write."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import moments
from tests.ops.harness import check, half_exact
from tests.ops.moments import Case

# Sizes meet the edges of chunks, of channel tiles and of vectors.
CASES = {
    "small": Case((1, 3, 5, 8)),
    "batch": Case((3, 7, 6, 12), activation="LEAKY_RELU"),
    "odd_channels": Case((2, 5, 9, 7), activation="RELU6"),
    "plain": Case((1, 4, 4, 4), scale=False, bias=False),
    "scale_only": Case((1, 6, 5, 4), bias=False),
    "bias_only": Case((1, 6, 5, 4), scale=False),
    "many_channels": Case((1, 3, 4, 140)),
    "many_pixels": Case((2, 70, 81, 8), activation="LEAKY_RELU"),
    "one_pixel": Case((2, 1, 1, 8)),
    "residual": Case((1, 9, 8, 16), residual=True),
    "residual_odd": Case((2, 9, 4, 5), activation="RELU", residual=True),
    "rank_3": Case((2, 17, 12)),
    "rank_5": Case((2, 3, 2, 4, 8)),
}


def make_model(case: Case, scale: np.ndarray, bias: np.ndarray) -> bytes:
    return moments.make_model(case, over(case), scale, bias)


def reference(
    case: Case, inputs: list[np.ndarray], scale: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    return moments.reference(case, over(case), inputs, scale, bias)


def over(case: Case) -> tuple[int, ...]:
    return tuple(range(1, len(case.x) - 1))


def draw(case: Case, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    channels = case.x[-1]
    x = rng.standard_normal(case.x) * rng.uniform(0.5, 2, channels) + rng.uniform(-1, 1)
    inputs = [half_exact(x.astype(np.float32))]
    if case.residual:
        inputs.append(half_exact(rng.standard_normal(case.x).astype(np.float32)))
    scale = rng.uniform(0.5, 1.5, channels).astype(np.float32)
    return inputs, scale, rng.standard_normal(channels).astype(np.float32)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_candidate_normalises(case, device, precision, rng):
    inputs, scale, bias = draw(case, rng)
    model, want = make_model(case, scale, bias), reference(case, inputs, scale, bias)
    pixels = int(np.prod(case.x[1:-1]))
    check(model, inputs, [want], device=device, precision=precision, accumulation=pixels)


@pytest.mark.parametrize("mean", [0.0, 100.0, -200.0])
def test_variance_survives_a_large_mean(mean, device, rng):
    """As a difference of mean squares it would lose four digits more."""
    case = CASES["many_pixels"]
    inputs, scale, bias = draw(case, rng)
    inputs[0] = (inputs[0] + mean).astype(np.float32)
    want = reference(case, inputs, scale, bias)
    check(
        make_model(case, scale, bias), inputs, [want], device=device, precision="fp32",
        accumulation=70 * 81, reference=False,
    )  # fmt: skip


def test_outlier_in_the_first_pixel(device, rng):
    case = CASES["many_pixels"]
    inputs, scale, bias = draw(case, rng)
    inputs[0][:, 0, 0] = 1e4
    want = reference(case, inputs, scale, bias)
    check(
        make_model(case, scale, bias), inputs, [want], device=device, precision="fp32",
        accumulation=70 * 81,
    )  # fmt: skip


def test_flat_image_has_the_bias_for_a_result(device, precision, rng):
    case = CASES["batch"]._replace(activation="")
    inputs, scale, bias = draw(case, rng)
    inputs[0][:] = 3
    check(
        make_model(case, scale, bias), inputs, [np.broadcast_to(bias, case.x)], device=device,
        precision=precision,
    )  # fmt: skip


def test_other_sizes_after_loading(device, rng):
    case = CASES["batch"]
    inputs, scale, bias = draw(case._replace(x=(2, 12, 31, 12)), rng)
    model = make_model(case, scale, bias)
    check(
        model, inputs, [reference(case, inputs, scale, bias)], device=device, precision="fp32",
        accumulation=12 * 31, resize={0: (2, 12, 31, 12)},
    )  # fmt: skip

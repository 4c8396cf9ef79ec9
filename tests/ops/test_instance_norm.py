"""Instance normalisation: one node, made of the elementary operations that converters write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, half_exact

EPSILON = 1e-3


class Case(NamedTuple):
    """Sizes meet the edges of chunks, of channel tiles and of vectors."""

    image: tuple[int, ...]
    scale: bool = True
    bias: bool = True
    activation: str = ""
    residual: bool = False


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
    m = ModelMaker()
    x = m.input("x", case.image)
    residual = m.input("residual", case.image) if case.residual else None
    axes = m.constant(np.arange(1, len(case.image) - 1, dtype=np.int32))
    kept = (case.image[0], *(1 for _ in case.image[1:-1]), case.image[-1])
    mean = m.op("MEAN", [x, axes], kept, keep_dims=True)
    squares = m.op("SQUARED_DIFFERENCE", [x, mean], case.image)
    variance = m.op("MEAN", [squares, axes], kept, keep_dims=True)
    shifted = m.op("ADD", [variance, m.constant(np.float32(EPSILON))], kept)
    y = m.op("SUB", [x, mean], case.image)
    y = m.op("MUL", [y, m.op("RSQRT", [shifted], kept)], case.image)
    if case.scale:
        y = m.op("MUL", [y, m.constant(scale)], case.image)
    if case.bias:
        y = m.op("ADD", [y, m.constant(bias)], case.image)
    if residual is not None:
        y = m.op("ADD", [residual, y], case.image)
    if case.activation:
        options = {"alpha": 0.2} if case.activation == "LEAKY_RELU" else {}
        y = m.op(case.activation, [y], case.image, **options)
    m.output(y)
    return m.build()


def reference(
    case: Case, inputs: list[np.ndarray], scale: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    x = inputs[0].astype(np.float64)
    axes = tuple(range(1, x.ndim - 1))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + EPSILON)
    y = y * (scale if case.scale else 1) + (bias if case.bias else 0)
    y = y + (inputs[1] if case.residual else 0)
    functions = {
        "": lambda y: y,
        "LEAKY_RELU": lambda y: np.where(y > 0, y, np.float32(0.2) * y),
        "RELU": lambda y: np.maximum(y, 0),
        "RELU6": lambda y: np.clip(y, 0, 6),
    }
    return functions[case.activation](y)


def draw(case: Case, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    channels = case.image[-1]
    x = rng.standard_normal(case.image) * rng.uniform(0.5, 2, channels) + rng.uniform(-1, 1)
    inputs = [half_exact(x.astype(np.float32))]
    if case.residual:
        inputs.append(half_exact(rng.standard_normal(case.image).astype(np.float32)))
    scale = rng.uniform(0.5, 1.5, channels).astype(np.float32)
    return inputs, scale, rng.standard_normal(channels).astype(np.float32)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_candidate_normalises(case, device, precision, rng):
    inputs, scale, bias = draw(case, rng)
    model, want = make_model(case, scale, bias), reference(case, inputs, scale, bias)
    pixels = int(np.prod(case.image[1:-1]))
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
        make_model(case, scale, bias), inputs, [np.broadcast_to(bias, case.image)], device=device,
        precision=precision,
    )  # fmt: skip


def test_other_sizes_after_loading(device, rng):
    case = CASES["batch"]
    inputs, scale, bias = draw(case._replace(image=(2, 12, 31, 12)), rng)
    model = make_model(case, scale, bias)
    check(
        model, inputs, [reference(case, inputs, scale, bias)], device=device, precision="fp32",
        accumulation=12 * 31, resize={0: (2, 12, 31, 12)},
    )  # fmt: skip

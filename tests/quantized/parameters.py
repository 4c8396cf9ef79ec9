"""Quantised models: random parameters, and equality with the reference kernels, bit for bit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check

# Element types of activations with the range of their zero points.
ZERO_POINTS = {np.int8: (-128, 127), np.uint8: (0, 255), np.int16: (0, 0)}
ACTIVATION_TYPES = list(ZERO_POINTS)


def random_quantization(
    rng: np.random.Generator, dtype: Any, scale: tuple[float, float] = (0.005, 0.1)
) -> Quantization:
    """One scale within the bounds, log-uniform, and any zero point that the type allows."""
    low, high = ZERO_POINTS[dtype]
    value = np.exp(rng.uniform(*np.log(scale)))
    return Quantization(float(np.float32(value)), int(rng.integers(low, high + 1)))


def random_integers(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Integers of all of a type's range."""
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def weights_quantization(
    rng: np.random.Generator, dtype: Any, channels: int, axis: int, per_channel: bool
) -> Quantization:
    """Scales of weights: int8 has zero point 0, and one scale or one per channel."""
    if dtype == np.uint8:
        return Quantization(float(np.float32(rng.uniform(0.002, 0.02))), int(rng.integers(0, 256)))
    if not per_channel:
        return Quantization(float(np.float32(rng.uniform(0.002, 0.02))))
    scales = rng.uniform(0.002, 0.02, channels).astype(np.float32)
    return Quantization([float(s) for s in scales], 0, axis)


def output_quantization(
    rng: np.random.Generator, dtype: Any, src: Quantization, weights: Quantization, depth: int
) -> Quantization:
    """Parameters with which sums of so many products use the range of the type and exceed it."""
    product = float(np.mean(np.atleast_1d(weights.scales))) * float(np.max(src.scales))
    spread = np.sqrt(depth) * 74.0 * (74.0 if dtype != np.int16 else 18900.0)
    reach = 100.0 if dtype != np.int16 else 25000.0
    low, high = ZERO_POINTS[dtype]
    scale = product * spread / reach * rng.uniform(0.5, 2.0)
    return Quantization(float(np.float32(scale)), int(rng.integers(low, high + 1)))


def add_bias(
    model: ModelMaker,
    rng: np.random.Generator,
    dtype: Any,
    src: Quantization,
    weights: Quantization,
    channels: int,
) -> int:
    """A bias tensor (int32, int64 for int16) of the scale that a product demands."""
    wide = dtype == np.int16
    scales = np.atleast_1d(np.asarray(weights.scales, np.float32)) * np.float32(src.scales)
    values = rng.integers(-20000, 20000, channels) * (50 if wide else 1)
    return model.constant(
        values.astype(np.int64 if wide else np.int32),
        quantization=Quantization([float(s) for s in scales], 0, 0),
    )


def typed(names: Iterable[str], all_types: Collection[str]) -> list[tuple[type, str]]:
    """Return what is tested: types share all that geometry is about, so that int8 does for most.

    Parameters
    ----------
    names
        Cases that int8 is tested with.
    all_types
        Those of them that the other types are tested with, too.
    """
    return [
        (dtype, name)
        for dtype in ACTIVATION_TYPES
        for name in names
        if dtype == np.int8 or name in all_types
    ]


def check_exact(model: bytes, inputs: Sequence[np.ndarray], *, device: str, **options: Any) -> None:
    """Run every candidate of every node and compare with the reference kernels: no element differs.

    Parameters
    ----------
    model, inputs, device, **options
        As those of `tests.ops.harness.check`; ``runtime`` names the runtime whose reference
        kernels are meant, by default the newer one.
    """
    check(model, inputs, None, device=device, precision="fp32", **options)

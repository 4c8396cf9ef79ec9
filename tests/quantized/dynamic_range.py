"""Float models with int8 weights: checks of both modes of the option ``dynamic_range``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check, half_exact, op_runtime
from tests.runtimes import run_reference


class Weights(NamedTuple):
    """int8 weights and the floats that they represent."""

    stored: np.ndarray
    quantization: Quantization

    @classmethod
    def draw(
        cls, rng: np.random.Generator, shape: Sequence[int], axis: int, *, per_channel: bool
    ) -> Weights:
        """Random weights, with one scale or with one for each index along `axis`."""
        count = shape[axis] if per_channel else 1
        scales = [float(s) for s in rng.uniform(0.002, 0.02, count).astype(np.float32)]
        stored = rng.integers(-127, 128, tuple(shape)).astype(np.int8)
        return cls(stored, Quantization(scales if count > 1 else scales[0], [0] * count, axis))

    def add_to(self, m: ModelMaker, *, floats: bool) -> int:
        """Append a constant: the stored integers, or the floats they stand for."""
        if not floats:
            return m.constant(self.stored, quantization=self.quantization)
        shape = [1] * self.stored.ndim
        shape[self.quantization.axis] = -1
        scales = np.asarray(self.quantization.scales, np.float32).reshape(shape)
        return m.constant((self.stored * scales).astype(np.float32))


def check_dequantized(
    model: bytes,
    float_model: bytes,
    inputs: Sequence[np.ndarray],
    *,
    device: str,
    precision: str,
    accumulation: int,
    dynamic_range: str = "dequantize",
) -> None:
    """Run every candidate and compare with the float model."""
    if precision == "fp16":
        inputs = [half_exact(x) for x in inputs]
    expected = run_reference(float_model, inputs, op_runtime())
    check(
        model,
        inputs,
        expected,
        device=device,
        precision=precision,
        accumulation=accumulation,
        reference=False,
        dynamic_range=dynamic_range,
    )


def check_hybrid(model: bytes, inputs: Sequence[np.ndarray], *, device: str) -> None:
    """Run every candidate of ``dynamic_range="hybrid"`` and compare with the stock hybrid kernels.

    The sums are exact; only the float operations after them may be rounded differently. A step of
    the quantised activations would be far above the tolerance.
    """
    check(model, inputs, None, device=device, precision="fp32", dynamic_range="hybrid")

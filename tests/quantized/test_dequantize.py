"""DEQUANTIZE equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    check_exact,
    random_integers,
    random_quantization,
)


def build(shape, dtype, quantization) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, dtype, quantization=quantization)
    m.output(m.op("DEQUANTIZE", [x], shape, dtype=np.float32))
    return m.build()


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_floats_equal_the_reference(dtype, device, rng):
    x = random_integers(rng, (7, 13), dtype)
    check_exact(build(x.shape, dtype, random_quantization(rng, dtype)), [x], device=device)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_channel_has_its_scale(axis, device, rng):
    x = random_integers(rng, (3, 4, 5), np.int8)
    size = x.shape[axis]
    scales = [float(s) for s in rng.uniform(0.005, 0.05, size).astype(np.float32)]
    q = Quantization(scales, [int(z) for z in rng.integers(-20, 20, size)], axis)
    check_exact(build(x.shape, np.int8, q), [x], device=device)

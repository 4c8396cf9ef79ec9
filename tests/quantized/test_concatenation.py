"""CONCATENATION and PACK of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    check_exact,
    random_integers,
    random_quantization,
)

SHAPES = [(1, 3, 5, 4), (1, 3, 5, 7), (1, 3, 5, 4)]


def _concatenation(parts, whole, dtype):
    m = ModelMaker()
    inputs = [
        m.input(f"x{i}", shape, dtype, quantization=q)
        for i, (shape, q) in enumerate(zip(SHAPES, parts))
    ]
    m.output(m.op("CONCATENATION", inputs, (1, 3, 5, 15), axis=3, quantization=whole))
    return m.build()


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_parts_of_one_scale_are_copied(dtype, device, rng):
    quantization = random_quantization(rng, dtype)
    model = _concatenation([quantization] * 3, quantization, dtype)
    check_exact(model, [random_integers(rng, s, dtype) for s in SHAPES], device=device)


@pytest.mark.parametrize("_", range(3))
def test_uint8_of_other_scales_is_requantised(_, device, rng):
    parts = [random_quantization(rng, np.uint8) for _ in SHAPES]
    model = _concatenation(parts, parts[1], np.uint8)
    check_exact(model, [random_integers(rng, s, np.uint8) for s in SHAPES], device=device)


def test_int8_of_other_scales_is_refused(device):
    one, other = Quantization(0.5), Quantization(0.25)
    model = _concatenation([one, other, one], one, np.int8)
    check_refused(model, "input 1 has the scale 0.25", device=device)


def test_uint8_of_another_scale_is_not_written_in_place(device, rng):
    """What computes a part leaves it in that part's scale; the copy translates it."""
    m = ModelMaker()
    one, other = Quantization(0.05, 120), Quantization(0.08, 100)
    x = m.input("x", SHAPES[0], np.uint8, quantization=one)
    y = m.input("y", SHAPES[0], np.uint8, quantization=other)
    size = m.constant(np.array([6, 10], np.int32))
    parts = [
        m.op("RESIZE_NEAREST_NEIGHBOR", [part, size], (1, 6, 10, 4), quantization=q)
        for part, q in ((x, one), (y, other))
    ]
    m.output(m.op("CONCATENATION", parts, (1, 6, 10, 8), axis=3, quantization=other))
    values = [random_integers(rng, SHAPES[0], np.uint8) for _ in range(2)]
    check_exact(m.build(), values, device=device)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_packed(dtype, device, rng):
    m = ModelMaker()
    quantization = random_quantization(rng, dtype)
    inputs = [m.input(f"x{i}", (2, 3, 5), dtype, quantization=quantization) for i in range(2)]
    result = (2, 3, 2, 5)
    m.output(m.op("PACK", inputs, result, values_count=2, axis=2, quantization=quantization))
    values = [random_integers(rng, (2, 3, 5), dtype) for _ in inputs]
    check_exact(m.build(), values, device=device)

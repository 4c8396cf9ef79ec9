"""Integers that stand for floats: rounding, saturation and the way back."""

from __future__ import annotations

import numpy as np
import pytest

from clgpu_delegate.quantization.parameters import dequantize, of_scale, of_weights, quantize


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_integers_are_the_nearest_and_ties_go_to_even(dtype):
    values = np.array([0.0, 0.9, 1.0, 1.1, 2.6, 3.0, 5.0, 7.0], np.float32)
    stored = quantize(values, of_scale(2.0, 10), dtype)
    assert stored.dtype == dtype
    np.testing.assert_array_equal(stored, [10, 10, 10, 11, 11, 12, 12, 14])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_integers_saturate(dtype):
    info = np.iinfo(dtype)
    stored = quantize(np.array([-1e9, 1e9], np.float32), of_scale(0.5, 3), dtype)
    np.testing.assert_array_equal(stored, [info.min, info.max])


def test_each_channel_has_its_scale(rng):
    weights = rng.standard_normal((4, 3, 3, 5)).astype(np.float32)
    weights *= np.array([1, 10, 100, 1000], np.float32).reshape(4, 1, 1, 1)
    affine = of_weights(weights, 0)
    back = dequantize(quantize(weights, affine, "int8"), affine)
    half_a_step = np.array(affine.scales).reshape(4, 1, 1, 1) / 2
    assert (np.abs(back - weights) <= half_a_step * (1 + 1e-5)).all()

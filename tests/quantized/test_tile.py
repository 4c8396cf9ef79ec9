"""TILE of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])  # the reference kernel has no int16
def test_repeats(dtype, device, rng):
    def add(m, x, quantization):
        times = m.constant(np.array([1, 2, 3], np.int32))
        return m.op("TILE", [x, times], (2, 6, 12), quantization=quantization)

    check_moved(add, (2, 3, 4), dtype, device=device, rng=rng)

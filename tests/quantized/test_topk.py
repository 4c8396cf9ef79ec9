"""TOPK_V2 of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_largest_come_first(dtype, device, rng):
    def add(m, x, quantization):
        k = m.constant(np.int32(7))
        types = [m.dtype(x), np.int32]
        return m.op("TOPK_V2", [x, k], [(3, 7)] * 2, dtype=types, quantization=[quantization, None])

    check_moved(add, (3, 90), dtype, device=device, rng=rng)

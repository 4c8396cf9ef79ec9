"""REVERSE_V2 of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_order_is_turned_round(dtype, device, rng):
    def add(m, x, quantization):
        axes = m.constant(np.array([1], np.int32))
        return m.op("REVERSE_V2", [x, axes], (2, 5, 4), quantization=quantization)

    check_moved(add, (2, 5, 4), dtype, device=device, rng=rng)

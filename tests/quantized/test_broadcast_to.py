"""BROADCAST_TO of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_axes_repeat(dtype, device, rng):
    def add(m, x, quantization):
        shape = m.constant(np.array([2, 3, 5, 4], np.int32))
        return m.op("BROADCAST_TO", [x, shape], (2, 3, 5, 4), version=2, quantization=quantization)

    check_moved(add, (3, 1, 4), dtype, device=device, rng=rng)

"""GATHER of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_places_are_chosen(dtype, device, rng):
    def add(m, x, quantization):
        places = m.constant(np.array([4, 0, 0, 2], np.int32))
        return m.op("GATHER", [x, places], (3, 4, 8), axis=1, quantization=quantization)

    check_moved(add, (3, 5, 8), dtype, device=device, rng=rng)

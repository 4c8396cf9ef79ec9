"""SLICE and STRIDED_SLICE of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_slices_are_taken(dtype, device, rng):
    def add(m, x, quantization):
        def ints(*values):
            return m.constant(np.array(values, np.int32))

        inner = m.op(
            "SLICE",
            [x, ints(0, 1, 2, 0), ints(2, 3, 4, 8)],
            (2, 3, 4, 8),
            quantization=quantization,
        )
        ends = [ints(0, 0, 3, 1), ints(2, 3, -5, 8), ints(1, 2, -1, 3)]
        return m.op("STRIDED_SLICE", [inner, *ends], (2, 2, 4, 3), quantization=quantization)

    check_moved(add, (2, 5, 6, 8), dtype, device=device, rng=rng)

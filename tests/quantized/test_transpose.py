"""TRANSPOSE of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize(("shape", "perm"), [((33, 40), (1, 0)), ((2, 3, 4, 8), (0, 2, 1, 3))])
def test_axes_change_places(shape, perm, dtype, device, rng):
    def add(m, x, quantization):
        result = tuple(shape[axis] for axis in perm)
        order = m.constant(np.array(perm, np.int32))
        return m.op("TRANSPOSE", [x, order], result, quantization=quantization)

    check_moved(add, shape, dtype, device=device, rng=rng)

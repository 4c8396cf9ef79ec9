"""CAST of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_stored_numbers_are_cast(dtype, device, rng):
    """Scales play no part."""
    check_moved(
        lambda m, x, _: m.op("CAST", [x], (3, 5), dtype=np.float32),
        (3, 5),
        dtype,
        device=device,
        rng=rng,
    )

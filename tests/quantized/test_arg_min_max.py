"""ARG_MAX and ARG_MIN of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(("op", "axis"), [("ARG_MAX", 2), ("ARG_MIN", 1)])
def test_first_of_the_largest(op, axis, dtype, device, rng):
    def add(m, x, _):
        result = (2, 3) if axis == 2 else (2, 300)
        return m.op(
            op, [x, m.constant(np.int32(axis))], result, dtype=np.int32, output_type=np.int32
        )

    check_moved(add, (2, 3, 300), dtype, device=device, rng=rng)

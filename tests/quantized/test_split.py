"""SPLIT, SPLIT_V and UNPACK of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


def _split(m, x, quantization):
    axis = m.constant(np.int32(3))
    return m.op(
        "SPLIT", [axis, x], [(1, 3, 5, 4)] * 3, num_splits=3, quantization=[quantization] * 3
    )


def _split_v(m, x, quantization):
    inputs = [x, m.constant(np.array([1, -1], np.int32)), m.constant(np.int32(1))]
    shapes = [(1, 1, 5, 12), (1, 2, 5, 12)]
    return m.op("SPLIT_V", inputs, shapes, num_splits=2, quantization=[quantization] * 2)


def _unpack(m, x, quantization):
    return m.op("UNPACK", [x], [(1, 5, 12)] * 3, num=3, axis=1, quantization=[quantization] * 3)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("add", [_split, _split_v, _unpack])
def test_parts_keep_the_numbers(add, dtype, device, rng):
    check_moved(add, (1, 3, 5, 12), dtype, device=device, rng=rng)

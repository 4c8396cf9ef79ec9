"""Blocks between space, depth and batch of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved
from tests.quantized.parameters import ACTIVATION_TYPES


def _ints(m, *values):
    return m.constant(np.array(values, np.int32))


def _to_depth(m, x, quantization):
    return m.op("SPACE_TO_DEPTH", [x], (1, 2, 3, 16), block_size=2, quantization=quantization)


def _to_space(m, x, quantization):
    return m.op("DEPTH_TO_SPACE", [x], (1, 8, 12, 1), block_size=2, quantization=quantization)


def _to_batch(m, x, quantization):
    inputs = [x, _ints(m, 2, 3), _ints(m, [1, 1], [0, 3])]
    return m.op("SPACE_TO_BATCH_ND", inputs, (6, 3, 3, 4), quantization=quantization)


def _from_batch(m, x, quantization):
    y = _to_batch(m, x, quantization)
    inputs = [y, _ints(m, 2, 3), _ints(m, [0, 1], [2, 0])]
    return m.op("BATCH_TO_SPACE_ND", inputs, (1, 5, 7, 4), quantization=quantization)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("add", [_to_depth, _to_space, _to_batch, _from_batch])
def test_blocks_move(add, dtype, device, rng):
    if dtype == np.int16 and add in (_to_depth, _to_space):
        pytest.skip("the reference kernels have no int16")
    check_moved(add, (1, 4, 6, 4), dtype, device=device, rng=rng)

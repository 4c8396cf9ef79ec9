"""RESHAPE, SQUEEZE and EXPAND_DIMS of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.quantized.movement import check_moved, check_other_scale_refused
from tests.quantized.parameters import ACTIVATION_TYPES


def _views(m, x, quantization):
    a = m.op("RESHAPE", [x], (2, 1, 15), new_shape=[2, 1, 15], quantization=quantization)
    b = m.op("SQUEEZE", [a], (2, 15), squeeze_dims=[1], quantization=quantization)
    axis = m.constant(np.int32(2))
    return b, m.op("EXPAND_DIMS", [b, axis], (2, 15, 1), quantization=quantization)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_views_keep_the_numbers(dtype, device, rng):
    # The last in the chain is an output, and so is what it is a view of.
    check_moved(lambda m, x, q: _views(m, x, q)[1], (1, 2, 3, 5), dtype, device=device, rng=rng)


def test_another_scale_is_refused(device):
    def add(m, x, quantization):
        return m.op("RESHAPE", [x], (6,), new_shape=[6], quantization=quantization)

    check_other_scale_refused(add, (2, 3), device)

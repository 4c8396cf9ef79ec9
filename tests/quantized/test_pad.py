"""PAD, PADV2 and MIRROR_PAD of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import Quantization
from tests.quantized.movement import check_moved, check_other_scale_refused
from tests.quantized.parameters import ACTIVATION_TYPES

SHAPE, RESULT = (1, 5, 7, 4), (1, 8, 10, 4)
PADDINGS = ((0, 0), (1, 2), (3, 0), (0, 0))


def _pad(m, x, quantization):
    inputs = [x, m.constant(np.array(PADDINGS, np.int32))]
    return m.op("PAD", inputs, RESULT, quantization=quantization)


def _pad_value(m, x, quantization):
    value = m.constant(np.array(17, m.dtype(x)), quantization=quantization)
    inputs = [x, m.constant(np.array(PADDINGS, np.int32)), value]
    return m.op("PADV2", inputs, RESULT, quantization=quantization)


def _mirror(m, x, quantization):
    inputs = [x, m.constant(np.array(PADDINGS, np.int32))]
    return m.op("MIRROR_PAD", inputs, RESULT, mode="REFLECT", quantization=quantization)


def _odd(m, x, quantization):
    inputs = [x, m.constant(np.array(((0, 0), (1, 0), (0, 0), (1, 2)), np.int32))]
    return m.op("PAD", inputs, (1, 6, 7, 7), quantization=quantization)


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("add", [_pad, _pad_value, _mirror, _odd])
def test_borders_are_the_zero_point(add, dtype, device, rng):
    check_moved(add, SHAPE, dtype, device=device, rng=rng)


def test_a_value_of_another_scale_is_refused(device):
    def add(m, x, quantization):
        same = Quantization(0.5, 3)
        value = m.constant(np.array(17, np.int8), quantization=quantization)
        inputs = [x, m.constant(np.array(PADDINGS, np.int32)), value]
        return m.op("PADV2", inputs, RESULT, quantization=same)

    check_other_scale_refused(add, SHAPE, device)

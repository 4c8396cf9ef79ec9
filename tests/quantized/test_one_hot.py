"""ONE_HOT of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused
from tests.quantized.parameters import check_exact

SAME = Quantization(0.5, 3)


def _one_hot(dtype, off):
    m = ModelMaker()
    places = m.input("x", (3,), np.int32)
    depth = m.constant(np.int32(4))
    values = [
        m.constant(np.array(100, dtype), quantization=SAME),
        m.constant(np.array(7, dtype), quantization=off),
    ]
    result = m.op(
        "ONE_HOT", [places, depth, *values], (3, 4), axis=-1, dtype=dtype, quantization=SAME
    )
    m.output(result)
    return m.build()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_values_are_stored_numbers(dtype, device):
    check_exact(_one_hot(dtype, SAME), [np.array([3, 0, 9], np.int32)], device=device)


def test_values_of_two_scales_are_refused(device):
    check_refused(_one_hot(np.int8, Quantization(0.25, 3)), "moved as they are", device=device)

"""L2_NORMALIZATION of quantised integers equals the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused
from tests.quantized.parameters import check_exact, random_integers, random_quantization

UNIT = {np.int8: Quantization(1 / 128), np.uint8: Quantization(1 / 128, 128)}


def build(shape, dtype, src, dst) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, dtype, quantization=src)
    m.output(m.op("L2_NORMALIZATION", [x], shape, quantization=dst))
    return m.build()


@pytest.mark.parametrize("dtype", UNIT)
@pytest.mark.parametrize("shape", [(1, 1), (256, 2), (2, 3, 65), (1, 300)], ids=str)
def test_rows_equal_the_reference(shape, dtype, device, rng):
    q = random_quantization(rng, dtype)
    values = random_integers(rng, shape, dtype)
    if shape[0] > 1:
        values[0] = q.zero_points  # a row of zeros
    check_exact(build(shape, dtype, q, UNIT[dtype]), [values], device=device)


def test_small_sums_equal_the_reference(device):
    values = np.stack(np.meshgrid(np.arange(64), [0, 1, 2, 3]), -1).reshape(-1, 2).astype(np.int8)
    model = build(values.shape, np.int8, Quantization(0.5), UNIT[np.int8])
    check_exact(model, [values], device=device)


def test_other_output_scales_are_refused():
    model = build((2, 2), np.int8, Quantization(0.1), Quantization(0.5))
    check_refused(
        model, "output has the scale 0.500000 and the zero point 0; supported: 1/128 and 0"
    )

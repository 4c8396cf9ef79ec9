"""quantize_rows: quantised activations of hybrid arithmetic, tested through their products."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.quantized.dynamic_range import check_hybrid

# Rows whose least and greatest elements are of one sign, of both, or all zero.
ROWS = [(-1.0, 1.0), (-3.0, 0.5), (0.0, 2.0), (0.25, 2.0), (-5.0, -1.0), (0.0, 0.0)]


@pytest.mark.parametrize("asymmetric", [False, True])
def test_rows_have_scales_and_zero_points_of_their_own(asymmetric, device, rng):
    """Weights of one and a bias of zero: the results are the sums of the quantised rows."""
    rows = [rng.uniform(low, high, 65) for low, high in ROWS]
    x = np.stack(rows).astype(np.float32)
    m = ModelMaker()
    operands = [m.input("x", x.shape)]
    weights = np.eye(65, dtype=np.int8)
    operands.append(m.constant(weights, quantization=Quantization(1.0)))
    options = {"asymmetric_quantize_inputs": asymmetric}
    m.output(m.op("FULLY_CONNECTED", operands, (len(ROWS), 65), **options))
    check_hybrid(m.build(), [x], device=device)


def test_images_get_a_border_that_stands_for_zero(device, rng):
    image = rng.uniform(1.0, 3.0, (2, 5, 6, 3)).astype(np.float32)
    m = ModelMaker()
    scales = Quantization([0.01, 0.03], [0, 0], 0)
    weights = m.constant(rng.integers(-127, 128, (2, 3, 3, 3)).astype(np.int8), quantization=scales)
    operands = [m.input("x", image.shape), weights, m.constant(np.ones(2, np.float32))]
    options = {"padding": "SAME", "stride_w": 2, "stride_h": 1}
    m.output(m.op("CONV_2D", operands, (2, 5, 3, 2), **options))
    check_hybrid(m.build(), [image], device=device)

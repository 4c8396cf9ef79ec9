"""MAX_POOL_2D and AVERAGE_POOL_2D of quantised integers equal the reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused
from tests.ops.test_pool import CASES, LARGE, Case, windows
from tests.quantized.parameters import (
    ACTIVATION_TYPES,
    check_exact,
    random_integers,
    random_quantization,
)

NAMES = ["MAX_POOL_2D", "AVERAGE_POOL_2D"]


def build(case: Case, dtype: type, src: Quantization, dst: Quantization, **options) -> bytes:
    """Both poolings of one image."""
    m = ModelMaker()
    x = m.input("x", case.shape, dtype, quantization=src)
    geometry = {
        "filter_height": case.filter[0], "filter_width": case.filter[1],
        "stride_h": case.stride[0], "stride_w": case.stride[1], "padding": case.padding,
    }  # fmt: skip
    shape = windows(case)[1]
    m.output(*(m.op(n, [x], shape, quantization=dst, **geometry, **options) for n in NAMES))
    return m.build()


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
@pytest.mark.parametrize("case", [*CASES[1:], *LARGE[1:]], ids=str)
def test_pooling_equals_the_reference(case, dtype, device, rng):
    scales = random_quantization(rng, dtype)
    activation = rng.choice(["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])
    model = build(case, dtype, scales, scales, fused_activation_function=str(activation))
    check_exact(model, [random_integers(rng, case.shape, dtype)], device=device)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_ties_of_averages(dtype, device, rng):
    """Sums of -4 to 4 around zero, of two and of four elements, in vectors of all widths."""
    scales = Quantization(0.05, 3)
    for channels, width in ((16, 2), (4, 4), (3, 2)):
        case = Case((1, 8, 2 * width, channels), (1, width), (1, width), "VALID")
        image = rng.integers(-2 if dtype == np.int8 else 0, 3, case.shape).astype(dtype)
        check_exact(build(case, dtype, scales, scales), [image], device=device)


@pytest.mark.parametrize("result", [Quantization(0.06, 3), Quantization(0.05, 4)], ids=str)
def test_pooling_that_changes_scale_or_zero_point_is_refused(result):
    model = build(CASES[1], np.int8, Quantization(0.05, 3), result)
    check_refused(model, "differ in scale or zero point")

"""Copies of rows, which exist only where nodes are computed band by band."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check


@pytest.mark.parametrize("shape", [(1, 7, 3, 4), (1, 8, 5, 3)])
def test_rows_of_an_input(shape, device, precision, rng):
    m = ModelMaker()
    x = m.input("x", shape)
    y = m.op("ABS", [m.op("NEG", [x], shape)], shape)
    m.output(m.op("MAXIMUM", [x, y], shape))
    image = rng.standard_normal(shape).astype(np.float32)
    check(m.build(), [image], None, device=device, precision=precision, row_band=3)

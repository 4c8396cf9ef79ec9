"""Zero padding of height and width moves into convolutions without padding of their own."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.models.comparison import run_delegated
from tests.ops.harness import check

SHAPE = (1, 6, 5, 3)


def _model(op: str, paddings: list[list[int]], padding: str = "VALID") -> bytes:
    rng = np.random.default_rng(2)
    m = ModelMaker()
    x = m.input("x", SHAPE, np.float32)
    padded = tuple(n + sum(p) for n, p in zip(SHAPE, paddings))
    y = m.op("PAD", [x, m.constant(np.array(paddings, np.int32))], padded)
    n, h, w, c = padded
    if padding == "VALID":
        h, w = h - 2, w - 2
    options = {"depth_multiplier": 1} if op == "DEPTHWISE_CONV_2D" else {}
    filters = c if options else 4
    shape = (1, 3, 3, c) if options else (4, 3, 3, c)
    weights = m.constant(rng.standard_normal(shape, np.float32))
    bias = m.constant(rng.standard_normal(filters, np.float32))
    y = m.op(
        op,
        [y, weights, bias],
        (n, h, w, filters),
        padding=padding,
        stride_w=1,
        stride_h=1,
        **options,
    )
    m.output(y)
    return m.build()


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize(
    ("paddings", "padding", "fused"),
    [
        ([[0, 0], [1, 2], [0, 3], [0, 0]], "VALID", True),
        ([[0, 0], [1, 1], [1, 1], [0, 0]], "SAME", False),
        ([[0, 0], [1, 1], [1, 1], [0, 1]], "VALID", False),
    ],
)
def test_padding_is_fused_where_it_can_be(op, paddings, padding, fused, device, precision, rng):
    model = _model(op, paddings, padding)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    node = run_delegated("auto", model, [x])[1]["nodes"][0]
    assert (node["reason"] == "fused into node 1") == fused
    check(model, [x], None, device=device, precision=precision, accumulation=36)

"""With missing or unsuitable parameters of quantisation, the node stays on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused

GOOD = Quantization(0.5, 3)
PER_CHANNEL = Quantization([0.1, 0.2], 0, 0)


def convolution(
    src: Quantization | None = GOOD,
    weights: Quantization | None = PER_CHANNEL,
    dst: Quantization | None = GOOD,
) -> bytes:
    m = ModelMaker()
    x = m.input("x", (1, 4, 4, 3), np.int8, quantization=src)
    w = m.constant(np.ones((2, 1, 1, 3), np.int8), quantization=weights)
    bias = m.constant(np.zeros(2, np.int32), quantization=Quantization([0.05, 0.1], 0, 0))
    m.output(
        m.op(
            "CONV_2D",
            [x, w, bias],
            (1, 4, 4, 2),
            padding="VALID",
            stride_w=1,
            stride_h=1,
            quantization=dst,
        )
    )
    return m.build()


# Runtimes reject models whose number of scales fits no axis, or whose axis does not exist.
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"src": None}, "input has no scale"),
        ({"weights": None}, "weights tensor has no scale"),
        ({"dst": None}, "output has no scale"),
        (
            {"src": Quantization(0.0)},
            "the scale 0.000000; supported: positive and finite",
        ),
        ({"weights": Quantization([0.1, -0.2])}, "input 1 has the scale -0.200000 at index 1"),
        ({"src": Quantization(float("nan"))}, "input 0 has the scale nan"),
        ({"weights": Quantization([0.1] * 3, 0, 3)}, "weights tensor has scales along axis 3"),
        ({"weights": Quantization([0.1] * 2, 1)}, "a zero point other than 0"),
        (
            {"src": Quantization(0.5, 200)},
            "input 0 has the zero point 200; supported: -128 to 127 of int8",
        ),
        ({"dst": Quantization([0.1, 0.2], 0, 3)}, "output has 2 scales; supported: one"),
    ],
)
def test_reason_names_what_does_not_fit(parameters, reason):
    check_refused(convolution(**parameters), reason)

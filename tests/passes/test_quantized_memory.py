"""Bands of rows and slices of concatenations, which save memory, do not change integers."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import op_runtime
from tests.quantized.parameters import (
    add_bias,
    random_integers,
    random_quantization,
    weights_quantization,
)
from tests.runtimes import make_interpreter, run_interpreter, run_reference

IMAGE = (1, 21, 18, 8)


class Network(ModelMaker):
    """A chain of int8 images of 8 channels; every method adds a node."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng = rng
        self.scales = random_quantization(rng, np.int8)
        self.last = self.input("x", IMAGE, np.int8, quantization=self.scales)

    def product(self, name: str, shape: tuple, weights: tuple, axis: int, *first: int) -> int:
        """A convolution of the kind `name`; `first`: inputs before the weights."""
        scales = weights_quantization(self.rng, np.int8, 8, axis, True)
        values = random_integers(self.rng, weights, np.int8)
        w = self.constant(values, quantization=scales)
        bias = add_bias(self, self.rng, np.int8, self.scales, scales, 8)
        after = Quantization(self.scales.scales * 3, 5)
        inputs = [*first, w, self.last, bias] if first else [self.last, w, bias]
        stride = 2 if first else 1
        options = {"padding": "SAME", "stride_h": stride, "stride_w": stride}
        if name == "DEPTHWISE_CONV_2D":
            options["depth_multiplier"] = 1
        result = self.op(name, inputs, shape, quantization=after, **options)
        self.scales = after
        return result


def chain(rng: np.random.Generator) -> bytes:
    m = Network(rng)
    n, h, w, c = IMAGE
    m.last = m.product("CONV_2D", IMAGE, (c, 1, 1, c), 0)
    m.last = m.product("DEPTHWISE_CONV_2D", IMAGE, (1, 3, 3, c), 3)
    pooled = (n, h // 2, w // 2, c)
    m.last = m.op(
        "AVERAGE_POOL_2D", [m.last], pooled, quantization=m.scales, filter_height=2,
        filter_width=2, stride_h=2, stride_w=2, padding="VALID",
    )  # fmt: skip
    wide = (n, 2 * pooled[1], 2 * pooled[2], c)
    m.last = m.product(
        "TRANSPOSE_CONV", wide, (c, 3, 3, c), 0, m.constant(np.array(wide, np.int32))
    )
    m.output(m.last)
    return m.build()


def branches(rng: np.random.Generator) -> bytes:
    """Two results that are written where their concatenation lies."""
    m = Network(rng)
    source, scales = m.last, m.scales
    parts = []
    for name, weights, axis in (
        ("DEPTHWISE_CONV_2D", (1, 3, 3, 8), 3),
        ("CONV_2D", (8, 3, 3, 8), 0),
    ):
        m.last, m.scales = source, scales
        parts.append(m.product(name, IMAGE, weights, axis))
    m.output(m.op("CONCATENATION", parts, (*IMAGE[:3], 16), quantization=m.scales, axis=3))
    return m.build()


@pytest.mark.parametrize("build", [chain, branches])
def test_integers_stay_what_they_are(build, device, rng):
    model, image = build(rng), [random_integers(rng, IMAGE, np.int8)]
    (want,) = run_reference(model, image, op_runtime())
    launches = []
    for band in (None, 7):
        options = {} if band is None else {"row_band": band}
        delegate = clgpu_delegate.load(device=device, warm_up=False, **options)
        interpreter = make_interpreter(op_runtime(), model, [delegate])
        (got,) = run_interpreter(interpreter, image)
        explanation = delegate.explain()
        assert explanation.claimed == explanation.total
        launches.append(explanation.partitions[0].launches)
        np.testing.assert_array_equal(got, want)
    if build is chain:
        assert launches[1] > launches[0], f"no bands: {launches} launches"

"""Small models that the tests of the Python layer run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.model_maker import ModelMaker

SHAPE = (1, 7, 6, 3)
# How the modes of a Runner come about with `image`.
WAYS: dict[str, dict[str, Any]] = {
    "stream": {"zero_copy": "off"},
    "direct": {},
    "interpreters": {"exclude": "MAX_POOL_2D"},
    "invoke": {"exclude": "MAX_POOL_2D", "depth": 1},
}


def chain(shape: tuple[int, ...] = (2, 5), ops: tuple[str, ...] = ("TANH", "SOFTMAX")) -> bytes:
    """Operations without attributes, one after the other, on one input."""
    m = ModelMaker()
    x = m.input("x", shape)
    for name in ops:
        x = m.op(name, [x], shape, **({"beta": 1.0} if name == "SOFTMAX" else {}))
    m.output(x)
    return m.build()


def image(shape: tuple[int, int, int, int] = SHAPE) -> bytes:
    """A convolution with weights, a pool and a global mean, for images of any size."""
    n, h, w, c = shape
    rng = np.random.default_rng(5)
    m = ModelMaker()
    x = m.input("x", shape)
    weights = m.constant(rng.standard_normal((4, 3, 3, c)).astype(np.float32))
    bias = m.constant(rng.standard_normal(4).astype(np.float32))
    x = m.op(
        "CONV_2D", [x, weights, bias], (n, h, w, 4),
        padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU",
    )  # fmt: skip
    x = m.op(
        "MAX_POOL_2D", [x], (n, (h + 1) // 2, (w + 1) // 2, 4),
        padding="SAME", stride_w=2, stride_h=2, filter_width=2, filter_height=2,
    )  # fmt: skip
    m.output(m.op("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (n, 4)))
    return m.build()


def detour(size: int = 64) -> bytes:
    """Dense layers, and a result that waits while two larger tensors come and go.

    At float32 the waiting tensor takes ``size ** 2 * 16`` bytes, each of the larger ones four times
    as much; three dense layers have weights of ``size ** 2 * 4`` bytes.
    """
    rng = np.random.default_rng(6)
    m = ModelMaker()
    small, large = (1, size, size, 4), (1, 2 * size, 2 * size, 4)
    waiting = m.op("TANH", [m.input("x", small)], small)
    window = {"padding": "SAME", "filter_width": 3, "filter_height": 3}
    to = m.constant(np.array(large[1:3], np.int32))
    x = m.op("RESIZE_NEAREST_NEIGHBOR", [waiting, to], large)
    x = m.op("AVERAGE_POOL_2D", [x], large, stride_w=1, stride_h=1, **window)
    x = m.op("AVERAGE_POOL_2D", [x], small, stride_w=2, stride_h=2, **window)
    x = m.op("ADD", [x, waiting], small)
    x = m.op("MEAN", [x, m.constant(np.array([2, 3], np.int32))], (1, size))
    for _ in range(3):
        weights = rng.standard_normal((size, size)).astype(np.float32) / np.sqrt(size)
        x = m.op("FULLY_CONNECTED", [x, m.constant(weights.astype(np.float32))], (1, size))
    m.output(x)
    return m.build()


def unclaimed() -> bytes:
    """A type without kernels, float64, so the delegate claims nothing."""
    m = ModelMaker()
    x = m.input("x", (1, 4))
    m.output(m.op("CAST", [x], (1, 4), dtype=np.float64))
    return m.build()


def on_cpu(m: ModelMaker, x: int, shape: tuple[int, ...]) -> int:
    """Two nodes that have no kernels, whose result is x: casts to float64 and back."""
    wide = m.op("CAST", [x], shape, dtype=np.float64)
    return m.op("CAST", [wide], shape, dtype=np.float32)


def quantized() -> bytes:
    """Integer arithmetic only."""
    m = ModelMaker()
    x = m.input("x", (1, 4), np.int8, quantization=(0.5, 0))
    m.output(m.op("ADD", [x, x], (1, 4), quantization=(1.0, 0), version=2))
    return m.build()


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal numbers in float32."""
    return rng.standard_normal(shape).astype(np.float32)

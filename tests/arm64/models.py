"""Small networks: emulated, a kernel takes seconds to compile."""

from __future__ import annotations

import numpy as np

from tests.model_maker import ModelMaker


def network(rng: np.random.Generator) -> bytes:
    """Convolution, pool, dense layer and softmax, in floats: [1, 8, 8, 1] to [1, 10]."""

    def weights(*shape: int) -> int:
        return m.constant((rng.standard_normal(shape) / 3).astype(np.float32))

    m = ModelMaker()
    x = m.op(
        "CONV_2D", [m.input("x", (1, 8, 8, 1)), weights(6, 3, 3, 1), weights(6)], (1, 8, 8, 6),
        padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU",
    )  # fmt: skip
    x = m.op(
        "MAX_POOL_2D", [x], (1, 4, 4, 6),
        padding="VALID", stride_w=2, stride_h=2, filter_width=2, filter_height=2,
    )  # fmt: skip
    x = m.op("RESHAPE", [x, m.constant(np.array([1, 96], np.int32))], (1, 96), new_shape=[1, 96])
    x = m.op("FULLY_CONNECTED", [x, weights(10, 96), weights(10)], (1, 10))
    m.output(m.op("SOFTMAX", [x], (1, 10), beta=1.0))
    return m.build()


def integers(rng: np.random.Generator) -> bytes:
    """A convolution and a dense layer in 8-bit integers, negative ones among them."""

    def weights(channels: int, *shape: int) -> int:
        values = rng.integers(-127, 128, (channels, *shape), np.int8)
        return m.constant(values, quantization=(tuple(0.01 + 0.001 * np.arange(channels)), 0, 0))

    def bias(channels: int, scale: float) -> int:
        values = rng.integers(-500, 500, channels, np.int32)
        scales = tuple(scale * (0.01 + 0.001 * np.arange(channels)))
        return m.constant(values, quantization=(scales, 0, 0))

    m = ModelMaker()
    x = m.input("x", (1, 6, 6, 3), np.int8, quantization=(0.05, -3))
    x = m.op(
        "CONV_2D", [x, weights(4, 3, 3, 3), bias(4, 0.05)], (1, 4, 4, 4), quantization=(0.2, 7),
        padding="VALID", stride_w=1, stride_h=1, fused_activation_function="RELU",
    )  # fmt: skip
    x = m.op(
        "RESHAPE",
        [x, m.constant(np.array([1, 64], np.int32))],
        (1, 64),
        quantization=(0.2, 7),
        new_shape=[1, 64],
    )
    dense = m.constant(rng.integers(-127, 128, (5, 64), np.int8), quantization=(0.01, 0))
    m.output(m.op("FULLY_CONNECTED", [x, dense, None], (1, 5), quantization=(1.0, -20)))
    return m.build()

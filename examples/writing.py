"""From trained layers to a .tflite file."""

from __future__ import annotations

from collections.abc import Sequence

from examples.layers import AveragePool, Conv, Dense, Flatten, Layer, Relu, Tanh
from tests.model_maker import ModelMaker


def write(layers: Sequence[Layer], shape: tuple[int, ...], *, softmax: bool) -> bytes:
    """Write a network.

    Parameters
    ----------
    layers
        Trained.
    shape
        Of the input; its first axis counts the samples that run together.
    softmax
        Whether the results become probabilities.
    """
    m = ModelMaker()
    x = m.input("input", shape)
    for layer in layers:
        shape = m.shape(x)
        if isinstance(layer, (Conv, Dense)):
            inputs = [x, m.constant(layer.weights), m.constant(layer.bias)]
            outputs, kernel = layer.weights.shape[:2]
            if isinstance(layer, Dense):
                x = m.op("FULLY_CONNECTED", inputs, (shape[0], outputs))
            else:
                sizes = (side - kernel + 1 for side in shape[1:3])
                result = (shape[0], *sizes, outputs)
                x = m.op("CONV_2D", inputs, result, padding="VALID", stride_h=1, stride_w=1)
        elif isinstance(layer, AveragePool):
            x = m.op(
                "AVERAGE_POOL_2D", [x], (shape[0], shape[1] // 2, shape[2] // 2, shape[3]),
                padding="VALID", stride_h=2, stride_w=2, filter_height=2, filter_width=2,
            )  # fmt: skip
        elif isinstance(layer, Flatten):
            flat = (shape[0], shape[1] * shape[2] * shape[3])
            x = m.op("RESHAPE", [x], flat, new_shape=list(flat))
        elif isinstance(layer, (Relu, Tanh)):
            x = m.op(type(layer).__name__.upper(), [x], shape)
    if softmax:
        x = m.op("SOFTMAX", [x], m.shape(x), beta=1.0)
    m.output(x)
    return m.build()

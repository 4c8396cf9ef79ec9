"""The doctor stores only the bytes of its test model; they equal the output of `ModelMaker`."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from clgpu_delegate.doctor import model
from tests.model_maker import ModelMaker


def _some(*shape: int) -> np.ndarray:
    return ((np.arange(np.prod(shape)) * 5 % 7 - 3) / 4).astype(np.float32).reshape(shape)


def made() -> bytes:
    m = ModelMaker()
    x = m.input("x", (1, 4, 4, 2))
    x = m.op(
        "CONV_2D", [x, m.constant(_some(3, 3, 3, 2)), m.constant(_some(3))],
        (1, 4, 4, 3), padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU",
    )  # fmt: skip
    x = m.op("RESHAPE", [x, m.constant(np.array([1, 48], np.int32))], (1, 48), new_shape=[1, 48])
    x = m.op("FULLY_CONNECTED", [x, m.constant(_some(5, 48) / 8)], (1, 5))
    m.output(m.op("SOFTMAX", [x], (1, 5), beta=1.0))
    return m.build()


def test_embedded_model_is_the_one_described_here():
    text = base64.b64encode(zlib.compress(made(), 9)).decode()
    assert model.content() == made(), text

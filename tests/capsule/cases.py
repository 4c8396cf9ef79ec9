"""Models whose kernels the tests of capsules break."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from clgpu_delegate import _core
from tests.model_maker import ModelMaker

SOFTMAX = "softmax/softmax.cl"


@contextlib.contextmanager
def broken(file: str, old: str, new: str) -> Iterator[None]:
    """Replace a text in a kernel file for the time of a block."""
    text = _core.kernel_sources()[file]
    assert old in text
    _core.override_kernel_source(file, text.replace(old, new))
    try:
        yield
    finally:
        _core.override_kernel_source(file, None)


def wrong_softmax() -> contextlib.AbstractContextManager[None]:
    return broken(SOFTMAX, "beta * (LOAD", "1.5f * beta * (LOAD")


def network(blocks: int = 3, batch: int = 1) -> bytes:
    """Convolutions with residuals, a mean, a dense layer and a softmax."""
    rng = np.random.default_rng(3)
    m = ModelMaker()
    shape = (batch, 6, 6, 4)

    def weights(*extents: int) -> int:
        values = rng.standard_normal(extents) / np.sqrt(np.prod(extents[1:]))
        return m.constant(values.astype(np.float32))

    y = m.input("image", shape)
    for _ in range(blocks):
        z = m.op(
            "CONV_2D", [y, weights(4, 3, 3, 4), weights(4)], shape,
            padding="SAME", stride_w=1, stride_h=1,
        )  # fmt: skip
        z = m.op("ADD", [z, y], shape)
        y = m.op("TANH", [z], shape)
    y = m.op("MEAN", [y, m.constant(np.array([1, 2], np.int32))], (batch, 4))
    y = m.op("FULLY_CONNECTED", [y, weights(5, 4), weights(5)], (batch, 5))
    m.output(m.op("SOFTMAX", [y], (batch, 5), beta=1.0))
    return m.build()


def integers() -> bytes:
    """A chain in int8 that ends in a softmax."""
    m = ModelMaker()
    x = m.input("x", (2, 9), np.int8, quantization=(0.1, 0))
    for _ in range(4):
        x = m.op("ADD", [x, x], (2, 9), quantization=(0.1, 0), version=2)
    m.output(m.op("SOFTMAX", [x], (2, 9), quantization=(1 / 256, -128), beta=1.0, version=2))
    return m.build()

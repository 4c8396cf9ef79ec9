"""One small model of the layers for which mobile GPUs have special or reduced kernels."""

from __future__ import annotations

import numpy as np

from tests.model_maker import ModelMaker

WINDOW = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
DILATION = {"dilation_h_factor": 1, "dilation_w_factor": 1}


def other_layers() -> bytes:
    """All but CONV_2D's plain form and FULLY_CONNECTED, of floats."""
    m = ModelMaker()
    image = (1, 14, 14, 16)
    x = m.input("image", image)

    def add(op: str, inputs: list, shape: tuple, **options: object) -> None:
        m.output(m.op(op, inputs, shape, dtype=np.float32, **options))

    def ones(*shape: int) -> int:
        return m.constant(np.ones(shape, np.float32))

    for size, multiplier in ((3, 1), (5, 1), (3, 2)):
        channels = 16 * multiplier
        inputs = [x, ones(1, size, size, channels), ones(channels)]
        options = {**WINDOW, **DILATION, "depth_multiplier": multiplier}
        add("DEPTHWISE_CONV_2D", inputs, (1, 14, 14, channels), **options)
    shape = m.constant(np.array([1, 28, 28, 8], np.int32))
    strides = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    add("TRANSPOSE_CONV", [shape, ones(8, 4, 4, 16), x], (1, 28, 28, 8), **strides)
    for name in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        pool = {"padding": "VALID", "stride_h": 7, "stride_w": 7}
        add(name, [x], (1, 2, 2, 16), filter_height=7, filter_width=7, **pool)
    add("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (1, 16), keep_dims=False)
    add("SOFTMAX", [x], image, beta=1.0)
    swap = m.constant(np.array([0, 3, 1, 2], np.int32))
    add("TRANSPOSE", [x, swap], (1, 16, 14, 14))
    rows = m.input("rows", (2, 33, 24))
    for adj in (False, True):
        y = ones(2, 19, 24) if adj else ones(2, 24, 19)
        add("BATCH_MATMUL", [rows, y], (2, 33, 19), adj_x=False, adj_y=adj)
    # Enough tiles and channels for Winograd's transform on any of them.
    large = (1, 48, 48, 128)
    inputs = [m.input("large", large), ones(128, 3, 3, 128), ones(128)]
    add("CONV_2D", inputs, large, **WINDOW, **DILATION)
    return m.build()

"""MobileNet-v2: inverted residuals with linear bottlenecks (Sandler et al. 2018)."""

from __future__ import annotations

from bench.networks.layers import Net

_STAGES = (  # (expansion, filters, blocks, first stride), the paper's table 2
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(net: Net, batch: int = 1) -> None:
    """Describe the network: ``(batch, 224, 224, 3)`` to probabilities ``(batch, 1000)``."""
    x = net.input("image", (batch, 224, 224, 3))
    x = net.conv(x, 32, 3, 2, activation="RELU6")
    for expansion, filters, blocks, stride in _STAGES:
        for block in range(blocks):
            x = _inverted_residual(net, x, expansion, filters, 1 if block else stride)
    x = net.conv(x, 1280, 1, activation="RELU6")
    net.output(net.softmax(net.dense(net.global_pool(x), 1000, gain=3.0)))


def _inverted_residual(net: Net, x: int, expansion: int, filters: int, stride: int) -> int:
    channels = net.shape(x)[-1]
    residual = stride == 1 and channels == filters
    y = net.conv(x, expansion * channels, 1, activation="RELU6") if expansion > 1 else x
    y = net.depthwise(y, 3, stride, activation="RELU6")
    y = net.conv(y, filters, 1, activation=None, gain=0.5 if residual else 1.0)
    return net.add(x, y) if residual else y

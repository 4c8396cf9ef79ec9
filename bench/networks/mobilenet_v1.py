"""MobileNet-v1: depthwise separable convolutions (Howard et al. 2017)."""

from __future__ import annotations

from bench.networks.layers import Net

_SEPARABLE = (  # (filters, stride), the paper's table 1
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    (512, 1), (512, 1), (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip


def mobilenet_v1(net: Net, batch: int = 1) -> None:
    """Describe the network: ``(batch, 224, 224, 3)`` to probabilities ``(batch, 1000)``."""
    x = net.input("image", (batch, 224, 224, 3))
    x = net.conv(x, 32, 3, 2, activation="RELU6")
    for filters, stride in _SEPARABLE:
        x = net.depthwise(x, 3, stride, activation="RELU6")
        x = net.conv(x, filters, 1, activation="RELU6")
    net.output(net.softmax(net.dense(net.global_pool(x), 1000, gain=3.0)))

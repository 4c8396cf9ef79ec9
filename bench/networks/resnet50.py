"""ResNet-50: bottleneck residual blocks (He et al. 2015)."""

from __future__ import annotations

from bench.networks.layers import Net

_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # (filters, blocks, first stride)


def resnet50(net: Net, batch: int = 1) -> None:
    """Describe the network: ``(batch, 224, 224, 3)`` to probabilities ``(batch, 1000)``.

    Padding before the first convolution and pool is explicit, as in the original weights.
    """
    x = net.input("image", (batch, 224, 224, 3))
    x = net.conv(net.pad(x, 3), 64, 7, 2, padding="VALID")
    x = net.max_pool(net.pad(x, 1), 3, 2)
    for filters, blocks, stride in _STAGES:
        for block in range(blocks):
            x = _bottleneck(net, x, filters, stride, first=block == 0)
    net.output(net.softmax(net.dense(net.global_pool(x), 1000, gain=3.0)))


def _bottleneck(net: Net, x: int, filters: int, stride: int, *, first: bool) -> int:
    """Add a residual block; the first of a stage changes the shape, so its shortcut is learned."""
    step = stride if first else 1
    y = net.conv(x, filters, 1, step)
    y = net.conv(y, filters, 3)
    y = net.conv(y, 4 * filters, 1, activation=None, gain=0.5)
    shortcut = net.conv(x, 4 * filters, 1, step, activation=None) if first else x
    return net.add(shortcut, y, activation="RELU")

"""Inception-v1, or GoogLeNet, in its batch-normalized form (Szegedy et al. 2014)."""

from __future__ import annotations

from bench.networks.layers import Net


def inception_v1(net: Net, batch: int = 1) -> None:
    """Describe the network: ``(batch, 224, 224, 3)`` to probabilities ``(batch, 1000)``."""
    x = net.input("image", (batch, 224, 224, 3))
    x = net.max_pool(net.conv(x, 64, 7, 2), 3, 2, "SAME")
    x = net.conv(net.conv(x, 64, 1), 192, 3)
    x = net.max_pool(x, 3, 2, "SAME")
    x = _inception(net, x, 64, (96, 128), (16, 32), 32)
    x = _inception(net, x, 128, (128, 192), (32, 96), 64)
    x = net.max_pool(x, 3, 2, "SAME")
    x = _inception(net, x, 192, (96, 208), (16, 48), 64)
    x = _inception(net, x, 160, (112, 224), (24, 64), 64)
    x = _inception(net, x, 128, (128, 256), (24, 64), 64)
    x = _inception(net, x, 112, (144, 288), (32, 64), 64)
    x = _inception(net, x, 256, (160, 320), (32, 128), 128)
    x = net.max_pool(x, 3, 2, "SAME")
    x = _inception(net, x, 256, (160, 320), (32, 128), 128)
    x = _inception(net, x, 384, (192, 384), (48, 128), 128)
    x = net.flatten(net.avg_pool(x, 7, 1))
    net.output(net.softmax(net.dense(x, 1000, gain=3.0)))


def _inception(
    net: Net, x: int, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int
) -> int:
    """Join four branches; the pairs are (filters of the preceding 1 x 1, filters)."""
    return net.concat(
        net.conv(x, one, 1),
        net.conv(net.conv(x, three[0], 1), three[1], 3),
        net.conv(net.conv(x, five[0], 1), five[1], 5),
        net.conv(net.max_pool(x, 3, 1, "SAME"), pooled, 1),
    )

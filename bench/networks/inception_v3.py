"""Inception-v3, with factorized 7 x 7 convolutions (Szegedy et al. 2015)."""

from __future__ import annotations

from bench.networks.layers import Net


def inception_v3(net: Net, batch: int = 1) -> None:
    """Describe the network: ``(batch, 299, 299, 3)`` to probabilities ``(batch, 1000)``."""
    x = net.input("image", (batch, 299, 299, 3))
    x = net.conv(x, 32, 3, 2, padding="VALID")
    x = net.conv(x, 32, 3, padding="VALID")
    x = net.max_pool(net.conv(x, 64, 3), 3, 2)
    x = net.conv(x, 80, 1, padding="VALID")
    x = net.max_pool(net.conv(x, 192, 3, padding="VALID"), 3, 2)
    for pooled in (32, 64, 64):
        x = _block_35(net, x, pooled)
    x = _reduce_35(net, x)
    for narrow in (128, 160, 160, 192):
        x = _block_17(net, x, narrow)
    x = _reduce_17(net, x)
    for _ in range(2):
        x = _block_8(net, x)
    net.output(net.softmax(net.dense(net.global_pool(x), 1000, gain=3.0)))


def _block_35(net: Net, x: int, pooled: int) -> int:
    """Add the module of the 35 x 35 grid: the paper's figure 5."""
    double = net.conv(net.conv(x, 64, 1), 96, 3)
    return net.concat(
        net.conv(x, 64, 1),
        net.conv(net.conv(x, 48, 1), 64, 5),
        net.conv(double, 96, 3),
        net.conv(net.avg_pool(x, 3, 1, "SAME"), pooled, 1),
    )


def _reduce_35(net: Net, x: int) -> int:
    """Go from 35 x 35 to 17 x 17."""
    double = net.conv(net.conv(x, 64, 1), 96, 3)
    return net.concat(
        net.conv(x, 384, 3, 2, padding="VALID"),
        net.conv(double, 96, 3, 2, padding="VALID"),
        net.max_pool(x, 3, 2),
    )


def _block_17(net: Net, x: int, narrow: int) -> int:
    """Add the module of the 17 x 17 grid: the paper's figure 6 with n = 7."""
    single = net.conv(net.conv(x, narrow, 1), narrow, (1, 7))
    double = net.conv(net.conv(net.conv(x, narrow, 1), narrow, (7, 1)), narrow, (1, 7))
    return net.concat(
        net.conv(x, 192, 1),
        net.conv(single, 192, (7, 1)),
        net.conv(net.conv(double, narrow, (7, 1)), 192, (1, 7)),
        net.conv(net.avg_pool(x, 3, 1, "SAME"), 192, 1),
    )


def _reduce_17(net: Net, x: int) -> int:
    """Go from 17 x 17 to 8 x 8."""
    factorized = net.conv(net.conv(net.conv(x, 192, 1), 192, (1, 7)), 192, (7, 1))
    return net.concat(
        net.conv(net.conv(x, 192, 1), 320, 3, 2, padding="VALID"),
        net.conv(factorized, 192, 3, 2, padding="VALID"),
        net.max_pool(x, 3, 2),
    )


def _block_8(net: Net, x: int) -> int:
    """Add the module of the 8 x 8 grid: the paper's figure 7."""
    single = net.conv(x, 384, 1)
    double = net.conv(net.conv(x, 448, 1), 384, 3)
    return net.concat(
        net.conv(x, 320, 1),
        *(net.conv(branch, 384, kernel) for branch in (single, double)
          for kernel in ((1, 3), (3, 1))),
        net.conv(net.avg_pool(x, 3, 1, "SAME"), 192, 1),
    )  # fmt: skip

"""ESPCN: super-resolution that shuffles channels into pixels (Shi et al. 2016)."""

from __future__ import annotations

from bench.networks.layers import Net


def espcn(net: Net, batch: int = 1, *, size: int = 128, factor: int = 3) -> None:
    """Describe the network: ``(batch, size, size, 1)`` to an image ``factor`` times as large."""
    x = net.input("luma", (batch, size, size, 1))
    x = net.conv(x, 64, 5, activation="TANH")
    x = net.conv(x, 32, 3, activation="TANH")
    x = net.conv(x, factor**2, 3, activation=None, gain=0.25)
    net.output(net.depth_to_space(x, factor))

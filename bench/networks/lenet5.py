"""LeNet-5: digits of 32 x 32 pixels (LeCun et al. 1998)."""

from __future__ import annotations

from bench.networks.layers import Net


def lenet5(net: Net, batch: int = 1) -> None:
    """Describe the network: ``(batch, 32, 32, 1)`` to probabilities ``(batch, 10)``."""
    x = net.input("image", (batch, 32, 32, 1))
    x = net.conv(x, 6, 5, padding="VALID", activation="TANH")
    x = net.avg_pool(x, 2, 2)
    x = net.conv(x, 16, 5, padding="VALID", activation="TANH")
    x = net.avg_pool(x, 2, 2)
    x = net.conv(x, 120, 5, padding="VALID", activation="TANH")
    x = net.dense(net.flatten(x), 84, activation="TANH")
    net.output(net.softmax(net.dense(x, 10, gain=6.0)))

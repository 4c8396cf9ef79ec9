"""AlexNet: the two-tower network with local response normalization (Krizhevsky et al. 2012)."""

from __future__ import annotations

from bench.networks.layers import Net


def alexnet(net: Net, batch: int = 1) -> None:
    """Describe the network: ``(batch, 227, 227, 3)`` to probabilities ``(batch, 1000)``.

    The towers are the groups of a grouped CONV_2D. The first dense layer's weights are a
    TRANSPOSE of a constant, so a delegate that does not fold constants moves 151 MB more.
    """
    x = net.input("image", (batch, 227, 227, 3))
    x = net.conv(x, 96, 11, 4, padding="VALID")
    x = net.max_pool(net.local_response_norm(x), 3, 2)
    x = net.conv(x, 256, 5, groups=2)
    x = net.max_pool(net.local_response_norm(x), 3, 2)
    x = net.conv(x, 384, 3)
    x = net.conv(x, 384, 3, groups=2)
    x = net.conv(x, 256, 3, groups=2)
    x = net.flatten(net.max_pool(x, 3, 2))
    x = net.dense(x, 4096, activation="RELU", transposed=True)
    x = net.dense(x, 4096, activation="RELU")
    net.output(net.softmax(net.dense(x, 1000, gain=3.0)))

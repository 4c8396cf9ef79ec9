"""U-Net: segmentation with skip connections (Ronneberger et al. 2015), zero padded and narrower."""

from __future__ import annotations

from bench.networks.layers import Net

_LEVELS = 3


def unet(net: Net, batch: int = 1, *, size: int = 128, width: int = 16) -> None:
    """Describe the network: ``(batch, size, size, 3)`` to a mask ``(batch, size, size, 1)``.

    Parameters
    ----------
    size
        Image height and width; a multiple of 8.
    width
        Filters of the first level; the paper has 64.
    """
    x = net.input("image", (batch, size, size, 3))
    skips = []
    for level in range(_LEVELS):
        skips.append(_convs(net, x, width << level))
        x = net.max_pool(skips[-1], 2, 2)
    x = _convs(net, x, width << _LEVELS)
    for level in reversed(range(_LEVELS)):
        x = net.transpose_conv(x, width << level, 3, 2)
        x = _convs(net, net.concat(x, skips[level]), width << level)
    net.output(net.conv(x, 1, 1, activation="LOGISTIC", gain=2.0))


def _convs(net: Net, x: int, filters: int) -> int:
    return net.conv(net.conv(x, filters, 3), filters, 3)

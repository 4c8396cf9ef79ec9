"""PyNET: a five-level pyramid that develops raw photographs (Ignatov et al. 2020).

Level 1 works at the raw resolution, level 5 at a sixteenth of it; coarse levels understand the
scene, fine ones paint it. Each level starts from its own features of the photograph and from what
the level below hands up. The published PyTorch form: reflection padding, bilinear up-sampling.
"""

from __future__ import annotations

from bench.networks.layers import Net

_RESIDUAL = 0.3  # mean square of what a residual block adds, so that sums of three stay O(1)
_KERNELS = (3, 5, 7, 9)  # of the parallel branches of a block


def pynet(net: Net, batch: int = 1, *, size: int = 64, width: float = 1.0) -> None:
    """Describe the network: ``(batch, size, size, 4)`` to ``(batch, 2 * size, 2 * size, 3)``.

    Parameters
    ----------
    size
        Height and width of the raw image, of which each pixel has the four sites of a Bayer cell.
        A multiple of 16, and at least 32: level 5 must be wider than its padding.
    width
        Factor on all filter counts; 1 is the published network (47 million weights).
    """
    f1, f2, f3, f4, f5 = (max(4, round(width * filters)) for filters in (32, 64, 128, 256, 512))
    x = net.input("raw", (batch, size, size, 4))
    d1 = _block(net, x, f1, 3, normalized=False)
    d2 = _block(net, net.max_pool(d1, 2, 2), f2, 3)
    d3 = _block(net, net.max_pool(d2, 2, 2), f3, 3)
    d4 = _block(net, net.max_pool(d3, 2, 2), f4, 3)
    x = _block(net, net.max_pool(d4, 2, 2), f5, 3)

    for _ in range(3):  # level 5
        x = _block(net, x, f5, 3)
    below_a, below_b = _up(net, x, f4), _up(net, x, f4)

    x = _block(net, net.concat(d4, below_a), f4, 3)  # level 4
    for _ in range(2):
        x = net.add(_block(net, x, f4, 3, gain=_RESIDUAL), x)
    x = _block(net, net.concat(_block(net, x, f4, 3), below_b), f4, 3)
    below_a, below_b = _up(net, x, f3), _up(net, x, f3)

    x = net.concat(d3, below_a)  # level 3
    for _ in range(3):
        x = net.add(_block(net, x, f3, 5, gain=_RESIDUAL), x)
    x = _block(net, net.concat(_block(net, x, f3, 5), d3, below_b), f3, 3)
    below_a, below_b = _up(net, x, f2), _up(net, x, f2)

    x = net.concat(_block(net, net.concat(d2, below_a), f2, 5), d2)  # level 2
    for _ in range(3):
        x = net.add(_block(net, x, f2, 7, gain=_RESIDUAL), x)
    x = net.concat(_block(net, x, f2, 7), d2)
    x = _block(net, net.concat(_block(net, x, f2, 5), below_b), f2, 3)
    below_a, below_b = _up(net, x, f1), _up(net, x, f1)

    x = net.concat(_block(net, net.concat(d1, below_a), f1, 5, normalized=False), d1)  # level 1
    x = _block(net, x, f1, 7, normalized=False)
    x = _block(net, x, f1, 9, normalized=False)
    for _ in range(3):
        x = net.add(_block(net, x, f1, 9, normalized=False, gain=_RESIDUAL), x)
    x = net.concat(_block(net, x, f1, 7, normalized=False), d1)
    x = net.concat(_block(net, x, f1, 5, normalized=False), below_b, d1)
    x = _block(net, x, f1, 3, normalized=False)

    x = _up(net, x, max(4, round(16 * width)))  # level 0
    net.output(net.activate(_conv(net, x, 3, 3), "LOGISTIC"))


def _block(
    net: Net, x: int, filters: int, largest: int, *, normalized: bool = True, gain: float = 1.0
) -> int:
    """Join branches of two convolutions each, with kernels of 3 to ``largest``."""
    branches = []
    for kernel in _KERNELS[: _KERNELS.index(largest) + 1]:
        y = x
        for _ in range(2):
            y = _conv(net, y, filters, kernel, gain=gain)
            if normalized:
                # Shifts of the order of the signal keep the 60 normalizations in a row from
                # turning rounding errors into noise.
                y = net.normalize(y, (1, 2), scale=0.7 * gain**0.5, shift=0.8 * gain**0.5)
            y = net.activate(y, "LEAKY_RELU")
        branches.append(y)
    return branches[0] if len(branches) == 1 else net.concat(*branches)


def _conv(net: Net, x: int, filters: int, kernel: int, *, gain: float = 1.0) -> int:
    framed = net.pad(x, kernel // 2, reflect=True)
    return net.conv(framed, filters, kernel, padding="VALID", activation=None, gain=gain)


def _up(net: Net, x: int, filters: int) -> int:
    return net.activate(_conv(net, net.resize_bilinear(x, 2), filters, 3), "LEAKY_RELU")

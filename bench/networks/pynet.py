"""PyNET: a five-level pyramid that develops raw photographs (Ignatov et al. 2020).

Level 1 works at the raw resolution, level 5 at a sixteenth of it; coarse levels capture the
scene, fine ones its details. Each level starts from its own features of the photograph and from the
output of the level below. Two forms are published: PyTorch's has reflection padding, bilinear
up-sampling and a sigmoid at its end; TensorFlow's has zero padding, transposed convolutions, tanh
ends of every level, and residuals in level 5.
"""

from __future__ import annotations

from bench.networks.layers import Net, Size

_RESIDUAL = 0.3  # mean square of a residual block's sum, so that sums of three stay O(1)
_KERNELS = (3, 5, 7, 9)  # of the parallel branches of a block
_FILTERS = (32, 64, 128, 256, 512)  # of a branch, by level
FLAVOURS = ("pt", "tf")


def pynet(
    net: Net, batch: int = 1, *, size: Size = 64, width: float = 1.0, flavour: str = "pt"
) -> None:
    """Describe the network: ``(batch, h, w, 4)`` to ``(batch, 2 * h, 2 * w, 3)``.

    Parameters
    ----------
    size
        Height and width of the raw image, whose pixels have the four sites of a Bayer cell.
        Multiples of 16, and at least 32: level 5 must be wider than its padding.
    width
        Factor on all filter counts; 1 is the published network (47 million weights).
    flavour
        ``"pt"``, the form of PyTorch, or ``"tf"``, that of TensorFlow, which has six outputs: the
        images of the levels, the finest first.

    Raises
    ------
    ValueError
        If there is no such size or flavour.
    """
    height, wide = size if isinstance(size, tuple) else (size, size)
    if min(height, wide) < 32 or height % 16 or wide % 16:
        raise ValueError(f"PyNET of {height} x {wide}: sizes are multiples of 16 from 32 on")
    if flavour not in FLAVOURS:
        raise ValueError(f"{flavour!r} is no flavour; there are {', '.join(FLAVOURS)}")
    filters = [max(4, round(width * count)) for count in _FILTERS]
    raw = net.input("raw", (batch, height, wide, 4))
    if flavour == "pt":
        _describe(_PyTorch(net), raw, filters, max(4, round(16 * width)))
    else:
        _describe(_TensorFlow(net), raw, filters, max(4, round(8 * width)))


class _PyTorch:
    """The operations that differ between the two forms, as in PyTorch's."""

    residuals_of_level_5 = False

    def __init__(self, net: Net) -> None:
        self.net = net
        self.images: list[int] = []  # of the levels that have an end, the coarsest first

    def conv(self, x: int, filters: int, kernel: int, *, gain: float = 1.0) -> int:
        framed = self.net.pad(x, kernel // 2, reflect=True)
        return self.net.conv(framed, filters, kernel, padding="VALID", activation=None, gain=gain)

    def up(self, x: int, filters: int, count: int = 1) -> list[int]:
        """Enlarge ``x`` several times; the interpolation is shared, as converters do it."""
        larger = self.net.resize_bilinear(x, 2)
        return [
            self.net.activate(self.conv(larger, filters, 3), "LEAKY_RELU") for _ in range(count)
        ]

    def level_end(self, x: int) -> None:
        """Coarser levels have images in training only."""

    def end(self, x: int) -> None:
        self.net.output(self.net.activate(self.conv(x, 3, 3), "LOGISTIC"))


class _TensorFlow(_PyTorch):
    residuals_of_level_5 = True

    def conv(self, x: int, filters: int, kernel: int, *, gain: float = 1.0) -> int:
        return self.net.conv(x, filters, kernel, activation=None, gain=gain)

    def up(self, x: int, filters: int, count: int = 1) -> list[int]:
        return [
            self.net.activate(self.net.transpose_conv(x, filters, 3, 2), "LEAKY_RELU")
            for _ in range(count)
        ]

    def level_end(self, x: int) -> None:
        image = self.net.activate(self.conv(x, 3, 3, gain=0.5), "TANH")
        self.images.append(self.net.offset(self.net.scale(image, 0.58), 0.5))

    def end(self, x: int) -> None:
        self.level_end(x)
        self.net.output(*reversed(self.images))


def _describe(form: _PyTorch, x: int, filters: list[int], last: int) -> None:
    """Describe either form, whose level 0 has ``last`` filters."""
    net = form.net
    f1, f2, f3, f4, f5 = filters
    d1 = _block(form, x, f1, 3, normalized=False)
    d2 = _block(form, net.max_pool(d1, 2, 2), f2, 3)
    d3 = _block(form, net.max_pool(d2, 2, 2), f3, 3)
    d4 = _block(form, net.max_pool(d3, 2, 2), f4, 3)
    x = _block(form, net.max_pool(d4, 2, 2), f5, 3)

    for _ in range(2):  # level 5
        y = _block(form, x, f5, 3)
        x = net.add(y, x) if form.residuals_of_level_5 else y
    x = _block(form, x, f5, 3)
    form.level_end(x)
    below_a, below_b = form.up(x, f4, 2)

    x = _block(form, net.concat(d4, below_a), f4, 3)  # level 4
    for _ in range(2):
        x = net.add(_block(form, x, f4, 3, gain=_RESIDUAL), x)
    x = _block(form, net.concat(_block(form, x, f4, 3), below_b), f4, 3)
    form.level_end(x)
    below_a, below_b = form.up(x, f3, 2)

    x = net.concat(d3, below_a)  # level 3
    for _ in range(3):
        x = net.add(_block(form, x, f3, 5, gain=_RESIDUAL), x)
    x = _block(form, net.concat(_block(form, x, f3, 5), d3, below_b), f3, 3)
    form.level_end(x)
    below_a, below_b = form.up(x, f2, 2)

    x = net.concat(_block(form, net.concat(d2, below_a), f2, 5), d2)  # level 2
    for _ in range(3):
        x = net.add(_block(form, x, f2, 7, gain=_RESIDUAL), x)
    x = net.concat(_block(form, x, f2, 7), d2)
    x = _block(form, net.concat(_block(form, x, f2, 5), below_b), f2, 3)
    form.level_end(x)
    below_a, below_b = form.up(x, f1, 2)

    x = net.concat(_block(form, net.concat(d1, below_a), f1, 5, normalized=False), d1)  # level 1
    x = _block(form, x, f1, 7, normalized=False)
    x = _block(form, x, f1, 9, normalized=False)
    for _ in range(3):
        x = net.add(_block(form, x, f1, 9, normalized=False, gain=_RESIDUAL), x)
    x = net.concat(_block(form, x, f1, 7, normalized=False), d1)
    x = net.concat(_block(form, x, f1, 5, normalized=False), below_b, d1)
    x = _block(form, x, f1, 3, normalized=False)

    form.level_end(x)

    form.end(*form.up(x, last))  # level 0


def _block(
    form: _PyTorch,
    x: int,
    filters: int,
    largest: int,
    *,
    normalized: bool = True,
    gain: float = 1.0,
) -> int:
    """Join branches of two convolutions each, with kernels of 3 to ``largest``."""
    net = form.net
    branches = []
    for kernel in _KERNELS[: _KERNELS.index(largest) + 1]:
        y = x
        for _ in range(2):
            y = form.conv(y, filters, kernel, gain=gain)
            if normalized:
                # Shifts of the order of the signal keep 60 successive normalizations from
                # amplifying rounding errors to noise.
                y = net.normalize(y, (1, 2), scale=0.7 * gain**0.5, shift=0.8 * gain**0.5)
            y = net.activate(y, "LEAKY_RELU")
        branches.append(y)
    return branches[0] if len(branches) == 1 else net.concat(*branches)

"""The 35 convolution layers of PyNET, and a model of one layer that needs little host memory."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from tests.model_maker import ModelMaker

# Channels, height, width, filter, filters of each layer: one image, stride 1, SAME.
_PYNET = """
4,1440,1984,3,32  32,1440,1984,3,32  32,720,992,3,64    64,720,992,3,64   64,360,496,3,128
128,360,496,3,128 128,180,248,3,256  256,180,248,3,256  256,90,124,3,512  512,90,124,3,512
512,180,248,3,256 512,90,124,3,3     256,360,496,3,128  256,180,248,3,3   256,360,496,5,128
128,360,496,5,128 512,360,496,3,128  128,720,992,3,64   128,360,496,3,3   128,720,992,5,64
64,720,992,5,64   192,720,992,3,64   192,720,992,5,64   192,720,992,7,64  64,720,992,7,64
256,720,992,3,64  256,720,992,5,64   64,1440,1984,3,32  64,720,992,3,3    32,1440,1984,5,32
32,1440,1984,7,32 32,1440,1984,9,32  16,2880,3968,3,16  32,1440,1984,3,3  16,2880,3968,3,3
"""

CONV_NODE = 1  # its index in the model of `Case`
_SAMPLES = 256  # pixels that are compared


class Layer(NamedTuple):
    """A convolution of one image with stride 1, SAME, and a bias.

    ``filter`` is the extent of the square filters, ``filters`` their number, that is the output's
    channels; ``number`` counts the published layers from 1.
    """

    number: int
    channels: int
    height: int
    width: int
    filter: int
    filters: int

    def __str__(self) -> str:
        return ",".join(map(str, self[1:]))

    @property
    def flops(self) -> float:
        """Operations: two for each multiply-add, those on padding included."""
        return 2.0 * self.height * self.width * self.filters * self.filter**2 * self.channels

    def bytes(self, size: int) -> float:
        """Bytes that must move: input, output and filters, of ``size`` bytes per element, once."""
        pixels = self.height * self.width
        weights = self.filters * self.filter**2 * self.channels
        return float(size * (pixels * (self.channels + self.filters) + weights))

    def scaled(self, scale: float) -> Layer:
        """The layer with height and width multiplied, and rounded."""
        size = {"height": self.height, "width": self.width}
        return self._replace(**{k: max(1, round(v * scale)) for k, v in size.items()})


LAYERS = [
    Layer(number, *map(int, text.split(","))) for number, text in enumerate(_PYNET.split(), 1)
]


def select(text: str) -> list[Layer]:
    """Read a choice of layers.

    Parameters
    ----------
    text
        Numbers and ranges of the published layers (``"1,4-6"``), or ``""`` for all.

    Raises
    ------
    ValueError
        If a part is no number or range within 1 to 35.
    """
    chosen: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            numbers = range(0)
        if not numbers or numbers[0] < 1 or numbers[-1] > len(LAYERS):
            raise ValueError(f"{part!r} is no layer; layers are 1 to {len(LAYERS)}, as in '1,4-6'")
        chosen.extend(numbers)
    return [LAYERS[number - 1] for number in dict.fromkeys(chosen)] if chosen else LAYERS


@dataclasses.dataclass
class Case:
    """A layer with seeded data, as a model whose large tensors exist only on the device.

    A small image is repeated by TILE, convolved (node `CONV_NODE`), and GATHER_ND picks a few
    hundred pixels. So the largest layer takes megabytes, not gigabytes, on the host, and tensors
    that are stored as half need no conversion or copy.

    Attributes
    ----------
    layer
        The layer.
    tile
        The image that is repeated: ``(1, h, w, channels)``, normal numbers.
    weights, bias
        ``(filters, filter, filter, channels)`` and ``(filters,)``.
    pixels
        Compared ones, among them the corners: ``(samples, 3)``, rows of 0, y and x.
    """

    layer: Layer
    tile: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    pixels: np.ndarray

    @classmethod
    def of(cls, layer: Layer, seed: int = 0) -> Case:
        """Draw the data of a layer."""
        random = np.random.default_rng([seed, *layer])
        h, w = (extent // _multiple(extent) for extent in (layer.height, layer.width))
        fan_in = layer.filter**2 * layer.channels
        shape = (layer.filters, layer.filter, layer.filter, layer.channels)
        ends = [[0, y, x] for y in (0, layer.height - 1) for x in (0, layer.width - 1)]
        inner = random.integers([0, 0, 0], [1, layer.height, layer.width], (_SAMPLES, 3))
        return cls(
            layer,
            random.standard_normal((1, h, w, layer.channels), np.float32),
            random.standard_normal(shape, np.float32) / np.float32(np.sqrt(fan_in)),
            random.standard_normal((layer.filters,), np.float32),
            np.concatenate([ends, inner]).astype(np.int32),
        )

    def model(self) -> bytes:
        """Bytes of the .tflite file; it takes `tile` and returns ``(samples, filters)``."""
        layer = self.layer
        size = (layer.height, layer.width)
        multiples = [1, *(a // b for a, b in zip(size, self.tile.shape[1:3])), 1]
        maker = ModelMaker()
        x = maker.input("tile", self.tile.shape)
        x = maker.op(
            "TILE", [x, maker.constant(np.array(multiples, np.int32))], (1, *size, layer.channels)
        )
        x = maker.op(
            "CONV_2D", [x, maker.constant(self.weights), maker.constant(self.bias)],
            (1, *size, layer.filters), padding="SAME", stride_h=1, stride_w=1,
        )  # fmt: skip
        shape = (len(self.pixels), layer.filters)
        maker.output(maker.op("GATHER_ND", [x, maker.constant(self.pixels)], shape))
        return maker.build()

    @functools.cached_property
    def reference(self) -> np.ndarray:
        """What the model computes, in float64."""
        layer, (_, h, w, _) = self.layer, self.tile.shape
        before = (layer.filter - 1) // 2
        reach = np.arange(layer.filter) - before
        y = self.pixels[:, 1, None, None] + reach[:, None]
        x = self.pixels[:, 2, None, None] + reach[None, :]
        inside = (y >= 0) & (y < layer.height) & (x >= 0) & (x < layer.width)
        patches = self.tile[0].astype(np.float64)[y % h, x % w] * inside[..., None]
        axes = ((1, 2, 3), (1, 2, 3))
        return np.tensordot(patches, self.weights.astype(np.float64), axes) + self.bias

    def error(self, got: np.ndarray) -> float:
        """Largest deviation of a result from `reference`, relative to its root mean square."""
        want = self.reference
        return float(np.abs(got - want).max() / np.sqrt(np.mean(want**2)))


def _multiple(extent: int) -> int:
    """How often a part of an extent is repeated: the largest of some numbers that divide it."""
    return next(m for m in (16, 8, 4, 2, 1) if extent % m == 0)

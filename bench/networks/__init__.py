"""Classic networks with seeded random weights, written as .tflite files without a converter.

>>> model = build("lenet5", batch=2)
>>> (image,) = sample_inputs(model, seed=1)
>>> image.shape
(2, 32, 32, 1)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.networks.alexnet import alexnet
from bench.networks.espcn import espcn
from bench.networks.inception_v1 import inception_v1
from bench.networks.inception_v3 import inception_v3
from bench.networks.layers import Net
from bench.networks.lenet5 import lenet5
from bench.networks.mixtures import decoder_moe, imagenet_moe
from bench.networks.mobilenet_v1 import mobilenet_v1
from bench.networks.mobilenet_v2 import mobilenet_v2
from bench.networks.pynet import pynet
from bench.networks.resnet50 import resnet50
from bench.networks.samples import Input, inputs_of, sample
from bench.networks.transformer import transformer
from bench.networks.unet import unet


@dataclasses.dataclass(frozen=True)
class NetworkInfo:
    """A network that `build` knows.

    Attributes
    ----------
    describe
        Adds the layers to a `Net`; called with the batch size, and sizes by keyword.
    inputs
        Its inputs at batch 1 and at its default size.
    description
        What it is, and what it tests.
    """

    describe: Callable[..., None]
    inputs: tuple[Input, ...]
    description: str

    def make(
        self, batch: int = 1, *, seed: int = 0, float16_weights: bool = False, **sizes: Any
    ) -> Net:
        """Return the network before it is written; its ``macs`` are its multiply-accumulates."""
        net = Net(seed, float16_weights=float16_weights)
        self.describe(net, batch, **sizes)
        return net

    def build(self, batch: int = 1, **options: Any) -> bytes:
        """Return the bytes of the .tflite file; options as in `make`."""
        return self.make(batch, **options).build()


def _image(size: int, channels: int = 3, name: str = "image") -> tuple[Input]:
    return (Input(name, (1, size, size, channels)),)


NETWORKS = {
    "alexnet": NetworkInfo(
        alexnet, _image(227), "grouped convolution, LRN, 240 MB of mostly dense weights"
    ),
    "espcn": NetworkInfo(
        espcn, _image(128, 1, "luma"), "super-resolution: large images, few channels"
    ),
    "inception_v1": NetworkInfo(
        inception_v1, _image(224), "parallel branches that are concatenated"
    ),
    "inception_v3": NetworkInfo(
        inception_v3, _image(299), "1 x 7 and 7 x 1 convolutions, average pools"
    ),
    "lenet5": NetworkInfo(
        lenet5, _image(32, 1), "so small that launches cost more than arithmetic"
    ),
    "mobilenet_v1": NetworkInfo(
        mobilenet_v1, _image(224), "depthwise and 1 x 1 convolutions in turn"
    ),
    "mobilenet_v2": NetworkInfo(
        mobilenet_v2, _image(224), "inverted residuals with linear bottlenecks"
    ),
    "pynet": NetworkInfo(
        pynet, _image(64, 4, "raw"), "3 x 3 to 9 x 9 convolutions, reflection, normalization"
    ),
    "resnet50": NetworkInfo(resnet50, _image(224), "residual blocks, mostly of 1 x 1 convolutions"),
    "transformer": NetworkInfo(
        transformer,
        (Input("ids", (1, 64), np.dtype(np.int32)),),
        "embedding, attention, layer normalization",
    ),
    "unet": NetworkInfo(unet, _image(128), "transposed convolution, skip connections"),
}

# Measured by ``python -m bench experts``, ``formats`` and ``mixed`` only.
MIXTURES = {
    "imagenet_moe": NetworkInfo(
        imagenet_moe, _image(227), "4 of 16 convolutional experts for each image"
    ),
    "decoder_moe": NetworkInfo(
        decoder_moe, (Input("tokens", (1, 2048)),), "8 of 64 experts for each token"
    ),
}


def build(name: str, batch: int = 1, **options: Any) -> bytes:
    """Write a network.

    Parameters
    ----------
    name
        A key of `NETWORKS` or `MIXTURES`.
    batch
        Images, or texts, per run.
    **options
        ``seed`` of the weights, ``float16_weights`` to store them as float16 with DEQUANTIZE,
        and the sizes that the network's own function takes.

    Returns
    -------
    bytes
        Of a .tflite file.

    Raises
    ------
    ValueError
        If there is no such network.
    """
    return _info(name).build(batch, **options)


def sample_inputs(network: str | bytes, seed: int = 0) -> list[np.ndarray]:
    """Draw inputs for a network given by name (at batch 1) or as the bytes of a .tflite file."""
    inputs = _info(network).inputs if isinstance(network, str) else inputs_of(network)
    return sample(inputs, seed)


def _info(name: str) -> NetworkInfo:
    known = NETWORKS | MIXTURES
    if name not in known:
        raise ValueError(f"no network {name!r}; there are {', '.join(known)}")
    return known[name]

"""Handwritten digits through LeNet-5 (LeCun et al. 1998): ``python -m examples.lenet``.

The digits of `examples.digits`, enlarged to LeNet's 32 x 32 pixels.
"""

from __future__ import annotations

import functools

import numpy as np

from examples import formats, layers, writing
from examples.digits import Digits, accuracy, split

_MARGIN = 2  # pixels around the 28 x 28 that the digit takes


def enlarge(digits: Digits) -> np.ndarray:
    """``(n, 32, 32, 1)``: bilinear between the 8 x 8 pixels."""
    at = np.linspace(0, 7, 28)
    low = np.minimum(at.astype(int), 6)
    part = (at - low).astype(np.float32)
    rows = digits.images[:, low] * (1 - part)[:, None] + digits.images[:, low + 1] * part[:, None]
    both = rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part
    return np.pad(both, ((0, 0), (_MARGIN, _MARGIN), (_MARGIN, _MARGIN)))[..., np.newaxis]


def network(rng: np.random.Generator) -> list[layers.Layer]:
    """LeNet-5 with full connections between its feature maps."""
    return [
        layers.Conv(5, 1, 6, rng), layers.Tanh(), layers.AveragePool(),
        layers.Conv(5, 6, 16, rng), layers.Tanh(), layers.AveragePool(),
        layers.Conv(5, 16, 120, rng), layers.Tanh(), layers.Flatten(),
        layers.Dense(120, 84, rng), layers.Tanh(),
        layers.Dense(84, 10, rng),
    ]  # fmt: skip


@functools.lru_cache
def trained() -> list[layers.Layer]:
    """The network, trained in some seconds."""
    rng = np.random.default_rng(0)
    training, _ = split()
    lenet = network(rng)
    gradient = layers.cross_entropy_gradient(training.labels)
    x = enlarge(training)
    for _ in layers.train(lenet, x, gradient, epochs=6, batch=32, rate=0.003, rng=rng):
        pass
    return lenet


def model(batch: int = 1) -> bytes:
    """The trained network as a .tflite file for so many digits at once."""
    return writing.write(trained(), (batch, 32, 32, 1), softmax=True)


def task() -> formats.Task:
    """Train; the score is the accuracy."""
    training, test = split()
    return formats.Task(model(), enlarge(training)[:100], enlarge(test), accuracy(test.labels))


if __name__ == "__main__":
    formats.show(formats.compare(task()), "Digits, LeNet-5", "accuracy, %")

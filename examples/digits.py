"""Handwritten digits, two fully connected layers: ``python -m examples.digits``.

The digits are those that scikit-learn ships: 1797 images of 8 x 8 pixels, from the test set of
Alpaydin and Kaynak's *Optical Recognition of Handwritten Digits* (UCI repository, 1998).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from examples import formats, layers, writing

TRAINING = 1297  # images; the other 500 are the test set


class Digits(NamedTuple):
    """Images (n, 8, 8) with values from 0 to 1, and their digits."""

    images: np.ndarray
    labels: np.ndarray


def split(seed: int = 0) -> tuple[Digits, Digits]:
    """Training and test set, shuffled."""
    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.images))
    images, labels = bunch.images[order].astype(np.float32) / 16, bunch.target[order]
    cut = TRAINING
    return Digits(images[:cut], labels[:cut]), Digits(images[cut:], labels[cut:])


def accuracy(labels: np.ndarray) -> Any:
    """A function of results: the share that is right, in percent."""

    def score(results: np.ndarray) -> float:
        return 100 * float((results.argmax(1) == labels).mean())

    return score


@functools.lru_cache
def task() -> formats.Task:
    """Train; the score is the accuracy."""
    rng = np.random.default_rng(0)
    training, test = split()
    network = [layers.Dense(64, 32, rng), layers.Relu(), layers.Dense(32, 10, rng)]
    x = training.images.reshape(-1, 64)
    gradient = layers.cross_entropy_gradient(training.labels)
    for _ in layers.train(network, x, gradient, epochs=40, batch=32, rate=0.005, rng=rng):
        pass
    model = writing.write(network, (1, 64), softmax=True)
    samples = test.images.reshape(-1, 64)
    return formats.Task(model, x[:200], samples, accuracy(test.labels))


if __name__ == "__main__":
    formats.show(
        formats.compare(task()), "Digits of 8 x 8 pixels, two fully connected layers", "accuracy, %"
    )

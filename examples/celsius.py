"""A single neuron learns to convert Celsius to Fahrenheit: ``python -m examples.celsius``."""

from __future__ import annotations

import functools

import numpy as np

from examples import formats, layers, writing

RANGE = -40.0, 100.0  # degrees Celsius


def fahrenheit(celsius: np.ndarray) -> np.ndarray:
    """What is to be learned."""
    return celsius * 1.8 + 32


@functools.lru_cache
def task() -> formats.Task:
    """Train; the score is the mean absolute error in degrees Fahrenheit."""
    rng = np.random.default_rng(0)
    celsius = np.linspace(*RANGE, 141, dtype=np.float32)[:, np.newaxis]
    network = [layers.Dense(1, 1, rng)]
    gradient = layers.squared_error_gradient(fahrenheit(celsius))
    for _ in layers.train(network, celsius, gradient, epochs=600, batch=47, rate=1.0, rng=rng):
        pass
    test = rng.uniform(*RANGE, (200, 1)).astype(np.float32)
    model = writing.write(network, (1, 1), softmax=False)

    def error(results: np.ndarray) -> float:
        return float(np.abs(results - fahrenheit(test)).mean())

    return formats.Task(model, celsius, test, error)


if __name__ == "__main__":
    formats.show(formats.compare(task()), "Celsius to Fahrenheit, one neuron", "mean error, °F")

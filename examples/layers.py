"""Layers that learn, in NumPy: each has a forward and a backward pass over a batch.

Images are NHWC; weights lie as TensorFlow Lite wants them: (outputs, inputs) for `Dense` and
(outputs, height, width, inputs) for `Conv`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Array = Any


class Layer:
    """What does not learn: subclasses override both passes."""

    weights: Array = None  # None where there are none
    bias: Array = None
    gradients: tuple[Array, Array]  # of weights and bias, after a backward pass

    def forward(self, x: Array) -> Array:
        """Compute the layer's result and remember what the backward pass needs."""
        raise NotImplementedError

    def backward(self, gradient: Array) -> Array:
        """Turn the loss's gradient by the result into that by the input."""
        raise NotImplementedError


class Dense(Layer):
    """``x @ weights.T + bias``, initial weights after Glorot and Bengio (2010)."""

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator) -> None:
        limit = np.sqrt(6 / (inputs + outputs))
        self.weights = rng.uniform(-limit, limit, (outputs, inputs)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def forward(self, x: Array) -> Array:
        self._x = x
        return x @ self.weights.T + self.bias

    def backward(self, gradient: Array) -> Array:
        self.gradients = gradient.T @ self._x, gradient.sum(0)
        return gradient @ self.weights


class Conv(Layer):
    """Convolution without padding, stride 1."""

    def __init__(self, kernel: int, inputs: int, outputs: int, rng: np.random.Generator) -> None:
        limit = np.sqrt(6 / (kernel * kernel * (inputs + outputs)))
        shape = outputs, kernel, kernel, inputs
        self.weights = rng.uniform(-limit, limit, shape).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)

    def forward(self, x: Array) -> Array:
        outputs, kernel = self.weights.shape[:2]
        self._shape = x.shape
        windows = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (1, 2))
        # (n, h, w, c, kh, kw) -> rows of kernel * kernel * c numbers
        self._rows = np.ascontiguousarray(windows.transpose(0, 1, 2, 4, 5, 3))
        self._rows = self._rows.reshape(-1, kernel * kernel * x.shape[3])
        n, h, w = windows.shape[:3]
        result = self._rows @ self.weights.reshape(outputs, -1).T + self.bias
        return result.reshape(n, h, w, outputs)

    def backward(self, gradient: Array) -> Array:
        outputs, kernel = self.weights.shape[:2]
        flat = gradient.reshape(-1, outputs)
        self.gradients = (flat.T @ self._rows).reshape(self.weights.shape), flat.sum(0)
        rows = flat @ self.weights.reshape(outputs, -1)
        n, h, w = gradient.shape[:3]
        rows = rows.reshape(n, h, w, kernel, kernel, self._shape[3])
        result = np.zeros(self._shape, np.float32)
        for y in range(kernel):
            for x in range(kernel):
                result[:, y : y + h, x : x + w] += rows[:, :, :, y, x]
        return result


class AveragePool(Layer):
    """Mean of 2 x 2 pixels; height and width are even."""

    def forward(self, x: Array) -> Array:
        n, h, w, c = x.shape
        return x.reshape(n, h // 2, 2, w // 2, 2, c).mean((2, 4))

    def backward(self, gradient: Array) -> Array:
        return np.repeat(np.repeat(gradient, 2, 1), 2, 2) / 4


class Flatten(Layer):
    """One row per sample."""

    def forward(self, x: Array) -> Array:
        self._shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, gradient: Array) -> Array:
        return gradient.reshape(self._shape)


class Relu(Layer):
    """``max(x, 0)``."""

    def forward(self, x: Array) -> Array:
        self._positive = x > 0
        return x * self._positive

    def backward(self, gradient: Array) -> Array:
        return gradient * self._positive


class Tanh(Layer):
    """The hyperbolic tangent."""

    def forward(self, x: Array) -> Array:
        self._y = np.tanh(x)
        return self._y

    def backward(self, gradient: Array) -> Array:
        return gradient * (1 - self._y**2)


def forward(layers: Sequence[Layer], x: Array) -> Array:
    """Run all layers in turn."""
    for layer in layers:
        x = layer.forward(x)
    return x


def train(
    layers: Sequence[Layer],
    x: Array,
    loss_gradient: Any,
    *,
    epochs: int,
    batch: int,
    rate: float,
    rng: np.random.Generator,
) -> Iterator[int]:
    """Fit with Adam (Kingma and Ba, 2015), the rate falling to zero; yields the epochs done.

    Parameters
    ----------
    layers
        The network; its weights are changed in place.
    x
        All samples, the first axis counting them.
    loss_gradient
        Called with results and the indices of their samples: the loss's gradient by the results.
    epochs, batch
        Passes over the samples, and samples per step.
    rate
        Of the first step.
    rng
        Shuffles the samples.
    """
    learning = [layer for layer in layers if layer.weights is not None]
    moments = [[np.zeros_like(p) for p in (a.weights, a.bias) * 2] for a in learning]
    steps = epochs * -(-len(x) // batch)
    step = 0
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), batch):
            chosen = order[start : start + batch]
            gradient = loss_gradient(forward(layers, x[chosen]), chosen)
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            step += 1
            now = rate * (1 - (step - 1) / steps)
            for layer, state in zip(learning, moments):
                for i, (p, g) in enumerate(zip((layer.weights, layer.bias), layer.gradients)):
                    mean, square = state[i], state[i + 2]
                    mean += 0.1 * (g - mean)
                    square += 0.001 * (g * g - square)
                    unbiased = mean / (1 - 0.9**step), square / (1 - 0.999**step)
                    np.subtract(p, now * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-7), out=p)
        yield epoch + 1


def cross_entropy_gradient(labels: Array) -> Any:
    """Gradient of the mean cross entropy of a softmax over the results."""

    def gradient(logits: Array, chosen: Array) -> Array:
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        p[np.arange(len(p)), labels[chosen]] -= 1
        return p / len(p)

    return gradient


def squared_error_gradient(targets: Array) -> Any:
    """Gradient of the mean squared error."""

    def gradient(results: Array, chosen: Array) -> Array:
        return 2 * (results - targets[chosen]) / results.size

    return gradient

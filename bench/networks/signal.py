"""Expected size of activations; `bench.networks.layers` scales its weights by it.

Activations must not grow or fade with depth: float16 would overflow, or compute noise. So each
tensor carries an estimate of its mean square. Estimates need not be exact, since every layer with
weights resets the scale; measured root mean squares of such layers differ by a factor of 2, rarely
3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

FUSED = ("RELU", "RELU6")  # activations that the kernels of every op with the option accept

# Mean square after an activation, for normally distributed input of mean square 1.
_KEPT_BY_ACTIVATION = {
    "GELU": 0.425,
    "LEAKY_RELU": 0.52,  # slope 0.2
    "LOGISTIC": 0.293,
    "RELU": 0.5,
    "RELU6": 0.5,
    "TANH": 0.394,
}
_RECTIFIED_COMMON = 1 / math.pi  # squared mean over mean square, of a rectified normal
_RAISED_BY_MAXIMUM = 2.0  # neighbours are correlated; independent ones would give 3 to 5
_LEFT_BY_AVERAGE = {"window": 0.5, "image": 0.15}  # of a variance


class Signal(NamedTuple):
    """The expected statistics of a tensor's values.

    Attributes
    ----------
    power
        Their mean square.
    common
        Share of the power that is the squared mean; above 0 only if no value is negative.
    """

    power: float
    common: float = 0.0

    def after(self, activation: str | None) -> Signal:
        """Return the expectation after an activation."""
        if activation is None:
            return self
        power = self.power * _KEPT_BY_ACTIVATION[activation]
        if activation in FUSED:
            return self if self.common else Signal(power, _RECTIFIED_COMMON)
        return Signal(power)

    def averaged(self, over: str) -> Signal:
        """Return the expectation for means over a ``"window"``, or over the whole ``"image"``."""
        varying = (1 - self.common) * _LEFT_BY_AVERAGE[over]
        left = self.common + varying
        return Signal(self.power * left, self.common / left)

    def maximum(self) -> Signal:
        """Return the expectation for maxima over a window."""
        return Signal(self.power * _RAISED_BY_MAXIMUM, self.common)

    def scaled(self, factor: float) -> Signal:
        """Return the expectation for ``factor`` times the values."""
        return Signal(self.power * factor**2, self.common if factor > 0 else 0.0)


def mix(signals: Sequence[Signal], widths: Sequence[int]) -> Signal:
    """Return the expectation for concatenated signals with these numbers of channels."""
    power = sum(w * s.power for w, s in zip(widths, signals))
    common = sum(w * s.power * s.common for w, s in zip(widths, signals)) / power
    return Signal(power / sum(widths), common if all(s.common for s in signals) else 0.0)

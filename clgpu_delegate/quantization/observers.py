"""What watches the values of a tensor over the calibration samples and settles its range."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from clgpu_delegate.tflite.graph import Array


class Observer(Protocol):
    """Watches one tensor.

    Examples
    --------
    >>> class Fixed:
    ...     def observe(self, values):
    ...         pass
    ...
    ...     def range(self):
    ...         return -1.0, 1.0
    >>> report = clgpu_delegate.quantize("model.tflite", [x], "int8.tflite", observer=Fixed)
    >>> report.observer
    'Fixed'
    """

    def observe(self, values: Array) -> None:
        """Take the values of one sample: finite floats of any shape, at least one.

        The array is only valid during the call.
        """

    def range(self) -> tuple[float, float]:
        """The smallest and the largest value that integers shall stand for."""


class MinMax:
    """The smallest and the largest value of all samples."""

    def __init__(self) -> None:
        self._low, self._high = np.inf, -np.inf

    def observe(self, values: Array) -> None:
        """As `Observer.observe`."""
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))

    def range(self) -> tuple[float, float]:
        """As `Observer.range`."""
        return self._low, self._high


class MovingAverage:
    """Exponential averages of the samples' smallest and largest values: damps single outliers."""

    def __init__(self, momentum: float = 0.9) -> None:
        """Keep ``momentum`` of the average when a sample comes."""
        self._momentum = momentum
        self._range: tuple[float, float] | None = None

    def observe(self, values: Array) -> None:
        """As `Observer.observe`."""
        low, high = float(values.min()), float(values.max())
        if self._range is not None:
            kept, new = self._momentum, 1 - self._momentum
            low, high = kept * self._range[0] + new * low, kept * self._range[1] + new * high
        self._range = low, high

    def range(self) -> tuple[float, float]:
        """As `Observer.range`."""
        assert self._range is not None
        return self._range


class Histogram:
    """Counts values in bins of equal width; the bins widen as the range grows."""

    BINS = 2048

    def __init__(self) -> None:
        self.counts = np.zeros(self.BINS)
        self.low = self.high = 0.0

    def observe(self, values: Array) -> None:
        """As `Observer.observe`."""
        low = min(self.low, float(values.min()))
        high = max(self.high, float(values.max()))
        if (low, high) != (self.low, self.high) and high > low:
            old = self.centres()
            self.low, self.high = low, high
            if self.counts.any():
                self.counts, _ = np.histogram(old, self.BINS, (low, high), weights=self.counts)
        if self.high > self.low:
            self.counts = self.counts + np.histogram(values, self.BINS, (self.low, self.high))[0]

    def centres(self) -> Array:
        """The values in the middle of the bins, float64 ``(BINS,)``."""
        return self.low + (np.arange(self.BINS) + 0.5) * (self.high - self.low) / self.BINS


class Percentile(Histogram):
    """The range without its rarest values on either side."""

    def __init__(self, share: float = 0.9999) -> None:
        """Keep ``share`` of the values on each side of the median."""
        super().__init__()
        self._share = share

    def range(self) -> tuple[float, float]:
        """As `Observer.range`."""
        total = self.counts.sum()
        if not total:
            return 0.0, 0.0
        below = np.cumsum(self.counts)
        first = int(np.searchsorted(below, (1 - self._share) * total, side="right"))
        last = int(np.searchsorted(below, self._share * total, side="left"))
        width = (self.high - self.low) / self.BINS
        return self.low + first * width, self.low + (min(last, self.BINS - 1) + 1) * width


class LeastSquares(Histogram):
    """The range with the smallest mean square error of rounding and clipping."""

    _STEPS = 80

    def __init__(self, levels: int = 256) -> None:
        """Compute the error for ``levels``, the number of integers."""
        super().__init__()
        self._levels = levels

    def range(self) -> tuple[float, float]:
        """As `Observer.range`."""
        centres, best, found = self.centres(), np.inf, (self.low, self.high)
        for step in range(self._STEPS):
            factor = 1 - 0.95 * step / self._STEPS
            low, high = factor * self.low, factor * self.high
            beyond = centres - np.clip(centres, low, high)
            rounding = ((high - low) / (self._levels - 1)) ** 2 / 12
            error = float((self.counts * (beyond**2 + rounding)).sum())
            if error < best:
                best, found = error, (low, high)
        return found


def make(name: str, levels: int) -> Observer:
    """An observer by its name in `NAMES`, for integers of so many levels."""
    if name == "minmax":
        return MinMax()
    if name == "moving_average":
        return MovingAverage()
    if name == "percentile":
        return Percentile()
    return LeastSquares(levels)


NAMES = ("minmax", "moving_average", "percentile", "mse")

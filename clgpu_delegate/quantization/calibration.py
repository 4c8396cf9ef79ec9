"""Observing a float model, and comparing the quantised model with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from clgpu_delegate.base.rendering import printable
from clgpu_delegate.errors import QuantizationError
from clgpu_delegate.quantization import parameters
from clgpu_delegate.quantization.observers import Observer
from clgpu_delegate.tflite.graph import Affine, Array, Tensor
from clgpu_delegate.tflite.runs import Run

Step = Callable[[], None]  # called after each sample


def observe(
    run: Run,
    samples: Iterable[Sequence[Array]],
    tensors: Mapping[int, Tensor],
    make: Callable[[], Observer],
    step: Step,
) -> dict[int, tuple[float, float]]:
    """Settle the range of tensors.

    Parameters
    ----------
    run
        Of the float model.
    samples
        Its inputs, one list per sample.
    tensors
        Those to watch, by index.
    make
        Makes the observer of a tensor.
    step
        Called after each sample.

    Returns
    -------
    dict
        Smallest and largest value by tensor.

    Raises
    ------
    QuantizationError
        If the model computes a value that is not finite, or does not compute a tensor.
    """
    observers = {index: make() for index in tensors}
    seen = set()
    for sample in samples:
        run.invoke(sample)
        for index, observer in observers.items():
            if _observe(run.value(index), observer, tensors[index].name):
                seen.add(index)
        step()
    missing = [t.name for index, t in tensors.items() if index not in seen]
    if missing:
        raise QuantizationError(
            f"the runtime does not show the values of {', '.join(map(printable, missing[:3]))}"
        )
    return {index: observer.range() for index, observer in observers.items()}


def measure(
    before: Run,
    after: Run,
    samples: Iterable[tuple[Sequence[Array], Sequence[Array]]],
    pairs: Mapping[int, tuple[int, Affine | None]],
    step: Step,
) -> dict[int, float]:
    """Measure the ratio of signal to quantisation noise.

    Parameters
    ----------
    before, after
        The float and the quantised model.
    samples
        Inputs of either.
    pairs
        By tensor of the float model: the tensor of the other, and its parameters.
    step
        Called after each sample.

    Returns
    -------
    dict
        Decibels by tensor of the float model; infinite without any difference. Tensors that a
        runtime does not show are left out.
    """
    signal, noise = dict.fromkeys(pairs, 0.0), dict.fromkeys(pairs, 0.0)
    seen = set()
    for inputs, others in samples:
        before.invoke(inputs)
        after.invoke(others)
        for index, (other, affine) in pairs.items():
            powers = _compare(before.value(index), after.value(other), affine)
            if powers is not None:
                signal[index] += powers[0]
                noise[index] += powers[1]
                seen.add(index)
        step()
    return {index: _decibels(signal[index], noise[index]) for index in seen}


# Separate functions, so that no view of a tensor outlives its run.
def _observe(values: Array | None, observer: Observer, name: str) -> bool:
    """Show values to an observer, if there are any."""
    if values is None or not values.size:
        return False
    # Minimum and maximum propagate NaN.
    if not np.isfinite((values.min(), values.max())).all():
        raise QuantizationError(
            f"the float model computes NaN or infinity in tensor {name!r} of a calibration "
            "sample; name its layer in skip"
        )
    observer.observe(values)
    return True


def _compare(
    expected: Array | None, stored: Array | None, affine: Affine | None
) -> tuple[float, float] | None:
    """The powers of signal and noise; None where a runtime does not show the tensor."""
    if expected is None or stored is None or expected.shape != stored.shape:
        return None
    got = parameters.dequantize(stored, affine) if affine else stored
    return _power(expected), _power(got - expected)


def _power(values: Array) -> float:
    flat = values.reshape(-1)
    return float(np.dot(flat, flat))


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return float("inf")
    return float(10 * np.log10(max(signal, 1e-300) / noise))

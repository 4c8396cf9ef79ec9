"""A model in an interpreter of the stock runtime, with or without the delegate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clgpu_delegate import Delegate
from tests.runtimes import make_interpreter


class Session:
    """A model in an interpreter; a call runs it once.

    Parameters
    ----------
    model
        Bytes of a .tflite file.
    delegate
        The delegate that runs it; None: the stock CPU kernels.
    runtime, threads
        As in `tests.runtimes.make_interpreter`.
    """

    def __init__(
        self, model: bytes, delegate: Delegate | None = None, *, runtime: str = "auto",
        threads: int = 1,
    ) -> None:  # fmt: skip
        self._delegates = [] if delegate is None else [delegate]
        self._interpreter = make_interpreter(runtime, model, self._delegates, threads=threads)
        self.inputs: list[np.ndarray] = []
        """As the model takes them."""

    @property
    def delegate(self) -> Delegate:
        """The delegate, which must exist."""
        (delegate,) = self._delegates
        return delegate

    def feed(self, inputs: Sequence[np.ndarray]) -> Session:
        """Allocate the tensors, and set the inputs; quantised inputs take real numbers, too."""
        self._interpreter.allocate_tensors()
        details = self._interpreter.get_input_details()
        self._first = details[0]["index"]
        self._outputs = self._interpreter.get_output_details()
        self.inputs = [as_stored(detail, value) for detail, value in zip(details, inputs)]
        for detail, value in zip(details, self.inputs):
            self._interpreter.set_tensor(detail["index"], value)
        return self

    def __call__(self) -> None:
        self._interpreter.invoke()

    def run(self, x: np.ndarray) -> np.ndarray:
        """Set the first input, run, and return the first output."""
        self._interpreter.set_tensor(self._first, x)
        self._interpreter.invoke()
        return self.output()

    def output(self, number: int = 0) -> np.ndarray:
        """Return an output as the model stores it."""
        result: np.ndarray = self._interpreter.get_tensor(self._outputs[number]["index"])
        return result

    def outputs(self) -> list[np.ndarray]:
        """Return all outputs as the model stores them."""
        return [self.output(number) for number in range(len(self._outputs))]

    def real_outputs(self) -> np.ndarray:
        """Return all outputs as one vector of real numbers."""
        pairs = zip(self._outputs, self.outputs())
        return np.concatenate([_real(detail, value).ravel() for detail, value in pairs])


def as_stored(detail: Mapping[str, Any], value: np.ndarray) -> np.ndarray:
    """Real numbers as the integers of an input; other inputs as they are."""
    scale, zero_point = detail["quantization"]
    if not scale or value.dtype != np.float32:
        return value
    info = np.iinfo(detail["dtype"])
    rounded = np.round(value / np.float32(scale)) + zero_point
    return np.clip(rounded, info.min, info.max).astype(detail["dtype"])


def _real(detail: Mapping[str, Any], value: np.ndarray) -> np.ndarray:
    scale, zero_point = detail["quantization"]
    real = value.astype(np.float64)
    return (real - zero_point) * scale if scale else real

"""The outcome of a model on a device: correct, or one of several failures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clgpu_delegate.base.number_types import kind_of
from clgpu_delegate.tflite.graph import Array

KINDS = ("agrees", "wrong", "build", "error", "hang", "crash", "unusable")

# Relative L2 errors of float outputs above these cannot come from rounding.
TOLERANCES = {"fp32": 1e-4, "tf32": 1e-2, "fp16": 2e-2, "mixed": 2e-2}

_MOST_TEXT = 4000  # characters


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of running a model on the CPU and through the delegate."""

    kind: str
    """``"agrees"``; ``"wrong"``: other numbers than the CPU's; ``"build"``: the numbers agree, but
    a kernel does not work on the device and others, or the CPU, have stood in; ``"error"``: the
    delegate or the runtime gave up; ``"hang"``: no end within the time; ``"crash"``: the process
    died; ``"unusable"``: the CPU alone cannot run the model."""

    text: str = ""
    """The message, the kernels, or the signal."""

    output: int | None = None
    """Of wrong results: position of the worst output."""

    relative_l2: float | None = None
    """Of floats: norm of the error over the norm of the expected output; None where elements that
    should be are not finite."""

    max_abs: float | None = None
    """Largest error of an element; None as above."""

    wrong: int = 0
    """Elements of that output that are wrong, of ``elements``."""

    elements: int = 0

    signs: tuple[str, ...] = ()
    """What distinguishes it from other failures of its kind: for ``"build"`` the kernels, for
    ``"error"`` the class, the call and its result, as in `clgpu_delegate.Failure`. Empty in
    capsules of older versions."""

    @property
    def failed(self) -> bool:
        """Whether the delegate is to blame for something."""
        return self.kind not in ("agrees", "unusable")

    def is_like(self, other: Outcome) -> bool:
        """Whether it is the same failure, as far as its symptoms show."""
        if self.kind != other.kind:
            return False
        if self.kind in ("error", "build") and not (self.signs and other.signs):
            return True  # only the kind is known
        if self.kind == "error":
            return self.signs == other.signs
        if self.kind == "build":
            return not set(self.signs).isdisjoint(other.signs)
        return self.kind != "crash" or self.text == other.text

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        if self.kind == "wrong":
            share = f"{self.wrong} of {self.elements} elements of output {self.output}"
            if self.max_abs is None:
                return f"wrong result: {share} are not finite or should not be"
            l2 = "" if self.relative_l2 is None else f", {self.relative_l2:.2g} relative L2"
            return f"wrong result: {share}, {self.max_abs:.3g} at most{l2}"
        words = {
            "agrees": "the results agree",
            "build": "a kernel does not work",
            "error": "error",
            "hang": "no end",
            "crash": "the process crashed",
            "unusable": "the CPU alone cannot run the model",
        }[self.kind]
        first = self.text.splitlines()[0] if self.text else ""
        return f"{words}: {first}" if first else words


def outcome_of(got: Sequence[Array], expected: Sequence[Array], tolerance: float) -> Outcome:
    """Compare a model's outputs with those of the CPU; the worst output counts."""
    outcomes = [outcome_of_one(g, e, tolerance, i) for i, (g, e) in enumerate(zip(got, expected))]
    return max(outcomes, key=_badness, default=Outcome("agrees"))


def outcome_of_one(got: Array, expected: Array, tolerance: float, position: int = 0) -> Outcome:
    """Compare one output: floats by their relative L2 error, quantised numbers to a step.

    With a tolerance of 0, all bits count. Integers of 32 bits and more and booleans are exact.
    """
    if got.shape != expected.shape or got.dtype != expected.dtype:
        text = f"{got.dtype} {list(got.shape)}, expected {expected.dtype} {list(expected.shape)}"
        return Outcome("wrong", text, position, None, None, got.size, got.size)
    if kind_of(got.dtype) not in "fiu":
        wrong = int((got != expected).sum())
        return _outcome(wrong > 0, position, None, None, wrong, got.size)
    g, e = got.astype(np.float64), expected.astype(np.float64)
    odd = (np.isfinite(g) != np.isfinite(e)) | (~np.isfinite(e) & (g != e) & ~_both_nan(g, e))
    if odd.any():
        return _outcome(True, position, None, None, int(odd.sum()), got.size)
    finite = np.isfinite(e)
    error = np.where(finite, np.abs(np.where(finite, g, 0) - np.where(finite, e, 0)), 0)
    worst = float(error.max(initial=0.0))
    if kind_of(got.dtype) == "f":
        norm = max(float(np.linalg.norm(e[finite])), float(np.finfo(np.float32).tiny))
        l2 = float(np.linalg.norm(error)) / norm
        scale = tolerance * max(norm / max(e.size, 1) ** 0.5, float(np.finfo(np.float32).tiny))
        return _outcome(l2 > tolerance, position, l2, worst, int((error > scale).sum()), got.size)
    steps = 1.0 if tolerance > 0 and got.dtype.itemsize <= 2 else 0.0
    return _outcome(worst > steps, position, None, worst, int((error > steps).sum()), got.size)


def kernels_that_fail(faults: Sequence[Mapping[str, str]]) -> Outcome | None:
    """The outcome for correct results if kernels do not build or launch; None if all do.

    Parameters
    ----------
    faults
        ``faults`` of `Explanation.to_dict`.
    """
    failing = [fault for fault in faults if fault["kind"] == "fails"]
    if not failing:
        return None
    text = "\n".join(f"{fault['kernel']}: {fault['why']}" for fault in failing)
    return Outcome("build", text[:_MOST_TEXT], signs=tuple(fault["kernel"] for fault in failing))


def _outcome(
    is_wrong: bool, output: int, l2: float | None, worst: float | None, wrong: int, elements: int
) -> Outcome:
    kind = "wrong" if is_wrong else "agrees"
    return Outcome(kind, "", output, l2, worst, wrong if is_wrong else 0, elements)


def _both_nan(a: Array, b: Array) -> Array:
    both: Array = np.isnan(a) & np.isnan(b)
    return both


def _badness(outcome: Outcome) -> tuple[bool, float]:
    is_wrong = outcome.kind == "wrong"
    if is_wrong and outcome.max_abs is None:
        return True, np.inf
    return is_wrong, outcome.relative_l2 or outcome.max_abs or 0.0

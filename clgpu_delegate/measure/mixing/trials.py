"""A model in one precision after another: errors at its outputs, times and memory."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from clgpu_delegate.base.number_types import kind_of
from clgpu_delegate.base.progress import Bar
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import ClgpuError, InputError
from clgpu_delegate.measure.turns import alone, device_times
from clgpu_delegate.options import Options
from clgpu_delegate.precision import RELATIVE_L2, TOP_1, PrecisionPlan, PrecisionPoint
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite import inference
from clgpu_delegate.tflite.inference import Array

Sample = Sequence[Array]
Metric = Callable[[Sequence[Array], Sequence[Array]], float]
_T = TypeVar("_T")

_TURNS = 7  # of the times of the whole
_MEMORY_SHARE = 0.25  # of the device's, for models that are loaded at a time: others need it, too
_ONLY_ONCE: dict[str, Any] = {"chain": "off", "warm_up": False}  # of what is not timed


@dataclasses.dataclass(frozen=True)
class Subject:
    """What is searched for, and with what."""

    content: bytes
    """Of the model."""

    runtime: Runtime
    options: Options
    samples: Sequence[Sample]
    max_error: float
    metric: Metric | None
    seed: int
    budget: float
    """Seconds."""

    prefer: str
    """``"time"`` or ``"memory"``: what the plan is to save."""

    observers: tuple[str, ...] = ("minmax", "percentile")
    """Of the ranges that int8 stands for, tried in this order."""

    start: PrecisionPlan | None = None
    """A plan that the search begins with."""

    kept: Callable[[str], PrecisionPlan | None] = lambda _model: None
    """The plan that the cache has for the model of this digest; the search begins with it, too."""

    @property
    def metric_name(self) -> str:
        """As plans tell it."""
        if self.metric is None:
            return RELATIVE_L2
        return TOP_1 if self.metric is top_1 else getattr(self.metric, "__name__", "metric")

    def combine(self, errors: Sequence[float]) -> float:
        """The error of several samples: the largest; of ``top-1``, the share."""
        if not len(errors):
            return 0.0
        return float(np.mean(errors)) if self.metric is top_1 else max(errors)


@dataclasses.dataclass(frozen=True)
class Whole:
    """A precision of the whole model."""

    error: float
    explanation: Explanation
    times: Mapping[int, float]
    """Seconds of the launches of each node."""

    errors: tuple[float, ...] = ()
    """Of each sample."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """A model while it is loaded."""

    error: float
    errors: tuple[float, ...]
    """Of each sample."""

    explanation: Explanation
    delegate: Delegate
    interpreter: Any


class Over(Exception):
    """The budget is spent."""


class Trials:
    """Loads the model in a precision, a value of the option, and measures it on samples.

    Samples are named by their numbers in the subject.
    """

    def __init__(self, subject: Subject, bar: Bar) -> None:
        self._subject, self._bar = subject, bar
        self._reference: dict[int, list[Array]] = {}
        self._in_search = False
        self.end = math.inf
        """Of the budget, a time of `time.monotonic`. It ends a search, nothing else."""

    @contextlib.contextmanager
    def limited(self) -> Iterator[None]:
        """Raise `Over` within, before a model is loaded, where the budget is spent."""
        self._in_search = True
        try:
            yield
        finally:
            self._in_search = False

    def compute_reference(self) -> None:
        """Compute what the runtime's own kernels return for all samples."""
        subject = self._subject
        self._bar.stage("computing the reference", len(subject.samples))
        interpreter = inference.make_interpreter(
            subject.runtime, subject.content, inference.usable_cores()
        )
        with inference.as_our_error(f"{subject.runtime} cannot run the model"):
            for number, sample in enumerate(subject.samples):
                self._reference[number] = _outputs(interpreter, sample)
                self._bar.step()

    def digest(self) -> str:
        """Of the model; without the cache, which may have a plan."""
        delegate, interpreter = self._open(precision="mixed", cache="off")
        runtime = self._subject.runtime
        with inference.as_our_error(f"{runtime} with the delegate cannot load the model"):
            interpreter.allocate_tensors()
        explanation = delegate._bare_explanation()
        if not explanation.claimed:
            raise ClgpuError("nothing to tune: the delegate claims no node of the model")
        assert explanation.mixed is not None
        return explanation.mixed.model

    def whole(self, precision: str, numbers: Sequence[int]) -> Whole:
        """Errors, and the times of each node."""
        with self.loaded(precision, numbers) as measured:
            times: dict[int, float] = {}
            with alone():
                launches = measured.delegate.launch_times()
            for row in launches:
                times[row.node] = times.get(row.node, 0.0) + row.microseconds * 1e-6
            return Whole(measured.error, measured.explanation, times, measured.errors)

    def try_whole(self, precision: str, numbers: Sequence[int]) -> Whole | None:
        """The same, or None where it does not run: then no plan has parts of it."""
        return _unless_it_fails(lambda: self.whole(precision, numbers))

    def once(self, precision: str, numbers: Sequence[int]) -> Measured | None:
        """Errors without times; None where it does not run, as an infinite error."""

        def measure() -> Measured:
            with self.loaded(precision, numbers, **_ONLY_ONCE) as measured:
                return measured

        return _unless_it_fails(measure)

    def points(self, values: Sequence[str], numbers: Sequence[int]) -> list[PrecisionPoint]:
        """Measure each value of the option as a whole; their times are taken in turns.

        Where the device has too little memory for all at a time, the first value is measured again
        with the others, and their times are scaled by its times.
        """
        self._bar.stage("measuring the whole", len(values))
        found: list[PrecisionPoint] = []
        while len(found) < len(values):
            again = values[:1] if found else []
            points = self._together([*again, *values[len(found) :]], numbers)
            scale = found[0].seconds / points[0].seconds if found else 1.0
            for point in points[len(again) :]:
                found.append(dataclasses.replace(point, seconds=point.seconds * scale))
                self._bar.step()
        return found

    def _together(self, values: Sequence[str], numbers: Sequence[int]) -> list[PrecisionPoint]:
        """The first of the values in turns: two, or as many as there is memory for."""
        with contextlib.ExitStack() as stack:
            loaded: list[Measured] = []
            for value in values:
                loaded.append(stack.enter_context(self.loaded(value, numbers)))
                peaks = [measured.explanation.peak_bytes for measured in loaded]
                room = _MEMORY_SHARE * loaded[0].delegate.device.global_bytes
                if len(loaded) > 1 and sum(peaks) + max(peaks) > room:
                    break
            seconds = device_times(*(measured.delegate for measured in loaded), turns=_TURNS)
            return [
                PrecisionPoint(value, measured.error, own, measured.explanation.peak_bytes)
                for value, measured, own in zip(values, loaded, seconds)
            ]

    @contextlib.contextmanager
    def loaded(self, precision: Any, numbers: Sequence[int], **more: Any) -> Iterator[Measured]:
        """The model in a precision with more options, and its error on samples."""
        if self._in_search and time.monotonic() > self.end:
            raise Over
        # Sums are those of the plan alone: its error was measured with them.
        delegate, interpreter = self._open(**{"precision": precision, "sums": "float", **more})
        runtime = self._subject.runtime
        with inference.as_our_error(f"{runtime} with the delegate cannot run the model"):
            errors = [
                self._error(number, _outputs(interpreter, self._subject.samples[number]))
                for number in numbers
            ]
        yield Measured(
            self._subject.combine(errors),
            tuple(errors),
            delegate._bare_explanation(),
            delegate,
            interpreter,
        )

    def _open(self, **options: Any) -> tuple[Delegate, Any]:
        """A delegate with these options beside the subject's, and its interpreter of the model."""
        subject = self._subject
        delegate = Delegate(dataclasses.replace(subject.options, **options))
        return delegate, inference.make_interpreter(subject.runtime, subject.content, 1, delegate)

    def _error(self, number: int, outputs: Sequence[Array]) -> float:
        reference = self._reference[number]
        metric = self._subject.metric
        if metric is None:
            return relative_l2(outputs, reference)
        if metric is top_1:
            return top_1(outputs, reference)
        if not all(np.isfinite(o).all() for o in outputs if kind_of(o.dtype) == "f"):
            return math.inf  # numbers beyond the range of half
        try:
            error = float(metric(outputs, reference))
        except Exception as problem:
            reason = str(problem).partition("\n")[0] or type(problem).__name__
            raise InputError(f"metric fails on sample {number}: {reason}") from problem
        if math.isnan(error):
            raise InputError(
                f"metric returns NaN for sample {number}; it has to return a number, 0 where "
                "outputs and reference are equal"
            )
        return error


def _unless_it_fails(measure: Callable[[], _T]) -> _T | None:
    """What is measured, or None where the model does not run; mistakes in samples are errors."""
    try:
        return measure()
    except InputError:
        raise
    except ClgpuError:
        return None


def spread_of(errors: Sequence[float]) -> float:
    """The standard deviation over the mean; 0 where that is unknown."""
    if len(errors) < 2 or not np.isfinite(errors).all() or not any(errors):
        return 0.0
    return float(np.std(errors, ddof=1) / np.mean(errors))


def _outputs(interpreter: Any, sample: Sample) -> list[Array]:
    """Of a sample that none came before: a model may keep values from one inference to the next."""
    interpreter.allocate_tensors()
    interpreter.reset_all_variables()
    return inference.run_once(interpreter, sample)


def relative_l2(outputs: Sequence[Array], reference: Sequence[Array]) -> float:
    """The largest relative L2 norm of the difference of any output.

    Of integers and booleans, which say what something is, the share that differs.
    """
    errors = []
    for got, want in zip(outputs, reference):
        if got.shape != want.shape:
            return math.inf
        if kind_of(want.dtype) != "f":
            errors.append(float(np.mean(got != want)) if want.size else 0.0)
            continue
        known = np.isfinite(want)
        if not np.array_equal(known, np.isfinite(got)):
            return math.inf
        exact = want[known].astype(np.float64)
        norm = float(np.linalg.norm(got[known].astype(np.float64) - exact))
        errors.append(norm / max(float(np.linalg.norm(exact)), 1e-30))
    return max(errors, default=0.0)


def top_1(outputs: Sequence[Array], reference: Sequence[Array]) -> float:
    """The share of rows whose largest element is another one than in the reference.

    A row is what lies along the last axis: of an output of 8x1000, there are 8. Of equal elements
    the first is the largest; a row with NaN differs. Of several outputs, the largest share counts;
    those whose last axis has one element have none.

    Raises
    ------
    InputError
        If no output has a last axis of 2 elements or more.
    """
    shares = []
    for got, want in zip(outputs, reference):
        if want.ndim < 1 or want.shape[-1] < 2:
            continue
        if got.shape != want.shape:
            return 1.0
        differs = np.argmax(got, axis=-1) != np.argmax(want, axis=-1)
        if kind_of(want.dtype) == "f":
            differs |= np.isnan(got).any(axis=-1)
        shares.append(float(np.mean(differs)) if differs.size else 0.0)
    if not shares:
        shapes = ", ".join(str(tuple(want.shape)) for want in reference)
        raise InputError(
            f"metric is 'top-1', but the outputs are of shape {shapes}; it needs one whose last "
            "axis has 2 elements or more: give another metric"
        )
    return max(shares)

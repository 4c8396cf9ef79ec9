"""Measuring which kernels are the fastest for a model on a device, and keeping the winners."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Literal, Union, overload

import numpy as np

from clgpu_delegate import native
from clgpu_delegate.base import files
from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.base.progress import Bar
from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import (
    ClgpuError,
    FileError,
    InputError,
    OptionError,
    QuantizationError,
)
from clgpu_delegate.measure import mixing
from clgpu_delegate.measure.mixing import Metric
from clgpu_delegate.measure.turns import device_times
from clgpu_delegate.options import Options, Settings, with_settings
from clgpu_delegate.precision import RELATIVE_L2, TOP_1, PrecisionPlan
from clgpu_delegate.quantization import observers
from clgpu_delegate.quantization import samples as samples_
from clgpu_delegate.runtimes import RuntimeName, find_runtime
from clgpu_delegate.tflite import inference
from clgpu_delegate.tflite.inference import Array
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.settling import resized

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclasses.dataclass(frozen=True)
class TunedLayer:
    """Nodes with the same kernels, shapes and types: one layer, once or several times.

    Examples
    --------
    >>> tuning = clgpu_delegate.tune("model.tflite", budget="1s")
    >>> [layer.op for layer in tuning.layers if layer.gain > 1.5]  # doctest: +ELLIPSIS
    [...]
    """

    nodes: tuple[int, ...]
    """Their indices in the model."""

    op: str
    outputs: tuple[tuple[int, ...], ...]
    """Shapes of the outputs."""

    default: str
    """The candidate that is taken without tuning."""

    winner: str
    """The candidate that is taken now."""

    outcome: str
    """``"measured"`` now, ``"kept"`` from an earlier tuning, or ``"left"``: the budget was spent
    before all candidates were measured, and the choice is what it was."""

    seconds: Mapping[str, float]
    """Time of one run on the device by candidate; of much slower ones, from a single run."""

    problems: Mapping[str, str]
    """Candidates that do not count, and why: they do not build, compute wrong numbers, or need too
    much memory."""

    @property
    def default_seconds(self) -> float | None:
        """Time of the default; None where it was not measured."""
        return self.seconds.get(self.default)

    @property
    def winner_seconds(self) -> float | None:
        """Time of the winner; None where it was not measured."""
        return self.seconds.get(self.winner)

    @property
    def gain(self) -> float:
        """Time of the default over that of the winner; 1 where either was not measured."""
        if not self.default_seconds or not self.winner_seconds:
            return 1.0
        return self.default_seconds / self.winner_seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            **dataclasses.asdict(self),
            "default_seconds": self.default_seconds,
            "winner_seconds": self.winner_seconds,
            "gain": self.gain,
        }


@dataclasses.dataclass(frozen=True)
class Tuning(Shown):
    """What `tune` found.

    Examples
    --------
    >>> tuning = clgpu_delegate.tune("model.tflite", budget="1s")
    >>> tuning.left <= len(tuning.layers)
    True
    """

    model: str
    device: str
    precision: str
    layers: tuple[TunedLayer, ...]
    """Those with a choice, in the order of the model."""

    before_seconds: float
    """Device time of an inference with the default kernels."""

    after_seconds: float
    """Device time of an inference with the winners."""

    used: bool
    """Whether later delegates use winners. They do not where these, each the fastest alone, are
    slower together than the default kernels, as where launches run as stages of one kernel."""

    notes: tuple[str, ...]
    """As in `Explanation`: kernels that do not work, and the like."""

    arithmetic: str = ""
    """As in `Explanation`."""

    @property
    def changed(self) -> int:
        """Number of layers whose winner is not the default."""
        return sum(layer.winner != layer.default for layer in self.layers)

    @property
    def gain(self) -> float:
        """Time before over time after; 1 where each layer keeps its default."""
        if not self.changed or not self.after_seconds:
            return 1.0
        return self.before_seconds / self.after_seconds

    @property
    def left(self) -> int:
        """Number of layers for which the budget did not suffice."""
        return sum(layer.outcome == "left" for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        layers = [layer.to_dict() for layer in self.layers]
        return {**data, "layers": layers, "gain": self.gain, "left": self.left}

    def __rich__(self) -> Group:
        table = Table()
        for heading in ("nodes", "op", "output", "default", "winner"):
            table.add_column(heading, fold=heading != "op")
        for heading in ("default us", "winner us", "gain"):
            table.add_column(heading, right=True)
        for layer in self.layers:
            count = len(layer.nodes)
            cells = (
                f"{layer.nodes[0]}" + (f" and {count - 1} alike" if count > 1 else ""),
                layer.op,
                "x".join(map(str, layer.outputs[0])),
                layer.default,
                layer.winner if layer.outcome != "left" else "not measured",
                _microseconds(layer.default_seconds),
                _microseconds(layer.winner_seconds),
                f"{layer.gain:.2f}x" if layer.winner_seconds else "",
            )
            style = "yellow" if layer.outcome == "left" else ""
            table.add_row(*map(Text, cells), style=style)
        lines = [f"note: {note}" for note in self.notes]
        if self.left:
            lines.append(
                f"the budget was spent before {self.left} of {len(self.layers)} layers were "
                "measured; they keep their kernels, and tuning again goes on with them"
            )
        times = f"{self.before_seconds * 1e3:.3f} ms"
        if self.changed:
            times += f" before, {self.after_seconds * 1e3:.3f} ms after, {self.gain:.2f}x"
        else:
            times += ", with the default kernels"
        lines.append(f"{self.device}, {self.arithmetic or self.precision}: {times}")
        if self.changed and not self.used:
            lines.append("the winners are slower together: the default kernels stay in use")
        return Group(table.fitting(2), *map(Text, lines))

    def __str__(self) -> str:
        return as_text(self)


_SLOWER = 1.05  # times the default kernels' time; less is noise
_OBSERVERS = ("minmax", "percentile")  # of the ranges that int8 stands for
_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}
_TIME = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(s|m|min|h|)\s*")

Samples = Union[str, "os.PathLike[str]", Mapping[str, Any], Iterable[Any]]
NamedMetric = Literal["relative L2", "top-1"]
ObserverName = Literal["minmax", "moving_average", "percentile", "mse"]
Start = Union[PrecisionPlan, str, "os.PathLike[str]"]
Progress = Union[Callable[[int, int, str, str], None], bool, None]


@overload
def tune(
    model: str | os.PathLike[str],
    samples: None = None,
    *,
    max_error: None = None,
    budget: float | str = 60.0,
    again: bool = False,
    runtime: RuntimeName | None = None,
    progress: Progress = None,
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> Tuning: ...
@overload
def tune(
    model: str | os.PathLike[str],
    samples: Samples,
    *,
    max_error: float,
    metric: Metric | NamedMetric | None = None,
    seed: int = 0,
    prefer: Literal["time", "memory"] = "time",
    start: Start | None = None,
    observer: ObserverName | None = None,
    budget: float | str = 60.0,
    runtime: RuntimeName | None = None,
    progress: Progress = None,
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> PrecisionPlan: ...
@with_settings
def tune(
    model: str | os.PathLike[str],
    samples: Samples | None = None,
    *,
    max_error: float | None = None,
    metric: Metric | NamedMetric | None = None,
    seed: int = 0,
    prefer: Literal["time", "memory"] = "time",
    start: Start | None = None,
    observer: ObserverName | None = None,
    budget: float | str = 60.0,
    again: bool = False,
    runtime: RuntimeName | None = None,
    progress: Progress = None,
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> Tuning | PrecisionPlan:
    """Measure the kernels that a model can use on a device, or its precisions; keep the fastest.

    Without ``max_error``: the kernels. The winners go into the cache (option `cache`), where every
    later `load` with the same device and driver finds them, unless its option `tuning` is
    ``"off"``. Each candidate's result is compared with that of the simplest one, and one that
    computes wrong numbers never wins.

    With ``max_error``: which tensors are stored as half or bfloat16, which weights as int8, which
    products have factors rounded to TF32, and which nodes compute with int8, so that the error of
    the outputs stays within a bound. Each node is measured alone in the lower precision, then those
    that gain most for their error together, as a whole. The plan is measured on samples that the
    search has not seen, and goes into the cache, where ``load(precision="mixed")`` finds it.

    Parameters
    ----------
    model
        Path of a .tflite file.
    samples
        Inputs that the model is used with, 2 and more, in the forms that `quantize` takes. A third
        of them, chosen by ``seed``, is held back. Needed with ``max_error``, and only then.
    max_error
        Largest error of any sample against the runtime's own kernels, which compute in float.
    metric
        None or ``"relative L2"``: the largest relative L2 norm of the difference of any output; of
        outputs of integers, the share that differs. ``"top-1"``: the share of samples whose largest
        element along the last axis is another one than that of the runtime's own kernels; of a
        sample with several rows, the share of rows, and of several outputs, the largest.
        ``max_error=0.01`` is one sample of a hundred then. Or a function that gives the error of a
        sample: called with a list of its outputs and with the list of those of the runtime's own
        kernels, it returns a float.
    seed
        Of the choice of samples: an integer from 0 on. Only with ``max_error``, as are ``metric``,
        ``prefer``, ``start`` and ``observer``.
    prefer
        What the plan is to save: ``"time"``; or ``"memory"`` of the device, where halves are slower
        than floats, as on most CPUs.
    start
        A plan of this model, or its file, such as one that was tuned on another device: the search
        begins with it, and it is measured beside what is found. So is the plan that the cache has.
    observer
        Of the ranges of int8, as in `quantize`; None tries ``"minmax"`` and ``"percentile"``.
    budget
        Seconds, or a text such as ``"90s"`` or ``"2m"``, after which no further candidate is tried.
        Of kernels, the most expensive layers come first; those left keep their kernels, and tuning
        again goes on with them. Of precisions, the shorter it is, the more nodes change their
        precision together; loading the model and measuring the result come on top.
    again
        Measure layers that were measured before, too. Not with ``max_error``.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    progress
        True or False for a progress bar on standard error or none, None for one on terminals, or a
        function that is called before each candidate with the number of layers done, the number of
        layers to be measured, the operation and the candidate. What it raises ends the tuning;
        winners found so far are kept. With ``max_error``, Ctrl-C ends the search, and the best plan
        so far is measured and returned; Ctrl-C before the search or in these last measurements
        gives the best that was measured on the samples held back until then, else fp32. Only before
        fp32 is measured, it ends the tuning without a plan.
    shapes
        As in `explain_model`.
    **settings
        The fields of `Options`; `tuning` may not be ``"off"``. With ``max_error``, `precision` and
        `half_weights` may not be given; with `half_io`, errors are measured with it.

    Returns
    -------
    Tuning or PrecisionPlan
        A `PrecisionPlan` with ``max_error``.

    Raises
    ------
    ClgpuError
        If the model cannot be read, an option is wrong, or there is no device or runtime.
    OptionError
        If floats do not hold ``max_error`` either, or ``start`` is a plan of another model.
    FileError
        If ``start`` is a file that has no plan.
    InputError
        If samples do not fit the model, or ``metric`` does not return a number.

    Examples
    --------
    >>> tuning = clgpu_delegate.tune("model.tflite", budget="1s", cache="cache.sqlite")
    >>> tuning.after_seconds > 0
    True
    """
    if max_error is not None:
        if again:
            raise OptionError("again is given with max_error; it is of tuning kernels only")
        bounded = _Bounded(samples, max_error, metric, seed, prefer, start, observer)
        return _tune_precision(model, bounded, budget, runtime, progress, shapes, settings)
    if samples is not None or metric is not None:
        raise OptionError("samples and metric are given without max_error, the bound of the error")
    if seed != 0 or prefer != "time":
        raise OptionError("seed and prefer are given without max_error, the bound of the error")
    if start is not None or observer is not None:
        raise OptionError("start and observer are given without max_error, the bound of the error")
    seconds = _seconds(budget)
    content = files.read_model(model)
    found = find_runtime(runtime)
    content = resized(found, content, shapes)
    options = dataclasses.replace(Options.from_settings(**settings), tuning="auto", placement="all")
    if settings.get("tuning") == "off":
        raise OptionError("option 'tuning' is 'off'; to tune, allowed: auto, exhaustive")

    def prepared(delegate: Delegate) -> Any:
        interpreter = inference.make_interpreter(found, content, 1, delegate)
        with inference.as_our_error(f"{found} with the delegate cannot load the model"):
            interpreter.allocate_tensors()
        return interpreter

    def report(done: int, count: int, layer: Mapping[str, Any], candidate: str) -> None:
        bar.show(f"{layer['op']} {candidate}", done, count)
        if callable(progress):
            progress(done, count, layer["op"], candidate)

    bar = Bar(False if callable(progress) else progress)
    delegate = Delegate(options)
    interpreter = prepared(delegate)
    if not delegate.explain().claimed:
        raise ClgpuError(f"nothing to tune: the delegate claims no node of {os.fspath(model)}")
    with bar:
        layers = delegate._tune(seconds, again, report)
    del interpreter
    standard = Delegate(dataclasses.replace(options, tuning="off"))
    interpreters = [prepared(standard), prepared(delegate)]
    explanation = delegate.explain()
    before, after = device_times(standard, delegate)
    used = any(node.chosen == "tuned" for node in explanation.nodes)
    if used and after > _SLOWER * before:
        before, after = device_times(standard, delegate)  # another process may have disturbed
        used = after <= _SLOWER * before
        if not used:
            delegate._leave_winners()
    del interpreters
    return Tuning(
        model=os.fspath(model),
        device=explanation.device,
        precision=explanation.precision,
        layers=tuple(_layer(entry) for entry in layers),
        before_seconds=before,
        after_seconds=after,
        used=used,
        notes=explanation.notes,
        arithmetic=explanation.arithmetic,
    )


@dataclasses.dataclass(frozen=True)
class _Bounded:
    """The arguments of `tune` for precisions; wrong ones are an OptionError."""

    samples: Samples | None
    max_error: float
    metric: Metric | NamedMetric | None
    seed: int
    prefer: str
    start: Start | None
    observer: str | None

    def the_metric(self) -> Metric | None:
        """As a function; None for relative L2."""
        given = self.metric
        if given is None or (isinstance(given, str) and given == RELATIVE_L2):
            return None
        if isinstance(given, str) and given == TOP_1:
            return mixing.top_1
        if isinstance(given, str) or not callable(given):
            raise OptionError(
                f"metric is {given!r:.80}; allowed: {RELATIVE_L2}, {TOP_1}, or a function of a "
                "sample's outputs and of the reference that returns a number"
            )
        return given

    def the_start(self) -> PrecisionPlan | None:
        """The plan; that of a file is read."""
        given = self.start
        if given is None or isinstance(given, PrecisionPlan):
            return given
        if not isinstance(given, (str, os.PathLike)):
            raise OptionError(
                f"start is of type {type(given).__name__}; allowed: a PrecisionPlan, or the path "
                "of its file"
            )
        try:
            return PrecisionPlan.load(given)
        except FileError as error:
            raise FileError(f"start: {error}") from None

    def the_observers(self) -> tuple[str, ...]:
        """Names; those that are tried, unless one was asked for."""
        if self.observer is None:
            return _OBSERVERS
        if self.observer not in observers.NAMES:
            allowed = ", ".join(observers.NAMES)
            raise OptionError(f"observer is {self.observer!r:.80}; allowed: {allowed}")
        return (self.observer,)


def _tune_precision(
    model: str | os.PathLike[str],
    asked: _Bounded,
    budget: float | str,
    runtime: RuntimeName | None,
    progress: Progress,
    shapes: Shapes | None,
    settings: Settings,
) -> PrecisionPlan:
    seconds = _seconds(budget)
    max_error = asked.max_error
    number = isinstance(max_error, (int, float, np.integer, np.floating))
    if not number or isinstance(max_error, bool) or not 0 < max_error < math.inf:
        raise OptionError(f"max_error is {max_error!r}; allowed: a number above 0")
    whole = isinstance(asked.seed, (int, np.integer)) and not isinstance(asked.seed, bool)
    if not whole or asked.seed < 0:
        raise OptionError(f"seed is {asked.seed!r}; allowed: an integer from 0 on")
    if asked.prefer not in ("time", "memory"):
        raise OptionError(f"prefer is {asked.prefer!r}; allowed: time, memory")
    metric, start, tried = asked.the_metric(), asked.the_start(), asked.the_observers()
    given, usual = Options.from_settings(**settings), Options()
    for name in ("precision", "half_weights"):
        if getattr(given, name) != getattr(usual, name):
            raise OptionError(f"option {name!r} is given with max_error, which finds the precision")
    if asked.samples is None:
        raise InputError("max_error is given without samples to measure the error on")
    found = find_runtime(runtime)
    content = resized(found, files.read_model(model), shapes)
    options = dataclasses.replace(given, placement="all", verify="off", profile=False)
    bar = Bar(False if callable(progress) else progress)
    told = progress if callable(progress) else lambda *_: None
    subject = mixing.Subject(
        content=content,
        runtime=found,
        options=options,
        samples=_read_samples(content, asked.samples),
        max_error=float(max_error),
        metric=metric,
        seed=int(asked.seed),
        prefer=asked.prefer,
        budget=seconds,
        observers=tried,
        start=start,
        kept=lambda digest: native.kept_plan(options, digest),
    )
    with bar:
        plan = mixing.search(subject, bar, told)
    return native.keep_plan(options, plan, f"{Path(model).name}, error {plan.max_error:g}")


def _read_samples(content: bytes, given: Samples) -> list[list[Array]]:
    """One array per input for each sample, in the order of the inputs."""
    graph = parse(content).main
    inputs = [graph.tensors[t] for t in graph.inputs]
    try:
        if isinstance(given, (str, os.PathLike)):
            given = samples_.load_file(given, inputs, "samples")
        elif isinstance(given, Mapping):
            given = samples_.split(given, inputs, "the mapping of samples")
        elif not isinstance(given, Iterable):
            raise InputError(
                f"samples is of type {type(given).__name__}; allowed: an iterable of arrays"
            )
        checked = list(samples_.checked(given, inputs, "sample"))
    except QuantizationError as error:
        raise InputError(str(error)) from None
    for number, arrays in enumerate(checked):
        for array, tensor in zip(arrays, inputs):
            # A dimension may be open, but the model is loaded with a single shape.
            if array.shape != tuple(tensor.shape):
                raise InputError(
                    f"sample {number}, input {tensor.name!r} is of shape {array.shape}; the model "
                    f"is loaded with {tuple(tensor.shape)}: give this shape, or the other one as "
                    "the option 'shapes'"
                )
    return checked


def _layer(entry: Mapping[str, Any]) -> TunedLayer:
    return TunedLayer(
        nodes=tuple(entry["nodes"]),
        op=entry["op"],
        outputs=tuple(map(tuple, entry["outputs"])),
        default=entry["default"],
        winner=entry["winner"],
        outcome=entry["outcome"],
        seconds=dict(entry["seconds"]),
        problems=dict(entry["problems"]),
    )


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.4g}"


def _seconds(budget: float | str) -> float:
    """Seconds of a budget; an OptionError unless it is above 0."""
    found = _TIME.fullmatch(budget) if isinstance(budget, str) else None
    if found is not None:
        seconds = float(found[1]) * _UNITS[found[2]]
    elif isinstance(budget, (int, float)):
        seconds = float(budget)
    else:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise OptionError(
            f"budget is {budget!r}; allowed: a finite number of seconds above 0, or a text such as "
            "'90s' or '2m'"
        )
    return seconds

"""Benchmarks: variants of models, each compared with the stock CPU kernels."""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np

from clgpu_delegate.base import files
from clgpu_delegate.base.arranging import Shapes, plain
from clgpu_delegate.base.progress import Bar
from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import ClgpuError, OptionError
from clgpu_delegate.litert.compiled import Api, runtime_for
from clgpu_delegate.measure.job import REFERENCE_S, Job, measure
from clgpu_delegate.options import Options, Settings
from clgpu_delegate.runtimes import RuntimeName
from clgpu_delegate.tflite import inference
from clgpu_delegate.tflite.settling import resized

if TYPE_CHECKING:
    from typing_extensions import Unpack

_STOCK, _OWN_GPU = "stock CPU", "LiteRT's GPU"
_NOISE = 1.25  # of the medians of two rounds

Model = Union[str, "os.PathLike[str]"]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A model in one variant. Numbers are None where the measurement failed.

    Examples
    --------
    >>> row = clgpu_delegate.Measurement("model.tflite", "fp16", median_ms=1.5)
    >>> row.to_dict()["median_ms"]
    1.5
    """

    model: str
    variant: str
    """``"stock CPU"``, ``"LiteRT's GPU"``, or precision and placement."""

    problem: str | None = None
    """Why it failed."""

    median_ms: float | None = None
    """Time of one inference, copies to and from the device included."""

    p10_ms: float | None = None
    """The time that a tenth of the inferences stayed below."""

    p90_ms: float | None = None
    """The time that nine tenths of them stayed below."""

    best_ms: float | None = None
    rounds_ms: tuple[float, ...] = ()
    """Median of each round."""

    noisy: bool = False
    """Whether the rounds' medians, or those of the stock CPU, differ so much that the speedup says
    little: by more than a quarter."""

    speedup: float | None = None
    """Median of the stock CPU over this one, in the same round; the median of the rounds."""

    speedups: tuple[float, ...] = ()
    """Of each round."""

    first_ms: float | None = None
    """Time to load the model and run it once; the median of the rounds."""

    device_bytes: int | None = None
    """The most device memory it has had; None for the stock CPU."""

    host_bytes: int | None = None
    """By how much the process has grown."""

    max_abs_error: float | None = None
    """Largest difference from the stock CPU, of any element of any output."""

    relative_l2_error: float | None = None
    """Norm of the difference over the norm of the stock output; of the worst output."""

    reference_max_abs_error: float | None = None
    """Of a quantised model: largest difference from the runtime's reference kernels, which define
    its results; of the stock CPU, too. None if they take longer than a minute."""

    reference_relative_l2_error: float | None = None
    """The same as a norm, as `relative_l2_error`."""

    choice: str | None = None
    """What the option `placement` came to, such as ``"cpu"``."""

    claimed: int | None = None
    """Nodes on the device, of ``total``, in ``partitions``."""

    total: int | None = None
    partitions: int | None = None
    undone: bool = False
    """Whether the runtime silently took back what the delegate had claimed."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Benchmark(Shown):
    """What `benchmark` found.

    Examples
    --------
    >>> result = clgpu_delegate.benchmark("model.tflite", precisions=["fp32"], runs=1)
    >>> [measurement.variant for measurement in result.measurements]
    ['stock CPU', 'fp32']
    """

    device: str
    runtime: str
    threads: int
    runs: int
    """Of each variant, in all rounds together."""

    measurements: tuple[Measurement, ...]
    """By model, the stock CPU first."""

    api: str = "interpreter"
    """The runtime's interface, as in `benchmark`."""

    rounds: int = 1
    """In each of them, each variant ran in a process of its own, one after the other."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {**data, "measurements": [m.to_dict() for m in self.measurements]}

    def __rich__(self) -> Group:
        table = Table()
        table.add_column("model", fold=True)
        table.add_column("variant")
        has_reference = any(m.reference_relative_l2_error is not None for m in self.measurements)
        for heading in (
            "ms", "p10-p90", "speedup", "first ms", "nodes", "device MiB", "host MiB", "error",
            *["ref"] * has_reference,
        ):  # fmt: skip
            table.add_column(heading, right=True)
        lines, last = [], None
        for m in self.measurements:
            if m.problem is not None:
                lines.append(f"{m.model}, {m.variant}: {m.problem}")
            if m.undone:
                lines.append(f"{m.model}, {m.variant}: the runtime undid the delegation")
            cells = (
                _number(m.median_ms, ".3f") or "failed",
                f"{m.p10_ms:.3g}-{m.p90_ms:.3g}" if m.p10_ms and m.p90_ms else "",
                _number(m.speedup, ".2f", "x noisy" if m.noisy else "x"),
                _number(m.first_ms, ".0f"),
                "" if m.claimed is None else f"{m.claimed} of {m.total}",
                _number(m.device_bytes and m.device_bytes / 2**20, ".1f"),
                _number(m.host_bytes and m.host_bytes / 2**20, ".1f"),
                _number(m.relative_l2_error, ".1g"),
                *[_number(m.reference_relative_l2_error, ".1g")] * has_reference,
            )
            name = "" if m.model == last else Path(m.model).name
            variant = m.variant if m.choice in (None, "all") else f"{m.variant}: {m.choice}"
            last = m.model
            style = "yellow" if m.problem else "green" if (m.speedup or 0) > 1 else ""
            table.add_row(*map(Text, (name, variant, *cells)), style=style)
        lines.append(
            f"{self.device}; {self.runtime}{' with CompiledModel' * (self.api == 'compiled')}, "
            f"{self.threads} threads; medians of {self.runs} run{'s' * (self.runs != 1)} in "
            f"{self.rounds} round{'s' * (self.rounds != 1)}, "
            "each variant in a process of its own; speedup: the median of the rounds' own ratios; "
            "error: relative L2 to the stock CPU"
            + "; ref: to the reference kernels, which define quantised results"
            * has_reference
        )
        if any(m.noisy for m in self.measurements):
            lines.append(
                "noisy: the rounds differ by more than a quarter; close other programs, or raise "
                "runs and rounds"
            )
        return Group(table.fitting(2), *map(Text, lines))

    def __str__(self) -> str:
        return as_text(self)


def benchmark(
    models: Model | Iterable[Model | tuple[Model, Shapes]],
    *,
    precisions: Sequence[Literal["fp32", "fp16", "tf32", "mixed"]] = ("fp32", "fp16"),
    placements: Sequence[Literal["all", "auto", "measured"]] = ("all",),
    threads: int | None = None,
    runs: int = 20,
    rounds: int = 3,
    runtime: RuntimeName | None = None,
    api: Api = "interpreter",
    progress: bool | None = None,
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> Benchmark:
    """Measure models on the stock CPU kernels and in variants of the delegate.

    Inputs are random, the same for all variants of a model. The variants take turns: in each round
    each runs in a new process, one after the other. A variant that fails is a row with a `problem`.

    Parameters
    ----------
    models
        Path of a .tflite file, or several; or pairs of a path and the shapes of its inputs.
    precisions, placements
        Values of these options; each pair is a variant.
    threads
        Threads of the CPU kernels, with and without the delegate; None: all cores that this process
        may use.
    runs
        Number of timed inferences, in all rounds together, without the first of each round; rounded
        up to a multiple of the rounds.
    rounds
        How often the variants take turns; with more, a change of the clock or another program
        affects all of them alike. At most ``runs`` are used.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    api
        ``"interpreter"``, or ``"compiled"`` for LiteRT's CompiledModel. With that, LiteRT's own GPU
        is a variant, too.
    progress
        True or False for a progress bar on standard error or none, None for one on terminals.
    shapes
        As in `explain_model`; of all models that are not given in pairs.
    **settings
        The other fields of `Options`.

    Raises
    ------
    FileError, ModelError
        If a model cannot be read; before anything is measured.
    InputError
        If the shapes do not fit the inputs of a model.
    OptionError
        If an option is not allowed.
    DeviceError, RuntimeNotFoundError
        If there is no device or runtime.
    ClgpuError
        If nothing could be measured at all: what the first measurement failed with.

    Examples
    --------
    >>> result = clgpu_delegate.benchmark("model.tflite", precisions=["fp16"], runs=1)
    >>> result.measurements[1].claimed
    4
    """
    listed = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    pairs = [each if isinstance(each, tuple) else (each, shapes) for each in listed]
    if runs < 1:
        raise OptionError(f"runs is {runs}; allowed: 1 and more")
    if rounds < 1:
        raise OptionError(f"rounds is {rounds}; allowed: 1 and more")
    if threads is not None and threads < 1:
        raise OptionError(f"threads is {threads}; allowed: 1 and more, or None")
    for path, _ in pairs:
        files.read_model(path)
    tool = runtime_for(api, runtime)
    for path, its in pairs:
        resized(tool, files.read_model(path), its)
    variants = list(_variants(precisions, placements, settings))
    device = Delegate(variants[0][1] if variants else Options.from_settings(**settings)).device
    count = threads or inference.usable_cores()
    rounds = min(rounds, runs)
    job = Job("", tool.name, count, -(-runs // rounds), api=api)
    own: list[tuple[str, Options | None]] = [(_OWN_GPU, None)] if api == "compiled" else []
    jobs = {
        name: dataclasses.replace(
            job,
            options=None if options is None else dataclasses.asdict(options),
            own_gpu=name == _OWN_GPU,
        )
        for name, options in [(_STOCK, None), *own, *variants]
    }
    failures: list[ClgpuError] = []
    found: list[Measurement] = []
    with Bar(progress) as bar:
        bar.stage("measuring", len(pairs) * rounds * len(jobs))
        for each, its in pairs:
            path = os.fspath(each)
            here = {"model": path, "shapes": plain(its)}
            series = {n: _Series(dataclasses.replace(one, **here)) for n, one in jobs.items()}
            for number in range(rounds):
                for position, (name, one) in enumerate(series.items()):
                    done = len(found) * rounds + number * len(jobs) + position
                    bar.show(f"{Path(path).name}, {name}", done)
                    one.run()
            failures += [one.failure for one in series.values() if one.failure is not None]
            rows = [one.measurement(path, name, series[_STOCK]) for name, one in series.items()]
            if any(one.is_quantized() for one in series.values()):
                rows = _with_reference(rows, [*series.values()], dataclasses.replace(job, **here))
            found += rows
    if failures and len(failures) == len(found):
        raise failures[0]
    return Benchmark(
        device=f"{device.name} ({device.platform})",
        runtime=str(tool),
        threads=count,
        runs=job.runs * rounds,
        measurements=tuple(found),
        api=api,
        rounds=rounds,
    )


class _Series:
    """The rounds of one variant of a model; it ends at the first that fails."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.results: list[dict[str, Any]] = []
        self.outputs: list[inference.Array] = []
        self.failure: ClgpuError | None = None

    def run(self) -> None:
        if self.failure is not None:
            return
        try:
            result, self.outputs = measure(self._job)
        except ClgpuError as error:
            self.failure = error
        else:
            self.results.append(result)

    def is_quantized(self) -> bool:
        return any(result.get("quantized", False) for result in self.results)

    def medians(self) -> list[float]:
        return [statistics.median(result["times_ms"]) for result in self.results]

    def is_noisy(self) -> bool:
        medians = self.medians()
        return max(medians) > _NOISE * min(medians)

    def measurement(self, path: str, name: str, stock: _Series) -> Measurement:
        if self.failure is not None:
            return Measurement(path, name, problem=str(self.failure))
        times = [time for result in self.results for time in result["times_ms"]]
        low, median, high = np.percentile(times, (10, 50, 90))
        data: dict[str, Any] = {**self.results[-1]}
        del data["times_ms"]
        data.pop("quantized", None)
        of_all: dict[str, Callable[[list[float]], float]] = {
            "host_bytes": max,
            "device_bytes": max,
            "first_ms": statistics.median,
        }
        for key in of_all.keys() & data.keys():
            data[key] = of_all[key]([result[key] for result in self.results])
        if self is not stock and name != _OWN_GPU and stock.failure is None:
            ratios = [theirs / own for theirs, own in zip(stock.medians(), self.medians())]
            data |= {"speedups": tuple(ratios), "speedup": statistics.median(ratios)}
            errors = inference.worst_errors(self.outputs, stock.outputs)
            data["max_abs_error"], data["relative_l2_error"] = errors
        return Measurement(
            path,
            name,
            median_ms=float(median),
            p10_ms=float(low),
            p90_ms=float(high),
            best_ms=min(times),
            rounds_ms=tuple(self.medians()),
            noisy=self.is_noisy() or (stock.failure is None and stock.is_noisy()),
            **data,
        )


def _with_reference(rows: list[Measurement], series: list[_Series], job: Job) -> list[Measurement]:
    """The rows with their differences from the reference kernels, where these end in time."""
    try:
        job = dataclasses.replace(job, api="interpreter", reference=True, runs=0)
        _, reference = measure(job, REFERENCE_S)
    except ClgpuError:
        return rows
    result = []
    for row, one in zip(rows, series):
        if one.failure is None:
            largest, relative = inference.worst_errors(one.outputs, reference)
            row = dataclasses.replace(  # noqa: PLW2901
                row, reference_max_abs_error=largest, reference_relative_l2_error=relative
            )
        result.append(row)
    return result


def _variants(
    precisions: Sequence[str], placements: Sequence[str], settings: Settings
) -> Iterator[tuple[str, Options]]:
    for name, plural in (("precision", "precisions"), ("placement", "placements")):
        if name in settings:
            raise OptionError(f"option {name!r} does not fit here; {plural} has its values")
    for precision in precisions:
        for placement in placements:
            given: Any = {**settings, "precision": precision, "placement": placement}
            options = Options.from_settings(**given)
            yield precision if placement == "all" else f"{precision}, {placement}", options


def _number(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"

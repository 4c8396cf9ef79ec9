"""Benchmarks: variants of models, each compared with the stock CPU kernels."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

from clgpu_delegate.base import files
from clgpu_delegate.base.progress import Bar
from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import ClgpuError, OptionError
from clgpu_delegate.litert.compiled import Api, runtime_for
from clgpu_delegate.measure.job import Job, measure
from clgpu_delegate.options import Options, Settings
from clgpu_delegate.runtimes import RuntimeName
from clgpu_delegate.tflite import inference

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OWN_GPU = "LiteRT's GPU"

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

    best_ms: float | None = None
    speedup: float | None = None
    """Median of the stock CPU over this one."""

    first_ms: float | None = None
    """Time to load the model and run it once."""

    device_bytes: int | None = None
    """The most device memory it has had; None for the stock CPU."""

    host_bytes: int | None = None
    """By how much the process has grown."""

    max_abs_error: float | None = None
    """Largest difference from the stock CPU, of any element of any output."""

    relative_l2_error: float | None = None
    """Norm of the difference over the norm of the stock output; of the worst output."""

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
    measurements: tuple[Measurement, ...]
    """By model, the stock CPU first."""

    api: str = "interpreter"
    """The runtime's interface, as in `benchmark`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {**data, "measurements": [m.to_dict() for m in self.measurements]}

    def __rich__(self) -> Group:
        table = Table()
        table.add_column("model", fold=True)
        table.add_column("variant")
        for heading in ("ms", "speedup", "first ms", "nodes", "device MiB", "host MiB", "error"):
            table.add_column(heading, right=True)
        lines, last = [], None
        for m in self.measurements:
            if m.problem is not None:
                lines.append(f"{m.model}, {m.variant}: {m.problem}")
            if m.undone:
                lines.append(f"{m.model}, {m.variant}: the runtime undid the delegation")
            cells = (
                _number(m.median_ms, ".3f") or "failed",
                _number(m.speedup, ".2f", "x"),
                _number(m.first_ms, ".0f"),
                "" if m.claimed is None else f"{m.claimed} of {m.total}",
                _number(m.device_bytes and m.device_bytes / 2**20, ".1f"),
                _number(m.host_bytes and m.host_bytes / 2**20, ".1f"),
                _number(m.relative_l2_error, ".1g"),
            )
            name = "" if m.model == last else Path(m.model).name
            variant = m.variant if m.choice in (None, "all") else f"{m.variant}: {m.choice}"
            last = m.model
            style = "yellow" if m.problem else "green" if (m.speedup or 0) > 1 else ""
            table.add_row(*map(Text, (name, variant, *cells)), style=style)
        lines.append(
            f"{self.device}; {self.runtime}{' with CompiledModel' * (self.api == 'compiled')}, "
            f"{self.threads} threads; medians of {self.runs} runs, "
            "each variant in a process of its own; error: relative L2 to the stock CPU"
        )
        return Group(table, *map(Text, lines))

    def __str__(self) -> str:
        return as_text(self)


def benchmark(
    models: Model | Iterable[Model],
    *,
    precisions: Sequence[Literal["fp32", "fp16", "tf32"]] = ("fp32", "fp16"),
    placements: Sequence[Literal["all", "auto", "measured"]] = ("all",),
    threads: int | None = None,
    runs: int = 20,
    runtime: RuntimeName | None = None,
    api: Api = "interpreter",
    progress: bool | None = None,
    **settings: Unpack[Settings],
) -> Benchmark:
    """Measure models on the stock CPU kernels and in variants of the delegate.

    Inputs are random, the same for all variants of a model. Each variant runs in a separate
    process, one after the other. A variant that fails is a row with a `problem`.

    Parameters
    ----------
    models
        Path of a .tflite file, or several.
    precisions, placements
        Values of these options; each pair is a variant.
    threads
        Threads of the CPU kernels, with and without the delegate; None: all cores that this process
        may use.
    runs
        Number of timed inferences, without the first.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    api
        ``"interpreter"``, or ``"compiled"`` for LiteRT's CompiledModel. With that, LiteRT's own GPU
        is a variant, too.
    progress
        True or False for a progress bar on standard error or none, None for one on terminals.
    **settings
        The other fields of `Options`.

    Raises
    ------
    FileError, ModelError
        If a model cannot be read; before anything is measured.
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
    paths = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    if runs < 1:
        raise OptionError(f"runs is {runs}; allowed: 1 and more")
    if threads is not None and threads < 1:
        raise OptionError(f"threads is {threads}; allowed: 1 and more, or None")
    for path in paths:
        files.read_model(path)
    tool = runtime_for(api, runtime)
    variants = list(_variants(precisions, placements, settings))
    device = Delegate(variants[0][1] if variants else Options.from_settings(**settings)).device
    count = threads or inference.usable_cores()
    job = Job("", tool.name, count, runs, api=api)
    own: list[tuple[str, Options | None]] = [(_OWN_GPU, None)] if api == "compiled" else []
    ways = [("stock CPU", None), *own, *variants]
    failures: list[ClgpuError] = []
    found: list[Measurement] = []
    with Bar(progress) as bar:
        bar.stage("measuring", len(paths) * len(ways))
        for path in [os.fspath(each) for each in paths]:
            stock: tuple[float, list[inference.Array]] | None = None
            for name, options in ways:
                bar.show(f"{Path(path).name}, {name}", len(found))
                given = None if options is None else dataclasses.asdict(options)
                one = dataclasses.replace(job, model=path, options=given, own_gpu=name == _OWN_GPU)
                try:
                    result, outputs = measure(one)
                except ClgpuError as error:
                    failures.append(error)
                    result = {"problem": str(error)}
                else:
                    if options is None and name != _OWN_GPU:
                        stock = result["median_ms"], outputs
                    elif stock is not None:
                        result["speedup"] = stock[0] / result["median_ms"]
                        errors = inference.worst_errors(outputs, stock[1])
                        result["max_abs_error"], result["relative_l2_error"] = errors
                found.append(Measurement(path, name, **result))
    if failures and len(failures) == len(found):
        raise failures[0]
    return Benchmark(
        device=f"{device.name} ({device.platform})",
        runtime=str(tool),
        threads=count,
        runs=runs,
        measurements=tuple(found),
        api=api,
    )


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

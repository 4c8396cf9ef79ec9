"""``python -m bench mixed``: plans of precisions, against fp16 and fp32 of the whole model."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

import clgpu_delegate
from bench import mixed_processes, networks
from bench.report import Column, Report, TextTable, name_column
from bench.setting import File, Names, Setting
from clgpu_delegate.measure.mixing import relative_l2
from clgpu_delegate.measure.turns import device_times
from clgpu_delegate.tflite.inference import Array
from tests.runtimes import make_interpreter, resolve_runtime, run_interpreter

Prefer = Annotated[str, typer.Option(help="time or memory, as in tune().")]

_FRESH = 1000  # seeds of samples that tuning does not see
_TURNS = 7  # of the times


@dataclasses.dataclass(frozen=True)
class Row:
    """One model; times are milliseconds of the device.

    Attributes
    ----------
    fp32_error, fp16_error, error
        Relative L2 errors on samples that tuning did not see; the last is that of the plan.
    fp32_mb, fp16_mb, mb
        Peak of device memory.
    halves, int8, tensors
        Float tensors on the device that are half, those that are int8, and all of them.
    tf32
        Nodes that round factors.
    integers
        Nodes that compute with int8.
    means
        Tensors whose means correct the biases of products with rounded weights.
    tuning_s
        Seconds that tuning took.
    complete
        Whether the search came to its end.
    """

    model: str
    batch: int
    fp32_ms: float
    fp16_ms: float
    mixed_ms: float
    fp32_error: float
    fp16_error: float
    error: float
    fp32_mb: float
    fp16_mb: float
    mb: float
    halves: int
    int8: int
    tensors: int
    tf32: int
    integers: int
    means: int
    tuning_s: float
    complete: bool

    @property
    def speedup(self) -> float:
        """Time of fp16 over that of the plan."""
        return self.fp16_ms / self.mixed_ms

    @property
    def memory(self) -> float:
        """Memory of the plan over that of fp16."""
        return self.mb / self.fp16_mb


Samples = list[list[Array]]  # of each sample, its inputs


def samples_of(model: bytes, count: int) -> tuple[Samples, Samples]:
    """Draw ``count`` samples for tuning, and as many others."""
    first, others = (
        [networks.sample_inputs(model, seed=start + number) for number in range(count)]
        for start in (0, _FRESH)
    )
    return first, others


def plan_of(
    model: bytes,
    samples: Samples,
    setting: Setting,
    *,
    max_error: float,
    budget: float,
    prefer: str = "time",
) -> clgpu_delegate.PrecisionPlan:
    """Tune the precisions of a model; arguments as in `clgpu_delegate.tune`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(model)
        return clgpu_delegate.tune(  # type: ignore[call-overload, no-any-return]
            path,
            samples,
            max_error=max_error,
            prefer=prefer,
            budget=budget,
            device=setting.device,
            runtime=resolve_runtime(setting.runtime),
        )


def worst(
    model: bytes, samples: Samples, setting: Setting, precisions: Sequence[object]
) -> list[float]:
    """The largest error of each precision on samples, against the stock kernels."""
    runtime = resolve_runtime(setting.runtime)
    stock = make_interpreter(runtime, model, threads=setting.cpu_threads)
    wanted = [run_interpreter(stock, x) for x in samples]
    errors = []
    for precision in precisions:
        delegate = clgpu_delegate.load(device=setting.device, precision=precision)  # type: ignore[arg-type]
        ours = make_interpreter(runtime, model, [delegate])
        pairs = zip(samples, wanted)
        errors.append(max(relative_l2(run_interpreter(ours, x), want) for x, want in pairs))
    return errors


@dataclasses.dataclass(frozen=True)
class Model:
    """A network of the bench, or a file.

    Attributes
    ----------
    name, batch
        Of the network.
    file
        Of a .tflite file, its path; empty for a network.
    """

    name: str
    batch: int
    file: str = ""

    def read(self) -> bytes:
        """The bytes of the .tflite file."""
        return Path(self.file).read_bytes() if self.file else networks.build(self.name, self.batch)


@dataclasses.dataclass(frozen=True)
class Search:
    """How plans are searched for: arguments of `clgpu_delegate.tune`, and the number of samples."""

    max_error: float
    samples: int
    prefer: str = "time"


@dataclasses.dataclass(frozen=True)
class Found:
    """A plan, and the errors of fp32, fp16 and the plan on samples that the search did not see."""

    plan: clgpu_delegate.PrecisionPlan
    errors: list[float]
    seconds: float


def search(model: Model, setting: Setting, how: Search) -> Found:
    """Search for a plan, and measure its error on as many other samples."""
    content = model.read()
    samples, fresh = samples_of(content, how.samples)
    start = time.perf_counter()
    plan = plan_of(
        content, samples, setting, max_error=how.max_error, budget=setting.budget,
        prefer=how.prefer,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if all(point.name != "fp16" for point in plan.points):
        raise ValueError("it does not run in fp16, which plans are compared with")
    return Found(plan, worst(content, fresh, setting, ("fp32", "fp16", plan)), seconds)


def compare(model: Model, found: Found, setting: Setting) -> Row:
    """Measure fp32, fp16 and the plan in turns."""
    content, plan = model.read(), found.plan
    (sample,), _ = samples_of(content, 1)
    delegates = [
        clgpu_delegate.load(device=setting.device, precision=precision)
        for precision in ("fp32", "fp16", plan)
    ]
    # They hold the kernels that are timed.
    sessions = [setting.session(content, delegate).feed(sample) for delegate in delegates]
    for session in sessions:
        session()
    floats, halves, mixed = device_times(*delegates, turns=_TURNS)
    of_floats, of_halves, explanation = (delegate.explain() for delegate in delegates)
    stored = [tensor.storage for tensor in explanation.tensors]
    weights = set(plan.int8)
    quantised = sum(t.id in weights and t.storage == "int8" for t in explanation.tensors)
    return Row(
        model=model.name,
        batch=model.batch,
        fp32_ms=floats * 1e3,
        fp16_ms=halves * 1e3,
        mixed_ms=mixed * 1e3,
        fp32_error=found.errors[0],
        fp16_error=found.errors[1],
        error=max(found.errors[2], plan.error),
        fp32_mb=of_floats.peak_bytes / 2**20,
        fp16_mb=of_halves.peak_bytes / 2**20,
        mb=explanation.peak_bytes / 2**20,
        halves=stored.count("float16"),
        int8=quantised,
        tensors=quantised + stored.count("float16") + stored.count("float32"),
        tf32=sum(node.precision == "tf32" for node in explanation.nodes),
        integers=len(plan.integers),
        means=len(plan.means),
        tuning_s=found.seconds,
        complete=plan.complete,
    )


def models(names: Sequence[str], folder: Path | None, batch: int) -> Iterator[Model]:
    """The networks and the mixtures of experts of the bench, and the files of a folder."""
    for name in (*networks.NETWORKS, *networks.MIXTURES):
        if name in names or not (names or folder):
            yield Model(name, batch)
    for path in sorted(folder.glob("*.tflite")) if folder else []:
        if not names or path.stem in names:
            yield Model(path.stem, 1, str(path.absolute()))


COLUMNS = (
    name_column("model", "model"),
    Column("batch", "batch", "d"),
    Column("fp32 ms", "fp32_ms", ".3f"),
    Column("fp16 ms", "fp16_ms", ".3f"),
    Column("mixed ms", "mixed_ms", ".3f"),
    Column("x fp16", "speedup", ".2f"),
    Column("fp16 error", "fp16_error", ".1e"),
    Column("error", "error", ".1e"),
    Column("fp16 MiB", "fp16_mb", ".1f"),
    Column("MiB", "mb", ".1f"),
    Column("half", "halves", "d"),
    Column("int8", "int8", "d"),
    Column("of", "tensors", "d"),
    Column("tf32", "tf32", "d"),
    Column("integers", "integers", "d"),
    Column("means", "means", "d"),
    Column("in s", "tuning_s", ".0f"),
)


def run(
    setting: Setting,
    names: Names = None,
    folder: Annotated[
        File, typer.Option(help="Folder of .tflite files, instead of the networks of the bench.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Of the networks of the bench.")] = 1,
    samples: Annotated[int, typer.Option(min=2, help="That tuning gets; as many check it.")] = 8,
    max_error: Annotated[float, typer.Option(help="Bound of the relative L2 error.")] = 1e-3,
    prefer: Prefer = "time",
    processes: Annotated[
        int, typer.Option(min=1, help="That search at a time, each for a plan of one model.")
    ] = 1,
    limit: Annotated[
        float,
        typer.Option(help="With several processes: seconds after which searches are given up."),
    ] = 3600.0,
) -> list[Row]:
    """Tune the precisions of models, and compare the plans with fp16 and fp32.

    A row is red if its plan exceeds the bound, on samples of tuning or on others. With several
    processes, the plans are compared when all searches have ended, so nothing else uses the device.
    """
    report = Report[Row](setting, runtime=setting.runtime)
    chosen, how = list(models(names or (), folder, batch)), Search(max_error, samples, prefer)
    for model, row in _rows(chosen, setting, how, processes, limit, report.say):
        if isinstance(row, Exception):
            report.say(f"{model.name}: left out: {str(row)[:200]}")
            continue
        report.add([row], network="" if model.file else model.name)
        report.say(
            f"{model.name}: {row.speedup:.2f} times fp16's speed, error {row.error:.1e}, "
            f"{row.memory:.2f} of fp16's memory"
        )
    red = lambda row: "red" if row.error > max_error else ""  # noqa: E731
    title = f"{setting.title}, {samples} samples and as many others, errors up to {max_error:g}"
    return report.finish(TextTable.of(title, report.rows, COLUMNS, red))


def _rows(
    chosen: Sequence[Model], setting: Setting, how: Search, processes: int, limit: float,
    say: mixed_processes.Say,
) -> Iterator[tuple[Model, Row | Exception]]:  # fmt: skip
    """The row of each model, or why it has none."""
    if processes > 1:
        with mixed_processes.Searches(chosen, setting, how, processes, limit, say) as searches:
            yield from searches.rows()
        return
    for model in chosen:
        row: Row | Exception
        try:
            row = compare(model, search(model, setting, how), setting)
        except (clgpu_delegate.ClgpuError, ValueError) as error:
            row = error
        yield model, row

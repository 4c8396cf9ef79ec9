"""``python -m bench placement``: whether measured placements ever lose to the stock CPU."""

from __future__ import annotations

import csv
import dataclasses
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

import clgpu_delegate
from bench import networks
from bench.record import Sheet
from tests.runtimes import make_interpreter

_SETTLE_S = 0.05  # until the threads of the run before have stopped spinning
_LEAST = 5  # runs


@dataclasses.dataclass(frozen=True)
class Row:
    """One model; times are milliseconds, the best of the medians of several visits.

    Attributes
    ----------
    stock_ms
        The runtime without the delegate.
    all_ms, auto_ms, measured_ms
        With the delegate, by the option `placement`; None where the delegate cannot.
    expected_cpu_ms, expected_device_ms
        What the cost model expects of the partitions of ``"all"``, alone.
    auto, choice
        What the cost model and what the measurement chose.
    measuring_s
        What the first interpreter took with ``placement="measured"``.
    """

    model: str
    stock_ms: float
    all_ms: float | None
    auto_ms: float | None
    measured_ms: float | None
    expected_cpu_ms: float
    expected_device_ms: float
    auto: str
    choice: str
    measuring_s: float
    problem: str = ""
    """Why the delegate cannot."""

    @property
    def ratio(self) -> float:
        """Measured over stock: above 1 it lost."""
        return (self.measured_ms or float("nan")) / self.stock_ms


class _Way:
    """One way to run a model; it is loaded for each visit, and gone after it."""

    def __init__(self, runtime: str, model: bytes, threads: int, options: dict[str, Any] | None):
        self._runtime, self._model, self._threads = runtime, model, threads
        self._options = options
        self.load_s = 0.0
        self.report: dict[str, Any] = {}
        self.expected = (0.0, 0.0)
        self.medians: list[float] = []
        self.problem = ""

    def visit(self, budget_s: float) -> None:
        start = time.perf_counter()
        try:
            delegate = None if self._options is None else clgpu_delegate.load(**self._options)
            delegates = [] if delegate is None else [delegate]
            interpreter = make_interpreter(
                self._runtime, self._model, delegates, threads=self._threads
            )
            self.load_s = self.load_s or time.perf_counter() - start
            interpreter.allocate_tensors()
            inputs = networks.sample_inputs(self._model, seed=1)
            for detail, value in zip(interpreter.get_input_details(), inputs):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            self.problem = str(error)
            return
        if delegate is not None:
            self.report = delegate.explain().to_dict()["placement"]
            costs = delegate._native.estimates(self._threads)
            self.expected = tuple(
                1e3 * sum(cost[side] for cost in costs)
                for side in ("cpu_seconds", "device_seconds")
            )
        self.medians.append(_median_ms(interpreter, budget_s))

    @property
    def ms(self) -> float | None:
        return min(self.medians, default=None)


def _median_ms(interpreter: Any, budget_s: float) -> float:
    time.sleep(_SETTLE_S)
    interpreter.invoke()
    times: list[float] = []
    end = time.perf_counter() + budget_s
    while len(times) < _LEAST or (time.perf_counter() < end and len(times) < 1000):
        start = time.perf_counter()
        interpreter.invoke()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def measure(
    name: str,
    model: bytes,
    *,
    runtime: str,
    threads: int,
    visits: int,
    budget_s: float,
    **options: Any,
) -> Row:
    """Measure a model: ways take turns, one is loaded at a time, the best median of each counts."""
    ways = {"stock": _Way(runtime, model, threads, None)}
    for placement in ("all", "auto", "measured"):
        ways[placement] = _Way(runtime, model, threads, {**options, "placement": placement})
    for _ in range(visits):
        for way in ways.values():
            if not way.problem:
                way.visit(budget_s)
    stock = ways["stock"].ms
    if stock is None:
        raise ValueError(f"{name}: {ways['stock'].problem}")
    return Row(
        model=name,
        stock_ms=stock,
        all_ms=ways["all"].ms,
        auto_ms=ways["auto"].ms,
        measured_ms=ways["measured"].ms,
        expected_cpu_ms=ways["all"].expected[0],
        expected_device_ms=ways["all"].expected[1],
        auto=ways["auto"].report.get("choice", ""),
        choice=ways["measured"].report.get("choice", ""),
        measuring_s=ways["measured"].load_s,
        problem=ways["measured"].problem,
    )


def models(names: Sequence[str], folder: Path | None) -> Iterator[tuple[str, bytes]]:
    """The networks of the bench, and the files of a folder."""
    for name in networks.NETWORKS:
        if not names or name in names:
            yield name, networks.build(name)
    for path in sorted(folder.glob("*.tflite")) if folder else []:
        if not names or path.stem in names:
            yield path.stem, path.read_bytes()


def make_table(rows: Sequence[Row], title: str) -> Table:
    """One line per model."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("model")
    for heading in ("CPU ms", "expected", "all ms", "expected", "auto ms", "measured ms", "of CPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("auto", "measured", "in s"):
        table.add_column(heading, no_wrap=True)
    for row in rows:
        times = (row.stock_ms, row.expected_cpu_ms, row.all_ms, row.expected_device_ms)
        cells = [_number(ms) for ms in (*times, row.auto_ms, row.measured_ms)]
        cells += [f"{row.ratio:.2f}", row.auto, row.choice, f"{row.measuring_s:.1f}"]
        table.add_row(row.model, *cells, style="red" if row.ratio > 1.05 else "")
    return table


def _number(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.3f}"


def run(
    names: Sequence[str],
    *,
    folder: Path | None,
    csv_path: Path | None,
    runtime: str,
    threads: int,
    visits: int,
    budget_s: float,
    json: Sheet | None = None,
    **options: Any,
) -> list[Row]:
    """Measure and print all models."""
    rows = []
    console = Console(width=140)
    device = clgpu_delegate.load(**options).device
    for name, model in models(names, folder):
        try:
            row = measure(
                name,
                model,
                runtime=runtime,
                threads=threads,
                visits=visits,
                budget_s=budget_s,
                **options,
            )
        except ValueError as error:
            console.print(f"{name}: left out: {str(error)[:100]}")
            continue
        rows.append(row)
        if json is not None:
            known = [row.model for row in rows if row.model in networks.NETWORKS]
            json.write(rows, device=device, runtime=runtime, threads=threads, networks=known)
        console.print(
            f"{name}: CPU {row.stock_ms:.3f}, measured {_number(row.measured_ms)} ms, {row.choice}"
            f"{row.problem}"
        )
    console.print(make_table(rows, f"{device.name}, {threads} threads"))
    lost = [
        row.model + (" (no node on the device: the CPU against itself)" * (row.choice == "cpu"))
        for row in rows
        if not row.ratio <= 1.05
    ]
    console.print(f"more than 5 % slower than the CPU: {', '.join(lost) or 'none'}")
    if csv_path is not None:
        with csv_path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(Row)])
            writer.writeheader()
            writer.writerows(dataclasses.asdict(row) for row in rows)
    return rows

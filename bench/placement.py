"""``python -m bench placement``: whether measured placements are ever slower than the stock CPU."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import clgpu_delegate
from bench import networks
from bench.measure import medians
from bench.report import Column, Report, TextTable, name_column
from bench.setting import File, Names, Setting

_SETTLE_S = 0.05  # until the threads of the last run stop spinning
_LEAST, _MOST = 5, 1000  # runs of a visit
_LOST = 1.05  # measured over stock


@dataclasses.dataclass(frozen=True)
class Row:
    """One model; times are milliseconds, the best of the medians of several visits.

    Attributes
    ----------
    stock_ms
        The runtime without the delegate.
    all_ms, auto_ms, measured_ms
        With the delegate and the option `placement`; None if the delegate fails.
    expected_cpu_ms, expected_device_ms
        Times that the cost model expects for the partitions of ``"all"``.
    auto, choice
        The choices of the cost model and of the measurement.
    measuring_s
        Seconds that the first interpreter took with ``placement="measured"``.
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
    """Why the delegate fails."""

    @property
    def ratio(self) -> float:
        """Measured divided by stock: above 1 it is slower."""
        return (self.measured_ms or float("nan")) / self.stock_ms


class _Way:
    """One way to run a model; each visit loads the model again."""

    def __init__(self, model: bytes, setting: Setting, options: dict[str, Any] | None) -> None:
        self._model, self._setting, self._options = model, setting, options
        self.load_s = 0.0
        self.report: dict[str, Any] = {}
        self.expected = (0.0, 0.0)
        self.medians: list[float] = []
        self.problem = ""

    def visit(self) -> None:
        setting, threads = self._setting, self._setting.cpu_threads
        start = time.perf_counter()
        try:
            delegate = None if self._options is None else clgpu_delegate.load(**self._options)
            session = setting.session(self._model, delegate)
            self.load_s = self.load_s or time.perf_counter() - start
            session.feed(networks.sample_inputs(self._model, seed=1))()
        except (RuntimeError, ValueError) as error:
            self.problem = str(error)
            return
        if delegate is not None:
            self.report = delegate.explain().to_dict()["placement"]
            costs = delegate._native.estimates(threads)
            self.expected = tuple(
                1e3 * sum(cost[side] for cost in costs)
                for side in ("cpu_seconds", "device_seconds")
            )
        time.sleep(_SETTLE_S)
        times = medians({"": session}, rounds=_MOST, budget_s=setting.budget, least=_LEAST)
        self.medians.append(times[""] * 1e3)

    @property
    def ms(self) -> float | None:
        return min(self.medians, default=None)


def measure(name: str, model: bytes, setting: Setting, *, visits: int, precision: str) -> Row:
    """Measure a model: ways take turns, one is loaded at a time, the best median of each counts."""
    ways = {"stock": _Way(model, setting, None)}
    for placement in ("all", "auto", "measured"):
        options = {"device": setting.device, "precision": precision, "placement": placement}
        ways[placement] = _Way(model, setting, options)
    for _ in range(visits):
        for way in ways.values():
            if not way.problem:
                way.visit()
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


COLUMNS = (
    name_column("model", "model"),
    Column("CPU ms", "stock_ms", ".3f"),
    Column("expected", "expected_cpu_ms", ".3f"),
    Column("all ms", "all_ms", ".3f"),
    Column("expected", "expected_device_ms", ".3f"),
    Column("auto ms", "auto_ms", ".3f"),
    Column("measured ms", "measured_ms", ".3f"),
    Column("of CPU", "ratio", ".2f"),
    Column("auto", "auto", is_text=True),
    Column("measured", "choice", is_text=True),
    Column("in s", "measuring_s", ".1f"),
)


def run(
    setting: Setting,
    names: Names = None,
    folder: Annotated[File, typer.Option(help="Folder of further .tflite files.")] = None,
    precision: Annotated[str, typer.Option(help="Precision of the delegate.")] = "fp32",
    visits: Annotated[int, typer.Option(min=1, help="Loads of each way.")] = 3,
) -> list[Row]:
    """Measure models on the CPU, on the device, and as placement="auto" and "measured" do."""
    threads = setting.cpu_threads
    report = Report[Row](setting, runtime=setting.runtime, threads=threads)
    clgpu_delegate.load(device=setting.device, precision=precision)  # checks the options
    for name, model in models(names or (), folder):
        try:
            row = measure(name, model, setting, visits=visits, precision=precision)
        except ValueError as error:
            report.say(f"{name}: left out: {str(error)[:100]}")
            continue
        report.add([row], network=name)
        measured = "" if row.measured_ms is None else f"{row.measured_ms:.3f}"
        times = f"CPU {row.stock_ms:.3f}, measured {measured} ms"
        report.say(f"{name}: {times}, {row.choice}{row.problem}")
    title = f"{setting.found.name}, {threads} threads"
    red = lambda row: "red" if row.ratio > _LOST else ""  # noqa: E731
    rows = report.finish(TextTable.of(title, report.rows, COLUMNS, red))
    lost = [
        row.model + (" (no node on the device: the CPU against itself)" * (row.choice == "cpu"))
        for row in rows
        if not row.ratio <= _LOST
    ]
    report.say(f"more than 5 % slower than the CPU: {', '.join(lost) or 'none'}")
    return rows

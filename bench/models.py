"""``python -m bench models``: every network on the stock CPU and on the delegate, side by side."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import clgpu_delegate
from bench import networks
from bench.measure import medians
from tests.runtimes import make_interpreter

PRECISIONS = ("fp32", "fp16")


@dataclasses.dataclass(frozen=True)
class Row:
    """One network's figures.

    Attributes
    ----------
    cpu_ms
        Median of the stock runtime (XNNPACK).
    delegate_ms, first_run_ms, error
        By precision: median, time from nothing to the first result (load, build, one run), and
        relative L2 error against the stock runtime.
    arena_bytes
        Device memory of intermediate tensors, by precision.
    claimed, total
        Nodes on the device, and nodes of the model.
    """

    name: str
    cpu_ms: float
    delegate_ms: dict[str, float]
    first_run_ms: dict[str, float]
    error: dict[str, float]
    arena_bytes: dict[str, int]
    claimed: int
    total: int


class _Run:
    """An interpreter with its inputs set."""

    def __init__(
        self, runtime: str, model: bytes, inputs: Sequence[np.ndarray], threads: int, **options: Any
    ) -> None:
        start = time.perf_counter()
        self.delegate = clgpu_delegate.load(**options) if options else None
        delegates = [self.delegate] if self.delegate else []
        self.interpreter = make_interpreter(runtime, model, delegates, threads=threads)
        self.interpreter.allocate_tensors()
        for detail, value in zip(self.interpreter.get_input_details(), inputs):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        self.first_run_s = time.perf_counter() - start

    def __call__(self) -> None:
        self.interpreter.invoke()

    def output(self) -> np.ndarray:
        details = self.interpreter.get_output_details()
        parts = [
            self.interpreter.get_tensor(d["index"]).astype(np.float64).ravel() for d in details
        ]
        return np.concatenate(parts)


def measure(
    name: str, *, runtime: str, device: str, threads: int, batch: int, rounds: int, budget_s: float
) -> Row:
    """Measure one network."""
    model = networks.build(name, batch)
    inputs = networks.sample_inputs(model, seed=1)
    runs = {"cpu": _Run(runtime, model, inputs, threads)}
    for precision in PRECISIONS:
        runs[precision] = _Run(runtime, model, inputs, threads, device=device, precision=precision)
    seconds = medians(runs, rounds=rounds, budget_s=budget_s)
    want = runs["cpu"].output()
    error, arena = {}, {}
    for precision in PRECISIONS:
        difference = runs[precision].output() - want
        error[precision] = float(np.linalg.norm(difference) / np.linalg.norm(want))
        delegate = runs[precision].delegate
        assert delegate is not None
        report = delegate.explain().to_dict()
        arena[precision] = report["arena_bytes"]
    nodes = report["nodes"]
    return Row(
        name=name,
        cpu_ms=seconds["cpu"] * 1e3,
        delegate_ms={p: seconds[p] * 1e3 for p in PRECISIONS},
        first_run_ms={p: runs[p].first_run_s * 1e3 for p in PRECISIONS},
        error=error,
        arena_bytes=arena,
        claimed=sum(node["claimed"] for node in nodes),
        total=len(nodes),
    )


def _table(rows: Sequence[Row], title: str) -> Table:
    table = Table(title=title)
    table.add_column("network")
    for column in (
        "claimed",
        "CPU ms",
        "fp32 ms",
        "fp32 / CPU",
        "fp16 ms",
        "fp16 / CPU",
        "first run ms",
        "error fp32",
        "error fp16",
        "arena MB",
        "fp16",
    ):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.claimed}/{row.total}",
            f"{row.cpu_ms:.3f}",
            f"{row.delegate_ms['fp32']:.3f}",
            f"{row.delegate_ms['fp32'] / row.cpu_ms:.2f}x",
            f"{row.delegate_ms['fp16']:.3f}",
            f"{row.delegate_ms['fp16'] / row.cpu_ms:.2f}x",
            f"{row.first_run_ms['fp32']:.0f}",
            f"{row.error['fp32']:.1e}",
            f"{row.error['fp16']:.1e}",
            f"{row.arena_bytes['fp32'] / 1e6:.1f}",
            f"{row.arena_bytes['fp16'] / 1e6:.1f}",
        )
    return table


def run(
    names: Sequence[str],
    *,
    runtime: str = "auto",
    device: str = "",
    threads: int | None = None,
    batch: int = 1,
    rounds: int = 20,
    budget_s: float = 10.0,
) -> list[Row]:
    """Measure networks and print their table; the parameters are those of the command line."""
    threads = threads or os.cpu_count() or 1
    console = Console(width=None if Console().is_terminal else 150)
    rows = []
    for name in names:
        with console.status(name):
            rows.append(
                measure(
                    name,
                    runtime=runtime,
                    device=device,
                    threads=threads,
                    batch=batch,
                    rounds=rounds,
                    budget_s=budget_s,
                )
            )
        if not console.is_terminal:
            console.print(f"{name}: {rows[-1].delegate_ms['fp32']:.3f} ms")
    chosen = clgpu_delegate.load(device=device).device
    console.print(
        _table(
            rows, f"{chosen.name} ({chosen.platform}); stock CPU: {threads} threads; batch {batch}"
        )
    )
    return rows

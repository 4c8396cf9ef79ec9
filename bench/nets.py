"""``python -m bench nets``: networks on the delegate, the stock CPU and PyTorch."""

from __future__ import annotations

import csv
import dataclasses
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import clgpu_delegate
from bench import networks, peers_torch
from bench.measure import device_median_s, medians
from bench.record import Sheet
from tests.runtimes import make_interpreter, run_reference

PRECISIONS = ("fp32", "tf32", "fp16")
INT8 = "int8"  # the network quantised, not an option of the delegate


@dataclasses.dataclass(frozen=True)
class Row:
    """One network, batch and precision; times are medians in milliseconds.

    Attributes
    ----------
    claimed, nodes
        Nodes on the device, and nodes of the model.
    launches
        Kernel launches per inference.
    cpu_ms, host_ms
        Stock runtime (XNNPACK) and delegate, host array to host array, one at a time; they take
        turns.
    device_ms
        The device's own time per inference: many in flight, nothing copied.
    torch_ms
        The same of PyTorch by CUDA graphs; None where it was not measured.
    load_ms, compiled
        From nothing to the first result, and the programs compiled from source for that.
    error
        Relative L2 error against the stock runtime on the float network.
    arena_bytes
        Device memory of intermediate tensors.
    peak_bytes
        All device memory, at its worst moment.
    exact
        Of int8 at batch 1: whether all elements equal those of the reference kernels.
    """

    network: str
    batch: int
    precision: str
    claimed: int
    nodes: int
    launches: int
    cpu_ms: float
    host_ms: float
    device_ms: float
    torch_ms: float | None
    load_ms: float
    compiled: int
    error: float
    arena_bytes: int
    peak_bytes: int
    exact: bool | None = None


class _Run:
    """An interpreter that has run once."""

    def __init__(
        self, runtime: str, model: bytes, inputs: Sequence[np.ndarray], threads: int, **options: Any
    ) -> None:
        start = time.perf_counter()
        self.delegate = clgpu_delegate.load(**options) if options else None
        delegates = [self.delegate] if self.delegate else []
        self.interpreter = make_interpreter(runtime, model, delegates, threads=threads)
        self.interpreter.allocate_tensors()
        self.inputs = [
            _stored(detail, value)
            for detail, value in zip(self.interpreter.get_input_details(), inputs)
        ]
        for detail, value in zip(self.interpreter.get_input_details(), self.inputs):
            self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        self.load_s = time.perf_counter() - start

    def __call__(self) -> None:
        self.interpreter.invoke()

    def stored_outputs(self) -> list[np.ndarray]:
        details = self.interpreter.get_output_details()
        return [self.interpreter.get_tensor(d["index"]) for d in details]

    def output(self) -> np.ndarray:
        details = self.interpreter.get_output_details()
        parts = [_real(d, value).ravel() for d, value in zip(details, self.stored_outputs())]
        return np.concatenate(parts)


def _stored(detail: dict[str, Any], value: np.ndarray) -> np.ndarray:
    """Real numbers as the integers of an input; other inputs as they are."""
    scale, zero_point = detail["quantization"]
    if not scale or value.dtype != np.float32:
        return value
    info = np.iinfo(detail["dtype"])
    rounded = np.round(value / np.float32(scale)) + zero_point
    return np.clip(rounded, info.min, info.max).astype(detail["dtype"])


def _real(detail: dict[str, Any], value: np.ndarray) -> np.ndarray:
    scale, zero_point = detail["quantization"]
    real = value.astype(np.float64)
    return (real - zero_point) * scale if scale else real


def quantized(model: bytes, runtime: str = "auto") -> bytes:
    """The network with int8 weights, activations, inputs and outputs."""
    samples = [tuple(networks.sample_inputs(model, seed=seed)) for seed in (2, 3)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.tflite"
        clgpu_delegate.quantize(
            model,
            samples,
            path,
            io="int8",
            runtime=None if runtime == "auto" else runtime,
            progress=False,
        )
        return path.read_bytes()


def measure(
    name: str,
    batch: int,
    *,
    precisions: Sequence[str] = PRECISIONS,
    runtime: str = "auto",
    device: str = "",
    tuning: str = "auto",
    threads: int = 1,
    rounds: int = 20,
    budget_s: float = 3.0,
    torch: Any = None,
) -> Iterator[Row]:
    """Yield a row for each precision of a network."""
    model = networks.build(name, batch)
    inputs = networks.sample_inputs(model, seed=1)
    runs = {"cpu": _Run(runtime, model, inputs, threads)}
    options = {"device": device, "tuning": tuning}
    exact: dict[str, bool] = {}
    for precision in precisions:
        if precision == INT8:
            small = quantized(model, runtime)
            run = runs[INT8] = _Run(runtime, small, inputs, threads, **options)
            if batch == 1:
                reference = run_reference(small, run.inputs, runtime)
                exact[INT8] = all(map(np.array_equal, run.stored_outputs(), reference))
        else:
            runs[precision] = _Run(runtime, model, inputs, threads, precision=precision, **options)
    want = runs["cpu"].output()
    errors = {
        precision: float(np.linalg.norm(runs[precision].output() - want) / np.linalg.norm(want))
        for precision in precisions
    }
    host = medians(runs, rounds=rounds, budget_s=budget_s)
    for precision in precisions:
        delegate = runs[precision].delegate
        assert delegate is not None
        plan = delegate.explain()
        on_device = 0.0
        if plan.claimed:
            on_device = device_median_s(delegate, rounds=rounds, budget_s=budget_s / 4)
        peer = None
        if torch is not None and name in peers_torch.NETWORKS and precision != INT8:
            try:
                peer = peers_torch.network_ms(
                    torch, name, batch, precision, rounds=rounds, budget_s=budget_s / 4
                )
            except RuntimeError as error:  # out of memory, say
                print(f"PyTorch: {name}, batch {batch}, {precision}: {error}")
        yield Row(
            network=name,
            batch=batch,
            precision=precision,
            claimed=plan.claimed,
            nodes=plan.total,
            launches=sum(partition.launches for partition in plan.partitions),
            cpu_ms=host["cpu"] * 1e3,
            host_ms=host[precision] * 1e3,
            device_ms=on_device * 1e3,
            torch_ms=peer,
            load_ms=runs[precision].load_s * 1e3,
            compiled=delegate.stats()["load"]["programs_built"],
            error=errors[precision],
            arena_bytes=plan.arena_bytes,
            peak_bytes=plan.peak_bytes,
            exact=exact.get(precision),
        )


def make_table(rows: Sequence[Row], title: str) -> Table:
    """One line per row."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("network")
    peer = any(row.torch_ms is not None for row in rows)
    headings = ["batch", "", "nodes", "launches", "CPU ms", "host ms", "x CPU", "device ms"]
    headings += ["PyTorch ms", "x PyTorch"] if peer else []
    for heading in [*headings, "load ms", "compiled", "error", "arena MB", "device MB"]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        cells = [row.network, str(row.batch), row.precision, f"{row.claimed}/{row.nodes}"]
        cells += [str(row.launches), f"{row.cpu_ms:.3f}", f"{row.host_ms:.3f}"]
        cells += [f"{row.cpu_ms / row.host_ms:.2f}", f"{row.device_ms:.3f}"]
        if peer and row.torch_ms is not None:
            cells += [f"{row.torch_ms:.3f}", f"{row.torch_ms / (row.device_ms or 1):.2f}"]
        elif peer:
            cells += ["", ""]
        equal = "" if row.exact is None else " exact" if row.exact else " NOT EXACT"
        cells += [f"{row.load_ms:.0f}", str(row.compiled), f"{row.error:.1e}{equal}"]
        table.add_row(*cells, f"{row.arena_bytes / 1e6:.1f}", f"{row.peak_bytes / 1e6:.1f}")
    return table


def write_csv(path: Path, rows: Sequence[Row], device: str) -> None:
    """Write the rows; columns are ``device`` and the fields of `Row`."""
    with path.open("w", newline="") as file:
        columns = ["device", *(field.name for field in dataclasses.fields(Row))]
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({"device": device, **dataclasses.asdict(row)})


def run(
    names: Sequence[str] = (),
    *,
    batches: Sequence[int] = (1, 16),
    precisions: Sequence[str] = PRECISIONS,
    runtime: str = "auto",
    device: str = "",
    tuning: str = "auto",
    threads: int | None = None,
    rounds: int = 20,
    budget_s: float = 3.0,
    use_torch: bool = True,
    csv: Path | None = None,
    json: Sheet | None = None,
) -> list[Row]:
    """Measure, print a table, write files; parameters as on the command line.

    Raises
    ------
    ValueError
        If a network or a precision does not exist.
    """
    for kind, given, known in (
        ("network", names, sorted(networks.NETWORKS)),
        ("precision", precisions, (*PRECISIONS, INT8)),
    ):
        for name in given:
            if name not in known:
                raise ValueError(f"{name!r} is no {kind}; there are {', '.join(known)}")
    threads = threads or os.cpu_count() or 1
    console = Console(width=None if Console().is_terminal else 150)
    found = clgpu_delegate.load(device=device).device
    title = f"{found.name} ({found.platform}), tuning {tuning}; stock CPU: {threads} threads"
    torch = peers_torch.find() if use_torch else None
    rows: list[Row] = []
    for name in names or sorted(networks.NETWORKS):
        for batch in batches:
            with console.status(f"{name}, batch {batch}"):
                new = list(
                    measure(
                        name,
                        batch,
                        precisions=precisions,
                        runtime=runtime,
                        device=device,
                        tuning=tuning,
                        threads=threads,
                        rounds=rounds,
                        budget_s=budget_s,
                        torch=torch,
                    )
                )
            rows.extend(new)
            if json is not None:
                json.write(
                    rows,
                    device=found,
                    runtime=runtime,
                    threads=threads,
                    torch=torch,
                    networks=[row.network for row in rows],
                )
            if not console.is_terminal:
                times = ", ".join(f"{row.precision} {row.device_ms:.3f} ms" for row in new)
                console.print(f"{name}, batch {batch}: {times}", highlight=False)
    console.print(make_table(rows, title))
    if csv is not None:
        write_csv(csv, rows, title)
    return rows

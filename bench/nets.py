"""``python -m bench nets``: networks on the delegate, the stock CPU and PyTorch."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

import clgpu_delegate
from bench import networks, peers_torch
from bench.measure import device_median_s, medians, relative_error
from bench.report import Column, Report, TextTable, megabytes, name_column
from bench.session import Session
from bench.setting import PRECISIONS, Names, Setting, Tuning, batch_sizes, check_known, split
from clgpu_delegate.tflite.inference import Array
from tests.runtimes import run_reference

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
        PyTorch's, with CUDA graphs; None where it was not measured.
    compile_ms
        The same of what ``torch.compile`` makes of the network, with weights as constants.
    load_ms, compiled
        From loading to the first result, and the programs compiled from source for that.
    error
        Relative L2 error against the stock runtime on the float network.
    arena_bytes
        Device memory of intermediate tensors.
    peak_bytes
        Peak of all device memory.
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
    compile_ms: float | None = None

    @property
    def over_torch(self) -> float | None:
        """PyTorch's time as a multiple of the device's; None where it was not measured."""
        return None if self.torch_ms is None else self.torch_ms / (self.device_ms or 1)


def quantized(
    model: bytes,
    runtime: str = "auto",
    *,
    scheme: Literal["int8", "int16x8"] = "int8",
    samples: Iterable[Sequence[Array]] = (),
    skip: Sequence[str] = (),
) -> bytes:
    """The network with int8 weights, and with activations, inputs and outputs of integers.

    Parameters
    ----------
    model
        Bytes of a float .tflite file.
    runtime
        As in `clgpu_delegate.quantize`; also ``"auto"``.
    scheme
        Activations, inputs and outputs are int8, or int16 with ``"int16x8"``.
    samples
        Inputs to observe value ranges with; two random ones when none is given.
    skip
        Operations that stay in float.
    """
    given = list(samples) or [networks.sample_inputs(model, seed=seed) for seed in (2, 3)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.tflite"
        clgpu_delegate.quantize(
            model,
            list(map(tuple, given)),
            path,
            scheme=scheme,
            skip=skip,
            io="int8" if scheme == "int8" else "int16",
            runtime=None if runtime == "auto" else runtime,
            progress=False,
        )
        return path.read_bytes()


def measure(
    name: str, batch: int, setting: Setting, *, precisions: Sequence[str], tuning: str = "auto",
    compiled: bool = False,
) -> Iterator[Row]:  # fmt: skip
    """Yield a row for each precision of a network."""
    model = networks.build(name, batch)
    inputs = networks.sample_inputs(model, seed=1)
    load_ms: dict[str, float] = {}

    def loaded(way: str, model: bytes, **options: Any) -> Session:
        start = time.perf_counter()
        delegate = clgpu_delegate.load(**options) if options else None
        session = setting.session(model, delegate).feed(inputs)
        session()
        load_ms[way] = (time.perf_counter() - start) * 1e3
        return session

    runs = {"cpu": loaded("cpu", model)}
    options = {"device": setting.device, "tuning": tuning}
    exact: dict[str, bool] = {}
    for precision in precisions:
        if precision == INT8:
            small = quantized(model, setting.runtime)
            run = runs[INT8] = loaded(INT8, small, **options)
            if batch == 1:
                reference = run_reference(small, run.inputs, setting.runtime)
                exact[INT8] = all(map(np.array_equal, run.outputs(), reference))
        else:
            runs[precision] = loaded(precision, model, precision=precision, **options)
    want = runs["cpu"].real_outputs()
    errors = {p: relative_error(runs[p].real_outputs(), want) for p in precisions}
    host = medians(runs, **setting.timing())
    for precision in precisions:
        delegate = runs[precision].delegate
        plan = delegate.explain()
        on_device = device_median_s(delegate, **setting.timing(1 / 4)) if plan.claimed else 0.0
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
            torch_ms=_peer_ms(name, batch, precision, setting),
            compile_ms=_peer_ms(name, batch, precision, setting, compiled=True)
            if compiled
            else None,
            load_ms=load_ms[precision],
            compiled=delegate.stats()["load"]["programs_built"],
            error=errors[precision],
            arena_bytes=plan.arena_bytes,
            peak_bytes=plan.peak_bytes,
            exact=exact.get(precision),
        )


def _peer_ms(
    name: str, batch: int, precision: str, setting: Setting, *, compiled: bool = False
) -> float | None:
    if setting.peer is None or name not in peers_torch.NETWORKS or precision == INT8:
        return None
    try:
        timing = setting.timing(1 / 4)
        return peers_torch.network_ms(
            setting.peer, name, batch, precision, compiled=compiled, **timing
        )
    except RuntimeError as error:  # such as out of memory, or no compiler of C
        print(f"PyTorch: {name}, batch {batch}, {precision}: {error}")
        return None


_EXACT = {None: "", True: " exact", False: " NOT EXACT"}
COLUMNS = (
    name_column("network", "network"),
    Column("batch", "batch"),
    Column("", "precision"),
    Column("nodes", lambda row: f"{row.claimed}/{row.nodes}"),
    Column("launches", "launches"),
    Column("CPU ms", "cpu_ms", ".3f"),
    Column("host ms", "host_ms", ".3f"),
    Column("x CPU", lambda row: row.cpu_ms / row.host_ms, ".2f"),
    Column("device ms", "device_ms", ".3f"),
    Column("PyTorch ms", "torch_ms", ".3f", is_optional=True),
    Column("x PyTorch", "over_torch", ".2f", is_optional=True),
    Column("torch.compile ms", "compile_ms", ".3f", is_optional=True),
    Column("load ms", "load_ms", ".0f"),
    Column("compiled", "compiled"),
    Column("error", lambda row: f"{row.error:.1e}{_EXACT[row.exact]}"),
    megabytes("arena", "arena_bytes"),
    megabytes("device", "peak_bytes"),
)


def run(
    setting: Setting,
    names: Names = None,
    batch: Annotated[str, typer.Option(help="Batch sizes, separated by commas.")] = "1,16",
    precision: Annotated[
        str, typer.Option(help="Precisions of the delegate; int8 quantises the network.")
    ] = "fp32,tf32,fp16",
    tuning: Tuning = "auto",
    compiled: Annotated[
        bool, typer.Option("--compile", help="With PyTorch, measure its compiler, too.")
    ] = False,
) -> list[Row]:
    """Measure networks on the delegate, the stock CPU and, where there is a GPU, PyTorch.

    Raises
    ------
    ValueError
        If a network or a precision does not exist, or a batch size is no number.
    """
    precisions, sizes = split(precision), batch_sizes(batch)
    check_known("network", names or (), sorted(networks.NETWORKS))
    check_known("precision", precisions, (*PRECISIONS, INT8))
    threads = setting.cpu_threads
    title = f"{setting.title}, tuning {tuning}; stock CPU: {threads} threads"
    report = Report[Row](setting, runtime=setting.runtime, threads=threads, torch=setting.peer)
    for name in names or sorted(networks.NETWORKS):
        for size in sizes:
            with report.console.status(f"{name}, batch {size}"):
                rows = list(
                    measure(
                        name, size, setting, precisions=precisions, tuning=tuning,
                        compiled=compiled,
                    )
                )  # fmt: skip
            times = ", ".join(f"{row.precision} {row.device_ms:.3f} ms" for row in rows)
            report.add(rows, f"{name}, batch {size}: {times}", network=name)
    return report.finish(TextTable.of(title, report.rows, COLUMNS), device=title)

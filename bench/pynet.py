"""``python -m bench pynet``: a 12-megapixel network inside budgets of device memory."""

from __future__ import annotations

import dataclasses
import gc
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import clgpu_delegate
from bench import peers_torch, pynet_torch
from bench.measure import device_median_s, medians
from bench.networks import NETWORKS
from bench.networks.layers import Net
from bench.networks.samples import Input, sample
from bench.plan_digests import PYNET_12MP
from bench.pynet_report import Row, make_table, psnr, write_csv
from bench.record import Sheet
from tests.runtimes import make_interpreter

FULL_SIZE = (1488, 1984)  # of the raw image of a photograph of 3968 x 2976
SMALL_SIZE = (192, 256)  # about an eighth of each side, for devices that are no GPU
PEERS = ("stock CPU", "PyTorch")
PRECISIONS = ("fp32", "fp16")
_MOST_MACS_ON_CPU = 5e11


@dataclasses.dataclass(frozen=True)
class Way:
    """How the network is to run.

    Attributes
    ----------
    name
        Of the row.
    precision, engines
        Options of the delegate.
    budget, max_object
        Bytes, or None; a budget of 0 stands for the smallest that a plan is found for.
    share
        The budget as a share of the peak of the same precision without one.
    """

    name: str
    precision: str = "fp16"
    engines: str = ""
    budget: int | None = None
    max_object: int | None = None
    share: float | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing limits it."""
        return not self.engines and self.budget is self.max_object is self.share is None


def published(area: float = 1.0) -> list[Way]:
    """The ways that the project has goals for, budgets multiplied by a share of the full area."""

    def scaled(budget: float) -> int:
        return round(budget * area)

    return [
        Way("unconstrained", "fp32"),
        Way("unconstrained"),
        Way("implicit GEMM", "fp16", "conv2d=implicit_gemm", scaled(1.5e9), scaled(1e9)),
        Way("Winograd", "fp16", "conv2d=winograd|auto", scaled(2.5e9), scaled(1e9)),
        Way("1/4 of the peak", "fp16", share=1 / 4),
        Way("smallest budget", "fp16", budget=0),
    ]


def smallest_budget(message: str) -> int | None:
    """The bytes that a refusal names as the smallest feasible budget; None where it names none."""
    found = re.search(r"smallest.*?(\d+) bytes", message, re.DOTALL)
    return int(found[1]) if found else None


class _Bench:
    def __init__(
        self, model: bytes, raw: np.ndarray, *, runtime: str, device: str, tuning: str,
        threads: int, rounds: int, budget_s: float,
    ) -> None:  # fmt: skip
        self._model = model
        self._raw = raw
        self._runtime = runtime
        self._options = {"device": device, "tuning": tuning}
        self._threads = threads
        self._rounds = rounds
        self._budget_s = budget_s
        self._want: np.ndarray | None = None
        self._peaks: dict[str, int] = {}  # by precision, without a budget

    def stock(self) -> Row:
        """The stock runtime on the CPU, timed once."""
        interpreter = self._interpreter([])
        start = time.perf_counter()
        interpreter.invoke()
        seconds = time.perf_counter() - start
        return self._compared(_image(interpreter), Row("stock CPU", "fp32", host_ms=seconds * 1e3))

    def torch(self, torch: Any, drawn: Sequence[np.ndarray], width: float, precision: str) -> Row:
        """PyTorch with the same weights."""
        row = Row("PyTorch", precision)
        try:
            peer = pynet_torch.measure(
                torch, drawn, self._raw, precision, width=width, rounds=self._rounds,
                budget_s=self._budget_s,
            )  # fmt: skip
        except RuntimeError as failure:  # out of memory, say
            return dataclasses.replace(row, note=_sentence(failure))
        return self._compared(
            peer.image,
            dataclasses.replace(row, device_ms=peer.seconds * 1e3, counted=peer.peak_bytes),
        )

    def measure(self, way: Way) -> Row:
        """Run the network one way."""
        row = Row(way.name, way.precision, way.budget)
        try:
            if self._want is None and not (way.is_free and way.precision == "fp32"):
                self._run(Way("", "fp32"), Row("", "fp32"))
            if way.budget == 0:
                row = dataclasses.replace(row, budget=self._smallest(way))
            elif way.share is not None:
                budget = round(way.share * self._peak(way.precision))
                row = dataclasses.replace(row, budget=budget)
            return self._run(way, row)
        except clgpu_delegate.ClgpuError:
            raise  # no such option
        except (RuntimeError, ValueError) as failure:
            return dataclasses.replace(row, note=_sentence(failure))

    def _run(self, way: Way, row: Row) -> Row:
        delegate = self._delegate(way, row.budget)
        interpreter = self._interpreter([delegate])
        interpreter.invoke()
        plan = delegate.explain()
        if plan.claimed != plan.total:
            left = next(node for node in plan.nodes if not node.claimed)
            return dataclasses.replace(row, note=f"{left.op}: {left.reason}")
        image = _image(interpreter)
        host = medians({"run": interpreter.invoke}, rounds=self._rounds, budget_s=self._budget_s)[
            "run"
        ]
        on_device = device_median_s(delegate, rounds=self._rounds, budget_s=self._budget_s)
        predicted, counted, largest = memory_of(delegate)
        if way.is_free:
            self._peaks[way.precision] = predicted
            if way.precision == "fp32":
                self._want = image
        return self._compared(
            image,
            dataclasses.replace(
                row, host_ms=host * 1e3, device_ms=on_device * 1e3, predicted=predicted,
                counted=counted, largest=largest,
                launches=sum(partition.launches for partition in plan.partitions),
            ),
        )  # fmt: skip

    def _peak(self, precision: str) -> int:
        if precision not in self._peaks:
            self._run(Way("", precision), Row("", precision))
        return self._peaks[precision]

    def _smallest(self, way: Way) -> int:
        """The smallest budget, which the error of an impossible one names."""
        try:
            delegate = self._delegate(way, 1)
            self._interpreter([delegate])
        except (RuntimeError, ValueError) as failure:
            smallest = smallest_budget(str(failure))
            if smallest is None:
                raise
            return smallest
        raise RuntimeError("a budget of one byte was met")

    def _delegate(self, way: Way, budget: int | None) -> clgpu_delegate.Delegate:
        gc.collect()  # the memory of the row before
        delegate = clgpu_delegate.load(
            precision=way.precision, engines=way.engines, memory_budget=budget,
            max_object=way.max_object, **self._options,
        )  # fmt: skip
        delegate._native.reset_peak()  # what is counted is of the whole process
        return delegate

    def _interpreter(self, delegates: Sequence[clgpu_delegate.Delegate]) -> Any:
        interpreter = make_interpreter(self._runtime, self._model, delegates, threads=self._threads)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], self._raw)
        return interpreter

    def _compared(self, image: np.ndarray, row: Row) -> Row:
        if self._want is None or self._want.shape != image.shape:
            return row
        difference = np.linalg.norm((image - self._want).ravel().astype(np.float64))
        error = float(difference / np.linalg.norm(self._want.ravel().astype(np.float64)))
        return dataclasses.replace(row, error=error, psnr=psnr(image, self._want))


def memory_of(delegate: clgpu_delegate.Delegate) -> tuple[int, int, int]:
    """Predicted and counted peak of device memory and the largest object, in bytes."""
    objects = [item.bytes for part in delegate.memory_map().partitions for item in part.objects]
    counted = delegate.stats()["peak_device_bytes"]
    return delegate.explain().peak_bytes, counted, max(objects, default=0)


def measure(
    ways: Sequence[Way], *, size: tuple[int, int], width: float = 1.0, runtime: str = "auto",
    device: str = "", tuning: str = "auto", threads: int = 1, rounds: int = 5,
    budget_s: float = 3.0, stock: bool = True, torch: Any = None,
) -> Iterator[Row]:  # fmt: skip
    """Yield a row for each way, then those of the peers."""
    net = make_net(size, width)
    (raw,) = sample([Input("raw", (1, *size, 4))], seed=1)
    bench = _Bench(
        net.build(), raw, runtime=runtime, device=device, tuning=tuning, threads=threads,
        rounds=rounds, budget_s=budget_s,
    )  # fmt: skip
    for way in ways:
        yield bench.measure(way)
    if stock and net.macs <= _MOST_MACS_ON_CPU:
        yield bench.stock()
    for precision in reversed(PRECISIONS) if torch is not None else ():
        yield bench.torch(torch, net.drawn, width, precision)


def make_net(size: tuple[int, int], width: float = 1.0, flavour: str = "pt") -> Net:
    """The network for raw images of a height and width."""
    return NETWORKS["pynet"].make(size=size, width=width, flavour=flavour)


def run(
    ways: Sequence[Way] = (), *, size: tuple[int, int] | None = None, width: float = 1.0,
    names: Sequence[str] = (), device: str = "", runtime: str = "auto", tuning: str = "auto",
    threads: int | None = None, rounds: int = 5, budget_s: float = 3.0, stock: bool = True,
    use_torch: bool = True, csv: Path | None = None, json: Sheet | None = None,
) -> list[Row]:  # fmt: skip
    """Measure, print a table, write files; parameters as on the command line.

    Without ``ways`` those of `published` are taken, or those whose names begin with one of
    ``names``.

    Raises
    ------
    ValueError
        If there is no such size or name.
    """
    found = clgpu_delegate.load(device=device).device
    size = size or (FULL_SIZE if found.type == "gpu" else SMALL_SIZE)
    if not ways:
        area = size[0] * size[1] / (FULL_SIZE[0] * FULL_SIZE[1])
        ways = [way for way in published(area) if not names or way.name.startswith(tuple(names))]
        if not ways:
            known = ", ".join(dict.fromkeys(way.name for way in published()))
            raise ValueError(f"no row begins with {' or '.join(names)}; there are {known}")
    console = Console(width=None if Console().is_terminal else 150)
    title = f"PyNET, raw {size[0]} x {size[1]}, width {width:g}: {found.name} ({found.platform})"
    threads = threads or os.cpu_count() or 1
    torch = peers_torch.find() if use_torch else None
    rows: list[Row] = []
    for row in measure(
        ways, size=size, width=width, device=device, runtime=runtime, tuning=tuning,
        threads=threads, rounds=rounds, budget_s=budget_s, stock=stock, torch=torch,
    ):  # fmt: skip
        rows.append(row)
        if json is not None:
            json.write(
                rows, device=found, runtime=runtime, threads=threads, torch=torch,
                networks=[PYNET_12MP] if size == FULL_SIZE and width == 1 else [],
            )  # fmt: skip
        if not console.is_terminal:
            ms = row.device_ms or row.host_ms
            done = row.note or f"{ms or 0:.1f} ms"
            console.print(f"{row.way}, {row.precision}: {done}", highlight=False)
    console.print(make_table(rows, title))
    if csv is not None:
        write_csv(csv, rows, title)
    return rows


def _image(interpreter: Any) -> np.ndarray:
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def _sentence(failure: Exception) -> str:
    """What a runtime says of a failure, without the lines it adds."""
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return lines[0].removeprefix("clgpu_delegate: ") if lines else type(failure).__name__

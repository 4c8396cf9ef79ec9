"""``python -m bench pynet``: a 12-megapixel network inside budgets of device memory."""

from __future__ import annotations

import dataclasses
import gc
import math
import re
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import typer

import clgpu_delegate
from bench import pynet_torch
from bench.measure import device_median_s, medians, relative_error, sentence_of
from bench.networks import NETWORKS
from bench.networks.layers import Net
from bench.networks.samples import Input, sample
from bench.plan_digests import PYNET_12MP
from bench.report import Column, Report, TextTable, megabytes, name_column
from bench.session import Session
from bench.setting import File, Setting, Strings, Tuning, split

FULL_SIZE = (1488, 1984)  # of the raw image of a photograph of 3968 x 2976
SMALL_SIZE = (192, 256)  # about an eighth of each side, for devices other than GPUs
PRECISIONS = ("fp32", "fp16")
_MOST_MACS_ON_CPU = 5e11


@dataclasses.dataclass(frozen=True)
class Row:
    """One way to run the network.

    Attributes
    ----------
    way
        Its name.
    precision
        Of the delegate, or of the peer.
    budget
        Bytes of device memory that it may use; None: all of the device.
    host_ms, device_ms
        Host array to host array, and many in flight without the inputs' and outputs' copies;
        medians. None where it was not measured.
    predicted, counted, largest
        Bytes: predicted and counted peak of device memory, and the largest object.
    error, psnr
        Relative L2 error and PSNR (peak 1) of the image relative to fp32 without a budget.
    launches
        Kernel launches per inference.
    note
        Why it was not measured.
    """

    way: str
    precision: str
    budget: int | None = None
    host_ms: float | None = None
    device_ms: float | None = None
    predicted: int | None = None
    counted: int | None = None
    largest: int | None = None
    error: float | None = None
    psnr: float | None = None
    launches: int | None = None
    note: str = ""


def psnr(got: np.ndarray, want: np.ndarray) -> float:
    """Peak signal-to-noise ratio of images in 0..1, in decibels; infinite where they are equal."""
    mean = float(np.mean((got.astype(np.float64) - want) ** 2))
    return -10 * math.log10(mean) if mean else math.inf


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to run the network.

    Attributes
    ----------
    name
        Of the row.
    precision, engines
        Options of the delegate.
    budget, max_object
        Bytes, or None; a budget of 0 means the smallest with a plan.
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
    """The ways with goals of the project; budgets are multiplied by a share of the full area."""

    def scaled(budget: float) -> int:
        return round(budget * area)

    return [
        Way("unconstrained", "fp32"),
        Way("unconstrained"),
        Way("implicit GEMM", "fp16", "conv2d=implicit_gemm", scaled(1.5e9), scaled(1e9)),
        Way("Winograd", "fp16", "conv2d=winograd|auto", scaled(2.5e9), scaled(1e9)),
        Way("1/2 of the peak", "fp16", share=1 / 2),
        Way("1/4 of the peak", "fp16", share=1 / 4),
        Way("smallest budget", "fp16", budget=0),
    ]


def smallest_budget(message: str) -> int | None:
    """The smallest feasible budget in bytes that a refusal names; None if it names none."""
    found = re.search(r"smallest.*?(\d+) bytes", message, re.DOTALL)
    return int(found[1]) if found else None


class _Bench:
    def __init__(self, model: bytes, raw: np.ndarray, setting: Setting, tuning: str) -> None:
        self._model, self._raw, self._setting, self._tuning = model, raw, setting, tuning
        self._want: np.ndarray | None = None
        self._peaks: dict[str, int] = {}  # by precision, without a budget

    def stock(self) -> Row:
        """The stock runtime on the CPU, timed once."""
        session = self._session(None)
        start = time.perf_counter()
        session()
        ms = (time.perf_counter() - start) * 1e3
        return self._compared(session.output(), Row("stock CPU", "fp32", host_ms=ms))

    def torch(self, drawn: Sequence[np.ndarray], width: float, precision: str) -> Row:
        """PyTorch with the same weights."""
        row = Row("PyTorch", precision)
        try:
            image, seconds, peak = pynet_torch.measure(
                self._setting.peer, drawn, self._raw, precision, width=width,
                **self._setting.timing(),
            )  # fmt: skip
        except RuntimeError as failure:  # such as out of memory
            return dataclasses.replace(row, note=sentence_of(failure))
        row = dataclasses.replace(row, device_ms=seconds * 1e3, counted=peak)
        return self._compared(image, row)

    def measure(self, way: Way) -> Row:
        """Run the network in one way."""
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
            raise  # an option does not exist
        except (RuntimeError, ValueError) as failure:
            return dataclasses.replace(row, note=sentence_of(failure))

    def _run(self, way: Way, row: Row) -> Row:
        delegate = self._delegate(way, row.budget)
        session = self._session(delegate)
        session()
        plan = delegate.explain()
        if plan.claimed != plan.total:
            left = next(node for node in plan.nodes if not node.claimed)
            return dataclasses.replace(row, note=f"{left.op}: {left.reason}")
        image = session.output()
        timing = self._setting.timing()
        host = medians({"run": session}, **timing)["run"]
        on_device = device_median_s(delegate, **timing)
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
        """The smallest budget, from the error of an impossible one."""
        try:
            self._session(self._delegate(way, 1))
        except (RuntimeError, ValueError) as failure:
            smallest = smallest_budget(str(failure))
            if smallest is None:
                raise
            return smallest
        raise RuntimeError("a budget of one byte was met")

    def _delegate(self, way: Way, budget: int | None) -> clgpu_delegate.Delegate:
        gc.collect()  # frees the memory of the last row
        delegate = clgpu_delegate.load(
            device=self._setting.device, tuning=self._tuning, precision=way.precision,
            engines=way.engines, memory_budget=budget, max_object=way.max_object,
        )  # fmt: skip
        delegate._native.reset_peak()  # the counter belongs to the whole process
        return delegate

    def _session(self, delegate: clgpu_delegate.Delegate | None) -> Session:
        return self._setting.session(self._model, delegate).feed([self._raw])

    def _compared(self, image: np.ndarray, row: Row) -> Row:
        if self._want is None or self._want.shape != image.shape:
            return row
        error = relative_error(image, self._want)
        return dataclasses.replace(row, error=error, psnr=psnr(image, self._want))


def memory_of(delegate: clgpu_delegate.Delegate) -> tuple[int, int, int]:
    """Predicted and counted peak of device memory and the largest object, in bytes."""
    objects = [item.bytes for part in delegate.memory_map().partitions for item in part.objects]
    counted = delegate.stats()["peak_device_bytes"]
    return delegate.explain().peak_bytes, counted, max(objects, default=0)


def measure(
    ways: Sequence[Way], setting: Setting, *, size: tuple[int, int], width: float = 1.0,
    tuning: str = "auto", stock: bool = True,
) -> Iterator[Row]:  # fmt: skip
    """Yield a row for each way, then those of the peers."""
    net = make_net(size, width)
    (raw,) = sample([Input("raw", (1, *size, 4))], seed=1)
    bench = _Bench(net.build(), raw, setting, tuning)
    for way in ways:
        yield bench.measure(way)
    if stock and net.macs <= _MOST_MACS_ON_CPU:
        yield bench.stock()
    for precision in reversed(PRECISIONS) if setting.peer is not None else ():
        yield bench.torch(net.drawn, width, precision)


def make_net(size: tuple[int, int], width: float = 1.0, flavour: str = "pt") -> Net:
    """The network for raw images of a height and width."""
    return NETWORKS["pynet"].make(size=size, width=width, flavour=flavour)


COLUMNS = (
    name_column("way", "way"),
    Column("", "precision"),
    megabytes("budget", "budget"),
    megabytes("predicted", "predicted"),
    megabytes("counted", "counted"),
    megabytes("largest", "largest"),
    Column("host ms", "host_ms", ".2f"),
    Column("device ms", "device_ms", ".2f"),
    Column("error", "error", ".1e"),
    Column("PSNR dB", "psnr", ".1f"),
    name_column("note", "note", is_optional=True),
)

_Rows = Annotated[
    Strings, typer.Argument(help="Beginnings of the rows' names; all when none is given.")
]


def run(
    setting: Setting,
    rows: _Rows = None,
    size: Annotated[
        str,
        typer.Option(help="Raw image; the default on GPUs, 1488x1984, is 12 megapixels."),
    ] = "",
    width: Annotated[float, typer.Option(help="Factor on all filter counts.")] = 1.0,
    write: Annotated[
        File, typer.Option(help="Write the .tflite file instead of measuring.")
    ] = None,
    flavour: Annotated[str, typer.Option(help="Flavour of the file: pt or tf.")] = "pt",
    memory_budget: Annotated[
        int,
        typer.Option(min=0, help="Bytes; measures your own row instead of the usual ones."),
    ] = 0,
    max_object: Annotated[int, typer.Option(min=0, help="Bytes, for a row of your own.")] = 0,
    engines: Annotated[str, typer.Option(help="Option engines, for a row of your own.")] = "",
    precision: Annotated[str, typer.Option(help="Precisions of your own rows.")] = "fp32,fp16",
    tuning: Tuning = "auto",
    stock: Annotated[
        bool, typer.Option(help="Compare with the stock CPU, where it is able to.")
    ] = True,
) -> list[Row]:
    """Measure PyNET inside budgets of device memory, or write its file.

    Raises
    ------
    ValueError
        If there is no such size or row.
    """
    extents = _image_size(size)
    if write is not None:
        write.write_bytes(make_net(extents or FULL_SIZE, width, flavour).build())
        return []
    extents = extents or (FULL_SIZE if setting.found.type == "gpu" else SMALL_SIZE)
    if memory_budget or max_object or engines:
        limits = (engines, memory_budget or None, max_object or None)
        ways = [Way("own", each, *limits) for each in split(precision)]
    else:
        area = extents[0] * extents[1] / (FULL_SIZE[0] * FULL_SIZE[1])
        ways = _chosen(published(area), rows or ())
    report = Report[Row](
        setting, runtime=setting.runtime, threads=setting.cpu_threads, torch=setting.peer
    )
    network = PYNET_12MP if extents == FULL_SIZE and width == 1 else ""
    options: dict[str, Any] = {"size": extents, "width": width, "tuning": tuning, "stock": stock}
    for row in measure(ways, setting, **options):
        done = row.note or f"{row.device_ms or row.host_ms or 0:.1f} ms"
        report.add([row], f"{row.way}, {row.precision}: {done}", network=network)
    raw = f"PyNET, raw {extents[0]} x {extents[1]}, width {width:g}"
    title = f"{raw}: {setting.title}"
    return report.finish(TextTable.of(title, report.rows, COLUMNS), device=title)


def _chosen(ways: Sequence[Way], names: Sequence[str]) -> list[Way]:
    """The ways whose names begin with one of the given names; all without any."""
    chosen = [way for way in ways if not names or way.name.startswith(tuple(names))]
    if not chosen:
        known = ", ".join(dict.fromkeys(way.name for way in ways))
        raise ValueError(f"no row begins with {' or '.join(names)}; there are {known}")
    return chosen


def _image_size(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    height, _, width = text.partition("x")
    if not (height.isdecimal() and width.isdecimal()):
        raise ValueError(f"{text!r} is no size, as 1488x1984 is")
    return int(height), int(width)

"""``python -m bench crossover``: the size of a matrix from which on the device is faster.

Of each operation, models of growing size run on the stock CPU and on the device, from array to
array. The size at which the device begins to win is compared with the one from which on
``placement="auto"`` gives the operation to the device.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np
import typer

import clgpu_delegate
from bench import networks
from bench.measure import medians
from bench.report import Column, Report, TextTable, name_column
from bench.setting import Names, Setting, check_known
from tests.model_maker import ModelMaker

CHANNELS = 32
"""Of images and filters of the convolution."""

AGREEMENT = 1.5
"""Factor within which both sizes should be."""

_SMALLEST, _LARGEST = 8, 2048
_FINE = 4  # sizes that the cost model is asked about, between a size and its double


def convolution(n: int) -> bytes:
    """3 x 3 filters on an image of n x n with `CHANNELS` channels."""
    maker, random = ModelMaker(), np.random.default_rng(n)
    x = maker.input("x", (1, n, n, CHANNELS))
    weights = maker.constant(random.standard_normal((CHANNELS, 3, 3, CHANNELS)).astype(np.float32))
    bias = maker.constant(np.zeros(CHANNELS, np.float32))
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    maker.output(maker.op("CONV_2D", [x, weights, bias], (1, n, n, CHANNELS), **options))
    return maker.build()


def fully_connected(n: int) -> bytes:
    """N rows times a matrix of n x n."""
    maker, random = ModelMaker(), np.random.default_rng(n)
    x = maker.input("x", (n, n))
    weights = maker.constant(random.standard_normal((n, n)).astype(np.float32))
    maker.output(maker.op("FULLY_CONNECTED", [x, weights, -1], (n, n)))
    return maker.build()


def transpose(n: int) -> bytes:
    """Rows and columns of n x n exchanged."""
    maker = ModelMaker()
    x = maker.input("x", (n, n))
    maker.output(maker.op("TRANSPOSE", [x, maker.constant(np.int32([1, 0]))], (n, n)))
    return maker.build()


def add(n: int) -> bytes:
    """The sum of two matrices of n x n."""
    maker = ModelMaker()
    maker.output(maker.op("ADD", [maker.input("x", (n, n)), maker.input("y", (n, n))], (n, n)))
    return maker.build()


OPERATIONS: dict[str, Callable[[int], bytes]] = {
    "convolution": convolution,
    "fully connected": fully_connected,
    "transpose": transpose,
    "add": add,
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One operation and size; times are medians in milliseconds, from array to array.

    Attributes
    ----------
    n
        The size.
    cpu_ms, device_ms
        Stock CPU and device, which take turns.
    """

    operation: str
    n: int
    cpu_ms: float
    device_ms: float

    @property
    def ratio(self) -> float:
        """Time of the CPU divided by that of the device: above 1 the device wins."""
        return self.cpu_ms / self.device_ms


@dataclasses.dataclass(frozen=True)
class Crossing:
    """From which size on an operation belongs to the device; None: not up to the largest size.

    Attributes
    ----------
    measured
        As measured.
    auto
        As ``placement="auto"`` decides.
    smallest, largest
        The sizes that were measured.
    """

    operation: str
    measured: float | None
    auto: float | None
    smallest: int
    largest: int

    @property
    def factor(self) -> float | None:
        """How far apart both are, 1 or more; None where only one of them exists."""
        if self.measured is None and self.auto is None:
            return 1.0
        if self.measured is None or self.auto is None:
            return None
        return math.exp(abs(math.log(self.auto / self.measured)))

    @property
    def agrees(self) -> bool:
        """Whether both are within `AGREEMENT`, or neither exists."""
        return self.factor is not None and self.factor <= AGREEMENT


def crossing(rows: Sequence[Row]) -> float | None:
    """The size from which on the device wins, and goes on to win; None if there is none.

    Between two sizes the logarithm of the ratio is taken as linear in that of the size. If the
    device wins at all sizes, this is the smallest one.
    """
    ordered = sorted(rows, key=lambda row: row.n)
    if not ordered or ordered[-1].ratio <= 1:
        return None
    for before, after in zip(ordered[-2::-1], ordered[::-1]):
        if before.ratio <= 1:
            low, high = math.log(before.ratio), math.log(after.ratio)
            share = -low / (high - low)
            return math.exp((1 - share) * math.log(before.n) + share * math.log(after.n))
    return float(ordered[0].n)


def sizes(smallest: int, largest: int, parts: int = 1) -> list[int]:
    """Sizes that double, with ``parts`` steps for each."""
    steps = round(parts * math.log2(largest / smallest))
    return sorted({round(smallest * 2 ** (step / parts)) for step in range(steps + 1)})


def measure(operation: str, setting: Setting, largest: int) -> Iterator[Row]:
    """Yield a row for each size."""
    for n in sizes(_SMALLEST, largest):
        model = OPERATIONS[operation](n)
        inputs = networks.sample_inputs(model, seed=1)
        stock = setting.session(model).feed(inputs)
        delegate = clgpu_delegate.load(device=setting.device)
        device = setting.session(model, delegate).feed(inputs)
        times = medians({"cpu": stock, "device": device}, **setting.timing(), least=5)
        yield Row(operation, n, times["cpu"] * 1e3, times["device"] * 1e3)


def by_auto(operation: str, setting: Setting, largest: int) -> float | None:
    """The smallest size from which on ``placement="auto"`` chooses the device."""
    found: float | None = None
    for n in reversed(sizes(_SMALLEST, largest, _FINE)):
        delegate = clgpu_delegate.load(device=setting.device, placement="auto")
        model = OPERATIONS[operation](n)
        setting.session(model, delegate).feed(networks.sample_inputs(model, seed=1))
        if not delegate.explain().claimed:
            break
        found = float(n)
    return found


COLUMNS = (
    name_column("operation", "operation"),
    Column("n", "n"),
    Column("CPU ms", "cpu_ms", ".4f"),
    Column("device ms", "device_ms", ".4f"),
    Column("CPU / device", "ratio", ".2f"),
)


def _size(value: float | None, row: Crossing) -> str:
    if value is None:
        return f"above {row.largest}"
    return f"up to {row.smallest}" if value <= row.smallest else f"{value:.0f}"


CROSSINGS = (
    name_column("operation", "operation"),
    Column("device wins from n", lambda row: _size(row.measured, row)),
    Column('placement="auto" from n', lambda row: _size(row.auto, row)),
    Column("factor", lambda row: "" if row.factor is None else f"{row.factor:.2f}"),
    Column("agrees", lambda row: "yes" if row.agrees else "NO"),
)


def run(
    setting: Setting,
    names: Names = None,
    largest: Annotated[
        int, typer.Option(min=_SMALLEST, max=8192, help="The largest size.")
    ] = _LARGEST,
) -> list[Crossing]:
    """Find the size from which on the device is faster, and compare it with placement="auto".

    Raises
    ------
    ValueError
        If there is no such operation.
    """
    check_known("operation", names or (), list(OPERATIONS))
    report = Report[Row](setting, runtime=setting.runtime, threads=setting.cpu_threads)
    crossings = []
    for operation in names or OPERATIONS:
        rows = list(measure(operation, setting, largest))
        report.add(rows, f"{operation}: {len(rows)} sizes")
        auto = by_auto(operation, setting, largest)
        crossings.append(Crossing(operation, crossing(rows), auto, _SMALLEST, rows[-1].n))
    title = f"{setting.title}; stock CPU: {setting.cpu_threads} threads"
    report.finish(TextTable.of(title, report.rows, COLUMNS), device=title)
    style: Callable[[Crossing], str] = lambda row: "" if row.agrees else "red"  # noqa: E731
    report.console.print(
        TextTable.of("Where the device begins to win", crossings, CROSSINGS, style).rich()
    )
    return crossings

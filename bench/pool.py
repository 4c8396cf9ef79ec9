"""``python -m bench pool``: sequences of inputs on one device, and on several at a time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Annotated, Any

import numpy as np
import typer

import clgpu_delegate
from bench import networks
from bench.measure import medians
from bench.report import Column, Report, TextTable, name_column
from bench.setting import Names, Precision, Setting, check_known, split
from clgpu_delegate.runner.members import chosen
from tests.runtimes import resolve_runtime


@dataclasses.dataclass(frozen=True)
class Row:
    """One network and number of devices; rates are images (or rows of a batch) per second.

    Attributes
    ----------
    mb_in, mb_out
        Megabytes of the inputs and outputs of an inference.
    runner
        Rate of `clgpu_delegate.Runner.run_many` on the first device.
    rate, times
        Rate of `clgpu_delegate.Pool.map`, and how many times that of one device it is.
    in_place, in_place_times
        The same without copies of the inputs.
    least, most
        Inputs that the devices took, as shares of what each would take if all took as many.
    exact
        Whether all results equal those of the runner, if only one kind of device takes part.
    """

    network: str
    batch: int
    precision: str
    devices: int
    mb_in: float
    mb_out: float
    runner: float
    rate: float
    times: float
    in_place: float
    in_place_times: float
    least: float
    most: float
    exact: bool | None

    @property
    def host_gb(self) -> float:
        """Gigabytes per second that go between host and devices."""
        return self.in_place / self.batch * (self.mb_in + self.mb_out) / 1e3


def sizes(most: int) -> list[int]:
    """1, 2, 4 ... devices, and all of them."""
    return sorted({1 << power for power in range(most.bit_length())} | {most})


def measure(
    name: str, setting: Setting, devices: list[clgpu_delegate.Device], *, batch: int, count: int,
    depth: int, **options: Any,
) -> list[Row]:  # fmt: skip
    """Measure one network with sequences of ``count`` inputs; four of them are different."""
    model = networks.build(name, batch)
    images = [networks.sample_inputs(model, seed=seed) for seed in range(4)]
    items = [images[i % len(images)] for i in range(count)]
    common = {"runtime": resolve_runtime(setting.runtime), "depth": depth, **options}
    with ExitStack() as stack:
        runner = stack.enter_context(
            clgpu_delegate.Runner(model, device=devices[0].index, **common)
        )
        wanted = list(runner.run_many(images))
        pools = {
            n: stack.enter_context(
                clgpu_delegate.Pool(model, [d.index for d in devices[:n]], copy=False, **common)
            )
            for n in sizes(len(devices))
        }
        ways: dict[str, Callable[[], object]] = {"runner": lambda: _all(runner.run_many(items))}
        for n, pool in pools.items():
            # What a pool that copies does in the same thread.
            ways[f"copy {n}"] = lambda p=pool: _all(p.map([y.copy() for y in x] for x in items))
            ways[f"in place {n}"] = lambda p=pool: _all(p.map(items))
        seconds = medians(ways, **setting.timing())
        rows = []
        for n, pool in pools.items():
            done = [each.done * n / sum(e.done for e in pool.stats()) for each in pool.stats()]
            alike = len({(d.name, d.platform) for d in devices[:n]}) == 1
            results = pool.map(images)
            rates = {way: batch * count / value for way, value in seconds.items()}
            rows.append(
                Row(
                    network=name,
                    batch=batch,
                    precision=options["precision"],
                    devices=n,
                    mb_in=sum(x.nbytes for x in images[0]) / 1e6,
                    mb_out=sum(t.nbytes for t in runner.outputs) / 1e6,
                    runner=rates["runner"],
                    rate=rates[f"copy {n}"],
                    times=rates[f"copy {n}"] / rates["copy 1"],
                    in_place=rates[f"in place {n}"],
                    in_place_times=rates[f"in place {n}"] / rates["in place 1"],
                    least=min(done),
                    most=max(done),
                    exact=all(map(_equal, results, wanted)) if alike else None,
                )
            )
    return rows


def _all(results: Iterable[Any]) -> None:
    for _ in results:
        pass


def _equal(one: Any, other: Any) -> bool:
    lists = (x if isinstance(x, list) else [x] for x in (one, other))
    return all(map(np.array_equal, *lists))


COLUMNS = (
    name_column("network", "network"),
    Column("batch", "batch"),
    Column("", "precision"),
    Column("devices", "devices"),
    Column("MB in", "mb_in", ".1f"),
    Column("MB out", "mb_out", ".1f"),
    Column("Runner/s", "runner", ".1f"),
    Column("copied/s", "rate", ".1f"),
    Column("x", "times", ".2f"),
    Column("in place/s", "in_place", ".1f"),
    Column("x", "in_place_times", ".2f"),
    Column("host GB/s", "host_gb", ".2f"),
    Column("shares", lambda row: f"{row.least:.2f} to {row.most:.2f}"),
    Column("equal", lambda row: {True: "yes", False: "NO", None: ""}[row.exact]),
)


def run(
    setting: Setting,
    names: Names = None,
    devices: Annotated[
        str, typer.Option(help="Separated by commas, or all, as clgpu_delegate.Pool takes them.")
    ] = "",
    precision: Precision = "fp16",
    batch: Annotated[int, typer.Option(min=1, help="Images of an input.")] = 16,
    count: Annotated[int, typer.Option(min=1, help="Inputs in a sequence.")] = 128,
    depth: Annotated[int, typer.Option(min=1, help="Inferences in flight on each device.")] = 3,
) -> list[Row]:
    """Measure sequences of inputs on 1, 2, 4 ... and all devices at a time, by default of ResNet50.

    Raises
    ------
    ValueError
        If a network does not exist.
    """
    names = names or ["resnet50"]
    check_known("network", names, tuple(networks.NETWORKS))
    listed = split(devices)
    found = chosen(None if not listed else listed[0] if len(listed) == 1 else listed)
    report = Report[Row](setting, runtime=setting.runtime)
    for name in names:
        for each in split(precision):
            start = time.perf_counter()
            rows = measure(
                name, setting, found, batch=batch, count=count, depth=depth, precision=each
            )
            seconds = time.perf_counter() - start
            report.add(rows, f"{name}, {each}: {seconds:.1f} s", network=name)
    title = f"{'; '.join(sorted({d.name for d in found}))}, {depth} in flight on each device"
    return report.finish(TextTable.of(title, report.rows, COLUMNS), on=title)

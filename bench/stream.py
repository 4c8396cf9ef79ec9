"""``python -m bench stream``: sequences of images through a Runner, and with invoke() in a loop."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer

import clgpu_delegate
from bench import networks
from bench.measure import device_median_s, medians
from bench.networks.layers import Net
from bench.report import Column, Report, TextTable, name_column
from bench.session import Session
from bench.setting import Names, Precision, Setting, check_known, split
from tests.runtimes import resolve_runtime

FULL_HD = (1, 1080, 1920, 3)


@dataclasses.dataclass(frozen=True)
class Row:
    """One network and precision; rates are images (or rows of a batch) per second.

    Attributes
    ----------
    mb_in, mb_out
        Megabytes of the inputs and outputs of an inference.
    mode
        `clgpu_delegate.Runner.mode`.
    device
        Rate of the device alone, without copies: the limit.
    invoke
        ``set_tensor``, ``invoke``, ``get_tensor`` in a loop.
    run, many, bound
        `Runner.run` in a loop, `Runner.run_many`, and the same with inputs that lie in
        `Runner.input_arrays`.
    exact
        Whether all results of ``many`` equal those of ``invoke``.
    """

    network: str
    batch: int
    precision: str
    mode: str
    mb_in: float
    mb_out: float
    device: float
    invoke: float
    run: float
    many: float
    bound: float
    exact: bool


def _pixels(kernel: int) -> Callable[[float], bytes]:
    """A convolution of an image in full HD."""

    def build(scale: float) -> bytes:
        net = Net(0)
        shape = (1, max(8, round(1080 * scale)), 1920, 3)
        net.output(net.conv(net.input("image", shape), 3, kernel, activation="RELU6"))
        return net.build()

    return build


def _network(name: str, batch: int, **sizes: Any) -> Callable[[float], bytes]:
    return lambda scale: networks.build(name, max(1, round(batch * scale)), **sizes)


# Inputs and outputs that are large relative to the arithmetic.
CASES: dict[str, Callable[[float], bytes]] = {
    "colours": _pixels(1),
    "edges": _pixels(3),
    "espcn": _network("espcn", 16),
    "unet": _network("unet", 16, size=256),
    "mobilenet_v1": _network("mobilenet_v1", 32),
    "mobilenet_v2": _network("mobilenet_v2", 32),
}


def measure(
    name: str, setting: Setting, *, scale: float, count: int, depth: int, **options: Any
) -> Row:
    """Measure one network with sequences of ``count`` inputs; four of them are different."""
    model = CASES[name](scale)
    options["device"] = setting.device
    images = [networks.sample_inputs(model, seed=seed)[0] for seed in range(4)]
    items = [images[i % len(images)] for i in range(count)]
    delegate = clgpu_delegate.load(**options)
    session = Session(model, delegate, runtime=setting.runtime).feed(images[:1])
    wanted = [session.run(x) for x in images]
    with clgpu_delegate.Runner(
        model, runtime=resolve_runtime(setting.runtime), depth=depth, **options
    ) as runner:
        exact = all(map(np.array_equal, runner.run_many(images), wanted))
        bound = [runner.input_arrays() for _ in images]
        for array, x in zip(bound, images):
            array[...] = x
        bound_items = [bound[i % len(bound)] for i in range(count)]

        def each(results: Any) -> None:
            for _ in results:
                pass

        ways: dict[str, Callable[[], object]] = {
            "invoke": lambda: each(map(session.run, items)),
            "run": lambda: each(map(runner.run, items)),
            "many": lambda: each(runner.run_many(items)),
            "bound": lambda: each(runner.run_many(bound_items)),
        }
        seconds = medians(ways, **setting.timing())
        mode = runner.mode
    batch = images[0].shape[0]
    on_device = device_median_s(delegate, rounds=3, budget_s=setting.budget / 4)
    return Row(
        network=name,
        batch=batch,
        precision=options["precision"],
        mode=mode,
        mb_in=images[0].nbytes / 1e6,
        mb_out=wanted[0].nbytes / 1e6,
        device=batch / on_device,
        exact=exact,
        **{way: batch * count / value for way, value in seconds.items()},
    )


COLUMNS = (
    name_column("network", "network"),
    Column("batch", "batch"),
    Column("", "precision"),
    Column("mode", "mode"),
    Column("MB in", "mb_in", ".1f"),
    Column("MB out", "mb_out", ".1f"),
    Column("device/s", "device", ".1f"),
    Column("invoke/s", "invoke", ".1f"),
    Column("run/s", "run", ".1f"),
    Column("many/s", "many", ".1f"),
    Column("bound/s", "bound", ".1f"),
    Column("many x", lambda row: row.many / row.invoke, ".2f"),
    Column("bound x", lambda row: row.bound / row.invoke, ".2f"),
    Column("equal", lambda row: "yes" if row.exact else "NO"),
)


def run(
    setting: Setting,
    names: Names = None,
    precision: Precision = "fp32",
    scale: Annotated[
        float, typer.Option(help="Factor on batches and heights; 0.1 for slow devices.")
    ] = 1.0,
    count: Annotated[int, typer.Option(min=1, help="Inputs in a sequence.")] = 16,
    depth: Annotated[int, typer.Option(min=1, help="Inferences in flight.")] = 3,
    zero_copy: Annotated[str, typer.Option(help="The option zero_copy of the delegate.")] = "auto",
) -> list[Row]:
    """Measure sequences of images through a Runner, and by invoke() in a loop.

    Raises
    ------
    ValueError
        If a network does not exist.
    """
    check_known("network", names or (), tuple(CASES))
    report = Report[Row](setting, runtime=setting.runtime)
    for name in names or CASES:
        for each in split(precision):
            start = time.perf_counter()
            row = measure(
                name, setting, scale=scale, count=count, depth=depth, precision=each,
                zero_copy=zero_copy,
            )  # fmt: skip
            seconds = time.perf_counter() - start
            report.add([row], f"{name}, {each}: {seconds:.1f} s", network=name)
    title = f"{setting.title}, {depth} in flight"
    return report.finish(TextTable.of(title, report.rows, COLUMNS), on=title)

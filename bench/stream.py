"""``python -m bench stream``: sequences of images through a Runner, and by invoke() in a loop."""

from __future__ import annotations

import csv
import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import clgpu_delegate
from bench import networks
from bench.measure import device_median_s, medians
from bench.networks.layers import Net
from bench.record import Sheet
from tests.runtimes import make_interpreter, resolve_runtime

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
        Rate of the device's own, nothing copied: the limit.
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


# Inputs and outputs that are large for the arithmetic between them.
CASES: dict[str, Callable[[float], bytes]] = {
    "colours": _pixels(1),
    "edges": _pixels(3),
    "espcn": _network("espcn", 16),
    "unet": _network("unet", 16, size=256),
    "mobilenet_v1": _network("mobilenet_v1", 32),
    "mobilenet_v2": _network("mobilenet_v2", 32),
}


def measure(
    name: str,
    *,
    scale: float = 1.0,
    precision: str = "fp32",
    runtime: str = "auto",
    count: int = 16,
    depth: int = 3,
    rounds: int = 5,
    budget_s: float = 3.0,
    **options: Any,
) -> Row:
    """Measure one network with sequences of ``count`` inputs; four of them are different."""
    model = CASES[name](scale)
    options["precision"] = precision
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter(runtime, model, [delegate])
    interpreter.allocate_tensors()
    (up,), (down,) = interpreter.get_input_details(), interpreter.get_output_details()
    images = [networks.sample_inputs(model, seed=seed)[0] for seed in range(4)]
    items = [images[i % len(images)] for i in range(count)]

    def invoke(x: np.ndarray) -> np.ndarray:
        interpreter.set_tensor(up["index"], x)
        interpreter.invoke()
        result: np.ndarray = interpreter.get_tensor(down["index"])
        return result

    wanted = [invoke(x) for x in images]
    with clgpu_delegate.Runner(
        model, runtime=resolve_runtime(runtime), depth=depth, **options
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
            "invoke": lambda: each(map(invoke, items)),
            "run": lambda: each(map(runner.run, items)),
            "many": lambda: each(runner.run_many(items)),
            "bound": lambda: each(runner.run_many(bound_items)),
        }
        seconds = medians(ways, rounds=rounds, budget_s=budget_s)
        mode = runner.mode
    batch = int(up["shape"][0])
    rates = {way: batch * count / value for way, value in seconds.items()}
    on_device = device_median_s(delegate, rounds=3, budget_s=budget_s / 4)
    return Row(
        network=name,
        batch=batch,
        precision=precision,
        mode=mode,
        mb_in=images[0].nbytes / 1e6,
        mb_out=wanted[0].nbytes / 1e6,
        device=batch / on_device,
        exact=exact,
        **rates,
    )


def make_table(rows: Sequence[Row], title: str) -> Table:
    """One line per row."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("network")
    headings = ["batch", "", "mode", "MB in", "MB out", "device/s", "invoke/s", "run/s", "many/s"]
    for heading in [*headings, "bound/s", "many x", "bound x", "equal"]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        cells = [row.network, str(row.batch), row.precision, row.mode]
        cells += [f"{row.mb_in:.1f}", f"{row.mb_out:.1f}"]
        cells += [f"{rate:.1f}" for rate in (row.device, row.invoke, row.run, row.many, row.bound)]
        cells += [f"{row.many / row.invoke:.2f}", f"{row.bound / row.invoke:.2f}"]
        table.add_row(*cells, "yes" if row.exact else "NO")
    return table


def run(
    names: Sequence[str] = (),
    *,
    precisions: Sequence[str] = ("fp32",),
    scale: float = 1.0,
    device: str = "",
    runtime: str = "auto",
    zero_copy: str = "auto",
    count: int = 16,
    depth: int = 3,
    rounds: int = 5,
    budget_s: float = 3.0,
    csv_path: Path | None = None,
    json: Sheet | None = None,
) -> list[Row]:
    """Measure, print a table, write files; parameters as on the command line.

    Raises
    ------
    ValueError
        If a network does not exist.
    """
    for name in names:
        if name not in CASES:
            raise ValueError(f"{name!r} is no network; there are {', '.join(CASES)}")
    console = Console(width=None if Console().is_terminal else 150)
    found = clgpu_delegate.load(device=device).device
    rows = []
    for name in names or CASES:
        for precision in precisions:
            start = time.perf_counter()
            rows.append(
                measure(
                    name,
                    scale=scale,
                    precision=precision,
                    runtime=runtime,
                    count=count,
                    depth=depth,
                    rounds=rounds,
                    budget_s=budget_s,
                    device=device,
                    zero_copy=zero_copy,
                )
            )
            if json is not None:
                known = [row.network for row in rows if row.network in networks.NETWORKS]
                json.write(rows, device=found, runtime=runtime, networks=known)
            if not console.is_terminal:
                seconds = time.perf_counter() - start
                console.print(f"{name}, {precision}: {seconds:.1f} s", highlight=False)
    title = f"{found.name} ({found.platform}), {depth} in flight"
    console.print(make_table(rows, title))
    if csv_path is not None:
        with csv_path.open("w", newline="") as file:
            columns = ["on", *(field.name for field in dataclasses.fields(Row))]
            writer = csv.DictWriter(file, columns, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                writer.writerow({"on": title, **dataclasses.asdict(row)})
    return rows

"""``python -m bench recording``: what the option profile costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

import clgpu_delegate
from bench import networks
from bench.measure import medians
from bench.record import Sheet
from tests.runtimes import make_interpreter

DEFAULT = ("lenet5", "mobilenet_v1", "resnet50")
BATCH = 128  # inferences that are timed as one, so that those that are recorded count by their part
ROW = 32  # inferences in a row that are all recorded


@dataclasses.dataclass(frozen=True)
class Row:
    """One network; times of an inference are medians in microseconds.

    Attributes
    ----------
    off_us, on_us
        Without and with the option.
    all_us
        With every inference recorded.
    """

    network: str
    off_us: float
    on_us: float
    all_us: float


def run(
    names: Sequence[str],
    *,
    device: str,
    runtime: str,
    rounds: int,
    budget_s: float,
    json: Sheet | None = None,
) -> list[Row]:
    """Time inferences without recording, as it is, and with all of them recorded, in turns.

    Parameters
    ----------
    names
        Networks; `DEFAULT` where there are none.
    device, runtime
        As in `clgpu_delegate.load` and `tests.runtimes.make_interpreter`.
    rounds, budget_s
        Of each, see `bench.measure.medians`.
    json
        The file to write.
    """
    found = clgpu_delegate.load(device=device).device
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("network", "off us", "on us", "", "all recorded us", ""):
        table.add_column(title, justify="left" if title == "network" else "right")
    rows = []
    for name in names or DEFAULT:
        row = Row(name, *(1e6 * t for t in _measure(name, device, runtime, rounds, budget_s)))
        rows.append(row)
        if json is not None:
            known = [row.network for row in rows]
            json.write(rows, device=found, runtime=runtime, networks=known)
        cells = (f"{row.off_us:.1f}", *_beside(row.on_us, row.off_us))
        table.add_row(name, *cells, *_beside(row.all_us, row.off_us))
    Console().print(table)
    return rows


def _measure(
    name: str, device: str, runtime: str, rounds: int, budget_s: float
) -> tuple[float, ...]:
    model = networks.build(name)
    inputs = networks.sample_inputs(model, seed=1)

    def prepared(profile: bool) -> tuple[clgpu_delegate.Delegate, Callable[[], None]]:
        delegate = clgpu_delegate.load(device=device, profile=profile)
        interpreter = make_interpreter(runtime, model, [delegate])
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), inputs):
            interpreter.set_tensor(detail["index"], value)
        return delegate, interpreter.invoke

    _, plain = prepared(profile=False)
    delegate, recorded = prepared(profile=True)

    def repeat(invoke: Callable[[], None], count: int) -> None:
        for _ in range(count):
            invoke()

    def row() -> None:
        delegate.reset_profile(ROW)
        repeat(recorded, ROW)

    runs = {
        "off": lambda: repeat(plain, BATCH),
        "on": lambda: repeat(recorded, BATCH),
        "row": row,
    }
    times = medians(runs, rounds=rounds, budget_s=budget_s)
    return times["off"] / BATCH, times["on"] / BATCH, times["row"] / ROW


def _beside(us: float, off_us: float) -> tuple[str, str]:
    return f"{us:.1f}", f"{100 * (us / off_us - 1):+.1f} %"

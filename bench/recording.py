"""``python -m bench recording``: what the option profile costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

import clgpu_delegate
from bench import networks
from bench.measure import medians
from tests.runtimes import make_interpreter

DEFAULT = ("lenet5", "mobilenet_v1", "resnet50")
BATCH = 128  # inferences that are timed as one, so that those that are recorded count by their part
ROW = 32  # inferences in a row that are all recorded


def run(
    names: Sequence[str], *, device: str, runtime: str, rounds: int, budget_s: float
) -> list[tuple[str, float, float, float]]:
    """Time inferences without recording, as it is, and with all of them recorded, in turns.

    Parameters
    ----------
    names
        Networks; `DEFAULT` where there are none.
    device, runtime
        As in `clgpu_delegate.load` and `tests.runtimes.make_interpreter`.
    rounds, budget_s
        Of each, see `bench.measure.medians`.

    Returns
    -------
    list
        Of each network its name and the three times of an inference, in seconds.
    """
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("network", "off us", "on us", "", "all recorded us", ""):
        table.add_column(title, justify="left" if title == "network" else "right")
    rows = []
    for name in names or DEFAULT:
        off, on, every = _measure(name, device, runtime, rounds, budget_s)
        rows.append((name, off, on, every))
        cells = (f"{off * 1e6:.1f}", *_beside(on, off), *_beside(every, off))
        table.add_row(name, *cells)
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


def _beside(seconds: float, off: float) -> tuple[str, str]:
    return f"{seconds * 1e6:.1f}", f"{100 * (seconds / off - 1):+.1f} %"

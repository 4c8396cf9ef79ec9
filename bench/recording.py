"""``python -m bench recording``: the cost of the option profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import clgpu_delegate
from bench import networks
from bench.measure import medians
from bench.report import Column, Report, TextTable, name_column
from bench.session import Session
from bench.setting import Names, Setting

DEFAULT = ("lenet5", "mobilenet_v1", "resnet50")
BATCH = 128  # inferences that are timed together, so that recorded ones count by their share
ROW = 32  # successive inferences that are all recorded


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


def _change(us: float, off_us: float) -> str:
    return f"{100 * (us / off_us - 1):+.1f} %"


COLUMNS = (
    name_column("network", "network"),
    Column("off us", "off_us", ".1f"),
    Column("on us", "on_us", ".1f"),
    Column("", lambda row: _change(row.on_us, row.off_us)),
    Column("all recorded us", "all_us", ".1f"),
    Column("", lambda row: _change(row.all_us, row.off_us)),
)


def run(setting: Setting, names: Names = None) -> list[Row]:
    """Measure the cost of the option profile.

    Inferences without recording, with the option, and with all of them recorded take turns.
    Without names, the networks are those of `DEFAULT`.
    """
    report = Report[Row](setting, runtime=setting.runtime)
    for name in names or DEFAULT:
        report.add([measure(name, setting)], network=name)
    return report.finish(TextTable.of(setting.title, report.rows, COLUMNS))


def measure(name: str, setting: Setting) -> Row:
    """Measure one network."""
    model = networks.build(name)
    inputs = networks.sample_inputs(model, seed=1)

    def prepared(profile: bool) -> Session:
        delegate = clgpu_delegate.load(device=setting.device, profile=profile)
        return Session(model, delegate, runtime=setting.runtime).feed(inputs)

    plain, recorded = prepared(profile=False), prepared(profile=True)

    def repeat(invoke: Callable[[], None], count: int) -> None:
        for _ in range(count):
            invoke()

    def row() -> None:
        recorded.delegate.reset_profile(ROW)
        repeat(recorded, ROW)

    runs = {
        "off": lambda: repeat(plain, BATCH),
        "on": lambda: repeat(recorded, BATCH),
        "row": row,
    }
    times = medians(runs, **setting.timing())
    off, on = (1e6 * times[name] / BATCH for name in ("off", "on"))
    return Row(name, off, on, 1e6 * times["row"] / ROW)

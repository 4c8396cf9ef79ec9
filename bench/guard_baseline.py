"""The committed runs that ``python -m bench guard`` compares with: ``bench/baselines/*.json``.

They are files of `bench.record`. A baseline belongs to the device whose name and platform it
contains; the name of the file does not matter.
"""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import record
from bench.guard_report import Row
from clgpu_delegate import Device

FOLDER = Path(__file__).resolve().parent / "baselines"
_WHAT = "guard"


class MissingError(ValueError):
    """There is no baseline for a device."""


@dataclasses.dataclass(frozen=True)
class Baseline:
    """A stored run; `path` is its file, the other fields are as in `bench.record.Record`.

    Attributes
    ----------
    work
        Of the calibration kernel: work-items and steps.
    """

    path: Path
    device: dict[str, Any]
    commit: str
    date: str
    work: tuple[int, int]
    rows: list[Row]

    def is_of(self, device: Device) -> bool:
        """Whether it was measured on a device of this name and platform."""
        return (self.device["name"], self.device["platform"]) == (device.name, device.platform)

    def is_same(self, device: Device, commit: str) -> bool:
        """Whether a run of a commit, without other changes, would measure the same code."""
        driver = self.device["driver"] == device.driver_version
        return driver and self.commit == commit and not commit.endswith(record.DIRTY)


def read(path: Path) -> Baseline:
    """Read a file.

    Raises
    ------
    ValueError
        If it is missing or no baseline: a sentence.
    """
    data = record.read(path)
    try:
        if data.what != _WHAT:
            raise ValueError(f"it is a file of {data.what}")
        items, steps = data.options["work"]
        rows = [Row.read(row) for row in data.rows]
        names = {key: str(data.device[key]) for key in ("name", "platform", "driver")}
        return Baseline(path, names, data.commit, data.date, (int(items), int(steps)), rows)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no baseline of bench guard: {error}") from None


def find(device: Device, path: Path | None = None, folder: Path = FOLDER) -> Baseline:
    """Find the baseline of a device.

    Raises
    ------
    MissingError
        If there is none.
    ValueError
        If ``path`` is no baseline, or another device's.
    """
    if path is not None:
        baseline = read(path)
        if not baseline.is_of(device):
            raise ValueError(_other(baseline, device))
        return baseline
    for file in sorted(folder.glob("*.json")):
        baseline = read(file)
        if baseline.is_of(device):
            return baseline
    raise MissingError(
        f"there is no baseline for {device.name} ({device.platform}): make one at a commit whose "
        "times are good with: python -m bench guard --write"
    )


def target(device: Device, path: Path | None = None, folder: Path = FOLDER) -> Path:
    """The path for the baseline of a device.

    Raises
    ------
    ValueError
        If the file there is another device's, or there is no folder.
    """
    if path is None:
        for file in sorted(folder.glob("*.json")):
            if read(file).is_of(device):
                return file
        path = folder / f"{slug(device)}.json"
    elif not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder for {path}")
    if path.exists() and not (there := read(path)).is_of(device):
        raise ValueError(f"{_other(there, device)}; nothing is written")
    return path


def joined(rows: Sequence[Row], earlier: Sequence[Row]) -> list[Row]:
    """The rows of two runs of one build: means, and the noise between the runs, too."""
    before = {row.item: row for row in earlier}
    return [_join(row, before.get(row.item)) for row in rows]


def _join(row: Row, other: Row | None) -> Row:
    facts = ("launches", "claimed", "nodes", "notes", "error")
    if other is None or row.error or any(getattr(row, f) != getattr(other, f) for f in facts):
        return row
    between = abs(row.ratio - other.ratio) / (row.ratio + other.ratio)
    return dataclasses.replace(
        row, ratio=(row.ratio + other.ratio) / 2, ms=(row.ms + other.ms) / 2,
        noise=max(row.noise, other.noise, between), rounds=row.rounds + other.rounds,
        host_bound=row.host_bound or other.host_bound,
    )  # fmt: skip


def slug(device: Device) -> str:
    """A name for the file of a device."""
    text = re.sub(r"\((r|tm)\)", " ", f"{device.name} {device.platform}".lower())
    words = re.sub(r"[^a-z0-9]+", " ", text).split()
    return "-".join(dict.fromkeys(words))[:60].rstrip("-")


def write(
    path: Path, device: Device, rows: Sequence[Row], *, work: Sequence[int], command: str,
    commit: str, options: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write a baseline; the file is replaced as a whole."""
    path.parent.mkdir(exist_ok=True)
    facts = {
        "name": device.name, "platform": device.platform, "driver": device.driver_version,
        "type": device.type, "cores": os.cpu_count(),
    }  # fmt: skip
    data = record.Record(
        what=_WHAT, command=command, commit=commit,
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(), device=facts,
        peers={}, options={**options, "work": list(work)}, plans={},
        rows=[dataclasses.asdict(row) for row in rows],
    )  # fmt: skip
    part = path.with_name(path.name + ".part")
    part.write_text(data.text(), encoding="utf-8")
    part.replace(path)


def _other(baseline: Baseline, device: Device) -> str:
    name = "{name} ({platform})".format(**baseline.device)
    return f"{baseline.path} is the baseline of {name}, not of {device.name} ({device.platform})"

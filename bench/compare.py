"""``python -m bench compare OLD NEW``: what has become slower or faster between two measurements.

Files of `bench peers`, `bench guard` and `bench nets` are compared row by row. The change of a row
is the ratio of its new to its old time. Where the files have the times of single rounds, a
bootstrap over the rounds gives an interval of confidence, and a row has moved if the interval lies
beyond the tolerance. Where they have only one number per row, nothing tells noise from change: such
rows have no interval, and have moved if they differ by more than `WITHOUT_ROUNDS`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bench import record
from bench.record import Record
from bench.report import Column, TextTable, make_console, name_column
from bench.setting import File

WITHOUT_ROUNDS = 0.25
"""Relative change beyond which a time without rounds counts as moved."""

_DRAWS = 4000
_SEED = 0
_LEAST_ROUNDS = 3  # for an interval
_NO_SERIES = ("missing", "unsuited")  # of a row of peers


class Verdict(str, enum.Enum):
    """What has become of a row."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    BROKEN = "no longer measured"
    NEW = "new"
    GONE = "gone"


@dataclasses.dataclass(frozen=True)
class Series:
    """A quantity of a row: one time, or the times of its rounds; milliseconds or ratios.

    Attributes
    ----------
    values
        In the order of the rounds; empty if it was not measured.
    problem
        Why it was not.
    """

    values: tuple[float, ...]
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class Change:
    """A row of both files.

    Attributes
    ----------
    what
        The row and the quantity, in words.
    old, new
        Medians; None where it was not measured.
    ratio
        New divided by old.
    low, high
        Interval of confidence of the ratio; None without rounds.
    verdict
        What has become of it.
    note
        Why it was not measured.
    """

    what: str
    verdict: Verdict
    old: float | None = None
    new: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""


def interval(
    old: Sequence[float], new: Sequence[float], confidence: float, draws: int = _DRAWS
) -> tuple[float, float]:
    """An interval of confidence of the ratio of medians, by a bootstrap over the rounds.

    Rounds of both measurements are drawn with replacement, independently of each other, because
    round 3 of one has nothing in common with round 3 of the other.

    Parameters
    ----------
    old, new
        Times of the rounds.
    confidence
        Such as 0.95.
    draws
        Number of repetitions; the same ones each time.
    """
    random = np.random.default_rng(_SEED)

    def medians(values: Sequence[float]) -> np.ndarray:
        picked = random.integers(0, len(values), (draws, len(values)))
        result: np.ndarray = np.median(np.asarray(values, np.float64)[picked], axis=1)
        return result

    ratios = medians(new) / medians(old)
    tail = (1 - confidence) / 2 * 100
    low, high = np.percentile(ratios, (tail, 100 - tail))
    return float(low), float(high)


def compare(
    old: Mapping[str, Series], new: Mapping[str, Series], *, confidence: float, tolerance: float
) -> list[Change]:
    """Compare the series of two files; the worst changes first.

    Parameters
    ----------
    old, new
        Series by their words, as `series_of` gives them.
    confidence
        Of the intervals.
    tolerance
        Relative change that does not matter: the whole interval has to lie beyond it.
    """
    changes = [
        _change(what, old[what], new[what], confidence, tolerance) for what in old if what in new
    ]
    changes += [Change(what, Verdict.GONE) for what in old if what not in new]
    changes += [Change(what, Verdict.NEW) for what in new if what not in old]
    return sorted(changes, key=_order)


def _order(change: Change) -> tuple[int, float, str]:
    ranks = list(Verdict)
    by_verdict = [Verdict.BROKEN, Verdict.SLOWER, Verdict.GONE, Verdict.FASTER, Verdict.SAME]
    rank = by_verdict.index(change.verdict) if change.verdict in by_verdict else len(ranks)
    return rank, -(change.ratio or 0.0), change.what


def _change(what: str, old: Series, new: Series, confidence: float, tolerance: float) -> Change:
    if not new.values or not old.values:
        was = not old.values
        verdict = Verdict.SAME if was and not new.values else Verdict.NEW if was else Verdict.BROKEN
        return Change(what, verdict, note=new.problem)
    medians = float(np.median(old.values)), float(np.median(new.values))
    ratio = medians[1] / medians[0]
    has_rounds = min(len(old.values), len(new.values)) >= _LEAST_ROUNDS
    low = high = None
    if has_rounds:
        low, high = interval(old.values, new.values, confidence)
        is_slower, is_faster = low > 1 + tolerance, high < 1 / (1 + tolerance)
    else:
        limit = 1 + max(tolerance, WITHOUT_ROUNDS)
        is_slower, is_faster = ratio > limit, ratio < 1 / limit
    verdict = Verdict.SLOWER if is_slower else Verdict.FASTER if is_faster else Verdict.SAME
    return Change(what, verdict, *medians, ratio, low, high)


# ---------------------------------------------------------------------- what files have


def series_of(data: Record, relative: str = "") -> dict[str, Series]:
    """The series of a file, by what they are in words.

    Parameters
    ----------
    data
        The file.
    relative
        Part of the name of a peer: of `bench peers`, the times from host to host divided by those
        of this peer in the same round, instead of times.

    Raises
    ------
    ValueError
        If it is a file of a command that this does not know, or has no such peer.
    """
    if relative:
        return _of_peers_relative(data, relative)
    readers = {"peers": _of_peers, "guard": _of_guard, "nets": _of_nets}
    if data.what not in readers:
        known = ", ".join(sorted(readers))
        raise ValueError(f"files of bench {data.what} are not compared; those of {known} are")
    found: dict[str, Series] = {}
    for row in data.rows:
        found.update(readers[data.what](row))
    return found


def _of_peers(row: Mapping[str, Any]) -> dict[str, Series]:
    if row["status"] in _NO_SERIES:
        return {}
    what = _words(row)
    found = {f"{what}: host": Series(tuple(row["rounds_ms"]), _problem(row))}
    for name, field in (("in flight", "many_rounds_ms"), ("device", "device_rounds_ms")):
        if row[field]:
            found[f"{what}: {name}"] = Series(tuple(row[field]))
    return found


def _words(row: Mapping[str, Any]) -> str:
    return f"{row['work']}, batch {row['images']}, {row['precision']}, {row['peer']}"


def _problem(row: Mapping[str, Any]) -> str:
    return str(row["note"]) if row["status"] == "failed" else ""


def _of_peers_relative(data: Record, relative: str) -> dict[str, Series]:
    def work(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return row["work"], row["images"], row["precision"]

    bases = {
        work(row): row["rounds_ms"]
        for row in data.rows
        if data.what == "peers" and relative.lower() in row["peer"].lower() and row["rounds_ms"]
    }
    if not bases:
        raise ValueError(f"the file of bench {data.what} has no measured peer {relative!r}")
    found: dict[str, Series] = {}
    for row in data.rows:
        base = bases.get(work(row), ())
        if row["status"] in _NO_SERIES or relative.lower() in row["peer"].lower():
            continue
        values = tuple(value / other for value, other in zip(row["rounds_ms"], base))
        found[_words(row)] = Series(values, _problem(row))
    return found


def _of_guard(row: Mapping[str, Any]) -> dict[str, Series]:
    # Relative to the calibration kernel: its clock rate is no change.
    values = tuple(row.get("ratios") or ()) or ((row["ratio"],) if row["ratio"] else ())
    return {str(row["item"]): Series(values, row["error"])}


def _of_nets(row: Mapping[str, Any]) -> dict[str, Series]:
    what = f"{row['network']}, batch {row['batch']}, {row['precision']}"
    return {
        f"{what}: {name}": Series((row[field],) if row[field] else ())
        for name, field in (("host", "host_ms"), ("device", "device_ms"))
    }


# ---------------------------------------------------------------------- the command


def _percent(change: Change) -> str:
    if change.ratio is None:
        return ""
    inner = "" if change.low is None else f" [{change.low - 1:+.0%}, {change.high - 1:+.0%}]"
    return f"{change.ratio - 1:+.1%}{inner}"


COLUMNS = (
    name_column("what", "what"),
    Column("old", "old", ".4g"),
    Column("new", "new", ".4g"),
    Column("change", _percent),
    name_column("", lambda change: change.verdict.value),
    name_column("note", "note", is_optional=True),
)


def run(
    old: Annotated[Path, typer.Argument(help="JSON file of bench peers, guard or nets.")],
    new: Annotated[Path, typer.Argument(help="A later one of the same command.")],
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999, help="Of the intervals.")] = 0.95,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Relative change that does not matter.")
    ] = 0.03,
    relative: Annotated[
        str, typer.Option(help="A peer: compare times relative to its times in the same rounds.")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="Show what has not moved, too.")] = False,
    markdown: Annotated[File, typer.Option(help="Markdown file to write.")] = None,
) -> list[Change]:
    """Find what has become slower between two measurements.

    Raises
    ------
    ValueError
        If a file cannot be read, or they are of different commands.
    """
    files = [record.read(path) for path in (old, new)]
    if files[0].what != files[1].what:
        raise ValueError(f"{old} is of bench {files[0].what}, {new} of bench {files[1].what}")
    series = [series_of(data, relative) for data in files]
    changes = compare(*series, confidence=confidence, tolerance=tolerance)
    console = make_console()
    for line in differences(*files):
        console.print(line, highlight=False, markup=False)
    shown = [c for c in changes if every or c.verdict is not Verdict.SAME]
    bad = sum(c.verdict in (Verdict.SLOWER, Verdict.BROKEN) for c in changes)
    title = f"{bad} of {len(changes)} slower or no longer measured ({confidence:.0%} confidence)"
    table = TextTable.of(title, shown, COLUMNS, _style)
    console.print(table.rich() if shown else title)
    if markdown is not None:
        markdown.write_text(table.markdown(), encoding="utf-8")
    return changes


def _style(change: Change) -> str:
    colours = {Verdict.SLOWER: "red", Verdict.BROKEN: "red", Verdict.FASTER: "green"}
    return colours.get(change.verdict, "")


def differences(old: Record, new: Record) -> list[str]:
    """What else differs between two files, which a change of time may come from."""
    lines = [f"old: commit {old.commit}, {old.date}; new: commit {new.commit}, {new.date}"]
    for name in ("name", "platform", "driver", "host", "cores"):
        if old.device.get(name) != new.device.get(name):
            lines.append(f"{name}: {old.device.get(name)} and {new.device.get(name)}")
    before, after = old.peers.get("software", {}), new.peers.get("software", {})
    lines += [
        f"{name}: {before.get(name)} and {after.get(name)}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return lines


def failed(changes: Sequence[Change]) -> bool:
    """Whether something has become slower, or is no longer measured."""
    return any(change.verdict in (Verdict.SLOWER, Verdict.BROKEN) for change in changes)

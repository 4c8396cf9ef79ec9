"""Compares two runs of ``python -m bench guard``, and decides what is a failure.

Times are compared as ratios to the calibration kernel. The *noise* of a row is half the range
between the quartiles of its rounds, relative to their median (half the range of all where there are
fewer than five); the noise of a comparison is the root of the sum of the squares of both, and at
least `FLOOR`. A time has *moved* when it differs by more than `LIMIT` times that.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bench.guard_session import TOO_LATE, Result
from bench.report import Column, TextTable, name_column

FLOOR = 0.015
HOST_FLOOR = 0.05
"""The floor of host-bound rows: launches take at least half of their time."""

LIMIT = 3.0
DIFFERENCE = 0.05
"""The most that results may differ, relative to their norm: more than kernels of halves may."""

_OF_THE_CACHE = ("the cache ", "there is no cache")  # notes that do not concern the device
_ONE_ROUND = 0.05  # noise of items that were timed once


@dataclasses.dataclass(frozen=True)
class Row:
    """One item of one run, as in baselines.

    Attributes
    ----------
    ratio
        Of its time to that of the calibration kernel: the median of the rounds.
    noise
        Of the ratio, relative; see above.
    ms
        Of an inference, or of the layer: the median.
    rounds
        That were timed.
    launches, claimed, nodes
        Kernel launches per inference, nodes on the device, and nodes of the model.
    host_bound
        Whether its launches alone take half of its time.
    notes
        Remarks of `explain()`, such as on kernels that do not work.
    error
        Why it could not be measured.
    ratios
        Of each round; empty in files of before.
    sketch
        Of the results, as `bench.guard_worker.sketch` makes it; empty in files of before.
    """

    item: str
    ratio: float = 0.0
    noise: float = 0.0
    ms: float = 0.0
    rounds: int = 0
    launches: int = 0
    claimed: int = 0
    nodes: int = 0
    host_bound: bool = False
    notes: tuple[str, ...] = ()
    error: str = ""
    ratios: tuple[float, ...] = ()
    sketch: tuple[float, ...] = ()

    @classmethod
    def of(cls, item: str, result: Result, launch_seconds: float) -> Row:
        """Summarise the measurements."""
        if result.error or not result.samples:
            return cls(item, error=result.error or f"not measured {TOO_LATE}")
        facts = result.facts
        seconds = statistics.median(s for s, _ in result.samples.values())
        ratios = [s / c for s, c in result.samples.values() if c]
        return cls(
            item,
            ratio=statistics.median(ratios) if ratios else 0.0,
            noise=spread(ratios) if ratios else 0.0,
            ms=seconds * 1e3,
            rounds=len(result.samples),
            launches=facts["launches"],
            claimed=facts["claimed"],
            nodes=facts["nodes"],
            host_bound=facts["launches"] * launch_seconds > seconds / 2,
            notes=tuple(n for n in facts["notes"] if not n.startswith(_OF_THE_CACHE)),
            ratios=tuple(ratios),
            sketch=tuple(facts["sketch"]),
        )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Row:
        """Read a row of a baseline.

        Raises
        ------
        ValueError
            If it lacks a field.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        data = {"ratios": [], "sketch": [], **data}
        if set(data) != names or not isinstance(data["notes"], list):
            raise ValueError("its rows have other fields")
        tuples = {name: tuple(data[name]) for name in ("notes", "ratios", "sketch")}
        return cls(**{**data, **tuples})


def spread(values: Sequence[float]) -> float:
    """Half the range between the quartiles, relative to the median; few values: half the range."""
    if len(values) < 2:
        return _ONE_ROUND
    middle = statistics.median(values)
    if len(values) < 5:
        return (max(values) - min(values)) / 2 / middle
    low, high = np.percentile(values, [25, 75])
    return float(high - low) / 2 / middle


@dataclasses.dataclass(frozen=True)
class Change:
    """The comparison of an item: now and in the baseline or other commit.

    Attributes
    ----------
    ratio, noise
        Of the time now to the earlier time, and the noise of the ratio; None without a time.
    problems
        What has become worse: each is a failure.
    remarks
        Other differences.
    """

    item: str
    now: Row | None
    then: Row | None
    ratio: float | None = None
    noise: float = 0.0
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_faster(self) -> bool:
        """Whether it is faster by more than the noise."""
        return self.ratio is not None and self.ratio < 1 / (1 + LIMIT * self.noise)

    @property
    def is_slower(self) -> bool:
        """Whether it is slower by more than the noise."""
        return self.ratio is not None and self.ratio > 1 + LIMIT * self.noise

    @property
    def is_doubtful(self) -> bool:
        """Whether it is slower, and launches take half of its time.

        Those of a process that has loaded a hundred models take longer in some runs.
        """
        return self.is_slower and self.now is not None and self.now.host_bound

    @property
    def is_late(self) -> bool:
        """Whether there was no time for it."""
        return self.now is not None and self.now.error.endswith(TOO_LATE)

    @property
    def verdict(self) -> str:
        """The differences as a sentence; empty if there are none."""
        return "; ".join([*self.problems, *self.remarks])


def compare(now: Row | None, then: Row | None, times: Sequence[float] | None = None) -> Change:
    """Compare two rows of an item; one of them may be missing.

    Parameters
    ----------
    now, then
        The rows; ``then`` is that of the baseline, or of the other commit.
    times
        By round, the time now as a multiple of the other, where both were measured in turns. None:
        the rows' ratios to the calibration are compared.
    """
    item = (now or then or Row("")).item
    if now is None or then is None or now.error or then.error:
        problem, remark = _missing(now, then)
        return Change(item, now, then, problems=problem, remarks=remark)
    if times:
        ratio, noise = statistics.median(times), spread(times)
    else:
        ratio, noise = now.ratio / then.ratio, math.hypot(now.noise, then.noise)
    noise = max(noise, HOST_FLOOR if now.host_bound or then.host_bound else FLOOR)
    problems, remarks = _facts(now, then)
    change = Change(item, now, then, ratio, noise, tuple(problems), tuple(remarks))
    if change.is_slower:
        return dataclasses.replace(change, problems=(f"slower: {ratio:.2f} times", *problems))
    if change.is_faster:
        return dataclasses.replace(change, remarks=(f"faster: {ratio:.2f} times", *remarks))
    return change


def _missing(now: Row | None, then: Row | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Problems and remarks where one of two rows is missing or failed."""
    if now is None:
        return ("not measured",), ()
    if now.error and (then is None or not then.error):
        return (f"fails: {now.error}",), ()
    if now.error:
        return (), (f"fails, as it did: {now.error}",)
    if then is None:
        return (), ("new: renew the baseline to have it guarded",)
    return (), (f"works now; it failed: {then.error}",)


def _facts(now: Row, then: Row) -> tuple[list[str], list[str]]:
    """Problems and remarks on results, launches, nodes and notes."""
    problems: list[str] = []
    remarks: list[str] = []
    if then.sketch and not (difference := _difference(now, then)) <= DIFFERENCE:
        problems.append(f"other results: they differ by {difference:.2g} of their norm")
    if now.launches != then.launches:
        more = now.launches > then.launches
        text = f"{'more' if more else 'fewer'} launches: {then.launches} -> {now.launches}"
        (problems if more else remarks).append(text)
    if now.nodes - now.claimed > then.nodes - then.claimed:
        left = f"nodes on the CPU: {then.nodes - then.claimed} -> {now.nodes - now.claimed}"
        problems.append(left)
    elif (now.claimed, now.nodes) != (then.claimed, then.nodes):
        remarks.append(f"nodes: {then.claimed}/{then.nodes} -> {now.claimed}/{now.nodes}")
    before, after = {_front(note) for note in then.notes}, {_front(note) for note in now.notes}
    problems += [f"new note: {note}" for note in now.notes if _front(note) not in before]
    remarks += [f"gone: {front}" for front in sorted(before - after)]
    return problems, remarks


def _difference(now: Row, then: Row) -> float:
    """An estimate of how much the results differ, relative to the norm of the earlier ones."""
    if len(now.sketch) != len(then.sketch):
        return math.inf
    return math.dist(now.sketch, then.sketch) / (math.hypot(*then.sketch) or 1.0)


def _front(note: str) -> str:
    """A note without its reason, which may contain a compiler's log."""
    return note.split(": ", maxsplit=1)[0].split("\n", maxsplit=1)[0]


def in_turns(now: Result, then: Result) -> list[float]:
    """By round, the time now as a multiple of the earlier time."""
    rounds = sorted(now.samples.keys() & then.samples.keys())
    return [now.samples[n][0] / then.samples[n][0] for n in rounds]


def compare_all(now: Iterable[Row], then: Iterable[Row]) -> list[Change]:
    """Compare the rows of a run with those of a baseline."""
    rows, before = {row.item: row for row in now}, {row.item: row for row in then}
    return [compare(rows.get(item), before.get(item)) for item in {**rows, **before}]


def details(changes: Sequence[Change], other: str, title: str) -> TextTable:
    """One line for each item; the baseline's milliseconds are those of its own run."""
    columns = [
        name_column("item", "item"),
        Column("ms", lambda change: _ms(change.now)),
        Column(f"{other} ms", lambda change: _ms(change.then)),
        Column("ratio", "ratio", ".3f"),
        Column("noise", lambda c: None if c.ratio is None else f"{100 * c.noise:.1f} %"),
        Column("launches", _launches),
        name_column("verdict", lambda change: _short(change.verdict) or "same"),
    ]
    return TextTable.of(title, changes, columns)


def _launches(change: Change) -> str:
    sides = (change.then, change.now)
    counts = [str(row.launches) for row in sides if row is not None and not row.error]
    return " -> ".join(dict.fromkeys(counts))


@dataclasses.dataclass(frozen=True)
class _Group:
    """The changes of a network, or of the layers."""

    name: str
    changes: list[Change]

    def mean(self, precision: str) -> float | None:
        """The geometric mean of the ratios in a precision."""
        ratios = [c.ratio for c in self.changes if c.ratio and _precision(c) == precision]
        return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None

    @property
    def launches(self) -> str:
        """Sums over the items that were compared, then and now."""
        known = [c for c in self.changes if c.ratio is not None]
        sums = [
            str(sum(row.launches for row in side if row is not None))
            for side in ([c.then for c in known], [c.now for c in known])
        ]
        return " -> ".join(dict.fromkeys(sums))


def groups(changes: Sequence[Change], title: str) -> TextTable:
    """For each network and the layers, and each precision, the geometric mean of the ratios."""
    named: dict[str, list[Change]] = {}
    for change in changes:
        front = change.item.split()[0]
        named.setdefault("layers" if front.startswith("layer-") else front, []).append(change)

    def mean(precision: str) -> Column:
        return Column(precision, lambda group: group.mean(precision), ".3f")

    columns = [
        name_column("group", "name"),
        *map(mean, dict.fromkeys(map(_precision, changes))),
        Column("items", lambda group: len(group.changes)),
        Column("launches", "launches"),
    ]
    return TextTable.of(title, [_Group(*pair) for pair in sorted(named.items())], columns)


def _precision(change: Change) -> str:
    return change.item.split()[-1]


def _ms(row: Row | None) -> str:
    if row is None or row.error:
        return ""
    return f"{row.ms:.3f}" if row.ms < 100 else f"{row.ms:.0f}"


def _short(text: str, length: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 3]}..."

"""Tables of the rows of `bench peers`, losses first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.peers.peer import Peer
from bench.peers.session import FAILED, MEASURED, MISSING, UNSUITED, Row
from bench.peers.work import INT8
from bench.report import Column, TextTable, name_column

WRONG = 0.1
"""Relative error above which a result of floats counts as wrong, and its time as no time."""

NOISE = 1.25
"""Factor between the rounds above which a time is marked as noisy."""

WRONG_INT8 = 0.5
"""The same for quantised models: deep ones amplify the single steps by which kernels differ."""


def label(row: Row) -> str:
    """The work of a row in words."""
    batch = f", batch {row.batch}" if row.batch > 1 else ""
    return f"{row.work}{batch}, {row.precision}"


def is_wrong(row: Row) -> bool:
    """Whether a measured row has a wrong result."""
    limit = WRONG_INT8 if row.precision == INT8 else WRONG
    return row.status == MEASURED and (row.error is None or row.error > limit)


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _time(name: str) -> Column:
    return Column("", lambda row: _milliseconds(getattr(row, name)))


def _rate(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:.0f}" if value > 1e7 else f"{value / 1e6:.2g}"


def is_noisy(row: Row) -> bool:
    """Whether the medians of the rounds differ so much that the time says little."""
    return bool(row.rounds_ms) and max(row.rounds_ms) > NOISE * min(row.rounds_ms)


def _note(row: Row) -> str:
    parts = ["wrong result"] * is_wrong(row) + ["noisy"] * is_noisy(row)
    return "; ".join([*parts, *[row.note] * bool(row.note)])


_PEER = name_column("peer", "peer")
_MEDIAN = _time("median_ms")._replace(heading="median ms")
_RANGE = Column("p10-p90", lambda r: f"{_milliseconds(r.p10_ms)}-{_milliseconds(r.p90_ms)}")
_RATIO = Column("ours / theirs", "ratio", ".2f")
_ERROR = Column("error", "error", ".0e")

COLUMNS = (
    _PEER,
    _MEDIAN,
    _RANGE,
    _time("device_ms")._replace(heading="no copies ms"),
    Column("images/s", lambda row: _rate(row.images_per_s)),
    _RATIO,
    _time("load_ms")._replace(heading="load ms"),
    _time("first_ms")._replace(heading="first ms"),
    _time("cold_ms")._replace(heading="cold ms"),
    Column("host MB", lambda row: _megabytes(row.host_bytes)),
    Column("device MB", lambda row: _megabytes(row.device_bytes), is_optional=True),
    _ERROR,
    Column("J", "joules", ".3g", is_optional=True),
    name_column("note", _note, is_optional=True),
)

_LOSSES = (
    name_column("work", label),
    Column("ms", lambda row: _milliseconds(row.ratio * row.median_ms)),
    name_column("faster is", "peer"),
    Column("ms", lambda row: _milliseconds(row.median_ms)),
    _RATIO,
    _ERROR,
)

_LEFT_OUT = (name_column("work", label), _PEER, name_column("why", "note"))


def losses(rows: Iterable[Row]) -> TextTable:
    """The others that are faster than the first peer, the largest difference first."""
    measured = [row for row in rows if row.status == MEASURED and not row.is_ours]
    faster = [row for row in measured if not is_wrong(row) and (row.ratio or 0.0) > 1]
    return TextTable.of("Where others are faster", sorted(faster, key=_by_ratio), _LOSSES)


def _by_ratio(row: Row) -> float:
    return -(row.ratio or 0.0)


def of_work(rows: Sequence[Row]) -> TextTable:
    """All peers that were measured with one work."""
    measured = [row for row in rows if row.status == MEASURED]
    return TextTable.of(label(rows[0]), measured, COLUMNS, lambda r: "red" if is_wrong(r) else "")


def left_out(rows: Iterable[Row]) -> TextTable:
    """What was not measured, and why."""
    kept = [row for row in rows if row.status in (FAILED, UNSUITED)]
    return TextTable.of("Not measured", kept, _LEFT_OUT)


def not_installed(rows: Iterable[Row]) -> TextTable:
    """The peers that are missing, with the line that installs each."""
    lines = {row.peer: row.note for row in rows if row.status == MISSING}
    columns = (name_column("peer", lambda p: p[0]), name_column("install", lambda p: p[1]))
    return TextTable.of("Not installed", lines.items(), columns)


def by_work(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each work, by its words."""
    works: dict[str, list[Row]] = {}
    for row in rows:
        works.setdefault(label(row), []).append(row)
    return works


def tables(rows: Sequence[Row]) -> list[TextTable]:
    """All tables: losses, each work, and what is missing; empty ones are left out."""
    each = map(of_work, by_work(rows).values())
    found = [losses(rows), *each, left_out(rows), not_installed(rows)]
    return [table for table in found if table.rows]


def software(peers: Iterable[Peer]) -> dict[str, str]:
    """Versions of the packages that are installed."""
    return {peer.package.partition("<")[0]: peer.version() for peer in peers if not peer.missing()}

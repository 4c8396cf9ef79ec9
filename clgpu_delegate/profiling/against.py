"""Two profiles of a model side by side: what got slower, and which engines have changed."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text
from clgpu_delegate.errors import FileError
from clgpu_delegate.profiling.table import milliseconds

if TYPE_CHECKING:
    from clgpu_delegate.profiling.recorded import Recorded

Before = Union["Recorded", Mapping[str, Any], str, "os.PathLike[str]"]

_ADVICE = "; `clgpu profile MODEL --json` writes one"
_ROWS = 20  # of print()
_EQUAL = 0.02  # a change of the time that is not coloured


@dataclasses.dataclass(frozen=True)
class NodeChange:
    """A node in two profiles; None and empty where one of them has no kernel for it."""

    node: int
    op: str
    engine_before: str
    engine: str
    seconds_before: float | None
    """Device time, the median of the recorded inferences."""

    seconds: float | None

    @property
    def difference(self) -> float:
        """Seconds that it takes longer than before; negative where it is faster."""
        return (self.seconds or 0.0) - (self.seconds_before or 0.0)

    @property
    def ratio(self) -> float | None:
        """Time over the time before; None where one is not known."""
        if not self.seconds or not self.seconds_before:
            return None
        return self.seconds / self.seconds_before


@dataclasses.dataclass(frozen=True)
class ProfileChange(Shown):
    """A profile beside an earlier one; ``print()`` shows the nodes that changed most."""

    before: str
    """Model, device and precision."""

    now: str
    wall_seconds_before: float
    """Of an inference, the median."""

    wall_seconds: float
    kernel_seconds_before: float
    kernel_seconds: float
    nodes: tuple[NodeChange, ...]
    """The largest difference first."""

    differ: bool = False
    """Whether no node is in both, so that the profiles are of different models."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return dataclasses.asdict(self)

    def __rich__(self) -> Group:
        table = Table()
        for heading in ("node", "op", "before us", "now us", "ratio", "engine"):
            words = heading in ("op", "engine")
            table.add_column(heading, right=not words, fold=words and heading != "op")
        for change in self.nodes[:_ROWS]:
            engine = change.engine
            if change.engine_before != engine:
                engine = f"{change.engine_before or 'none'} -> {engine or 'none'}"
            ratio = change.ratio
            style = ""
            if ratio is not None and abs(ratio - 1) > _EQUAL:
                style = "yellow" if ratio > 1 else "green"
            cells = (
                str(change.node),
                change.op,
                _microseconds(change.seconds_before),
                _microseconds(change.seconds),
                "" if ratio is None else f"{ratio:.2f}",
                engine,
            )
            table.add_row(*map(Text, cells), style=style)
        where = self.now if self.before == self.now else f"{self.before} -> {self.now}"
        head = (
            f"{where}: {milliseconds(self.wall_seconds_before)} -> "
            f"{milliseconds(self.wall_seconds)} per inference, kernels "
            f"{milliseconds(self.kernel_seconds_before)} -> {milliseconds(self.kernel_seconds)}"
        )
        if self.differ:
            head += "; no node is in both: these are profiles of different models"
        left = len(self.nodes) - _ROWS
        more = [Text(f"and {left} nodes more, which changed less")] if left > 0 else []
        return Group(Text(head), table.fitting(2), *more)

    def __str__(self) -> str:
        return as_text(self)


def compare(now: Recorded, before: Before) -> ProfileChange:
    """See `Profile.against`."""
    if isinstance(before, (str, os.PathLike)):
        return compare(now, read(before))
    data = before if isinstance(before, Mapping) else before.to_dict()
    return _change(now.to_dict(), data)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a file with a profile; a FileError if it cannot be read or has none."""
    try:
        data: dict[str, Any] = json.loads(Path(path).read_bytes())
        _change(data, data)
    except OSError as error:
        raise FileError(f"cannot read the profile {os.fspath(path)}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise FileError(f"{os.fspath(path)} is not a profile{_ADVICE}") from None
    return data


def _change(now: Mapping[str, Any], before: Mapping[str, Any]) -> ProfileChange:
    sides = [{(row["node"], row["op"]): row for row in data["nodes"]} for data in (before, now)]
    nodes = []
    for key in sorted({*sides[0], *sides[1]}):
        old, new = (side.get(key) for side in sides)
        nodes.append(
            NodeChange(
                *key,
                old["candidate"] if old else "",
                new["candidate"] if new else "",
                _seconds(old["device_seconds"]) if old else None,
                _seconds(new["device_seconds"]) if new else None,
            )
        )
    nodes.sort(key=lambda change: -abs(change.difference))
    was, is_ = before["totals"], now["totals"]
    return ProfileChange(
        before=_side(before),
        now=_side(now),
        wall_seconds_before=_seconds(was["wall_seconds"]),
        wall_seconds=_seconds(is_["wall_seconds"]),
        kernel_seconds_before=_seconds(was["kernel_seconds"]),
        kernel_seconds=_seconds(is_["kernel_seconds"]),
        nodes=tuple(nodes),
        differ=not sides[0].keys() & sides[1].keys(),
    )


def _side(data: Mapping[str, Any]) -> str:
    return f"{Path(data['model']).name}, {data['device']}, {data['precision']}"


def _seconds(value: Any) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(value)
    return float(value)


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.1f}"

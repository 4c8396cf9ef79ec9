"""The end of the search: what was tried as a whole, and why each change is in the plan or not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from clgpu_delegate.measure.mixing.changes import Change, Ids, names_of, precision_change
from clgpu_delegate.measure.mixing.trials import Subject
from clgpu_delegate.precision import (
    ChannelMeans,
    Int8Scale,
    PrecisionChange,
    PrecisionPlan,
    PrecisionPoint,
)

Name = tuple[str, frozenset[int]]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A plan that may be the result."""

    ids: Ids
    scales: tuple[Int8Scale, ...]
    means: tuple[ChannelMeans, ...]
    text: str
    """The value of the option."""

    names: set[Name]
    """Of its changes; empty of a plan that the search began with."""

    gain: float
    """Seconds of an inference that it is expected to save."""


@dataclasses.dataclass(frozen=True)
class Held:
    """A candidate that holds the bound on the samples held back."""

    candidate: Candidate
    error: float
    bytes: int
    """Peak of device memory."""


def ids_of(plan: PrecisionPlan) -> Ids:
    """What a plan lists."""
    return Ids(
        half=set(plan.half),
        int8=set(plan.int8),
        tf32=set(plan.tf32),
        half_sums=set(plan.half_sums),
        bfloat=set(plan.bfloat),
        integers=set(plan.integers),
        bf16_pairs=set(plan.bf16_pairs),
    )


def started(plan: PrecisionPlan, bound: float | None, device: str) -> Candidate:
    """A plan that was made before, with another bound; its gain is known on its own device."""
    ids = ids_of(plan)
    times = {point.name: point.seconds for point in plan.points}
    known = plan.device == device and {"fp32", "mixed"} <= times.keys()
    gain = times["fp32"] - times["mixed"] if known else 0.0
    text = ids.text(plan.model, bound, plan.scales, plan.means)
    return Candidate(ids, plan.scales, plan.means, text, set(), gain)


def named_point(point: PrecisionPoint, name: str, ids: Ids) -> PrecisionPoint:
    """The point of a candidate, with the sizes of its lists."""
    counts = {field: len(numbers) for field, numbers in ids._asdict().items()}
    return dataclasses.replace(point, name=name, **counts)


class Reasons:
    """Why changes are in a plan or not, from what the search did with them."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._offered: dict[Name, Change] = {}
        self.rejected: set[Name] = set()
        """What was tried beside the best, and did not hold the bound."""

        self.slow: set[int] = set()
        """Nodes of integers that were given up, as they were slower with their conversions."""

        self.found: set[Name] = set()
        """What held the bound on the samples of the search."""

        self.held: set[Name] = set()
        """The part of it that held it on the samples held back."""

        self.ended = ""
        """``"budget"`` or ``"interrupted"``, if that ended the search."""

    def offer(self, changes: Iterable[Change]) -> None:
        """Remember what may change, whether it is measured alone or not."""
        for change in changes:
            for part in change.single:
                self._offered[part.name] = part

    def changes(self, measured: Sequence[Change], ids: Ids) -> tuple[PrecisionChange, ...]:
        """Those that were measured alone, then all others; ``ids`` has what the plan takes."""
        alone = names_of(measured)
        others = [part for name, part in self._offered.items() if name not in alone]
        return (
            *(precision_change(c, ids, self._of(c, ids, True)) for c in measured),
            *(precision_change(c, ids, self._of(c, ids, False), measured=False) for c in others),
        )

    def _of(self, change: Change, ids: Ids, measured: bool) -> str:
        left = [part for part in change.single if not part.ids <= ids.taken(part.kind)]
        if not left:
            return "holds"
        part = left[0]
        if part.kind == "weights" and part.ids <= ids.int8:
            return "int8"
        if measured and len(left) == len(change.single) and not self._holds(change):
            return "error"
        return self._saves_nothing(part, measured) or self._of_the_whole(part)

    def _holds(self, change: Change) -> bool:
        return change.error <= self._subject.max_error

    def _saves_nothing(self, part: Change, measured: bool) -> str:
        if part.kind == "integers" and part.ids & self.slow:
            return "slower"
        if measured:
            return ""
        if self._subject.prefer == "time":
            return "slower" if part.gain <= 0 else ""
        return "no_memory" if part.bytes <= 0 else ""

    def _of_the_whole(self, part: Change) -> str:
        if part.name in self.found:
            return "whole" if part.name in self.held else "held_back"
        return self.ended if self.ended and part.name not in self.rejected else "bound"

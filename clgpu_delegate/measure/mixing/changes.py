"""What a plan of precisions may change in a model, alone and in groups."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from clgpu_delegate.precision import ChannelMeans, Int8Scale, PrecisionChange, plan_text

KINDS = ("results", "weights", "int8", "factors", "sums", "bfloat", "integers", "pairs")
"""What changes: tensors that kernels write or constants that they read become half, weights become
int8, factors of products are rounded to TF32, products are added in half, tensors that kernels
write or constants that they read become bfloat16, nodes compute with int8, factors of products are
sums of two bfloat16 numbers."""

SEVERAL = "several"  # in place of a kind: of changes that are joined, see `Change.parts`


@dataclasses.dataclass(frozen=True)
class Change:
    """Tensors and nodes that change their precision together."""

    kind: str
    """One of `KINDS`, or ``"several"`` of a group whose parts are of more than one."""

    ids: frozenset[int]
    """Tensors; of factors, pairs, sums and integers, nodes. None of ``"several"``."""

    op: str
    """Operation of its first node."""

    gain: float
    """Seconds of an inference that it is expected to save."""

    bytes: int
    """What its tensors take less."""

    error: float = math.inf
    """At the outputs, where nothing else changes."""

    peak: int = 0
    """Peak of device memory, where nothing else changes."""

    parts: tuple[Change, ...] = ()
    """The changes of single nodes that it joins; empty of one of these."""

    node: int = 0
    """The first of its nodes."""

    @property
    def name(self) -> tuple[str, frozenset[int]]:
        """What it changes, whatever its error is."""
        return self.kind, self.ids

    @property
    def single(self) -> tuple[Change, ...]:
        """Its parts, or itself."""
        return self.parts or (self,)


class Ids(NamedTuple):
    """Tensors and nodes of a plan."""

    half: set[int]
    int8: set[int]
    tf32: set[int]
    half_sums: set[int]
    bfloat: set[int]
    integers: set[int]
    bf16_pairs: set[int]

    def text(
        self,
        model: str,
        bound: float | None,
        scales: Iterable[Int8Scale],
        means: Iterable[ChannelMeans],
    ) -> str:
        """The form in which the option `precision` has them; see `precision.plan_text`."""
        return plan_text(
            model,
            bound,
            self.half,
            self.int8,
            self.tf32,
            self.half_sums,
            self.bfloat,
            self.integers,
            scales,
            means,
            self.bf16_pairs,
        )

    def of(self, kind: str) -> set[int]:
        own = {
            "int8": self.int8,
            "factors": self.tf32,
            "sums": self.half_sums,
            "bfloat": self.bfloat,
            "integers": self.integers,
            "pairs": self.bf16_pairs,
        }
        return own.get(kind, self.half)

    def taken(self, kind: str) -> set[int]:
        """The same without weights listed as half that are int8."""
        return self.half - self.int8 if kind == "weights" else self.of(kind)


def united(changes: Iterable[Change]) -> Ids:
    """What all of these change."""
    ids = Ids(set(), set(), set(), set(), set(), set(), set())
    for change in changes:
        for part in change.single:
            ids.of(part.kind).update(part.ids)
    ids.bf16_pairs.difference_update(ids.tf32)
    ids.half.difference_update(ids.bfloat)  # a part of a group in half may hold the bound, too
    return ids


def precision_change(
    change: Change, ids: Ids, reason: str = "", *, measured: bool = True
) -> PrecisionChange:
    """A change as plans tell it; ``ids`` has what the plan takes."""
    tensors: set[int] = set()
    nodes: set[int] = set()
    taken = 0
    for part in change.single:
        of_nodes = part.kind in ("factors", "sums", "integers", "pairs")
        (nodes if of_nodes else tensors).update(part.ids)
        taken += len(ids.taken(part.kind).intersection(part.ids))
    return PrecisionChange(
        op=change.op,
        kind=change.kind,
        tensors=tuple(sorted(tensors)),
        nodes=tuple(sorted(nodes)),
        error=change.error if measured else math.inf,
        seconds=change.gain,
        bytes=change.bytes,
        taken=taken,
        measured=measured,
        reason=reason,
    )


def names_of(changes: Iterable[Change]) -> set[tuple[str, frozenset[int]]]:
    """Of single nodes: what all of these change, whatever their errors and groups are."""
    return {part.name for change in changes for part in change.single}


def parts_of(changes: Iterable[Change], wanted: Callable[[Change], bool]) -> list[Change]:
    """The changes without the parts that are not wanted; errors add up as their squares do."""
    found = []
    for change in changes:
        own = [part for part in change.single if wanted(part)]
        if len(own) == len(change.single):
            found.append(change)
        elif own:
            error = change.error * math.sqrt(len(own) / len(change.single))
            found.append(dataclasses.replace(joined(own), error=error))
    return found


def joined(changes: Sequence[Change]) -> Change:
    """One change of all their parts."""
    if len(changes) == 1:
        return changes[0]
    kinds = {change.kind for change in changes}
    return Change(
        kind=changes[0].kind if len(kinds) == 1 else SEVERAL,
        ids=frozenset(i for change in changes for i in change.ids if len(kinds) == 1),
        op=changes[0].op,
        gain=sum(change.gain for change in changes),
        bytes=sum(change.bytes for change in changes),
        error=max(change.error for change in changes),
        parts=tuple(part for change in changes for part in change.single),
        node=changes[0].node,
    )


def halved(change: Change) -> list[Change]:
    """Its first and its second half; itself where it is of one node."""
    middle = len(change.parts) // 2
    if not middle:
        return [change]
    # Errors add up as their squares do.
    return [
        dataclasses.replace(
            half, error=change.error * math.sqrt(len(half.single) / len(change.parts))
        )
        for half in (joined(change.parts[:middle]), joined(change.parts[middle:]))
    ]


def grouped(changes: Sequence[Change], most: int, *, together: bool = False) -> list[Change]:
    """Neighbours joined to at most this many groups, of one kind of change each.

    With ``together``, of all kinds, in the order of their nodes.
    """
    if len(changes) <= most:
        return list(changes)
    groups = []
    if together:
        order = sorted(changes, key=lambda change: change.node)
        ends = np.linspace(0, len(order), most + 1).astype(int)
        return [joined(order[a:b]) for a, b in zip(ends, ends[1:]) if b > a]
    for kind in KINDS:
        alike = [change for change in changes if change.kind == kind]
        count = min(max(1, most * len(alike) // len(changes)), len(alike))
        bounds = np.linspace(0, len(alike), count + 1).astype(int)
        groups += [joined(alike[a:b]) for a, b in zip(bounds, bounds[1:]) if b > a]
    return groups

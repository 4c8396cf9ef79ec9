"""A plan as text that people can review: a line for each engine, with its nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from bench.plans.making import Made
from clgpu_delegate import Node

_COLUMN = 42  # column of an engine's nodes, if its name is short enough
_INDENT = "  "


def plan_text(made: Made) -> list[str]:
    """The lines of a plan.

    ``made`` is the result of `Delegate.explain`, or a sentence if there is no plan. Equal plans
    have equal lines: these contain neither the device's name nor times.
    """
    if isinstance(made, str):
        return [f"{_INDENT}no plan: {made}"]
    partitions = made.partitions
    weights = sum(p.weights_bytes for p in partitions)
    moved = sum(p.moved_bytes for p in partitions)
    lines = [
        f"nodes {made.claimed} of {made.total}, partitions {len(partitions)}, "
        f"launches {sum(p.launches for p in partitions)}",
        f"peak {made.peak_bytes:,}, arena {made.arena_bytes:,}, weights {weights:,} bytes"
        + (f", moved {moved:,}" if moved else ""),
        *(f"note: {note}" for note in made.notes),
        *_engines(made.nodes),
    ]
    return [_INDENT + line for line in lines]


def _engines(nodes: Iterable[Node]) -> list[str]:
    """A line for each way to compute nodes, in the order in which the model needs them."""
    found: dict[str, list[int]] = {}
    fused: dict[int, list[int]] = {}
    for node in nodes:
        if node.candidate:
            found.setdefault(f"{node.family}/{node.candidate}", []).append(node.index)
        elif node.fused_into is not None:
            fused.setdefault(node.fused_into, []).append(node.index)
        elif node.claimed:
            found.setdefault(node.reason or "nothing to do", []).append(node.index)
        else:
            found.setdefault(f"CPU: {node.reason}", []).append(node.index)
    lines = [f"{name:<{_COLUMN}} {_ranges(indices)}" for name, indices in sorted(found.items())]
    if fused:
        parts = [f"{_ranges(indices, ',')}>{into}" for into, indices in sorted(fused.items())]
        lines.append(f"{'fused':<{_COLUMN}} {' '.join(parts)}")
    return lines


def _ranges(numbers: Sequence[int], separator: str = " ") -> str:
    """Ascending numbers as ``0 2 5-7``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return separator.join("-".join(map(str, part)) for part in parts)


def snapshot_text(head: Sequence[str], blocks: Mapping[str, Sequence[str]]) -> str:
    """A snapshot: its head, then the plans by title. A repeated plan refers to the earlier one."""
    parts = ["\n".join(head)]
    titles: dict[tuple[str, ...], str] = {}
    for title, lines in blocks.items():
        # Remarks differ between equal plans: "precision tf32 is fp32 here".
        notes = [line for line in lines if line.startswith(_NOTE)]
        body = tuple(line for line in lines if line not in notes)
        earlier = titles.setdefault(body, title)
        if earlier != title:
            notes.append(f"{_INDENT}the same plan as {earlier}")
        parts.append("\n".join([title, *(lines if earlier == title else notes)]))
    return "\n\n".join(parts) + "\n"


_NOTE = f"{_INDENT}note: "


def blocks_of(snapshot: str) -> dict[str, list[str]]:
    """The plans of a snapshot by title, as `plan_text` gives them."""
    blocks: dict[str, list[str]] = {}
    for part in snapshot.strip("\n").split("\n\n")[1:]:
        title, *lines = part.split("\n")
        same = f"{_INDENT}the same plan as "
        if lines and lines[-1].startswith(same):
            earlier = blocks[lines[-1].removeprefix(same)]
            body = [line for line in earlier if not line.startswith(_NOTE)]
            notes = lines[:-1]
            lines = [*body[:2], *notes, *body[2:]]
        blocks[title] = lines
    return blocks


def digest_of(snapshot: str) -> str:
    """Digest (16 hexadecimal digits) of the plans of a snapshot, without its head."""
    blocks = blocks_of(snapshot)
    text = "\n".join(line for title, lines in blocks.items() for line in [title, *lines])
    return hashlib.sha256(text.encode()).hexdigest()[:16]

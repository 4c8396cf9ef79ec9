"""The tensors that cross the borders of partitions, and the cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Border:
    """An input or output of a partition, which crosses its border in every inference."""

    tensor: str
    """Its name."""

    bytes: int
    """On the device, and over the bus where it is copied."""

    shape: tuple[int, ...]

    road: str
    """``"copy"``, ``"mapped"``, or ``"host_pointer"``: device and host share it, nothing is copied;
    ``"lent"``: it stays on the device, from one stage of a partition to another;
    as planned, see `Delegate.stats` for the one that was taken."""

    other: str
    """Who writes an input or reads an output: ``"model"``, an input or output of the model;
    ``"CPU"``, a node there; ``"partition 1"``, another partition."""

    @staticmethod
    def of(entries: Iterable[Mapping[str, Any]], key: str) -> tuple[Border, ...]:
        """Of `Explanation.to_dict`; ``key`` is ``"from"`` or ``"to"``."""
        return tuple(
            Border(e["tensor"], e["bytes"], tuple(e["shape"]), e["road"], e[key]) for e in entries
        )


def complete(data: Mapping[str, Any]) -> None:
    """Add ``from`` and ``to`` to the inputs and outputs of the partitions of an explanation."""
    writers: dict[int, list[Any]] = {}
    readers: dict[int, list[Any]] = {}
    for node in data["nodes"]:
        for ids, nodes in ((node["input_ids"], readers), (node["output_ids"], writers)):
            for tensor in ids:
                nodes.setdefault(tensor, []).append(node)
    for index, partition in enumerate(data["partitions"]):
        for entry in partition["inputs"]:
            entry["from"] = _side(writers.get(entry["id"], []), index)
        for entry in partition["outputs"]:
            entry["to"] = _side(readers.get(entry["id"], []), index)


def _side(nodes: Iterable[Mapping[str, Any]], own: int) -> str:
    """Where the nodes outside the partition are; the CPU, if any is there."""
    others = [node for node in nodes if not node["claimed"] or node["partition"] != own]
    if any(not node["claimed"] for node in others):
        return "CPU"
    return f"partition {others[0]['partition']}" if others else "model"

"""Where a model's tensors lie in device memory, and when."""

from __future__ import annotations

import copy
import dataclasses
import json
import string
from collections.abc import Iterable, Mapping
from typing import Any

from clgpu_delegate.base.rendering import Shown

_WIDTH = 100  # columns of str()
_ROWS = 24  # of the largest object
_NAMED = 26  # tensors of an object that the legend names
_LETTERS = string.ascii_lowercase + string.ascii_uppercase + string.digits
_UNITS = ("B", "KiB", "MiB", "GiB")


@dataclasses.dataclass(frozen=True)
class Block:
    """A tensor in an object.

    Examples
    --------
    >>> partition = clgpu_delegate.map_memory("model.tflite").partitions[0]
    >>> {block.kind for object_ in partition.objects for block in object_.blocks} <= {
    ...     "arena", "scratch", "weights"
    ... }
    True
    """

    tensor: str
    """Names of the tensors that are one after the other in the same place, separated by commas."""

    offset: int
    """Bytes from the start of the object."""

    bytes: int

    first: int
    """First kernel launch of an inference that needs it; -1: an input is uploaded to it."""

    last: int
    """Last launch that needs it; the number of launches: it is downloaded."""

    kind: str
    """``"arena"``; ``"scratch"``, memory of a kernel's own; or ``"weights"``, kept between runs."""


@dataclasses.dataclass(frozen=True)
class MemoryObject:
    """An OpenCL memory object.

    Examples
    --------
    >>> partition = clgpu_delegate.map_memory("model.tflite").partitions[0]
    >>> all(object_.bytes > 0 for object_ in partition.objects)
    True
    """

    kind: str
    """``"arena"`` or ``"weights"``."""

    bytes: int
    blocks: tuple[Block, ...]


@dataclasses.dataclass(frozen=True)
class PartitionMemory:
    """The objects of one partition.

    Examples
    --------
    >>> partition = clgpu_delegate.map_memory("model.tflite").partitions[0]
    >>> partition.launches
    3
    """

    launches: int
    """Kernel launches of an inference."""

    layout: str
    """The strategy by which the blocks lie in the arena."""

    objects: tuple[MemoryObject, ...]


class MemoryMap(Shown):
    """Objects and blocks of the model a delegate was last given; ``str()`` draws them.

    Examples
    --------
    >>> memory = clgpu_delegate.map_memory("model.tflite")
    >>> len(memory.partitions)
    1
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = copy.deepcopy(dict(data))
        self.partitions: tuple[PartitionMemory, ...] = tuple(
            PartitionMemory(
                entry["launches"], entry["layout"], tuple(map(_memory_object, entry["objects"]))
            )
            for entry in self._data["partitions"]
        )
        """In the order of `Explanation.partitions`."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON."""
        return copy.deepcopy(self._data)

    def to_json(self) -> str:
        """All of it as a JSON text."""
        return json.dumps(self._data, indent=2)

    def __str__(self) -> str:
        lines: list[str] = []
        for number, partition in enumerate(self.partitions):
            lines += _draw_partition(number, partition)
        return "\n".join(lines) if lines else "no model is on the device"

    def __repr__(self) -> str:
        total = sum(item.bytes for part in self.partitions for item in part.objects)
        return f"<MemoryMap: {len(self.partitions)} partitions, {_size(total)}>"


def _memory_object(entry: Mapping[str, Any]) -> MemoryObject:
    blocks = tuple(Block(**block) for block in entry["blocks"])
    return MemoryObject(entry["kind"], entry["bytes"], blocks)


def _draw_partition(number: int, partition: PartitionMemory) -> list[str]:
    arena = [item for item in partition.objects if item.kind == "arena"]
    weights = [item.bytes for item in partition.objects if item.kind == "weights"]
    lines = [
        f"partition {number}: {partition.launches} launches, arena "
        f"{_size(sum(item.bytes for item in arena))} in {_count(len(arena), 'object')} "
        f"({partition.layout}), weights {_size(sum(weights))} in {_count(len(weights), 'object')}"
    ]
    largest = max((item.bytes for item in arena), default=1)
    for index, item in enumerate(arena):
        rows = max(1, round(_ROWS * item.bytes / largest))
        lines += ["", f"object {index}, {_size(item.bytes)}"]
        lines += _draw(item, partition.launches, rows)
    return [*lines, ""]


def _draw(item: MemoryObject, launches: int, rows: int) -> list[str]:
    """Time goes from left to right, addresses grow downwards."""
    largest_first = sorted(item.blocks, key=lambda block: -block.bytes)
    letter = {
        block: _LETTERS[i] if i < len(_LETTERS) else "#" for i, block in enumerate(largest_first)
    }
    moments = launches + 2  # with the upload and the download
    columns = min(moments, _WIDTH - 12)
    lines = [" " * 12 + "upload, launch 0 ... download"]
    for row in range(rows):
        top, bottom = item.bytes * row / rows, item.bytes * (row + 1) / rows
        inside = [b for b in item.blocks if b.offset < bottom and top < b.offset + b.bytes]
        cells = ""
        for column in range(columns):
            first, last = moments * column // columns - 1, moments * (column + 1) // columns - 2
            alive = [b for b in inside if b.first <= last and first <= b.last]
            cells += letter[max(alive, key=lambda b: _overlap(b, top, bottom))] if alive else "."
        lines.append(f"{_size(int(top)):>10}  {cells}")
    return [*lines, *_legend(largest_first, letter)]


def _overlap(block: Block, top: float, bottom: float) -> float:
    return min(bottom, block.offset + block.bytes) - max(top, block.offset)


def _legend(blocks: Iterable[Block], letter: Mapping[Block, str]) -> list[str]:
    lines = []
    for block in list(blocks)[:_NAMED]:
        text = f"  {letter[block]} {_size(block.bytes):>10} at {_size(block.offset):>10}"
        text += f", {block.first} to {block.last}: {block.tensor}"
        text += " (scratch)" if block.kind == "scratch" else ""
        lines.append(text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "...")
    left = len(letter) - _NAMED
    return [*lines, f"  and {left} more"] if left > 0 else lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _size(count: int) -> str:
    value = float(count)
    for unit in _UNITS[:-1]:
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_UNITS[-1]}"

"""What a delegate did with a model, node by node."""

from __future__ import annotations

import collections
import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clgpu_delegate.base.rendering import Block, Group, Shown, Text, as_text, size
from clgpu_delegate.report import borders, hints, planned
from clgpu_delegate.report.node_table import node_table, plan_lines, reasons
from clgpu_delegate.report.parts import (
    EngineFault,
    Failure,
    Mixed,
    Node,
    Partition,
    PassStep,
    Tensor,
)
from clgpu_delegate.report.placed import Placed
from clgpu_delegate.report.verification import Verification

if TYPE_CHECKING:
    from clgpu_delegate.precision import PrecisionPlan

_INTEGERS = ("int8", "uint8", "int16")


class Explanation(Shown):
    """What a delegate did with the model it was last given; ``str()`` makes a table of it.

    Examples
    --------
    >>> explanation = clgpu_delegate.explain_model("model.tflite", exclude="SOFTMAX")
    >>> explanation.claimed, explanation.total
    (3, 4)
    >>> explanation.nodes[3].reason
    "left on the CPU by the option 'exclude'"
    """

    def __init__(self, data: Mapping[str, Any], plan: PrecisionPlan | None = None) -> None:
        self._data = copy.deepcopy(dict(data))
        borders.complete(self._data)
        planned.complete(self._data, plan)
        for entry in self._data["nodes"]:
            entry["hint"] = hints.hint(entry)
        self.device: str = self._data["device"]
        """Name of the device."""

        self.precision: str = self._data["precision"]
        """``"fp32"``, ``"fp16"``, ``"tf32"`` or ``"mixed"``."""

        self.has_state: bool = self._data.get("has_state", False)  # earlier versions lack it
        """Whether the model keeps values from one inference to the next."""

        mixed = self._data.get("mixed")
        self.mixed: Mixed | None = None if mixed is None else Mixed.from_data(mixed)
        """The plan of ``precision="mixed"``; None with another precision."""

        self.nodes: tuple[Node, ...] = tuple(map(Node.from_data, self._data["nodes"]))
        """The nodes of the original graph, in order."""

        self.tensors: tuple[Tensor, ...] = tuple(Tensor(**t) for t in self._data["tensors"])
        """What they read and write: the edges of the graph."""

        self.partitions: tuple[Partition, ...] = tuple(
            map(Partition.from_data, self._data["partitions"])
        )
        """What was put on the device."""

        self.steps: tuple[PassStep, ...] = tuple(
            PassStep(i, s["pass"], s["outcome"], s["node"], s["into"], s["detail"], s.get("tensor"))
            for i, entry in enumerate(self._data["partitions"])
            for s in entry.get("steps", ())  # recorded by earlier versions, it is not there
        )
        """What the passes did that rewrite the graph of a partition, in order."""

        self.arena_bytes: int = self._data["arena_bytes"]
        """Device memory of all intermediate tensors, in bytes."""

        self.weights_bytes: int = self._data["weights_bytes"]
        """Device memory of all constants, in bytes; what partitions share counts once."""

        self.carried_bytes: int = self._data.get("carried_bytes", 0)  # earlier versions lack it
        """Device memory of the tensors of the option ``carry``, in bytes."""

        self.peak_bytes: int = self._data["peak_bytes"]
        """Device memory at the worst moment, loading included, in bytes; known before it is
        allocated. Like the three above it is that of all graphs of the interpreter, such as the
        signatures of a language model; the rest of the report is of the main graph."""

        self.notes: tuple[str, ...] = tuple(self._data["notes"])
        """Remarks on the whole, such as a kernel that the device failed to build."""

        self.faults: tuple[EngineFault, ...] = tuple(
            EngineFault(**fault) for fault in self._data.get("faults", ())
        )
        """Faults of kernels on this device."""

        failure = self._data.get("failure")
        self.failure: Failure | None = None if failure is None else Failure.from_data(failure)
        """The last error that was reported to the runtime for this model; None without one."""

        self.verification = Verification.from_data(self._data.get("verification"))
        """What comparing with the CPU's kernels has shown; None with ``verify="off"``."""

    def following(self, plan: PrecisionPlan) -> Explanation:
        """The same with what was measured for the plan of precisions that the model follows."""
        return Explanation(self._data, plan)

    @property
    def placement(self) -> Placed | None:
        """Why these nodes are on the device; None with ``placement="all"``."""
        return Placed.from_data(self._data.get("placement"))

    @property
    def arithmetic(self) -> str:
        """What the device computes with: the precision, the types of quantised nodes, or both.

        Such as ``"fp16"``, ``"int8"`` or ``"fp32 and int8"``.
        """
        types = {tensor.id: tensor.type for tensor in self.tensors if not tensor.constant}
        found: set[str] = set()
        for node in self.nodes:
            if node.claimed:
                taken = {types.get(i, "") for i in node.input_ids}
                found |= taken & {types.get(i, "") for i in node.output_ids}
        integers = [name for name in _INTEGERS if name in found]
        floats = (
            [self.precision] if not integers or found & {"float32", "float16", "bfloat16"} else []
        )
        return " and ".join([*floats, *integers])

    @property
    def is_quantized(self) -> bool:
        """Whether tensors that are not constants have integers of 8 or 16 bits.

        TensorFlow Lite's reference kernels define the results of such a model.
        """
        return any(t.type in _INTEGERS and not t.constant for t in self.tensors)

    @property
    def claimed(self) -> int:
        """Number of nodes that the delegate runs."""
        return sum(node.claimed for node in self.nodes)

    @property
    def total(self) -> int:
        """Number of nodes of the graph."""
        return len(self.nodes)

    @property
    def partition_count(self) -> int:
        """Number of partitions, each of which may have several stages in `partitions`."""
        return sum(partition.stage_of is None for partition in self.partitions)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON."""
        return copy.deepcopy(self._data)

    def summary(self) -> str:
        """One line: device, precision, nodes, partitions, memory."""
        if not self.nodes:
            return f"{self.device}, {self.precision}: no model has been given to this delegate yet"
        stages, count = len(self.partitions), self.partition_count
        parts = "partition" if count == 1 else "partitions"
        if stages > count:
            parts += f" in {stages} stages"
        open_ = sum(bool(partition.unplanned) for partition in self.partitions)
        known = (
            f"{sum(partition.launches for partition in self.partitions)} kernel launches, "
            f"arena {size(self.arena_bytes)}, "
            f"weights {size(self.weights_bytes)}, "
            f"peak {size(self.peak_bytes)}"
        )
        if open_:
            rest = f"; known of the other{'s' * (stages - open_ > 1)}: {known}"
            known = f"{open_} of them not planned yet" + (rest if open_ < stages else "")
        return (
            f"{self.device}, {self.arithmetic}: {self.claimed} of {self.total} nodes claimed, "
            f"{count} {parts}, {known}"
        )

    def __rich__(self) -> Group:
        body: list[Block] = []
        if self.nodes:
            body = [
                node_table(self.nodes, self.partitions, self.mixed is not None),
                *reasons(self.nodes),
                *plan_lines(self.nodes),
            ]
        crossings = [Text(f"{_title(i, p)}: {_state(p)}") for i, p in enumerate(self.partitions)]
        notes = [Text(f"note: {note}") for note in self.notes]
        checks = self.verification.partitions if self.verification else ()
        lines = [Text(f"verification: {check}") for check in checks]
        if self.mixed is not None and self.mixed.source:
            lines.insert(0, Text(f"precision: {self._precisions()}"))
        if self.placement is not None:
            lines.insert(0, Text(f"placement: {self.placement}"))
        return Group(Text(self.summary()), *body, *crossings, *lines, *notes)

    def _precisions(self) -> str:
        """One line: how much of the model a plan computes in less than float."""
        assert self.mixed is not None
        halves = sum(t.storage == "float16" for t in self.tensors)
        bytes_ = sum(t.id in self.mixed.int8 and t.storage == "int8" for t in self.tensors)
        wide = sum(t.storage == "bfloat16" for t in self.tensors)
        known = bytes_ + wide + sum(t.storage in ("float16", "float32") for t in self.tensors)
        rounded = sum(node.precision == "tf32" for node in self.nodes)
        pairs = sum(node.precision == "bf16_pairs" for node in self.nodes)
        added = sum(node.adds_halves for node in self.nodes)
        made = ("quantize_activations", "applied")
        integers = len({s.node for s in self.steps if (s.pass_name, s.outcome) == made})
        bound = self.mixed.error
        return (
            f"plan {self.mixed.source}, {halves} of {known} float tensors as half, "
            f"{wide} as bfloat16, {bytes_} as int8, {rounded} nodes with tf32, "
            f"{pairs} with bfloat16 pairs, "
            f"{added} with half sums, {integers} with integers"
            + ("" if bound is None else f", made for an error of {bound:.2g}")
        )

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"<Explanation: {self.summary()}>"


def _title(number: int, partition: Partition) -> str:
    of = partition.stage_of
    return f"partition {number}" + ("" if of is None else f", a later stage of partition {of}")


def _state(partition: Partition) -> str:
    """One line: how it is computed."""
    if partition.on_cpu:
        return f"computed by the CPU's kernels: {partition.on_cpu}"
    if partition.unplanned:
        return (
            f"not planned yet: {partition.unplanned}. Launches and memory are known after an "
            "inference, or when the inputs have other shapes (--shape, resize_tensor_input)"
        )
    return _crossing(partition)


def _crossing(partition: Partition) -> str:
    """One line: what an inference copies in and out, and moves out of the way and back."""
    sides = []
    for verb, side, preposition in (
        ("takes", partition.inputs, "from"),
        ("gives", partition.outputs, "to"),
    ):
        parts = collections.Counter[tuple[str, bool]]()
        for border in side:
            parts[border.other, border.road in ("host_pointer", "lent")] += border.bytes
        sides += [
            f"{verb} {size(count)} {preposition} {_name(other)}{' in place' if in_place else ''}"
            for (other, in_place), count in parts.items()
        ]
    if partition.moved_bytes:
        sides.append(f"moves {size(partition.moved_bytes)} to the host and back")
    return ", ".join(sides)


def _name(other: str) -> str:
    return other if other.startswith("partition") else f"the {other}"

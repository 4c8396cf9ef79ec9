"""What a delegate did with a model, node by node."""

from __future__ import annotations

import collections
import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text, extents, size
from clgpu_delegate.report import borders, hints
from clgpu_delegate.report.borders import Border
from clgpu_delegate.report.placed import Placed
from clgpu_delegate.report.verification import Verification


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why a node stays on the CPU, for programs; `Node.reason` has the same in words.

    Examples
    --------
    >>> nodes = clgpu_delegate.explain_model("model.tflite", exclude="SOFTMAX").nodes
    >>> nodes[3].refusal.code, nodes[3].refusal.what
    ('option', 'exclude')
    """

    code: str
    """Such as ``"type"``, ``"rank"``, ``"run_time"``: docs/refusals.md lists them. New ones may
    come, none changes its meaning."""

    what: str
    """What is not supported: an operand (``"input 0"``, ``"bias"``), a parameter, an operation or
    the name of an option; empty where it is the node or the model as a whole."""

    has: str
    """What it is, such as ``"int8"``; empty where the reason does not depend on it."""

    supported: tuple[str, ...]
    """What it may be instead."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | None) -> Refusal | None:
        """Of a node's ``"refusal"`` in `Explanation.to_dict`."""
        if data is None:
            return None
        return cls(data["code"], data["what"], data["has"], tuple(data["supported"]))


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of the original graph.

    Examples
    --------
    >>> node = clgpu_delegate.explain_model("model.tflite").nodes[0]
    >>> node.op, node.claimed, node.outputs
    ('CONV_2D', True, ((1, 4, 4, 3),))
    """

    index: int
    op: str
    claimed: bool
    """Whether the delegate runs it; else the runtime does, on the CPU."""

    reason: str
    """Why it was left on the CPU, or how it is done on the device."""

    partition: int | None
    """Position in `Explanation.partitions`; None for a node on the CPU."""

    family: str
    """Whose kernels compute it, as the option `engines` names it; empty where none runs."""

    candidate: str
    """The kernel chosen; empty where none runs (constants, views, fused nodes)."""

    chosen: str
    """Why that kernel: ``"default"``, the first that works; ``"forced"`` by the option `engines`;
    ``"tuned"``, measured as the fastest; empty where none runs."""

    candidates: tuple[str, ...]
    """All that could run, best guess first."""

    refused: Mapping[str, str]
    """Candidates that cannot compute this node on this device, and why."""

    inputs: tuple[tuple[int, ...], ...]
    """Shapes of its inputs."""

    outputs: tuple[tuple[int, ...], ...]
    """Shapes of its outputs."""

    input_ids: tuple[int, ...] = ()
    output_ids: tuple[int, ...] = ()
    """The tensors of these shapes, as the model counts them; an absent input has none."""

    adds_halves: bool = False
    """Whether the kernel rounds its sums to half on the way."""

    flops: float = 0.0
    """Arithmetic operations of an inference, two for each multiply-add; 0 where no kernel runs."""

    bytes_read: int = 0
    """Of its inputs and weights as the device stores them, each counted once."""

    bytes_written: int = 0
    """Of its outputs."""

    hint: str = ""
    """How the model could be rewritten so that the device takes a node that is on the CPU; empty
    where no way is known."""

    refusal: Refusal | None = None
    """Code and fields of the reason; None for a node on the device."""

    fused_into: int | None = None
    """Index of the node whose kernel computes this one, too; None where there is no such."""

    is_view: bool = False
    """Whether it computes nothing, and its output shares the memory of its input."""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """What nodes of the model read or write.

    Examples
    --------
    >>> explanation = clgpu_delegate.explain_model("model.tflite")
    >>> {tensor.type for tensor in explanation.tensors if not tensor.constant}
    {'float32'}
    """

    id: int
    """As the model counts."""

    name: str
    type: str
    """Of its elements, such as ``"float32"``."""

    bytes: int
    """In the memory of the runtime; 0 until the shape is known."""

    constant: bool
    """Whether the model stores it."""


@dataclasses.dataclass(frozen=True)
class PassStep:
    """What a pass over the graph of a partition did at a node, or why it did not.

    Examples
    --------
    >>> explanation = clgpu_delegate.explain_model("model.tflite")
    >>> {step.outcome for step in explanation.steps} <= {"applied", "declined", "skipped"}
    True
    """

    partition: int
    """Position in `Explanation.partitions`."""

    pass_name: str
    """Such as ``"fuse_activation"``: docs/architecture.md lists the passes."""

    outcome: str
    """``"applied"``: the graph has changed; ``"declined"``: the pass is for such nodes, and has
    left this one as it was; ``"skipped"``: an option keeps the pass from looking at any node."""

    node: int | None
    """Index of the node; None where it is about no node in particular."""

    into: int | None
    """Index of the node whose kernel computes it now; None where it is not merged."""

    detail: str
    """The reason, if it is declined or skipped; details, or nothing, if it is applied."""

    def __str__(self) -> str:
        node = "" if self.node is None else f" node {self.node}"
        into = "" if self.into is None else f", computed by node {self.into}"
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.pass_name} {self.outcome}{node}{into}{detail}"


@dataclasses.dataclass(frozen=True)
class Partition:
    """Neighbouring nodes that the delegate runs as one.

    Examples
    --------
    >>> (partition,) = clgpu_delegate.explain_model("model.tflite").partitions
    >>> partition.nodes
    (0, 1, 2, 3)
    """

    nodes: tuple[int, ...]
    launches: int
    """Kernels started per inference."""

    arena_bytes: int
    """Device memory that its intermediate tensors share."""

    weights_bytes: int
    """Device memory of its constants, uploaded once."""

    naive_bytes: int
    """What the arena would be if no tensors shared memory."""

    bound_bytes: int
    """What no arena can be smaller than: the most that is needed at one time."""

    peak_bytes: int
    """Device memory at its worst moment, loading included."""

    layout: str
    """The strategy by which the tensors lie in the arena."""

    moved_bytes: int = 0
    """Copied between device and host in the middle of an inference, so that it fits into memory."""

    inputs: tuple[Border, ...] = ()
    """What is uploaded, or taken where it lies."""

    outputs: tuple[Border, ...] = ()
    """What is downloaded, or left where it is."""

    on_cpu: str = ""
    """Why the CPU's kernels compute it with the present shapes; empty: the device computes it."""


@dataclasses.dataclass(frozen=True)
class EngineFault:
    """A kernel that is not used as it is meant to be on this device.

    Examples
    --------
    >>> explanation = clgpu_delegate.explain_model("model.tflite")
    >>> [fault.kernel for fault in explanation.faults]
    []
    """

    kernel: str
    """Family and candidate, such as ``"softmax/rows"``."""

    kind: str
    """``"fails"``: it does not build or run; ``"group"``: the driver allows smaller work-groups
    than it is made for; ``"numbers"``: verification has found wrong ones."""

    why: str


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error of the delegate, of which a runtime passes on the message alone.

    Examples
    --------
    >>> clgpu_delegate.explain_model("model.tflite").failure is None
    True
    """

    kind: str
    """The class, as `clgpu_delegate.errors` has it, such as ``"OpenCLError"``."""

    call: str
    """The OpenCL call that has failed; empty of other classes."""

    code: str
    """What that call gave, such as ``"CL_OUT_OF_RESOURCES (-5)"``."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Failure:
        """Of ``"failure"`` in `Explanation.to_dict`."""
        return cls(data["class"], data["call"], data["code"])


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

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = copy.deepcopy(dict(data))
        borders.complete(self._data)
        for entry in self._data["nodes"]:
            entry["hint"] = hints.hint(entry)
        self.device: str = self._data["device"]
        """Name of the device."""

        self.precision: str = self._data["precision"]
        """``"fp32"``, ``"fp16"`` or ``"tf32"``."""

        self.has_state: bool = self._data.get("has_state", False)  # earlier versions lack it
        """Whether the model keeps values from one inference to the next."""

        self.nodes: tuple[Node, ...] = tuple(_node(entry) for entry in self._data["nodes"])
        """The nodes of the original graph, in order."""

        self.tensors: tuple[Tensor, ...] = tuple(Tensor(**t) for t in self._data["tensors"])
        """What they read and write: the edges of the graph."""

        self.partitions: tuple[Partition, ...] = tuple(
            Partition(
                tuple(entry["nodes"]),
                entry["launches"],
                entry["arena_bytes"],
                entry["weights_bytes"],
                entry["naive_bytes"],
                entry["bound_bytes"],
                entry["peak_bytes"],
                entry["layout"],
                sum(move["bytes"] for move in entry["moves"]),
                Border.of(entry["inputs"], "from"),
                Border.of(entry["outputs"], "to"),
                entry.get("on_cpu", ""),  # recorded by earlier versions, it is not there
            )
            for entry in self._data["partitions"]
        )
        """What was put on the device."""

        self.steps: tuple[PassStep, ...] = tuple(
            PassStep(i, s["pass"], s["outcome"], s["node"], s["into"], s["detail"])
            for i, entry in enumerate(self._data["partitions"])
            for s in entry.get("steps", ())  # recorded by earlier versions, it is not there
        )
        """What the passes did that rewrite the graph of a partition, in order."""

        self.arena_bytes: int = self._data["arena_bytes"]
        """Device memory of all intermediate tensors."""

        self.peak_bytes: int = self._data["peak_bytes"]
        """Device memory at the worst moment, loading included; known before it is allocated."""

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
        integers = [name for name in ("int8", "uint8", "int16") if name in found]
        floats = [self.precision] if not integers or found & {"float32", "float16"} else []
        return " and ".join([*floats, *integers])

    @property
    def claimed(self) -> int:
        """Number of nodes that the delegate runs."""
        return sum(node.claimed for node in self.nodes)

    @property
    def total(self) -> int:
        """Number of nodes of the graph."""
        return len(self.nodes)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, ready for JSON."""
        return copy.deepcopy(self._data)

    def summary(self) -> str:
        """One line: device, precision, nodes, partitions, memory."""
        if not self.nodes:
            return f"{self.device}, {self.precision}: no model has been given to this delegate yet"
        count = len(self.partitions)
        weights = sum(partition.weights_bytes for partition in self.partitions)
        launches = sum(partition.launches for partition in self.partitions)
        return (
            f"{self.device}, {self.arithmetic}: {self.claimed} of {self.total} nodes claimed, "
            f"{count} {'partition' if count == 1 else 'partitions'}, {launches} kernel launches, "
            f"arena {size(self.arena_bytes)}, weights {size(weights)}, "
            f"peak {size(self.peak_bytes)}"
        )

    def __rich__(self) -> Group:
        table = Table()
        table.add_column("node", right=True)
        table.add_column("op")
        table.add_column("output")
        table.add_column("runs on")
        table.add_column("kernel", fold=True)
        table.add_column("reason", fold=True)
        for node in self.nodes:
            where = "CPU"
            if node.claimed:
                where = "device"
                if node.partition is not None:
                    on_cpu = self.partitions[node.partition].on_cpu
                    where = f"{'CPU' if on_cpu else 'device'} ({node.partition})"
            kernel = node.candidate + (" (tuned)" if node.chosen == "tuned" else "")
            reason = f"{node.reason}\nhint: {node.hint}" if node.hint else node.reason
            cells = (str(node.index), node.op, _shapes(node.outputs), where, kernel, reason)
            table.add_row(*map(Text, cells), style="" if node.claimed else "yellow")
        crossings = [Text(f"partition {i}: {_crossing(p)}") for i, p in enumerate(self.partitions)]
        notes = [Text(f"note: {note}") for note in self.notes]
        checks = self.verification.partitions if self.verification else ()
        lines = [Text(f"verification: {check}") for check in checks]
        if self.placement is not None:
            lines.insert(0, Text(f"placement: {self.placement}"))
        body = [table] if self.nodes else []
        return Group(Text(self.summary()), *body, *crossings, *lines, *notes)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"<Explanation: {self.summary()}>"


def _node(entry: Mapping[str, Any]) -> Node:
    return Node(
        index=entry["index"],
        op=entry["op"],
        claimed=entry["claimed"],
        reason=entry["reason"],
        partition=entry["partition"],
        family=entry["family"],
        candidate=entry["candidate"],
        chosen=entry["chosen"],
        candidates=tuple(entry["candidates"]),
        refused=dict(entry["refused"]),
        inputs=tuple(map(tuple, entry["inputs"])),
        outputs=tuple(map(tuple, entry["outputs"])),
        input_ids=tuple(entry["input_ids"]),
        output_ids=tuple(entry["output_ids"]),
        adds_halves=entry["adds_halves"],
        flops=entry["flops"],
        bytes_read=entry["bytes_read"],
        bytes_written=entry["bytes_written"],
        hint=entry["hint"],
        refusal=Refusal.from_data(entry.get("refusal")),
        fused_into=entry.get("fused_into"),
        is_view=entry.get("is_view", False),
    )


def _shapes(outputs: tuple[tuple[int, ...], ...]) -> str:
    """The first item, and how many more there are."""
    more = f" and {len(outputs) - 1}" if len(outputs) > 1 else ""
    return extents(outputs[0]) + more if outputs else ""


def _crossing(partition: Partition) -> str:
    """One line: what an inference copies in and out, and moves out of the way and back."""
    sides = []
    for verb, side, preposition in (
        ("takes", partition.inputs, "from"),
        ("gives", partition.outputs, "to"),
    ):
        parts = collections.Counter[tuple[str, bool]]()
        for border in side:
            parts[border.other, border.road == "host_pointer"] += border.bytes
        sides += [
            f"{verb} {size(count)} {preposition} {_name(other)}{' in place' if in_place else ''}"
            for (other, in_place), count in parts.items()
        ]
    if partition.moved_bytes:
        sides.append(f"moves {size(partition.moved_bytes)} to the host and back")
    return ", ".join(sides)


def _name(other: str) -> str:
    return other if other.startswith("partition") else f"the {other}"

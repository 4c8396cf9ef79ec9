"""What an explanation consists of: nodes, tensors, partitions and what happened to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from clgpu_delegate.report.borders import Border
from clgpu_delegate.report.planned import NodePlan

_OF_FLOATS = ("fp32", "fp16", "bf16", "tf32", "bf16_pairs")


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
    """Whether the kernel adds products in half, block by block (option `sums`)."""

    precision: str = ""
    """Of the numbers that the kernel computes with: ``"fp32"``, ``"fp16"`` (halves, which a
    kernel may make of floats: a half of each, or a sum of two), ``"tf32"`` (floats, and factors of
    products are rounded), ``"bf16_pairs"`` (floats, and factors are sums of two bfloat16 numbers),
    or a type of integers; empty where no kernel runs. Sums are float, or exact integers, unless
    `adds_halves`: see `sums`."""

    rounds_factors: bool = False
    """Whether its first input is stored as float, and tensor cores multiply TF32 numbers or halves
    that are made of it."""

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

    computed: str = "inference"
    """When: in each ``"inference"``; once, at ``"load"``, if it only depends on constants; while
    ``"planning"``, if it follows from shapes."""

    weights_storage: str = ""
    """Type in device memory of the largest constant that the model gives to the node, such as
    ``"float16"`` or ``"int8"``; empty where no kernel reads one."""

    plan: NodePlan | None = None
    """Why it has its precision, where a plan of precisions says so of it; None elsewhere. Of fused
    nodes the one whose kernel computes them has it."""

    @property
    def sums(self) -> str:
        """Type of the kernel's sums: ``"float"``, ``"half"``, ``"integer"``.

        ``"half"``: products are added in half, block by block, and the blocks in float. Empty where
        no kernel runs.
        """
        if not self.precision:
            return ""
        if self.adds_halves:
            return "half"
        return "float" if self.precision in _OF_FLOATS else "integer"

    @classmethod
    def from_data(cls, entry: Mapping[str, Any]) -> Node:
        """Of an entry of ``"nodes"`` in `Explanation.to_dict`."""
        return cls(
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
            rounds_factors=entry.get("rounds_factors", False),
            precision=entry.get("precision", ""),
            flops=entry["flops"],
            bytes_read=entry["bytes_read"],
            bytes_written=entry["bytes_written"],
            hint=entry["hint"],
            refusal=Refusal.from_data(entry.get("refusal")),
            fused_into=entry.get("fused_into"),
            is_view=entry.get("is_view", False),
            computed=entry.get("computed", "inference"),
            weights_storage=entry.get("weights_storage", ""),
            plan=NodePlan.from_data(entry.get("plan")),
        )


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

    storage: str = ""
    """Its type in device memory, such as ``"float16"``; empty where kernels neither read nor write
    it: on the CPU, or inside of a fused node."""


@dataclasses.dataclass(frozen=True)
class Mixed:
    """The plan that ``precision="mixed"`` follows.

    Examples
    --------
    >>> explanation = clgpu_delegate.explain_model("model.tflite", precision="mixed")
    >>> explanation.mixed.source, explanation.notes[0][:28]
    ('', 'precision mixed is fp32 here')
    """

    model: str
    """Digest of the model, as in `PrecisionPlan`."""

    source: str
    """``"given"`` as the option, ``"kept"`` in the cache, or empty: there is none, and all is
    float."""

    error: float | None
    """The relative L2 error that it was made for; None where another metric was bounded."""

    half: tuple[int, ...]
    """Tensors that it stores as half."""

    int8: tuple[int, ...]
    """Weights that it stores as int8."""

    tf32: tuple[int, ...]
    """Nodes with factors that may be rounded to TF32."""

    bf16_pairs: tuple[int, ...] = ()
    """Nodes with factors that may be sums of two bfloat16 numbers each."""

    half_sums: tuple[int, ...] = ()
    """Nodes whose products may be added in half."""

    bfloat: tuple[int, ...] = ()
    """Tensors that it stores as bfloat16."""

    integers: tuple[int, ...] = ()
    """Nodes that may compute with int8."""

    scales: tuple[tuple[int, float, int], ...] = ()
    """Of the tensors that these nodes read and write: tensor, scale, zero point."""

    means: tuple[tuple[int, str], ...] = ()
    """Tensors with means by which biases are corrected, and these, as in `ChannelMeans`."""

    device: str = ""
    """On which the plan was measured; empty where only its text is known."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Mixed:
        """Of ``"mixed"`` in `Explanation.to_dict`."""
        names = ("half", "bfloat", "int8", "tf32", "bf16_pairs", "half_sums", "integers")
        lists = {key: tuple(data.get(key, ())) for key in names}
        fields = ("tensor", "scale", "zero_point")
        scales = tuple(tuple(entry[f] for f in fields) for entry in data.get("scales", ()))
        means = tuple((entry["tensor"], entry["bits"]) for entry in data.get("means", ()))
        return cls(**{**data, **lists, "scales": scales, "means": means})


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

    tensor: int | None = None
    """The tensor of the model that it is about, as the model counts; None where it is about no
    single one."""

    def __str__(self) -> str:
        node = "" if self.node is None else f" node {self.node}"
        if self.tensor is not None:
            node += f", tensor {self.tensor}"
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
    """Device memory of its constants, uploaded once; with the option ``reuse`` also of what is
    kept from one inference to the next. All memory of graphs that loops and branches run counts
    here, too."""

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

    unplanned: str = ""
    """Why its launches and its memory are not known yet; empty once they are."""

    stage_of: int | None = None
    """The position of the partition of which it is a later stage: sizes follow from what earlier
    stages compute, so it is planned when these have run. None if it is not one."""

    @classmethod
    def from_data(cls, entry: Mapping[str, Any]) -> Partition:
        """Of an entry of ``"partitions"`` in `Explanation.to_dict`."""
        return cls(
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
            entry.get("unplanned", ""),
            entry.get("stage_of"),
        )


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

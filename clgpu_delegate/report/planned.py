"""Why nodes have the precision that they have, where a plan of precisions decides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from clgpu_delegate.precision import REASONS, PrecisionChange, PrecisionPlan

_PASS = "choose_storage"  # tells of tensors that a plan lists and that stay float
_KINDS = {
    "results": "results as half",
    "weights": "weights as half",
    "int8": "weights as int8",
    "bfloat": "bfloat16",
    "factors": "factors as TF32",
    "pairs": "factors as pairs of bfloat16",
    "sums": "sums as half",
    "integers": "integers",
    "several": "several of these",
}
_OUTCOMES = {"taken": "taken", "part": "taken in part", "left": "left"}


@dataclasses.dataclass(frozen=True)
class PlannedChange:
    """What a node might store or compute in less than float, and whether a plan has it.

    Examples
    --------
    >>> samples = np.random.default_rng(0).random((4, *x.shape), np.float32)
    >>> plan = clgpu_delegate.tune("model.tflite", samples, max_error=1e-3, budget="1s")
    >>> node = clgpu_delegate.explain_model("model.tflite", precision=plan).nodes[0]
    >>> {change.outcome for change in node.plan.changes} <= {"taken", "part", "left"}
    True
    """

    kind: str
    """As in `PrecisionChange`."""

    outcome: str
    """``"taken"``, ``"part"``: some of its tensors or nodes are in the plan; ``"left"``."""

    nodes: tuple[int, ...]
    """The nodes that were changed together, this one among them; the numbers below are of all."""

    error: float | None
    """At the outputs, where all else is float; infinite beyond half's range; None where it was not
    measured alone."""

    seconds: float
    """What it is expected to save of an inference; below 0 where it is slower."""

    bytes: int
    """What its tensors take less."""

    reason: str
    """Code of why, as in `PrecisionChange`."""

    @property
    def why(self) -> str:
        """The reason in words."""
        return REASONS.get(self.reason, self.reason)

    def __str__(self) -> str:
        error = "not measured alone" if self.error is None else f"error {self.error:.2g} alone"
        saved = f"{abs(self.seconds) * 1e6:.3g} us {'less' if self.seconds >= 0 else 'more'}"
        reason = f": {self.why}" if self.reason and self.outcome != "taken" else ""
        what = _KINDS.get(self.kind, self.kind)
        return f"{what} {_OUTCOMES[self.outcome]} ({error}, {saved}){reason}"


@dataclasses.dataclass(frozen=True)
class FloatTensor:
    """A tensor that a plan lists as half or bfloat16, and that stays float.

    Examples
    --------
    >>> clgpu_delegate.FloatTensor(tensor=4, reason="small tensor").reason
    'small tensor'
    """

    tensor: int
    """As the model counts it."""

    reason: str
    """``"small tensor"``, ``"constant beyond half"``, or what else it is."""

    def __str__(self) -> str:
        return f"tensor {self.tensor} stays float ({self.reason})"


@dataclasses.dataclass(frozen=True)
class NodePlan:
    """Why a node has the precision that it has.

    Examples
    --------
    >>> explanation = clgpu_delegate.explain_model("model.tflite", precision="fp16")
    >>> {node.plan for node in explanation.nodes}
    {None}
    """

    changes: tuple[PlannedChange, ...] = ()
    """What was considered for the kernel of this node; empty where what was measured for the plan
    is not known, as of a plan that was given as a text."""

    floats: tuple[FloatTensor, ...] = ()
    """What the plan lists of its tensors, and stays float."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | None) -> NodePlan | None:
        """Of a node's ``"plan"`` in `Explanation.to_dict`."""
        if data is None:
            return None
        changes = []
        for entry in data["changes"]:
            error = entry["error"]
            if error is None and entry["measured"]:
                error = math.inf
            given = {key: entry[key] for key in ("kind", "outcome", "seconds", "bytes", "reason")}
            changes.append(PlannedChange(nodes=tuple(entry["nodes"]), error=error, **given))
        return cls(tuple(changes), tuple(FloatTensor(**entry) for entry in data["floats"]))

    def __str__(self) -> str:
        return "; ".join(map(str, (*self.changes, *self.floats)))


class Layers:
    """The nodes whose kernels write or read what a change is about; of `Node` and the like."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self._kernel = {
            node.index: node.index if node.fused_into is None else node.fused_into for node in nodes
        }
        self._writers: dict[int, set[int]] = {}
        self._readers: dict[int, set[int]] = {}
        for node in nodes:
            for tensors, of in (
                (node.output_ids, self._writers), (node.input_ids, self._readers)
            ):  # fmt: skip
                for tensor in tensors:
                    of.setdefault(tensor, set()).add(node.index)

    def of(self, change: PrecisionChange) -> list[int]:
        """Those that write results; what no node writes, as weights, counts for its readers."""
        found = set(change.nodes)
        for tensor in change.tensors:
            found |= self._writers.get(tensor) or self._readers.get(tensor, set())
        return sorted({self._kernel[node] for node in found if node in self._kernel})


def complete(data: dict[str, Any], plan: PrecisionPlan | None) -> None:
    """Add what a plan says of each node to the data of an explanation that follows a plan.

    With a ``plan``, what was measured for it; else only what its text has. Of every explanation:
    the storage of each node's weights.
    """
    sizes = {t["id"]: (t["bytes"], t.get("storage", "")) for t in data["tensors"] if t["constant"]}
    for node in data["nodes"]:
        own = [sizes[i] for i in node["input_ids"] if i in sizes]
        node["weights_storage"] = max(own, default=(0, ""))[1]
    mixed = data.get("mixed")
    if not mixed or not mixed["source"]:
        return
    by_node: dict[int, list[dict[str, Any]]] = {}
    if plan is not None:
        mixed["device"] = plan.device
        if plan.device != data["device"]:
            data["notes"].append(
                f"the plan was measured on {plan.device}, not on this device, where its times "
                "and the last digits of its error may be others: tune again, with start=PLAN or "
                "--start FILE"
            )
        layers = Layers([SimpleNamespace(**node) for node in data["nodes"]])
        for change in plan.changes:
            concerned = layers.of(change)
            entry = {
                "kind": change.kind,
                "outcome": _outcome(change),
                "nodes": concerned,
                "error": change.error if math.isfinite(change.error) else None,
                "measured": change.measured,
                "seconds": change.seconds,
                "bytes": change.bytes,
                "reason": change.reason,
            }
            for node in concerned:
                by_node.setdefault(node, []).append(entry)
    floats: dict[int, list[dict[str, Any]]] = {}
    for partition in data["partitions"]:
        for step in partition.get("steps", ()):
            if step["pass"] == _PASS and step.get("tensor") is not None:
                listed = floats.setdefault(step["node"], [])
                listed.append({"tensor": step["tensor"], "reason": step["detail"]})
    for node in data["nodes"]:
        index = node["index"]
        if index in by_node or index in floats:
            node["plan"] = {
                "changes": by_node.get(index, []), "floats": floats.get(index, [])
            }  # fmt: skip


def _outcome(change: PrecisionChange) -> str:
    if not change.taken:
        return "left"
    return "taken" if change.taken >= len(change.tensors) + len(change.nodes) else "part"

"""The plan of mixed precision that a profiled model follows, and what was measured for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from clgpu_delegate.precision import RELATIVE_L2, PrecisionChange, PrecisionPlan
from clgpu_delegate.report.explanation import Explanation


def fields(explanation: Explanation, plan: PrecisionPlan | None) -> dict[str, Any] | None:
    """Plain data, ready for JSON; None if the model follows no plan.

    Without ``plan`` only its text is known: ``points`` and ``changes`` are empty, and what the text
    does not have is None. None also stands for an infinite error.
    """
    mixed = explanation.mixed
    if mixed is None or not mixed.source:
        return None
    if plan is None:
        metric = None if mixed.error is None else RELATIVE_L2
        unknown = dict.fromkeys(("device", "error", "samples", "held_back", "complete"))
        return {
            **unknown,
            "source": mixed.source,
            "max_error": mixed.error,
            "metric": metric,
            "points": [],
            "changes": [],
        }
    data, front, layers = plan.to_dict(), plan.front(), _Layers(explanation)
    return {
        "source": mixed.source,
        "device": plan.device,
        "max_error": plan.max_error,
        "metric": plan.metric,
        "error": plan.error if math.isfinite(plan.error) else None,
        "samples": plan.samples,
        "held_back": plan.held_back,
        "complete": plan.complete,
        "points": [
            {**entry, "front": point in front}
            for entry, point in zip(data["points"], plan.points)
        ],
        "changes": [
            {**entry, "layers": layers.of(change)}
            for entry, change in zip(data["changes"], plan.changes)
        ],
    }  # fmt: skip


class _Layers:
    """The nodes whose kernels write or read what a change is about."""

    def __init__(self, explanation: Explanation) -> None:
        self._kernel = {
            node.index: node.index if node.fused_into is None else node.fused_into
            for node in explanation.nodes
        }
        self._writers: dict[int, set[int]] = {}
        self._readers: dict[int, set[int]] = {}
        for node in explanation.nodes:
            for tensors, nodes in (
                (node.output_ids, self._writers),
                (node.input_ids, self._readers),
            ):
                for tensor in tensors:
                    nodes.setdefault(tensor, set()).add(node.index)

    def of(self, change: PrecisionChange) -> list[int]:
        found = {*change.nodes, *self._nodes_of(change.kind, change.tensors)}
        return sorted({self._kernel[node] for node in found if node in self._kernel})

    def _nodes_of(self, kind: str, tensors: Sequence[int]) -> set[int]:
        """Those that write results; weights are constants, which nodes only read."""
        if kind == "several":
            return self._nodes_of("results", tensors) | self._nodes_of("weights", tensors)
        nodes = self._writers if kind == "results" else self._readers
        return {node for tensor in tensors for node in nodes.get(tensor, ())}

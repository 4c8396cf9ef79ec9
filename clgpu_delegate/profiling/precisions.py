"""The plan of mixed precision that a profiled model follows, and what was measured for it."""

from __future__ import annotations

import math
from typing import Any

from clgpu_delegate.precision import REASONS, RELATIVE_L2, PrecisionPlan
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.report.planned import Layers


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
        unknown = dict.fromkeys(
            ("device", "error", "samples", "held_back", "complete", "interrupted")
        )
        return {
            **unknown,
            "source": mixed.source,
            "max_error": mixed.error,
            "metric": metric,
            "points": [],
            "changes": [],
        }
    data, front, layers = plan.to_dict(), plan.front(), Layers(explanation.nodes)
    return {
        "source": mixed.source,
        "device": plan.device,
        "max_error": plan.max_error,
        "metric": plan.metric,
        "error": plan.error if math.isfinite(plan.error) else None,
        "samples": plan.samples,
        "held_back": plan.held_back,
        "complete": plan.complete,
        "interrupted": plan.interrupted,
        "points": [
            {**entry, "front": point in front}
            for entry, point in zip(data["points"], plan.points)
        ],
        "changes": [
            {**entry, "why": REASONS.get(change.reason, ""), "layers": layers.of(change)}
            for entry, change in zip(data["changes"], plan.changes)
        ],
    }  # fmt: skip

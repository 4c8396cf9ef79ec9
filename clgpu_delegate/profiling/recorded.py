"""What was recorded of the last inferences, and what it amounts to; `Profile` shows it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.precision import PrecisionPlan
from clgpu_delegate.profiling import precisions, sums
from clgpu_delegate.profiling.records import Invoke, Launch, NodeProfile, Totals
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.report.memory import MemoryMap


class Recorded:
    """A profile's data; tables, pages, traces and plots are made of it."""

    def __init__(
        self,
        data: Mapping[str, Any],
        explanation: Explanation,
        memory: MemoryMap,
        *,
        model: str = "",
        invokes: Sequence[tuple[int, int]] = (),
        plan: PrecisionPlan | None = None,
    ) -> None:
        if not data["enabled"]:
            raise ClgpuError("nothing is profiled: make the delegate with load(profile=True)")
        if not data["inferences"]:
            raise ClgpuError(
                "nothing was recorded: no inference has run on the device since the model was "
                "loaded; call invoke() first"
            )
        data = sums.of_these(data, invokes)
        self._data = copy.deepcopy(dict(data))
        self.model: str = model
        """Path of the model, where it is known."""

        self.device: str = data["device"]
        self.platform: str = data["platform"]
        self.precision: str = data["precision"]
        self.inferences: int = data["inferences"]
        """Recorded ones: the last, up to a limit."""

        self.peaks: dict[str, float] | None = data["peaks"] and dict(data["peaks"])
        """What the device can do at most, in operations, bytes and seconds; None if unknown."""

        self.notes: tuple[str, ...] = tuple(data["notes"])
        """Such as why the device's times are not known."""

        self.explanation: Explanation = explanation
        self.memory: MemoryMap = memory
        self.plan: PrecisionPlan | None = plan
        """The plan that ``precision="mixed"`` follows, with its measurements; None without a plan,
        and if only its text is known."""

        self.launches: tuple[Launch, ...] = tuple(sums.launches(data))
        """Of all recorded inferences, in the order in which they were enqueued."""

        self.partitions: tuple[Invoke, ...] = tuple(Invoke(**row) for row in data["host"])
        """Start and end of each partition on the host."""

        self.invokes: tuple[Invoke, ...] = tuple(sums.match(data["host"], invokes))
        """Start and end of each inference on the host; empty if they were not measured."""

        self.nodes: tuple[NodeProfile, ...] = tuple(sums.node_profiles(data, self.launches))
        """In the order of the model. `explanation` has the nodes without a kernel."""

        self._parts = sums.parts(self.launches, self.partitions, self.invokes)
        self.totals: Totals = sums.medians(self._parts.values())
        """The parts of an inference's time."""

    def inference(self, which: str = "median") -> int:
        """Number of the ``"fastest"``, ``"median"`` or ``"slowest"`` recorded inference."""
        order = sorted(self._parts, key=lambda number: self._parts[number].wall_seconds)
        places = {"fastest": 0, "median": (len(order) - 1) // 2, "slowest": -1}
        if which not in places:
            raise ClgpuError(f"which is {which!r}; allowed: {', '.join(places)}")
        return order[places[which]]

    def totals_of(self, inference: int) -> Totals:
        """The parts of the time of one of the recorded inferences."""
        if inference not in self._parts:
            raise ClgpuError(f"inference {inference} was not recorded")
        return self._parts[inference]

    def to_dict(self) -> dict[str, Any]:
        """All that was recorded and derived as plain data, ready for JSON; times as attributes."""
        data = copy.deepcopy(self._data)
        return {
            **data,
            "launches": [
                {**row, "peak_share": launch.peak_share}
                for row, launch in zip(data["launches"], self.launches)
            ],
            "model": self.model,
            "plan": precisions.fields(self.explanation, self.plan),
            "totals": dataclasses.asdict(self.totals),
            "nodes": [node.to_dict() for node in self.nodes],
            "invokes": [dataclasses.asdict(invoke) for invoke in self.invokes],
        }

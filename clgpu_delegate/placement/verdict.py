"""The result of measuring placements, as it is stored and given to a delegate."""

from __future__ import annotations

import dataclasses
from typing import Any

CPU = "cpu"

PLACEMENTS = {
    CPU: "CPU alone",
    "all": "all on the device",
    "auto": "the cost model's choice",
    "core": "the core operations on the device",
    "largest": "the largest partition on the device",
}
"""Names of the placements, in the order they are timed, and their descriptions."""


@dataclasses.dataclass(frozen=True)
class Timing:
    """A placement and its time in milliseconds, or why it has none."""

    name: str
    ms: float | None
    claimed: int
    problem: str = ""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The fastest placement of a model; fields as those of `clgpu_delegate.Placement`."""

    choice: str
    left: tuple[int, ...]
    ops: tuple[str, ...]
    timings: tuple[Timing, ...]
    device: str
    precision: str
    runtime: str
    threads: int
    source: str = "measured now"

    @property
    def reason(self) -> str:
        """Why nodes that the device could compute stay on the CPU."""
        times = {timing.name: timing.ms for timing in self.timings if timing.ms is not None}
        order = dict.fromkeys([self.choice, CPU, "all"])
        shown = [f"{PLACEMENTS[name]} {times[name]:.3g} ms" for name in order if name in times]
        return "measured: " + ", ".join(shown)

    def as_native(self) -> dict[str, Any]:
        """The form that the delegate's core takes."""
        return {
            "ops": list(self.ops),
            "left": list(self.left),
            "cpu": self.choice == CPU,
            "choice": self.choice,
            "reason": self.reason,
            "source": self.source,
            "runtime": self.runtime,
            "threads": self.threads,
            "candidates": [
                (timing.name, timing.ms) for timing in self.timings if timing.ms is not None
            ],
        }

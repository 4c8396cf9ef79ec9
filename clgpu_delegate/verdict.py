"""What a measurement of placements has found, as it is kept and handed to a delegate."""

from __future__ import annotations

import dataclasses
from typing import Any

CPU = "cpu"

CANDIDATES = {
    CPU: "CPU alone",
    "all": "all on the device",
    "auto": "the cost model's choice",
    "core": "the core operations on the device",
    "largest": "the largest partition on the device",
}
"""Names of the candidates, in the order they are tried, and what they put where."""


@dataclasses.dataclass(frozen=True)
class Trial:
    """A candidate and its time in milliseconds, or what kept it from having one."""

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
    trials: tuple[Trial, ...]
    device: str
    precision: str
    runtime: str
    threads: int
    source: str = "measured now"

    @property
    def reason(self) -> str:
        """Why nodes that the device could compute stay on the CPU."""
        times = {trial.name: trial.ms for trial in self.trials if trial.ms is not None}
        order = dict.fromkeys([self.choice, CPU, "all"])
        shown = [f"{CANDIDATES[name]} {times[name]:.3g} ms" for name in order if name in times]
        return "measured: " + ", ".join(shown)

    def as_native(self) -> dict[str, Any]:
        """What the delegate's core takes."""
        return {
            "ops": list(self.ops),
            "left": list(self.left),
            "cpu": self.choice == CPU,
            "choice": self.choice,
            "reason": self.reason,
            "source": self.source,
            "runtime": self.runtime,
            "threads": self.threads,
            "candidates": [(trial.name, trial.ms) for trial in self.trials if trial.ms is not None],
        }

"""The result of the option `placement` in an explanation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class ExpectedPartition:
    """A partition as the cost model sees it.

    Examples
    --------
    >>> placed = clgpu_delegate.explain_model("model.tflite", placement="auto").placement
    >>> placed.expected[0].device_ms > 0
    True
    """

    nodes: tuple[int, ...]
    device_ms: float
    cpu_ms: float
    claimed: bool


@dataclasses.dataclass(frozen=True)
class Placed:
    """Who decided which nodes go to the device, and on what grounds.

    Examples
    --------
    >>> placed = clgpu_delegate.explain_model("model.tflite", placement="auto").placement
    >>> placed.mode, placed.source
    ('auto', 'cost model')
    """

    mode: str
    """The option: ``"auto"`` or ``"measured"``."""

    choice: str
    """``"all"`` of what the device can compute, ``"cpu"`` (none) or ``"some"``; of a measurement
    the name of the fastest placement."""

    source: str
    """``"cost model"``, ``"measured now"``, or ``"kept"`` from an earlier measurement."""

    threads: int
    """Of the runtime's CPU kernels."""

    runtime: str
    """Name and version, of a measurement."""

    candidates: Mapping[str, float]
    """Measured milliseconds of an inference by name; see `clgpu_delegate.PlacementCandidate`."""

    expected: tuple[ExpectedPartition, ...]
    """What the cost model expects of each partition."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | None) -> Placed | None:
        """Of ``to_dict()["placement"]``; None with ``placement="all"``."""
        if data is None or data["mode"] in ("", "all"):
            return None
        return cls(
            mode=data["mode"],
            choice=data["choice"],
            source=data["source"],
            threads=data["threads"],
            runtime=data["runtime"],
            candidates={row["name"]: row["ms"] for row in data["candidates"]},
            expected=tuple(
                ExpectedPartition(tuple(p["nodes"]), p["device_ms"], p["cpu_ms"], p["claimed"])
                for p in data["expected"]
            ),
        )

    def __str__(self) -> str:
        times = [f"{name} {ms:.3g} ms" for name, ms in self.candidates.items()]
        kept = [partition for partition in self.expected if partition.claimed]
        if kept:
            device, cpu = (
                sum(getattr(p, f"{side}_ms") for p in kept) for side in ("device", "cpu")
            )
            times = [f"expected: {device:.3g} ms on the device, {cpu:.3g} ms on the CPU"]
        return ", ".join([f"{self.choice} ({self.source})", *times])

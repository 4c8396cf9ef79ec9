"""How far results were off: what `Options.verify` has found out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class PartitionCheck:
    """How far the device was from the CPU's kernels in one partition, and what followed."""

    partition: int
    """Position in `Explanation.partitions`."""

    checked: int
    """Inferences that the CPU's kernels have computed, too; 0 before the first, or where these
    cannot compute the partition."""

    level: str
    """How the partition is computed now: ``"as asked"``, with ``"exact sums"`` (no engine that
    adds halves or rounds factors), in ``"fp32"``, or by the ``"cpu"``."""

    relative_l2: float
    """L2 norm of the error relative to that of the result, of the worst output when last
    compared."""

    max_abs: float
    """Largest error of an element of that output, in the output's own unit."""

    engine: str
    """Kernels left out for wrong numbers, ``family/candidate``, separated by commas."""

    reason: str
    """Why the level is not as asked, engines are left out, or nothing could be compared."""

    source: str
    """``"checked now"``; ``"kept"``: found by an earlier process; empty before the first check."""

    @property
    def is_as_asked(self) -> bool:
        """Whether nothing wrong was found."""
        return self.level == "as asked" and not self.engine

    def __str__(self) -> str:
        text = f"partition {self.partition}: {self.level}"
        if self.engine:
            text += f", without {self.engine}"
        if self.source:
            text += f" ({self.source})"
        if self.checked:
            plural = "inference" if self.checked == 1 else "inferences"
            text += f"; {self.checked} {plural} checked, relative L2 error {self.relative_l2:.1e}"
        return text + (f"; {self.reason}" if self.reason else "")


@dataclasses.dataclass(frozen=True)
class Verification:
    """What was checked, in all and in each partition."""

    checked: int
    """Inferences compared in the partition where these were most."""

    partitions: tuple[PartitionCheck, ...]

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | None) -> Verification | None:
        """Make it of the plain data of `Explanation.to_dict`; None of None."""
        if data is None:
            return None
        checks = tuple(PartitionCheck(**entry) for entry in data["partitions"])
        return cls(data["checked"], checks)

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

    outcome: str = "pending"
    """What the last comparison came to: ``"right"``; ``"rounding"``, the error is beyond its bound,
    but no node alone is wrong, so integer kernels round differently; ``"replaced"``, it was wrong
    and was computed again at the present level; ``"not checked"``, for the reason; ``"pending"``,
    there was none yet."""

    bound_l2: float = 0.0
    """The largest ``relative_l2`` that is right; 0 before the first comparison."""

    @property
    def is_as_asked(self) -> bool:
        """Whether nothing wrong was found."""
        return self.level == "as asked" and not self.engine

    @property
    def is_good(self) -> bool:
        """Whether nothing wrong was found, and something was compared."""
        return self.is_as_asked and self.outcome != "not checked"

    def __str__(self) -> str:
        text = f"partition {self.partition}: {self._verdict()}"
        if self.checked:
            plural = "inference" if self.checked == 1 else "inferences"
            text += f"; relative L2 error {self.relative_l2:.1e}"
            if self.bound_l2:
                text += f" (bound {self.bound_l2:.0e})"
            text += f", {self.checked} {plural} checked"
        # The other outcomes say it all.
        return text + (f"; {self.reason}" if self.reason and not self.is_good else "")

    def _verdict(self) -> str:
        if self.is_as_asked:
            return {
                "rounding": "integers round differently, no node alone is wrong",
                "pending": "not compared yet",
            }.get(self.outcome, self.outcome)
        without = f", without {self.engine}" if self.engine else ""
        kept = ", found by an earlier process" if self.source == "kept" else ""
        return f"wrong numbers{kept}; now computed {_LEVELS.get(self.level, self.level)}{without}"


_LEVELS = {"exact sums": "with exact sums", "fp32": "in fp32", "cpu": "by the CPU's kernels"}


@dataclasses.dataclass(frozen=True)
class Verification:
    """What was checked, in all and in each partition."""

    checked: int
    """Inferences compared in the partition where these were most."""

    partitions: tuple[PartitionCheck, ...]

    @property
    def is_good(self) -> bool:
        """Whether something was compared in each partition, and nothing wrong was found."""
        return all(check.is_good for check in self.partitions)

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | None) -> Verification | None:
        """Make it of the plain data of `Explanation.to_dict`; None of None."""
        if data is None:
            return None
        checks = tuple(PartitionCheck(**entry) for entry in data["partitions"])
        return cls(data["checked"], checks)

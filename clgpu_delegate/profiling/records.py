"""The parts of a profile: recorded launches, and values derived from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

NANO = 1e-9
TRANSFERS = ("upload", "download", "swap_in", "swap_out")


@dataclasses.dataclass(frozen=True)
class Launch:
    """A kernel launch, or a copy between host and device, of one inference.

    Times are nanoseconds of the host's monotonic clock; the device's clock is mapped onto it.

    Examples
    --------
    >>> profile = clgpu_delegate.profile_model("model.tflite", runs=1)
    >>> {launch.op for launch in profile.launches} >= {"CONV_2D", "SOFTMAX"}
    True
    """

    inference: int
    partition: int
    node: int
    """Index in the model; of a copy, the node that waits for it, or -1."""

    op: str
    family: str
    candidate: str
    kernel: str
    """Name of the kernel function; empty for a copy."""

    kind: str
    """``"launch"``, ``"upload"``, ``"download"``, ``"swap_in"`` or ``"swap_out"``."""

    tensor: str
    """Of a copy: what is copied."""

    bytes: int
    """That are copied; or its part of what its node reads and writes."""

    flops: float
    """Its part of what its node computes."""

    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    queued: int | None
    submitted: int | None
    start: int | None
    end: int | None
    """On the device. None if it is not known: the host has copied by itself, or the driver does not
    tell (`Profile.notes`)."""

    host_start: int
    host_end: int
    """Of the call that enqueued it, or of the host's own copy."""

    tensor_cores: bool = False
    """As of `NodeProfile`."""

    peak_share: float | None = None
    """As of `NodeProfile`, for its part of the node; None of a copy, too."""

    @property
    def span(self) -> tuple[int, int] | None:
        """Start and end on the device, where they are known."""
        return None if self.start is None or self.end is None else (self.start, self.end)

    @property
    def seconds(self) -> float:
        """Time on the device; 0 if it is not known."""
        span = self.span
        return (span[1] - span[0]) * NANO if span else 0.0

    @property
    def host_seconds(self) -> float:
        """Time that the host took to enqueue it."""
        return (self.host_end - self.host_start) * NANO

    @property
    def name(self) -> str:
        """Its name in a timeline."""
        return self.op or self.kernel if self.kind == "launch" else f"{self.kind} {self.tensor}"


@dataclasses.dataclass(frozen=True)
class Invoke:
    """A span of the host's time in an inference: a partition, or the inference as a whole.

    Examples
    --------
    >>> profile = clgpu_delegate.profile_model("model.tflite", runs=1)
    >>> profile.invokes[0].end > profile.invokes[0].start
    True
    """

    inference: int
    partition: int
    """-1 for the inference as a whole."""

    name: str
    start: int
    end: int
    """Nanoseconds, as in `Launch`."""


@dataclasses.dataclass(frozen=True)
class NodeProfile:
    """A node with a kernel; its times are medians over the recorded inferences.

    Examples
    --------
    >>> profile = clgpu_delegate.profile_model("model.tflite", runs=1)
    >>> slowest = max(profile.nodes, key=lambda node: node.device_seconds)
    """

    node: int
    """Index in the model."""

    op: str
    family: str
    candidate: str
    """The engine: the family's way to compute the node."""

    tensor_cores: bool
    """Whether tensor cores multiply; they have a peak rate of their own."""

    partition: int
    launches: int
    """Kernels started per inference."""

    device_seconds: float
    host_seconds: float
    """Time of the host to enqueue its kernels."""

    share: float
    """Share of the time of all kernels, 0 to 1."""

    flops: float
    """Arithmetic operations by its definition; two for a multiply-add."""

    bytes_read: int
    bytes_written: int
    """Bytes of its tensors, each counted once, even if the kernel reads it several times."""

    peak_share: float | None
    """The shortest time that the device's peak rates allow, of arithmetic or of memory, the longer
    of both, divided by the measured time. It exceeds 1 through caches, integer units, or algorithms
    with fewer operations, such as Winograd's. None without peaks."""

    bound: str
    """The longer of the two: ``"arithmetic"`` or ``"memory"``; empty without peaks."""

    @property
    def flops_per_second(self) -> float:
        """Achieved arithmetic rate; 0 if no time was measured."""
        return self.flops / self.device_seconds if self.device_seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Achieved rate of memory, read and written; 0 if no time was measured."""
        moved = self.bytes_read + self.bytes_written
        return moved / self.device_seconds if self.device_seconds else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        rates = {
            "flops_per_second": self.flops_per_second,
            "bytes_per_second": self.bytes_per_second,
        }
        return {**dataclasses.asdict(self), **rates}


@dataclasses.dataclass(frozen=True)
class Totals:
    """The parts of an inference's time, in seconds; in `Profile.totals` each is a median.

    Examples
    --------
    >>> totals = clgpu_delegate.profile_model("model.tflite", runs=1).totals
    >>> totals.launches
    3
    """

    wall_seconds: float
    """Time of the inference on the host. If it was not measured (see `profile_model`), the time
    from the start of the first partition to the end of the last."""

    kernel_seconds: float
    """Time in which the device runs kernels."""

    transfer_seconds: float
    """It only copies."""

    gap_seconds: float
    """A partition runs, but the device does nothing: launches, synchronisation, host copies."""

    cpu_seconds: float
    """No partition runs: nodes that are left on the CPU, and the runtime itself."""

    bytes_up: int
    bytes_down: int
    launches: int


def launch_of(entry: Mapping[str, Any]) -> Launch:
    """A launch as the extension records it."""
    data = dict(entry)
    data["global_size"], data["local_size"] = tuple(data.pop("global")), tuple(data.pop("local"))
    return Launch(**data)


def union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same time as spans that do not overlap, in order."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def known(launches: Iterable[Launch], *kinds: str) -> list[tuple[int, int]]:
    """The spans on the device that are known; of some kinds, or of all."""
    spans = (launch.span for launch in launches if not kinds or launch.kind in kinds)
    return [span for span in spans if span is not None]


def length(spans: Iterable[tuple[int, int]]) -> int:
    """Time that at least one of the spans covers."""
    return sum(end - start for start, end in union(spans))

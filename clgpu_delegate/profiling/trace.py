"""A profile in the Trace Event format, which Perfetto and chrome://tracing read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clgpu_delegate.profiling.records import Invoke, Launch, known

if TYPE_CHECKING:
    from clgpu_delegate.profiling.recorded import Recorded

_Event = dict[str, Any]

# Processes; a device is one, too, so that its tracks are adjacent.
_HOST, _DEVICE = 1, 2
# Tracks of the host.
_INVOKES, _ENQUEUES = 1, 2
_CALL = {"pid": _HOST, "tid": _ENQUEUES, "cat": "enqueue"}
# Tracks of the device begin here by kind; copies that overlap take further ones. To readers, 0 is
# a thread of the kernel's.
_TRACKS = {"launch": ("kernels", 1), "upload": ("uploads", 101), "swap_in": ("uploads", 101),
           "download": ("downloads", 201), "swap_out": ("downloads", 201)}  # fmt: skip


def text(profile: Recorded) -> str:
    """The whole file."""
    data = {
        "traceEvents": events(profile),
        "displayTimeUnit": "ns",
        "otherData": {
            "device": profile.device,
            "platform": profile.platform,
            "precision": profile.precision,
            "model": profile.model,
        },
    }
    return json.dumps(data, separators=(",", ":"))


def events(profile: Recorded) -> list[_Event]:
    """Names of the tracks first, then the other events by time, starting at 0."""
    spans = [*_device_spans(profile.launches), *_host_spans(profile), *_memory(profile)]
    origin = min((span["ts"] for span in spans), default=0)
    for span in spans:
        # Times are whole nanoseconds up to here, because large microseconds as floats lose them.
        span["ts"] = (span["ts"] - origin) / 1000
        if "dur" in span:
            span["dur"] /= 1000
    # Of events that begin together, the longer one is the outer one.
    spans.sort(key=lambda span: (span["ts"], -span.get("dur", 0)))
    return [*_names(profile, spans), *spans]


def lanes(spans: Sequence[tuple[int, int]]) -> list[int]:
    """For each span the first lane that is free: events of one track must not overlap."""
    free: list[int] = []  # when each lane is
    taken = [0] * len(spans)
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        start, end = spans[i]
        lane = next((k for k, since in enumerate(free) if since <= start), len(free))
        free[lane : lane + 1] = [end]
        taken[i] = lane
    return taken


def _device_spans(launches: Sequence[Launch]) -> Iterator[_Event]:
    kinds: dict[int, list[int]] = {}
    for i, launch in enumerate(launches):
        yield {"name": launch.name, "ph": "X", "ts": launch.host_start,
               "dur": launch.host_end - launch.host_start, **_CALL}  # fmt: skip
        if launch.span is not None:
            kinds.setdefault(_TRACKS[launch.kind][1], []).append(i)
    for first, members in kinds.items():
        for i, lane in zip(members, lanes(known(launches[i] for i in members))):
            yield from _launch(launches[i], first + lane, i)


def _launch(launch: Launch, track: int, number: int) -> Iterator[_Event]:
    """The work on the device, and an arrow from the call on the host."""
    assert launch.queued is not None and launch.submitted is not None  # noqa: PT018
    start, end = known([launch])[0]
    facts: dict[str, Any] = {"inference": launch.inference, "partition": launch.partition}
    if launch.kind == "launch":
        sizes = {"global": launch.global_size, "local": launch.local_size}
        facts.update(node=launch.node, engine=f"{launch.family}={launch.candidate}")
        facts.update(kernel=launch.kernel, flops=launch.flops)
        facts.update({name: "x".join(map(str, size)) for name, size in sizes.items()})
    else:
        facts.update(tensor=launch.tensor, bytes=launch.bytes)
    facts["queued_us"] = (launch.submitted - launch.queued) / 1000
    facts["submitted_us"] = (start - launch.submitted) / 1000
    here = {"pid": _DEVICE, "tid": track}
    yield {"name": launch.name, "ph": "X", "cat": launch.kind, "ts": start, "dur": end - start,
           "args": facts, **here}  # fmt: skip
    if start >= launch.host_start:
        arrow = {"name": "enqueued", "cat": "flow", "id": number}
        yield {**_CALL, "ph": "s", "ts": launch.host_start, **arrow}
        yield {**here, "ph": "f", "bp": "e", "ts": start, **arrow}


def _host_spans(profile: Recorded) -> Iterator[_Event]:
    for invoke in (*profile.invokes, *profile.partitions):
        yield _host(invoke.name, invoke.start, invoke.end, invoke)
    for before, after in zip(profile.partitions, profile.partitions[1:]):
        if before.inference == after.inference and before.end < after.start:
            yield _host("CPU nodes", before.end, after.start, after)


def _host(name: str, start: int, end: int, invoke: Invoke) -> _Event:
    return {"name": name, "ph": "X", "pid": _HOST, "tid": _INVOKES, "cat": "host", "ts": start,
            "dur": end - start, "args": {"inference": invoke.inference}}  # fmt: skip


def memory_steps(profile: Recorded, launches: Iterable[Launch]) -> Iterator[tuple[int, int]]:
    """Bytes of the arena in use, from each moment on."""
    in_use = [
        [
            sum(
                block.bytes
                for item in part.objects if item.kind == "arena"
                for block in item.blocks if block.first <= i <= block.last
            )
            for i in range(part.launches)
        ]
        for part in profile.memory.partitions
    ]  # fmt: skip
    position: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], int] = {}
    for launch in launches:
        if launch.kind != "launch" or launch.span is None:
            continue
        start, end = launch.span
        key = (launch.inference, launch.partition)
        i = position[key] = position.get(key, -1) + 1
        if launch.partition < len(in_use) and i < len(in_use[launch.partition]):
            yield start, in_use[launch.partition][i]
            last[key] = end
    for end in last.values():
        yield end, 0


def _memory(profile: Recorded) -> Iterator[_Event]:
    for moment, count in memory_steps(profile, profile.launches):
        yield {"name": "arena in use", "ph": "C", "pid": _DEVICE, "ts": moment,
               "args": {"bytes": count}}  # fmt: skip


def _names(profile: Recorded, spans: Iterable[Mapping[str, Any]]) -> Iterator[_Event]:
    yield _meta("process_name", _HOST, 1, name="host")
    yield _meta("process_name", _DEVICE, 1, name=f"device: {profile.device}")
    yield _meta("process_sort_index", _HOST, 1, sort_index=2)
    yield _meta("process_sort_index", _DEVICE, 1, sort_index=1)
    yield _meta("thread_name", _HOST, _INVOKES, name="inferences and partitions")
    yield _meta("thread_name", _HOST, _ENQUEUES, name="enqueue calls")
    titles = {first: title for title, first in _TRACKS.values()}
    tracks = {s["tid"] for s in spans if s["pid"] == _DEVICE and s["ph"] == "X"}
    for track in sorted(tracks):
        lane = (track - 1) % 100
        title = titles[track - lane] + (f" {lane + 1}" if lane else "")
        yield _meta("thread_name", _DEVICE, track, name=title)
        yield _meta("thread_sort_index", _DEVICE, track, sort_index=track)


def _meta(what: str, process: int, thread: int, **values: Any) -> _Event:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": values}

"""A profile as one page for a browser: the data, and the files beside this one around it.

Names in a model are not trusted: they reach the page only within JSON, which cannot end its HTML
element, and the script inserts them only as text. The page's policy allows the scripts
and styles that are here, by their hashes, and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clgpu_delegate.profiling import precisions
from clgpu_delegate.profiling.layout import lay_out
from clgpu_delegate.profiling.records import known
from clgpu_delegate.profiling.trace import lanes

if TYPE_CHECKING:
    from clgpu_delegate.profiling.recorded import Recorded
    from clgpu_delegate.profiling.records import Invoke, Launch

_SCRIPTS = (
    "page.js", "graph.js", "facts.js", "timeline.js", "memory.js", "roofline.js", "precision.js",
    "layers.js",
)  # fmt: skip
_HIDDEN = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_WHICH = ("median", "fastest", "slowest")
_TRACKS = {"launch": "kernels", "upload": "uploads", "swap_in": "uploads",
           "download": "downloads", "swap_out": "downloads"}  # fmt: skip


def text(profile: Recorded) -> str:
    """The whole page."""
    style = _file("page.css")
    script = "".join(_file(name) for name in _SCRIPTS)
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}"
    name = Path(profile.model).name or "model"
    parts = {
        "policy": policy,
        "title": html.escape(f"{name} on {profile.device}"),
        "style": style,
        "script": script,
        "data": json.dumps(data(profile), separators=(",", ":")).translate(_HIDDEN),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _file("page.html"))


def data(profile: Recorded) -> dict[str, Any]:
    """What the page shows; times in seconds, times of spans in nanoseconds from the first span."""
    explanation = profile.explanation.to_dict()
    return {
        "name": Path(profile.model).name or "model",
        "device": profile.device,
        "platform": profile.platform,
        "precision": profile.precision,
        "inferences": profile.inferences,
        "peaks": profile.peaks,
        "totals": profile.to_dict()["totals"],
        "notes": [*profile.notes, *_decisions(profile), *explanation["notes"]],
        "partitions": explanation["partitions"],
        "peak_bytes": explanation["peak_bytes"],
        **_graph(explanation, profile),
        "timelines": {which: _timeline(profile, which) for which in _WHICH},
        "memory": profile.memory.to_dict()["partitions"],
        "launches": _launch_names(profile),
        "plan": precisions.fields(profile.explanation, profile.plan),
    }


def _decisions(profile: Recorded) -> list[str]:
    """What verification and placement have decided."""
    verification = profile.explanation.verification
    lines = [f"verification: {v}" for v in verification.partitions] if verification else []
    placement = profile.explanation.to_dict().get("placement") or {}
    if placement.get("mode", "all") != "all" and placement.get("choice"):
        lines.append(f"placement: {placement['choice']} ({placement['source']})")
    return lines


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _graph(explanation: Mapping[str, Any], profile: Recorded) -> dict[str, Any]:
    """Nodes and edges with their places; inputs and outputs of the model are ends of edges."""
    timed = {node.node: node.to_dict() for node in profile.nodes}
    tensors = {tensor["id"]: tensor for tensor in explanation["tensors"]}
    nodes = explanation["nodes"]
    writer = {t: node["index"] for node in nodes for t in node["output_ids"]}
    read = {t for node in nodes for t in node["input_ids"]}
    free = max((node["index"] for node in nodes), default=-1) + 1
    ends: list[dict[str, Any]] = []
    edges: dict[tuple[int, int, int], None] = {}  # source, target, tensor; in order, each once
    for node in nodes:
        for t in node["input_ids"]:
            if tensors[t]["constant"]:
                continue
            if t not in writer:
                writer[t] = free
                ends.append({"id": free, "kind": "input", "tensor": t})
                free += 1
            edges[writer[t], node["index"], t] = None
    inputs = [end["id"] for end in ends]
    for t in [t for node in nodes for t in node["output_ids"] if t not in read]:
        edges[writer[t], free, t] = None
        ends.append({"id": free, "kind": "output", "tensor": t})
        free += 1
    outputs = [end["id"] for end in ends[len(inputs) :]]
    order = [*inputs, *(node["index"] for node in nodes), *outputs]
    layout = lay_out(order, [(source, target) for source, target, _ in edges])
    for entry in ends:
        entry["at"] = layout.places[entry["id"]]
    where = {node["index"]: node["claimed"] for node in nodes}
    return {
        "nodes": [
            {**node, "at": layout.places[node["index"]], "profile": timed.get(node["index"])}
            for node in nodes
        ],
        "ends": ends,
        "edges": [
            {
                "from": source,
                "to": target,
                "tensor": t,
                "path": path,
                # The host holds inputs and outputs of the model.
                "crosses": where.get(source, False) != where.get(target, False),
            }
            for (source, target, t), path in zip(edges, layout.paths)
        ],
        "tensors": tensors,
        "size": [layout.width, layout.layers],
    }


def _timeline(profile: Recorded, which: str) -> dict[str, Any]:
    """Tracks of one inference; a span is its start and end, its name, and its launch's facts."""
    number = profile.inference(which)
    launches = [launch for launch in profile.launches if launch.inference == number]
    partitions = [x for x in profile.partitions if x.inference == number]
    whole = [x for x in profile.invokes if x.inference == number]
    host = [*whole, *partitions]
    tracks: list[tuple[str, list[list[Any]]]] = []
    tracks.append(("inference", [[row.start, row.end, row.name, None] for row in whole]))
    between = [[start, end, "CPU", {"kind": "cpu"}] for start, end in _beside(partitions, whole)]
    spent = [[row.start, row.end, row.name, None] for row in partitions]
    tracks.append(("host", sorted([*between, *spent], key=lambda span: span[0])))
    tracks.append(("enqueue calls", [[x.host_start, x.host_end, x.name, _facts(x)]
                                     for x in launches]))  # fmt: skip
    tracks += _device_tracks(launches)
    spans = [span for _, rows in tracks for span in rows]
    origin = min(span[0] for span in spans)
    for span in spans:
        span[0] -= origin
        span[1] -= origin
    last = max((row.end for row in host), default=0) - origin
    return {
        "inference": number,
        "end": max([last, *(span[1] for span in spans)]),
        "tracks": [{"title": title, "spans": rows} for title, rows in tracks if rows],
    }


def _beside(partitions: Sequence[Invoke], whole: Sequence[Invoke]) -> Iterator[tuple[int, int]]:
    """When no partition runs: the time of the CPU's nodes and of the runtime."""
    starts, ends = [x.start for x in partitions], [x.end for x in partitions]
    if whole:
        starts, ends = [*starts, whole[0].end], [whole[0].start, *ends]
    else:
        del starts[:1]
    yield from ((end, start) for end, start in zip(ends, starts) if end < start)


def _device_tracks(launches: Sequence[Launch]) -> Iterator[tuple[str, list[list[Any]]]]:
    for title in dict.fromkeys(_TRACKS.values()):
        members = [x for x in launches if _TRACKS[x.kind] == title and x.span is not None]
        taken = lanes(known(members))
        for lane in range(max(taken, default=-1) + 1):
            mine = [launch for launch, where in zip(members, taken) if where == lane]
            rows = [[x.start, x.end, x.name, _facts(x)] for x in mine]
            yield title + (f" {lane + 1}" if lane else ""), rows


def _facts(launch: Launch) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": launch.kind, "node": launch.node}
    if launch.kind == "launch":
        facts.update(kernel=launch.kernel, engine=launch.candidate)
    else:
        facts.update(bytes=launch.bytes)
    return facts


def _launch_names(profile: Recorded) -> list[list[tuple[int, str]]]:
    """For each partition the node and the operation of each launch, for the memory map."""
    number = profile.inference("median")
    names: list[list[tuple[int, str]]] = [[] for _ in profile.memory.partitions]
    for launch in profile.launches:
        if launch.inference == number and launch.kind == "launch" and launch.partition < len(names):
            names[launch.partition].append((launch.node, launch.op))
    return names

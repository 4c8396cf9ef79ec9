"""A profile made by hand: what was recorded of three inferences, in round numbers.

CONV_2D (node 0, two kernels, partition 0), CUMSUM (node 1, on the CPU), SOFTMAX (node 2,
partition 1), MUL (node 3, fused into node 2). Inference ``i`` takes ``20 * i`` microseconds longer
in the convolution.
"""

from __future__ import annotations

import math
from typing import Any

from clgpu_delegate import (
    Explanation,
    MemoryMap,
    PrecisionChange,
    PrecisionPlan,
    PrecisionPoint,
    Profile,
)

PEAKS = {
    "fma_flops": 1e9, "mma_f16_flops": 0.0, "mma_tf32_flops": 0.0, "copy_bytes": 1e9,
    "cache_bytes": 4e9,
    "launch_seconds": 1e-6, "round_trip_seconds": 1e-5, "upload_bytes": 1e9, "download_bytes": 1e9,
}  # fmt: skip
HOSTILE = (
    '</script><script>document.title="stolen"</script><img src=x onerror=alert(1)>{{style}}\u2028'
)


def recorded(inferences: int = 3) -> dict[str, Any]:
    """In the form of the extension's data."""
    launches, host = [], []
    for i in range(inferences):
        t = 10_000_000 + 1_000_000 * i  # nanoseconds
        more = 20_000 * i
        rows = [  # partition, node, kind, start, end; microseconds, of the host 5 before
            (0, -1, "upload", 10, 20, 0),
            (0, 0, "launch", 30, 60, 0),
            (0, 0, "launch", 60, 130, more),
            (1, 2, "launch", 230, 260, more),
            (1, -1, "download", 255, 275, more),
        ]
        for partition, node, kind, start, end, delay in rows:
            begin = t + start * 1000 + (0 if node == 0 else delay)
            launches.append({
                "inference": i, "partition": partition, "node": node, "kind": kind,
                "op": {0: "CONV_2D", 2: "SOFTMAX"}.get(node, ""),
                "family": {0: "conv2d", 2: "softmax"}.get(node, ""),
                "candidate": {0: "direct", 2: "rows"}.get(node, ""), "tensor_cores": False,
                "kernel": "kernel" if kind == "launch" else "",
                "tensor": "" if kind == "launch" else HOSTILE,
                "bytes": 0 if kind == "launch" else 400, "flops": 0.0,
                "global": [8, 4], "local": [8, 1],
                "queued": begin - 5000, "submitted": begin - 2000, "start": begin,
                "end": t + end * 1000 + delay, "host_start": begin - 5000, "host_end": begin - 4000,
            })  # fmt: skip
        ends = ((0, 140, 0), (200, 280, more))
        for partition, (start, end, delay) in enumerate(ends):
            host.append({
                "inference": i, "partition": partition, "name": f"partition {partition}",
                "start": t + start * 1000 + delay, "end": t + end * 1000 + more,
            })  # fmt: skip
    nodes = [
        {"node": 0, "op": "CONV_2D", "family": "conv2d", "candidate": "direct", "partition": 0,
         "tensor_cores": False, "flops": 60_000.0, "bytes_read": 8_000, "bytes_written": 4_000},
        {"node": 2, "op": "SOFTMAX", "family": "softmax", "candidate": "rows", "partition": 1,
         "tensor_cores": False, "flops": 1_000.0, "bytes_read": 10_000, "bytes_written": 5_000},
    ]  # fmt: skip
    return {
        "device": "Device", "platform": "Platform", "precision": "fp32", "enabled": True,
        "inferences": inferences, "peaks": PEAKS, "nodes": nodes, "launches": launches,
        "host": host, "notes": [],
    }  # fmt: skip


def invokes(inferences: int = 3) -> list[tuple[int, int]]:
    """Spans of the inferences, from 10 us before the first partition to 5 us after the last."""
    starts = [10_000_000 + 1_000_000 * i for i in range(inferences)]
    return [(t - 10_000, t + 285_000 + 20_000 * i) for i, t in enumerate(starts)]


def plan(**fields: Any) -> PrecisionPlan:
    """Of the same model: the plan is between fp16 and fp32, and its metric has a hostile name."""
    points = (
        PrecisionPoint("fp32", error=0.0, seconds=300e-6, bytes=3000),
        PrecisionPoint("fp16", error=2e-2, seconds=150e-6, bytes=1500),
        PrecisionPoint("mixed", error=8e-4, seconds=200e-6, bytes=2000),
    )
    changes = (
        PrecisionChange("CONV_2D", "results", (1,), (), 5e-4, 60e-6, 200, taken=1),
        PrecisionChange("CONV_2D", "weights", (5,), (), 0.0, 1e-6, 8, taken=1),
        PrecisionChange("SOFTMAX", "results", (3, 4), (), math.inf, -2e-6, 16, taken=0),
        PrecisionChange("CONV_2D", "factors", (), (0, 2), 3e-3, 40e-6, 0, taken=1),
    )
    given: dict[str, Any] = {
        "model": "00", "half": (1, 5), "int8": (), "tf32": (0,), "device": "Device",
        "max_error": 1e-3, "metric": HOSTILE, "error": 8e-4, "samples": 4, "held_back": 2,
        "points": points, "changes": changes, "complete": False, **fields,
    }  # fmt: skip
    return PrecisionPlan(**given)


def explanation(source: str | None = None) -> Explanation:
    """Of the same model; one of its names contains a script.

    ``source`` is that of its plan of precisions, if it has one.
    """

    def node(index: int, op: str, **facts: Any) -> dict[str, Any]:
        return {
            "index": index, "op": op, "claimed": True, "reason": "runs on the device",
            "refusal": None, "fused_into": None, "is_view": False,
            "partition": 0 if index == 0 else 1, "family": "", "candidate": "", "chosen": "",
            "candidates": [], "refused": {}, "inputs": [[1, 4]], "outputs": [[1, 4]],
            "input_ids": [index], "output_ids": [index + 1], "flops": 0.0, "bytes_read": 0,
            "bytes_written": 0, "adds_halves": False, **facts,
        }  # fmt: skip

    nodes = [
        node(0, "CONV_2D", family="conv2d", candidate="direct", chosen="default",
             candidates=["direct", "naive"], refused={"tensor": "no tensor cores"},
             inputs=[[1, 4], [4]], input_ids=[0, 5]),
        node(1, "CUMSUM", claimed=False, partition=None, reason="operation CUMSUM has no kernels"),
        node(2, "SOFTMAX", family="softmax", candidate="rows", chosen="tuned",
             candidates=["rows"]),
        node(3, "MUL", reason="fused into node 2", fused_into=2),
    ]  # fmt: skip
    tensors = [
        {"id": i, "name": HOSTILE if i == 1 else f"t{i}", "type": "float32", "bytes": 16,
         "constant": i == 5}
        for i in range(6)
    ]  # fmt: skip
    partition = {
        "launches": 1, "load_launches": 0, "arena_bytes": 3000, "naive_bytes": 3000,
        "weights_bytes": 16, "bound_bytes": 3000, "load_peak_bytes": 3016, "peak_bytes": 3016,
        "layout": "offsets", "bytes_up": 400, "bytes_down": 400, "moves": [], "objects": [3000],
        "inputs": [
            {"id": 2, "tensor": HOSTILE, "bytes": 400, "shape": [1, 100], "road": "copy"}
        ],
        "outputs": [],
    }  # fmt: skip
    return Explanation({
        "device": "Device", "platform": "Platform", "precision": "fp32", "nodes": nodes,
        "tensors": tensors, "arena_bytes": 3000, "weights_bytes": 16, "peak_bytes": 3016,
        "partitions": [{**partition, "nodes": [0], "launches": 2}, {**partition, "nodes": [2, 3]}],
        "notes": [], "mixed": source if source is None else {
            "model": "00", "source": source, "error": 1e-3, "half": [1, 5], "int8": [],
            "tf32": [0],
        },
    })  # fmt: skip


def memory() -> MemoryMap:
    """Of the same model."""

    def block(tensor: str, offset: int, size: int, first: int, last: int) -> dict[str, Any]:
        return {"tensor": tensor, "offset": offset, "bytes": size, "first": first, "last": last,
                "kind": "arena"}  # fmt: skip

    first = [block(HOSTILE, 0, 1000, -1, 0), block("t1", 1000, 2000, 0, 2)]
    second = [block("t2", 0, 500, -1, 1)]
    return MemoryMap({"partitions": [
        {"launches": launches, "layout": "offsets",
         "objects": [{"kind": "arena", "bytes": 3000, "blocks": blocks}]}
        for launches, blocks in ((2, first), (1, second))
    ]})  # fmt: skip


def profile(
    model: str = "some/model.tflite",
    peaks: dict[str, float] | None = PEAKS,
    *,
    source: str | None = None,
    plan: PrecisionPlan | None = None,
) -> Profile:
    """All of it; ``source`` and ``plan`` are those of its plan of precisions."""
    data = {**recorded(), "peaks": peaks}
    return Profile(data, explanation(source), memory(), model=model, invokes=invokes(), plan=plan)

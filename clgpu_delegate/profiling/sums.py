"""Sums of the launches of a profile: per node, and per inference."""

from __future__ import annotations

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from clgpu_delegate.profiling.records import (
    NANO,
    TRANSFERS,
    Invoke,
    Launch,
    NodeProfile,
    Totals,
    known,
    launch_of,
    length,
)


def launches(data: Mapping[str, Any]) -> Iterator[Launch]:
    """In the order in which they were recorded, with their shares of the device's peak."""
    for launch in map(launch_of, data["launches"]):
        seconds, work = launch.seconds, (launch.tensor_cores, launch.flops, launch.bytes)
        _, least = _least_seconds(*work, data["precision"], data["peaks"])
        if launch.kind == "launch" and seconds and least is not None:
            yield dataclasses.replace(launch, peak_share=least / seconds)
        else:
            yield launch


def node_profiles(data: Mapping[str, Any], launches: Iterable[Launch]) -> Iterator[NodeProfile]:
    """Of the nodes that have kernels, in the order of the model."""
    spent: dict[tuple[int, int], dict[int, list[Launch]]] = defaultdict(lambda: defaultdict(list))
    for launch in launches:
        if launch.kind == "launch":
            spent[launch.partition, launch.node][launch.inference].append(launch)
    device = {key: _median_sum(runs, "seconds") for key, runs in spent.items()}
    total = sum(device.values())
    for entry in sorted(data["nodes"], key=lambda entry: int(entry["node"])):
        key = (entry["partition"], entry["node"])
        seconds, runs = device.get(key, 0.0), spent.get(key, {})
        moved = entry["bytes_read"] + entry["bytes_written"]
        work = entry["tensor_cores"], entry["flops"], moved
        bound, least = _least_seconds(*work, data["precision"], data["peaks"])
        yield NodeProfile(
            **entry,
            launches=max(map(len, runs.values()), default=0),
            device_seconds=seconds,
            host_seconds=_median_sum(runs, "host_seconds"),
            share=seconds / total if total else 0.0,
            peak_share=least / seconds if seconds and least is not None else None,
            bound=bound,
        )


def parts(
    launches: Sequence[Launch], partitions: Sequence[Invoke], invokes: Sequence[Invoke]
) -> dict[int, Totals]:
    """Where the time of each inference went, by its number."""
    rows: Iterable[Launch | Invoke] = (*partitions, *launches)

    def of(number: int, rows: Sequence[Any]) -> list[Any]:
        return [row for row in rows if row.inference == number]

    return {
        number: _totals(of(number, launches), of(number, partitions), of(number, invokes))
        for number in sorted({row.inference for row in rows})
    }


def medians(parts: Iterable[Totals]) -> Totals:
    """Of each field."""
    rows = [dataclasses.astuple(part) for part in parts]
    middles = [statistics.median(column) for column in zip(*rows)]
    names = [field.name for field in dataclasses.fields(Totals)]
    whole = {"bytes_up", "bytes_down", "launches"}
    return Totals(**{k: int(v) if k in whole else v for k, v in zip(names, middles)})


def match(
    partitions: Iterable[Mapping[str, Any]], spans: Iterable[tuple[int, int]]
) -> Iterator[Invoke]:
    """Number the timed calls of invoke() by the partitions that ran within them."""
    for start, end in spans:
        inside = [x["inference"] for x in partitions if start <= x["start"] and x["end"] <= end]
        if inside:
            yield Invoke(inside[0], -1, "invoke", start, end)


def of_these(data: Mapping[str, Any], spans: Iterable[tuple[int, int]]) -> Mapping[str, Any]:
    """Only the timed inferences, if there are any: the others were the warm-up."""
    kept = {invoke.inference for invoke in match(data["host"], spans)}
    if not kept:
        return data
    rows = {k: [row for row in data[k] if row["inference"] in kept] for k in ("launches", "host")}
    return {**data, **rows, "inferences": len(kept)}


def _least_seconds(
    tensor_cores: bool,
    flops: float,
    moved: float,
    precision: str,
    peaks: Mapping[str, float] | None,
) -> tuple[str, float | None]:
    """The bound on this device (arithmetic or memory), and the least time."""
    if not peaks:
        return "", None
    rate = peaks["fma_flops"]
    if tensor_cores:
        cores = {"fp16": "mma_f16_flops", "tf32": "mma_tf32_flops"}.get(precision, "")
        rate = peaks.get(cores, 0) or rate
    arithmetic = flops / rate if rate else 0.0
    memory = moved / peaks["copy_bytes"] if peaks["copy_bytes"] else 0.0
    return ("arithmetic", arithmetic) if arithmetic > memory else ("memory", memory)


def _totals(
    launches: Sequence[Launch], partitions: Sequence[Invoke], whole: Sequence[Invoke]
) -> Totals:
    kernels, busy = length(known(launches, "launch")), length(known(launches))
    inside = length((x.start, x.end) for x in partitions) or busy
    outer = [(x.start, x.end) for x in whole or partitions] or known(launches)
    wall = max(end for _, end in outer) - min(start for start, _ in outer)
    moved = {kind: sum(x.bytes for x in launches if x.kind == kind) for kind in TRANSFERS}
    return Totals(
        wall_seconds=wall * NANO,
        kernel_seconds=kernels * NANO,
        transfer_seconds=(busy - kernels) * NANO,
        gap_seconds=max(0, inside - busy) * NANO,
        cpu_seconds=max(0, wall - inside) * NANO,
        bytes_up=moved["upload"] + moved["swap_in"],
        bytes_down=moved["download"] + moved["swap_out"],
        launches=sum(x.kind == "launch" for x in launches),
    )


def _median_sum(runs: Mapping[int, Sequence[Launch]], field: str) -> float:
    sums = [sum(getattr(launch, field) for launch in launches) for launches in runs.values()]
    return statistics.median(sums) if sums else 0.0

"""Estimated times of networks on the GPUs of `bench.boards.chips`, by the delegate's cost model.

A separate process makes the plans with an OpenCL library that computes nothing (`bench.plans`), and
the cost model takes the rates of a chip instead of measured ones. So this needs no board, and its
figures are estimates.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.boards.chips import CHIPS, LAUNCH_SECONDS, ROUND_TRIP_SECONDS, Chip
from bench.plans import paper
from bench.plans.models import Models, Way
from clgpu_delegate import Options, _core
from clgpu_delegate.native import BareDelegate
from tests.runtimes import make_interpreter

NETWORKS = {"mobilenet_v1": "MobileNet v1", "resnet50": "ResNet50"}
_WAY = Way("fp16, batch 1")
_OPTIONS: dict[str, Any] = {
    "precision": "fp16", "tuning": "off", "chain": "off", "isolate_builds": "off",
}  # fmt: skip
_SCRIPT = "from bench.boards.estimates import main; main()"


def loads() -> list[dict[str, Any]]:
    """By chip: the work of each network's partition, by the name of the network."""
    profiles = [chip.profile() for chip in CHIPS]
    task = [
        {"name": p.device["CL_DEVICE_NAME"], "platform": p.platform["CL_PLATFORM_NAME"],
         "probe": p.probe} for p in profiles
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "facts"
        facts.write_text("".join(map(paper.facts_text, profiles)))
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT], input=json.dumps(task),
            env={**os.environ, **paper.variables(facts)},
            cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        message = f"the process that makes plans has failed ({done.returncode}):\n{done.stderr}"
        raise paper.PaperError(message)
    made: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("[") :])
    return made


def main() -> None:
    """Make plans in a process whose OpenCL devices are the chips; print their loads as JSON."""
    indices = paper.indices(json.load(sys.stdin))
    made: list[dict[str, Any]] = [{} for _ in indices]
    for network in NETWORKS:
        model = Models(network).model(_WAY)
        for chip, index in zip(made, indices):
            delegate = BareDelegate(Options(**_OPTIONS, device=str(index)))
            interpreter = make_interpreter("auto", model, [delegate], resolver="no_delegate")
            interpreter.allocate_tensors()
            (chip[network],) = delegate.native.loads()
    json.dump(made, sys.stdout)


def milliseconds(chip: Chip, load: dict[str, Any]) -> float:
    """What the cost model expects of an inference, its transfers included."""
    rates = {
        "units": chip.profile().device["CL_DEVICE_MAX_COMPUTE_UNITS"],
        "flops": [chip.flops] + [0.0] * 6, "bytes": 1e9 * chip.gigabytes,
        "up_bytes": 1e9 * chip.gigabytes / 2, "down_bytes": 1e9 * chip.gigabytes / 2,
        "launch_seconds": LAUNCH_SECONDS, "round_trip_seconds": ROUND_TRIP_SECONDS,
        "transfer_seconds": LAUNCH_SECONDS,
    }  # fmt: skip
    seconds, _ = _core.placement_cost(load, rates, {})
    return 1e3 * seconds


def table() -> str:
    """The estimates beside published times, as Markdown."""
    heads = [f"{name} {what}" for name in NETWORKS.values() for what in ("estimate", "ncnn")]
    lines = [
        f"| GPU | GFLOPS | GB/s | {' | '.join(heads)} |",
        f"| --- {'| ---: ' * (2 + len(heads))}|",
    ]
    for chip, made in zip(CHIPS, loads()):
        cells = [chip.name, f"{chip.flops / 1e9:.0f}", f"{chip.gigabytes:.0f}"]
        for network in NETWORKS:
            cells.append(f"{milliseconds(chip, made[network]):.0f} ms")
            known = chip.published.get(network)
            cells.append(f"{known:g} ms" if known else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"

"""Calls of OpenCL and of the memory allocator that fail, one after the other.

Each configuration of tests/faults/configurations.py has a separate process, and a new one after
every experiment that ends its process or hangs.
"""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tests.campaign.table import Row
from tests.faults.configurations import CONFIGURATIONS
from tests.faults.control import can_preload, environment

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "faults"
SECONDS = 60  # without a line: it hangs

CALLS, ALLOCATIONS = "failing calls of OpenCL", "failing allocations of host memory"
START = "failing calls at the start of a process"
# Of each phase of a configuration: all calls, of some thousand allocations these.
MOST = {CALLS: 10**9, ALLOCATIONS: 200}


def run(share: int, seed: int) -> list[Row]:
    """Run one experiment in `share` of all, drawn by the seed."""
    rows = []
    for kind, most in MOST.items():
        if kind == ALLOCATIONS and not can_preload(BUILD):
            print("no library can be preloaded here: no allocation fails", file=sys.stderr)
            continue
        row = Row(kind)
        for name in CONFIGURATIONS:
            count(row, name, kind, share=share, most=most, seed=seed)
        rows.append(row)
    rows.append(start_of_process(share, seed))
    return rows


def start_of_process(share: int, seed: int) -> Row:
    """Run one experiment in `share` of tests/faults/start.py, each in a separate process."""
    variables = {**environment(BUILD), **_surroundings()}

    def run_one(*arguments: object) -> dict[str, Any]:
        command = [sys.executable, "-m", "tests.faults.start", *map(str, arguments)]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **variables},
                cwd="/",
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"outcome": "hung"}
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            return {"outcome": "died", "status": done.returncode, "trace": done.stderr[-2000:]}
        return json.loads(lines[-1])

    every = [
        (call, skip, times, code)
        for call, number in run_one()["calls"].items()
        for skip in range(number)
        for times, code in ((1, -6), (1, -5), (-1, -2))
    ]
    row = Row(START)
    for attempt in random.Random(seed).sample(every, -(-len(every) // share)):
        seen = run_one(*attempt)
        row.count(seen["outcome"])
        row.dead += "dead" in seen
        if seen["outcome"] not in ("right", "told") or "dead" in seen:
            print(f"{START}: {' '.join(map(str, attempt))}: {json.dumps(seen)}", flush=True)
    return row


def _surroundings() -> dict[str, str]:
    """Environment variables with which a child can import the same modules."""
    path = os.pathsep.join([*(p for p in sys.path if p), str(ROOT)])
    return {"PYTHONPATH": path, "CLGPU_CACHE": "off"}


def count(row: Row, name: str, kind: str, *, share: int, most: int, seed: int) -> None:
    """Add the experiments of one configuration; prints those that do not end well."""
    for seen in experiments(name, kind, share=share, most=most, seed=seed):
        row.count(seen["outcome"])
        row.leaked += "leaked" in seen
        row.dead += "dead" in seen
        if seen["outcome"] not in ("right", "told") or "leaked" in seen or "dead" in seen:
            print(f"{kind}, {name}: {json.dumps(seen)}", flush=True)


def experiments(
    name: str, kind: str, *, share: int = 1, most: int = 10**9, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """The outcome of each experiment of a configuration."""
    variables = environment(BUILD, fail_allocations=kind == ALLOCATIONS)
    if CONFIGURATIONS[name].cold:
        variables["CLGPU_PROGRAMS"] = ""  # the only cache of compiled programs
    variables.update(CONFIGURATIONS[name].device)
    variables.update(_surroundings())
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.faults.experiment", name]
    command += [f"--share={share}", f"--most={most}", f"--seed={seed}"]
    first, done = 0, False
    while not done:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
            child = subprocess.Popen(
                [*command, f"--first={first}"],
                env={**os.environ, **variables},
                cwd="/",
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            begun: dict[str, Any] | None = None
            ended = "died"
            for line in _lines(child):
                if line is None:
                    ended = "hung"
                    child.kill()
                    continue
                said = json.loads(line)
                begun = said.get("begin", begun)
                done = done or "done" in said
                if "outcome" in said:
                    yield {**(begun or {}), **said}
                    begun = None
            child.wait()
            errors.seek(0)
            trace = errors.read()[-2000:]
        if done:
            return
        if begun is None:
            message = f"the process of {name} ended with {child.returncode}\n{trace}"
            raise RuntimeError(message)
        yield {**begun, "outcome": ended, "trace": trace}
        first = begun["i"] + 1


def _lines(child: subprocess.Popen[str]) -> Iterator[str | None]:
    """Yield lines of JSON that a process writes; None if none comes in time."""
    lines: queue.Queue[str | None] = queue.Queue()
    assert child.stdout is not None
    reader = threading.Thread(target=_read, args=(child.stdout, lines), daemon=True)
    reader.start()
    while True:
        try:
            line = lines.get(timeout=SECONDS)
        except queue.Empty:
            yield None  # the process is killed then
            break
        if line is None:
            break
        if line.startswith("{"):  # runtimes write there, too
            yield line
    reader.join()


def _read(source: IO[str], lines: queue.Queue[str | None]) -> None:
    with source:
        for line in source:
            lines.put(line)
    lines.put(None)

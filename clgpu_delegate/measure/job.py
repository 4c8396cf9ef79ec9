"""One measurement in a separate process, so that earlier ones do not affect it.

Threads that an OpenCL implementation for CPUs keeps slow down the stock kernels of the same
process, memory is counted per process, and a driver that crashes ends one measurement only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from clgpu_delegate import errors
from clgpu_delegate.base import children, files
from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.litert.compiled import on_own_gpu, open_delegated, open_stock
from clgpu_delegate.runtimes import find_runtime
from clgpu_delegate.tflite import inference, settling

REFERENCE_S = 60.0
"""Seconds after which reference kernels, which are slow, are given up."""

_MAIN = "from clgpu_delegate.measure.job import main; main()"


@dataclasses.dataclass(frozen=True)
class Job:
    """What to measure."""

    model: str
    runtime: str
    threads: int
    runs: int
    options: Mapping[str, Any] | None = None
    """Fields of `Options`; None: the runtime without the delegate."""

    api: str = "interpreter"
    """The runtime's interface, of `clgpu_delegate.litert.compiled.APIS`."""

    own_gpu: bool = False
    """LiteRT's own GPU, without options."""

    reference: bool = False
    """The runtime's reference kernels in an interpreter, without options."""

    inputs: str = ""
    """A .npz file of them, in the model's order; empty: random ones."""

    shapes: Shapes | None = None
    """Of the inputs, as `clgpu_delegate.tflite.settling.resized` takes them."""


def measure(job: Job, limit_s: float | None = None) -> tuple[dict[str, Any], list[inference.Array]]:
    """Run a job in a new process; returns the numbers (see `_measured`) and the outputs.

    Raises
    ------
    ClgpuError
        The exception that was raised there, or one that says how the process ended, or that it was
        ended after ``limit_s`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="clgpu-") as folder:
        # A separate session: only this process gets Ctrl-C, and it then ends the other.
        with subprocess.Popen(
            children.command(_MAIN, json.dumps(dataclasses.asdict(job)), folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                _, said = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                raise errors.ClgpuError(f"not finished within {limit_s:g} s") from None
            finally:
                process.kill()
        answer = Path(folder, "answer.json")
        if not answer.exists():
            raise errors.ClgpuError(_end(process.returncode, said.decode(errors="replace")))
        result = json.loads(answer.read_bytes())
        if "error" in result:
            raise getattr(errors, result["kind"], errors.ClgpuError)(result["error"])
        with np.load(Path(folder, "outputs.npz")) as outputs:
            return result, [outputs[name] for name in outputs.files]


def main() -> None:
    """Do the job of the process's first argument; the results go into the folder."""
    job, folder = Job(**json.loads(sys.argv[1])), Path(sys.argv[2])
    try:
        result, outputs = _measured(job)
    except errors.ClgpuError as error:
        result = {"error": str(error), "kind": type(error).__name__}
    else:
        np.savez(folder / "outputs.npz", **{f"{i:06d}": output for i, output in enumerate(outputs)})
    files.write_atomically(folder / "answer.json", json.dumps(result).encode())


def _measured(job: Job) -> tuple[dict[str, Any], list[inference.Array]]:
    """The numbers of a `Measurement`, and the outputs for inputs that depend only on the model."""
    runtime = find_runtime(job.runtime)
    content = settling.resized(runtime, files.read_model(job.model), job.shapes)
    before = _host_bytes()
    start = time.perf_counter()
    interpreter: Any
    delegate = None
    if job.own_gpu:
        interpreter = on_own_gpu(content)
    elif job.reference:
        interpreter = inference.make_interpreter(runtime, content, job.threads, reference=True)
    elif job.options is None:
        interpreter = open_stock(job.api, runtime, content, job.threads)
    else:
        options: Any = job.options
        interpreter, delegate = open_delegated(job.api, runtime, content, job.threads, options)
    if job.inputs:
        with np.load(job.inputs) as arrays:
            inputs = [arrays[name] for name in arrays.files]
    else:
        inputs = inference.random_inputs(interpreter)
    with inference.as_our_error(f"{runtime} cannot run the model", errors.ModelError):
        outputs = inference.run_once(interpreter, inputs)
    first = time.perf_counter() - start
    times = inference.times_ms(interpreter, job.runs)
    result = {
        "times_ms": times,
        "first_ms": first * 1e3,
        "host_bytes": max(0, _host_bytes() - before),
    }
    if delegate is not None:
        explanation, stats = delegate.explain(), delegate.stats()
        result |= {
            "device_bytes": stats["peak_device_bytes"],
            "choice": explanation.to_dict()["placement"]["choice"],
            "claimed": explanation.claimed,
            "total": explanation.total,
            "partitions": explanation.partition_count,
            "quantized": explanation.is_quantized,
            "undone": bool(explanation.partitions) and stats["invokes"] == 0,
        }
    return result, outputs


def _host_bytes() -> int:
    """The most memory that this program has had."""
    # Not of getrusage, which counts the memory that the parent had when it started the program.
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if found := re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE):
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _end(code: int, said: str) -> str:
    notices = ("INFO:", "WARNING:", "VERBOSE:")
    lines = [s for s in said.splitlines() if s.strip() and not s.strip().startswith(notices)]
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the process ended with {how}" + (f": {lines[-1].strip()}" if lines else "")

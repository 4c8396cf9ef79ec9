"""One process of experiments: ``python -m tests.faults.experiment CONFIGURATION KIND ...``.

An experiment runs the phases of a job, from the loading of the delegate to the third inference.
In one of them, one call fails; then the cause is removed, and the next inference must be correct.
Each line of the output is a JSON object: the number of experiments, then for each one its
description and then its outcome, so that the parent knows which one ended the process.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import json
import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import clgpu_delegate
from clgpu_delegate import _core
from tests.faults.configurations import CONFIGURATIONS, Configuration
from tests.faults.control import ALLOCATIONS, Allocations, Layer
from tests.runtimes import make_interpreter, run_reference

Arrays = list[np.ndarray]

# Errors that the standard allows for calls with correct arguments.
RESOURCES, HOST_MEMORY, DEVICE_MEMORY, LOST = -5, -6, -4, -2
CODES: dict[str, tuple[int, ...]] = {
    "clCreateContext": (LOST, HOST_MEMORY),
    "clCreateBuffer": (DEVICE_MEMORY, RESOURCES, HOST_MEMORY, -61),  # CL_INVALID_BUFFER_SIZE
    "clCreateSubBuffer": (DEVICE_MEMORY, RESOURCES, -13),  # CL_MISALIGNED_SUB_BUFFER_OFFSET
    "clCreateImage": (DEVICE_MEMORY, RESOURCES, -10, -40),  # not supported; too large
    "clCreateProgramWithBinary": (HOST_MEMORY, -42),  # CL_INVALID_BINARY
    "clBuildProgram": (RESOURCES, HOST_MEMORY, -11, -3),  # build failure; no compiler
    "clCreateKernel": (RESOURCES, HOST_MEMORY, -46),  # CL_INVALID_KERNEL_NAME
    "clEnqueueNDRangeKernel": (RESOURCES, DEVICE_MEMORY, -54),  # CL_INVALID_WORK_GROUP_SIZE
    "clEnqueueReadBuffer": (RESOURCES, DEVICE_MEMORY, HOST_MEMORY),
    "clEnqueueWriteBuffer": (RESOURCES, DEVICE_MEMORY, HOST_MEMORY),
    "clEnqueueCopyBuffer": (RESOURCES, DEVICE_MEMORY),
    "clEnqueueMapBuffer": (RESOURCES, -12),  # CL_MAP_FAILURE
    "clGetEventProfilingInfo": (-7, RESOURCES),  # CL_PROFILING_INFO_NOT_AVAILABLE
    "clWaitForEvents": (RESOURCES, -14),  # CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
}
USUAL = (RESOURCES, HOST_MEMORY)
# Called once in a process: see tests/faults/start.py.
OF_PROCESS = (
    "clGetPlatformIDs", "clGetPlatformInfo", "clGetDeviceIDs", "clGetDeviceInfo", "clCreateContext",
    "clReleaseContext",
)  # fmt: skip

ANY, NEW = "any call", "operator new"


@dataclasses.dataclass(frozen=True)
class Attempt:
    """The failing calls: `count` (-1: all) of a phase after `skip` others."""

    phase: str
    call: str
    skip: int
    count: int
    code: int


class Job:
    """Phases of an interpreter's life."""

    inferences: tuple[str, ...] = ("first", "second", "third")

    def __init__(self, model: bytes, xs: Sequence[Arrays], c: Configuration, **options: Any):
        self.model, self.xs, self.options = model, xs, options
        self.phases = ["load", "make", "first", "second", "third", "tell"]
        if c.resize:
            self.phases.append("resize")
        self.phases.append("end")
        self.delegate: Any = None
        self.interpreter: Any = None
        self.got: tuple[Arrays, int] | None = None  # results, and the inputs of each

    def load(self) -> None:
        self.delegate = clgpu_delegate.load(**self.options)

    def make(self) -> None:
        self.interpreter = make_interpreter("auto", self.model, [self.delegate])
        self.interpreter.allocate_tensors()

    def run(self, k: int) -> None:
        for detail, x in zip(self.interpreter.get_input_details(), self.xs[k]):
            self.interpreter.set_tensor(detail["index"], x)
        self.interpreter.invoke()
        outputs = self.interpreter.get_output_details()
        self.got = [self.interpreter.get_tensor(d["index"]) for d in outputs], k

    def first(self) -> None:
        self.run(0)

    def second(self) -> None:
        self.run(1)

    def third(self) -> None:
        self.run(2)

    def tell(self) -> None:
        self.delegate.explain()
        self.delegate.stats()
        self.delegate.memory_map()

    def resize(self) -> None:
        (detail,) = self.interpreter.get_input_details()
        shape = list(self.xs[0][0].shape)
        self.interpreter.resize_tensor_input(detail["index"], [2, *shape[1:]])
        self.interpreter.allocate_tensors()
        self.interpreter.set_tensor(detail["index"], np.concatenate([self.xs[0][0]] * 2))
        self.interpreter.invoke()
        self.interpreter.resize_tensor_input(detail["index"], shape)
        self.interpreter.allocate_tensors()
        self.run(1)

    def end(self) -> None:
        self.interpreter = self.delegate = None

    def recover(self, phase: str) -> None:
        """Run an inference as a user would after an error."""
        if self.delegate is None:
            self.load()
        if self.interpreter is None:
            self.make()
        if phase not in self.inferences:  # the runtime requires it after a failed allocation
            shape = self.xs[0][0].shape
            (detail, *_) = self.interpreter.get_input_details()
            if tuple(detail["shape"]) != shape:
                self.interpreter.resize_tensor_input(detail["index"], list(shape))
            self.interpreter.allocate_tensors()
        self.run(1)


class RunnerJob:
    """Phases of a `Runner`'s life."""

    inferences: tuple[str, ...] = ("first", "second", "many")

    def __init__(self, model: bytes, xs: Sequence[Arrays], c: Configuration, **options: Any):
        self.model, self.xs, self.options = model, xs, options
        self.phases = ["load", "first", "second", "many"]
        if c.resize:
            self.phases.append("resize")
        self.phases.append("end")
        self.runner: Any = None
        self.got: tuple[Arrays, int] | None = None

    def load(self) -> None:
        self.runner = clgpu_delegate.Runner(self.model, depth=3, **self.options)

    def run(self, k: int) -> None:
        result = self.runner.run(self.xs[k])
        self.got = result if isinstance(result, list) else [result], k

    def first(self) -> None:
        self.run(0)

    def second(self) -> None:
        self.run(1)

    def many(self) -> None:
        """Keep the first result that is wrong, else raise the first error."""
        futures = [self.runner.run_async(self.xs[k % 3]) for k in range(5)]
        error: Exception | None = None
        for k, future in enumerate(futures):
            try:
                result = future.result(30)
            except Exception as raised:
                error = error or raised
                continue
            self.got = result if isinstance(result, list) else [result], k % 3
            if not self.is_right(*self.got):
                return
        if error is not None:
            raise error

    is_right: Callable[[Arrays, int], bool]

    def resize(self) -> None:
        shape = self.xs[0][0].shape
        self.runner.resize((2, *shape[1:]))
        self.runner.run(np.concatenate([self.xs[0][0]] * 2))
        self.runner.resize(shape)
        self.run(1)

    def end(self) -> None:
        if self.runner is not None:
            self.runner.close()
        self.runner = None

    def recover(self, phase: str) -> None:
        """Run an inference as a user would after an error."""
        if self.runner is None:
            self.load()
        if phase == "resize" and self.runner.inputs[0].shape != self.xs[0][0].shape:
            self.runner.resize(self.xs[0][0].shape)
        self.run(1)


class Laboratory:
    """The experiments of one configuration."""

    def __init__(self, name: str, folder: str, *, fail_allocations: bool) -> None:
        self.configuration = c = CONFIGURATIONS[name]
        self.layer = Layer()
        self.allocations = Allocations() if fail_allocations else None
        self.model = c.model()
        self.options = dict(c.options)
        self.cache = Path(folder) / "cache.sqlite" if c.cache else None
        self.options["cache"] = str(self.cache) if self.cache else "off"
        interpreter = make_interpreter("auto", self.model)
        interpreter.allocate_tensors()
        rng = np.random.default_rng(0)
        details = interpreter.get_input_details()
        self.xs = [[_draw(rng, d["shape"], d["dtype"]) for d in details] for _ in range(3)]
        self.want = [run_reference(self.model, x) for x in self.xs]
        if c.budget:
            job = self.job()
            job.load()
            job.make()
            (plan,) = job.delegate.explain().to_dict()["partitions"]
            bytes_ = plan["arena_bytes"] + plan["weights_bytes"]
            self.options["memory_budget"] = int(bytes_ * c.budget)
            job.end()
        self.counts: dict[str, dict[str, int]] = {}
        for _ in range(2):  # the second time, everything is cached
            self.counts = self.run_cleanly()
        self.kept = self.cache.read_bytes() if self.cache else b""
        self.base = self.live()

    def job(self) -> Any:
        kind = RunnerJob if self.configuration.runner else Job
        job = kind(self.model, self.xs, self.configuration, **self.options)
        job.is_right = self.is_right  # type: ignore[union-attr]
        if self.configuration.cold:
            _core.forget_programs("0")
        return job

    def run_cleanly(self) -> dict[str, dict[str, int]]:
        """Check the configuration; return how often each phase makes each call."""
        job = self.job()
        counts = {}
        for phase in job.phases:
            if phase == "end":
                self.check_claims(job)
            job.got = None
            self.layer.reset()
            with self.failing(None):
                getattr(job, phase)()
            counts[phase] = {n: k for n, k in self.layer.calls().items() if k}
            if self.allocations is not None:
                counts[phase] = {NEW: self.allocations.seen}
            if job.got is not None:
                assert self.is_right(*job.got), f"wrong without a fault, phase {phase}"
        assert not self.layer.misuse, self.layer.misuse
        return counts

    def check_claims(self, job: Any) -> None:
        claims = self.configuration.claims
        source = job.runner if self.configuration.runner else job.delegate
        plan = source.explain()
        assert plan.claimed, "nothing is on the device"
        if claims == "partitions":
            assert len(plan.partitions) > 1, plan
        elif claims == "moves":
            assert plan.to_dict()["partitions"][0]["moves"], plan
        elif claims == "stream":
            assert job.runner.mode == "stream", job.runner.mode

    def is_right(self, got: Arrays, k: int) -> bool:
        """Compare the results of inputs `k` with those of the stock kernels."""
        return all(self.is_close(g, w) for g, w in zip(got, self.want[k]))

    def is_close(self, got: np.ndarray, want: np.ndarray) -> bool:
        if got.shape != want.shape or got.dtype != want.dtype:
            return False
        g, w = np.asarray(got, np.float64), np.asarray(want, np.float64)
        if want.dtype.kind != "f":
            return bool(np.abs(g - w).max(initial=0) <= 1)
        most = self.configuration.tolerance * max(np.linalg.norm(w), 1e-3)
        return bool(np.isfinite(g).all() and np.linalg.norm(g - w) <= most)

    def live(self) -> dict[str, int]:
        """Objects of a job, which must be released with it."""
        gc.collect()
        kept = ("context", "program")  # of the process
        return {kind: n for kind, n in self.layer.live().items() if kind not in kept}

    @contextlib.contextmanager
    def failing(self, attempt: Attempt | None) -> Iterator[None]:
        """Within, calls fail."""
        try:
            if self.allocations is not None:
                self.allocations.watch(-1 if attempt is None else attempt.skip)
            elif attempt is not None and attempt.call == ANY:
                self.layer.lose_device(attempt.code, attempt.skip)
            elif attempt is not None:
                self.layer.fail(attempt.call, attempt.code, attempt.skip, attempt.count)
            yield
        finally:
            if self.allocations is not None:
                self.allocations.rest()
            self.layer.clear()

    def attempts(self) -> list[Attempt]:
        """All experiments: one call fails once, or it and all later ones fail."""
        found = []
        for phase, counts in self.counts.items():
            if NEW in counts:
                found += [Attempt(phase, NEW, k, 1, 0) for k in range(counts[NEW])]
                continue
            for call, n in counts.items():
                if call in OF_PROCESS:
                    continue
                for code in CODES.get(call, USUAL):
                    found += [Attempt(phase, call, k, 1, code) for k in range(n)]
                    found += [Attempt(phase, call, k, -1, code) for k in sorted({0, n // 2})]
            n = sum(counts.values())
            found += [
                Attempt(phase, ANY, k, -1, LOST) for k in sorted({n * i // 12 for i in range(12)})
            ]
        return found

    def drawn(self, share: int, most: int, seed: int) -> list[tuple[int, Attempt]]:
        """Return one attempt in `share` of each phase, at most `most`, with their numbers."""
        draw = random.Random(seed)
        by_phase: dict[str, list[tuple[int, Attempt]]] = {}
        for number, attempt in enumerate(self.attempts()):
            by_phase.setdefault(attempt.phase, []).append((number, attempt))
        chosen = []
        for attempts in by_phase.values():
            chosen += draw.sample(attempts, -(-min(len(attempts), most) // share))
        return sorted(chosen)

    def run(self, attempt: Attempt) -> dict[str, Any]:
        """Return the table column of an experiment, and the observation."""
        if self.cache:
            self.cache.write_bytes(self.kept)
        job = self.job()
        for phase in job.phases[: job.phases.index(attempt.phase)]:
            getattr(job, phase)()
        job.got = None
        self.layer.reset()
        seen: dict[str, Any] = {"outcome": "right"}
        with self.failing(attempt):
            try:
                getattr(job, attempt.phase)()
            except Exception as error:
                text = re.sub(r"Node number.*?(invoke|prepare)\.", "", str(error)).strip()
                seen.update(outcome="told", error=f"{type(error).__name__}: {error}"[:400])
                if len(text) < 10 and not isinstance(error, MemoryError):
                    seen["outcome"] = "stuck"
                if self.layer.host_commands and attempt.phase not in ("many", "end"):
                    seen["dead"] = f"{self.layer.host_commands} commands still use host memory"
        if job.got is not None and not self.is_right(*job.got):
            seen["outcome"] = "wrong"
        seen["hit"] = self.layer.failed if self.allocations is None else self.allocations.thrown
        if attempt.phase != "end":
            job.got = None
            try:
                job.recover(attempt.phase)
                job.run(2)
            except Exception as error:
                seen.update(outcome="stuck", later=f"{type(error).__name__}: {error}"[:400])
            if job.got is not None and not self.is_right(*job.got):
                seen["outcome"] = "wrong"
        try:
            job.end()
        except Exception as error:
            seen.update(outcome="stuck", later=f"{type(error).__name__}: {error}"[:400])
        del job
        now = self.live()
        if now != self.base:
            seen["leaked"] = {k: n - self.base[k] for k, n in now.items() if n != self.base[k]}
            self.base = now
        if self.layer.misuse:
            seen["dead"] = self.layer.misuse[:400]
        return seen


def _draw(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-100, 100, shape).astype(dtype)


def main() -> None:
    """Run the experiments that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.experiment")
    parser.add_argument("configuration", choices=CONFIGURATIONS)
    parser.add_argument("--share", type=int, default=1, help="one in so many, drawn by the seed")
    parser.add_argument("--most", type=int, default=10**9, help="of a phase; of these one in SHARE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first of them")
    parser.add_argument("--only", type=int, help="the number of one of all, not of those drawn")
    asked = parser.parse_args()
    os.environ.setdefault("CLGPU_CACHE", "off")
    folder = tempfile.mkdtemp()
    try:
        lab = Laboratory(asked.configuration, folder, fail_allocations=ALLOCATIONS in os.environ)
        drawn = lab.drawn(asked.share, asked.most, asked.seed)
        if asked.only is not None:
            drawn = [(asked.only, lab.attempts()[asked.only])]
        print(json.dumps({"attempts": len(drawn), "of": len(lab.attempts())}), flush=True)
        for i, (number, attempt) in enumerate(drawn):
            if i < asked.first:
                continue
            about = {"i": i, "number": number, **dataclasses.asdict(attempt)}
            print(json.dumps({"begin": about}), flush=True)
            print(json.dumps({"i": i, **lab.run(attempt)}), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main()

"""How placements of a model are measured: one after the other, end to end, within some seconds."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from clgpu_delegate import _core
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.native import BareDelegate
from clgpu_delegate.options import Options
from clgpu_delegate.placement.verdict import CPU, PLACEMENTS, Timing, Verdict
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.tflite.inference import random_inputs

_TIE = 1.03  # the CPU wins if it takes at most this factor longer
_CLEAR = 1.25  # a lead that needs no second measurement
_HOPELESS = 3.0  # times the best so far: one run is enough
_SETTLE_SECONDS = 0.05  # until the threads of the one before have stopped spinning
_TIMING_SECONDS = 0.5  # of a placement
_TOTAL_SECONDS = 8.0  # after which no further placement is timed, but the first two
_MOST_RUNS, _LEAST_RUNS = 200, 3
_LONG_SECONDS = 1.0  # a run that needs no second one

Progress = Callable[[int, int, str], None]
Make = Callable[[Sequence[object]], Any]


@dataclasses.dataclass(frozen=True)
class _Loaded:
    """An interpreter that has run once, and what its delegate did, if it has one."""

    interpreter: Any
    first_ms: float
    """Of its first run."""

    explanation: Explanation | None = None
    undone: bool = False
    """Whether the runtime took the claimed nodes back."""

    worth: frozenset[bool] = frozenset()
    """Which partitions the cost model would claim: all, none, or some of them."""


def measure(
    make: Make, options: Options, runtime: str, threads: int, progress: Progress | None = None
) -> Verdict:
    """Time all placements.

    ``make(delegates)`` gives an interpreter whose tensors are not allocated. Raises ClgpuError if
    neither the CPU alone nor the device can run the model, and what ``progress`` raises.
    """
    contest = _Contest(make, options, threads)
    start = time.perf_counter()
    for done, name in enumerate(PLACEMENTS):
        if progress is not None:
            progress(done, len(PLACEMENTS), name)
        if done > 1 and time.perf_counter() - start > _TOTAL_SECONDS:
            contest.timings[name] = Timing(name, None, 0, "not tried: the time limit was reached")
        else:
            contest.enter(name)
    if time.perf_counter() - start < 2 * _TOTAL_SECONDS:
        contest.look_again()
    choice = contest.winner()
    plan = contest.all_nodes
    claimed = contest.claims.get(choice, frozenset())
    return Verdict(
        choice=choice,
        left=tuple(n.index for n in plan.nodes if n.index not in claimed) if plan else (),
        ops=tuple(n.op for n in plan.nodes) if plan else (),
        timings=tuple(contest.timings.values()),
        device=plan.device if plan else "",
        precision=options.precision_name,
        runtime=runtime,
        threads=threads,
    )


class _Contest:
    """Placements that are loaded and released one by one.

    Spinning threads would falsify the time of the next one, and weights take memory.
    """

    def __init__(self, make: Make, options: Options, threads: int) -> None:
        self._make, self._threads = make, threads
        self._options = dataclasses.replace(options, placement="all", verify="off", profile=False)
        self.timings: dict[str, Timing] = {}
        self.claims: dict[str, frozenset[int]] = {CPU: frozenset()}
        self.all_nodes: Explanation | None = None
        self._worth: frozenset[bool] = frozenset()
        self._zeros = False

    def enter(self, name: str) -> None:
        """Measure a placement, unless it claims the same nodes as another one."""
        options = self._options_of(name)
        if name != CPU and options is None:
            return
        try:
            with self._loaded(options) as loaded:
                if loaded.explanation is not None:
                    if name == "all":
                        self.all_nodes, self._worth = loaded.explanation, loaded.worth
                    if loaded.undone:
                        raise ClgpuError("the runtime undid the delegation")
                    claimed = _claimed(loaded.explanation)
                    if claimed in self.claims.values():
                        return
                    self.claims[name] = claimed
                ms = self._time(loaded)
                del loaded
        except (RuntimeError, ValueError) as error:  # errors of the runtimes and of this package
            self.timings[name] = Timing(name, None, 0, one_line(error))
        else:
            self.timings[name] = Timing(name, ms, len(self.claims[name]))

    def look_again(self) -> None:
        """Measure a close result again: the better time of each counts."""
        name = self.winner()
        cpu, best = self._ms(CPU), self._ms(name)
        if name == CPU or cpu is None or best is None or cpu > best * _CLEAR:
            return
        for again in (CPU, name):
            with contextlib.suppress(RuntimeError, ValueError):  # it has a time already
                self._measure_anew(again)

    def _measure_anew(self, name: str) -> None:
        timing = self.timings[name]
        with self._loaded(self._options_of(name)) as loaded:
            ms = self._time(loaded)
        self.timings[name] = dataclasses.replace(timing, ms=min(ms, timing.ms or ms))

    def winner(self) -> str:
        """Name of the fastest; ClgpuError if none works."""
        times = {name: t.ms for name, t in self.timings.items() if t.ms is not None}
        if not times:
            problems = "; ".join(f"{t.name}: {t.problem}" for t in self.timings.values())
            raise ClgpuError(f"no placement of the model works: {problems}")
        best = min(times, key=lambda name: times[name])
        return CPU if CPU in times and times[CPU] <= times[best] * _TIE else best

    def _ms(self, name: str) -> float | None:
        timing = self.timings.get(name)
        return timing.ms if timing else None

    def _options_of(self, name: str) -> Options | None:
        """None: without the delegate, or not to be tried."""
        if name == "all":
            return self._options
        changes = self._changes_of(name)
        return dataclasses.replace(self._options, **changes) if changes else None

    def _changes_of(self, name: str) -> dict[str, Any]:
        """Empty if the placement cannot differ from another one."""
        plan = self.all_nodes
        if plan is None or not plan.claimed:
            return {}
        if name == "auto" and len(self._worth) > 1:
            return {"placement": "auto"}
        if name == "core" and not {n.op for n in plan.nodes if n.claimed} <= _core_operations():
            return {"ops": "core"}
        if name == "largest" and plan.partition_count > 1:
            largest = max(plan.partitions, key=lambda partition: len(partition.nodes))
            left = [str(node.index) for node in plan.nodes if node.index not in largest.nodes]
            return {"exclude": ",".join([*filter(None, [str(self._options.exclude)]), *left])}
        return {}

    @contextlib.contextmanager
    def _loaded(self, options: Options | None) -> Iterator[_Loaded]:
        delegate = None if options is None else BareDelegate(options)
        interpreter = self._make([] if delegate is None else [delegate])
        interpreter.allocate_tensors()
        first_ms = self._first_ms(interpreter)
        if delegate is None:
            yield _Loaded(interpreter, first_ms)
            return
        explanation = Explanation(delegate.native.explain())
        costs = delegate.native.estimates(self._threads)
        yield _Loaded(
            interpreter,
            first_ms,
            explanation,
            undone=bool(explanation.partitions) and delegate.native.stats()["invokes"] == 0,
            worth=frozenset(cost["device_seconds"] < cost["cpu_seconds"] for cost in costs),
        )

    def _first_ms(self, interpreter: Any) -> float:
        """Set the inputs and run once.

        Random indices may lie outside of a tensor. Where stock refuses the random inputs, all
        placements get zeros.
        """
        inputs = random_inputs(interpreter)
        if self._zeros:
            inputs = [np.zeros_like(value) for value in inputs]
        for detail, value in zip(interpreter.get_input_details(), inputs):
            interpreter.set_tensor(detail["index"], value)
        start = time.perf_counter()
        try:
            interpreter.invoke()
        except (RuntimeError, ValueError):
            if self._zeros or self.timings:  # stock comes first
                raise
            self._zeros = True
            return self._first_ms(interpreter)
        return (time.perf_counter() - start) * 1e3

    def _time(self, loaded: _Loaded) -> float:
        """Median milliseconds."""
        if loaded.first_ms > _LONG_SECONDS * 1e3:
            return loaded.first_ms
        time.sleep(_SETTLE_SECONDS)
        best = min((t.ms for t in self.timings.values() if t.ms is not None), default=None)
        times: list[float] = []
        loaded.interpreter.invoke()
        end = time.perf_counter() + _TIMING_SECONDS
        while len(times) < _LEAST_RUNS or (len(times) < _MOST_RUNS and time.perf_counter() < end):
            start = time.perf_counter()
            loaded.interpreter.invoke()
            times.append((time.perf_counter() - start) * 1e3)
            if best is not None and min(times) > _HOPELESS * best:
                break
        return statistics.median(times)


def _claimed(explanation: Explanation) -> frozenset[int]:
    return frozenset(node.index for node in explanation.nodes if node.claimed)


def _core_operations() -> set[str]:
    return {op for family in _core.families() if family["core"] for op in family["ops"]}

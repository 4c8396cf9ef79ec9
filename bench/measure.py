"""Timing: medians of runs that take turns, and of batches of runs.

This module does not import the package, because `bench.guard_worker` imports other builds of it.
"""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clgpu_delegate import Delegate

_BATCH_S = 5e-3  # duration of a timing
_MOST_RUNS = 1000  # in a batch


def medians(
    runs: Mapping[str, Callable[[], object]], *, rounds: int, budget_s: float, least: int = 1
) -> dict[str, float]:
    """Time functions side by side.

    They take turns, so that a drift of the machine's speed affects all of them and not the ratios.

    Parameters
    ----------
    runs
        Functions by name. Each is called once before timing starts.
    rounds
        Calls of each, at most.
    budget_s
        No round starts later than this many seconds after the first.
    least
        Calls of each, at least, even when they exceed the budget.

    Returns
    -------
    dict
        Median of each function's times, in seconds.
    """
    for run in runs.values():
        run()
    timings = {name: functools.partial(_seconds_of, run) for name, run in runs.items()}
    return _medians_in_turns(timings, rounds=rounds, budget_s=budget_s, least=least)


def _seconds_of(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _medians_in_turns(
    timings: Mapping[str, Callable[[], float]], *, rounds: int, budget_s: float, least: int = 1
) -> dict[str, float]:
    """Median of what each function returns; parameters as in `medians`."""
    times: dict[str, list[float]] = {name: [] for name in timings}
    deadline = time.perf_counter() + budget_s
    for done in range(rounds):
        if done >= least and time.perf_counter() > deadline:
            break
        for name, timing in timings.items():
            times[name].append(timing())
    return {name: statistics.median(values) for name, values in times.items()}


def runs_in_batch(once: float) -> int:
    """Return the number of runs that form one timing, given the seconds of one run."""
    return max(1, min(_MOST_RUNS, math.ceil(_BATCH_S / max(once, 1e-9))))


def batched_median_s(batch: Callable[[int], float], *, rounds: int, budget_s: float) -> float:
    """Median seconds of a run, timed in batches of some milliseconds.

    Parameters
    ----------
    batch
        Takes a number of runs, and returns the seconds of one of them.
    rounds
        Batches, at most.
    budget_s
        No batch starts later than this many seconds after the first. A longer run is timed once.
    """
    once = batch(1)
    if once >= budget_s:
        return once
    runs = runs_in_batch(once)
    deadline = time.perf_counter() + budget_s
    batch(runs)  # raises the clock rates
    times: list[float] = []
    while len(times) < rounds and (not times or time.perf_counter() < deadline):
        times.append(batch(runs))
    return statistics.median(times)


def device_median_s(
    delegate: Delegate, node: int | None = None, *, rounds: int, budget_s: float
) -> float:
    """Median device time of a node, or of all nodes, with many runs in flight."""
    return batched_median_s(
        lambda runs: delegate.device_time(runs, node), rounds=rounds, budget_s=budget_s
    )


def device_medians(
    delegates: Mapping[str, Delegate], *, rounds: int, budget_s: float
) -> dict[str, float]:
    """Median device time of all nodes of each delegate, as in `device_median_s`, in turns."""
    batches = {
        name: functools.partial(delegate.device_time, runs_in_batch(delegate.device_time(1)))
        for name, delegate in delegates.items()
    }
    for batch in batches.values():
        batch()  # raises the clock rates
    return _medians_in_turns(batches, rounds=rounds, budget_s=budget_s)


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Return the L2 norm of the difference, relative to the norm of ``want``."""
    got, want = (np.asarray(array, np.float64).ravel() for array in (got, want))
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def sentence_of(failure: BaseException) -> str:
    """Return the message of an exception in one line, without the lines that a runtime adds."""
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return lines[0].removeprefix("clgpu_delegate: ") if lines else type(failure).__name__

"""Timing: medians of runs that take turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def medians(
    runs: Mapping[str, Callable[[], object]], *, rounds: int, budget_s: float
) -> dict[str, float]:
    """Time functions side by side.

    They take turns, so that a machine whose speed drifts slows all of them alike and ratios hold.

    Parameters
    ----------
    runs
        Functions by name. Each is called once before timing starts.
    rounds
        Calls of each, at most.
    budget_s
        Seconds after which no further round starts; there is always one.

    Returns
    -------
    dict
        Median of each function's times, in seconds.
    """
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    deadline = time.perf_counter() + budget_s
    for done in range(rounds):
        if done and time.perf_counter() > deadline:
            break
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}

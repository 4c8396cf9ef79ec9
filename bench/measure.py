"""Timing: medians of runs that take turns."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping

from clgpu_delegate import Delegate

BATCH_S = 5e-3  # of inferences in flight per timing


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


def device_median_s(
    delegate: Delegate, node: int | None = None, *, rounds: int, budget_s: float
) -> float:
    """Median device time of a node, or of all nodes, in batches of milliseconds.

    At most ``rounds`` batches, within ``budget_s``; what alone takes longer is run once.
    """
    once = delegate.device_time(1, node)
    if once >= budget_s:
        return once
    runs = max(1, min(1000, math.ceil(BATCH_S / max(once, 1e-9))))
    deadline = time.perf_counter() + budget_s
    delegate.device_time(runs, node)  # brings clocks up
    times: list[float] = []
    while len(times) < rounds and (not times or time.perf_counter() < deadline):
        times.append(delegate.device_time(runs, node))
    return statistics.median(times)

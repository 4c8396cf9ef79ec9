"""Compares the times of several functions on a machine that should be idle."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clgpu_delegate.errors import OptionError

try:
    import fcntl
except ImportError:  # there is none on Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from clgpu_delegate.delegate import Delegate

BUSY = 0.2
"""Largest share of the cores that other processes may use for reliable times."""

LOCK = "CLGPU_TIMING_LOCK"
"""Environment variable that may name a file: processes with the same one time the device one after
the other, so that several of them may search for plans of precisions at a time."""

_STATISTICS = Path("/proc/stat")
_SAMPLE_S = 0.25
_BLOCKS = 4
_SLOT_SECONDS = 0.3  # of each turn of a delegate


def wait_until_quiet(limit_s: float = 10.0) -> float | None:
    """Wait until other processes leave the cores idle, such as a compiler that is about to end.

    Parameters
    ----------
    limit_s
        Longest time to wait, in seconds.

    Returns
    -------
    float or None
        Share of all cores that were busy when the wait ended, `BUSY` or less where they became
        quiet; None where the system does not tell.
    """
    deadline = time.monotonic() + limit_s
    while True:
        before = _core_times()
        if before is None:
            return None
        time.sleep(_SAMPLE_S)
        after = _core_times()
        if after is None:
            return None
        total = after[1] - before[1]
        busy = (after[0] - before[0]) / total if total > 0 else 0.0
        if busy <= BUSY or time.monotonic() >= deadline:
            return busy


def medians_ms(
    ways: Mapping[str, Callable[[], object]], runs: int, *, pause_s: float = 0.05
) -> dict[str, float]:
    """Time functions in turns, so that a drift of the machine's speed affects all of them equally.

    Each turn is a pause, an untimed call, and a block of timed calls. Without the pause, threads
    that still spin after the last call of another function would slow this one down.

    Parameters
    ----------
    ways
        Functions by name.
    runs
        Timed calls of each; 1 or more.
    pause_s
        Length of the pause, in seconds.

    Returns
    -------
    dict
        The median of each function's times, in milliseconds.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    blocks = min(_BLOCKS, runs)
    for block in range(blocks):
        calls = runs // blocks + (block < runs % blocks)
        for name, way in ways.items():
            time.sleep(pause_s)
            way()
            for _ in range(calls):
                start = time.perf_counter()
                way()
                times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def _core_times() -> tuple[int, int] | None:
    """Time that all cores were busy, and in all, in ticks since the system has started."""
    try:
        words = _STATISTICS.read_text(encoding="ascii").split("\n", 1)[0].split()
        ticks = [int(word) for word in words[1:9]]  # the first two contain the other fields
    except (OSError, ValueError):
        return None
    if words[:1] != ["cpu"] or len(ticks) < 5:
        return None
    idle = ticks[3] + ticks[4]  # and waiting for a disk
    return sum(ticks) - idle, sum(ticks)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Wait until no other process with the same `LOCK` is within, and keep others out.

    Raises
    ------
    OptionError
        If the file cannot be opened, or the system has no such locks.
    """
    path = os.environ.get(LOCK)
    if not path:
        yield
        return
    if fcntl is None:
        raise OptionError(f"{LOCK} is set, but this system has no fcntl, whose locks it needs")
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("ab"))
        except OSError as error:
            raise OptionError(
                f"{LOCK} is {path}, which cannot be opened: {error.strerror}; allowed: a file that "
                "can be written"
            ) from None
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        yield


def device_times(*delegates: Delegate, turns: int = 3) -> list[float]:
    """Seconds per inference of each: they take turns, so that a change of the clock affects all.

    Each turn is `alone`.
    """
    times: list[list[float]] = [[] for _ in delegates]
    runs = [
        max(1, min(200, int(_SLOT_SECONDS / max(delegate.device_time(1), 1e-6))))
        for delegate in delegates
    ]
    for _ in range(turns):
        for own, delegate, count in zip(times, delegates, runs):
            with alone():
                own.append(delegate.device_time(count))
    return [statistics.median(own) for own in times]

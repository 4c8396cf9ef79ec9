"""The processes of ``python -m bench guard``: which items each loads, and when it is timed."""

from __future__ import annotations

import dataclasses
import heapq
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.guard_items import Item, needed_first
from bench.process import Process, WorkerError, WorkerLostError

_SLOW_S = 0.25  # longer inferences are timed in only three rounds
_SLOW_ROUNDS = 3
_PREPARING = 0.7  # share of the time after which no further item is prepared
_LEAST_WAIT_S = 30.0  # for an answer, even after the time limit
_PREPARING_S = 150.0  # an item at most: all wait for one that hangs
_MEMORY = 0.6  # share of the device's memory for loaded items

TOO_LATE = "within the time limit"
"""The end of the message about an item for which no time was left."""

Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Build:
    """A build of the package.

    Attributes
    ----------
    name
        ``"this"``, or a commit.
    package
        The folder that contains `clgpu_delegate`; empty: the installed one.
    """

    name: str
    package: str = ""


class Worker(Process):
    """A process that answers requests, one after the other; see `bench.guard_worker`."""

    def __init__(self, build: Build, device: str, folder: Path) -> None:
        cache = folder / f"cache-{build.name}.sqlite"
        words = [build.package, device, str(cache), str(folder)]
        super().__init__("bench.guard_worker", words, folder=folder, name=build.name)
        self.held: set[str] = set()
        """Names of the items that it keeps loaded."""


@dataclasses.dataclass
class Result:
    """The result of one build for one item.

    Attributes
    ----------
    samples
        By round: seconds of an inference, and of the calibration kernel (0 without one).
    facts
        See ``_Held.facts`` of `bench.guard_worker`.
    error
        Why it failed; empty if it did not.
    """

    samples: dict[int, tuple[float, float]] = dataclasses.field(default_factory=dict)
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)
    error: str = ""


@dataclasses.dataclass
class Measured:
    """What a session found: results by build and item, and the calibration."""

    results: dict[str, dict[str, Result]]
    calibration: dict[str, Any]
    device: dict[str, Any]
    rounds: int = 0
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    """Of the phases."""


class Session:
    """Prepares items side by side in several processes, then loads and times them one at a time.

    Parameters
    ----------
    items, builds
        What to measure; the first build is this one, whose processes write the models.
    device
        As in `clgpu_delegate.load`; the same for all builds.
    clock
        Arguments of ``Server.clock`` of `bench.guard_worker`.
    folder
        For models, caches and logs.
    limit_s
        No round starts later than this many seconds after the first.
    rounds
        At most.
    processes
        That prepare items side by side; None: half the processors, at most 8.
    plans
        Whether the facts of this build's items have their plans.
    say
        Called with a line about each step.
    """

    def __init__(
        self, items: Sequence[Item], builds: Sequence[Build], *, device: str,
        clock: dict[str, Any], folder: Path, limit_s: float, rounds: int,
        processes: int | None = None, plans: bool = False, say: Say = lambda _: None,
    ) -> None:  # fmt: skip
        self._items, self._builds = list(items), list(builds)
        self._device, self._clock, self._folder = device, clock, folder
        self._rounds, self._plans, self._say = rounds, plans, say
        self._limit_s = limit_s
        self._start = time.monotonic()
        self._processes = processes or max(1, min(8, (os.cpu_count() or 1) // 2))
        self._timed: dict[str, Worker] = {}
        self._brief: set[str] = set()  # items that are loaded for each timing
        self._results = {b.name: {i.name: Result() for i in items} for b in builds}
        self._memory = float("inf")

    def run(self) -> Measured:
        """Load and time everything.

        Raises
        ------
        WorkerError, WorkerLostError
            If the device cannot be used at all.
        """
        try:
            device = {b.name: self._open(b)["device"] for b in self._builds}
            ours = device[self._builds[0].name]
            self._memory = _MEMORY * ours["global_bytes"] / len(self._builds)
            calibration = self._timed[self._builds[0].name].ask("clock", 120, **self._clock)
            self._clock["work"] = calibration["work"]
            for build in self._builds[1:]:  # the same work must run before each timing
                self._timed[build.name].ask("clock", 120, **self._clock)
            measured = Measured(self._results, calibration, ours)
            self._load()
            measured.seconds["loading"] = self._elapsed()
            measured.rounds = self._measure()
            measured.seconds["all"] = self._elapsed()
            return measured
        finally:
            for worker in self._timed.values():
                worker.close()

    # ------------------------------------------------------------------ loading

    def _load(self) -> None:
        """Prepare all items side by side, then load them one at a time.

        Each is timed once right behind: a run that the limit ends early tells of those it loaded.
        While it loads, the delegate times kernels against each other, chains among them: other
        processes must not use the device.
        """
        tasks = _Tasks(self._items, self._builds)
        threads = [
            threading.Thread(target=self._prepare, args=(tasks,), daemon=True)
            for _ in range(min(self._processes, len(self._items) * len(self._builds)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._say(f"{self._elapsed():.0f} s: all programs are compiled")
        for item in self._items:
            for build in self._builds:
                if self._results[build.name][item.name].error:
                    continue
                if self._elapsed() > self._limit_s:
                    self._fail(build.name, item, f"not loaded {TOO_LATE}")
                    continue
                self._guarded(build, item, self._hold)
            if item.name not in self._brief:
                self._time_in_all(item, 0)
        self._say(f"{self._elapsed():.0f} s: all items are loaded")

    def _prepare(self, tasks: _Tasks) -> None:
        workers: dict[str, Worker] = {}
        while (task := tasks.take()) is not None:
            name = task.build.name
            try:
                self._do(task, workers)
            except WorkerError as failure:
                if task.item is None:  # otherwise loading reports the error
                    self._fail_task(task, str(failure))
            except Exception as failure:  # other items go on
                if name in workers:
                    workers.pop(name).close()
                self._fail_task(task, str(failure))
            finally:
                tasks.done(task)
        for worker in workers.values():
            worker.close()

    def _do(self, task: _Task, workers: dict[str, Worker]) -> None:
        name = task.build.name
        if task.item is not None and self._results[name][task.item.name].error:
            return  # it has no model
        if self._elapsed() > _PREPARING * self._limit_s:
            raise WorkerLostError(f"not loaded {TOO_LATE}")
        if name not in workers:
            workers[name] = Worker(task.build, self._device, self._folder)
        if task.item is None:
            workers[name].ask("build", self._patience(), model=task.model)
        else:
            patience = min(self._patience(), _PREPARING_S)
            workers[name].ask("prepare", patience, item=dataclasses.asdict(task.item))

    def _hold(self, build: Build, item: Item) -> None:
        """Load an item into the timed process, just for one timing: memory is short."""
        worker = self._open_again(build)
        facts = worker.ask("hold", self._patience(), item=dataclasses.asdict(item))
        self._results[build.name][item.name].facts = facts
        worker.held.add(item.name)
        if self._plans and build is self._builds[0]:
            facts |= worker.ask("plan", self._patience(), name=item.name)
        if facts["device_bytes"] > self._memory:
            self._brief.add(item.name)
            self._drop(worker, item)

    def _drop(self, worker: Worker, item: Item) -> None:
        worker.held.discard(item.name)
        worker.ask("drop", self._patience(), name=item.name)

    # ------------------------------------------------------------------ timing

    def _measure(self) -> int:
        done = 0
        for number in range(self._rounds):
            began = time.monotonic()
            for item in self._items:
                if number and self._elapsed() > self._limit_s:
                    return done
                self._time_in_all(item, number)
            done += 1
            took = time.monotonic() - began
            self._say(f"{self._elapsed():.0f} s: round {done} took {took:.1f} s")
            if self._elapsed() + took > self._limit_s:
                break
        return done

    def _time_in_all(self, item: Item, number: int) -> None:
        """Time an item in each build, where this round has not; their order changes by rounds."""
        for build in self._builds if number % 2 == 0 else self._builds[::-1]:
            result = self._results[build.name][item.name]
            slow = any(seconds > _SLOW_S for seconds, _ in result.samples.values())
            enough = slow and len(result.samples) >= _SLOW_ROUNDS
            if not result.error and not enough and number not in result.samples:
                self._guarded(build, item, self._time(number))

    def _time(self, number: int) -> Callable[[Build, Item], None]:
        def time_it(build: Build, item: Item) -> None:
            worker = self._open_again(build)
            if item.name not in worker.held:
                worker.ask("hold", self._patience(), item=dataclasses.asdict(item))
                worker.held.add(item.name)
            answer = worker.ask("time", self._patience(), name=item.name)
            sample = (answer["seconds"], answer["calibration"])
            self._results[build.name][item.name].samples[number] = sample
            if item.name in self._brief:
                self._drop(worker, item)

        return time_it

    # ------------------------------------------------------------------ processes

    def _guarded(self, build: Build, item: Item, what: Callable[[Build, Item], None]) -> None:
        """Run a request; a failure belongs to the item, and a lost process is started again."""
        try:
            what(build, item)
        except WorkerError as failure:
            self._fail(build.name, item, str(failure))
        except Exception as failure:  # other items go on
            self._fail(build.name, item, str(failure))
            if build.name in self._timed:
                self._timed.pop(build.name).close()

    def _open(self, build: Build) -> dict[str, Any]:
        worker = self._timed[build.name] = Worker(build, self._device, self._folder)
        found = worker.ask("where", 120)
        if build.package and not Path(found["package"]).is_relative_to(build.package):
            raise WorkerError(f"{build.name}: the package was taken from {found['package']}")
        return found

    def _open_again(self, build: Build) -> Worker:
        if build.name not in self._timed:
            self._open(build)
            self._timed[build.name].ask("clock", 120, **self._clock)
        return self._timed[build.name]

    def _fail(self, build: str, item: Item, why: str) -> None:
        self._results[build][item.name].error = why
        if not why.endswith(TOO_LATE):  # there may be many, which are reported together
            self._say(f"{item.name}{'' if build == self._builds[0].name else f' ({build})'}: {why}")

    def _fail_task(self, task: _Task, why: str) -> None:
        """Record a failure of an item, or of all items of a model that could not be built."""
        if task.item is not None:
            self._fail(task.build.name, task.item, why)
            return
        for item in self._items:
            if item.model == task.model:
                for build in self._builds:
                    self._fail(build.name, item, why)

    def _elapsed(self) -> float:
        return time.monotonic() - self._start

    def _patience(self) -> float:
        return max(_LEAST_WAIT_S, self._limit_s - self._elapsed())


@dataclasses.dataclass(frozen=True)
class _Task:
    """A task: build a model (without an item), or prepare an item."""

    build: Build
    model: str
    item: Item | None = None


class _Tasks:
    """The tasks, in the order of the items; an item waits for its model."""

    def __init__(self, items: Sequence[Item], builds: Sequence[Build]) -> None:
        self._condition = threading.Condition()
        self._ready: list[tuple[int, int, _Task]] = []
        self._waiting: dict[str, list[tuple[int, _Task]]] = {}  # by the model that is missing
        self._running = 0
        self._count = 0
        models: dict[str, int] = {}
        for position, item in enumerate(items):
            for model in filter(None, (needed_first(item.model), item.model)):
                models.setdefault(model, position)
            waiting = self._waiting.setdefault(item.model, [])
            waiting += [(position, _Task(build, item.model, item)) for build in builds]
        for model, position in models.items():
            task = _Task(builds[0], model)
            first = needed_first(model)
            if first is None:
                self._push(position, task)
            else:
                self._waiting.setdefault(first, []).append((position, task))

    def take(self) -> _Task | None:
        """Wait for a task; None if none is left."""
        with self._condition:
            while not self._ready and self._running:
                self._condition.wait()
            if not self._ready:
                return None
            self._running += 1
            return heapq.heappop(self._ready)[2]

    def done(self, task: _Task) -> None:
        """Report the end of a task, successful or not."""
        with self._condition:
            self._running -= 1
            if task.item is None:
                for position, waiting in self._waiting.pop(task.model, []):
                    self._push(position, waiting)
            self._condition.notify_all()

    def _push(self, position: int, task: _Task) -> None:
        self._count += 1
        heapq.heappush(self._ready, (position, self._count, task))

"""Starts the processes of `bench peers`, and lets them take turns."""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import runs_in_batch
from bench.peers.energy import Meter
from bench.peers.peer import Means, Peer
from bench.peers.work import Made, Work
from bench.process import Process, WorkerError, WorkerLostError

MEASURED, FAILED, UNSUITED, MISSING = "measured", "failed", "unsuited", "missing"
"""Values of `Row.status`."""

_SETTLE_S = 0.05  # until the threads of the last peer stop spinning
_MAKING_S = 600.0
_EXACT_S = 90.0  # for the plain loops
_TURN_LIMIT_S = 60.0  # for a turn beyond its time


@dataclasses.dataclass(frozen=True)
class Row:
    """One peer and one work. What was not measured is None, or empty.

    Attributes
    ----------
    work, batch, precision, images
        Of the work; images are the samples of a batch.
    peer, version
        The library.
    status
        `MEASURED`, `FAILED`, `UNSUITED` or `MISSING`.
    note
        Why it was not measured, with the last words of a process; or a remark.
    where
        The device in words.
    rounds_ms
        Median time of an inference in each round, from array to array, one at a time.
    p10_ms, median_ms, p90_ms
        Of all inferences of all rounds.
    many_rounds_ms
        In each round, time of an inference with as many in flight as the peer allows.
    device_rounds_ms
        The same without copies between host and device, where the peer tells.
    images_per_s
        From the median of `many_rounds_ms`.
    ratios
        In each round, time of the first peer divided by this one's: above 1, this one is faster.
    ratio
        Their median.
    load_ms
        From the start of loading to the model being ready, with filled caches.
    first_ms, cold_ms
        From the start of the process to the first result: with filled, and with empty caches.
    host_bytes
        Peak of the process's memory.
    device_bytes
        Peak of the device's memory, as the peer tells it.
    error
        Relative L2 error against the reference; None if the result has numbers that are not
        finite.
    largest
        Largest absolute difference from it.
    reference
        What the reference was computed with.
    joules
        Of an inference, of what the machine counts; idle power is part of it.
    is_ours
        Whether the peer is this project.
    """

    work: str
    batch: int
    precision: str
    images: int
    peer: str
    status: str
    version: str = ""
    note: str = ""
    where: str = ""
    rounds_ms: tuple[float, ...] = ()
    p10_ms: float | None = None
    median_ms: float | None = None
    p90_ms: float | None = None
    many_rounds_ms: tuple[float, ...] = ()
    device_rounds_ms: tuple[float, ...] = ()
    images_per_s: float | None = None
    ratios: tuple[float, ...] = ()
    ratio: float | None = None
    load_ms: float | None = None
    first_ms: float | None = None
    cold_ms: float | None = None
    host_bytes: int | None = None
    device_bytes: int | None = None
    error: float | None = None
    largest: float | None = None
    reference: str = ""
    joules: float | None = None
    is_ours: bool = False

    @property
    def device_ms(self) -> float | None:
        """Median of `device_rounds_ms`."""
        return statistics.median(self.device_rounds_ms) if self.device_rounds_ms else None


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a session measures.

    Attributes
    ----------
    means
        What peers may use.
    rounds
        How often the peers take turns.
    turn_s
        Seconds of a turn, for each of the two kinds of timing.
    load_s
        Seconds after which a peer that loads is ended.
    """

    means: Means
    rounds: int
    turn_s: float
    load_s: float


class _Contender:
    """A peer during the measurement of a work."""

    def __init__(self, peer: Peer, made: Made, plan: Plan, folder: Path) -> None:
        self.peer, self._made, self._plan, self._folder = peer, made, plan, folder
        self.samples: list[list[float]] = []  # by round, seconds
        self.many: list[float] = []
        self.device: list[float] = []
        self.joules: list[float] = []
        self.facts: dict[str, Any] = {}
        self.cold_s: float | None = None
        self.problem = ""
        self._process: Process | None = None

    def load(self) -> None:
        """Start twice: with empty caches, and with what the first start has left."""
        try:
            self.cold_s = self._start()
            self.close()
            self.facts["first_s"] = self._start()
        except (WorkerError, WorkerLostError) as failure:
            self._fail(failure)

    def _start(self) -> float:
        cache = self._folder / "cache"
        cache.mkdir(exist_ok=True)
        environment = {
            "XDG_CACHE_HOME": str(cache),
            "CLGPU_CACHE": str(cache / "clgpu.sqlite"),
            **self.peer.environment(self._plan.means),
        }
        kind = type(self.peer)
        words = [kind.__module__, kind.__qualname__, str(self._made.folder)]
        self._process = Process(
            "bench.peers.worker", words, folder=self._folder, name="peer", environment=environment
        )
        means = dataclasses.asdict(self._plan.means)
        self.facts = self._process.ask("load", self._plan.load_s, means=means)
        return float(self.facts["first"] - self._process.started)

    def turn(self, meter: Meter) -> None:
        """Take part in a round."""
        assert self._process is not None
        limit = self._plan.turn_s + _TURN_LIMIT_S
        try:
            time.sleep(_SETTLE_S)
            meter.start()
            samples = self._process.ask("time", limit, seconds=self._plan.turn_s)["samples"]
            joules = meter.joules()
            once = statistics.median(samples)
            runs = max(1, min(runs_in_batch(once) * 8, int(self._plan.turn_s / max(once, 1e-9))))
            times = self._process.ask("many", limit, runs=runs)
        except (WorkerError, WorkerLostError) as failure:
            self._fail(failure)
            return
        self.samples.append(samples)
        self.many.append(times["many"])
        if times["device"] is not None:
            self.device.append(times["device"])
        if joules is not None:
            self.joules.append(joules / (len(samples) + 1))  # and one that is not timed

    def finish(self) -> None:
        """Ask for the memory, and end the process."""
        try:
            if self._process is not None and not self.problem:
                self.facts |= self._process.ask("memory", _TURN_LIMIT_S)
        except (WorkerError, WorkerLostError) as failure:
            self._fail(failure)
        finally:
            self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _fail(self, failure: Exception) -> None:
        done = len(self.samples)
        self.problem = f"after {done} rounds: {failure}" if done else str(failure)
        self.close()

    def row(self, first: _Contender) -> Row:
        """Sum up."""
        plain = empty_row(self._made.work, self._made.images, self.peer)
        if self.problem or not self.samples:
            return dataclasses.replace(plain, status=FAILED, note=self.problem)
        every = np.concatenate(self.samples) * 1e3
        p10, median, p90 = (float(v) for v in np.percentile(every, (10, 50, 90)))
        medians = [statistics.median(samples) for samples in self.samples]
        theirs = [statistics.median(samples) for samples in first.samples]
        ratios = tuple(a / b for a, b in zip(theirs, medians)) if not first.problem else ()
        facts = self.facts
        return dataclasses.replace(
            plain,
            status=MEASURED,
            version=facts["version"],
            note=facts.get("note", ""),
            where=facts.get("where", ""),
            rounds_ms=tuple(value * 1e3 for value in medians),
            p10_ms=p10,
            median_ms=median,
            p90_ms=p90,
            many_rounds_ms=tuple(value * 1e3 for value in self.many),
            device_rounds_ms=tuple(value * 1e3 for value in self.device),
            images_per_s=self._made.images / statistics.median(self.many),
            ratios=ratios,
            ratio=statistics.median(ratios) if ratios else None,
            load_ms=(facts["loaded"] - facts["start"]) * 1e3,
            first_ms=facts["first_s"] * 1e3,
            cold_ms=None if self.cold_s is None else self.cold_s * 1e3,
            host_bytes=facts["host_bytes"],
            device_bytes=facts.get("device_bytes"),
            error=facts["relative_error"],
            largest=facts["largest"],
            reference=self._made.reference,
            joules=statistics.median(self.joules) if self.joules else None,
        )


def empty_row(work: Work, images: int, peer: Peer) -> Row:
    """A row without a measurement."""
    return Row(
        work.name, work.batch, work.precision, images, peer.name, MISSING, is_ours=peer.is_ours
    )


def measure(
    works: Sequence[Work], peers: Sequence[Peer], plan: Plan, *, say: Any = lambda _: None
) -> Iterator[tuple[Work, list[Row]]]:
    """Measure works one after the other; yields the rows of all peers for each.

    The first peer is the one that the others are compared with. A peer whose process crashes,
    hangs or cannot load the work has a row that says so, and the others go on.

    Raises
    ------
    WorkerError, WorkerLostError
        If a model cannot be made at all.
    """
    meter = Meter()
    missing = {peer.name: peer.missing() for peer in peers}
    with tempfile.TemporaryDirectory() as folder:
        for number, work in enumerate(works):
            say(f"{work.label}: making the model and the reference result")
            files = Path(folder) / str(number)
            files.mkdir()
            made = make(work, files, plan.means.threads)
            yield work, _measure(made, peers, plan, missing, meter, say)


def make(work: Work, folder: Path, threads: int) -> Made:
    """Make the files of a work in a process; the plain loops are the reference if time allows."""
    request = {"work": dataclasses.asdict(work), "folder": str(folder), "threads": threads}
    for is_exact, limit in ((True, _EXACT_S), (False, _MAKING_S)):
        process = Process("bench.peers.maker", [], folder=folder, name="maker")
        try:
            process.ask("make", limit, exact=is_exact, **request)
            return Made.read(folder)
        except WorkerLostError:
            if not is_exact:
                raise
        finally:
            process.close()
    raise AssertionError


def _measure(
    made: Made, peers: Sequence[Peer], plan: Plan, missing: dict[str, str], meter: Meter, say: Any
) -> list[Row]:
    rows: dict[str, Row] = {}
    contenders: list[_Contender] = []
    for peer in peers:
        row = empty_row(made.work, made.images, peer)
        reason = peer.unsuited(made.work)
        if missing[peer.name]:
            rows[peer.name] = dataclasses.replace(row, note=missing[peer.name])
        elif reason:
            rows[peer.name] = dataclasses.replace(row, status=UNSUITED, note=reason)
        else:
            folder = made.folder / f"peer-{len(contenders)}"
            folder.mkdir()
            contenders.append(_Contender(peer, made, plan, folder))
    try:
        for contender in contenders:
            say(f"{made.work.label}: loading {contender.peer.name}")
            contender.load()
        for number in range(plan.rounds):
            say(f"{made.work.label}: round {number + 1} of {plan.rounds}")
            # The other order in every second round: who comes after whom matters on hot machines.
            for contender in contenders if number % 2 == 0 else contenders[::-1]:
                if not contender.problem:
                    contender.turn(meter)
        for contender in contenders:
            contender.finish()
    finally:
        for contender in contenders:
            contender.close()
    for contender in contenders:
        rows[contender.peer.name] = contender.row(contenders[0])
    return [rows[peer.name] for peer in peers]

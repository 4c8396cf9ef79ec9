"""Searches for plans of precisions in several processes at a time, for ``python -m bench mixed``.

Most of a search is compilation and the reference of the stock kernels, on the CPU. The processes
share a file of compiled programs. While one times kernels in its search, the others wait with
theirs (`clgpu_delegate.measure.turns.LOCK`). When all searches have ended, one more process loads
each model, with programs that are compiled by then, and measures the plan beside fp16 and fp32.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from bench import mixed
from bench.process import Process, WorkerError, WorkerLostError, serve
from bench.setting import Setting
from clgpu_delegate import PrecisionPlan
from clgpu_delegate.measure.turns import LOCK

if TYPE_CHECKING:
    from typing_extensions import Self

Say = Callable[[str], None]

_FIELDS = ("device", "runtime", "threads", "budget")  # of the setting that processes get
_COMPARISON_S = 300.0  # of a model at most, where a device does not answer


class Searches:
    """Searches for the plans of models, as many at a time as there are processes.

    Parameters
    ----------
    models, setting, how
        As in `bench.mixed.search`.
    processes
        That search at a time.
    limit_s
        Seconds after which searches that have not ended are given up.
    say
        Called with a line about each search.
    """

    def __init__(
        self, models: Sequence[mixed.Model], setting: Setting, how: mixed.Search, processes: int,
        limit_s: float, say: Say,
    ) -> None:  # fmt: skip
        self._models, self._how, self._say = list(models), how, say
        self._setting = {name: getattr(setting, name) for name in _FIELDS}
        self._count, self._limit_s = processes, limit_s

    def __enter__(self) -> Self:
        self._stack = contextlib.ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        self._start = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def rows(self) -> Iterator[tuple[mixed.Model, mixed.Row | Exception]]:
        """The row of each model, or why it has none."""
        with ThreadPoolExecutor(self._count) as pool:
            searched = list(pool.map(self._search, self._models))
        self._say(f"{self._elapsed():.0f} s: the searches have ended")
        worker: Process | None = None
        for model, found in zip(self._models, searched):
            if isinstance(found, Exception):
                yield model, found
                continue
            row: mixed.Row | Exception
            try:
                worker = worker or self._started("comparison")
                answer = worker.ask(
                    "compare", _COMPARISON_S, model=dataclasses.asdict(model), found=found
                )
                row = mixed.Row(**answer["row"])
            except (WorkerError, WorkerLostError) as error:
                row = error
                if isinstance(error, WorkerLostError):  # others may still be measured
                    worker = None
            yield model, row
        if worker is not None:
            worker.close()
        self._say(f"{self._elapsed():.0f} s: all is measured")

    def _search(self, model: mixed.Model) -> dict[str, Any] | Exception:
        """In a process of its own, whose memory is free when it has ended."""
        left = self._limit_s - self._elapsed()
        if left <= 0:
            return WorkerLostError("its search did not begin within the limit")
        worker = self._started(f"search-{model.name}")
        try:
            found = worker.ask(
                "search", left, model=dataclasses.asdict(model), how=dataclasses.asdict(self._how)
            )
        except (WorkerError, WorkerLostError) as error:
            return error
        finally:
            worker.close()
        self._say(f"{self._elapsed():.0f} s: {model.name}: the search took {found['seconds']:.0f}")
        return found

    def _started(self, name: str) -> Process:
        # Without a cache: what one process finds about kernels while others use the device too
        # must not decide in the comparison.
        environment = {
            "CLGPU_CACHE": "off",
            "CLGPU_PROGRAMS": str(self._folder / "programs.sqlite"),
            LOCK: str(self._folder / "lock"),
        }
        return Process(
            "bench.mixed_processes", [json.dumps(self._setting)], folder=self._folder, name=name,
            environment=environment,
        )  # fmt: skip

    def _elapsed(self) -> float:
        return time.monotonic() - self._start


class Server:
    """Answers the requests; each request is a method of the same name."""

    def __init__(self, setting: dict[str, Any]) -> None:
        self._setting = Setting(**setting)

    def search(self, model: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
        """Search for a plan; see `bench.mixed.search`."""
        found = mixed.search(mixed.Model(**model), self._setting, mixed.Search(**how))
        return {**dataclasses.asdict(found), "plan": found.plan.to_dict()}

    def compare(self, model: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
        """Measure a plan beside fp32 and fp16; see `bench.mixed.compare`."""
        plan = PrecisionPlan.from_dict(found["plan"])
        row = mixed.compare(
            mixed.Model(**model), mixed.Found(**{**found, "plan": plan}), self._setting
        )
        return {"row": dataclasses.asdict(row)}  # which has a field error


def main(setting: str) -> None:
    """Answer requests; the argument has fields of the `Setting` as JSON."""
    serve(lambda: Server(json.loads(setting)))

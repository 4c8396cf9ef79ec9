"""Progress of a sequence of inferences."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Union

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Report = Callable[[int, "int | None"], object]  # results so far, and of all
Option = Union[bool, Report]


class Bar:
    """A progress bar on standard error, if that is a terminal, or a function that is called."""

    def __init__(self, option: Option, total: int | None) -> None:
        self._report = option if callable(option) else None
        self._total, self._done = total, 0
        self._progress: Progress | None = None
        if option is True and sys.stderr.isatty():
            self._progress = Progress(
                TextColumn("inferences"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._progress.add_task("", total=total)

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        if self._progress is not None:
            self._progress.advance(self._progress.task_ids[0])
        if self._report is not None:
            self._report(self._done, self._total)

    def __enter__(self) -> Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

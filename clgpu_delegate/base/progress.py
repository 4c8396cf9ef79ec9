"""The progress of long work, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from rich.progress import Progress

Report = Callable[[str, int, "int | None"], object]  # stage, steps done, of how many
Option = Union[bool, Report, None]


class Bar:
    """Shows the progress of long work, stage by stage; a line for each stage without rich.

    Parameters
    ----------
    option
        True for a bar, False for none, None for one where standard error is a terminal, or a
        function to call instead: with the stage, the steps done and their number if known.
    """

    def __init__(self, option: Option) -> None:
        self._report = option if callable(option) else None
        shown = sys.stderr.isatty() if option is None else option is True
        self._stage, self._done = "", 0
        self._total: int | None = None
        self._progress = _progress() if shown else None
        self._lines = shown and self._progress is None

    def stage(self, name: str, total: int | None) -> None:
        """Begin a stage of ``total`` steps; None if the number is unknown."""
        self._stage, self._done, self._total = name, 0, total
        if self._progress is not None:
            self._progress.reset(self._progress.task_ids[0], description=name, total=total)
        if self._lines:
            print(name, file=sys.stderr)

    def show(self, name: str, done: int, total: int | None = None) -> None:
        """Say what is being done, after how many steps; no function is called."""
        if self._progress is not None:
            task = self._progress.task_ids[0]
            self._progress.update(task, description=name, completed=done, total=total)

    def step(self) -> None:
        """One more step is done."""
        self._done += 1
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=self._done)
        if self._report is not None:
            self._report(self._stage, self._done, self._total)

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


def _progress() -> Progress | None:
    """Rich's bar; None where rich is not installed."""
    try:
        from rich.progress import (  # noqa: PLC0415
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        from clgpu_delegate.base.consoles import SafeConsole  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    progress = Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), console=SafeConsole(stderr=True), transient=True,
    )  # fmt: skip
    progress.add_task("reading the model", total=None)
    return progress

"""Attempts in child processes: one for many attempts, and a new one after a crash."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from clgpu_delegate.base.endings import ending

ROOT = Path(__file__).resolve().parents[2]
START_S = 600  # imports and devices, on a machine that is busy
MARK = "ROW "  # begins the child's answers; drivers and runtimes print, too


def answers(
    module: str, items: Iterable[str], limit_s: float = 60, **environment: str
) -> Iterator[tuple[str, str, str]]:
    """Send items to a module that calls `serve`; yield each with its outcome and a sentence.

    Parameters
    ----------
    module
        Its name, for ``python -m``.
    items
        One line each, taken when the answer to the one before has been used.
    limit_s
        Longest time for one item.

    Yields
    ------
    item, outcome, text
        The outcome is the module's, or ``"died"`` or ``"hung"``.
    """
    child: _Child | None = None
    try:
        for item in items:
            if child is None:
                child = _Child(module, environment)
            outcome, text = child.ask(item, limit_s)
            if outcome in {"died", "hung"}:
                child.end()
                child = None
            yield item, outcome, text
    finally:
        if child is not None:
            child.end()


def serve(attempt: object) -> None:
    """In the child: answer each line of standard input by ``attempt(line) -> (outcome, text)``."""
    print("\n" + MARK, flush=True)
    for line in sys.stdin:
        outcome, text = attempt(line.strip())  # type: ignore[operator]
        print("\n" + MARK + json.dumps([outcome, text]), flush=True)


class _Child:
    def __init__(self, module: str, environment: dict[str, str]) -> None:
        path = os.pathsep.join([*(p for p in sys.path if p), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", module, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, **environment},
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        assert self._process.stdout is not None
        stream = self._process.stdout
        self._reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._reader.start()
        self._started = False

    def ask(self, item: str, limit_s: float) -> tuple[str, str]:
        assert self._process.stdin is not None
        try:
            if not self._started:
                self._started = self._lines.get(timeout=START_S) is not None
            self._process.stdin.write(item + "\n")
            self._process.stdin.flush()
            answer = self._lines.get(timeout=limit_s)
        except queue.Empty:
            return "hung", f"no end within {limit_s:.0f} s"
        except BrokenPipeError:
            answer = None
        if answer is None:
            return "died", ending(self._process.wait())
        outcome, text = json.loads(answer)
        return outcome, text

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):  # of a request that the child did not read
                stream.close()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            if line.startswith(MARK):
                self._lines.put(line[len(MARK) :])
        self._lines.put(None)

"""Processes that answer requests, one after the other: a line of JSON each way.

This module does not import the package, because `bench.guard_worker` imports other builds of it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.measure import sentence_of

ROOT = Path(__file__).resolve().parents[1]

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from importlib import import_module; import_module(sys.argv[2]).main(*sys.argv[3:])"
)
_ENDING_S = 10.0  # a driver may hold a process that is ended


class WorkerError(RuntimeError):
    """A request failed; the process still works."""


class WorkerLostError(RuntimeError):
    """The process ended, or was ended."""


class Process:
    """A Python process of this environment that runs `main` of a module, which calls `serve`.

    Parameters
    ----------
    module
        The module.
    words
        Arguments of its `main`.
    folder
        Its current folder, which also takes the file with its standard error.
    name
        Of that file.
    environment
        Variables besides those of this process.
    """

    def __init__(
        self, module: str, words: Sequence[str], *, folder: Path, name: str,
        environment: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        path = [entry or str(Path.cwd()) for entry in sys.path]
        path += [] if str(ROOT) in path else [str(ROOT)]
        self._log = folder / f"log-{name}-{time.monotonic_ns()}.txt"
        self.started = time.monotonic()
        """When it was started, on the clock that all processes share."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(path), module, *words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=folder,
                encoding="utf-8", env={**os.environ, **(environment or {})},
            )  # fmt: skip
        self._answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def ask(self, do: str, timeout: float, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer.

        Raises
        ------
        WorkerError
            If the request failed.
        WorkerLostError
            If the process ended, or did not answer in time and was ended; with its last words.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            self.close()
            message = f"no answer within {timeout:.0f} s{self._last_line()}"
            raise WorkerLostError(message) from None
        except OSError:
            answer = ""
        if not answer:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_ENDING_S)
            self.close()
            code = self._process.returncode or 0
            how = f"signal {-code}" if code < 0 else f"code {code}"
            raise WorkerLostError(f"the process ended with {how}{self._last_line()}")
        data: dict[str, Any] = json.loads(answer)
        if "error" in data:
            raise WorkerError(data["error"])
        return data

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_ENDING_S)
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it ended before it had read everything
            self._process.stdin.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")

    def _last_line(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line]
        return f": {lines[-1]}" if lines else ""


def serve(make: Callable[[], Any]) -> None:
    """Answer the requests of the process that has started this one, until it closes the input.

    Parameters
    ----------
    make
        Makes the object whose methods answer: the request ``do`` names one, and has its arguments.
        Output of libraries goes to standard error from its making on.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = make()
    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            request = json.loads(line)
            name = request.pop("do")
            try:
                answer = getattr(server, name)(**request)
            except Exception as failure:  # any error belongs to that request
                answer = {"error": sentence_of(failure)}
                gc.collect()
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

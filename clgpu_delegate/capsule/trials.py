"""Runs a model in a separate process with a time limit, because it may crash or hang."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import IO, Any

import numpy as np

from clgpu_delegate import _core
from clgpu_delegate.base import children
from clgpu_delegate.base.endings import ending
from clgpu_delegate.capsule.outcome import Outcome, kernels_that_fail, outcome_of
from clgpu_delegate.capsule.protocol import in_order, numbered, receive, send
from clgpu_delegate.errors import DeviceError, FileError, RuntimeNotFoundError
from clgpu_delegate.tflite.graph import Array

_START = "from clgpu_delegate.capsule.worker import main; main()"
_MOST_LOG = 20_000  # bytes of a worker's output
_OF_THE_ERROR = ("stage", "text", "log", "class", "signs")  # of the worker's messages
_OF_A_DRIVER = ("OpenCLError", "BuildError", "DeviceError")
_LONGEST = 1e6  # seconds; timers have a largest value


@dataclasses.dataclass(frozen=True)
class Trial:
    """A model that was run on the CPU and through the delegate."""

    outcome: Outcome
    expected: list[Array]
    """Outputs of the CPU."""

    got: list[Array]
    """Outputs of the delegate; empty where it has none."""

    facts: dict[str, Any]
    """What the delegate has told: ``explain``; where asked for ``memory_map``, ``programs``,
    ``device`` and ``abilities``, too."""

    log: str
    """What a compiler said, or the process printed before it died."""


class Bench:
    """Runs trials in a worker process, which is started again when it has died or seen an error.

    Parameters
    ----------
    runtime
        Name of the TensorFlow Lite runtime.
    reference
        Whether the CPU runs TFLite's reference kernels, which define integers.
    tolerance
        Relative L2 error of float outputs that is still right.
    timeout
        Time limit of a trial, in seconds.
    kernels
        Kernel texts to use, by file; None for those of this process.
    command
        The worker; None for our own.
    """

    def __init__(
        self,
        runtime: str,
        *,
        reference: bool,
        tolerance: float,
        timeout: float,
        kernels: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        self.reference, self.tolerance, self.timeout = reference, tolerance, timeout
        self.trials = 0
        self._runtime = runtime
        self._kernels = dict(_core.kernel_overrides() if kernels is None else kernels)
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def run(
        self,
        model: bytes,
        inputs: Sequence[Array],
        options: Mapping[str, Any],
        *,
        details: bool = False,
        plan_only: bool = False,
    ) -> Trial:
        """Run a model; ``plan_only`` loads it without running it on the device.

        Raises
        ------
        DeviceError, RuntimeNotFoundError
            If there is no such device or runtime.
        """
        self.trials += 1
        process = self._started()
        request = {
            "runtime": self._runtime,
            "options": dict(options),
            "kernels": self._kernels,
            "reference": self.reference,
            "details": details,
            "plan_only": plan_only,
        }
        arrays = {"model": np.frombuffer(model, np.uint8), **numbered(inputs, "in")}
        hung = threading.Event()

        def give_up() -> None:
            hung.set()
            process.kill()

        timer = threading.Timer(min(self.timeout, _LONGEST), give_up)
        timer.daemon = True
        expected: list[Array] = []
        message: dict[str, Any] = {"stage": ""}
        answered: dict[str, Array] = {}
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            send(process.stdin, request, arrays)  # type: ignore[arg-type]
            message, answered = receive(process.stdout)  # type: ignore[arg-type]
            if message["stage"] == "expected":
                expected = in_order(answered, "out")
                message, answered = {"stage": "dead"}, {}
                message, answered = receive(process.stdout)  # type: ignore[arg-type]
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return self._died(process, hung.is_set(), message["stage"] == "dead", expected)
        except BaseException:
            self._stop()
            raise
        finally:
            timer.cancel()
        return self._answer(message, in_order(answered, "out"), expected, plan_only)

    def _answer(
        self, message: dict[str, Any], got: list[Array], expected: list[Array], plan_only: bool
    ) -> Trial:
        stage, text = message["stage"], message.get("text", "")
        facts = {k: v for k, v in message.items() if k not in _OF_THE_ERROR}
        notes = list((facts.get("explain") or {}).get("notes", ()))
        log = "\n".join([*notes, message.get("log", "")]).strip()
        if stage == "unusable":
            return Trial(Outcome("unusable", text), [], [], facts, log)
        if stage == "error":
            if facts["explain"] is None and message["class"] == "DeviceError":
                raise DeviceError(text)
            if message["signs"][0] in _OF_A_DRIVER:
                self._stop()  # after a driver's error, the context may keep failing
            outcome = Outcome("error", text, signs=tuple(message["signs"]))
            return Trial(outcome, expected, [], facts, log or text)
        outcome = Outcome("agrees") if plan_only else outcome_of(got, expected, self.tolerance)
        if not outcome.failed:
            outcome = kernels_that_fail(facts["explain"]["faults"]) or outcome
        return Trial(outcome, expected, got, facts, log)

    def _died(
        self, process: subprocess.Popen[bytes], hung: bool, on_device: bool, expected: list[Array]
    ) -> Trial:
        code = process.wait()
        log = self._printed()
        self._stop()
        how = ending(code)
        if not on_device:
            if hung:
                text = f"the CPU alone does not end within {self.timeout:g} s"
            elif "RuntimeNotFoundError" in log:
                raise RuntimeNotFoundError(log.strip().splitlines()[-1].split(": ", 1)[-1])
            else:
                text = f"the process died ({how}) before the delegate had the model"
            return Trial(Outcome("unusable", text), [], [], {}, log)
        if hung:
            return Trial(Outcome("hang", f"after {self.timeout:g} s"), expected, [], {}, log)
        return Trial(Outcome("crash", how), expected, [], {}, log)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        command = self._command or children.command(_START)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
            )
        except OSError as error:
            raise FileError(f"cannot start {command[0]}: {error.strerror}") from None
        return self._process

    def _printed(self) -> str:
        if self._log is None:
            return ""
        end = self._log.seek(0, 2)
        self._log.seek(max(end - _MOST_LOG, 0))
        return self._log.read().decode("utf-8", "replace")

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
        if self._log is not None:
            self._log.close()
            self._log = None

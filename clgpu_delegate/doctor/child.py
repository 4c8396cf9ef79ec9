"""Calls that may crash or hang run in another process, so a broken driver becomes a finding."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from clgpu_delegate.base import children
from clgpu_delegate.base.endings import ending

# The last line of output with this mark is the answer; drivers may print other lines.
MARK = "clgpu-doctor-answer:"

# `module` is found by its file, so that it works where the package cannot be imported.
_SCRIPT = """
import json, sys
import importlib.util
spec = importlib.util.spec_from_file_location("clgpu_doctor_probe", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
print()
print(sys.argv[4] + json.dumps(getattr(module, sys.argv[2])(*json.loads(sys.argv[3]))), flush=True)
# Skips the exit handlers of drivers, which may hang.
sys.stderr.flush()
__import__("os")._exit(0)
"""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    answer: Any
    """What the function returned; None unless it returned."""

    failure: str = ""
    """``"crashed (SIGSEGV)"``, ``"did not return in 60 s"``, or the last line of the error."""

    output: str = ""
    """The end of its other output."""

    @property
    def ok(self) -> bool:
        """Whether the function returned."""
        return not self.failure

    @property
    def died(self) -> bool:
        """Whether it crashed or hung, rather than raised."""
        return self.failure.startswith(("crashed", "did not return"))


def call(
    file: str, function: str, *arguments: Any, environ: Mapping[str, str], timeout: float
) -> Outcome:
    """Call a function of a Python file in another process and return what it returned.

    Parameters
    ----------
    file, function
        Where it is; arguments and result are JSON.
    environ
        Environment of the process.
    timeout
        In seconds; then the process and its children are killed.
    """
    command = children.command(_SCRIPT, file, function, json.dumps(arguments), MARK)
    return run(command, environ=environ, timeout=timeout)


def run(command: Sequence[str], *, environ: Mapping[str, str], timeout: float) -> Outcome:
    """Run a command that ends with a marked answer."""
    # Files, not pipes: what a killed driver has forked off might keep a pipe open for ever.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=dict(environ),
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return Outcome(None, f"{command[0]} cannot be run: {error.strerror}")
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            failure = f"did not return in {timeout:g} s"
        else:
            failure = _failure(process.returncode)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel
                process.wait(5)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return _outcome(failure, *texts)


def _failure(code: int) -> str:
    if code < 0:
        return f"crashed ({ending(code)})"
    return ending(code) if code else ""


def _outcome(failure: str, out: str, err: str) -> Outcome:
    lines = out.splitlines()
    answers = [line for line in lines if line.startswith(MARK)]
    printed = "\n".join([*(line for line in lines if not line.startswith(MARK)), err]).strip()
    last = next((line for line in reversed(err.splitlines()) if line.strip()), "")
    if not failure and not answers:
        failure = "ended without an answer"
    if failure.startswith("exit code") and last:
        failure = last
    answer = json.loads(answers[-1][len(MARK) :]) if answers and not failure else None
    return Outcome(answer, failure, printed[-2000:])

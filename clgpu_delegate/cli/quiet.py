"""What a TensorFlow Lite runtime prints once in each process, and no reader of a command needs."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from clgpu_delegate.base import children
from clgpu_delegate.base.notices import XNNPACK
from clgpu_delegate.doctor import model
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.runtimes import find_runtime

_PASS_ON = "from clgpu_delegate.base.notices import pass_on; pass_on()"


def quieten(runtime: str | None) -> None:
    """Let the runtime print its notice now, where nobody sees it.

    It prints it when the first interpreter is prepared, so this prepares one of a small model.
    Whatever else it prints is passed on, and errors are left to the command itself, which meets
    them again.

    Parameters
    ----------
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    """
    try:
        interpreter = find_runtime(runtime).module.Interpreter
        with _without_notice():
            interpreter(model_content=model.content(), num_threads=1).allocate_tensors()
    except (ClgpuError, OSError, RuntimeError, ValueError):
        return


@contextlib.contextmanager
def quiet(runtime: str | None, api: str) -> Iterator[None]:
    """Leave out of standard error what a runtime tells of itself, as long as a command works.

    Parameters
    ----------
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    api
        Of `clgpu_delegate.litert.compiled.APIS`. LiteRT's environments tell at each use which
        libraries they load, so with ``"compiled"`` their lines are filtered out.
    """
    quieten(runtime)
    if api != "compiled":
        yield
        return
    sys.stderr.flush()
    filtered = _filtered()
    with contextlib.ExitStack() as stack:
        before = os.dup(2)
        stack.callback(os.close, before)
        if _is_descriptor(sys.stderr, 2):  # progress and errors are for the terminal itself
            direct = stack.enter_context(os.fdopen(os.dup(2), "w"))
            stack.enter_context(contextlib.redirect_stderr(direct))
        os.dup2(filtered, 2)
        stack.callback(os.dup2, before, 2)
        yield


@functools.cache
def _filtered() -> int:
    """A descriptor whose lines reach standard error but for those that LiteRT tells of itself.

    Another process passes them on, so what a driver prints before it ends this one is not lost.
    """
    passing = subprocess.Popen(
        children.command(_PASS_ON), stdin=subprocess.PIPE, stdout=2, start_new_session=True
    )
    passing.returncode = 0  # no warning that it still runs: it ends after this process
    assert passing.stdin is not None
    descriptor = os.dup(passing.stdin.fileno())
    passing.stdin.close()
    atexit.register(os.dup2, descriptor, 2)  # destructors tell, too
    return descriptor


def _is_descriptor(stream: Any, descriptor: int) -> bool:
    try:
        return bool(stream.fileno() == descriptor)
    except (AttributeError, OSError, ValueError):
        return False


@contextlib.contextmanager
def _without_notice() -> Iterator[None]:
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        before = os.dup(2)
        try:
            os.dup2(held.fileno(), 2)
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            held.seek(0)
            lines = held.read().splitlines(keepends=True)
            os.write(2, b"".join(line for line in lines if line.strip() != XNNPACK))

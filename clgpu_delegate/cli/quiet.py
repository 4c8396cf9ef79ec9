"""What a TensorFlow Lite runtime prints once in each process, and no reader of a command needs."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

from clgpu_delegate.doctor import model
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.runtimes import find_runtime

_NOTICE = b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU."


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
            os.write(2, b"".join(line for line in lines if line.strip() != _NOTICE))

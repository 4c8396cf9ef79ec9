"""Shapes for a model that leaves extents of its inputs open."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

from clgpu_delegate.base import children
from clgpu_delegate.base.files import read_model
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.runtimes import find_runtime
from clgpu_delegate.tflite import inference, shapes

_MAIN = "from clgpu_delegate.measure.guessing import main; main()"
_LIMIT_S = 60.0


def guess_shapes(
    model: str | os.PathLike[str], runtime: str | None = None
) -> dict[str, shapes.Shape] | None:
    """Shapes with which the stock runtime runs a model that leaves some open.

    It tries usual ones, in another process, as kernels may end a process that runs them on shapes
    which do not fit.

    Parameters
    ----------
    model
        Path of a .tflite file.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.

    Returns
    -------
    dict
        The shape of each input, by name; None if the model leaves nothing open but the number of
        samples, or runs with none of them.

    Raises
    ------
    FileError, ModelError
        If the model cannot be read.
    """
    if not any(each.is_open for each in shapes.inputs_of(read_model(model))):
        return None
    command = children.command(_MAIN, os.fspath(model), runtime or "")
    with contextlib.suppress(subprocess.SubprocessError, ValueError, IndexError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_LIMIT_S
        )
        found: dict[str, list[int]] | None = json.loads(done.stdout.splitlines()[-1])
        return {name: tuple(shape) for name, shape in found.items()} if found else None
    return None


def main() -> None:
    """Print the shapes for the process's first argument, a path, in the runtime of the second."""
    runtime = find_runtime(sys.argv[2] or None)

    def runs(content: bytes) -> bool:
        try:
            interpreter = inference.make_interpreter(runtime, content, 1)
            interpreter.allocate_tensors()
            inference.run_once(interpreter, inference.random_inputs(interpreter))
        except (ClgpuError, RuntimeError, ValueError):
            return False
        return True

    print(json.dumps(shapes.guess(read_model(sys.argv[1]), runs)))

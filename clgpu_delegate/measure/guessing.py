"""Shapes for a model that leaves extents of its inputs open."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from clgpu_delegate.base import children
from clgpu_delegate.base.arranging import arrange
from clgpu_delegate.base.files import read_arrays, read_model
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.runtimes import find_runtime
from clgpu_delegate.tflite import inference, shapes

_MAIN = "from clgpu_delegate.measure.guessing import main; main()"
_LIMIT_S = 60.0
_MOST_ELEMENTS = 1 << 24  # of an input that is tried


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
        The shape of each input, by name; empty if the model runs with none of those that are tried;
        None if it leaves nothing open but the number of samples.

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
        return {name: tuple(shape) for name, shape in (found or {}).items()}
    return {}


def shapes_of_arrays(
    model: str | os.PathLike[str], arrays: str | os.PathLike[str]
) -> list[shapes.Shape] | None:
    """The shapes of the arrays of a file, for a model that leaves extents of its inputs open.

    Returns
    -------
    list
        A shape for each input; None if the model leaves nothing open.

    Raises
    ------
    FileError, ModelError
        If the model or the arrays cannot be read.
    InputError
        If there are too few or too many arrays.
    """
    inputs = shapes.inputs_of(read_model(model))
    if not any(-1 in each.signature for each in inputs):
        return None
    given = arrange(read_arrays(arrays), [each.name for each in inputs], "input")
    return [np.shape(array) for array in given]


def main() -> None:
    """Print the shapes for the process's first argument, a path, in the runtime of the second."""
    runtime = find_runtime(sys.argv[2] or None)

    def runs(content: bytes) -> bool:
        try:
            interpreter = inference.make_interpreter(runtime, content, 1)
            details = interpreter.get_input_details()
            if any(np.prod(d["shape"], dtype=np.float64) > _MOST_ELEMENTS for d in details):
                return False
            interpreter.allocate_tensors()
            results = inference.run_once(interpreter, inference.random_inputs(interpreter))
        except (ClgpuError, RuntimeError, ValueError):
            return False
        details = interpreter.get_output_details()
        return all(map(_fits, results, (d["shape_signature"] for d in details)))

    print(json.dumps(shapes.guess(read_model(sys.argv[1]), runs)))


def _fits(result: inference.Array, signature: Sequence[int]) -> bool:
    """Whether it has elements, and the extents that the file does not leave open."""
    if not result.size or len(result.shape) != len(signature):
        return False
    return all(wanted in (-1, n) for n, wanted in zip(result.shape, signature))

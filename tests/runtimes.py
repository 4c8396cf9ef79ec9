"""The stock TensorFlow Lite runtimes behind one interface.

Two packages ship the interpreter: ``tflite_runtime`` and its successor ``ai_edge_litert``. Either
may be missing. ``CLGPU_TEST_RUNTIME`` names the one that ``"auto"`` means.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

RUNTIMES = ("tflite_runtime", "ai_edge_litert")
ENVIRONMENT_VARIABLE = "CLGPU_TEST_RUNTIME"

_RESOLVERS = {
    "builtin": "BUILTIN",  # optimized kernels, and XNNPACK where it applies
    "no_delegate": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",  # optimized kernels, no XNNPACK
    "ref": "BUILTIN_REF",  # plain loops: slow, but the reference results
}


def available_runtimes() -> tuple[str, ...]:
    """Return the names of the runtimes that are installed, the preferred one first."""
    return tuple(name for name in RUNTIMES if importlib.util.find_spec(name) is not None)


def resolve_runtime(runtime: str = "auto") -> str:
    """Return the runtime that a name stands for.

    Parameters
    ----------
    runtime
        A name of `RUNTIMES`, or ``"auto"``: the one that ``CLGPU_TEST_RUNTIME`` names, else the
        first that is installed.

    Raises
    ------
    ValueError
        If no such runtime is installed.
    """
    installed = available_runtimes()
    if runtime == "auto":
        runtime = os.environ.get(ENVIRONMENT_VARIABLE) or (installed[0] if installed else "auto")
    if runtime not in installed:
        raise ValueError(f"runtime {runtime!r} is not installed; installed: {installed}")
    return runtime


def interpreter_module(runtime: str = "auto") -> Any:
    """Import the module with ``Interpreter`` and ``load_delegate`` of a runtime."""
    return importlib.import_module(f"{resolve_runtime(runtime)}.interpreter")


def make_interpreter(
    runtime: str,
    model: bytes,
    delegates: Sequence[Any] = (),
    resolver: str = "builtin",
    threads: int = 1,
    *,
    preserve_all_tensors: bool = False,
) -> Any:
    """Make an interpreter; tensors are not allocated yet.

    Parameters
    ----------
    runtime
        As in `resolve_runtime`.
    model
        Bytes of a .tflite file.
    delegates
        Results of the same runtime's ``load_delegate``.
    resolver
        Kernels of nodes that no delegate takes: ``"builtin"``, ``"no_delegate"`` (optimized
        kernels, but not XNNPACK) or ``"ref"``.
    threads
        Of the stock kernels.
    preserve_all_tensors
        Keep every intermediate tensor readable after a run.
    """
    if resolver not in _RESOLVERS:
        raise ValueError(f"resolver {resolver!r} is none of {', '.join(_RESOLVERS)}")
    module = interpreter_module(runtime)
    return module.Interpreter(
        model_content=model,
        experimental_delegates=list(delegates),
        num_threads=threads,
        experimental_op_resolver_type=getattr(module.OpResolverType, _RESOLVERS[resolver]),
        experimental_preserve_all_tensors=preserve_all_tensors,
    )


def run_interpreter(
    interpreter: Any,
    inputs: Sequence[np.ndarray],
    resize: Mapping[int, Sequence[int]] | None = None,
) -> list[np.ndarray]:
    """Run once.

    Parameters
    ----------
    interpreter
        From `make_interpreter`.
    inputs
        One array per model input, in the model's order.
    resize
        New shapes by input position.

    Returns
    -------
    list of arrays
        Copies of the model's outputs, in the model's order.
    """
    details = interpreter.get_input_details()
    if len(details) != len(inputs):
        raise ValueError(f"the model has {len(details)} inputs, not {len(inputs)}")
    for position, shape in (resize or {}).items():
        interpreter.resize_tensor_input(details[position]["index"], list(shape))
    interpreter.allocate_tensors()
    for detail, value in zip(details, inputs):
        interpreter.set_tensor(detail["index"], np.asarray(value, order="C"))
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def run_reference(
    model: bytes,
    inputs: Sequence[np.ndarray],
    runtime: str = "auto",
    resolver: str = "ref",
    threads: int = 1,
    resize: Mapping[int, Sequence[int]] | None = None,
) -> list[np.ndarray]:
    """Run a model once on the CPU, without our delegate (parameters as in the functions above)."""
    interpreter = make_interpreter(runtime, model, resolver=resolver, threads=threads)
    return run_interpreter(interpreter, inputs, resize)

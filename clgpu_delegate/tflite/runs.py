"""Runs a model with the stock runtime and keeps every tensor readable."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.errors import ClgpuError, QuantizationError
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.graph import ABSENT, Array
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.writer import serialize


class Run:
    """An interpreter that keeps all intermediate tensors."""

    def __init__(self, content: bytes, runtime: Runtime) -> None:
        """Load a model; a QuantizationError if the runtime rejects it."""
        content = _exposed(content)
        types = getattr(runtime.module, "OpResolverType", None)
        if types is None:  # tensorflow.lite
            types = runtime.module.experimental.OpResolverType
        self._runtime = runtime
        try:
            self._interpreter: Any = runtime.module.Interpreter(
                model_content=content,
                num_threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
                # Delegates do not expose the tensors between their first and last node.
                experimental_op_resolver_type=types.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                experimental_preserve_all_tensors=True,
            )
        except (RuntimeError, ValueError) as error:
            raise self._failure("load", error) from None
        self._shapes: list[tuple[int, ...]] | None = None

    def invoke(self, inputs: Sequence[Array]) -> None:
        """Run on one array per input; a QuantizationError if the runtime fails."""
        interpreter = self._interpreter
        shapes = [a.shape for a in inputs]
        details = interpreter.get_input_details()
        try:
            if shapes != self._shapes:
                for detail, shape in zip(details, shapes):
                    if tuple(detail["shape"]) != shape:
                        interpreter.resize_tensor_input(detail["index"], list(shape))
                interpreter.allocate_tensors()
                self._shapes = shapes
            for detail, array in zip(details, inputs):
                interpreter.set_tensor(detail["index"], array)
            interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            if isinstance(error, ClgpuError):
                raise
            raise self._failure("run", error) from None

    def check(self) -> None:
        """Prepare all nodes; a QuantizationError if the runtime refuses one."""
        try:
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise self._failure("prepare", error) from None

    def value(self, tensor: int) -> Array | None:
        """A view of a tensor of the main graph; None if the run has not computed it.

        It must be deleted before the next run.
        """
        try:
            view: Array = self._interpreter.tensor(tensor)()
        except (RuntimeError, ValueError):
            return None
        return view

    def default_inputs(self) -> list[Array]:
        """Zeros for all inputs."""
        details = self._interpreter.get_input_details()
        return [np.zeros(d["shape"], d["dtype"]) for d in details]

    def _failure(self, what: str, error: Exception) -> QuantizationError:
        reason = one_line(error)
        return QuantizationError(f"{self._runtime} cannot {what} the model: {reason}")


def _exposed(content: bytes) -> bytes:
    """The model with all that its main graph computes as outputs; tensors keep their indices.

    Runtimes compute some operations in place (ADD over its input), even where all tensors are to
    be preserved (2.14), but never in the place of an output.
    """
    model = parse(content)
    graph = model.main
    if any(t.is_sparse for t in graph.tensors):
        return content  # which cannot be rewritten
    computed = [
        t
        for op in graph.operators
        for t in op.outputs
        if t != ABSENT and graph.tensors[t].dtype not in ("resource", "variant")
    ]
    graph.outputs = list(dict.fromkeys([*graph.outputs, *computed]))
    model.signatures = []
    return serialize(model)

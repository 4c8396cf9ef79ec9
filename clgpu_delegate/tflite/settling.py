"""Models that are given other shapes of inputs, with the shapes that follow from them."""

from __future__ import annotations

import importlib
from typing import Any

from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.errors import InputError
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.inference import as_our_error
from clgpu_delegate.tflite.shapes import with_shapes, with_tensor_shapes


def resized(runtime: Runtime, content: bytes, shapes: Shapes | None) -> bytes:
    """A model with other shapes of its inputs, and of all tensors whose shapes follow from them.

    What reads a file's shapes before a runtime has computed them is right, too: buffers of
    CompiledModel, and reports on nodes that are left to the CPU. Shapes that only an inference
    knows are those of before.

    Parameters
    ----------
    runtime
        Its kernels tell the shapes; a model that it does not load only gets those of the inputs.
    content
        The bytes of a model that has been checked.
    shapes
        Of the one input, or a list of shapes, or a dict by name; None: those of the model.

    Raises
    ------
    InputError
        If they are no shapes of the inputs, or the model does not work with them.
    """
    if shapes is None:
        return content
    changed = with_shapes(content, shapes)
    try:
        interpreter = _plain(runtime, changed)
    except (RuntimeError, ValueError):  # it lacks an operation
        return changed
    with as_our_error("the model does not work with these shapes of its inputs", InputError):
        interpreter.allocate_tensors()
    return with_tensor_shapes(
        changed,
        {
            detail["index"]: tuple(int(n) for n in detail["shape"])
            for detail in interpreter.get_tensor_details()
        },
    )


def _plain(runtime: Runtime, content: bytes) -> Any:
    """An interpreter without XNNPACK, which keeps the shapes of tensors to itself."""
    kinds = importlib.import_module(runtime.module.__name__).OpResolverType
    return runtime.module.Interpreter(
        model_content=content,
        experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )

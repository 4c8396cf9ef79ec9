"""What a delegate would do with a model, without running it."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Literal

from clgpu_delegate.base.arranging import Shapes
from clgpu_delegate.base.files import read_model
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import OptionError
from clgpu_delegate.litert.compiled import Api, open_delegated, runtime_for
from clgpu_delegate.options import Settings, with_settings
from clgpu_delegate.report.explanation import Explanation
from clgpu_delegate.report.memory import MemoryMap
from clgpu_delegate.runtimes import RuntimeName
from clgpu_delegate.tflite.settling import resized

if TYPE_CHECKING:
    from typing_extensions import Unpack

_WHEN = ("before", "after")


@with_settings
def explain_model(
    model: str | os.PathLike[str],
    *,
    runtime: RuntimeName | None = None,
    api: Api = "interpreter",
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> Explanation:
    """Load a model into a delegate and tell what it claims.

    Parameters
    ----------
    model
        Path of a .tflite file.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    api
        ``"interpreter"``, or ``"compiled"`` for LiteRT's CompiledModel.
    shapes
        Of the inputs, if not those of the file: of the one input, or a list of shapes, or a dict by
        name.
    **settings
        The fields of `Options`.

    Raises
    ------
    FileError, ModelError
        If the model cannot be read, or the runtime rejects it.
    InputError
        If the shapes do not fit the model's inputs.
    ClgpuError
        If an option is wrong, or there is no device or runtime.

    Examples
    --------
    >>> for node in clgpu_delegate.explain_model("model.tflite", exclude="SOFTMAX").nodes:
    ...     print(node.op, node.claimed or node.reason)
    CONV_2D True
    RESHAPE True
    FULLY_CONNECTED True
    SOFTMAX left on the CPU by the option 'exclude'
    """
    delegate, _interpreter = _loaded(model, runtime, api, shapes, settings)
    return delegate.explain()


@with_settings
def map_memory(
    model: str | os.PathLike[str],
    *,
    runtime: RuntimeName | None = None,
    api: Api = "interpreter",
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> MemoryMap:
    """Load a model into a delegate and tell where in device memory its tensors lie.

    Parameters
    ----------
    model
        Path of a .tflite file.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    api
        ``"interpreter"``, or ``"compiled"`` for LiteRT's CompiledModel.
    shapes
        As in `explain_model`.
    **settings
        The fields of `Options`.

    Raises
    ------
    ClgpuError
        As `explain_model`.

    Examples
    --------
    >>> print(clgpu_delegate.map_memory("model.tflite"))  # doctest: +ELLIPSIS
    partition 0...
    """
    delegate, _interpreter = _loaded(model, runtime, api, shapes, settings)
    return delegate.memory_map()


def graph_texts(
    model: str | os.PathLike[str],
    when: Literal["before", "after"] = "after",
    *,
    runtime: RuntimeName | None = None,
    api: Api = "interpreter",
    shapes: Shapes | None = None,
    **settings: Unpack[Settings],
) -> tuple[str, ...]:
    """Load a model into a delegate and return the text of its graphs, one for each partition.

    Parameters
    ----------
    model
        Path of a .tflite file.
    when
        ``before`` or ``after`` the passes that rewrite the graphs. A partition that the CPU
        computes after all has no text after the passes.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`.
    api
        ``"interpreter"``, or ``"compiled"`` for LiteRT's CompiledModel.
    shapes
        As in `explain_model`.
    **settings
        The fields of `Options`.

    Raises
    ------
    ClgpuError
        As `explain_model`; an OptionError for another ``when``.
    """
    if when not in _WHEN:
        raise OptionError(f"when is {when!r}; allowed: {', '.join(_WHEN)}")
    delegate, _interpreter = _loaded(model, runtime, api, shapes, settings)
    return delegate._graph_texts(when)


def _loaded(
    model: str | os.PathLike[str],
    runtime: str | None,
    api: str,
    shapes: Shapes | None,
    settings: Settings,
) -> tuple[Delegate, Any]:
    content = read_model(model)
    found = runtime_for(api, runtime)
    content = resized(found, content, shapes)
    interpreter, delegate = open_delegated(api, found, content, 1, settings)
    # The plan may change once the runtime has settled the shapes.
    with contextlib.suppress(RuntimeError):
        interpreter.allocate_tensors()
    return delegate, interpreter

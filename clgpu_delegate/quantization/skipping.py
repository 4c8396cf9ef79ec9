"""Which nodes stay in float because the caller says so."""

from __future__ import annotations

from collections.abc import Iterable

from clgpu_delegate.errors import OptionError
from clgpu_delegate.tflite.graph import Model


def skipped_nodes(model: Model, skip: Iterable[int | str]) -> set[int]:
    """Find the nodes that the caller names.

    Parameters
    ----------
    model
        Its main graph is meant.
    skip
        Indices of nodes in the file (numbers, also as text), names of operations, or names of
        output tensors.

    Returns
    -------
    set of int
        Indices of nodes in the file.

    Raises
    ------
    OptionError
        If no node has the name.
    """
    graph = model.main
    nodes: set[int] = set()
    for item in [skip] if isinstance(skip, (str, int)) else skip:
        number = _number(item)
        found = {
            op.node
            for op in graph.operators
            if op.node == number
            or op.name == item
            or any(graph.tensors[t].name == item for t in op.outputs)
        }
        if not found:
            raise OptionError(
                f"skip names {item!r}, which is neither one of the {len(graph.operators)} nodes "
                "nor an operation or an output tensor of the model"
            )
        nodes |= found
    return nodes


def _number(item: int | str) -> int | None:
    if isinstance(item, int):
        return item
    return int(item) if item.isdecimal() else None

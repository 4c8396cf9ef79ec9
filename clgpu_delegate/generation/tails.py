"""The end of a decoder that leaves less to copy: operations added behind the logits."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from clgpu_delegate.generation.signatures import Step, Tensor
from clgpu_delegate.tflite.graph import Array, Model, Operator, Subgraph
from clgpu_delegate.tflite.graph import Tensor as FileTensor

TOKEN, SUM, VALUES, INDICES = "token", "sum of logits", "values", "indices"
_INT32 = 2  # in the schema


def append_tail(model: Model, step: Step, top_k: int | None) -> Step:
    """Replace the logits of a signature by their largest.

    Parameters
    ----------
    model
        Is changed.
    step
        The signature.
    top_k
        How many values and indices it gives; None: the index of the largest, and the sum of all,
        which is not a number if one of them is not.

    Returns
    -------
    Step
        With the outputs `TOKEN` and `SUM`, or `VALUES` and `INDICES`, instead of the logits.
    """
    assert step.logits is not None
    graph = model.subgraphs[step.graph]
    logits = step.outputs[step.logits]
    if top_k is None:
        added = _greedy(model, graph, logits)
    else:
        added = _largest(model, graph, logits, top_k)
    graph.outputs = [t for t in graph.outputs if t != logits.index]
    graph.outputs += [tensor.index for tensor in added.values()]
    for signature in model.signatures:
        if signature.key == step.key:
            signature.outputs.pop(step.logits)
            signature.outputs.update({name: t.index for name, t in added.items()})
    outputs = {name: t for name, t in step.outputs.items() if name != step.logits}
    return dataclasses.replace(step, outputs={**outputs, **added})


def _greedy(model: Model, graph: Subgraph, logits: Tensor) -> dict[str, Tensor]:
    axis = _constant(model, graph, "axis", np.array([len(logits.shape) - 1], np.int32))
    token = _result(graph, TOKEN, logits.shape[:-1], np.int32)
    total = _result(graph, SUM, logits.shape[:-1], np.float32)
    ends: list[tuple[str, Tensor, str, dict[str, Any]]] = [
        ("ARG_MAX", token, "ArgMaxOptions", {"OutputType": _INT32}),
        ("SUM", total, "ReducerOptions", {"KeepDims": False}),
    ]
    for name, result, table, options in ends:
        graph.operators.append(
            Operator(name, 1, [logits.index, axis], [result.index], table, options)
        )
    return {TOKEN: token, SUM: total}


def _largest(model: Model, graph: Subgraph, logits: Tensor, count: int) -> dict[str, Tensor]:
    k = _constant(model, graph, "k", np.array(count, np.int32))
    shape = (*logits.shape[:-1], count)
    values = _result(graph, VALUES, shape, np.float32)
    indices = _result(graph, INDICES, shape, np.int32)
    graph.operators.append(
        Operator("TOPK_V2", 1, [logits.index, k], [values.index, indices.index], "TopKV2Options")
    )
    return {VALUES: values, INDICES: indices}


def _constant(model: Model, graph: Subgraph, name: str, values: Array) -> int:
    buffer = model.add_buffer(values)
    graph.tensors.append(FileTensor(name, values.shape, values.dtype.name, buffer))
    return len(graph.tensors) - 1


def _result(graph: Subgraph, name: str, shape: tuple[int, ...], dtype: type) -> Tensor:
    graph.tensors.append(FileTensor(name, shape, np.dtype(dtype).name))
    return Tensor(len(graph.tensors) - 1, shape, np.dtype(dtype))

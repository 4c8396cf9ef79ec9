"""Schemes that convert weights only: float16, and int8 beside float activations."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np

from clgpu_delegate.quantization import parameters
from clgpu_delegate.quantization.choice import finite
from clgpu_delegate.quantization.rewrite import dequantize_node
from clgpu_delegate.tflite.graph import ABSENT, Affine, Array, Model, Operator, Tensor


@dataclasses.dataclass(frozen=True)
class _Hybrid:
    """An operation with kernels for float activations and int8 weights."""

    weights: int
    axis: int | None
    """Axis along which the weights may have a scale per index; None: they have one scale."""

    version: int


_HYBRIDS = {
    "CONV_2D": _Hybrid(1, 0, 5),
    "DEPTHWISE_CONV_2D": _Hybrid(1, 3, 4),
    "FULLY_CONNECTED": _Hybrid(1, None, 3),
    "BATCH_MATMUL": _Hybrid(1, None, 1),
}


def to_float16(model: Model, skip: Collection[int]) -> dict[int, str]:
    """Store float constants as float16 with a DEQUANTIZE, in place.

    Parameters
    ----------
    model
        Its main graph is meant. Constants beyond the range of float16 stay as they are.
    skip
        Nodes of the file that read theirs as float32.

    Returns
    -------
    dict
        ``"float16"`` by node that reads such constants.
    """
    graph = model.main
    converted: dict[int, int] = {}
    nodes, touched = [], {}
    for op in graph.operators:
        inputs = list(op.inputs)
        for position, t in enumerate(op.inputs):
            if op.node in skip or t == ABSENT or not _is_float_constant(model, t):
                continue
            if t not in converted:
                values = model.values(graph.tensors[t])
                if np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
                    continue
                stored = _constant(model, t, values.astype(np.float16), None)
                converted[t] = _float_tensor(model, t)
                nodes.append(dequantize_node("float16", stored, converted[t]))
            inputs[position] = converted[t]
        if inputs != op.inputs:
            touched[op.node] = "float16"
        nodes.append(dataclasses.replace(op, inputs=inputs))
    graph.operators = nodes
    return touched


def to_int8(model: Model, skip: Collection[int], *, per_channel: bool) -> dict[int, str]:
    """Store the weights of products as int8, in place; activations stay float.

    Parameters
    ----------
    model
        Its main graph is meant.
    skip
        Nodes of the file that keep float weights.
    per_channel
        Whether weights have a scale per output channel, where kernels take that.

    Returns
    -------
    dict
        ``"int8"`` by node that reads such weights.
    """
    graph = model.main
    converted: dict[tuple[int, Affine], int] = {}
    nodes: list[Operator] = []
    touched = {}
    for old in graph.operators:
        op, hybrid = old, None if old.custom else _HYBRIDS.get(old.name)
        if (
            hybrid
            and old.node not in skip
            and _is_float_constant(model, old.inputs[hybrid.weights])
        ):
            t = old.inputs[hybrid.weights]
            values = finite(model, t)
            # The kernels of depthwise convolutions only know scales per channel.
            several = per_channel or old.name == "DEPTHWISE_CONV_2D"
            affine = parameters.of_weights(values, hybrid.axis if several else None)
            key = t, affine
            if key not in converted:
                stored = parameters.quantize(values, affine, "int8")
                converted[key] = _constant(model, t, stored, affine)
            inputs = list(old.inputs)
            inputs[hybrid.weights] = converted[key]
            version = max(old.version, hybrid.version)
            op = dataclasses.replace(old, inputs=inputs, version=version)
            touched[old.node] = "int8"
        nodes.append(op)
    graph.operators = nodes
    return touched


def _is_float_constant(model: Model, tensor: int) -> bool:
    found = model.main.tensors[tensor]
    return found.dtype == "float32" and model.is_constant(found)


def _constant(model: Model, like: int, stored: Array, affine: Affine | None) -> int:
    tensors = model.main.tensors
    old = tensors[like]
    tensors.append(Tensor(old.name, old.shape, stored.dtype.name, affine=affine))
    tensors[-1].buffer = model.add_buffer(stored)
    return len(tensors) - 1


def _float_tensor(model: Model, like: int) -> int:
    old = model.main.tensors[like]
    model.main.tensors.append(Tensor(f"{old.name}_float32", old.shape, "float32"))
    return len(model.main.tensors) - 1

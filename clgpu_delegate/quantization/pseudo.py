"""Pseudo-quantisation: float arithmetic on the values that integers would have."""

from __future__ import annotations

import dataclasses

from clgpu_delegate.quantization import parameters
from clgpu_delegate.quantization.rewrite import dequantize_node, quantize_node
from clgpu_delegate.tflite.graph import ABSENT, Model, Operator, Tensor


def floated(model: Model) -> None:
    """Turn a quantised model, in place, into one that computes in float on the same grids.

    Constants become the floats that their integers stand for. Behind a node that computed integers
    come QUANTIZE and DEQUANTIZE, with the parameters that its output had.

    Parameters
    ----------
    model
        Written by `Rewriter`, with float inputs and outputs. Its tensors stay where they are.
    """
    graph = model.main
    integers = {i for i, t in enumerate(graph.tensors) if t.affine is not None}
    floats: dict[int, int] = {}

    def add(tensor: int) -> int:
        like = graph.tensors[tensor]
        name = f"{like.name}_snapped"
        graph.tensors.append(Tensor(name, like.shape, "float32", signature=like.signature))
        return len(graph.tensors) - 1

    def as_float(tensor: int) -> int:
        if tensor not in integers:
            return tensor
        if tensor not in floats:  # a constant: what nodes compute is there already
            source = graph.tensors[tensor]
            assert source.affine is not None
            floats[tensor] = add(tensor)
            values = parameters.dequantize(model.values(source), source.affine)
            graph.tensors[floats[tensor]].buffer = model.add_buffer(values)
        return floats[tensor]

    nodes: list[Operator] = []
    for op in graph.operators:
        if op.name == "DEQUANTIZE" and op.node < 0:
            nodes.append(op)
            continue
        if op.name == "QUANTIZE" and op.node < 0:
            nodes.append(op)
        else:
            inputs = [t if t == ABSENT else as_float(t) for t in op.inputs]
            outputs = [add(t) if t in integers else t for t in op.outputs]
            nodes.append(dataclasses.replace(op, inputs=inputs, outputs=outputs))
            for raw, stored in zip(outputs, op.outputs):
                if raw != stored:
                    nodes.append(quantize_node(graph.tensors[stored].dtype, raw, stored))
        for stored in op.outputs:
            if stored in integers:
                floats[stored] = add(stored)
                dtype = graph.tensors[stored].dtype
                nodes.append(dequantize_node(dtype, stored, floats[stored]))
    graph.operators = nodes

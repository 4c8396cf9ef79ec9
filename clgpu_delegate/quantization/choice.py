"""Choosing the nodes that compute with integers."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from clgpu_delegate.errors import QuantizationError
from clgpu_delegate.quantization.groups import Groups
from clgpu_delegate.quantization.rules import RULES, Rule
from clgpu_delegate.tflite.graph import ABSENT, Array, Model, Operator


def quantised_nodes(model: Model, dtype: str, skip: Collection[int] = ()) -> dict[int, Rule]:
    """Choose the nodes that compute with integers.

    Parameters
    ----------
    model
        Its main graph is meant.
    dtype
        Of the activations.
    skip
        Nodes that stay in float.

    Returns
    -------
    dict
        Their rules by node.
    """
    chosen = {}
    for i, op in enumerate(model.main.operators):
        rule = None if op.custom else RULES.get(op.name)
        if i not in skip and rule and dtype in rule.versions and _fits(model, op, rule):
            chosen[i] = rule
    return _without_lonely(model, chosen)


def data_inputs(model: Model, op: Operator, rule: Rule) -> list[int]:
    """Positions of an operator's inputs that are activations."""
    tensors = model.main.tensors
    positions = range(len(op.inputs)) if rule.data is None else rule.data
    return [
        p
        for p in positions
        if p < len(op.inputs)
        and op.inputs[p] != ABSENT
        and (rule.data is not None or tensors[op.inputs[p]].dtype == "float32")
    ]


def finite(model: Model, tensor: int) -> Array:
    """The values of a constant; a QuantizationError if not all are finite."""
    values = model.values(model.main.tensors[tensor])
    if not np.isfinite(values).all():
        name = model.main.tensors[tensor].name
        raise QuantizationError(
            f"constant {name!r} holds NaN or infinity; name the layer that reads it in skip"
        )
    return values


def _fits(model: Model, op: Operator, rule: Rule) -> bool:
    tensors = model.main.tensors
    data = data_inputs(model, op, rule)
    if op.name == "SOFTMAX" and op.options.get("Beta", 0.0) <= 0:  # the integer kernels abort
        return False
    if not data or any(tensors[op.inputs[p]].dtype != "float32" for p in data):
        return False
    if any(tensors[op.inputs[p]].is_variable for p in data):
        return False
    for position in (rule.weights, rule.bias):
        if position is None or position >= len(op.inputs) or op.inputs[position] == ABSENT:
            continue
        tensor = tensors[op.inputs[position]]
        if not model.is_constant(tensor) or tensor.dtype != "float32":
            return False
    return True


def _without_lonely(model: Model, chosen: dict[int, Rule]) -> dict[int, Rule]:
    """Leave out nodes that only move elements between nodes that compute in float."""
    graph = model.main
    producers, consumers = graph.producers(), graph.consumers()
    groups = Groups()
    movers = {i for i, rule in chosen.items() if rule.follows}
    anchored: list[int] = []
    for i in movers:
        op = graph.operators[i]
        for t in op.inputs:
            if t == ABSENT or graph.tensors[t].dtype != "float32":
                continue
            source = producers.get(t)
            if source in movers:
                groups.join(i, source)
            elif source in chosen or t in graph.inputs:
                anchored.append(i)
        for t in op.outputs:
            readers = chosen.keys() & consumers.get(t, ())
            if t in graph.outputs or readers - movers:
                anchored.append(i)
    roots = {groups.root(i) for i in anchored}
    return {i: rule for i, rule in chosen.items() if i not in movers or groups.root(i) in roots}

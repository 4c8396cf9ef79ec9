"""Settling the scales and zero points of the tensors of nodes that compute with integers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable

from clgpu_delegate.quantization import parameters
from clgpu_delegate.quantization.choice import data_inputs, finite
from clgpu_delegate.quantization.groups import Groups
from clgpu_delegate.quantization.rules import Rule
from clgpu_delegate.tflite.graph import Affine, Model

Ranges = Callable[[int], "tuple[float, float]"]  # of a tensor of the main graph

# Kernels abort on scales that their fixed-point arithmetic cannot represent. The least ones: of
# the output over the inputs' largest (ADD, SUB) or its square; of the input times beta (SOFTMAX).
_FINEST_SUM = {"int8": 2.0**-18, "int16": 2.0**-13}
_FINEST_SQUARE = 2.0**-11
_FINEST_EXPONENT = 2.0**-25


@dataclasses.dataclass
class Plan:
    """How the nodes and tensors of the main graph are quantised."""

    dtype: str
    """Of the activations: ``"int8"`` or ``"int16"``."""

    nodes: dict[int, Rule]
    """Nodes that compute with integers."""

    tensors: dict[int, Affine]
    """Parameters of the float tensors that such nodes compute, and of those they read."""

    @property
    def bias_type(self) -> str:
        """Of biases."""
        return "int32" if self.dtype == "int8" else "int64"


def observed_tensors(model: Model, nodes: dict[int, Rule], ends: Iterable[int] = ()) -> list[int]:
    """Tensors whose range a plan needs; constants are not among them.

    Parameters
    ----------
    model, nodes
        As in `make`.
    ends
        Further tensors that need parameters.
    """
    graph = model.main
    wanted: set[int] = set()
    for i, rule in nodes.items():
        op = graph.operators[i]
        wanted.update(op.inputs[p] for p in data_inputs(model, op, rule))
        wanted.update(op.outputs)
    wanted.update(ends)
    return sorted(
        t
        for t in wanted
        if graph.tensors[t].dtype == "float32" and not model.is_constant(graph.tensors[t])
    )


def make(
    model: Model, nodes: dict[int, Rule], dtype: str, ranges: Ranges, ends: Iterable[int] = ()
) -> Plan:
    """Settle the parameters of all tensors.

    Parameters
    ----------
    model
        Its main graph is meant.
    nodes
        Those of `quantised_nodes`.
    dtype
        Of the activations.
    ranges
        The observed range of a tensor that is no constant.
    ends
        Further tensors that need parameters.
    """
    graph = model.main
    groups, fixed = _constraints(model, nodes, dtype)

    def span(t: int) -> tuple[float, float]:
        if model.is_constant(graph.tensors[t]):
            values = finite(model, t)
            return float(values.min(initial=0.0)), float(values.max(initial=0.0))
        return ranges(t)

    spans: dict[int, tuple[float, float]] = {}
    wanted = observed_tensors(model, nodes, ends)
    constants = [
        op.inputs[p]
        for i, rule in nodes.items()
        for op in (graph.operators[i],)
        for p in data_inputs(model, op, rule)
        if model.is_constant(graph.tensors[op.inputs[p]])
    ]
    for t in dict.fromkeys([*wanted, *constants]):
        root = groups.root(t)
        if graph.tensors[t].dtype == "float32" and root not in fixed:
            low, high = span(t)
            before = spans.get(root, (low, high))
            spans[root] = min(low, before[0]), max(high, before[1])
    affines = {root: parameters.of_range(*s, dtype) for root, s in spans.items()}
    affines.update({r: parameters.of_scale(*numbers) for r, numbers in fixed.items()})
    _coarsen(model, nodes, dtype, groups, affines, fixed)
    tensors = {
        t: affines[groups.root(t)]
        for t in dict.fromkeys([*wanted, *constants])
        if groups.root(t) in affines
    }
    return Plan(dtype, nodes, tensors)


def _constraints(
    model: Model, nodes: dict[int, Rule], dtype: str
) -> tuple[Groups, dict[int, tuple[float, int]]]:
    """Groups of tensors that share their parameters, and the parameters that kernels demand."""
    graph = model.main
    consumers = graph.consumers()
    groups, fixed = Groups(), {}
    for i, rule in nodes.items():
        if dtype in rule.fixed:
            fixed[graph.operators[i].outputs[0]] = rule.fixed[dtype]

    def join(one: int, other: int) -> None:
        numbers = {fixed[r] for r in (groups.root(one), groups.root(other)) if r in fixed}
        groups.join(one, other)
        if numbers:
            fixed[groups.root(one)] = numbers.pop()

    joins = []
    for i, rule in sorted(nodes.items()):
        if not rule.same:
            continue
        op = graph.operators[i]
        data = [op.inputs[p] for p in data_inputs(model, op, rule)]
        outputs = [t for t in op.outputs if graph.tensors[t].dtype == "float32"]
        for t in outputs[1:]:
            join(outputs[0], t)
        if len(data) == 1:
            join(data[0], outputs[0])
        else:
            joins.append((i, outputs[0], data))

    def leads_only_to(node: int, t: int) -> bool:
        """Whether a tensor's group is read within itself and by one node only."""
        for member in groups.members(t):
            if member in graph.inputs or member in graph.outputs:
                return False
            for reader in {*consumers.get(member, ())} - {node}:
                output = graph.operators[reader].outputs[0]
                inside = reader in nodes and nodes[reader].same
                if not inside or groups.root(output) != groups.root(t):
                    return False
        return True

    # Where several tensors meet, those that go nowhere else take the parameters of the result;
    # the others are requantised on the way.
    for i, output, data in joins:
        demands = {fixed.get(groups.root(t)) for t in data}
        if len(demands) == 1 and demands != {None}:
            fixed.setdefault(groups.root(output), demands.pop())  # type: ignore[arg-type]
            continue
        for t in data:
            free = groups.root(t) not in fixed and groups.root(output) not in fixed
            if free and not model.is_constant(graph.tensors[t]) and leads_only_to(i, t):
                join(output, t)
    return groups, fixed


def _coarsen(
    model: Model,
    nodes: dict[int, Rule],
    dtype: str,
    groups: Groups,
    affines: dict[int, Affine],
    fixed: Collection[int],
) -> None:
    """Raise the scales that kernels would abort on, except those that other kernels demand."""
    graph = model.main

    def scale(tensor: int) -> float:
        return affines[groups.root(tensor)].scale

    def raise_to(tensor: int, least: float) -> None:
        root = groups.root(tensor)
        if root not in fixed and affines[root].scale < least:
            affines[root] = parameters.of_scale(least, affines[root].zero_point)

    for i, rule in sorted(nodes.items()):
        op = graph.operators[i]
        data = [op.inputs[p] for p in data_inputs(model, op, rule)]
        largest = max(scale(t) for t in data)
        if op.name in ("ADD", "SUB"):
            output = op.outputs[0]
            raise_to(output, largest * _FINEST_SUM[dtype])
            # Powers of two have a separate kernel, which takes only a few of them.
            if dtype == "int16" and all(_is_power_of_two(scale(t)) for t in (*data, output)):
                raise_to(output, 1.01 * scale(output))
        elif op.name == "SQUARED_DIFFERENCE":
            raise_to(op.outputs[0], largest**2 * _FINEST_SQUARE)
        elif op.name in ("SOFTMAX", "LOG_SOFTMAX"):
            raise_to(data[0], _FINEST_EXPONENT / op.options.get("Beta", 1.0))


def _is_power_of_two(scale: float) -> bool:
    exponent = math.log2(scale)
    return abs(exponent - round(exponent)) < 2e-3  # twice the kernels' tolerance

"""Deciding which nodes compute with integers, and the scales and zero points of their tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable

from clgpu_delegate.quantization import parameters
from clgpu_delegate.quantization.graph import ABSENT, Affine, Model, Operator
from clgpu_delegate.quantization.rules import RULES, Rule

Ranges = Callable[[int], "tuple[float, float]"]  # of a tensor of the main graph

# ADD and SUB shift their inputs left by 20 bits and down again: an output may not be much finer.
_FINEST_SUM = 2.0**-16


@dataclasses.dataclass
class Plan:
    """What becomes of the nodes and tensors of the main graph."""

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


def quantised_nodes(model: Model, dtype: str, skip: Collection[int] = ()) -> dict[int, Rule]:
    """Choose the nodes that shall compute with integers.

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


def _fits(model: Model, op: Operator, rule: Rule) -> bool:
    tensors = model.main.tensors
    data = data_inputs(model, op, rule)
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
    groups = _Groups()
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


class _Groups:
    """Disjoint sets of integers."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}

    def root(self, item: int) -> int:
        while (parent := self._parent.get(item, item)) != item:
            item = parent
        return item

    def join(self, one: int, other: int) -> None:
        self._parent[self.root(other)] = self.root(one)


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
        From `quantised_nodes`.
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
            values = model.values(graph.tensors[t])
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
    _coarsen_sums(model, nodes, groups, affines, fixed)
    tensors = {
        t: affines[groups.root(t)]
        for t in dict.fromkeys([*wanted, *constants])
        if groups.root(t) in affines
    }
    return Plan(dtype, nodes, tensors)


def _constraints(
    model: Model, nodes: dict[int, Rule], dtype: str
) -> tuple[_Groups, dict[int, tuple[float, int]]]:
    """Groups of tensors that share their parameters, and the parameters that kernels demand."""
    graph = model.main
    consumers = graph.consumers()
    groups, fixed = _Groups(), {}
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
            joins.append((outputs[0], data))
    # Where several tensors meet, those that go nowhere else take the parameters of the result;
    # the others are requantised on the way.
    for output, data in joins:
        demands = {fixed.get(groups.root(t)) for t in data}
        if len(demands) == 1 and demands != {None}:
            fixed.setdefault(groups.root(output), demands.pop())  # type: ignore[arg-type]
            continue
        for t in data:
            alone = len(set(consumers.get(t, ()))) == 1 and t not in graph.inputs
            constant = model.is_constant(graph.tensors[t])
            free = groups.root(t) not in fixed and groups.root(output) not in fixed
            if free and alone and not constant:
                join(output, t)
    return groups, fixed


def _coarsen_sums(
    model: Model,
    nodes: dict[int, Rule],
    groups: _Groups,
    affines: dict[int, Affine],
    fixed: dict[int, tuple[float, int]],
) -> None:
    graph = model.main
    for i, rule in sorted(nodes.items()):
        op = graph.operators[i]
        root = groups.root(op.outputs[0])
        if op.name not in ("ADD", "SUB") or root in fixed:
            continue
        inputs = [affines[groups.root(op.inputs[p])].scale for p in data_inputs(model, op, rule)]
        output = affines[root]
        if output.scale < max(inputs) * _FINEST_SUM:
            affines[root] = parameters.of_scale(max(inputs) * _FINEST_SUM, output.zero_point)

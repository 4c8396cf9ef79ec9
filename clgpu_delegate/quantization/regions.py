"""Nodes of a float model that a plan of precisions may compute with int8."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from clgpu_delegate.quantization import calibration, observers, plan
from clgpu_delegate.quantization.choice import data_inputs, quantised_nodes
from clgpu_delegate.quantization.folding import fold
from clgpu_delegate.quantization.rules import INT8
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.graph import ABSENT, Affine, Array
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.runs import Run


@dataclasses.dataclass(frozen=True)
class IntegerParts:
    """What of a model may be int8, and what its integers stand for."""

    nodes: tuple[int, ...]
    """In the order of the model."""

    products: frozenset[int]
    """Those with weights."""

    tensors: Mapping[int, frozenset[int]]
    """By node: what it reads and writes as int8."""

    scales: Mapping[int, Affine]
    """By tensor."""


def integer_parts(
    content: bytes, runtime: Runtime, samples: Sequence[Sequence[Array]], observer: str
) -> IntegerParts:
    """Find the nodes that `quantize` would make integers, and the scales that it would choose.

    Parameters
    ----------
    content
        Of a float model.
    runtime
        It computes the values that are observed.
    samples
        Inputs, one list per sample.
    observer
        Of `observers.NAMES`.

    Raises
    ------
    QuantizationError
        If the model computes a value that is not finite, or the runtime rejects it.
    """
    model, run = parse(content), Run(content, runtime)
    fold(model, run)
    nodes = quantised_nodes(model, INT8)
    watched = {t: model.main.tensors[t] for t in plan.observed_tensors(model, nodes)}
    ranges = calibration.observe(
        run, samples, watched, lambda: observers.make(observer, 256), lambda: None
    )
    made = plan.make(model, nodes, INT8, ranges.__getitem__)
    operators = model.main.operators
    tensors = {}
    for i, rule in nodes.items():
        op = operators[i]
        own = {*(op.inputs[p] for p in data_inputs(model, op, rule)), *op.outputs} - {ABSENT}
        tensors[op.node] = frozenset(own.intersection(made.tensors))
    return IntegerParts(
        nodes=tuple(operators[i].node for i in sorted(nodes)),
        products=frozenset(operators[i].node for i, r in nodes.items() if r.weights is not None),
        tensors=tensors,
        scales=made.tensors,
    )

"""Cutting nodes out of a model, with the inputs that they had in a run of the whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from clgpu_delegate.base.rendering import printable
from clgpu_delegate.errors import ClgpuError, ModelError, QuantizationError
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.graph import ABSENT, Array, Model
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.runs import Run
from clgpu_delegate.tflite.writer import serialize


@dataclasses.dataclass(frozen=True)
class Cut:
    """A part of a model that runs by itself."""

    content: bytes
    inputs: list[Array]
    nodes: tuple[int, ...]
    """Its nodes, as indices of the whole, in its own order."""

    outputs: tuple[int, ...]
    """Its outputs, as tensors of the whole."""


class Cutter:
    """Cuts a model of which one run is known.

    Raises
    ------
    ModelError
        If it cannot be cut; the message says why.
    DependencyError
        If the packages that know the format are not installed.
    """

    def __init__(self, content: bytes, inputs: Sequence[Array], runtime: Runtime) -> None:
        try:
            self.model = parse(content)
        except QuantizationError as error:
            raise ModelError(str(error)) from None
        if obstacle := _obstacle(self.model):
            raise ModelError(obstacle)
        self._run = Run(content, runtime)
        try:
            self._run.invoke(list(inputs))
        except ClgpuError as error:
            raise ModelError(f"the run that records its tensors failed: {error}") from None
        self._constant_nodes = self._nodes_of_constants()

    @property
    def nodes(self) -> list[int]:
        """Nodes that can be removed; those that only compute constants go with their readers."""
        count = len(self.model.main.operators)
        return [i for i in range(count) if i not in self._constant_nodes]

    def name(self, node: int) -> str:
        """The operation of a node."""
        return printable(self.model.main.operators[node].name)

    def bytes_between(self) -> int:
        """Size of all tensors that nodes compute."""
        graph = self.model.main
        values = (self._run.value(t) for i in self.nodes for t in graph.operators[i].outputs)
        return sum(v.nbytes for v in values if v is not None)

    def cut(self, nodes: Iterable[int], *, expose: bool = False) -> Cut | None:
        """A model of these nodes; None if a tensor that they read is unknown.

        With ``expose``, all their results are outputs, not only those that none of them reads.
        """
        wanted = self._with_constants(set(nodes))
        model = self.model.copy()
        graph, whole = model.main, self.model.main
        graph.operators = [op for i, op in enumerate(graph.operators) if i in wanted]
        read = {t for op in graph.operators for t in op.inputs if t != ABSENT}
        made = [t for op in graph.operators for t in op.outputs]
        hidden = {t for i in self._constant_nodes for t in whole.operators[i].outputs}
        graph.inputs = sorted(
            t for t in read - set(made) if not model.is_constant(graph.tensors[t])
        )
        graph.outputs = [
            t
            for t in dict.fromkeys(made)
            if t not in hidden and (expose or t not in read or t in whole.outputs)
        ]
        inputs: list[Array] = []
        for t in sorted({*graph.inputs, *made}):
            value = self._run.value(t)
            if value is not None:
                # A tensor with a dynamic extent has the size that it had in that run.
                graph.tensors[t].shape = tuple(value.shape)
                graph.tensors[t].signature = None
            if t in graph.inputs:
                if value is None:
                    return None
                inputs.append(value.copy())
        if not graph.inputs or not graph.outputs:
            return None
        outputs = tuple(graph.outputs)
        content = _written(model)
        return Cut(content, inputs, tuple(sorted(wanted)), outputs)

    def _with_constants(self, nodes: set[int]) -> set[int]:
        producers, operators = self.model.main.producers(), self.model.main.operators
        found, queue = set(nodes), list(nodes)
        while queue:
            for t in operators[queue.pop()].inputs:
                producer = producers.get(t)
                if producer in self._constant_nodes and producer not in found:
                    found.add(producer)
                    queue.append(producer)
        return found

    def _nodes_of_constants(self) -> set[int]:
        graph, found = self.model.main, set()
        known = {i for i, t in enumerate(graph.tensors) if self.model.is_constant(t)} | {ABSENT}
        for i, op in enumerate(graph.operators):
            if op.inputs and set(op.inputs) <= known:
                found.add(i)
                known.update(op.outputs)
        # A node whose result is the model's output is needed.
        return {i for i in found if not set(graph.operators[i].outputs) & set(graph.outputs)}


def with_batch_of_one(cut: Cut) -> Cut | None:
    """The same nodes for the first image of a batch; None where there is none.

    Only the extents change: only a run shows whether the result is a valid model.
    """
    batches = {a.shape[0] if a.ndim > 1 else 0 for a in cut.inputs}
    if len(batches) != 1 or max(batches) < 2:
        return None
    (batch,) = batches
    model = parse(cut.content)
    for tensor in model.main.tensors:
        if tensor.shape[:1] == (batch,) and not model.is_constant(tensor):
            tensor.shape = (1, *tensor.shape[1:])
    inputs = [a[:1].copy() for a in cut.inputs]
    return dataclasses.replace(cut, content=_written(model), inputs=inputs)


def _obstacle(model: Model) -> str:
    """Why nodes cannot be cut out of a model; empty if they can."""
    tensors = model.main.tensors
    if len(model.subgraphs) > 1:
        return "it has several graphs (control flow)"
    if any(t.is_variable or t.dtype in ("resource", "variant") for t in tensors):
        return "it keeps state between inferences"
    return "it has sparse weights" if any(t.is_sparse for t in tensors) else ""


def _written(model: Model) -> bytes:
    model.signatures, model.metadata, model.description = [], [], ""
    model.compact()
    return serialize(model)

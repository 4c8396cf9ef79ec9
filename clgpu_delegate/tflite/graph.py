"""A .tflite model as plain data, free of the file's format.

Indices are those of the file: of tensors within their subgraph, of buffers within the model.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NO_BUFFER = 0  # the format reserves buffer 0, which is empty, for tensors without data
ABSENT = -1  # the index of an absent optional input


@dataclasses.dataclass(frozen=True)
class Affine:
    """What stored integers mean: ``real = scale * (stored - zero_point)``."""

    scales: tuple[float, ...]
    """One, or one per index of ``axis``; each is exact in float32."""

    zero_points: tuple[int, ...]
    axis: int = 0

    @property
    def scale(self) -> float:
        """The only scale."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The only zero point."""
        (zero_point,) = self.zero_points
        return zero_point


@dataclasses.dataclass
class Tensor:
    """A tensor of a subgraph."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """The schema's name in lower case: ``"float32"``, ``"int8"``, ``"string"``."""

    buffer: int = NO_BUFFER
    affine: Affine | None = None
    is_variable: bool = False
    signature: tuple[int, ...] | None = None
    """The shape with -1 for extents that are settled at run time."""

    has_rank: bool = True
    is_sparse: bool = False


@dataclasses.dataclass
class Operator:
    """A node of a subgraph."""

    name: str
    """Of the builtin operation, as in the schema, or of the custom one."""

    version: int
    inputs: list[int]
    outputs: list[int]
    options_table: str | None = None
    """The schema's name of the table of options."""

    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Numbers, strings and arrays by the schema's names of fields in camel case."""

    custom: bool = False
    custom_options: bytes | None = None
    intermediates: list[int] = dataclasses.field(default_factory=list)
    mutating_variable_inputs: list[bool] = dataclasses.field(default_factory=list)
    node: int = -1
    """Position in the file that was read; -1 of new ones."""


@dataclasses.dataclass
class Subgraph:
    """A graph; its operators are in an order of execution."""

    name: str
    tensors: list[Tensor]
    inputs: list[int]
    outputs: list[int]
    operators: list[Operator]

    def producers(self) -> dict[int, int]:
        """The operator that computes a tensor, by tensor."""
        return {t: i for i, op in enumerate(self.operators) for t in op.outputs}

    def consumers(self) -> dict[int, list[int]]:
        """The operators that read a tensor, by tensor; one that reads it twice is listed twice."""
        readers: dict[int, list[int]] = {}
        for i, op in enumerate(self.operators):
            for t in op.inputs:
                if t != ABSENT:
                    readers.setdefault(t, []).append(i)
        return readers


@dataclasses.dataclass
class Signature:
    """Names that the caller of a model uses for inputs and outputs of a subgraph."""

    key: str
    subgraph: int
    inputs: dict[str, int]
    outputs: dict[str, int]


@dataclasses.dataclass
class Model:
    """A file."""

    subgraphs: list[Subgraph]
    buffers: list[Array]
    """Bytes as uint8."""

    description: str = ""
    metadata: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    """Names and buffers."""

    signatures: list[Signature] = dataclasses.field(default_factory=list)

    @property
    def main(self) -> Subgraph:
        """The graph that the caller of the model runs."""
        return self.subgraphs[0]

    def is_constant(self, tensor: Tensor) -> bool:
        """Tell whether a tensor has data in the file."""
        return tensor.buffer != NO_BUFFER and self.buffers[tensor.buffer].size > 0

    def values(self, tensor: Tensor) -> Array:
        """The elements of a constant, as an array of its shape."""
        return self.buffers[tensor.buffer].view(np.dtype(tensor.dtype)).reshape(tensor.shape)

    def add_buffer(self, values: Array) -> int:
        """Append the bytes of an array, and return the index of the new buffer."""
        self.buffers.append(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        return len(self.buffers) - 1

    def copy(self) -> Model:
        """A model to change; the bytes of the buffers are shared."""
        return dataclasses.replace(
            self,
            subgraphs=copy.deepcopy(self.subgraphs),
            buffers=list(self.buffers),
            signatures=copy.deepcopy(self.signatures),
        )

    def compact(self) -> dict[int, int]:
        """Drop the main graph's tensors that nothing uses; return new indices by old ones."""
        graph = self.main
        used = {*graph.inputs, *graph.outputs}
        for op in graph.operators:
            used.update(op.inputs, op.outputs, op.intermediates)
        used.discard(ABSENT)
        new = {old: position for position, old in enumerate(sorted(used))}
        graph.tensors = [graph.tensors[old] for old in sorted(used)]
        graph.inputs = [new[t] for t in graph.inputs]
        graph.outputs = [new[t] for t in graph.outputs]
        for op in graph.operators:
            op.inputs = [new.get(t, ABSENT) for t in op.inputs]
            op.outputs = [new[t] for t in op.outputs]
            op.intermediates = [new[t] for t in op.intermediates]
        for signature in self.signatures:
            if signature.subgraph == 0:
                signature.inputs = {k: new[t] for k, t in signature.inputs.items()}
                signature.outputs = {k: new[t] for k, t in signature.outputs.items()}
        return new

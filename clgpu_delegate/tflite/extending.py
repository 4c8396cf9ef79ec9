"""Adding to the ends of a model's graphs, with all that the file has besides."""

from __future__ import annotations

from typing import Any

from clgpu_delegate.tflite import schema
from clgpu_delegate.tflite.graph import Model, Subgraph
from clgpu_delegate.tflite.writer import Writer

_ALIGNMENT = 64  # of the old file in the new one; a multiple of what its constants have

# Slots of the schema.
_CODES, _SUBGRAPHS, _DESCRIPTION, _BUFFERS = 1, 2, 3, 4
_METADATA_BUFFER, _METADATA, _SIGNATURES = 5, 6, 7
_TENSORS, _INPUTS, _OPERATORS, _NAME, _DEBUG = 0, 1, 3, 4, 5


def extend(content: bytes, before: Model, after: Model) -> bytes:
    """Write a model that differs from another one by what was added to the ends of its lists.

    References of FlatBuffers point forward: the new tables lie in front of the old file, whose
    tables they refer to. So nothing of that is read, and nothing lost that
    `clgpu_delegate.tflite.graph` does not know.

    Parameters
    ----------
    content
        The file, of less than 2 GiB, without buffers behind its end.
    before
        What `clgpu_delegate.tflite.reader.parse` reads of it.
    after
        A copy with more tensors, operators and buffers; outputs of graphs and of signatures may
        differ.
    """
    return _Extender(content, before, after).write()


class _Old(int):
    """A place in the old file."""


class _Extender(Writer):
    def __init__(self, content: bytes, before: Model, after: Model) -> None:
        super().__init__(Model([], after.buffers[:1]))
        self._content, self._before, self._after = content, before, after
        self._root: Any = self._fb.Model.GetRootAs(content, 0)._tab
        self._buffers = {i: i for i in range(len(after.buffers))}
        self._old_codes = _elements(self._root, _CODES)
        self._codes = {(str(i), -1, False): i for i in range(len(self._old_codes))}
        self._open: list[tuple[int, int]] = []  # offsets from the end, and what they refer to

    def write(self) -> bytes:
        fb, builder, before, after = self._fb, self._builder, self._before, self._after
        added = [self._buffer(data) for data in after.buffers[len(before.buffers) :]]
        buffers = self._list([*_elements(self._root, _BUFFERS), *added])
        graphs = self._list(
            [
                self._changed(old, a, b) if _differ(a, b) else old
                for old, a, b in zip(
                    _elements(self._root, _SUBGRAPHS), before.subgraphs, after.subgraphs
                )
            ]
        )
        new_codes = [self._code(*code) for code in list(self._codes)[len(self._old_codes) :]]
        codes = self._list([*self._old_codes, *new_codes])
        signatures = self._list(
            [
                self._signature(b) if a != b else old
                for old, a, b in zip(
                    _elements(self._root, _SIGNATURES), before.signatures, after.signatures
                )
            ]
        )
        fb.ModelStart(builder)
        fb.ModelAddVersion(builder, 3)
        fb.ModelAddOperatorCodes(builder, codes)
        fb.ModelAddSubgraphs(builder, graphs)
        fb.ModelAddBuffers(builder, buffers)
        fb.ModelAddSignatureDefs(builder, signatures)
        for slot in (_DESCRIPTION, _METADATA_BUFFER, _METADATA):
            self._keep(self._root, slot)
        builder.Finish(fb.ModelEnd(builder), file_identifier=b"TFL3")
        return self._joined(builder.Output())

    def _changed(self, old: _Old, before: Subgraph, after: Subgraph) -> int:
        fb, builder = self._fb, self._builder
        table = schema.module("flatbuffers").table.Table(self._content, old)
        new_tensors = [self._tensor(t) for t in after.tensors[len(before.tensors) :]]
        tensors = self._list([*_elements(table, _TENSORS), *new_tensors])
        new_operators = [self._operator(op) for op in after.operators[len(before.operators) :]]
        operators = self._list([*_elements(table, _OPERATORS), *new_operators])
        outputs = self._ints(after.outputs)
        fb.SubGraphStart(builder)
        fb.SubGraphAddTensors(builder, tensors)
        fb.SubGraphAddOutputs(builder, outputs)
        fb.SubGraphAddOperators(builder, operators)
        for slot in (_INPUTS, _NAME):
            self._keep(table, slot)
        at = table.Offset(4 + 2 * _DEBUG)
        if at:
            int32 = schema.module("flatbuffers").number_types.Int32Flags
            builder.PrependInt32Slot(_DEBUG, table.Get(int32, table.Pos + at), -1)
        return int(fb.SubGraphEnd(builder))

    def _list(self, items: list[Any]) -> int:
        builder = self._builder
        builder.StartVector(4, len(items), 4)
        for item in reversed(items):
            if isinstance(item, _Old):
                builder.PrependUint32(0)
                self._open.append((builder.Offset(), item))
            else:
                builder.PrependUOffsetTRelative(item)
        return int(builder.EndVector())

    def _keep(self, table: Any, slot: int) -> None:
        """The field that a table of the old file has."""
        at = table.Offset(4 + 2 * slot)
        if at:
            self._builder.PrependUint32Slot(slot, 1, 0)
            self._open.append((self._builder.Offset(), table.Indirect(table.Pos + at)))

    def _joined(self, head: bytearray) -> bytes:
        size = -(-len(head) // _ALIGNMENT) * _ALIGNMENT
        for offset, target in self._open:
            slot = len(head) - offset
            head[slot : slot + 4] = (size + target - slot).to_bytes(4, "little")
        # Without its mark, nobody takes the rest for a file.
        gap = bytes(size - len(head) + 8)
        return b"".join([head, gap, memoryview(self._content)[8:]])


def _differ(before: Subgraph, after: Subgraph) -> bool:
    sizes = [(len(g.tensors), len(g.operators), g.outputs) for g in (before, after)]
    return sizes[0] != sizes[1]


def _elements(table: Any, slot: int) -> list[_Old]:
    """Places of the tables in a vector."""
    at = table.Offset(4 + 2 * slot)
    if not at:
        return []
    first = table.Vector(at)
    return [_Old(table.Indirect(first + 4 * i)) for i in range(table.VectorLen(at))]

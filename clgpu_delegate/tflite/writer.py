"""Writing .tflite files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clgpu_delegate.tflite import schema
from clgpu_delegate.tflite.graph import (
    NO_BUFFER,
    Affine,
    Array,
    Model,
    Operator,
    Signature,
    Subgraph,
    Tensor,
)

_SCHEMA_VERSION = 3
_ALIGNMENT = 16  # bytes; the runtimes map constants in place and their kernels expect it
_PLACEHOLDER = 127  # the code for readers that know fewer operations


def serialize(model: Model) -> bytes:
    """Write a model, without the buffers that nothing refers to, and return the file's bytes."""
    return Writer(model).write()


class Writer:
    """Writes a model; also the base of what adds to one."""

    def __init__(self, model: Model) -> None:
        self._fb: Any = schema.module("tflite")
        self._model = model
        used = {t.buffer for graph in model.subgraphs for t in graph.tensors}
        used |= {buffer for _, buffer in model.metadata}
        kept = [NO_BUFFER, *sorted(used - {NO_BUFFER})]
        self._buffers = {old: new for new, old in enumerate(kept)}
        self._codes: dict[tuple[str, int, bool], int] = {}
        payload = sum(model.buffers[b].size + 64 for b in kept)
        # Room for the constants at once: growing would copy all that is written so far.
        self._builder: Any = schema.module("flatbuffers").Builder(payload + 65536)

    def write(self) -> bytes:
        fb, builder, model = self._fb, self._builder, self._model
        buffers = self._offsets([self._buffer(model.buffers[old]) for old in self._buffers])
        graphs = self._offsets([self._subgraph(graph) for graph in model.subgraphs])
        codes = self._offsets([self._code(*code) for code in self._codes])
        metadata = self._offsets([self._metadata(*item) for item in model.metadata])
        signatures = self._offsets([self._signature(s) for s in model.signatures])
        description = builder.CreateString(model.description)
        fb.ModelStart(builder)
        fb.ModelAddVersion(builder, _SCHEMA_VERSION)
        fb.ModelAddOperatorCodes(builder, codes)
        fb.ModelAddSubgraphs(builder, graphs)
        fb.ModelAddDescription(builder, description)
        fb.ModelAddBuffers(builder, buffers)
        if model.metadata:
            fb.ModelAddMetadata(builder, metadata)
        if model.signatures:
            fb.ModelAddSignatureDefs(builder, signatures)
        builder.Finish(fb.ModelEnd(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def _buffer(self, data: Array) -> int:
        fb, builder, at = self._fb, self._builder, 0
        if data.size:
            # CreateByteVector copies as fast but cannot align.
            builder.StartVector(1, data.size, _ALIGNMENT)
            head = builder.Head() - data.size
            builder.head = head
            builder.Bytes[head : head + data.size] = data.data
            at = builder.EndVector()
        fb.BufferStart(builder)
        if at:
            fb.BufferAddData(builder, at)
        return int(fb.BufferEnd(builder))

    def _subgraph(self, graph: Subgraph) -> int:
        fb, builder = self._fb, self._builder
        tensors = self._offsets([self._tensor(t) for t in graph.tensors])
        operators = self._offsets([self._operator(op) for op in graph.operators])
        inputs, outputs = self._ints(graph.inputs), self._ints(graph.outputs)
        name = builder.CreateString(graph.name)
        fb.SubGraphStart(builder)
        fb.SubGraphAddTensors(builder, tensors)
        fb.SubGraphAddInputs(builder, inputs)
        fb.SubGraphAddOutputs(builder, outputs)
        fb.SubGraphAddOperators(builder, operators)
        fb.SubGraphAddName(builder, name)
        return int(fb.SubGraphEnd(builder))

    def _tensor(self, tensor: Tensor) -> int:
        fb, builder = self._fb, self._builder
        name, shape = builder.CreateString(tensor.name), self._ints(tensor.shape)
        signature = self._ints(tensor.signature) if tensor.signature else 0
        affine = self._affine(tensor.affine) if tensor.affine else 0
        fb.TensorStart(builder)
        fb.TensorAddShape(builder, shape)
        fb.TensorAddType(builder, schema.enum("TensorType")[tensor.dtype.upper()])
        fb.TensorAddBuffer(builder, self._buffers[tensor.buffer])
        fb.TensorAddName(builder, name)
        fb.TensorAddIsVariable(builder, tensor.is_variable)
        fb.TensorAddHasRank(builder, tensor.has_rank)
        if affine:
            fb.TensorAddQuantization(builder, affine)
        if signature:
            fb.TensorAddShapeSignature(builder, signature)
        return int(fb.TensorEnd(builder))

    def _affine(self, affine: Affine) -> int:
        fb, builder = self._fb, self._builder
        scales = builder.CreateNumpyVector(np.array(affine.scales, np.float32))
        zero_points = builder.CreateNumpyVector(np.array(affine.zero_points, np.int64))
        fb.QuantizationParametersStart(builder)
        fb.QuantizationParametersAddScale(builder, scales)
        fb.QuantizationParametersAddZeroPoint(builder, zero_points)
        fb.QuantizationParametersAddQuantizedDimension(builder, affine.axis)
        return int(fb.QuantizationParametersEnd(builder))

    def _operator(self, op: Operator) -> int:
        fb, builder = self._fb, self._builder
        code = self._codes.setdefault((op.name, op.version, op.custom), len(self._codes))
        inputs, outputs = self._ints(op.inputs), self._ints(op.outputs)
        intermediates = self._ints(op.intermediates) if op.intermediates else 0
        mutating = 0
        if op.mutating_variable_inputs:
            mutating = builder.CreateNumpyVector(np.array(op.mutating_variable_inputs, np.bool_))
        custom = 0
        if op.custom_options is not None:
            custom = builder.CreateByteVector(op.custom_options)
        options = 0
        if op.options_table is not None:
            options = schema.write_table(builder, op.options_table, op.options)
        fb.OperatorStart(builder)
        fb.OperatorAddOpcodeIndex(builder, code)
        fb.OperatorAddInputs(builder, inputs)
        fb.OperatorAddOutputs(builder, outputs)
        if intermediates:
            fb.OperatorAddIntermediates(builder, intermediates)
        if mutating:
            fb.OperatorAddMutatingVariableInputs(builder, mutating)
        if custom:
            fb.OperatorAddCustomOptions(builder, custom)
        if op.options_table in schema.enum("BuiltinOptions"):
            member = schema.enum("BuiltinOptions")[op.options_table]
            fb.OperatorAddBuiltinOptionsType(builder, member)
            fb.OperatorAddBuiltinOptions(builder, options)
        elif op.options_table is not None:
            member = schema.enum("BuiltinOptions2")[op.options_table]
            fb.OperatorAddBuiltinOptions2Type(builder, member)
            fb.OperatorAddBuiltinOptions2(builder, options)
        return int(fb.OperatorEnd(builder))

    def _code(self, name: str, version: int, custom: bool) -> int:
        fb, builder = self._fb, self._builder
        code = schema.enum("BuiltinOperator")["CUSTOM" if custom else name]
        custom_code = builder.CreateString(name) if custom else 0
        fb.OperatorCodeStart(builder)
        fb.OperatorCodeAddDeprecatedBuiltinCode(builder, min(code, _PLACEHOLDER))
        fb.OperatorCodeAddBuiltinCode(builder, code)
        fb.OperatorCodeAddVersion(builder, version)
        if custom_code:
            fb.OperatorCodeAddCustomCode(builder, custom_code)
        return int(fb.OperatorCodeEnd(builder))

    def _metadata(self, name: str, buffer: int) -> int:
        fb, builder = self._fb, self._builder
        text = builder.CreateString(name)
        fb.MetadataStart(builder)
        fb.MetadataAddName(builder, text)
        fb.MetadataAddBuffer(builder, self._buffers[buffer])
        return int(fb.MetadataEnd(builder))

    def _signature(self, signature: Signature) -> int:
        fb, builder = self._fb, self._builder
        inputs = self._offsets([self._named(*item) for item in signature.inputs.items()])
        outputs = self._offsets([self._named(*item) for item in signature.outputs.items()])
        key = builder.CreateString(signature.key)
        fb.SignatureDefStart(builder)
        fb.SignatureDefAddInputs(builder, inputs)
        fb.SignatureDefAddOutputs(builder, outputs)
        fb.SignatureDefAddSignatureKey(builder, key)
        fb.SignatureDefAddSubgraphIndex(builder, signature.subgraph)
        return int(fb.SignatureDefEnd(builder))

    def _named(self, name: str, tensor: int) -> int:
        fb, builder = self._fb, self._builder
        text = builder.CreateString(name)
        fb.TensorMapStart(builder)
        fb.TensorMapAddName(builder, text)
        fb.TensorMapAddTensorIndex(builder, tensor)
        return int(fb.TensorMapEnd(builder))

    def _ints(self, values: Sequence[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.array(values, np.int32)))

    def _offsets(self, offsets: Sequence[int]) -> int:
        builder = self._builder
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())

"""A small .tflite writer: graphs are described op by op, without a converter.

>>> m = ModelMaker()
>>> x = m.input("x", (1, 4), np.float32)
>>> m.output(m.op("RELU", [x], (1, 4)))
>>> data = m.build()
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union, overload

import flatbuffers
import numpy as np
import tflite

from tests import schema, sparsity

Shape = tuple  # of ints; -1 for an extent that is known only at run time
DType = Any  # a numpy dtype, or a schema name such as "RESOURCE"

_SCHEMA_VERSION = 3
_BUFFER_ALIGNMENT = 16  # bytes; the runtimes map constants in place and their kernels expect it
_NO_BUFFER = 0  # the schema reserves buffer 0, which is empty, for tensors without data
_OUTSIDE_ALIGNMENT = 64  # bytes
_LARGEST_TABLE = 2**31 - 2**20  # bytes of a FlatBuffer, whose offsets are 32 bits with a sign

# The runtimes register nearly every kernel from version 1 on and look at the tensors' types
# themselves, so 1 loads everywhere. Where type support was a later version, state it as a
# converter would.
_VERSIONS = {
    ("CONV_2D", np.dtype(np.int8)): 3,
    ("DEPTHWISE_CONV_2D", np.dtype(np.int8)): 3,
    ("DEQUANTIZE", np.dtype(np.float16)): 3,
    ("DEQUANTIZE", np.dtype(np.int8)): 2,
    ("FULLY_CONNECTED", np.dtype(np.int8)): 4,
}


class Quantization(NamedTuple):
    """Affine quantization: ``real = scale * (stored - zero_point)``.

    ``axis`` is the axis that the scales run along when there are several.
    """

    scales: float | Sequence[float]
    zero_points: int | Sequence[int] = 0
    axis: int = 0


class Blocks(NamedTuple):
    """Quantization of a matrix of which ``size`` neighbours of a row share a scale."""

    scales: int
    """The tensor that holds them."""

    size: int
    zero_points: int = 0
    axis: int = 0


@dataclasses.dataclass(frozen=True)
class Late:
    """Bytes of a constant that are made while the file is written, piece by piece."""

    nbytes: int
    pieces: Callable[[], Iterable[np.ndarray]]


Data = Union[np.ndarray, Late]


@dataclasses.dataclass(frozen=True)
class _Signature:
    key: str
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclasses.dataclass
class _Tensor:
    name: str
    shape: Shape
    dtype: DType
    buffer: int = _NO_BUFFER
    quantization: Quantization | Blocks | None = None
    is_variable: bool = False
    shape_signature: Shape | None = None
    sparsity: sparsity.Sparsity | None = None


@dataclasses.dataclass
class _Op:
    code: int  # index among the operator codes
    inputs: list[int]  # -1 for an optional input that is absent
    outputs: list[int]
    name: str
    options: dict[str, Any]
    custom_options: bytes | None
    intermediates: list[int] = dataclasses.field(default_factory=list)


class ModelMaker:
    """Collects tensors and ops of a graph, then writes them as a .tflite file.

    Tensors are named by the integer ids that the methods return; ops are kept in the order in
    which they are added, which must be an execution order.
    """

    def __init__(self) -> None:
        self._tensors: list[_Tensor] = []
        self._ops: list[_Op] = []
        self._codes: dict[tuple[str, int], int] = {}  # (builtin or custom name, version) -> index
        self._custom_codes: set[str] = set()
        self._buffers: list[Data] = [np.empty(0, np.uint8)]
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._subgraphs: list[ModelMaker] = []
        self._signatures: list[_Signature] = []

    def tensor(
        self,
        shape: Shape,
        dtype: DType = np.float32,
        *,
        name: str | None = None,
        quantization: Quantization | tuple | None = None,
        is_variable: bool = False,
        shape_signature: Shape | None = None,
    ) -> int:
        """Declare a tensor without data.

        Parameters
        ----------
        shape
            Extents; -1 marks one that is dynamic (stored as 1, with a shape signature).
        dtype
            Element type.
        name
            Name in the file; ``t<id>`` if None.
        quantization
            ``(scales, zero_points, axis)``; a shorter tuple takes zero point 0, axis 0.
        is_variable
            True for state that the runtime keeps from one run to the next.
        shape_signature
            Shape with -1 for dynamic extents, where ``shape`` gives their present value.
        """
        shape = tuple(int(extent) for extent in shape)
        if -1 in shape:
            shape_signature = shape
        return self._add(
            _Tensor(
                name or f"t{len(self._tensors)}",
                tuple(1 if extent == -1 else extent for extent in shape),
                schema.element_type(dtype),
                quantization=Quantization(*quantization) if quantization else None,
                is_variable=is_variable,
                shape_signature=shape_signature,
            )
        )

    def input(self, name: str, shape: Shape, dtype: DType = np.float32, **attributes: Any) -> int:
        """Declare a tensor (as `tensor`) that the caller of the model fills."""
        self._inputs.append(self.tensor(shape, dtype, name=name, **attributes))
        return self._inputs[-1]

    def constant(
        self,
        array: Any,
        name: str | None = None,
        *,
        dtype: Any = None,
        quantization: Quantization | tuple | None = None,
    ) -> int:
        """Declare a tensor with data: any array of a numpy dtype that the schema has."""
        array = np.asarray(array, dtype, order="C")
        tensor = self.tensor(array.shape, array.dtype, name=name, quantization=quantization)
        self._tensors[tensor].buffer = self._add_buffer(array)
        return tensor

    def int4_constant(
        self,
        array: np.ndarray,
        quantization: Quantization | Blocks,
        name: str | None = None,
        *,
        bits: int = 4,
    ) -> int:
        """Declare a constant of integers from -8 to 7, of which two share a byte.

        ``bits=2``: four share a byte, and are from -2 to 1.
        """
        each = 8 // bits
        parts = np.append(array.reshape(-1), np.zeros(-array.size % each, array.dtype))
        parts = (parts.astype(np.uint8) & (2**bits - 1)).reshape(-1, each)
        tensor = self.tensor(array.shape, f"INT{bits}", name=name)
        self._tensors[tensor].quantization = quantization
        packed = (parts << (bits * np.arange(each))).sum(1).astype(np.uint8)
        self._tensors[tensor].buffer = self._add_buffer(packed)
        return tensor

    def late_constant(
        self,
        shape: Shape,
        dtype: DType,
        pieces: Callable[[], Iterable[np.ndarray]],
        name: str | None = None,
        *,
        quantization: Quantization | Blocks | None = None,
    ) -> int:
        """Declare a constant whose bytes are made only when the file is written.

        Parameters
        ----------
        shape, dtype, name, quantization
            As in `tensor`; of an ``"INT4"`` two neighbours share a byte, the first in its low half.
        pieces
            Called for each writing of the file; its arrays, one after the other, are the bytes.
        """
        tensor = self.tensor(shape, dtype, name=name)
        count = math.prod(self._tensors[tensor].shape)
        stored = self._tensors[tensor].dtype
        size = (count + 1) // 2 if isinstance(stored, str) else count * stored.itemsize
        self._tensors[tensor].quantization = quantization
        self._buffers.append(Late(size, pieces))
        self._tensors[tensor].buffer = len(self._buffers) - 1
        return tensor

    def shared_constant(self, graph: ModelMaker, tensor: int) -> int:
        """Declare a constant of another graph of this file; the file has its data once."""
        theirs = graph._tensors[tensor]
        quantization = theirs.quantization
        if isinstance(quantization, Blocks):
            scales = self.shared_constant(graph, quantization.scales)
            quantization = quantization._replace(scales=scales)
        return self._add(dataclasses.replace(theirs, quantization=quantization))

    def sparse_constant(self, dense: np.ndarray, name: str | None = None, *, block: int = 1) -> int:
        """Declare a constant that is stored compressed, for DENSIFY to unpack.

        Parameters
        ----------
        dense
            The values, zeros included; rank 1 or more.
        name
            Name in the file.
        block
            Zeros are left out by runs of this many elements of the last axis.
        """
        values, where = sparsity.compress(np.asarray(dense), block)
        tensor = self.tensor(dense.shape, dense.dtype, name=name)
        self._tensors[tensor].buffer = self._add_buffer(values)
        self._tensors[tensor].sparsity = where
        return tensor

    @overload
    def op(
        self, name: str, /, inputs: Sequence[int | None], shape: tuple[int, ...], **options: Any
    ) -> int: ...

    @overload
    def op(
        self,
        name: str,
        /,
        inputs: Sequence[int | None],
        shape: list[tuple[int, ...]],
        **options: Any,
    ) -> tuple[int, ...]: ...

    def op(
        self,
        name: str,
        /,
        inputs: Sequence[int | None],
        shape: Shape | list[Shape],
        *,
        dtype: DType | list[DType] = None,
        quantization: Any = None,
        version: int | None = None,
        intermediates: Sequence[int] = (),
        **options: Any,
    ) -> int | tuple[int, ...]:
        """Add a builtin op.

        Parameters
        ----------
        name
            Schema name, such as ``"CONV_2D"``.
        inputs
            Tensor ids; None for an optional input that is absent.
        shape
            Shape of the output (a tuple), or a list of shapes for several outputs.
        dtype
            Output type, or a list of one per output. Left out, it is the type of the first input
            that is not a constant.
        quantization
            Of the output, as in `tensor`; a list of one per output where there are several.
        version
            Operator version; chosen from the types if None.
        intermediates
            Tensors whose scales the kernel uses; LSTMs of integers have five.
        **options
            Fields of the op's option table in snake case; enums by name, types as numpy dtypes.

        Returns
        -------
        int or tuple of int
            The output, or the outputs if ``shape`` is a list.

        Raises
        ------
        ValueError
            On a name or an option that the schema lacks; the message lists the ones it has.
        """
        schema.builtin_code(name)  # raises on an unknown name
        schema.write_options(flatbuffers.Builder(), name, options)  # raises on a wrong option
        if version is None:
            types = [self._tensors[i].dtype for i in inputs if i is not None]
            version = max([_VERSIONS.get((name, t), 1) for t in types], default=1)
        code = self._operator_code(name, version)
        result = self._emit(code, name, inputs, shape, dtype, quantization, options, None)
        self._ops[-1].intermediates = list(intermediates)
        return result

    def custom(
        self,
        name: str,
        inputs: Sequence[int | None],
        shape: Shape | list[Shape],
        options: bytes = b"",
        *,
        dtype: DType | list[DType] = None,
        version: int = 1,
    ) -> int | tuple[int, ...]:
        """Add a CUSTOM op with its raw option bytes; the rest as in `op`."""
        self._custom_codes.add(name)
        code = self._operator_code(name, version)
        return self._emit(code, "CUSTOM", inputs, shape, dtype, None, {}, options)

    def output(self, *tensors: int) -> None:
        """Declare outputs of the model, in order."""
        self._outputs.extend(tensors)

    def shape(self, tensor: int) -> Shape:
        """Return the shape of a tensor, with -1 for extents that are dynamic."""
        record = self._tensors[tensor]
        return record.shape_signature or record.shape

    def dtype(self, tensor: int) -> DType:
        """Return the element type: a numpy dtype, or a schema name where numpy has none."""
        return self._tensors[tensor].dtype

    def quantization(self, tensor: int) -> Any:
        """Return the quantisation of a tensor, None if it has none."""
        return self._tensors[tensor].quantization

    def is_constant(self, tensor: int) -> bool:
        """Tell whether a tensor has data in the file."""
        return self._tensors[tensor].buffer != _NO_BUFFER

    def subgraph(self) -> ModelMaker:
        """Add a further graph to the file, for WHILE and IF; the first one added has index 1."""
        graph = ModelMaker()
        graph._codes, graph._custom_codes = self._codes, self._custom_codes
        graph._buffers = self._buffers
        self._subgraphs.append(graph)
        return graph

    def signature(self, key: str, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> None:
        """Name the inputs and outputs of this graph for callers of a signature."""
        self._signatures.append(_Signature(key, inputs, outputs))

    def signatures(self) -> dict[str, tuple[Mapping[str, int], Mapping[str, int]]]:
        """Inputs and outputs of this graph's signatures, tensors by name."""
        return {s.key: (s.inputs, s.outputs) for s in self._signatures}

    def build(self) -> bytes:
        """Write the model and return the bytes of the file."""
        return bytes(self._written({}).Output())

    def save(self, path: str | os.PathLike[str], *, outside: bool | None = None) -> int:
        """Write the model to a file and return its size in bytes.

        Parameters
        ----------
        path
            Of the file; one that exists is replaced.
        outside
            Whether `late_constant` data lies behind the FlatBuffer, so that it never lies in
            memory as a whole; None: where the FlatBuffer would exceed 2 GiB otherwise.
        """
        if outside is None:
            outside = sum(buffer.nbytes for buffer in self._buffers) > _LARGEST_TABLE
        late = [i for i, b in enumerate(self._buffers) if isinstance(b, Late) and outside]
        places = dict.fromkeys(late, _OUTSIDE_ALIGNMENT)
        table = _content(self._written(places))
        end = len(table)
        if late:
            for i in late:
                places[i] = -(-end // _OUTSIDE_ALIGNMENT) * _OUTSIDE_ALIGNMENT
                end = places[i] + self._buffers[i].nbytes
            # As long as the one above: numbers other than 0 take the same room.
            table = _content(self._written(places))
        with Path(path).open("wb") as file:
            file.write(table)
            for i, place in places.items():
                file.write(bytes(place - file.tell()))
                for piece in _pieces(self._buffers[i]):
                    file.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)
        return end

    def _written(self, places: Mapping[int, int]) -> flatbuffers.Builder:
        """Write the table; buffers of ``places`` only with their places in the file."""
        payload = sum(b.nbytes + 64 for i, b in enumerate(self._buffers) if i not in places)
        # Room for the constants at once: growing would copy all that is written so far.
        builder = flatbuffers.Builder(payload + 4096)
        written = [_write_buffer(builder, b, places.get(i)) for i, b in enumerate(self._buffers)]
        buffers = _offsets(builder, written)
        graphs = [self._write("main", builder)]
        for index, graph in enumerate(self._subgraphs, 1):
            graphs.append(graph._write(f"subgraph{index}", builder))
        subgraphs = _offsets(builder, graphs)
        codes = _offsets(
            builder,
            [
                _write_code(builder, name, version, custom=name in self._custom_codes)
                for name, version in self._codes
            ],
        )
        named = [
            _write_signature(builder, signature, index)
            for index, graph in enumerate([self, *self._subgraphs])
            for signature in graph._signatures
        ]
        signatures = _offsets(builder, named) if named else 0
        tflite.ModelStart(builder)
        tflite.ModelAddVersion(builder, _SCHEMA_VERSION)
        tflite.ModelAddOperatorCodes(builder, codes)
        tflite.ModelAddSubgraphs(builder, subgraphs)
        tflite.ModelAddBuffers(builder, buffers)
        if signatures:
            tflite.ModelAddSignatureDefs(builder, signatures)
        builder.Finish(tflite.ModelEnd(builder), file_identifier=b"TFL3")
        return builder

    def _write(self, name: str, builder: flatbuffers.Builder) -> int:
        tensors = _offsets(builder, [_write_tensor(builder, t) for t in self._tensors])
        ops = _offsets(builder, [_write_op(builder, op) for op in self._ops])
        inputs, outputs = _ints(builder, self._inputs), _ints(builder, self._outputs)
        name_at = builder.CreateString(name)
        tflite.SubGraphStart(builder)
        tflite.SubGraphAddTensors(builder, tensors)
        tflite.SubGraphAddInputs(builder, inputs)
        tflite.SubGraphAddOutputs(builder, outputs)
        tflite.SubGraphAddOperators(builder, ops)
        tflite.SubGraphAddName(builder, name_at)
        return tflite.SubGraphEnd(builder)

    def _add(self, tensor: _Tensor) -> int:
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def _add_buffer(self, array: np.ndarray) -> int:
        self._buffers.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return len(self._buffers) - 1

    def _operator_code(self, name: str, version: int) -> int:
        return self._codes.setdefault((name, version), len(self._codes))

    def _emit(
        self,
        code: int,
        name: str,
        inputs: Sequence[int | None],
        shape: Shape | list[Shape],
        dtype: DType | list[DType],
        quantization: Any,
        options: dict[str, Any],
        custom_options: bytes | None,
    ) -> int | tuple[int, ...]:
        several = isinstance(shape, list)
        shapes = shape if several else [shape]
        if dtype is None:
            dtype = self._default_dtype(inputs) if shapes else []
        dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shapes)
        scales = quantization if isinstance(quantization, list) else [quantization] * len(shapes)
        if not len(shapes) == len(dtypes) == len(scales):
            raise ValueError(f"{name}: as many shapes as types and quantizations, please")
        outputs = [self.tensor(s, t, quantization=q) for s, t, q in zip(shapes, dtypes, scales)]
        ids = [-1 if i is None else i for i in inputs]
        self._ops.append(_Op(code, ids, outputs, name, options, custom_options))
        return tuple(outputs) if several else outputs[0]

    def _default_dtype(self, inputs: Sequence[int | None]) -> DType:
        present = [i for i in inputs if i is not None]
        if not present:
            raise ValueError("an op without inputs needs a dtype")
        flowing = [i for i in present if not self.is_constant(i)]
        return self._tensors[(flowing or present)[0]].dtype


def _content(builder: flatbuffers.Builder) -> memoryview:
    """Return what a builder has written, without a copy."""
    return memoryview(builder.Bytes)[builder.Head() :]


def _pieces(data: Data) -> Iterable[np.ndarray]:
    return data.pieces() if isinstance(data, Late) else [data]


def _write_buffer(builder: flatbuffers.Builder, data: Data, place: int | None) -> int:
    at = 0
    if data.nbytes and place is None:
        # CreateByteVector copies as fast but cannot align.
        builder.StartVector(1, data.nbytes, _BUFFER_ALIGNMENT)
        head = builder.Head() - data.nbytes
        builder.head = head
        for piece in _pieces(data):
            raw = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
            builder.Bytes[head : head + raw.size] = raw.data
            head += raw.size
        at = builder.EndVector()
    tflite.BufferStart(builder)
    if at:
        tflite.BufferAddData(builder, at)
    if place is not None:
        tflite.BufferAddOffset(builder, place)
        tflite.BufferAddSize(builder, data.nbytes)
    return tflite.BufferEnd(builder)


def _write_signature(builder: flatbuffers.Builder, signature: _Signature, graph: int) -> int:
    def named(items: Mapping[str, int]) -> int:
        written = []
        for name, tensor in items.items():
            text = builder.CreateString(name)
            tflite.TensorMapStart(builder)
            tflite.TensorMapAddName(builder, text)
            tflite.TensorMapAddTensorIndex(builder, tensor)
            written.append(tflite.TensorMapEnd(builder))
        return _offsets(builder, written)

    inputs, outputs = named(signature.inputs), named(signature.outputs)
    key = builder.CreateString(signature.key)
    tflite.SignatureDefStart(builder)
    tflite.SignatureDefAddInputs(builder, inputs)
    tflite.SignatureDefAddOutputs(builder, outputs)
    tflite.SignatureDefAddSignatureKey(builder, key)
    tflite.SignatureDefAddSubgraphIndex(builder, graph)
    return tflite.SignatureDefEnd(builder)


def _write_tensor(builder: flatbuffers.Builder, tensor: _Tensor) -> int:
    name = builder.CreateString(tensor.name)
    shape = _ints(builder, tensor.shape)
    signature = _ints(builder, tensor.shape_signature) if tensor.shape_signature else 0
    quantization = _write_quantization(builder, tensor.quantization) if tensor.quantization else 0
    where = tensor.sparsity.write(builder) if tensor.sparsity else 0
    tflite.TensorStart(builder)
    tflite.TensorAddShape(builder, shape)
    tflite.TensorAddType(builder, schema.tensor_type(tensor.dtype))
    tflite.TensorAddBuffer(builder, tensor.buffer)
    tflite.TensorAddName(builder, name)
    tflite.TensorAddIsVariable(builder, tensor.is_variable)
    tflite.TensorAddHasRank(builder, True)
    if quantization:
        tflite.TensorAddQuantization(builder, quantization)
    if where:
        tflite.TensorAddSparsity(builder, where)
    if signature:
        tflite.TensorAddShapeSignature(builder, signature)
    return tflite.TensorEnd(builder)


_BLOCKWISE = 2  # member of the union of details; the schema of the package has no table for it


def _write_blocks(builder: flatbuffers.Builder, blocks: Blocks) -> int:
    builder.StartObject(3)
    builder.PrependInt32Slot(0, blocks.scales, 0)
    builder.PrependInt32Slot(1, blocks.zero_points, 0)
    builder.PrependInt32Slot(2, blocks.size, 0)
    details = builder.EndObject()
    tflite.QuantizationParametersStart(builder)
    tflite.QuantizationParametersAddDetailsType(builder, _BLOCKWISE)
    tflite.QuantizationParametersAddDetails(builder, details)
    tflite.QuantizationParametersAddQuantizedDimension(builder, blocks.axis)
    return tflite.QuantizationParametersEnd(builder)


def _write_quantization(builder: flatbuffers.Builder, quantization: Quantization | Blocks) -> int:
    if isinstance(quantization, Blocks):
        return _write_blocks(builder, quantization)
    scales = np.atleast_1d(np.asarray(quantization.scales, np.float32))
    zero_points = np.broadcast_to(np.asarray(quantization.zero_points, np.int64), scales.shape)
    scales_at = builder.CreateNumpyVector(scales)
    zero_points_at = builder.CreateNumpyVector(np.ascontiguousarray(zero_points))
    tflite.QuantizationParametersStart(builder)
    tflite.QuantizationParametersAddScale(builder, scales_at)
    tflite.QuantizationParametersAddZeroPoint(builder, zero_points_at)
    tflite.QuantizationParametersAddQuantizedDimension(builder, quantization.axis)
    return tflite.QuantizationParametersEnd(builder)


def _write_op(builder: flatbuffers.Builder, op: _Op) -> int:
    inputs, outputs = _ints(builder, op.inputs), _ints(builder, op.outputs)
    custom = builder.CreateByteVector(op.custom_options) if op.custom_options else 0
    intermediates = _ints(builder, op.intermediates) if op.intermediates else 0
    union, member, options = schema.write_options(builder, op.name, op.options)
    tflite.OperatorStart(builder)
    tflite.OperatorAddOpcodeIndex(builder, op.code)
    tflite.OperatorAddInputs(builder, inputs)
    tflite.OperatorAddOutputs(builder, outputs)
    if intermediates:
        tflite.OperatorAddIntermediates(builder, intermediates)
    if custom:
        tflite.OperatorAddCustomOptions(builder, custom)
    if member and union == 1:
        tflite.OperatorAddBuiltinOptionsType(builder, member)
        tflite.OperatorAddBuiltinOptions(builder, options)
    elif member:
        tflite.OperatorAddBuiltinOptions2Type(builder, member)
        tflite.OperatorAddBuiltinOptions2(builder, options)
    return tflite.OperatorEnd(builder)


def _write_code(builder: flatbuffers.Builder, name: str, version: int, *, custom: bool) -> int:
    code = schema.builtin_code("CUSTOM" if custom else name)
    custom_code = builder.CreateString(name) if custom else 0
    tflite.OperatorCodeStart(builder)
    # Readers older than 127 ops look at the one-byte field, which then says "placeholder".
    placeholder = tflite.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES
    tflite.OperatorCodeAddDeprecatedBuiltinCode(builder, min(code, placeholder))
    tflite.OperatorCodeAddBuiltinCode(builder, code)
    tflite.OperatorCodeAddVersion(builder, version)
    if custom_code:
        tflite.OperatorCodeAddCustomCode(builder, custom_code)
    return tflite.OperatorCodeEnd(builder)


def _ints(builder: flatbuffers.Builder, values: Sequence[int]) -> int:
    return builder.CreateNumpyVector(np.asarray(values, np.int32))


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()

"""Reading .tflite files."""

from __future__ import annotations

from typing import Any

import numpy as np

from clgpu_delegate.errors import ClgpuError, ModelError, QuantizationError
from clgpu_delegate.tflite import schema
from clgpu_delegate.tflite.graph import (
    Affine,
    Array,
    Model,
    Operator,
    Signature,
    Subgraph,
    Tensor,
)

_MARK = b"TFL3"


def parse(content: bytes) -> Model:
    """Read a model.

    Parameters
    ----------
    content
        The bytes of a .tflite file; constants are views of them.

    Raises
    ------
    ModelError
        If it is none, or is damaged.
    QuantizationError
        If it stores its constants outside of the format.
    DependencyError
        If the packages that know the format are not installed.
    """
    if content[4:8] != _MARK:
        raise ModelError("this is not a .tflite model: it lacks the mark TFL3")
    tflite = schema.module("tflite")
    try:
        return _model(tflite.Model.GetRootAs(content, 0))
    except ClgpuError:
        raise
    except Exception as error:  # any error of the generated code
        raise ModelError(
            f"the .tflite model is damaged ({type(error).__name__}: {error})"
        ) from None


def _model(raw: Any) -> Model:
    codes = [_code(raw.OperatorCodes(i)) for i in range(raw.OperatorCodesLength())]
    model = Model(
        subgraphs=[_subgraph(raw.Subgraphs(i), codes) for i in range(raw.SubgraphsLength())],
        buffers=[_buffer(raw.Buffers(i)) for i in range(raw.BuffersLength())],
        description=_text(raw.Description()),
        metadata=[
            (_text(raw.Metadata(i).Name()), raw.Metadata(i).Buffer())
            for i in range(raw.MetadataLength())
        ],
        signatures=[_signature(raw.SignatureDefs(i)) for i in range(raw.SignatureDefsLength())],
    )
    if not model.subgraphs:
        raise ModelError("the .tflite model has no graph")
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            model.buffers[tensor.buffer]  # an IndexError says that the file is damaged
        for op in graph.operators:
            for t in (*op.inputs, *op.outputs):
                graph.tensors[t]
    return model


def _code(raw: Any) -> tuple[str, int, bool]:
    """Name, version, whether it is custom."""
    # Files older than 127 operations only have the one-byte field.
    code = max(raw.BuiltinCode(), raw.DeprecatedBuiltinCode())
    name = schema.enum_names("BuiltinOperator")[code]
    if name == "CUSTOM":
        return _text(raw.CustomCode()), raw.Version(), True
    return name, raw.Version(), False


def _subgraph(raw: Any, codes: list[tuple[str, int, bool]]) -> Subgraph:
    return Subgraph(
        name=_text(raw.Name()),
        tensors=[_tensor(raw.Tensors(i)) for i in range(raw.TensorsLength())],
        inputs=_ints(raw.InputsAsNumpy()),
        outputs=_ints(raw.OutputsAsNumpy()),
        operators=[_operator(raw.Operators(i), i, codes) for i in range(raw.OperatorsLength())],
    )


def _tensor(raw: Any) -> Tensor:
    signature = raw.ShapeSignatureAsNumpy()
    return Tensor(
        name=_text(raw.Name()),
        shape=tuple(_ints(raw.ShapeAsNumpy())),
        dtype=schema.enum_names("TensorType")[raw.Type()].lower(),
        buffer=raw.Buffer(),
        affine=_affine(raw.Quantization()),
        is_variable=bool(raw.IsVariable()),
        signature=tuple(_ints(signature)) if isinstance(signature, np.ndarray) else None,
        has_rank=bool(raw.HasRank()),
        is_sparse=raw.Sparsity() is not None,
    )


def _affine(raw: Any) -> Affine | None:
    if raw is None or raw.ScaleLength() == 0:
        return None
    scales = tuple(float(s) for s in raw.ScaleAsNumpy())
    zero_points = _ints(raw.ZeroPointAsNumpy()) or [0] * len(scales)
    return Affine(scales, tuple(zero_points), raw.QuantizedDimension())


def _operator(raw: Any, node: int, codes: list[tuple[str, int, bool]]) -> Operator:
    if raw.LargeCustomOptionsOffset() > 1:
        raise QuantizationError("the .tflite model stores options after its end (over 2 GiB)")
    name, version, custom = codes[raw.OpcodeIndex()]
    options = raw.CustomOptionsAsNumpy()
    table, values = None, {}
    if raw.BuiltinOptions() is not None and raw.BuiltinOptionsType():
        table = schema.enum_names("BuiltinOptions")[raw.BuiltinOptionsType()]
        values = schema.read_table(table, raw.BuiltinOptions())
    elif raw.BuiltinOptions2() is not None and raw.BuiltinOptions2Type():
        table = schema.enum_names("BuiltinOptions2")[raw.BuiltinOptions2Type()]
        values = schema.read_table(table, raw.BuiltinOptions2())
    return Operator(
        name=name,
        version=version,
        inputs=_ints(raw.InputsAsNumpy()),
        outputs=_ints(raw.OutputsAsNumpy()),
        options_table=table,
        options=values,
        custom=custom,
        custom_options=options.tobytes() if isinstance(options, np.ndarray) else None,
        intermediates=_ints(raw.IntermediatesAsNumpy()),
        mutating_variable_inputs=[bool(v) for v in _ints(raw.MutatingVariableInputsAsNumpy())],
        node=node,
    )


def _buffer(raw: Any) -> Array:
    if raw.Offset() > 1:
        raise QuantizationError("the .tflite model stores constants after its end (over 2 GiB)")
    data = raw.DataAsNumpy()
    return data if isinstance(data, np.ndarray) else np.empty(0, np.uint8)


def _signature(raw: Any) -> Signature:
    def names(count: int, item: Any) -> dict[str, int]:
        return {_text(item(i).Name()): item(i).TensorIndex() for i in range(count)}

    return Signature(
        key=_text(raw.SignatureKey()),
        subgraph=raw.SubgraphIndex(),
        inputs=names(raw.InputsLength(), raw.Inputs),
        outputs=names(raw.OutputsLength(), raw.Outputs),
    )


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def _ints(value: Any) -> list[int]:
    # The generated code returns 0 for an absent vector.
    return [int(v) for v in value] if isinstance(value, np.ndarray) else []

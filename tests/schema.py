"""The TensorFlow Lite schema by name: builtin ops, their option tables and enums.

Everything is read from the modules that flatc generated into the ``tflite`` package, so an op or
an option that the schema gains is usable here without a change.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any

import flatbuffers
import numpy as np
import tflite

# Ops whose option table is not named after them.
_SHARED_TABLES = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MEAN": "ReducerOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MULTINOMIAL": "RandomOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "SUM": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
}

# The generated setters take plain integers; this says which enum the integer stands for.
_OPTION_ENUMS = {
    "combiner": tflite.CombinerType,
    "fused_activation_function": tflite.ActivationFunctionType,
    "kernel_type": tflite.LSTMKernelType,
    "mode": tflite.MirrorPadMode,
    "padding": tflite.Padding,
    "reduce_function": tflite.ReduceWindowFunction,
    "type": tflite.LSHProjectionType,
    "weights_format": tflite.FullyConnectedOptionsWeightsFormat,
}
_TENSOR_TYPE_OPTIONS = frozenset(
    ("idx_out_type", "in_data_type", "key_dtype", "out_data_type", "out_type", "output_type",
     "quantized_bias_type", "value_dtype")
)  # fmt: skip

NEW_TYPES = {"INT2": 19}  # which the schema of the package does not have yet
_FLOATS = frozenset(("boundaries",))
_VECTOR_DTYPES = {1: np.uint8, 4: np.int32, 8: np.int64}  # by bytes per element


def members(enum: type) -> dict[str, int]:
    """Return names and values of a generated enum class."""
    return {name: value for name, value in vars(enum).items() if isinstance(value, int)}


def enum_value(enum: type, value: str | int) -> int:
    """Return the integer of an enum member given by name (``"SAME"``) or as that integer."""
    if isinstance(value, (int, np.integer)):
        return int(value)
    known = members(enum)
    if value not in known:
        raise ValueError(f"{enum.__name__} has no {value!r}; it has {', '.join(known)}")
    return known[value]


def element_type(dtype: Any) -> np.dtype | str:
    """Return a numpy dtype in its one form, or the schema name of a type that numpy lacks."""
    if isinstance(dtype, str) and (dtype in NEW_TYPES or dtype in members(tflite.TensorType)):
        return dtype
    return np.dtype(dtype)


def tensor_type(dtype: Any) -> int:
    """Return the ``TensorType`` of a numpy dtype, or of a schema name such as ``"RESOURCE"``."""
    if dtype in NEW_TYPES:
        return NEW_TYPES[dtype]
    known = element_type(dtype)
    return enum_value(tflite.TensorType, known if isinstance(known, str) else known.name.upper())


def builtin_code(op: str) -> int:
    """Return the ``BuiltinOperator`` code of a schema name, such as ``"CONV_2D"``."""
    return enum_value(tflite.BuiltinOperator, op)


def options_table(op: str) -> str | None:
    """Return the name of the schema table that holds an op's options, if it has one."""
    if op in _SHARED_TABLES:
        return _SHARED_TABLES[op]
    return _tables_by_op_name().get(op.replace("_", "").lower())


def write_options(
    builder: flatbuffers.Builder, op: str, options: dict[str, Any]
) -> tuple[int, int, int]:
    """Write an op's option table.

    Parameters
    ----------
    builder
        Where to write; no table may be open.
    op
        Schema name of the op.
    options
        Field names in snake case, and values. Enums may be given by member name, types as numpy
        dtypes, vectors as sequences. Fields left out keep the schema's default.

    Returns
    -------
    union, member, offset
        Which union of ``Operator`` holds the table (1 ``builtin_options``, 2
        ``builtin_options_2``), its member number, and the table's offset. ``(1, 0, 0)`` when the
        op has no table.

    Raises
    ------
    ValueError
        On a field that the table lacks; the message lists the ones it has.
    """
    table = options_table(op)
    setters = _setters(table) if table else {}
    unknown = sorted(set(options) - set(setters))
    if unknown:
        allowed = ", ".join(sorted(setters)) or "no options"
        raise ValueError(f"{op} has no option {', '.join(unknown)}; it has {allowed}")
    if table is None:
        return 1, 0, 0
    module = _module(table)
    # Strings and vectors are objects of their own, so they come before the table opens.
    values = {k: _encode(builder, module, table, k, v) for k, v in options.items()}
    getattr(module, f"{table}Start")(builder)
    for name, value in values.items():
        setters[name](builder, value)
    offset = getattr(module, f"{table}End")(builder)
    first = members(tflite.BuiltinOptions)
    if table in first:
        return 1, first[table], offset
    return 2, members(tflite.BuiltinOptions2)[table], offset


def _encode(builder: flatbuffers.Builder, module: Any, table: str, name: str, value: Any) -> Any:
    """Return what the generated setter of one field expects for a readable value."""
    start = getattr(module, f"{table}Start{_camel(name)}Vector", None)
    if start is not None:
        dtype = _VECTOR_DTYPES[start(_ElementSize(), 0)] if name not in _FLOATS else np.float32
        return builder.CreateNumpyVector(np.asarray(value, dtype).reshape(-1))
    if name in _TENSOR_TYPE_OPTIONS:
        return tensor_type(value)
    if name in _OPTION_ENUMS:
        return enum_value(_OPTION_ENUMS[name], value)
    return builder.CreateString(value) if isinstance(value, str) else value


class _ElementSize:
    """Stands in for a builder to learn a vector's bytes per element."""

    def StartVector(self, element_size: int, _count: int, _alignment: int) -> int:
        return element_size


@functools.cache
def _tables_by_op_name() -> dict[str, str]:
    tables = [*members(tflite.BuiltinOptions), *members(tflite.BuiltinOptions2)]
    return {t[: -len("Options")].lower(): t for t in tables if t.endswith("Options")}


@functools.cache
def _setters(table: str) -> dict[str, Callable[[flatbuffers.Builder, Any], None]]:
    prefix, module = f"{table}Add", _module(table)
    names = [name for name in vars(module) if name.startswith(prefix)]
    return {_snake(name[len(prefix) :]): getattr(module, name) for name in names}


def _module(table: str) -> Any:
    # The package re-exports the class under the module's name, hence not ``tflite.<table>``.
    return importlib.import_module(f"tflite.{table}")


def _snake(camel: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", camel).lower()


def _camel(snake: str) -> str:
    return "".join(word.capitalize() for word in snake.split("_"))

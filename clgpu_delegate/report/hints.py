"""How a model could be rewritten so that a node on the CPU can run on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

_FIXED = "export the model with fixed shapes, so that it becomes a constant"
_UNROLL = (
    "export the layer unrolled (Keras: unroll=True): FULLY_CONNECTED, SPLIT, LOGISTIC, TANH, MUL "
    "and ADD have kernels"
)
_STATE = "make the state an input and an output of the model instead of a variable"
_SEGMENTS = "write the sums as a BATCH_MATMUL with a constant matrix of zeros and ones"
_LAST = "leave it to the end of the model, where one partition in front of it takes the rest"
_UNITE = (
    "unite branches: compute both and choose with SELECT_V2; write loops of known length out, step "
    "by step"
)
_PLANES = "split the depth: a CONV_2D for each plane of the filter, and ADD"

# What could be written instead of an operation without kernels.
_OPERATIONS = {
    "SHAPE": _FIXED,
    "RANK": _FIXED,
    "RANGE": _FIXED,
    "FILL": _FIXED,
    "ZEROS_LIKE": "write MUL by a constant 0",
    "BROADCAST_ARGS": _FIXED,
    "WHILE": _UNITE,
    "IF": _UNITE,
    "CALL_ONCE": _STATE,
    "VAR_HANDLE": _STATE,
    "READ_VARIABLE": _STATE,
    "ASSIGN_VARIABLE": _STATE,
    "LSTM": _UNROLL,
    "RNN": _UNROLL,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _UNROLL,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _UNROLL,
    "BIDIRECTIONAL_SEQUENCE_RNN": _UNROLL,
    "EMBEDDING_LOOKUP": "write GATHER along axis 0",
    "CONV_3D": _PLANES,
    "CONV_3D_TRANSPOSE": "split the depth: a TRANSPOSE_CONV for each plane of the filter, and ADD",
    "SEGMENT_SUM": _SEGMENTS,
    "UNSORTED_SEGMENT_SUM": _SEGMENTS,
    "DYNAMIC_UPDATE_SLICE": "where the place is constant, write SLICE and CONCATENATION",
    "SCATTER_ND": "where the indices are constant, write PAD and ADD, or a BATCH_MATMUL",
    "REVERSE_SEQUENCE": "where all lengths are equal, write REVERSE_V2",
    "FAKE_QUANT": "it is for training: strip it, or quantise the model with clgpu quantize",
    "MATRIX_DIAG": "write MUL by a constant identity matrix",
    "COMPLEX_ABS": "keep real and imaginary parts in two tensors: SQRT of the sum of two SQUAREs",
    "WHERE": "write SELECT_V2, whose result has a fixed shape",
    "NON_MAX_SUPPRESSION_V4": _LAST,
    "NON_MAX_SUPPRESSION_V5": _LAST,
    "UNIQUE": _LAST,
}
_CUSTOMS = {"TFLite_Detection_PostProcess": _LAST}

# By the option that leaves a node on the CPU.
_OPTIONS = {
    "exclude": "take it out of the option exclude",
    "min_nodes": "lower the option min_nodes",
    "ops": "set the option ops to all",
}

# By the type that no kernel has.
_PARTS = "keep real and imaginary parts in two tensors of float32"
_TYPES = {
    "string": "keep text out of the model: pass it the numbers that stand for words",
    "complex64": _PARTS,
    "complex128": _PARTS,
}
_OTHER_TYPES = (
    "put a CAST to float32 or int32 where the tensor is made; the CPU casts from all other types"
)

# By what has another number of axes, and the number that is supported. Of weights, which are not
# reshaped at run time, nothing general is known.
_MERGE = "RESHAPE neighbouring axes into one in front of it, and back behind it"
_IMAGE = "RESHAPE the input to [batch, height, width, channels] in front of it"

_SPEED = "set the option placement to all, if the device is free"


def _builtin(op: str, _refusal: Mapping[str, Any]) -> str:
    if op.startswith("STABLEHLO_"):
        return "convert to operations of TensorFlow Lite instead of StableHLO"
    return _OPERATIONS.get(op, "")


def _custom(op: str, _refusal: Mapping[str, Any]) -> str:
    if op.startswith("Flex"):
        return (
            f"convert without SELECT_TF_OPS: write {op[4:]} in operations of TensorFlow Lite "
            "before the conversion"
        )
    return _CUSTOMS.get(op, "write it in builtin operations")


def _type(op: str, refusal: Mapping[str, Any]) -> str:
    what, has, supported = refusal["what"], refusal["has"], refusal["supported"]
    if not supported:
        return _TYPES.get(has, _OTHER_TYPES)
    if op == "ADD_N" and has in ("int8", "uint8", "int16"):
        return "write a chain of ADDs"
    to = "float32" if "float32" in supported else supported[0]
    if has == "float16" and to == "float32":
        return f"convert {what} to float32 with a DEQUANTIZE"
    if has in ("int32", "int64", "bool", "float32") and to in ("float32", "int32", "int64"):
        return f"convert {what} to {to} with a CAST, or give it that type in the source"
    return f"give {what} the type {' or '.join(supported)}"


def _integers(op: str, _refusal: Mapping[str, Any]) -> str:
    return (
        f"put DEQUANTIZE in front of {op} and QUANTIZE behind it, or leave it out when the model "
        "is quantised"
    )


def _rank(_op: str, refusal: Mapping[str, Any]) -> str:
    if refusal["supported"] == ["0 to 6"]:
        return _MERGE
    return _IMAGE if (refusal["what"], refusal["supported"]) == ("input", ["4"]) else ""


def _option(_op: str, refusal: Mapping[str, Any]) -> str:
    return _OPTIONS.get(refusal["what"], "")


# By the code of a refusal, as `Why` of base/refusal.hpp has them; of others no way is known.
_RULES: dict[str, str | Callable[[str, Mapping[str, Any]], str]] = {
    "no_kernels": _builtin,
    "unknown_custom": _custom,
    "type": _type,
    "integers": _integers,
    "rank": _rank,
    "quantization": "quantise the model again, with clgpu quantize for instance",
    "rescaling": (
        "give input and output the same scale and zero point, or put a QUANTIZE behind it"
    ),
    "run_time": _FIXED,
    "unknown_shape": "export the model with fixed shapes",
    "variable": _STATE,
    "sparse": "export the weights dense: sparse ones are not faster here",
    "layout": "convert without shuffled weights (the default format)",
    "activation": "export the activation as an operation of its own",
    "option": _option,
    "cost": _SPEED,
    "measured": _SPEED,
    "reader": "see the node that reads it",
}


def hint(node: Mapping[str, Any]) -> str:
    """Tell how to get a node of `Explanation.to_dict` onto the device; empty: no way is known.

    Parameters
    ----------
    node
        ``op`` and ``refusal`` are read.
    """
    refusal = node.get("refusal")
    if refusal is None:
        return ""
    rule = _RULES.get(refusal["code"], "")
    return rule if isinstance(rule, str) else rule(node["op"], refusal)

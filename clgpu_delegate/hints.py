"""How a model could be rewritten so that a node on the CPU can run on the device."""

from __future__ import annotations

import re
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
    "CALL": "export the model with the called subgraph inlined",
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
    "TFLite_Detection_PostProcess": _LAST,
    "UNIQUE": _LAST,
}

_Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


def _builtin(found: re.Match[str]) -> str:
    if found[1].startswith("STABLEHLO_"):
        return "convert to operations of TensorFlow Lite instead of StableHLO"
    return _OPERATIONS.get(found[1], "")


def _custom(found: re.Match[str]) -> str:
    name = found[1]
    if name.startswith("Flex"):
        return (
            f"convert without SELECT_TF_OPS: write {name[4:]} in operations of TensorFlow Lite "
            "before the conversion"
        )
    return _OPERATIONS.get(name, "write it in builtin operations")


def _allowed(found: re.Match[str]) -> str:
    what, has, allowed = found[1], found[2], found[3].split(", ")
    to = "float32" if "float32" in allowed else allowed[0]
    if has == "float16" and to == "float32":
        return f"put a DEQUANTIZE in front of {what}"
    if has in ("int32", "int64", "bool", "float32") and to in ("float32", "int32", "int64"):
        return f"put a CAST to {to} in front of {what}, or give it that type in the source"
    return f"give {what} the type {' or '.join(allowed)}"


def _no_integers(found: re.Match[str]) -> str:
    return (
        f"put DEQUANTIZE in front of {found[1]} and QUANTIZE behind it, or leave it out when the "
        "model is quantised"
    )


def _text(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _found: text


# Of the reason for which a node stays on the CPU; the first that matches.
_RULES: tuple[_Rule, ...] = tuple(
    (re.compile(pattern), rule if callable(rule) else _text(rule))
    for pattern, rule in (
        (r"^custom operation (\S+) is unknown", _custom),
        (r"^operation (\S+) has no kernels", _builtin),
        (
            r"is string, which has no kernels",
            "keep text out of the model: pass it the numbers that stand for words",
        ),
        (
            r"is (complex64|complex128), which has no kernels",
            "keep real and imaginary parts in two tensors of float32",
        ),
        (
            r"is (\S+), which has no kernels",
            "put a CAST to float32 or int32 where the tensor is made; CASTs from other types stay "
            "on the CPU",
        ),
        (r"is quantised \(.*\): (\S+) has no integer kernels", _no_integers),
        (r"^(.*) is (\S+); allowed: (.*)$", _allowed),
        (r"computed at run time", _FIXED),
        (r"comes from the CPU without a known shape", "export the model with fixed shapes"),
        (
            r"has rank \d+; supported: 0 to 6",
            "RESHAPE neighbouring axes into one in front of it, and back behind it",
        ),
        (
            r"not of rank 4|does not have 4 axes",
            "RESHAPE the input to [batch, height, width, channels] in front of it",
        ),
        (r"is a variable", _STATE),
        (r"is sparse", "export the weights dense: sparse ones are not faster here"),
        (r"the weights are shuffled", "convert without shuffled weights (the default format)"),
        (
            r"a fused activation is not supported here",
            "export the activation as an operation of its own",
        ),
        (r"integers of 8 or 16 bits are not summed by ADD_N", "write a chain of ADDs"),
        (
            r"differ in scale or zero point",
            "give input and output the same scale and zero point, or put a QUANTIZE behind it",
        ),
        (
            r"the (weights|output|input)s? ha(s|ve) .*(scale|zero point)"
            r"|has (a scale of|the zero point|\d+ scales)",
            "quantise the model again, with clgpu quantize for instance",
        ),
        (r"fewer than the option 'min_nodes'", "lower the option min_nodes"),
        (r"option 'exclude'", "take it out of the option exclude"),
        (r"the CPU is expected to take", "set the option placement to all, if the device is free"),
        (r"option ops=core", "set the option ops to all"),
        (r"computes a constant that a node on the CPU reads", "see the node that reads it"),
    )
)


def hint(node: Mapping[str, Any]) -> str:
    """Tell how to get a node of `Explanation.to_dict` onto the device; empty: no way is known.

    Parameters
    ----------
    node
        ``claimed`` and ``reason`` are read.
    """
    if node["claimed"]:
        return ""
    for pattern, rule in _RULES:
        if found := pattern.search(node["reason"]):
            return rule(found)
    return ""

"""How a model could be rewritten so that a node on the CPU can run on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable

_FIXED = "export the model with fixed shapes, so that it becomes a constant"
_MOVING = "write a SLICE with a constant size; only its begin may be computed at run time"
_STATE = "make the state an input and an output of the model instead of a variable"

# What could be written instead of an operation without kernels.
_OPERATIONS = {
    "FAKE_QUANT": "it is for training: remove it, or quantise the model with clgpu quantize",
}

# By the option that leaves a node on the CPU.
_OPTIONS = {
    "exclude": "take it out of the option exclude",
    "min_nodes": "lower the option min_nodes",
    "ops": "set the option ops to all",
}

# By the type that no kernel has.
_TYPES = {
    "string": "keep text out of the model: pass the indices of words as integers",
    "complex128": "compute with complex64, or keep the parts in two tensors of float32",
}
_OTHER_TYPES = (
    "add a CAST to float32 or int32 after the node that computes the tensor; the CPU runs it"
)

# By the tensor with another number of axes, and the supported number. There is no general advice
# for weights, because they are not reshaped at run time.
_MERGE = "RESHAPE neighbouring axes into one before the node, and back after it"
_IMAGE = "RESHAPE the input to [batch, height, width, channels] before the node"

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
    return "replace it by builtin operations"


def _type(op: str, refusal: Mapping[str, Any]) -> str:
    what, has, supported = refusal["what"], refusal["has"], refusal["supported"]
    if not supported:
        return _TYPES.get(has, _OTHER_TYPES)
    if op == "ADD_N" and has in ("int8", "uint8", "int16"):
        return "write a chain of ADDs"
    to = "float32" if "float32" in supported else supported[0]
    if has == "float16" and to == "float32":
        return f"convert {what} to float32 with a DEQUANTIZE"
    castable = ("int32", "int64", "bool", "float32", "bfloat16", "uint16", "uint32")
    if has in castable and to in ("float32", "int32", "int64"):
        return f"convert {what} to {to} with a CAST, or use that type in the source model"
    return f"give {what} the type {' or '.join(supported)}"


def _integers(op: str, _refusal: Mapping[str, Any]) -> str:
    return (
        f"add DEQUANTIZE before {op} and QUANTIZE after it, or keep {op} in float when you "
        "quantise the model"
    )


def _rank(_op: str, refusal: Mapping[str, Any]) -> str:
    if refusal["supported"] == ["0 to 6"]:
        return _MERGE
    return _IMAGE if (refusal["what"], refusal["supported"]) == ("input", ["4"]) else ""


def _run_time(op: str, refusal: Mapping[str, Any]) -> str:
    return _MOVING if op in ("SLICE", "STRIDED_SLICE") and refusal["what"] != "size" else _FIXED


def _option(_op: str, refusal: Mapping[str, Any]) -> str:
    return _OPTIONS.get(refusal["what"], "")


# By the code of a refusal (`Why` in base/refusal.hpp); there is no advice for the other codes.
_RULES: dict[str, str | Callable[[str, Mapping[str, Any]], str]] = {
    "no_kernels": _builtin,
    "unknown_custom": _custom,
    "type": _type,
    "integers": _integers,
    "rank": _rank,
    "quantization": "quantise the model again, with clgpu quantize for instance",
    "rescaling": (
        "give input and output the same scale and zero point, or add a QUANTIZE after the node"
    ),
    "run_time": _run_time,
    "unknown_shape": "export the model with fixed shapes",
    "variable": _STATE,
    "sparse": "export dense weights: the delegate does not compute sparse ones faster",
    "layout": "convert without shuffled weights (the default format)",
    "activation": "export the activation as a separate operation",
    "option": _option,
    "cost": _SPEED,
    "measured": _SPEED,
    "reader": "see the node that reads its output",
}


def hint(node: Mapping[str, Any]) -> str:
    """Advise how to get a node of `Explanation.to_dict` onto the device; empty: no way is known.

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

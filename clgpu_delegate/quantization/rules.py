"""How each operation is quantised to integers, following TensorFlow Lite's specification.

A rule speaks of positions among an operation's inputs. What is not listed stays in float.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

INT8, INT16 = "int8", "int16"
_BOTH = (INT8, INT16)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How one operation is quantised."""

    versions: Mapping[str, int]
    """The operation's version by type of activations; a type that is missing has no kernel."""

    data: tuple[int, ...] | None = None
    """Inputs that are activations, or constants in their place; None: all that are float."""

    weights: int | None = None
    """Input with constant symmetric int8 weights."""

    axis: int | None = 0
    """Axis along which the weights may have a scale per index; None: they have one scale."""

    bias: int | None = None
    """Input with a constant bias, of the scale of the products."""

    fixed: Mapping[str, tuple[float, int]] = dataclasses.field(default_factory=dict)
    """Scale and zero point of the output that the kernels demand, by type."""

    same: bool = False
    """Whether the kernels demand one scale and zero point of data and outputs."""

    follows: bool = False
    """Whether the operation is only worth quantising beside another one that is: it moves or
    compares elements."""


def _rule(types: tuple[str, ...] = _BOTH, *, int8: int = 2, int16: int = 3, **rest: object) -> Rule:
    versions = {INT8: int8, INT16: int16}
    return Rule({t: versions[t] for t in types}, **rest)  # type: ignore[arg-type]


def _moves(
    types: tuple[str, ...] = _BOTH,
    *,
    int8: int = 2,
    int16: int = 3,
    data: tuple[int, ...] | None = (0,),
) -> Rule:
    return _rule(types, int8=int8, int16=int16, data=data, same=True, follows=True)


_UNIT = {INT8: (1 / 256, -128), INT16: (1 / 32768, 0)}  # outputs in 0..1
_SIGNED_UNIT = {INT8: (1 / 128, 0), INT16: (1 / 32768, 0)}  # outputs in -1..1
_INT8 = (INT8,)

# Left out, though some kernels exist: SUM (the reference kernel does not rescale), REDUCE_PROD and
# NEG (wrong or useless results), SQRT, LOG (in one of the runtimes only), comparisons (rounding
# decides them, and the kernels abort on scales from 1 on).
RULES: dict[str, Rule] = {
    # products
    "CONV_2D": _rule(int8=3, int16=4, data=(0,), weights=1, bias=2),
    "DEPTHWISE_CONV_2D": _rule(int8=3, int16=5, data=(0,), weights=1, axis=3, bias=2),
    "TRANSPOSE_CONV": _rule(int8=2, int16=3, data=(2,), weights=1, bias=3),
    # tflite_runtime 2.14 takes scales per channel and reads the first only.
    "FULLY_CONNECTED": _rule(int8=4, int16=7, data=(0,), weights=1, axis=None, bias=2),
    "BATCH_MATMUL": _rule(data=(0, 1)),
    # arithmetic
    "ADD": _rule(int16=4),
    "SUB": _rule(int16=5),
    "MUL": _rule(int16=4),
    "SQUARED_DIFFERENCE": _rule(_INT8),
    "MAXIMUM": _moves(int16=4, data=(0, 1)),
    "MINIMUM": _moves(int16=4, data=(0, 1)),
    "PRELU": _rule(_INT8, int8=1),
    # pools and reductions
    "AVERAGE_POOL_2D": _rule(same=True),
    "MAX_POOL_2D": _rule(same=True),
    "MEAN": _rule(data=(0,)),
    "REDUCE_MAX": _moves(),
    "REDUCE_MIN": _moves(),
    "ARG_MAX": _rule(_INT8, data=(0,), follows=True),
    "ARG_MIN": _rule(_INT8, data=(0,), follows=True),
    # functions of one element
    "RELU": _rule(),
    "RELU6": _rule(),
    "RELU_N1_TO_1": _rule(_INT8, int8=1),
    "RELU_0_TO_1": _rule(_INT8, int8=1),
    "LEAKY_RELU": _rule(int16=2),
    "ELU": _rule(_INT8, int8=1),
    "GELU": _rule(_INT8),
    "HARD_SWISH": _rule(_INT8, int8=1),
    "LOGISTIC": _rule(fixed=_UNIT),
    "TANH": _rule(fixed=_SIGNED_UNIT),
    "ABS": _rule(),
    "EXP": _rule(int16=2),
    "RSQRT": _rule(_INT8),
    # functions of rows
    "SOFTMAX": _rule(fixed=_UNIT),
    "LOG_SOFTMAX": _rule(_INT8, fixed={INT8: (16 / 256, 127)}),
    "L2_NORMALIZATION": _rule(_INT8, fixed={INT8: (1 / 128, 0)}),
    # movements
    "CONCATENATION": _moves(data=None),
    "PACK": _moves(data=None),
    "SPLIT": _moves(int16=4, data=(1,)),
    "SPLIT_V": _moves(int16=2),
    "UNPACK": _moves(int16=4),
    "PAD": _moves(int16=4),
    "PADV2": _moves(int16=4, data=(0, 2)),
    "MIRROR_PAD": _moves(),
    "RESHAPE": _moves(int8=1, int16=1),
    "SQUEEZE": _moves(int8=1, int16=1),
    "EXPAND_DIMS": _moves(int8=1, int16=1),
    "TRANSPOSE": _moves(int16=4),
    "SLICE": _moves(int16=4),
    "STRIDED_SLICE": _moves(int16=4),
    "GATHER": _moves(int16=4),
    "GATHER_ND": _moves(),
    "TILE": _moves(_INT8),
    "REVERSE_V2": _moves(int16=2),
    "BROADCAST_TO": _moves(int8=3),
    "DEPTH_TO_SPACE": _moves(_INT8, int8=1),
    "SPACE_TO_DEPTH": _moves(_INT8),
    "SPACE_TO_BATCH_ND": _moves(),
    "BATCH_TO_SPACE_ND": _moves(),
    "RESIZE_BILINEAR": _moves(),
    "RESIZE_NEAREST_NEIGHBOR": _moves(),
    "SELECT": _moves(int16=2, data=(1, 2)),
    "SELECT_V2": _moves(int8=1, int16=1, data=(1, 2)),
    "TOPK_V2": _moves(_INT8),
    "SHAPE": _rule(int8=1, int16=1, data=(0,), follows=True),
}

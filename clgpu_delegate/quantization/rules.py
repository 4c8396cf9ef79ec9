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

RULES: dict[str, Rule] = {
    # products
    "CONV_2D": _rule(int8=3, int16=4, data=(0,), weights=1, bias=2),
    "DEPTHWISE_CONV_2D": _rule(int8=3, int16=5, data=(0,), weights=1, axis=3, bias=2),
    "TRANSPOSE_CONV": _rule(int8=2, int16=4, data=(2,), weights=1, bias=3),
    "FULLY_CONNECTED": _rule(int8=4, int16=7, data=(0,), weights=1, axis=None, bias=2),
    # arithmetic
    "ADD": _rule(int16=4),
    "SUB": _rule(int8=2, int16=5),
    "MUL": _rule(int16=4),
    # pools and reductions
    "AVERAGE_POOL_2D": _rule(same=True),
    "MAX_POOL_2D": _rule(same=True),
    "MEAN": _rule(data=(0,)),
    # activations
    "RELU": _rule(),
    "RELU6": _rule(),
    "SOFTMAX": _rule(fixed=_UNIT),
    "LOGISTIC": _rule(fixed=_UNIT),
    "TANH": _rule(fixed=_SIGNED_UNIT),
    # movements
    "CONCATENATION": _moves(data=None),
    "PAD": _moves(int16=4),
    "PADV2": _moves(int16=4, data=(0, 2)),
    "RESHAPE": _moves(int8=1, int16=1),
    "SQUEEZE": _moves(int8=1, int16=1),
    "EXPAND_DIMS": _moves(int8=1, int16=1),
    "TRANSPOSE": _moves(int16=4),
}

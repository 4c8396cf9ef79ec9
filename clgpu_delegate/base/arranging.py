"""What a caller gives for the inputs or outputs of a model, in their order."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Union

from clgpu_delegate.errors import InputError

Shape = Sequence[int]
Shapes = Union[Shape, Sequence[Shape], Mapping[str, Shape]]


def arrange(given: Any, names: Sequence[str], kind: str, what: str = "array") -> list[Any]:
    """The value for each name of a kind: from a dict by name, a list in order, or a single one.

    Raises
    ------
    InputError
        If there are too few or too many.
    """
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        missing = [name for name in names if name not in given]
        if unknown or missing:
            fault = f"no {kind} {unknown[0]!r}" if unknown else f"nothing for {missing[0]!r}"
            raise InputError(f"{fault}; {kind}s are: {_list(names)}")
        return [given[name] for name in names]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise InputError(f"{len(given)} {what}s; {kind}s are {len(names)}: {_list(names)}")
        return list(given)
    if len(names) != 1:
        raise InputError(f"one {what}; {kind}s are {len(names)}: {_list(names)}")
    return [given]


def arrange_shapes(given: Shapes, names: Sequence[str]) -> list[tuple[int, ...]]:
    """The shape for each input; an InputError if one is not a shape."""
    one = isinstance(given, Sequence) and all(isinstance(n, numbers.Integral) for n in given)
    shapes = []
    for name, shape in zip(names, arrange([given] if one else given, names, "input", "shape")):
        try:
            extents = tuple(map(operator.index, shape))
        except TypeError:
            extents = (-1,)
        if min(extents, default=0) < 0:
            raise InputError(f"{shape!r} is not a shape for input {name!r}")
        shapes.append(extents)
    return shapes


def plain(shapes: Any) -> Any:
    """Shapes as JSON has them: dicts, lists and whole numbers; what is no shape stays as it is."""
    if isinstance(shapes, Mapping):
        return {name: plain(shape) for name, shape in shapes.items()}
    if isinstance(shapes, numbers.Integral):
        return int(shapes)
    if isinstance(shapes, (str, bytes)) or not hasattr(shapes, "__iter__"):
        return shapes
    return [plain(item) for item in shapes]


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))

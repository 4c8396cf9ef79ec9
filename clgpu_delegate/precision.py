"""Plans of precisions: what a model stores and computes in less than float."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from clgpu_delegate.base.files import write_atomically
from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text, size
from clgpu_delegate.errors import FileError

RELATIVE_L2 = "relative L2"
TOP_1 = "top-1"
_FORMAT = 1
_LARGEST = 2.0**63  # of numbers in a file
_LEAST_SCALE = 2.0**-126  # the least float32 with all its bits


@dataclasses.dataclass(frozen=True)
class PrecisionPoint:
    """One precision of a model, measured as a whole.

    Examples
    --------
    >>> clgpu_delegate.PrecisionPoint("fp16", error=2e-3, seconds=1e-3).name
    'fp16'
    """

    name: str
    """``"fp32"``, ``"fp16"``, ``"tf32"`` where it differs from fp32; ``"mixed"``, the plan; or
    ``"candidate 1"``, ``"candidate 2"``, ... of the other plans that were measured."""

    error: float
    """On the samples that were held back: the largest of them; of the metric ``"top-1"``, the
    share."""

    seconds: float
    """Device time of an inference."""

    bytes: int = 0
    """Peak of device memory, loading included."""

    half: int = 0
    """Tensors that the plan or candidate lists as half; this and the following are 0 for a
    precision of the whole, and in files of earlier versions."""

    bfloat: int = 0
    """Tensors that it lists as bfloat16."""

    int8: int = 0
    """Weights that it lists as int8."""

    tf32: int = 0
    """Nodes whose factors it rounds to TF32."""

    bf16_pairs: int = 0
    """Nodes whose factors it makes sums of two bfloat16 numbers."""

    half_sums: int = 0
    """Nodes whose products it adds in half."""

    integers: int = 0
    """Nodes that it computes with int8."""


@dataclasses.dataclass(frozen=True)
class Int8Scale:
    """What the int8 numbers of a tensor stand for: ``scale * (stored - zero_point)``.

    Examples
    --------
    >>> clgpu_delegate.Int8Scale(tensor=4, scale=0.5, zero_point=-128).scale
    0.5
    """

    tensor: int
    """As the model counts it."""

    scale: float
    """Above 0, as a float32."""

    zero_point: int
    """From -128 to 127."""


@dataclasses.dataclass(frozen=True)
class ChannelMeans:
    """What a tensor is on average, channel by channel.

    Weights that a plan rounds lose the same in each inference; the mean of what is lost at the
    result is added to the bias ("bias correction": Nagel et al., Data-Free Quantization Through
    Weight Equalization and Bias Correction, 2019).

    Examples
    --------
    >>> clgpu_delegate.ChannelMeans(tensor=4, bits="3f80bf00").values
    (1.0, -0.5)
    """

    tensor: int
    """As the model counts it."""

    bits: str
    """Of each channel, the last axis: four hexadecimal digits, a bfloat16."""

    @classmethod
    def of(cls, tensor: int, values: npt.ArrayLike) -> ChannelMeans:
        """Of one number for each channel."""
        numbers = np.asarray(values, np.float32)
        # Rounded to the nearest; what is lost is far below what the means are needed for.
        high = (numbers.view(np.uint32) + np.uint32(0x8000)) >> 16
        return cls(tensor, high.astype(">u2").tobytes().hex())

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers."""
        high = np.frombuffer(bytes.fromhex(self.bits), ">u2").astype(np.uint32)
        return tuple(float(value) for value in (high << 16).view(np.float32))


@dataclasses.dataclass(frozen=True)
class PrecisionChange:
    """Tensors or nodes that may have a lower precision, and why the plan has them or not.

    Examples
    --------
    >>> samples = np.random.default_rng(0).random((4, *x.shape), np.float32)
    >>> plan = clgpu_delegate.tune("model.tflite", samples, max_error=1e-3, budget="1s")
    >>> [change.op for change in plan.changes if change.reason == "error" and change.taken]
    []
    """

    op: str
    """Operation of the first node."""

    kind: str
    """``"results"`` or ``"weights"``, stored as half; ``"int8"``: weights stored as int8;
    ``"bfloat"``: results or weights stored as bfloat16; ``"factors"`` of products with TF32;
    ``"pairs"``: factors that are sums of two bfloat16 numbers; ``"integers"``: nodes that compute
    with int8; ``"sums"`` of products in half; or ``"several"`` of these, of neighbouring nodes."""

    tensors: tuple[int, ...]
    nodes: tuple[int, ...]
    """As the model counts them."""

    error: float
    """At the outputs, where all else is float; infinite where a number is beyond half's range, and
    where it is not `measured`."""

    seconds: float
    """What it is expected to save of an inference; below 0 where the lower precision is slower."""

    bytes: int
    """What its tensors take less."""

    taken: int
    """How many of its tensors or nodes the plan has."""

    measured: bool = True
    """Whether its error was measured alone. It was not where it was left before (``"slower"``,
    ``"no_memory"``, ``"budget"``) or taken together with others, as sums in half are."""

    reason: str = ""
    """Why the plan has it, or has it in part or not at all: `REASONS` lists the codes. Empty in
    files of earlier versions."""


REASONS: Mapping[str, str] = {
    "holds": "the whole holds the bound with it",
    "error": "its error alone exceeds the bound",
    "int8": "its weights are int8 instead",
    "slower": "it is expected to save no time",
    "no_memory": "it saves no memory",
    "bound": "what saves more for its error leaves too little of the bound",
    "held_back": "given up, as the samples held back came too near to the bound",
    "whole": "the model as a whole is better without it",
    "budget": "the budget ended the search before it was tried",
    "interrupted": "the search was interrupted before it was tried",
}
"""Codes of `PrecisionChange.reason`, in words."""


@dataclasses.dataclass(frozen=True)
class PrecisionPlan(Shown):
    """Which tensors and sums of a model are computed in less than float; made by `tune`.

    ``load(precision=plan)`` takes it, or its file: a Path, or a str that ends in .json. A plan
    holds on the device on which it was measured; on others it is a starting point.

    Examples
    --------
    >>> samples = np.random.default_rng(0).random((4, *x.shape), np.float32)
    >>> plan = clgpu_delegate.tune("model.tflite", samples, max_error=1e-3, budget="1s")
    >>> plan.error <= plan.max_error
    True
    >>> plan.save("plan.json")
    >>> clgpu_delegate.PrecisionPlan.load("plan.json") == plan
    True
    """

    model: str
    """Digest of the model's operations, their attributes and constants: no other model takes the
    plan."""

    half: tuple[int, ...]
    """Tensors that are stored as half, as the model counts them."""

    int8: tuple[int, ...]
    """Weights that are stored as int8 with a scale for each output channel, as the model counts
    them; also where they are among `half`."""

    tf32: tuple[int, ...]
    """Nodes with factors that may be rounded to TF32, as the model counts them."""

    device: str
    """On which it was measured."""

    max_error: float
    """The bound that was asked for."""

    metric: str
    """What was bounded: ``"relative L2"``, ``"top-1"``, or the name of the function that was
    given."""

    error: float
    """On the samples that were held back: the largest of them; of ``"top-1"``, the share."""

    samples: int
    """Number of samples that the search used."""

    held_back: int
    """Number of samples that only measured the result."""

    points: tuple[PrecisionPoint, ...]
    """The plan, ``"mixed"``, the precisions of a whole model beside it, and the candidates that
    were measured in turns with them. None of a tuning that was interrupted before their times were
    known."""

    changes: tuple[PrecisionChange, ...]
    """What may have a lower precision, and why it has it or not. Where fp16 holds the bound, only
    weights as int8 were measured alone."""

    complete: bool
    """Whether the search came to its end: neither its budget nor Ctrl-C ended it."""

    half_sums: tuple[int, ...] = ()
    """Nodes whose products are added in half, block by block, as the model counts them; files of
    earlier versions have none."""

    bfloat: tuple[int, ...] = ()
    """Tensors that are stored as bfloat16, which has the range of float and 8 bits of mantissa;
    files of earlier versions have none."""

    integers: tuple[int, ...] = ()
    """Nodes that compute with int8, as the model counts them; files of earlier versions have
    none."""

    scales: tuple[Int8Scale, ...] = ()
    """Of the tensors that these nodes read and write."""

    means: tuple[ChannelMeans, ...] = ()
    """Of the tensors that products with rounded weights read, where correcting biases lowers the
    error; files of earlier versions have none."""

    bf16_pairs: tuple[int, ...] = ()
    """Nodes whose factors are sums of two bfloat16 numbers each, as the model counts them: tensor
    cores multiply them almost as exactly as floats; files of earlier versions have none."""

    interrupted: bool = False
    """Whether Ctrl-C ended the search or the last measurements."""

    stored: str = ""
    """What the cache did with the plan when it was made: ``"off"``: there is none; ``"new"``: it
    had no plan of this model and device; ``"replaced"``: it had one for the same bound and metric,
    which was measured beside this one and is not better; ``"other_bound"`` or ``"other_metric"``:
    the earlier one was for another; ``"left"``: it keeps the earlier one, because the tuning was
    interrupted before that one was measured. Empty in files of earlier versions."""

    earlier_metric: str = ""
    """Of the plan that the cache had; empty where it had none, or knew no more than its text."""

    earlier_max_error: float = 0.0
    """The bound of that plan; 0 where it had none, or knew no more than its text."""

    def front(self) -> tuple[PrecisionPoint, ...]:
        """The points that no other point beats in time and error: the Pareto front, fastest first.

        A point beats another one where it is better in one of the two and not worse in the other.
        Points that are equal in both do not beat each other. One with an infinite error is never in
        the front.
        """
        known = [point for point in self.points if math.isfinite(point.error)]
        best = [point for point in known if not any(_beats(other, point) for other in known)]
        return tuple(sorted(best, key=lambda point: (point.seconds, point.error)))

    @property
    def text(self) -> str:
        """The value of the option `precision`, for hosts in other languages than Python."""
        bound = self.max_error if self.metric == RELATIVE_L2 else None
        return plan_text(
            self.model,
            bound,
            self.half,
            self.int8,
            self.tf32,
            self.half_sums,
            self.bfloat,
            self.integers,
            self.scales,
            self.means,
            self.bf16_pairs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, which has no infinite numbers: None stands for them."""
        data = {"format": _FORMAT, **dataclasses.asdict(self)}
        for entry in (*data["points"], *data["changes"]):
            entry["error"] = entry["error"] if math.isfinite(entry["error"]) else None
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrecisionPlan:
        """Make a plan of what `to_dict` gives; a ValueError that names the field if it is not."""
        if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
            raise ValueError("it is not a plan of precisions")
        given: dict[str, Any] = {"scales": (), "means": (), **data}  # earlier versions had none
        del given["format"]
        plan = cls(
            **_checked(cls, given, ""),
            points=_entries(PrecisionPoint, "points", given["points"]),
            changes=_entries(PrecisionChange, "changes", given["changes"]),
            scales=_entries(Int8Scale, "scales", given["scales"]),
            means=_entries(ChannelMeans, "means", given["means"]),
        )
        if not plan.max_error > 0:
            raise ValueError(f"max_error is {plan.max_error}; allowed: a number above 0")
        return plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON; a FileError if that fails."""
        write_atomically(path, json.dumps(self.to_dict(), indent=2).encode() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrecisionPlan:
        """Read a file that `save` has written; a FileError if it is none."""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise FileError(f"cannot read the plan {os.fspath(path)}: {error.strerror}") from None
        try:
            return cls.from_dict(json.loads(content))
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            problem = "it is not a plan of precisions"
        except ValueError as error:
            problem = str(error)
        raise FileError(f"cannot read the plan {os.fspath(path)}: {problem}")

    def __rich__(self) -> Group:
        table = Table()
        table.add_column("precision")
        for heading in ("ms", "error", "memory"):
            table.add_column(heading, right=True)
        for point in self.points:
            cells = (
                point.name,
                f"{point.seconds * 1e3:.3f}",
                f"{point.error:.2g}",
                size(point.bytes),
            )
            table.add_row(*map(Text, cells), style="bold" if point.name == "mixed" else "")
        rest = "" if self.complete else "; the budget ended the search"
        if self.interrupted:
            rest = "; interrupted: the best that was known to hold the bound until then"
        line = (
            f"{self.device}: {len(set(self.half) - set(self.int8))} tensors as half, "
            f"{len(self.bfloat)} as bfloat16, "
            f"{len(self.int8)} as int8, {len(self.tf32)} nodes with tf32, "
            f"{len(self.bf16_pairs)} with bfloat16 pairs, "
            f"{len(self.half_sums)} with half sums, {len(self.integers)} with integers; "
            f"{self.metric} error {self.error:.2g} on {self.held_back} samples that the search did "
            f"not see, allowed {self.max_error:.2g}{rest}"
        )
        body = [table] if self.points else []
        return Group(*body, Text(line), *map(Text, self._stored()))

    def _stored(self) -> list[str]:
        """A line where the cache had another plan."""
        earlier = "the plan that the cache had"
        if self.stored == "left":
            return [f"{earlier} for this model and device stays there: give this one as a file"]
        if self.stored in ("other_bound", "other_metric"):
            was = f"{self.earlier_metric} error {self.earlier_max_error:.2g}"
            return [f"it replaces {earlier} for this model and device, for {was}"]
        return []

    def __str__(self) -> str:
        return as_text(self)


class PlanText(str):
    """`PrecisionPlan.text` with the plan that it was made of.

    The text is all that the delegate needs; a profile also shows what was measured.
    """

    __slots__ = ("plan",)

    plan: PrecisionPlan

    @classmethod
    def of(cls, plan: PrecisionPlan) -> PlanText:
        text = cls(plan.text)
        text.plan = plan
        return text


def _beats(a: PrecisionPoint, b: PrecisionPoint) -> bool:
    """Whether a is better than b in time or in error, and worse in neither."""
    mine, other = (a.seconds, a.error), (b.seconds, b.error)
    return mine != other and all(x <= y for x, y in zip(mine, other))


def _number(name: str, value: Any) -> float:
    """A finite number of a file; a ValueError if it is none."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not -_LARGEST <= value <= _LARGEST:
        raise ValueError(f"{name} is {value!r:.40}; allowed: a finite number")
    return float(value)


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise ValueError(f"{name} is {value!r:.40}; allowed: an integer from 0 on")
    return value


def _counts(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} is {value!r:.40}; allowed: a list of integers")
    return tuple(_count(f"an element of {name}", item) for item in value)


def _scale(name: str, value: Any) -> float:
    if not _LEAST_SCALE <= _number(name, value) <= _LARGEST:
        raise ValueError(f"{name} is {value!r:.40}; allowed: a number from {_LEAST_SCALE:.3g} on")
    return float(value)


def _zero_point(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -128 <= value <= 127:
        raise ValueError(f"{name} is {value!r:.40}; allowed: an integer from -128 to 127")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r:.40}; allowed: a text")
    return value


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r:.40}; allowed: true, false")
    return value


def _bits(name: str, value: Any) -> str:
    digits = isinstance(value, str) and re.fullmatch("([0-9a-f]{4})+", value)
    # Of a number that is not finite, all bits of the exponent are set.
    if not digits or any(
        int(value[i : i + 4], 16) & 0x7F80 == 0x7F80 for i in range(0, len(value), 4)
    ):
        raise ValueError(
            f"{name} is {value!r:.40}; allowed: four hexadecimal digits for each channel, of a "
            "finite bfloat16"
        )
    return str(value)


_READERS_OF: dict[str, Callable[[str, Any], Any]] = {
    "scale": _scale,
    "zero_point": _zero_point,
    "bits": _bits,
}
"""Of fields with less values than their types."""

_READERS: dict[str, Callable[[str, Any], Any]] = {
    "float": _number,
    "int": _count,
    "str": _text,
    "bool": _flag,
    "tuple[int, ...]": _counts,
}


# Files of earlier versions lack them.
_LATER = frozenset(
    ("half_sums", "bfloat", "integers", "bf16_pairs", "interrupted", "stored", "earlier_metric",
     "earlier_max_error", "measured", "reason")
)  # fmt: skip
_LATER_OF_POINTS = frozenset(
    ("half", "bfloat", "int8", "tf32", "bf16_pairs", "half_sums", "integers")
)
_RENAMED = {"tf32_pairs": "bf16_pairs"}  # earlier names: other numbers, for the same purpose


def _checked(kind: type, entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a dataclass that are no entries, each of its type."""
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    later = _LATER_OF_POINTS if kind is PrecisionPoint else _LATER
    usual = {f.name: f.default for f in dataclasses.fields(kind) if f.name in later}
    renamed = {_RENAMED.get(name, name): value for name, value in entry.items()}
    if len(renamed) < len(entry):
        twice = next(name for name in _RENAMED if name in entry and _RENAMED[name] in entry)
        raise ValueError(f"{where}{twice} is an earlier name of {_RENAMED[twice]}; allowed: one")
    entry = {**usual, **renamed}
    if odd := sorted(map(str, types.keys() ^ entry.keys())):
        raise ValueError(f"{where}{odd[0]} is missing or is no field of a plan")
    return {
        name: _READERS_OF.get(name, _READERS[of_type])(where + name, entry[name])
        for name, of_type in types.items()
        if of_type in _READERS
    }


_Entry = TypeVar("_Entry", PrecisionPoint, PrecisionChange, Int8Scale, ChannelMeans)


def _entries(kind: type[_Entry], name: str, value: Any) -> tuple[_Entry, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} is {value!r:.40}; allowed: a list")
    entries = []
    for number, entry in enumerate(value):
        where = f"{name}[{number}]"
        if not isinstance(entry, Mapping):
            raise ValueError(f"{where} is {entry!r:.40}; allowed: an object")
        infinite = entry.get("error", 0.0) is None  # as `PrecisionPlan.to_dict` writes it
        fields = _checked(kind, {**entry, "error": 0.0} if infinite else entry, f"{where}.")
        entries.append(kind(**{**fields, "error": math.inf} if infinite else fields))
    return tuple(entries)


def plan_text(
    model: str,
    bound: float | None,
    half: Iterable[int],
    int8: Iterable[int],
    tf32: Iterable[int],
    half_sums: Iterable[int] = (),
    bfloat: Iterable[int] = (),
    integers: Iterable[int] = (),
    scales: Iterable[Int8Scale] = (),
    means: Iterable[ChannelMeans] = (),
    bf16_pairs: Iterable[int] = (),
) -> str:
    """The form in which the option `precision` has a plan; ``bound``: of the relative L2 error."""
    items = [f"model={model}"]
    if bound is not None:
        items.append(f"error={bound!r}")
    lists = {
        "half": _ranges(half),
        "bfloat": _ranges(bfloat),
        "int8": _ranges(int8),
        "tf32": _ranges(tf32),
        "pairs": _ranges(bf16_pairs),
        "sums": _ranges(half_sums),
        "integers": _ranges(integers),
        "scales": "+".join(map(_scale_text, sorted(scales, key=lambda scale: scale.tensor))),
        "means": "+".join(f"{m.tensor}/{m.bits}" for m in sorted(means, key=lambda m: m.tensor)),
    }
    return ",".join([*items, *(f"{key}={ids}" for key, ids in lists.items() if ids)])


def _scale_text(scale: Int8Scale) -> str:
    """Such as ``8/0.05/-128``; nine digits tell a float32 from all others."""
    number = f"{scale.scale:.9g}".replace("+", "")  # a plus sign would begin the next one
    return f"{scale.tensor}/{number}/{scale.zero_point}"


def _ranges(ids: Iterable[int]) -> str:
    """Such as ``3+7-12``."""
    runs: list[list[int]] = []
    for number in sorted(ids):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return "+".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)

"""What a generator knows of a model's signatures."""

from __future__ import annotations

import dataclasses
import functools
import math
import mmap
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clgpu_delegate.errors import ModelError, OptionError
from clgpu_delegate.tflite import reader, schema
from clgpu_delegate.tflite.graph import Model, Subgraph

# Names that exporters give to inputs and outputs.
_TOKENS = ("tokens", "token_ids", "input_ids")
_POSITIONS = ("input_pos", "positions", "position_ids")
_MASKS = ("mask", "attention_mask")
_LOGITS = ("logits",)


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or output of a signature."""

    index: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclasses.dataclass(frozen=True)
class Names:
    """What the user calls signatures and their inputs and outputs; None: what exporters call it."""

    prefill: Sequence[str] | None = None
    decode: str | None = None
    tokens: str | None = None
    positions: str | None = None
    caches: Mapping[str, str] | None = None
    logits: str | None = None
    mask: str | None = None


@dataclasses.dataclass(frozen=True)
class Step:
    """A signature that takes some tokens."""

    key: str
    graph: int
    """Index in the model."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    tokens: str
    positions: str
    mask: str | None
    caches: dict[str, str]
    """Outputs by inputs."""

    logits: str | None

    @functools.cached_property
    def count(self) -> int:
        """Tokens that it takes."""
        return self.inputs[self.tokens].shape[-1]


@dataclasses.dataclass(frozen=True)
class Caches:
    """What a model's operations tell of its caches."""

    length: int
    """Positions that all of them have; the extents of axis 1 where no operation tells."""

    known: bool
    """Whether an operation tells."""

    written: bool
    """Whether new rows are written among old ones, so that those of a step need room."""

    recurrent: tuple[str, ...]
    """Those whose next value is computed from the last one in another way than by writing rows to
    it: a step with padding, or one that runs twice, changes them for good."""


def find_steps(interpreter: Any, names: Names) -> tuple[Step, list[Step]]:
    """The step that gives logits, and those that only read, with the most tokens first.

    Parameters
    ----------
    interpreter
        Of a runtime, with the model; its tensors need no memory.
    names
        What the user calls signatures and tensors.

    Raises
    ------
    ModelError
        If the model lacks what a generator needs.
    OptionError
        If it lacks what ``names`` has.
    """
    keys = list(interpreter.get_signature_list())
    for key in [*(names.prefill or ()), *([names.decode] if names.decode else [])]:
        if key not in keys:
            raise OptionError(f"the model has no signature {key!r}; it has {_listed(keys)}")
    decode_key = names.decode or "decode"
    if decode_key not in keys:
        raise ModelError(
            f"no signature is called 'decode'; name it with decode=, one of {_listed(keys)}"
        )
    prefill_keys = names.prefill
    if prefill_keys is None:
        prefill_keys = [key for key in keys if re.fullmatch(r"prefill(_\d+)?", key)]
    decode = _step(interpreter, decode_key, names, needs_logits=True)
    prefill = [_step(interpreter, key, names, needs_logits=False) for key in prefill_keys]
    for step in prefill:
        _check_alike(decode, step)
    return decode, sorted(prefill, key=lambda step: -step.count)


def read_graphs(source: bytes | Path) -> Model | None:
    """The graphs of a model without its constants, so of any size; None if they are not readable.

    Parameters
    ----------
    source
        A file that a runtime has accepted; it is mapped into memory.
    """
    try:
        if isinstance(source, Path):
            with source.open("rb") as file:
                content: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        else:
            content = source
        raw = schema.module("tflite").Model.GetRootAs(content, 0)
        codes = [reader._code(raw.OperatorCodes(i)) for i in range(raw.OperatorCodesLength())]
        graphs = [reader._subgraph(raw.Subgraphs(i), codes) for i in range(raw.SubgraphsLength())]
        return Model(graphs, [])
    except Exception:  # of the operating system, or any of the generated code
        return None


def find_caches(model: Model | None, steps: Sequence[Step]) -> Caches:
    """What the operations of the steps' graphs tell of the caches.

    Parameters
    ----------
    model
        None if it is not known; then the caches count as written by position, along axis 1.
    steps
        All steps.
    """
    tensors = {name: step.inputs[name] for step in steps for name in step.caches}
    axes: dict[str, set[int]] = {name: set() for name in tensors}
    recurrent: set[str] = set()
    written = model is None
    for step in steps:
        if model is None:
            break
        graph = model.subgraphs[step.graph]
        producers = graph.producers()
        written |= any(op.name == "DYNAMIC_UPDATE_SLICE" for op in graph.operators)
        for name, output in step.caches.items():
            before, after = step.inputs[name].index, step.outputs[output].index
            found = _written_axes(graph, producers, before, after)
            if found is None:
                recurrent.add(name)
            elif len(found) == 1:  # an update of all positions does not tell the axis
                axes[name] |= found
    known = [tensors[name].shape[min(found)] for name, found in axes.items() if len(found) == 1]
    lengths = known or [t.shape[min(1, len(t.shape) - 1)] for t in tensors.values()]
    return Caches(min(lengths), bool(known), written, tuple(n for n in tensors if n in recurrent))


def _step(interpreter: Any, key: str, names: Names, *, needs_logits: bool) -> Step:
    runner = interpreter.get_signature_runner(key)
    inputs = {name: _tensor(d) for name, d in runner.get_input_details().items()}
    outputs = {name: _tensor(d) for name, d in runner.get_output_details().items()}
    graph = int(interpreter._interpreter.GetSubgraphIndexFromSignature(key))
    where = f"the signature {key!r}"
    tokens = _named(where, inputs, names.tokens, _TOKENS, "tokens")
    positions = _named(where, inputs, names.positions, _POSITIONS, "positions")
    mask = next((name for name in _MASKS if name in inputs), None)
    if names.mask is not None:
        mask = _named(where, inputs, names.mask, (), "mask")
    caches = _caches(where, inputs, outputs, names)
    known = {tokens, positions, mask, *caches}
    if strange := [name for name in inputs if name not in known]:
        raise ModelError(
            f"{where} has an input {strange[0]!r} that is no token, position, mask or cache; a "
            "generator cannot give it"
        )
    rest = [name for name in outputs if name not in caches.values()]
    logits = names.logits if names.logits in rest else None
    if logits is None:
        logits = next((name for name in _LOGITS if name in rest), None)
    if logits is None and len(rest) == 1 and names.logits is None:
        logits = rest[0]
    if needs_logits and logits is None:
        raise ModelError(
            f"{where} has no output for the logits; name it with logits=, one of {_listed(rest)}"
        )
    for name in (tokens, positions):
        if inputs[name].dtype.kind != "i" or not inputs[name].shape:
            raise ModelError(
                f"the input {name!r} of {where} is {inputs[name].dtype}"
                f"{list(inputs[name].shape)}; tokens and positions are integers along an axis"
            )
    count = inputs[tokens].shape[-1]
    if count < 1 or math.prod(inputs[tokens].shape) != count:
        raise ModelError(
            f"the input {tokens!r} of {where} has the shape {list(inputs[tokens].shape)}; a "
            "generator gives the tokens of one conversation, (1, n)"
        )
    if math.prod(inputs[positions].shape) not in (1, count):
        raise ModelError(
            f"the input {positions!r} of {where} has the shape {list(inputs[positions].shape)}; a "
            f"generator gives one position, or {count}, as many as tokens"
        )
    if needs_logits and logits is not None:
        _check_logits(where, logits, outputs[logits], count)
    return Step(key, graph, inputs, outputs, tokens, positions, mask, caches, logits)


def _check_logits(where: str, name: str, logits: Tensor, count: int) -> None:
    if logits.dtype.kind != "f":
        raise ModelError(f"the output {name!r} of {where} is {logits.dtype}; logits are floats")
    if math.prod(logits.shape[:-1]) != count or not logits.shape:
        raise ModelError(
            f"the output {name!r} of {where} has the shape {list(logits.shape)}; logits are as "
            f"many rows as tokens, {count}"
        )


def _tensor(detail: Mapping[str, Any]) -> Tensor:
    shape = tuple(int(size) for size in detail["shape"])
    return Tensor(int(detail["index"]), shape, np.dtype(detail["dtype"]))


def _named(
    where: str, inputs: Mapping[str, Tensor], given: str | None, usual: Sequence[str], what: str
) -> str:
    if given is not None:
        if given in inputs:
            return given
        raise OptionError(f"{where} has no input {given!r}; it has {_listed(inputs)}")
    found = next((name for name in usual if name in inputs), None)
    if found is None:
        raise ModelError(
            f"{where} has no input for {what}; name it with {what}=, one of {_listed(inputs)}"
        )
    return found


def _caches(
    where: str, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], names: Names
) -> dict[str, str]:
    pairs = names.caches
    if pairs is None:
        pairs = {name: name for name in inputs if name in outputs}
    if not pairs:
        raise ModelError(
            f"{where} has no cache: no input has the name of an output; name them with caches=, "
            "as {input: output}"
        )
    of: dict[str, str] = {}  # inputs by outputs
    for before, after in pairs.items():
        if before not in inputs:
            raise OptionError(f"{where} has no input {before!r}; it has {_listed(inputs)}")
        if after not in outputs:
            raise OptionError(f"{where} has no output {after!r}; it has {_listed(outputs)}")
        if of.setdefault(after, before) != before:
            raise OptionError(
                f"caches has the output {after!r} for the inputs {of[after]!r} and {before!r}; "
                "each cache has an output of its own"
            )
        _check_same(where, before, inputs[before], f"the output {after!r}", outputs[after])
    return dict(pairs)


def _check_alike(decode: Step, step: Step) -> None:
    for name in decode.caches:
        if name not in step.caches:
            raise ModelError(f"the signature {step.key!r} lacks the cache {name!r}")
        where = f"the signature {step.key!r}"
        other = f"that of {decode.key!r}"
        _check_same(where, name, step.inputs[name], other, decode.inputs[name])


def _check_same(where: str, name: str, a: Tensor, other: str, b: Tensor) -> None:
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        raise ModelError(
            f"the cache {name!r} of {where} is {a.dtype}{list(a.shape)} and {other} is "
            f"{b.dtype}{list(b.shape)}"
        )


def _written_axes(
    graph: Subgraph, producers: Mapping[int, int], before: int, after: int
) -> set[int] | None:
    """The axes along which rows are written to a tensor; None if it is changed in another way."""
    if all(before not in op.inputs for op in graph.operators):
        return set()  # its next value is another one altogether, or the same
    axes: set[int] = set()
    while after != before:
        at = producers.get(after)
        if at is None or graph.operators[at].name != "DYNAMIC_UPDATE_SLICE":
            return None
        after, update = graph.operators[at].inputs[:2]  # which operators before it compute
        sizes = zip(graph.tensors[after].shape, graph.tensors[update].shape)
        axes |= {i for i, (whole, part) in enumerate(sizes) if whole != part}
    return axes


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "none"

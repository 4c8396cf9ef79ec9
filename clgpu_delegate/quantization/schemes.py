"""The quantisation schemes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence

from clgpu_delegate.errors import OptionError, QuantizationError
from clgpu_delegate.quantization import parameters, plan
from clgpu_delegate.quantization.choice import quantised_nodes
from clgpu_delegate.quantization.pseudo import floated
from clgpu_delegate.quantization.rewrite import Rewriter
from clgpu_delegate.quantization.weights import to_float16, to_int8
from clgpu_delegate.tflite.graph import Affine, Array, Model

# Type of the activations, and the types that inputs and outputs may have, by scheme.
_ACTIVATIONS = {"int8": "int8", "int16x8": "int16"}
_IO = {"int8": ("float", "int8", "uint8"), "int16x8": ("float", "int16")}
SCHEMES = ("int8", "int16x8", "fp16", "dynamic")

RangesOf = Callable[[Iterable[int]], "dict[int, tuple[float, float]]"]


@dataclasses.dataclass
class Conversion:
    """A float model and the quantised model."""

    float_model: Model
    """As it was, constants folded."""

    model: Model
    """The new one."""

    pairs: dict[int, tuple[int, Affine | None]]
    """By tensor of the float model's main graph: the tensor of the new one, and its parameters."""

    dtypes: dict[int, str]
    """Type of the activations, or of the weights, by node that is not as it was."""

    inputs: list[tuple[str, Affine | None]] = dataclasses.field(default_factory=list)
    """Type and parameters of the new model's inputs."""

    def stored_inputs(self, sample: Sequence[Array]) -> list[Array]:
        """The float model's inputs as the new model takes them."""
        return [
            parameters.quantize(value, affine, dtype) if affine else value
            for value, (dtype, affine) in zip(sample, self.inputs)
        ]


def check_together(io: str, scheme: str, mode: str) -> None:
    """Raise an OptionError unless the options fit together."""
    if mode == "pseudo" and scheme not in _ACTIVATIONS:
        names = ", ".join(_ACTIVATIONS)
        raise OptionError(f"scheme is {scheme!r}; allowed with mode 'pseudo': {names}")
    allowed = _IO.get(scheme, ("float",)) if mode == "integer" else ("float",)
    if io not in allowed:
        raise OptionError(f"io is {io!r}; allowed with scheme {scheme!r}: {', '.join(allowed)}")


def convert(
    model: Model,
    scheme: str,
    mode: str,
    *,
    per_channel: bool,
    skip: Collection[int],
    io: str,
    ranges: RangesOf,
) -> Conversion:
    """Make the new model.

    Parameters
    ----------
    model
        A float model, folded.
    scheme, mode, per_channel, io
        As in `quantize`, checked.
    skip
        Nodes of the file that stay in float.
    ranges
        Observes tensors.

    Raises
    ------
    QuantizationError
        If there is nothing to convert.
    """
    if scheme in _ACTIVATIONS:
        return _integers(
            model, scheme, mode, per_channel=per_channel, skip=skip, io=io, ranges=ranges
        )
    new = model.copy()
    if scheme == "fp16":
        dtypes = to_float16(new, skip)
    else:
        dtypes = to_int8(new, skip, per_channel=per_channel)
    if not dtypes:
        raise QuantizationError(f"the model has no weights to convert with scheme {scheme!r}")
    return _conversion(model, new, lambda t: (t, None), dtypes)


def _integers(
    model: Model,
    scheme: str,
    mode: str,
    *,
    per_channel: bool,
    skip: Collection[int],
    io: str,
    ranges: RangesOf,
) -> Conversion:
    dtype, graph = _ACTIVATIONS[scheme], model.main
    left = {i for i, op in enumerate(graph.operators) if op.node in skip}
    nodes = quantised_nodes(model, dtype, left)
    if not nodes:
        raise QuantizationError(f"no node of the model can be quantised with scheme {scheme!r}")
    ends = [] if io == "float" else [*graph.inputs, *graph.outputs]
    observed = ranges(plan.observed_tensors(model, nodes, ends))
    made = plan.make(model, nodes, dtype, observed.__getitem__, ends)
    new = model.copy()
    rewriter = Rewriter(new, made, per_channel=per_channel, io=io)
    rewriter.rewrite()
    if mode == "pseudo":
        floated(new)

    def find(tensor: int) -> tuple[int, Affine | None]:
        integers = rewriter.integers_of(tensor)
        return (tensor, None) if integers is None else (integers, made.tensors[tensor])

    return _conversion(model, new, find, {graph.operators[i].node: dtype for i in nodes})


def _conversion(
    old: Model,
    new: Model,
    find: Callable[[int], tuple[int, Affine | None]],
    dtypes: dict[int, str],
) -> Conversion:
    """Remove unused tensors of the new model, and map the old one's tensors to it."""
    moved = new.compact()
    pairs: dict[int, tuple[int, Affine | None]] = {}
    for op in old.main.operators:
        for t in op.outputs:
            tensor, affine = find(t)
            if tensor in moved and old.main.tensors[t].dtype == "float32":
                pairs[t] = moved[tensor], affine
    inputs = [(new.main.tensors[t].dtype, new.main.tensors[t].affine) for t in new.main.inputs]
    return Conversion(old, new, pairs, dtypes, inputs)

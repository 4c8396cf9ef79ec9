"""The schemes: what a float model is turned into."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence

from clgpu_delegate.errors import OptionError, QuantizationError
from clgpu_delegate.quantization import parameters, plan
from clgpu_delegate.quantization.graph import Affine, Array, Model
from clgpu_delegate.quantization.rewrite import Rewriter

# Type of the activations, and the types that inputs and outputs may have, by scheme.
_ACTIVATIONS = {"int8": "int8", "int16x8": "int16"}
_IO = {"int8": ("float", "int8", "uint8"), "int16x8": ("float", "int16")}
SCHEMES = ("int8", "int16x8", "fp16", "dynamic")

RangesOf = Callable[[Iterable[int]], "dict[int, tuple[float, float]]"]


@dataclasses.dataclass
class Conversion:
    """A model and what was made of it."""

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


def check_io(io: str, scheme: str, mode: str) -> None:
    """Raise an OptionError unless a scheme can have such inputs and outputs."""
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
    if mode != "integer" or scheme not in _ACTIVATIONS:
        raise OptionError(f"scheme {scheme!r} in mode {mode!r} is not supported yet")
    dtype = _ACTIVATIONS[scheme]
    operators = model.main.operators
    left = {i for i, op in enumerate(operators) if op.node in skip}
    nodes = plan.quantised_nodes(model, dtype, left)
    if not nodes:
        raise QuantizationError(f"no node of the model can be quantised with scheme {scheme!r}")
    ends = io != "float"
    observed = ranges(plan.observed_tensors(model, nodes, ends))
    made = plan.make(
        model,
        nodes,
        dtype,
        observed.__getitem__,
        sorted(model.main.inputs + model.main.outputs) if ends else (),
    )
    new = copy.deepcopy(model)
    rewriter = Rewriter(new, made, per_channel=per_channel, io=io)
    rewriter.rewrite()
    moved = new.compact()
    pairs: dict[int, tuple[int, Affine | None]] = {}
    for op in operators:
        for t in op.outputs:
            integers = rewriter.integers_of(t)
            if integers in moved:
                pairs[t] = moved[integers], made.tensors[t]
            elif t in moved and model.main.tensors[t].dtype == "float32":
                pairs[t] = moved[t], None
    inputs = [(new.main.tensors[t].dtype, new.main.tensors[t].affine) for t in new.main.inputs]
    dtypes = {operators[i].node: dtype for i in nodes}
    return Conversion(model, new, pairs, dtypes, inputs)

"""Writing a plan into a graph: integer tensors, and conversions between them and floats."""

from __future__ import annotations

import dataclasses

from clgpu_delegate.quantization import parameters
from clgpu_delegate.quantization.choice import data_inputs, finite
from clgpu_delegate.quantization.plan import Plan
from clgpu_delegate.quantization.rules import Rule
from clgpu_delegate.tflite.graph import ABSENT, Affine, Array, Model, Operator, Tensor

# Versions of the conversions by the integers' type.
_QUANTIZE = {"int8": 1, "uint8": 1, "int16": 2}
_REQUANTIZE = {"int8": 2, "uint8": 2, "int16": 2}
_DEQUANTIZE = {"int8": 2, "uint8": 1, "int16": 3, "float16": 3}

# Products whose integer kernels need a bias, while the float kernels need none.
_NEEDS_BIAS = frozenset(("CONV_2D", "DEPTHWISE_CONV_2D"))


def quantize_node(dtype: str, source: int, target: int) -> Operator:
    """A QUANTIZE of floats to integers of a type."""
    return Operator("QUANTIZE", _QUANTIZE[dtype], [source], [target], "QuantizeOptions")


def requantize_node(dtype: str, source: int, target: int) -> Operator:
    """A QUANTIZE of integers to integers, of a type either way."""
    return Operator("QUANTIZE", _REQUANTIZE[dtype], [source], [target], "QuantizeOptions")


def dequantize_node(dtype: str, source: int, target: int) -> Operator:
    """A DEQUANTIZE of integers, or of float16, to floats."""
    return Operator("DEQUANTIZE", _DEQUANTIZE[dtype], [source], [target], "DequantizeOptions")


class Rewriter:
    """Builds the new main graph of a model, node by node.

    Parameters
    ----------
    model
        Changed in place: new tensors and buffers are appended, so that indices stay.
    plan
        Of its main graph.
    per_channel
        Whether weights have a scale per output channel, where kernels take that.
    io
        Type of the model's inputs and outputs that are float now: ``"float"`` (as they are), the
        plan's, or ``"uint8"`` with a plan of int8.
    """

    def __init__(self, model: Model, plan: Plan, *, per_channel: bool, io: str) -> None:
        self.model, self.plan = model, plan
        self._per_channel, self._io = per_channel, io
        self._old = model.main.operators
        self._new: list[Operator] = []
        self._computed: set[int] = set()  # old tensors that are integers first of all
        self._floats: dict[int, int] = {}  # those that are converted to floats -> the floats
        self._integers: dict[int, dict[Affine, int]] = {}  # old tensor -> its forms as integers
        self._constants: dict[tuple[int, Affine, str], int] = {}

    def integers_of(self, tensor: int) -> int | None:
        """The new tensor that holds an old one as integers, as its plan says; None without."""
        affine = self.plan.tensors.get(tensor)
        forms = self._integers.get(tensor, {})
        return forms.get(affine) if affine else None

    def float_of(self, tensor: int) -> int:
        """The new tensor that holds an old one as floats; converted from integers where needed."""
        if tensor in self._floats or tensor not in self._computed:
            return self._floats.get(tensor, tensor)
        source = next(iter(self._integers[tensor].values()))
        ends = self._io == "float" and tensor in self.model.main.outputs
        new = self._add(tensor, "float32", None, "" if ends else "_float32")
        self._new.append(dequantize_node(self.plan.dtype, source, new))
        self._floats[tensor] = new
        return new

    def rewrite(self) -> None:
        """Replace the main graph's nodes, inputs and outputs."""
        graph = self.model.main
        inputs = [self._input(t) for t in graph.inputs]
        for i, op in enumerate(self._old):
            rule = self.plan.nodes.get(i)
            if rule is None:
                self._keep(op)
            else:
                self._quantise(op, rule)
        outputs = [self._output(t) for t in graph.outputs]
        self._rename_signatures(dict(zip(graph.inputs, inputs)), dict(zip(graph.outputs, outputs)))
        graph.inputs, graph.outputs, graph.operators = inputs, outputs, self._new

    # ------------------------------------------------------------------ nodes

    def _keep(self, op: Operator) -> None:
        inputs = [t if t == ABSENT else self.float_of(t) for t in op.inputs]
        self._new.append(dataclasses.replace(op, inputs=inputs))

    def _quantise(self, op: Operator, rule: Rule) -> None:
        plan, inputs = self.plan, list(op.inputs)
        data = data_inputs(self.model, op, rule)
        for p in data:
            wanted = plan.tensors[op.outputs[0] if rule.same else op.inputs[p]]
            inputs[p] = self._as_integers(op.inputs[p], wanted)
        if rule.weights is not None:
            source = plan.tensors[op.inputs[data[0]]]
            self._products(op, rule, inputs, source)
        outputs = []
        for t in op.outputs:
            if t in plan.tensors:
                ends = self._io != self.plan.dtype and t in self.model.main.outputs
                suffix = f"_{plan.dtype}" if ends else ""
                new = self._add(t, plan.dtype, plan.tensors[t], suffix)
                self._integers[t] = {plan.tensors[t]: new}
                self._computed.add(t)
                outputs.append(new)
            else:
                outputs.append(t)
        version = max(op.version, rule.versions[plan.dtype])
        self._new.append(dataclasses.replace(op, inputs=inputs, outputs=outputs, version=version))

    def _products(self, op: Operator, rule: Rule, inputs: list[int], source: Affine) -> None:
        """Replace weights and bias among the new ``inputs`` of a product."""
        assert rule.weights is not None
        assert rule.bias is not None
        model, tensors = self.model, self.model.main.tensors
        old = op.inputs[rule.weights]
        weights = finite(model, old)
        affine = parameters.of_weights(weights, rule.axis if self._per_channel else None)
        bias_at = op.inputs[rule.bias] if rule.bias < len(op.inputs) else ABSENT
        bias: Array | None = None
        if bias_at != ABSENT:
            bias = finite(model, bias_at)
            affine = parameters.with_room_for(affine, bias, source, self.plan.bias_type)
        inputs[rule.weights] = self._constant(old, weights, affine, "int8")
        scales = parameters.of_bias(source, affine)
        if bias is not None:
            inputs[rule.bias] = self._constant(bias_at, bias, scales, self.plan.bias_type)
        elif op.name in _NEEDS_BIAS:
            inputs.extend([ABSENT] * (rule.bias + 1 - len(inputs)))
            channels = weights.shape[rule.axis or 0]
            inputs[rule.bias] = self._zero_bias(f"{tensors[old].name}_bias", channels, scales)

    # ------------------------------------------------------------------ tensors

    def _as_integers(self, old: int, affine: Affine) -> int:
        """The new tensor that holds an old one as integers with certain parameters."""
        tensor, dtype = self.model.main.tensors[old], self.plan.dtype
        if self.model.is_constant(tensor):
            return self._constant(old, self.model.values(tensor), affine, dtype)
        forms = self._integers.setdefault(old, {})
        if affine not in forms:
            new = self._add(old, dtype, affine, f"_{dtype}")
            if old in self._computed:
                self._new.append(requantize_node(dtype, next(iter(forms.values())), new))
            else:  # not from another integer form, whose range may be narrower
                self._new.append(quantize_node(dtype, old, new))
            forms[affine] = new
        return forms[affine]

    def _constant(self, old: int, values: Array, affine: Affine, dtype: str) -> int:
        key = (old, affine, dtype)
        if key not in self._constants:
            new = self._add(old, dtype, affine)
            stored = parameters.quantize(values, affine, dtype)
            self.model.main.tensors[new].buffer = self.model.add_buffer(stored)
            self._constants[key] = new
        return self._constants[key]

    def _zero_bias(self, name: str, channels: int, scales: Affine) -> int:
        if len(scales.scales) not in (1, channels):
            scales = Affine(scales.scales[:1] * channels, (0,) * channels)
        tensor = Tensor(name, (channels,), self.plan.bias_type, affine=scales)
        tensor.buffer = self.model.add_buffer(
            parameters.quantize(parameters.zeros(channels), scales, self.plan.bias_type)
        )
        self.model.main.tensors.append(tensor)
        return len(self.model.main.tensors) - 1

    def _add(self, old: int, dtype: str, affine: Affine | None, suffix: str = "") -> int:
        tensors = self.model.main.tensors
        like = tensors[old]
        name = like.name + suffix
        tensors.append(Tensor(name, like.shape, dtype, affine=affine, signature=like.signature))
        return len(tensors) - 1

    # ------------------------------------------------------------------ ends of the model

    def _input(self, old: int) -> int:
        affine, io = self.plan.tensors.get(old), self._io
        if io == "float" or affine is None:
            return old
        new = self._add(old, self.plan.dtype, affine)
        self._integers[old] = {affine: new}
        self._computed.add(old)
        if io == self.plan.dtype:
            return new
        outer = self._add(old, io, _as_uint8(affine))
        self.model.main.tensors[new].name += "_int8"
        self._new.append(requantize_node(io, outer, new))
        return outer

    def _output(self, old: int) -> int:
        affine, io = self.plan.tensors.get(old), self._io
        if io == "float" or affine is None:
            return self.float_of(old)
        inner = self._as_integers(old, affine)
        if io == self.plan.dtype:
            return inner
        outer = self._add(old, io, _as_uint8(affine))
        self._new.append(requantize_node(io, inner, outer))
        return outer

    def _rename_signatures(self, inputs: dict[int, int], outputs: dict[int, int]) -> None:
        for signature in self.model.signatures:
            if signature.subgraph == 0:
                signature.inputs = {k: inputs.get(t, t) for k, t in signature.inputs.items()}
                signature.outputs = {k: outputs.get(t, t) for k, t in signature.outputs.items()}


def _as_uint8(affine: Affine) -> Affine:
    return Affine(affine.scales, (affine.zero_point + 128,))

"""The mean of each channel that products of a float model read, for plans of precisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from clgpu_delegate.errors import ModelError, QuantizationError
from clgpu_delegate.precision import ChannelMeans
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.graph import ABSENT, Array, Model, Operator
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.runs import Run

_PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_BIAS = 2  # position among their inputs, behind image and weights


@dataclasses.dataclass(frozen=True)
class Means:
    """What products with a bias and constant weights read."""

    inputs: Mapping[int, frozenset[int]]
    """By the tensor of the weights: what they are multiplied by."""

    channels: Mapping[int, ChannelMeans]
    """By tensor."""

    def of(self, weights: Iterable[int]) -> tuple[ChannelMeans, ...]:
        """Those of the tensors that these weights are multiplied by."""
        read = {t for w in weights for t in self.inputs.get(w, ())}
        return tuple(self.channels[t] for t in sorted(read) if t in self.channels)


NONE = Means({}, {})


def observe(content: bytes, runtime: Runtime, samples: Iterable[Sequence[Array]]) -> Means:
    """Observe a float model while the runtime's own kernels run it.

    Parameters
    ----------
    content
        Of the model.
    runtime
        It computes the values that are observed.
    samples
        Inputs, one list per sample; the mean is over all of them, and over all places of an image.

    Returns
    -------
    Means
        Without tensors that the runtime does not show, or that are not finite; none of a model that
        the runtime cannot run in this way, or with sparse weights.
    """
    try:
        model = parse(content)
        if any(tensor.is_sparse for tensor in model.main.tensors):
            return NONE
        products = [op for op in model.main.operators if _fits(model, op)]
        if not products:
            return NONE
        # What the channels are; weights of FULLY_CONNECTED may read several axes as one.
        depths = {op.inputs[0]: _depth(model, op) for op in products}
        sums = {tensor: np.zeros(depth) for tensor, depth in depths.items()}
        counts = dict.fromkeys(depths, 0)
        run = Run(content, runtime)
        for sample in samples:
            run.invoke(sample)
            for tensor, total in sums.items():
                counts[tensor] += _add(run.value(tensor), total)
    except (QuantizationError, ModelError):
        return NONE
    inputs: dict[int, set[int]] = {}
    for op in products:
        inputs.setdefault(op.inputs[1], set()).add(op.inputs[0])
    return Means(
        {weights: frozenset(read) for weights, read in inputs.items()},
        {
            tensor: ChannelMeans.of(tensor, total / counts[tensor])
            for tensor, total in sums.items()
            if counts[tensor] and np.isfinite(total).all()
        },
    )


def _fits(model: Model, op: Operator) -> bool:
    if op.custom or op.name not in _PRODUCTS or len(op.inputs) <= _BIAS:
        return False
    image, weights, bias = op.inputs[: _BIAS + 1]
    if ABSENT in (image, weights, bias):
        return False
    tensors = model.main.tensors
    floats = all(tensors[t].dtype == "float32" for t in (image, weights, bias))
    return floats and all(model.is_constant(tensors[t]) for t in (weights, bias))


def _depth(model: Model, op: Operator) -> int:
    if op.name == "FULLY_CONNECTED":
        return model.main.tensors[op.inputs[1]].shape[-1]
    return model.main.tensors[op.inputs[0]].shape[-1]


def _add(values: Array | None, total: Array) -> int:
    """Add the sums of the channels, and return how many numbers each is of; 0 where it is none."""
    if values is None or not values.size or values.size % total.size:
        return 0
    rows = values.reshape(-1, total.size)
    total += rows.sum(axis=0, dtype=np.float64)
    return int(rows.shape[0])

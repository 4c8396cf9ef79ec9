"""The networks that plans are made for, and the ways in which each of them is run.

Plans depend on types, shapes and a few properties of constants (for example, whether they fit into
half), not on their values. So weights repeat a short sequence of random numbers, and ranges of int8
tensors are invented. That saves an inference and minutes of drawing numbers.
`tests/bench/test_plans.py` compares with real weights and ranges.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bench import pynet as pynet_bench
from bench.nets import INT8, quantized
from bench.networks import NETWORKS
from bench.networks.layers import Net
from clgpu_delegate.errors import QuantizationError
from clgpu_delegate.quantization.folding import fold
from clgpu_delegate.quantization.schemes import convert
from clgpu_delegate.tflite.graph import Array, Model
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.runs import Run
from clgpu_delegate.tflite.writer import serialize

PYNET_12MP = "pynet_12mp"
NAMES = (*sorted(NETWORKS), PYNET_12MP)
PRECISIONS = ("fp32", "tf32", "fp16", INT8)
BATCHES = (1, 16)
_WEIGHTS = 65521  # numbers of the sequence; a prime, so that no axis of a tensor divides it


@dataclasses.dataclass(frozen=True)
class Way:
    """One way to run a network: a block of its snapshot.

    Attributes
    ----------
    title
        Of the block.
    batch
        Images, or texts, per run.
    is_int8
        Whether the network is quantised.
    options
        Of the delegate.
    share
        Memory budget as a share of the peak of the last way without a budget.
    """

    title: str
    batch: int = 1
    is_int8: bool = False
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    share: float | None = None


def ways(name: str) -> list[Way]:
    """All ways to run a network, in the order of its snapshot."""
    if name == PYNET_12MP:
        return [_published(way) for way in pynet_bench.published()]
    return [
        Way(
            f"{precision}, batch {batch}", batch, precision == INT8,
            {} if precision == INT8 else {"precision": precision},
        )
        for batch in BATCHES
        for precision in PRECISIONS
    ]  # fmt: skip


def _published(way: pynet_bench.Way) -> Way:
    # An impossible budget's error names the smallest one; planning with that takes as long again.
    budget = 1 if way.budget == 0 else way.budget
    options = {
        "precision": way.precision, "engines": way.engines, "memory_budget": budget,
        "max_object": way.max_object,
    }  # fmt: skip
    options = {key: value for key, value in options.items() if value}
    return Way(f"{way.name}, {way.precision}", options=options, share=way.share)


class Models:
    """The models of one network, each made at its first use.

    Parameters
    ----------
    name
        One of `NAMES`.
    real
        Draw all weights, and run the network to find the ranges of int8 tensors, as measurements
        do; not of PyNET at full size.
    """

    def __init__(self, name: str, *, real: bool = False) -> None:
        self._name = name
        self._real = real
        self._made: dict[tuple[int, bool], bytes] = {}

    def model(self, way: Way) -> bytes:
        """Bytes of the .tflite file that a way runs."""
        key = way.batch, way.is_int8
        if key not in self._made:
            if way.is_int8:
                floats = self.model(dataclasses.replace(way, is_int8=False))
                self._made[key] = quantized(floats) if self._real else _quantised(floats)
            else:
                self._made[key] = self._build(way.batch)
        return self._made[key]

    def _build(self, batch: int) -> bytes:
        with contextlib.nullcontext() if self._real else _repeated_weights():
            if self._name == PYNET_12MP:
                return pynet_bench.make_net(pynet_bench.FULL_SIZE).build()
            return NETWORKS[self._name].build(batch)


def _quantised(model: bytes) -> bytes:
    """The model with int8 weights, activations, inputs and outputs, without running it."""
    parsed = parse(model)
    fold(parsed, _Transposes(parsed))
    made = convert(
        parsed, "int8", "integer", per_channel=True, skip=(), io="int8", ranges=_made_up
    )  # fmt: skip
    return serialize(made.model)


def _made_up(tensors: Iterable[int]) -> dict[int, tuple[float, float]]:
    """A range for each tensor, all different, because equal ranges would merge tensors."""
    golden = 0.6180339887
    return {t: (-1 - t * golden % 1, 1 + t * golden**2 % 1) for t in tensors}


class _Transposes(Run):
    """The folded constants that `fold` needs, without a runtime: transposed weights."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def default_inputs(self) -> list[Array]:
        return []

    def invoke(self, inputs: Any) -> None:
        pass

    def value(self, tensor: int) -> Array | None:
        graph = self._model.main
        (op,) = [op for op in graph.operators if tensor in op.outputs]
        if op.name != "TRANSPOSE":
            raise QuantizationError(f"constants computed by {op.name} are not foreseen here")
        source, order = (self._model.values(graph.tensors[i]) for i in op.inputs)
        assert source is not None
        assert order is not None
        return np.ascontiguousarray(np.transpose(source, order))


@contextlib.contextmanager
def _repeated_weights() -> Iterator[None]:
    """Make networks draw few random numbers and repeat them."""
    few = np.random.default_rng(0).standard_normal(_WEIGHTS, np.float32)

    def normal(_: Net, shape: tuple[int, ...], std: float = 1.0) -> np.ndarray:
        return np.resize(few * np.float32(std), shape)

    drawn = Net._normal
    Net._normal = normal  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Net._normal = drawn  # type: ignore[method-assign]

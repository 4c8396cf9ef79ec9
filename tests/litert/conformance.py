"""Cases of the families that LiteRT's own suite for accelerators has (litert/ats).

Each is a small model with random shapes, drawn by the name of the case alone, so it is the same in
each run. Numbers are such that half storage holds them exactly.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tests.model_maker import ModelMaker, Quantization

Array = np.ndarray
F32, F16 = np.float32, np.float16
REALS = (F32, F16)
ACTIVATIONS = ("NONE", "RELU")


class Drawn:
    """Draws what a case consists of. Floats are numbers that half storage holds exactly."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.maker = ModelMaker()
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.dtype = np.dtype(dtype)
        self.inputs: list[Array] = []
        self.terms = 1  # of the longest sum

    def shape(self, rank: int, most: int = 6) -> tuple[int, ...]:
        """Extents; fewer elements along each axis where there are many axes."""
        return tuple(int(n) for n in self.rng.integers(1, most if rank < 5 else 4, rank))

    def values(
        self, shape: tuple[int, ...], dtype: Any = None, low: float = -3.0, high: float = 3.0
    ) -> Array:
        dtype = np.dtype(dtype or self.dtype)
        if dtype.kind == "f":
            return self.rng.uniform(low, high, shape).astype(F16).astype(dtype)
        if dtype.kind == "b":
            return self.rng.integers(0, 2, shape).astype(dtype)
        limits = np.iinfo(dtype)
        least, largest = max(limits.min, -1000), min(limits.max, 1000)
        return self.rng.integers(least, largest, shape, endpoint=True).astype(dtype)

    def input(self, values: Array, quantization: Any = None) -> int:
        self.inputs.append(values)
        name = f"x{len(self.inputs)}"
        return self.maker.input(name, values.shape, values.dtype, quantization=quantization)

    def constant(self, values: Any, dtype: Any = None, quantization: Any = None) -> int:
        return self.maker.constant(values, dtype=dtype, quantization=quantization)

    def ints(self, *values: int) -> int:
        return self.constant(np.array(values, np.int32))

    def op(self, name: str, inputs: Any, shape: tuple[int, ...], **options: Any) -> int:
        return self.maker.op(name, inputs, shape, **options)

    def weights(self, shape: tuple[int, ...]) -> int:
        """A constant; half weights are stored as such and converted, as converters write them."""
        return self.constant(self.values(shape, low=-1, high=1))


class Case(NamedTuple):
    """One model; ``group`` is what quick runs take one case of."""

    family: str
    name: str
    dtype: Any
    draw: Callable[[Drawn], int]

    @property
    def group(self) -> tuple[str, str]:
        """The operation and the type; of halves, which mostly stay on the CPU, the family."""
        operation, name = self.name.split("-")[0], np.dtype(self.dtype).name
        return (self.family if self.dtype == F16 else operation), name

    def made(self, dtype: Any = None) -> tuple[bytes, list[Array], int]:
        """The model, its inputs, and how many terms its longest sums have.

        Parameters
        ----------
        dtype
            Instead of the case's own, for a twin with the same values.
        """
        drawn = Drawn(self.name, dtype or self.dtype)
        drawn.maker.output(self.draw(drawn))
        return drawn.maker.build(), drawn.inputs, drawn.terms


POSITIVE = {"LOG", "SQRT", "RSQRT"}
UNARY = (
    "FLOOR", "LOGISTIC", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "EXP", "NEG", "SIN", "LOG",
    "SQRT", "RSQRT", "SQUARE", "ZEROS_LIKE", "ABS", "CEIL", "COS", "ELU", "ROUND", "HARD_SWISH",
    "GELU", "RELU_0_TO_1", "SIGN",
)  # fmt: skip


def unary() -> Iterator[Case]:
    for op, rank, dtype in itertools.product(UNARY, range(1, 7), REALS):

        def draw(d: Drawn, op: str = op, rank: int = rank) -> int:
            x = d.values(d.shape(rank), low=0.5 if op in POSITIVE else -3.0)
            return d.op(op, [d.input(x)], x.shape)

        yield Case("unary", f"{op}-{rank}", dtype, draw)


def binary() -> Iterator[Case]:
    """Two inputs of one shape."""
    for op, rank, dtype in itertools.product(
        ("ADD", "SUB", "MUL", "DIV"), range(1, 7), (F32, np.int32)
    ):

        def draw(d: Drawn, op: str = op, rank: int = rank) -> int:
            x = d.values(d.shape(rank))
            y = d.values(x.shape, low=0.5)
            if y.dtype.kind == "i":
                y[y == 0] = 1
            return d.op(op, [d.input(x), d.input(y)], x.shape)

        yield Case("binary", f"{op}-{rank}", dtype, draw)


def broadcast() -> Iterator[Case]:
    ranks = range(1, 5)
    arithmetic = itertools.product(("ADD", "MUL", "SUB", "DIV"), ACTIVATIONS)
    others = ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "POW")
    for (op, act), a, b in itertools.product(
        [*arithmetic, *((op, "NONE") for op in others)], ranks, ranks
    ):

        def draw(d: Drawn, op: str = op, a: int = a, b: int = b, act: str = act) -> int:
            to = d.shape(max(a, b))
            sides = []
            for rank in (a, b):
                shape = tuple(1 if d.rng.random() < 0.3 else n for n in to[len(to) - rank :])
                sides.append(d.values(shape, low=0.5 if op in ("DIV", "FLOOR_DIV", "POW") else -3))
            shape = np.broadcast_shapes(*(side.shape for side in sides))
            options = {} if act == "NONE" else {"fused_activation_function": act}
            return d.op(op, [d.input(side) for side in sides], shape, **options)

        yield Case("broadcast", f"{op}-{a}-{b}-{act}", F32, draw)
    for a, b in itertools.combinations_with_replacement(ranks, 2):

        def prelu(d: Drawn, a: int = a, b: int = b) -> int:
            x = d.values(d.shape(b))
            slope = d.weights(x.shape[b - a :])
            return d.op("PRELU", [d.input(x), slope], x.shape)

        yield Case("broadcast", f"PRELU-{b}-{a}", F32, prelu)


def batch_matmul() -> Iterator[Case]:
    for a, b, dtype, left, right in itertools.product(
        range(2, 5), range(2, 5), REALS, (False, True), (False, True)
    ):

        def draw(d: Drawn, a: int = a, b: int = b, left: bool = left, right: bool = right) -> int:
            rows, inner, columns = d.shape(3, 20)
            d.terms = inner
            batch = d.shape(max(a, b) - 2, 4)
            x = (*batch[len(batch) - a + 2 :], *((inner, rows) if left else (rows, inner)))
            y = (*batch[len(batch) - b + 2 :], *((columns, inner) if right else (inner, columns)))
            ids = [d.input(d.values(x)), d.input(d.values(y))]
            return d.op("BATCH_MATMUL", ids, (*batch, rows, columns), adj_x=left, adj_y=right)

        yield Case("batch_matmul", f"BATCH_MATMUL-{a}-{b}-{left:d}{right:d}", dtype, draw)


def concatenation() -> Iterator[Case]:
    for rank, axis in itertools.product(range(2, 5), (0, 1)):

        def draw(d: Drawn, rank: int = rank, axis: int = axis) -> int:
            shape = d.shape(rank)
            other = tuple(n + (i == axis) for i, n in enumerate(shape))
            ids = [d.input(d.values(each)) for each in (shape, other)]
            to = tuple(n + m if i == axis else n for i, (n, m) in enumerate(zip(shape, other)))
            return d.op("CONCATENATION", ids, to, axis=axis)

        yield Case("concatenation", f"CONCATENATION-{rank}-{axis}", F32, draw)


def _extent(size: int, window: int, stride: int, padding: str) -> int:
    return math.ceil((size if padding == "SAME" else size - window + 1) / stride)


def convolutions() -> Iterator[Case]:
    for op, padding, high, wide, act, dtype in itertools.product(
        ("CONV_2D", "DEPTHWISE_CONV_2D"), ("VALID", "SAME"), (1, 2), (1, 2), ACTIVATIONS, REALS
    ):

        def draw(
            d: Drawn,
            op: str = op,
            padding: str = padding,
            strides: tuple[int, int] = (high, wide),
            act: str = act,
        ) -> int:
            channels, filters = d.shape(2, 9)
            window = d.shape(2, 4)
            x = d.values((1, *(int(n) for n in d.rng.integers(5, 12, 2)), channels))
            filters = channels if op == "DEPTHWISE_CONV_2D" else filters
            depth = (1, *window, channels) if op == "DEPTHWISE_CONV_2D" else None
            d.terms = math.prod(window) * (1 if depth else channels)
            sizes = [_extent(n, w, s, padding) for n, w, s in zip(x.shape[1:3], window, strides)]
            weights = d.weights(depth or (filters, *window, channels))
            options = {"depth_multiplier": 1} if depth else {}
            ids = [d.input(x), weights, d.weights((filters,))]
            return d.op(
                op, ids, (1, *sizes, filters), padding=padding, stride_h=strides[0],
                stride_w=strides[1], dilation_h_factor=1, dilation_w_factor=1,
                fused_activation_function=act, **options,
            )  # fmt: skip

        yield Case("convolution", f"{op}-{padding}-{high}{wide}-{act}", dtype, draw)


def fully_connected() -> Iterator[Case]:
    for rank, dtype, keep, act, bias in itertools.product(
        range(2, 5), REALS, (False, True), ACTIVATIONS, (False, True)
    ):

        def draw(
            d: Drawn, rank: int = rank, keep: bool = keep, act: str = act, bias: bool = bias
        ) -> int:
            x, filters = d.values(d.shape(rank, 20)), d.shape(1, 20)[0]
            d.terms = x.shape[-1]
            batch = x.shape[:-1] if keep else (math.prod(x.shape[:-1]),)
            weights = d.weights((filters, x.shape[-1]))
            ids = [d.input(x), weights, d.weights((filters,)) if bias else None]
            options = {"keep_num_dims": keep, "fused_activation_function": act}
            return d.op("FULLY_CONNECTED", ids, (*batch, filters), **options)

        name = f"FULLY_CONNECTED-{rank}-{keep:d}-{act}-{bias:d}"
        yield Case("fully_connected", name, dtype, draw)
    for rank, weights, bias in itertools.product((2, 3), (False, True), (False, True)):

        def given(d: Drawn, rank: int = rank, weights: bool = weights, bias: bool = bias) -> int:
            """Weights and bias as inputs."""
            x, filters = d.values(d.shape(rank, 20)), d.shape(1, 20)[0]
            d.terms = x.shape[-1]
            w, b = d.values((filters, x.shape[-1])), d.values((filters,))
            ids = [d.input(x)]
            ids += [d.input(w) if weights else d.constant(w), d.input(b) if bias else d.constant(b)]
            return d.op("FULLY_CONNECTED", ids, (math.prod(x.shape[:-1]), filters))

        yield Case("fully_connected", f"GIVEN_WEIGHTS-{rank}-{weights:d}{bias:d}", F32, given)


def integers() -> Iterator[Case]:
    """Quantised products."""
    for rank, dtype, act, bias, channels in itertools.product(
        (2, 3), (np.int8, np.uint8), ACTIVATIONS, (False, True), (False, True)
    ):
        if channels and dtype == np.uint8:
            continue  # the schema has scales of channels for int8 only

        def draw(
            d: Drawn, rank: int = rank, act: str = act, bias: bool = bias, channels: bool = channels
        ) -> int:
            x, filters = d.values(d.shape(rank, 20)), d.shape(1, 20)[0]
            least = 1 if d.dtype == np.uint8 else -127
            shape = (filters, x.shape[-1])
            w = d.rng.integers(least, least + 254, shape, endpoint=True).astype(d.dtype)
            scales = d.rng.uniform(0.001, 0.01, filters if channels else 1).astype(F32)
            zero = 128 if d.dtype == np.uint8 else 0
            b = d.rng.integers(-2000, 2000, (filters,)).astype(np.int32)
            ids = [
                d.input(x, (0.05, zero + 3)),
                d.constant(w, quantization=Quantization(scales, zero)),
                d.constant(b, quantization=Quantization(scales * F32(0.05), 0)) if bias else None,
            ]
            to = (math.prod(x.shape[:-1]), filters)
            options = {"fused_activation_function": act}
            return d.op("FULLY_CONNECTED", ids, to, quantization=(0.1, zero - 5), **options)

        name = f"QUANTISED-{rank}-{act}-{bias:d}-{channels:d}"
        yield Case("fully_connected", name, dtype, draw)


def hybrid() -> Iterator[Case]:
    """Floats times weights of int8."""
    for rank, channels, asymmetric in itertools.product((2, 3), (False, True), (False, True)):

        def draw(
            d: Drawn, rank: int = rank, channels: bool = channels, asymmetric: bool = asymmetric
        ) -> int:
            x, filters = d.values(d.shape(rank, 20)), d.shape(1, 20)[0]
            w = d.rng.integers(-127, 127, (filters, x.shape[-1]), endpoint=True).astype(np.int8)
            scales = d.rng.uniform(0.001, 0.01, filters if channels else 1).astype(F32)
            ids = [d.input(x), d.constant(w, quantization=Quantization(scales)), None]
            to = (math.prod(x.shape[:-1]), filters)
            options = {"asymmetric_quantize_inputs": asymmetric}
            return d.op("FULLY_CONNECTED", ids, to, version=9, **options)

        yield Case("hybrid", f"HYBRID-{rank}-{channels:d}{asymmetric:d}", F32, draw)


def no_operation() -> Iterator[Case]:
    """A model that does as little as one can, on each type."""
    for rank, dtype in itertools.product(range(1, 5), (F32, np.int32)):

        def draw(d: Drawn, rank: int = rank) -> int:
            x = d.values(d.shape(rank))
            return d.op("RESHAPE", [d.input(x), d.ints(*x.shape)], x.shape)

        yield Case("no operation", f"NOTHING-{rank}", dtype, draw)


def one_hot() -> Iterator[Case]:
    for rank in range(1, 5):
        for axis in range(rank + 1):

            def draw(d: Drawn, rank: int = rank, axis: int = axis) -> int:
                shape, depth = d.shape(rank), d.shape(1)[0] + 1
                x = d.rng.integers(-1, depth + 1, shape).astype(np.int32)
                ids = [d.input(x), d.constant(np.array(depth, np.int32))]
                ids += [d.constant(np.array(v, F32)) for v in (2.5, -1.5)]
                to = (*shape[:axis], depth, *shape[axis:])
                return d.op("ONE_HOT", ids, to, axis=axis if axis < rank else -1, dtype=F32)

            yield Case("one_hot", f"ONE_HOT-{rank}-{axis}", F32, draw)


def pad() -> Iterator[Case]:
    for rank, dtype in itertools.product(range(1, 5), REALS):

        def draw(d: Drawn, rank: int = rank) -> int:
            x, sides = d.values(d.shape(rank)), d.rng.integers(0, 4, (rank, 2)).astype(np.int32)
            to = tuple(int(n) for n in x.shape + sides.sum(1))
            return d.op("PAD", [d.input(x), d.constant(sides)], to)

        yield Case("pad", f"PAD-{rank}", dtype, draw)


def pooling() -> Iterator[Case]:
    for op, padding, act in itertools.product(
        ("MAX_POOL_2D", "AVERAGE_POOL_2D"), ("SAME", "VALID"), ACTIVATIONS
    ):

        def draw(d: Drawn, op: str = op, padding: str = padding, act: str = act) -> int:
            window, strides = d.shape(2, 4), d.shape(2, 3)
            x = d.values((d.shape(1, 3)[0], *(int(n) for n in d.rng.integers(4, 12, 2)), 5))
            sizes = [_extent(n, w, s, padding) for n, w, s in zip(x.shape[1:3], window, strides)]
            d.terms = math.prod(window)
            return d.op(
                op, [d.input(x)], (x.shape[0], *sizes, 5), padding=padding, stride_h=strides[0],
                stride_w=strides[1], filter_height=window[0], filter_width=window[1],
                fused_activation_function=act,
            )  # fmt: skip

        yield Case("pooling", f"{op}-{padding}-{act}", F32, draw)


def reduction() -> Iterator[Case]:
    for op, rank, keep in itertools.product(
        ("REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"), range(1, 5), (False, True)
    ):

        def draw(d: Drawn, op: str = op, rank: int = rank, keep: bool = keep) -> int:
            x = d.values(d.shape(rank))
            axes = sorted(d.rng.permutation(rank)[: d.rng.integers(1, rank + 1)].tolist())
            d.terms = math.prod(x.shape[i] for i in axes)
            to = tuple(
                1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes
            )
            return d.op(op, [d.input(x), d.ints(*axes)], to, keep_dims=keep)

        yield Case("reduction", f"{op}-{rank}-{keep:d}", F32, draw)


def reshape() -> Iterator[Case]:
    for a, b in itertools.product(range(1, 7), range(1, 7)):

        def draw(d: Drawn, a: int = a, b: int = b) -> int:
            shapes = [[1] * a, [1] * b]
            for factor in d.shape(5, 4):
                for shape in shapes:
                    shape[d.rng.integers(len(shape))] *= factor
            x, to = d.values(tuple(shapes[0])), tuple(shapes[1])
            return d.op("RESHAPE", [d.input(x), d.ints(*to)], to)

        yield Case("reshape", f"RESHAPE-{a}-{b}", F32, draw)


def softmax() -> Iterator[Case]:
    for op, rank, dtype in itertools.product(("SOFTMAX", "LOG_SOFTMAX"), range(2, 5), REALS):

        def draw(d: Drawn, op: str = op, rank: int = rank) -> int:
            x = d.values(d.shape(rank, 12))
            d.terms = x.shape[-1]
            return d.op(op, [d.input(x)], x.shape, **({"beta": 1.0} if op == "SOFTMAX" else {}))

        yield Case("softmax", f"{op}-{rank}", dtype, draw)


TRANSPOSED = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def transpose() -> Iterator[Case]:
    for rank, dtype in itertools.product(range(1, 9), (*TRANSPOSED, F32, F16)):

        def draw(d: Drawn, rank: int = rank) -> int:
            x, order = d.values(d.shape(rank)), d.rng.permutation(rank)
            to = tuple(x.shape[i] for i in order)
            return d.op("TRANSPOSE", [d.input(x), d.ints(*order)], to)

        yield Case("transpose", f"TRANSPOSE-{rank}", dtype, draw)


class _Layer:
    """A layer of a transformer, operation by operation."""

    def __init__(self, d: Drawn) -> None:
        self.d = d

    def op(self, name: str, inputs: list[int], shape: tuple[int, ...], **options: Any) -> int:
        return self.d.op(name, inputs, shape, **options)

    def scalar(self, value: float) -> int:
        return self.d.constant(np.array([value], F32))

    def dense(self, x: int, rows: tuple[int, ...], inner: int, filters: int) -> int:
        w = self.d.constant(self.d.values((filters, inner), low=-0.1, high=0.1))
        return self.op("FULLY_CONNECTED", [x, w], (*rows, filters), keep_num_dims=True)

    def mean(self, x: int, shape: tuple[int, ...]) -> int:
        return self.op("MEAN", [x, self.d.ints(2)], (*shape[:-1], 1), keep_dims=True)

    def norm(self, x: int, shape: tuple[int, ...], *, centred: bool) -> int:
        single = (*shape[:-1], 1)
        if centred:
            x = self.op("SUB", [x, self.mean(x, shape)], shape)
        variance = self.mean(self.op("MUL", [x, x], shape), shape)
        variance = self.op("ADD", [variance, self.scalar(1e-5)], single)
        x = self.op("MUL", [x, self.op("RSQRT", [variance], single)], shape)
        x = self.op("MUL", [x, self.d.weights(shape[-1:])], shape)
        return self.op("ADD", [x, self.d.weights(shape[-1:])], shape) if centred else x

    def heads(self, x: int, count: int, times: int, size: int) -> int:
        split = (1, times, count, size)
        x = self.op("RESHAPE", [x, self.d.ints(*split)], split)
        return self.op("TRANSPOSE", [x, self.d.ints(0, 2, 1, 3)], (1, count, times, size))


def transformer() -> Iterator[Case]:
    times, width, hidden, heads, size = 8, 32, 48, 4, 8
    for grouped, centred, gated in itertools.product((False, True), repeat=3):

        def draw(
            d: Drawn, grouped: bool = grouped, centred: bool = centred, gated: bool = gated
        ) -> int:
            layer, shape, rows = _Layer(d), (1, times, width), (1, times)
            d.terms = 16 * hidden  # products follow each other
            x = d.input(d.values(shape, low=-1, high=1))
            normed = layer.norm(x, shape, centred=centred)
            fewer = 2 if grouped else heads
            q = layer.heads(layer.dense(normed, rows, width, heads * size), heads, times, size)
            k, v = (
                layer.heads(layer.dense(normed, rows, width, fewer * size), fewer, times, size)
                for _ in range(2)
            )
            whole = (1, heads, times, size)
            if grouped:
                each = [d.ints(1, heads // fewer, 1, 1)]
                k, v = (layer.op("TILE", [side, *each], whole) for side in (k, v))
            scores = layer.op("BATCH_MATMUL", [q, k], (1, heads, times, times), adj_y=True)
            scores = layer.op("MUL", [scores, layer.scalar(size**-0.5)], (1, heads, times, times))
            weights = layer.op("SOFTMAX", [scores], (1, heads, times, times), beta=1.0)
            y = layer.op("BATCH_MATMUL", [weights, v], whole)
            y = layer.op("TRANSPOSE", [y, d.ints(0, 2, 1, 3)], (1, times, heads, size))
            y = layer.op("RESHAPE", [y, d.ints(1, times, heads * size)], (1, times, heads * size))
            x = layer.op("ADD", [x, layer.dense(y, rows, heads * size, width)], shape)
            normed = layer.norm(x, shape, centred=centred)
            inner = (1, times, hidden)
            y = layer.dense(normed, rows, width, hidden)
            if gated:
                y = layer.op("MUL", [y, layer.op("LOGISTIC", [y], inner)], inner)
                y = layer.op("MUL", [y, layer.dense(normed, rows, width, hidden)], inner)
            else:
                y = layer.op("GELU", [y], inner)
            return layer.op("ADD", [x, layer.dense(y, rows, hidden, width)], shape)

        name = f"TRANSFORMER-{'GQA' if grouped else 'MHA'}-{centred:d}{gated:d}"
        yield Case("transformer", name, F32, draw)


FAMILIES = (
    unary, binary, broadcast, batch_matmul, concatenation, convolutions, fully_connected, integers,
    hybrid, no_operation, one_hot, pad, pooling, reduction, reshape, softmax, transpose,
    transformer,
)  # fmt: skip


def cases() -> list[Case]:
    """All cases of all families."""
    return [case for family in FAMILIES for case in family()]


def quick_cases() -> list[Case]:
    """One case of each group, drawn by the names."""
    drawn: dict[tuple[str, str], Case] = {}
    for case in sorted(cases(), key=lambda case: zlib.crc32(f"{case.name}{case.group}".encode())):
        drawn.setdefault(case.group, case)
    return list(drawn.values())

"""Random graphs test combinations of operations, which tests of single operations do not.

Fusion, views, memory that tensors share, storage that changes from float to half, several
partitions with nodes on the CPU between them: each depends on the neighbours of a node. Graphs of
some ten nodes, with branches and joins, are drawn at random and compared with the stock runtime's
reference kernels. A graph, its inputs and the options of the delegate all come from one number.

Operations on real numbers are chosen so that rounding errors stay small: none has steps (floor,
arg max) on computed values, and none amplifies errors much (division, powers). Integers are exact,
so any operation on them is possible.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import op_runtime
from tests.passes.texts import assert_texts_are_read_back
from tests.quantized import parameters
from tests.runtimes import make_interpreter
from tests.tolerance import MODEL_L2

MOST_ELEMENTS = 12_000  # of a tensor; fp16 keeps those of up to 4096 in float, so both occur
# Not TANH: the stock kernels ignore it where it is fused.
ACTIVATIONS = ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"]
MOST_HALF = 60_000  # half storage ends at 65504; results as far off as the tolerance stay below

Array = Any
Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class RandomGraph:
    """A model, its inputs twice, and options of the delegate."""

    nodes: tuple[str, ...]  # first, for the report of a failure
    options: dict[str, Any]
    engine: float  # draws one of the candidates of each family; 0: the plan's choice
    budget: float  # share of the plan's memory without a budget; 1: all of it
    batch: int  # of the third inference; 0: there is none
    model: bytes = dataclasses.field(repr=False)
    inputs: tuple[list[Array], list[Array]] = dataclasses.field(repr=False)
    floats: tuple[int, ...] = dataclasses.field(repr=False)  # all tensors of real numbers
    tensors: tuple[int, ...] = dataclasses.field(repr=False)  # all computed or given tensors
    sources: dict[int, tuple[int, ...]] = dataclasses.field(repr=False)  # the inputs of each
    rows: dict[int, tuple[int, int]] = dataclasses.field(
        repr=False
    )  # slices: of which tensor, which part


class Drawing:
    """A graph that grows node by node."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.maker = ModelMaker()
        self.rng = np.random.default_rng(random.getrandbits(32))  # of values, not of structure
        self.inputs: list[tuple[Shape, Any]] = []
        self.nodes: list[str] = []
        self.kind: Any = np.float32  # of the tensors that the next node reads
        self.pools: dict[Any, list[int]] = {}  # tensors that a node may read, by kind
        self.scales: dict[int, Quantization] = {}  # of quantised tensors
        self.read: set[int] = set()
        self.input_tensors: set[int] = set()
        self.sources: dict[int, tuple[int, ...]] = {}  # in the order of computation
        self.rows: dict[int, tuple[int, int]] = {}

    @property
    def floats(self) -> list[int]:
        """Tensors of the kind that the next node reads."""
        return self.pools.setdefault(self.kind, [])

    def add(self, tensor: int) -> None:
        """Let later nodes read a tensor."""
        dtype = self.maker.dtype(tensor).type
        kind = f"q{dtype.__name__}" if tensor in self.scales else dtype
        self.pools.setdefault(kind, []).append(tensor)

    def shape(self, tensor: int) -> Shape:
        return tuple(self.maker.shape(tensor))

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def size(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def flag(self) -> bool:
        return self.size(0, 1) == 1

    def input(
        self, shape: Shape, dtype: Any = np.float32, scale: Quantization | None = None
    ) -> int:
        tensor = self.maker.input(f"x{len(self.inputs)}", shape, dtype, quantization=scale)
        self.inputs.append((shape, np.dtype(dtype)))
        self.input_tensors.add(tensor)
        if scale is not None:
            self.scales[tensor] = scale
        return tensor

    def dtype(self) -> Any:
        """The element type of the current kind."""
        return getattr(np, self.kind[1:]) if isinstance(self.kind, str) else self.kind

    def is_float(self) -> bool:
        return self.kind is np.float32

    def alike(self, x: int) -> list[int]:
        """Tensors of the current kind and of the same scale."""
        return [t for t in self.floats if self.scales.get(t) == self.scales.get(x)]

    def like(self, x: int, shape: Shape) -> int:
        """A constant of the type and the scale of a tensor."""
        dtype = self.maker.dtype(x)
        return self.maker.constant(self.values(shape, dtype), quantization=self.scales.get(x))

    def values(self, shape: Shape, dtype: Any = np.float32) -> Array:
        if np.dtype(dtype).kind == "f":
            return self.rng.standard_normal(shape).astype(dtype)
        if np.dtype(dtype).kind == "b":
            return self.rng.integers(0, 2, shape).astype(dtype)
        if np.dtype(dtype).itemsize < 4:
            return parameters.random_integers(self.rng, shape, dtype)
        return self.rng.integers(-3, 4, shape).astype(dtype)

    def weights(self, shape: Shape, terms: int) -> int:
        """A constant factor that preserves the size of values."""
        return self.maker.constant(self.values(shape) / np.float32(np.sqrt(terms)))

    def ints(self, *values: Any, dtype: Any = np.int32) -> int:
        """A constant parameter, such as axes."""
        return self.maker.constant(np.array(values if len(values) != 1 else values[0], dtype))

    def op(self, name: str, inputs: Sequence[int | None], shape: Any, **options: Any) -> Any:
        """Add a node; its outputs become inputs of later ones. Moved integers keep their scale."""
        scale = options.get("quantization")
        moved = [self.scales[i] for i in inputs if i in self.scales]
        if "quantization" not in options and moved and options.get("dtype") is None:
            scale = moved[0]
            options["quantization"] = [scale] * len(shape) if isinstance(shape, list) else scale
        outputs = self.maker.op(name, inputs, shape, **options)
        self.read.update(i for i in inputs if i is not None)
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        for tensor in listed:
            self.sources[tensor] = tuple(i for i in inputs if i is not None)
            if scale is not None:
                self.scales[tensor] = scale
            if name != "TOPK_V2" or tensor == listed[0]:  # places of equal numbers may differ
                self.add(tensor)
        shapes = " ".join("x".join(map(str, self.shape(t))) or "scalar" for t in listed)
        self.nodes.append(f"{name}({', '.join(f't{i}' for i in inputs)}) -> t{listed[0]} {shapes}")
        return outputs

    def any_tensor(self) -> int:
        # The latest twice as often: chains fuse, and long ones are rare otherwise.
        return self.pick(self.floats[-1:] + self.floats)

    def with_rank(self, *ranks: int) -> int:
        """A tensor of the current kind, of one of these ranks, reshaped if there is none."""
        fitting = [t for t in self.floats if len(self.shape(t)) in ranks]
        if fitting:
            return self.pick(fitting[-1:] + fitting)
        tensor = self.any_tensor()
        shape = factors(int(np.prod(self.shape(tensor))), ranks[0])
        return self.op("RESHAPE", [tensor, self.ints(*shape)], shape, new_shape=shape)


def factors(count: int, rank: int) -> Shape:
    """Some shape with this many elements."""
    shape = []
    for _ in range(rank - 1):
        divisor = next((d for d in (3, 2, 5, 7) if count % d == 0), 1)
        shape.append(divisor)
        count //= divisor
    return (*shape, count)


def fits(shape: Shape) -> bool:
    return 0 < int(np.prod(shape)) <= MOST_ELEMENTS


def broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def window(size: int, reach: int, stride: int, padding: str) -> int:
    return -(-size // stride) if padding == "SAME" else (size - reach) // stride + 1


# Each adds one node or a usual group of nodes.


def activation(g: Drawing) -> None:
    x = g.any_tensor()
    names = ["RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ELU", "GELU", "HARD_SWISH"]
    name = g.pick([*names, "LEAKY_RELU", "LOGISTIC", "TANH", "ABS", "NEG", "SIN", "COS"])
    if name == "ELU" and g.scales:
        # With ELU stock runs its optimized kernels (`resolver`), and those of quantised MEAN,
        # QUANTIZE and DEPTHWISE_CONV_2D differ by one from the reference kernels.
        name = "RELU"
    options = {"alpha": 0.25} if name == "LEAKY_RELU" else {}
    g.op(name, [x], g.shape(x), **options)


def prelu(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2)
    slopes = g.maker.constant(np.abs(g.values(g.shape(x)[-1:])).clip(0, 1))
    g.op("PRELU", [x, slopes], g.shape(x))


def join(g: Drawing) -> None:
    """Two branches, or a branch and itself, or a constant."""
    x = g.any_tensor()
    partners = [
        t
        for t in g.floats
        if (s := broadcast(g.shape(x), g.shape(t))) is not None and fits(s) and len(s) <= 4
    ] or [x]
    y = g.pick([*partners, None])
    if y is None:
        shape = tuple(1 if g.flag() else d for d in g.shape(x))
        y = g.maker.constant(g.values(shape))
    shape = broadcast(g.shape(x), g.shape(y))
    name = g.pick(["ADD", "SUB", "MAXIMUM", "MINIMUM", "MUL"])
    pair = [x, y] if g.flag() else [y, x]
    if name == "MUL":  # a gate, as in squeeze-and-excite blocks
        pair[1] = g.op("LOGISTIC", [pair[1]], g.shape(pair[1]))
    fused = {"fused_activation_function": g.pick(ACTIVATIONS)} if name in {"ADD", "SUB"} else {}
    g.op(name, pair, shape, **fused)


def add_n(g: Drawing) -> None:
    x = g.any_tensor()
    same = [t for t in g.floats if g.shape(t) == g.shape(x)]
    g.op("ADD_N", [x, *[g.pick(same) for _ in range(g.size(1, 3))]], g.shape(x))


def conv(g: Drawing) -> None:
    x = g.with_rank(4)
    n, h, w, c = g.shape(x)
    padding = g.pick(["SAME", "VALID"])
    filter_, stride, dilation = ((g.size(1, 3), g.size(1, 3)) for _ in range(3))
    if g.flag():  # as converters write a padded convolution with stride
        pads = [(0, 0), (g.size(0, 2), g.size(0, 2)), (g.size(0, 2), g.size(0, 2)), (0, 0)]
        padding = "VALID"
        h, w = h + sum(pads[1]), w + sum(pads[2])
        if fits((n, h, w, c)):
            x = g.op("PAD", [x, g.ints(pads)], (n, h, w, c))
    n, h, w, c = g.shape(x)
    reach = [(f - 1) * d + 1 for f, d in zip(filter_, dilation)]
    if padding == "VALID" and (reach[0] > h or reach[1] > w):
        padding = "SAME"
    out_h, out_w = (window(s, r, t, padding) for s, r, t in zip((h, w), reach, stride))
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "fused_activation_function": g.pick(ACTIVATIONS),
    }
    area = filter_[0] * filter_[1]
    if g.flag():
        groups = g.pick([d for d in (1, 1, 2, 3) if c % d == 0])
        out = groups * g.size(1, 9)
        weights = g.weights((out, *filter_, c // groups), area * c // groups)
        name = "CONV_2D"
    else:
        multiplier = g.pick([1, 1, 2])
        out = c * multiplier
        weights = g.weights((1, *filter_, out), area)
        options["depth_multiplier"] = multiplier
        name = "DEPTHWISE_CONV_2D"
    if fits((n, out_h, out_w, out)):
        bias = g.maker.constant(g.values((out,)))  # the stock kernels require one
        g.op(name, [x, weights, bias], (n, out_h, out_w, out), **options)


def transpose_conv(g: Drawing) -> None:
    x = g.with_rank(4)
    n, h, w, c = g.shape(x)
    stride, filter_, out = (g.size(1, 2), g.size(1, 3)), (g.size(1, 3), g.size(1, 3)), g.size(1, 5)
    shape = (n, h * stride[0], w * stride[1], out)
    if fits(shape):
        weights = g.weights((out, *filter_, c), filter_[0] * filter_[1] * c)
        options = {"padding": "SAME", "stride_h": stride[0], "stride_w": stride[1]}
        g.op("TRANSPOSE_CONV", [g.ints(*shape), weights, x], shape, **options)


def pool(g: Drawing) -> None:
    x = g.with_rank(4)
    n, h, w, c = g.shape(x)
    padding = g.pick(["SAME", "VALID"])
    filter_ = (g.size(1, min(h, 4)), g.size(1, min(w, 4)))
    stride = (g.size(1, 3), g.size(1, 3))
    shape = (n, *(window(s, f, t, padding) for s, f, t in zip((h, w), filter_, stride)), c)
    g.op(
        g.pick(["MAX_POOL_2D", "AVERAGE_POOL_2D"]),
        [x],
        shape,
        padding=padding,
        filter_height=filter_[0],
        filter_width=filter_[1],
        stride_h=stride[0],
        stride_w=stride[1],
        fused_activation_function=g.pick(ACTIVATIONS),
    )


def fully_connected(g: Drawing) -> None:
    x = g.with_rank(2, 3, 4)
    *rows, depth = g.shape(x)
    cols = g.size(1, 17)
    keep = len(rows) > 1 or g.flag()
    if fits((*rows, cols)):
        bias = g.pick([None, g.maker.constant(g.values((cols,)))])
        options = {"keep_num_dims": keep, "fused_activation_function": g.pick(ACTIVATIONS)}
        weights = g.weights((cols, depth), depth)
        g.op("FULLY_CONNECTED", [x, weights, bias], (*rows, cols), **options)


def attention(g: Drawing) -> None:
    """Weighted means of the rows of a tensor; the weights come from the tensor too."""
    x = g.with_rank(3, 4)
    *batch, rows, depth = g.shape(x)
    if not fits((*batch, rows, rows)):
        return
    scale = g.maker.constant(np.float32(0.1 / np.sqrt(depth)))
    scaled = g.op("MUL", [x, scale], g.shape(x))
    scores = g.op("BATCH_MATMUL", [scaled, x], (*batch, rows, rows), adj_y=True)
    shares = g.op("SOFTMAX", [scores], (*batch, rows, rows), beta=1.0)
    g.op("BATCH_MATMUL", [shares, x], g.shape(x))


def softmax(g: Drawing) -> None:
    x = g.with_rank(2, 3, 4)
    name = g.pick(["SOFTMAX", "LOG_SOFTMAX"])
    g.op(name, [x], g.shape(x), **({"beta": 1.0} if name == "SOFTMAX" else {}))


def reduce(g: Drawing) -> None:
    x = g.any_tensor()
    shape = g.shape(x)
    if not shape:
        return
    axes = [i for i in range(len(shape)) if g.flag()] or [g.size(0, len(shape) - 1)]
    keep = g.flag()
    dims = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
    name = g.pick(["MEAN", "MEAN", "REDUCE_MAX", "REDUCE_MIN"])
    signed = [a - len(shape) if g.flag() else a for a in axes]
    g.op(name, [x, g.maker.constant(np.array(signed, np.int32))], dims, keep_dims=keep)


def cumsum(g: Drawing) -> None:
    x = g.with_rank(2, 3, 4)
    axis = g.size(0, len(g.shape(x)) - 1)
    if g.shape(x)[axis] <= 8:
        flags = {"exclusive": g.flag(), "reverse": g.flag()}
        g.op("CUMSUM", [x, g.ints(axis)], g.shape(x), **flags)


def top_k(g: Drawing) -> None:
    x = g.with_rank(1, 2, 3)
    shape = (*g.shape(x)[:-1], g.size(1, min(3, g.shape(x)[-1])))
    # The positions of equal numbers may differ, so no node reads them.
    types = {"dtype": [g.dtype(), np.int32], "quantization": None}
    g.op("TOPK_V2", [x, g.ints(shape[-1])], [shape, shape], **types)


def reshape(g: Drawing) -> None:
    x = g.any_tensor()
    shape = factors(int(np.prod(g.shape(x))), g.size(1, 4))
    name = g.pick(["RESHAPE", "EXPAND_DIMS", "SQUEEZE"])
    if name == "EXPAND_DIMS" and len(g.shape(x)) < 4:
        axis = g.size(0, len(g.shape(x)))
        g.op(name, [x, g.ints(axis)], (*g.shape(x)[:axis], 1, *g.shape(x)[axis:]))
    elif name == "SQUEEZE" and 1 in g.shape(x)[:-1]:
        axis = g.shape(x).index(1)
        g.op(name, [x], (*g.shape(x)[:axis], *g.shape(x)[axis + 1 :]), squeeze_dims=[axis])
    else:
        g.op("RESHAPE", [x, g.ints(shape)], shape, new_shape=shape)


def transpose(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2)
    perm = g.random.sample(range(len(g.shape(x))), len(g.shape(x)))
    g.op("TRANSPOSE", [x, g.ints(perm)], tuple(g.shape(x)[p] for p in perm))


def concatenate(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2, 1)
    shape = g.shape(x)
    axis = g.size(0, len(shape) - 1)
    fitting = [
        t
        for t in g.alike(x)
        if len(g.shape(t)) == len(shape)
        and all(a == b for i, (a, b) in enumerate(zip(g.shape(t), shape)) if i != axis)
    ]
    parts = [x, *(g.pick(fitting) for _ in range(g.size(1, 3)))]
    if g.size(0, 4) == 0:
        parts.append(g.like(x, shape))
    whole = (*shape[:axis], sum(g.shape(t)[axis] for t in parts), *shape[axis + 1 :])
    if fits(whole):
        g.op("CONCATENATION", parts, whole, axis=g.pick([axis, axis - len(shape)]))


def pack(g: Drawing) -> None:
    x = g.with_rank(3, 2, 1)
    same = [t for t in g.alike(x) if g.shape(t) == g.shape(x)]
    parts = [x, *(g.pick(same) for _ in range(g.size(0, 2)))]
    axis = g.size(0, len(g.shape(x)))
    shape = (*g.shape(x)[:axis], len(parts), *g.shape(x)[axis:])
    if fits(shape):
        g.op("PACK", parts, shape, axis=axis, values_count=len(parts))


def split(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2, 1)
    shape = g.shape(x)
    axis = max(range(len(shape)), key=lambda i: shape[i])

    def part(size: int) -> Shape:
        return (*shape[:axis], size, *shape[axis + 1 :])

    extent = shape[axis]
    equal = [n for n in (2, 3) if extent % n == 0]
    name = g.pick(["SPLIT", "SPLIT_V", "UNPACK"])
    if name == "UNPACK" and extent <= 5:
        rest = (*shape[:axis], *shape[axis + 1 :])
        g.op(name, [x], [rest] * extent, num=extent, axis=axis)
    elif name == "SPLIT" and equal:
        n = g.pick(equal)
        g.op(name, [g.ints(axis), x], [part(extent // n)] * n, num_splits=n)
    elif extent > 1:
        first = g.size(1, extent - 1)
        sizes = [first, extent - first]
        outputs = [part(size) for size in sizes]
        g.op("SPLIT_V", [x, g.ints(sizes), g.ints(axis)], outputs, num_splits=2)


def slice_(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2, 1)
    shape = g.shape(x)
    begin = [g.size(0, d - 1) for d in shape]
    end = [g.size(b + 1, d) for b, d in zip(begin, shape)]
    sizes = [e - b for b, e in zip(begin, end)]
    if g.flag():
        g.op("SLICE", [x, g.ints(begin), g.ints(sizes)], tuple(sizes))
        return
    steps = [g.size(1, 2) for _ in shape]
    index = 1 if len(shape) > 1 and g.flag() else 0  # of the first axis, a mask
    dims = [-(-size // step) for size, step in zip(sizes, steps)][index:]
    limits = [g.ints([*values]) for values in (begin, end, steps)]
    result = g.op("STRIDED_SLICE", [x, *limits], tuple(dims), shrink_axis_mask=index)
    if index:
        g.rows[result] = (x, begin[0])


def pad(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2)
    name = g.pick(["PAD", "PADV2", "MIRROR_PAD"])
    most = [min(2, d - 1) if name == "MIRROR_PAD" else 2 for d in g.shape(x)]
    pads = [(g.size(0, m), g.size(0, m)) for m in most]
    shape = tuple(d + sum(p) for d, p in zip(g.shape(x), pads))
    if fits(shape):
        value = [g.like(x, ())] if name == "PADV2" else []
        options = {"mode": g.pick(["REFLECT", "SYMMETRIC"])} if name == "MIRROR_PAD" else {}
        g.op(name, [x, g.ints(pads), *value], shape, **options)


def resize(g: Drawing) -> None:
    x = g.with_rank(4)
    n, h, w, c = g.shape(x)
    name = g.pick(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
    if not g.is_float():
        name = "RESIZE_NEAREST_NEIGHBOR"
    sizes = (g.size(1, 2 * h), g.size(1, 2 * w))
    flags = g.pick([{}, {"align_corners": True}, {"half_pixel_centers": True}])
    if fits((n, *sizes, c)):
        g.op(name, [x, g.ints(sizes)], (n, *sizes, c), **flags)


def tile(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2, 1)
    multiples = [g.size(1, 2) for _ in g.shape(x)]
    shape = tuple(d * m for d, m in zip(g.shape(x), multiples))
    if fits(shape):
        g.op("TILE", [x, g.ints([*multiples])], shape)


def reverse(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2, 1)
    axis = g.size(0, len(g.shape(x)) - 1)
    g.op("REVERSE_V2", [x, g.ints([axis])], g.shape(x))


def space_to_depth(g: Drawing) -> None:
    if g.dtype() is np.int16:
        return  # the stock kernels do not support such integers
    x = g.with_rank(4)
    n, h, w, c = g.shape(x)
    if h % 2 == 0 and w % 2 == 0:
        g.op("SPACE_TO_DEPTH", [x], (n, h // 2, w // 2, c * 4), block_size=2)
    elif c % 4 == 0:
        g.op("DEPTH_TO_SPACE", [x], (n, h * 2, w * 2, c // 4), block_size=2)
    else:
        shape = (n * 4, (h + 1) // 2, (w + 1) // 2, c)
        pads = [(0, h % 2), (w % 2, 0)]
        g.op("SPACE_TO_BATCH_ND", [x, g.ints([2, 2]), g.ints(pads)], shape)


def gather(g: Drawing) -> None:
    """By positions that a node computes."""
    x = g.with_rank(4, 3, 2, 1)
    shape, axis = g.shape(x), g.size(0, len(g.shape(x)) - 1)
    count = g.size(1, 4)
    limit = g.maker.constant(np.int32(shape[axis] - 1))
    places = g.op("MINIMUM", [g.input((count,), np.int32), limit], (count,))
    places = g.op("MAXIMUM", [places, g.maker.constant(np.int32(0))], (count,))
    whole = (*shape[:axis], count, *shape[axis + 1 :])
    if not fits(whole):
        return
    moved = {"dtype": g.maker.dtype(x), "quantization": g.scales.get(x)}
    if axis == 0 and g.flag():
        rows = g.op("RESHAPE", [places, g.ints(count, 1)], (count, 1), new_shape=(count, 1))
        g.op("GATHER_ND", [x, rows], whole, **moved)
    else:
        g.op("GATHER", [x, places], whole, axis=axis, **moved)


def select(g: Drawing) -> None:
    """By comparing integers, which are exact."""
    x = g.with_rank(4, 3, 2, 1)
    shape = g.shape(x)
    same = [t for t in g.alike(x) if g.shape(t) == shape]
    numbers = g.input(shape, np.int32)
    name = g.pick(["EQUAL", "GREATER", "LESS_EQUAL"])
    chosen = g.op(name, [numbers, g.maker.constant(np.int32(1))], shape, dtype=np.bool_)
    pair = {"dtype": g.maker.dtype(x), "quantization": g.scales.get(x)}
    g.op("SELECT_V2", [chosen, x, g.pick(same)], shape, **pair)


def cast(g: Drawing) -> None:
    x = g.any_tensor()
    types = {"in_data_type": np.int32, "out_data_type": np.float32}
    numbers = g.op("CAST", [g.input(g.shape(x), np.int32)], g.shape(x), dtype=np.float32, **types)
    g.op("ADD", [x, numbers], g.shape(x))


# Integers, exactly.


def arithmetic(g: Drawing) -> None:
    """Of two tensors of integers, or of one and a constant."""
    x = g.any_tensor()
    partners = [
        t for t in g.floats if (s := broadcast(g.shape(x), g.shape(t))) is not None and fits(s)
    ]
    y = g.pick(partners) if g.flag() else g.like(x, g.shape(x)[-1:])
    shape = broadcast(g.shape(x), g.shape(y))
    if len(shape) > 4:
        return
    names = ["ADD", "SUB", "MAXIMUM", "MINIMUM", "FLOOR_MOD"]
    name = g.pick([*names, "FLOOR_DIV"] if g.kind is np.int32 else names)
    if name.startswith("FLOOR"):  # not by zero
        y = g.maker.constant(np.array(g.pick([-3, 2, 5]), g.dtype()))
        shape = g.shape(x)
    g.op(name, [x, y], shape)


def smaller(g: Drawing) -> None:
    """Sums of sums would overflow, which is undefined in C."""
    x = g.any_tensor()
    bound = [g.maker.constant(np.array(v, g.dtype())) for v in (-100, 100)]
    x = g.op("MAXIMUM", [x, bound[0]], g.shape(x))
    x = g.op("MINIMUM", [x, bound[1]], g.shape(x))
    g.op(g.pick(["ABS", "NEG"]) if g.kind is np.int32 else "NEG", [x], g.shape(x))


def fold(g: Drawing) -> None:
    x = g.with_rank(2, 3, 4, 1)
    shape = g.shape(x)
    axes = [i for i in range(len(shape)) if g.flag()] or [0]
    keep = g.flag()
    dims = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
    names = ["REDUCE_ANY", "REDUCE_ALL"] if g.kind is np.bool_ else ["REDUCE_MAX", "REDUCE_MIN"]
    if g.kind in {np.int32, np.int64}:
        names.append("SUM")
    g.op(g.pick(names), [x, g.ints([*axes])], dims, keep_dims=keep)


def extremum(g: Drawing) -> None:
    if g.dtype() in {np.int64, np.int16}:
        return  # the stock kernels support neither
    x = g.with_rank(1, 2, 3, 4)
    axis = g.size(0, len(g.shape(x)) - 1)
    shape = (*g.shape(x)[:axis], *g.shape(x)[axis + 1 :])
    name = g.pick(["ARG_MAX", "ARG_MIN"])
    g.op(name, [x, g.ints(axis)], shape, dtype=np.int32, output_type=np.int32, quantization=None)


def comparison(g: Drawing) -> None:
    x = g.any_tensor()
    name = g.pick(["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"])
    y = g.like(x, g.shape(x)[-1:])
    if len(g.shape(x)) <= 4:
        g.op(name, [x, y], g.shape(x), dtype=np.bool_, quantization=None)


def logic(g: Drawing) -> None:
    x = g.any_tensor()
    same = [t for t in g.floats if g.shape(t) == g.shape(x)]
    name = g.pick(["LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"])
    g.op(name, [x] if name == "LOGICAL_NOT" else [x, g.pick(same)], g.shape(x))


def one_hot(g: Drawing) -> None:
    x = g.with_rank(1, 2, 3)
    depth = g.size(1, 5)
    if g.kind is np.int32 and fits((*g.shape(x), depth)):
        values = [g.maker.constant(np.array(v, np.float32)) for v in (1.5, -0.5)]
        shape = (*g.shape(x), depth)
        g.op("ONE_HOT", [x, g.ints(depth), *values], shape, dtype=np.float32, axis=-1)


def to_float(g: Drawing) -> None:
    x = g.any_tensor()
    if x in g.scales:
        g.op("DEQUANTIZE", [x], g.shape(x), dtype=np.float32, quantization=None)
    else:
        types = {"in_data_type": g.dtype(), "out_data_type": np.float32}
        g.op("CAST", [x], g.shape(x), dtype=np.float32, **types)


def spread(g: Drawing) -> None:
    x = g.with_rank(1, 2, 3)
    shape = (g.size(1, 3), *g.shape(x))
    if fits(shape):
        g.op("BROADCAST_TO", [x, g.ints(shape)], shape, version=2)


# Quantised tensors, exactly as the reference kernels compute.


def new_scale(g: Drawing) -> Quantization:
    return parameters.random_quantization(g.rng, g.dtype())


def q_join(g: Drawing) -> None:
    x = g.any_tensor()
    partners = [
        t
        for t in g.floats
        if (s := broadcast(g.shape(x), g.shape(t))) is not None and fits(s) and len(s) <= 4
    ]
    y = g.pick([*partners, x]) if len(g.shape(x)) <= 4 else x
    shape = broadcast(g.shape(x), g.shape(y))
    if len(shape) > 4:
        return
    names = ["ADD", "SUB", "MUL"] if g.dtype() is not np.int16 else ["ADD", "MUL"]
    name = g.pick(names)
    fused = {"fused_activation_function": g.pick(ACTIVATIONS)}
    g.op(name, [x, y], shape, quantization=new_scale(g), **fused)


def q_function(g: Drawing) -> None:
    x = g.any_tensor()
    if g.dtype() is np.int16:
        scale = Quantization(1 / 32768)
        g.op(g.pick(["LOGISTIC", "TANH"]), [x], g.shape(x), quantization=scale)
        return
    name = g.pick(["RELU", "LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH"])
    options = {"alpha": 0.25} if name == "LEAKY_RELU" else {}
    low = 0 if g.dtype() is np.uint8 else -128
    scales = {"LOGISTIC": Quantization(1 / 256, low), "TANH": Quantization(1 / 128, low + 128)}
    g.op(name, [x], g.shape(x), quantization=scales.get(name) or new_scale(g), **options)


def q_conv(g: Drawing) -> None:
    x = g.with_rank(4)
    n, h, w, c = g.shape(x)
    filter_, stride = (g.size(1, 3), g.size(1, 3)), (g.size(1, 2), g.size(1, 2))
    padding = "VALID" if filter_[0] <= h and filter_[1] <= w and g.flag() else "SAME"
    shape = [window(s, r, t, padding) for s, r, t in zip((h, w), filter_, stride)]
    weights_type = np.uint8 if g.dtype() is np.uint8 else np.int8
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": 1,
        "dilation_w_factor": 1,
        "fused_activation_function": g.pick(ACTIVATIONS),
    }
    if g.flag():
        out, dims, name, depth = g.size(1, 9), None, "CONV_2D", c
        dims, axis = (out, *filter_, c), 0
    else:
        out, name, depth = c, "DEPTHWISE_CONV_2D", 1
        dims, axis, options["depth_multiplier"] = (1, *filter_, c), 3, 1
    if not fits((n, *shape, out)):
        return
    per_channel = weights_type is np.int8 and g.flag()
    own = parameters.weights_quantization(g.rng, weights_type, out, axis, per_channel)
    values = parameters.random_integers(g.rng, dims, weights_type)
    weights = g.maker.constant(
        np.maximum(values, -127 if weights_type is np.int8 else 0), quantization=own
    )
    bias = parameters.add_bias(g.maker, g.rng, g.dtype(), g.scales[x], own, out)
    terms = filter_[0] * filter_[1] * depth
    result = parameters.output_quantization(g.rng, g.dtype(), g.scales[x], own, terms)
    g.op(name, [x, weights, bias], (n, *shape, out), quantization=result, version=3, **options)


def q_fully_connected(g: Drawing) -> None:
    x = g.with_rank(2)
    rows, depth = g.shape(x)
    cols = g.size(1, 17)
    weights_type = np.uint8 if g.dtype() is np.uint8 else np.int8
    own = parameters.weights_quantization(g.rng, weights_type, cols, 0, False)
    weights = g.maker.constant(
        parameters.random_integers(g.rng, (cols, depth), weights_type), quantization=own
    )
    bias = parameters.add_bias(g.maker, g.rng, g.dtype(), g.scales[x], own, cols)
    result = parameters.output_quantization(g.rng, g.dtype(), g.scales[x], own, depth)
    fused = {"fused_activation_function": g.pick(ACTIVATIONS)}
    version = 7 if g.dtype() is np.int16 else 4
    g.op(
        "FULLY_CONNECTED",
        [x, weights, bias],
        (rows, cols),
        quantization=result,
        version=version,
        **fused,
    )


def q_pool(g: Drawing) -> None:
    pool(g)


def q_softmax(g: Drawing) -> None:
    x = g.with_rank(2, 3, 4)
    if g.shape(x)[-1] >= 512:
        return  # the reference kernel aborts the process where the exponentials sum up to 512
    scales = {
        np.int8: Quantization(1 / 256, -128),
        np.uint8: Quantization(1 / 256),
        np.int16: Quantization(1 / 32768),
    }
    g.op("SOFTMAX", [x], g.shape(x), beta=1.0, quantization=scales[g.dtype()])


def rescale(g: Drawing) -> None:
    x = g.any_tensor()
    if g.dtype() is not np.int16:
        g.op("QUANTIZE", [x], g.shape(x), quantization=new_scale(g), dtype=g.dtype())


def q_mean(g: Drawing) -> None:
    x = g.with_rank(4)
    n, _, _, c = g.shape(x)
    if g.dtype() is np.int8:
        g.op("MEAN", [x, g.ints([1, 2])], (n, 1, 1, c), keep_dims=True, quantization=new_scale(g))


# Steps by the kind of the tensors that they read.
MOVES = [reshape, transpose, concatenate, pack, split, slice_, pad, tile, reverse, space_to_depth]
MOVES += [gather, select, resize]
FLOATS = [activation, prelu, join, add_n, conv, transpose_conv, pool, fully_connected, attention]
FLOATS += [softmax, reduce, cumsum, top_k, cast, *MOVES, spread]
# Networks mostly consist of joined branches and layers with weights.
FLOATS += [activation, join, join, conv, conv, concatenate, reshape]
# Integers that are not quantised stay small, because overflow is undefined.
INTEGERS = [arithmetic, smaller, smaller, fold, extremum, comparison, one_hot, to_float]
INTEGERS += [reshape, transpose, concatenate, slice_, tile, reverse, gather, select, top_k, spread]
BOOLS = [logic, logic, fold, reshape, transpose]
QUANTISED = [q_join, q_join, q_function, q_conv, q_conv, q_fully_connected, q_pool, q_softmax]
QUANTISED += [rescale, q_mean, to_float, extremum, *MOVES]


def steps_of(kind: Any) -> list[Any]:
    """The steps of a graph for tensors of a kind."""
    if isinstance(kind, str):
        return QUANTISED
    return {np.float32: FLOATS, np.bool_: BOOLS}.get(kind, INTEGERS)


def random_graph(random: Random) -> RandomGraph:
    """A graph of 5 to about 12 nodes."""
    g = Drawing(random)
    for _ in range(g.size(1, 2)):
        shape = (g.size(1, 2), g.size(1, 15), g.size(1, 15), g.size(1, 13))
        if g.flag():
            shape = shape[: g.size(1, 4)]
        kind = g.pick([*[np.float32] * 6, np.int32, np.int64, *["qint8"] * 3, "quint8", "qint16"])
        g.kind = kind
        scale = new_scale(g) if isinstance(kind, str) else None
        g.add(g.input(shape, g.dtype(), scale))
    wanted = g.size(5, 12)
    for _ in range(10 * wanted):  # a step may find nothing to do
        if len(g.nodes) >= wanted:
            break
        g.kind = g.pick([kind for kind, pool in g.pools.items() if pool])
        g.pick(steps_of(g.kind))(g)
    return finished(g)


def finished(g: Drawing) -> RandomGraph:
    """The drawn graph with outputs, inputs and options."""
    all_ = sorted(t for pool in g.pools.values() for t in pool)
    computed = [t for t in all_ if not is_input(g, t)]
    ends = [t for t in computed if t not in g.read]
    inner = [t for t in computed if t in g.read]
    # Not every end: the other nodes compute unused results.
    outputs = [t for t in ends[:-1] if g.size(0, 3) > 0] + ends[-1:]
    outputs += [t for t in inner if g.size(0, 7) == 0]
    g.maker.output(*(outputs or all_[-1:]))
    alone = g.pick([0, 0, 1, 3])  # tenths of the nodes that stay on the CPU
    half = g.flag()
    options = {
        "precision": "fp16" if half else "fp32",
        "exclude": [i for i in range(len(g.nodes)) if g.size(1, 10) <= alone],
        "half_io": half and g.flag(),
        "share_memory": g.flag(),
        "verify": g.pick(["off", "off", "off", "first"]),
        "profile": g.size(0, 7) == 0,
        "min_nodes": g.pick([1, 1, 1, 2]),
        "chain": g.pick(["off", "off", "off", "on"]),
    }
    first, second = ([g.values(*declared) for declared in g.inputs] for _ in range(2))
    return RandomGraph(
        tuple(g.nodes),
        options,
        g.random.random() if g.size(0, 3) == 0 else 0.0,
        g.pick([1.0, 1.0, 0.9, 0.6, 0.3]),
        g.pick([0, 0, 1, 3]),
        g.maker.build(),
        (first, second),
        tuple(g.pools.get(np.float32, [])),
        tuple(all_),
        g.sources,
        g.rows,
    )


def is_input(g: Drawing, tensor: int) -> bool:
    return tensor in g.input_tensors


def resolver(graph: RandomGraph) -> str:
    """The reference kernels; they lack ELU."""
    return "no_delegate" if any(node.startswith("ELU") for node in graph.nodes) else "ref"


class Stock:
    """The runtime's reference kernels."""

    def __init__(self, graph: RandomGraph) -> None:
        self.interpreter = make_interpreter(
            op_runtime(), graph.model, resolver=resolver(graph), preserve_all_tensors=True
        )
        self.floats, self.tensors = graph.floats, graph.tensors
        self.sources, self.rows = graph.sources, graph.rows

    def has_empty(self) -> bool:
        """Whether a tensor of the last run has no elements."""
        return any(self.interpreter.get_tensor(t).size == 0 for t in self.tensors)

    def undefined(self, precision: str) -> list[bool]:
        """For each output, whether nothing defines its values in the last run."""
        tensor = self.interpreter.get_tensor
        # With a smaller batch a row may be missing: stock then reads past the axis.
        found = {t for t, (x, row) in self.rows.items() if row >= tensor(x).shape[0]}
        if precision in ("fp16", "bf16"):  # infinite in half storage, and then the rest follows
            found |= {t for t in self.floats if np.abs(tensor(t)).max(initial=0) > MOST_HALF}
        for result, inputs in self.sources.items():
            if found.intersection(inputs):
                found.add(result)
        return [d["index"] in found for d in self.interpreter.get_output_details()]

    def run(self, inputs: list[Array]) -> tuple[list[Array], float]:
        """Outputs, and the largest root mean square of any tensor."""
        outputs = run_shaped(self.interpreter, inputs)
        floats = [self.interpreter.get_tensor(t).astype(np.float64) for t in self.floats]
        squares = [np.mean(values**2) for values in floats if values.size]
        return outputs, float(np.sqrt(max(1.0, *squares, 0.0)))


def run_shaped(interpreter: Any, inputs: list[Array]) -> list[Array]:
    """Run once, with the shapes that the inputs have."""
    details = interpreter.get_input_details()
    for detail, value in zip(details, inputs):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], list(value.shape))
    interpreter.allocate_tensors()
    for detail, value in zip(details, inputs):
        interpreter.set_tensor(detail["index"], np.asarray(value, order="C"))
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def make(graph: RandomGraph, device: str, **options: Any) -> tuple[Any, Any]:
    """The delegate and an interpreter with it."""
    options = {**graph.options, **options}
    if not compiles_every_chain(device):
        options["chain"] = "off"
    delegate = clgpu_delegate.load(device=device, warm_up=False, **options)
    return delegate, make_interpreter(op_runtime(), graph.model, [delegate], resolver(graph))


def compiles_every_chain(device: str) -> bool:
    """Whether no chain ends the compiler; one in 250 graphs has a chain that ends that of PoCL 3.1.

    Chains of chosen layers run on every device in tests/delegate/test_chains.py.
    """
    platforms = {
        name: d.platform for d in clgpu_delegate.devices() for name in (str(d.index), d.name)
    }
    return platforms.get(device) != "Portable Computing Language"


def with_options(graph: RandomGraph, device: str, **options: Any) -> tuple[Any, Any]:
    """As `make`, with the engines and the memory budget that the graph draws."""
    delegate, interpreter = make(graph, device, **options)
    plan = delegate.explain()
    more: dict[str, Any] = {}
    if graph.engine > 0:  # or the plan's choice, if that does not suit a node
        more["engines"] = {
            node.family: node.candidates[int(graph.engine * len(node.candidates))] + "|auto"
            for node in plan.nodes
            if node.candidates
        }
    peak = sum(partition.peak_bytes for partition in plan.partitions)
    if graph.budget < 1 and peak > 0:
        more["memory_budget"] = max(1, int(peak * graph.budget))
    if not more:
        return delegate, interpreter
    del interpreter
    try:
        return make(graph, device, **{**options, **more})
    except RuntimeError as error:
        least = re.search(r"smallest feasible budget is .*?(\d+) bytes", str(error))
        if least is None:
            raise
        return make(graph, device, **{**options, **more, "memory_budget": int(least[1])})


def resized(graph: RandomGraph) -> list[Array]:
    """Inputs of another batch size."""
    return [
        np.concatenate([x] * graph.batch)[: graph.batch] if x.ndim > 0 and x.size else x
        for x in graph.inputs[0]
    ]


def compare(graph: RandomGraph, device: str, **options: Any) -> str:
    """Run twice, so that the second run starts with the first one's memory content; then resized.

    Returns
    -------
    str
        ``"right"``, or ``"told"`` where the delegate, and in most cases stock, refuses the other
        batch size.
    """
    stock = Stock(graph)
    delegate, interpreter = with_options(graph, device, **options)
    for inputs in graph.inputs:
        check(graph, stock, run_shaped(interpreter, inputs), inputs, options)
    assert_texts_are_read_back(delegate)
    for node in delegate.explain().nodes:
        # Nodes that compute a constant stay with the node that reads it.
        code = "" if node.refusal is None else node.refusal.code
        allowed = code in ("", "option", "reader", "unknown_shape")
        allowed = allowed or (code == "device" and "memory" in node.reason)
        assert allowed, f"{node.index} {node.op}: {node.reason}"
    if graph.batch == 0:
        return "right"
    inputs = resized(graph)
    try:
        wanted = stock.run(inputs)
    except RuntimeError:
        wanted = None
    try:
        got = run_shaped(interpreter, inputs)
    except RuntimeError as error:
        # Kernels take no empty tensors, and at this point no node can go back to the CPU.
        # Stock reads beyond the axis, and leaves out what does not fill a row of weights.
        reasons = ("feasible budget", "is outside of an axis", "is not made of rows of")
        told = any(words in str(error) for words in reasons)
        if wanted is None or stock.has_empty() or told:
            return "told"
        message = f"stock takes another batch size, the delegate says: {error}"
        raise AssertionError(message) from error
    # If stock refuses it, the delegate may accept it: its shapes are those of its kernels.
    if wanted is not None:
        check(graph, stock, got, inputs, options)
    return "right"


def check(
    graph: RandomGraph, stock: Stock, got: list[Array], inputs: list[Array], options: dict[str, Any]
) -> None:
    """Fail if an output differs from stock's by more than the tolerance of whole networks."""
    wanted, scale = stock.run(inputs)
    precision = options.get("precision", graph.options["precision"])
    for i, (g, w, undefined) in enumerate(zip(got, wanted, stock.undefined(precision))):
        assert (g.shape, g.dtype) == (w.shape, w.dtype), f"output {i}: {g.shape} {g.dtype}"
        if undefined or g.size == 0:  # of a smaller batch: the window does not fit any more
            continue
        if g.dtype.kind != "f":
            differ = int((g != w).sum())
            assert differ == 0, f"output {i}: {differ} of {g.size} integers differ"
            continue
        # Where terms cancel, the error is still that of the terms.
        # The mean of no elements is NaN: both or neither.
        off = np.where(np.isnan(g) & np.isnan(w), 0, g.astype(np.float64) - w)
        error = float(np.sqrt(np.mean(off**2))) / scale
        limit = MODEL_L2[precision]
        assert error <= limit, f"output {i}: error {error:.2e} of {scale:.2g}, limit {limit}"

"""Random graphs: what no test of one operation sees, the ways in which operations meet.

Fusion, views, memory that tensors share, storage that changes from float to half, several
partitions with nodes on the CPU between them: each depends on the neighbours of a node. Graphs of
some ten nodes, with branches and joins, are drawn at random and compared with the stock kernels.

Operations are chosen so that rounding stays what it is: none has steps (floor, arg max) on computed
numbers, and none makes a small error much larger (division, powers).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from random import Random
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st

import clgpu_delegate
from tests import quick
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import MODEL_L2

# Of each device and precision; most of their time goes into compiling kernels.
EXAMPLES = 2 if quick.is_on() else 10

MOST_ELEMENTS = 12_000  # of a tensor; fp16 keeps those of up to 4096 in float, so both occur
# Not TANH: the stock kernels ignore it where it is fused.
ACTIVATIONS = ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"]

Array = Any
Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class RandomGraph:
    """A model, its inputs twice, and the nodes that stay on the CPU."""

    nodes: tuple[str, ...]  # first, for the report of a failure
    exclude: tuple[int, ...]
    half_io: bool
    share_memory: bool
    model: bytes = dataclasses.field(repr=False)
    inputs: tuple[list[Array], list[Array]] = dataclasses.field(repr=False)
    floats: tuple[int, ...] = dataclasses.field(repr=False)  # all tensors of real numbers


class Drawing:
    """A graph that grows node by node."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.maker = ModelMaker()
        self.rng = np.random.default_rng(random.getrandbits(32))  # of values, not of structure
        self.inputs: list[tuple[Shape, Any]] = []
        self.nodes: list[str] = []
        self.floats: list[int] = []  # tensors that a node may read
        self.read: set[int] = set()

    def shape(self, tensor: int) -> Shape:
        return tuple(self.maker.shape(tensor))

    def pick(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def size(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def flag(self) -> bool:
        return self.size(0, 1) == 1

    def input(self, shape: Shape, dtype: Any = np.float32) -> int:
        tensor = self.maker.input(f"x{len(self.inputs)}", shape, dtype)
        self.inputs.append((shape, np.dtype(dtype)))
        return tensor

    def values(self, shape: Shape, dtype: Any = np.float32) -> Array:
        if np.dtype(dtype).kind == "f":
            return self.rng.standard_normal(shape).astype(dtype)
        return self.rng.integers(-3, 4, shape).astype(dtype)

    def weights(self, shape: Shape, terms: int) -> int:
        """A constant that keeps the size of what it is multiplied with."""
        return self.maker.constant(self.values(shape) / np.float32(np.sqrt(terms)))

    def ints(self, *values: Any, dtype: Any = np.int32) -> int:
        """A constant parameter, such as axes."""
        return self.maker.constant(np.array(values if len(values) != 1 else values[0], dtype))

    def op(self, name: str, inputs: Sequence[int | None], shape: Any, **options: Any) -> Any:
        """Add a node; float outputs become inputs of later ones."""
        outputs = self.maker.op(name, inputs, shape, **options)
        self.read.update(i for i in inputs if i is not None)
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        self.floats += [t for t in listed if self.maker.dtype(t) == np.float32]
        shapes = " ".join("x".join(map(str, self.shape(t))) or "scalar" for t in listed)
        self.nodes.append(f"{name}({', '.join(f't{i}' for i in inputs)}) -> t{listed[0]} {shapes}")
        return outputs

    def any_tensor(self) -> int:
        # The latest twice as often: chains fuse, and long ones are rare otherwise.
        return self.pick(self.floats[-1:] + self.floats)

    def with_rank(self, *ranks: int) -> int:
        """A tensor of one of these ranks, reshaped where there is none."""
        fitting = [t for t in self.floats if len(self.shape(t)) in ranks]
        if fitting:
            return self.pick(fitting[-1:] + fitting)
        tensor = self.any_tensor()
        shape = factors(int(np.prod(self.shape(tensor))), ranks[0])
        return self.op("RESHAPE", [tensor, self.ints(*shape)], shape, new_shape=shape)


def factors(count: int, rank: int) -> Shape:
    """Some shape of so many elements."""
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
        bias = g.maker.constant(g.values((out,)))  # the stock kernels insist on one
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
    # The places of equal numbers may rightly differ: nobody reads them.
    g.op("TOPK_V2", [x, g.ints(shape[-1])], [shape, shape], dtype=[np.float32, np.int32])


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
        for t in g.floats
        if len(g.shape(t)) == len(shape)
        and all(a == b for i, (a, b) in enumerate(zip(g.shape(t), shape)) if i != axis)
    ]
    parts = [x, *(g.pick(fitting) for _ in range(g.size(1, 3)))]
    if g.size(0, 4) == 0:
        parts.append(g.maker.constant(g.values(shape)))
    whole = (*shape[:axis], sum(g.shape(t)[axis] for t in parts), *shape[axis + 1 :])
    if fits(whole):
        g.op("CONCATENATION", parts, whole, axis=g.pick([axis, axis - len(shape)]))


def pack(g: Drawing) -> None:
    x = g.with_rank(3, 2, 1)
    same = [t for t in g.floats if g.shape(t) == g.shape(x)]
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
    g.op("STRIDED_SLICE", [x, *limits], tuple(dims), shrink_axis_mask=index)


def pad(g: Drawing) -> None:
    x = g.with_rank(4, 3, 2)
    name = g.pick(["PAD", "PADV2", "MIRROR_PAD"])
    most = [min(2, d - 1) if name == "MIRROR_PAD" else 2 for d in g.shape(x)]
    pads = [(g.size(0, m), g.size(0, m)) for m in most]
    shape = tuple(d + sum(p) for d, p in zip(g.shape(x), pads))
    if fits(shape):
        value = [g.maker.constant(np.float32(0.5))] if name == "PADV2" else []
        options = {"mode": g.pick(["REFLECT", "SYMMETRIC"])} if name == "MIRROR_PAD" else {}
        g.op(name, [x, g.ints(pads), *value], shape, **options)


def resize(g: Drawing) -> None:
    x = g.with_rank(4)
    n, h, w, c = g.shape(x)
    name = g.pick(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
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
    """By places that a node computes."""
    x = g.with_rank(4, 3, 2, 1)
    shape, axis = g.shape(x), g.size(0, len(g.shape(x)) - 1)
    count = g.size(1, 4)
    limit = g.maker.constant(np.int32(shape[axis] - 1))
    places = g.op("MINIMUM", [g.input((count,), np.int32), limit], (count,))
    places = g.op("MAXIMUM", [places, g.maker.constant(np.int32(0))], (count,))
    whole = (*shape[:axis], count, *shape[axis + 1 :])
    if fits(whole):
        g.op("GATHER", [x, places], whole, axis=axis)


def select(g: Drawing) -> None:
    """By comparing integers: those are exact."""
    x = g.with_rank(4, 3, 2, 1)
    shape = g.shape(x)
    same = [t for t in g.floats if g.shape(t) == shape]
    numbers = g.input(shape, np.int32)
    name = g.pick(["EQUAL", "GREATER", "LESS_EQUAL"])
    chosen = g.op(name, [numbers, g.maker.constant(np.int32(1))], shape, dtype=np.bool_)
    g.op("SELECT_V2", [chosen, x, g.pick(same)], shape, dtype=np.float32)


def cast(g: Drawing) -> None:
    x = g.any_tensor()
    types = {"in_data_type": np.int32, "out_data_type": np.float32}
    numbers = g.op("CAST", [g.input(g.shape(x), np.int32)], g.shape(x), dtype=np.float32, **types)
    g.op("ADD", [x, numbers], g.shape(x))


STEPS = [activation, prelu, join, add_n, conv, transpose_conv, pool, fully_connected, attention]
STEPS += [softmax, reduce, cumsum, top_k, reshape, transpose, concatenate, pack, split, slice_]
STEPS += [pad, resize, tile, reverse, space_to_depth, gather, select, cast]
# Branches that meet and layers of weights are what networks are made of.
STEPS += [activation, join, join, conv, conv, concatenate, reshape]


def random_graph(random: Random) -> RandomGraph:
    """A graph of 5 to about 12 nodes."""
    g = Drawing(random)
    for _ in range(g.size(1, 2)):
        g.floats.append(g.input((g.size(1, 2), g.size(1, 15), g.size(1, 15), g.size(1, 13))))
    wanted = g.size(5, 12)
    while len(g.nodes) < wanted:  # a step may find nothing to do
        g.pick(STEPS)(g)

    ends = [t for t in g.floats if t not in g.read and not is_input(g, t)]
    inner = [t for t in g.floats if t in g.read and not is_input(g, t)]
    # Not every end: what is left computes nothing that anyone wants.
    outputs = [t for t in ends[:-1] if g.size(0, 3) > 0] + ends[-1:]
    outputs += [t for t in inner if g.size(0, 7) == 0]
    g.maker.output(*outputs)
    alone = g.pick([0, 1, 3])  # tenths of the nodes that stay on the CPU
    first, second = ([g.values(*declared) for declared in g.inputs] for _ in range(2))
    return RandomGraph(
        tuple(g.nodes),
        tuple(i for i in range(len(g.nodes)) if g.size(1, 10) <= alone),
        g.flag(),
        g.flag(),
        g.maker.build(),
        (first, second),
        tuple(g.floats),
    )


def is_input(g: Drawing, tensor: int) -> bool:
    return tensor < 2 and tensor in g.floats[:2]


def stock_results(graph: RandomGraph, inputs: list[Array]) -> tuple[list[Array], float]:
    """Outputs of the stock kernels, and the largest root mean square of any tensor on the way."""
    interpreter = make_interpreter(
        op_runtime(), graph.model, resolver="no_delegate", preserve_all_tensors=True
    )
    outputs = run_interpreter(interpreter, inputs)
    squares = [np.mean(interpreter.get_tensor(t).astype(np.float64) ** 2) for t in graph.floats]
    return outputs, float(np.sqrt(max(1.0, *squares)))


def compare(graph: RandomGraph, device: str, precision: str) -> None:
    """Run twice, so that the second run meets what the first one left in memory."""
    delegate = clgpu_delegate.load(
        device=device,
        precision=precision,
        exclude=graph.exclude,
        warm_up=False,
        half_io=precision == "fp16" and graph.half_io,
        share_memory=graph.share_memory,
    )
    interpreter = make_interpreter(op_runtime(), graph.model, [delegate], resolver="no_delegate")
    for inputs in graph.inputs:
        got = run_interpreter(interpreter, inputs)
        wanted, scale = stock_results(graph, inputs)
        for i, (g, w) in enumerate(zip(got, wanted)):
            assert (g.shape, g.dtype) == (w.shape, w.dtype)
            # Where terms cancel, the error is still that of the terms.
            error = float(np.sqrt(np.mean((g.astype(np.float64) - w) ** 2))) / scale
            limit = MODEL_L2[precision]
            assert error <= limit, f"output {i}: error {error:.2e} of {scale:.2g}, limit {limit}"
    for node in delegate.explain().nodes:
        # What computes a constant stays with the node that reads it.
        allowed = node.index in graph.exclude or "constant" in node.reason
        assert node.claimed or allowed, f"{node.index} {node.op}: {node.reason}"


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(random=st.randoms(use_true_random=False))
def test_random_graph_is_right(device, precision, random):
    graph = random_graph(random)
    hypothesis.note(str(graph))
    compare(graph, device, precision)

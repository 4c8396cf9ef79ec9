"""Writes docs/operations.md: where each operation of TensorFlow Lite runs, and with which types.

    python tools/render_operations.py           shows the differences
    python tools/render_operations.py --write   writes them

The page tells what the compiled extension does: each operation of each type is loaded as a model of
one node, and the page lists the types whose node is claimed. Compile first.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tflite

import clgpu_delegate
from clgpu_delegate import _core

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.model_maker import ModelMaker, Quantization  # noqa: E402
from tests.ops.composites import add_composite, row_norm_body  # noqa: E402
from tests.runtimes import make_interpreter  # noqa: E402
from tests.schema import members  # noqa: E402

PAGE = ROOT / "docs" / "operations.md"
TYPES = (
    "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16",
    "uint32", "bool", "complex64",
)  # fmt: skip
QUANTIZED = ("int16", "int8", "uint8")
SHAPE = (1, 4, 4, 8)
Build = Callable[["Node"], Any]

HEAD = """\
# Operations

What the delegate does with each builtin operation of TensorFlow Lite. The types are those of the
first input of data. int16, int8 and uint8 are quantised integers; where numbers are only moved,
they need no scale. ABS, ADD, MUL and the comparisons except NOT_EQUAL also take int16 without a
scale, and FLOOR_DIV and FLOOR_MOD divide the stored values, as the reference kernels do. Arithmetic
on float16 and bfloat16 computes in float and rounds each result once, to nearest even: on float16
where the reference kernels have it, and on bfloat16 wherever on float16. CAST, FLOOR, GREATER,
LESS, LOGISTIC, MAXIMUM, MINIMUM, NEG and TANH of bfloat16 equal the reference kernels in every
element; these have no other functions of it but ATAN2. uint16 and uint32 are moved, and computed
with where the reference kernels do so. Operations without a mark run as kernels on the device.

Tensors have up to 6 axes. Views, conversions of types, and arithmetic, comparisons and SELECT of
equal shapes take 8; so does BROADCAST_TO, if at most 6 are left after it has merged neighbours.

Shapes, axes and sizes may be computed at run time: the model is planned for their values, and again
when they change. Nodes that compute them of a few numbers are part of that. Where the device
computes them, or what WHERE, UNIQUE or SEGMENT_SUM finds decides on a size, a partition runs in
[stages](limits.md#sizes-that-an-inference-computes). SLICE and STRIDED_SLICE take a begin that is
computed at run time where the shape of the result does not depend on it. One outside of its axis is
moved into it.

- **planned**: the result follows from the shapes of tensors and from constants. It is computed
  while the model is planned, and again after a resize, and costs no kernel launch. The same holds
  for any operation whose inputs are such results.
- **view**: the result is the memory of the input with another shape: no kernel launch.
- **constants**: only constants are converted, once, at load time.
- **state**: the operation reads or changes a value that outlives an inference: a tensor that is
  uploaded before the other nodes of its partition run, and downloaded after them.
- **graphs**: the nodes of its graphs become nodes of the graph around it, or the host runs these
  graphs on the device.

WHILE is unrolled if its rounds can be counted while planning, from integers and booleans that are
constants and that no shape decides on, up to 4096 nodes and rounds and 64 MiB of weights that
several rounds read; IF is replaced by the graph that its condition chooses, if this is known then.
If it is not, and both graphs are small, kernels look at the condition ([Mixtures of
experts](experts.md)). Otherwise the graphs have plans of their own. The states of a loop and the
values of a branch stay on the device, and the host reads one bool: of a loop in each round, of a
branch once. States must keep their shapes, and both graphs of a branch must give the same shapes.
Where they do not, and if a graph has a node that needs the CPU, the runtime runs the loop or the
branch, and the delegate the nodes of its graphs. A loop that never ends does not return, as in the
runtime. If a body gives a state to another place than its own, the stock kernel overwrites states
that it has not copied yet; on the device all states change at once, as the source model says.

A node may still stay on the CPU because of its parameters or ranks: `clgpu explain MODEL` gives the
reason ([Nodes on the CPU](refusals.md)).

`python tools/render_operations.py --write` has written this page.
"""


COMPOSITES = """\
STABLEHLO_COMPOSITE runs as one kernel or a few if its name is odml.scaled_dot_product_attention,
odml.rms_norm, odml.l2_norm or odml.group_norm, and if its decomposition computes what the name
says: the delegate compares both, because the runtimes compute the decomposition. Any other
composite runs as the nodes of its decomposition, if the device takes all of them.\
"""


STABLEHLO = """\
Of the operations of StableHLO the runtimes have kernels for ADD, AND, COMPOSITE, GATHER, MAXIMUM,
MINIMUM, MULTIPLY, PAD, REDUCE_WINDOW, RNG_BIT_GENERATOR, SCATTER and SHIFT_LEFT. They do not load
models with any other.\
"""


class Node:
    """What a model of one node is made of."""

    def __init__(self, dtype: str) -> None:
        self.m = ModelMaker()
        self.dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        self.q = Quantization(1 / 256, 0) if dtype in QUANTIZED else None

    def x(self, shape: tuple[int, ...] = SHAPE) -> int:
        return self.m.input("x", shape, self.dtype, quantization=self.q)

    def ints(self, *values: int) -> int:
        return self.m.constant(np.array(values, np.int32))

    def scalar(self, value: int) -> int:
        return self.m.constant(np.array(value, np.int32))

    def filled(self, shape: tuple[int, ...], dtype: Any = None) -> int:
        dtype = np.dtype(dtype or self.dtype)
        quantization = None
        if self.q is not None and dtype.itemsize == 1:
            quantization = Quantization(0.5, 0)
        elif self.q is not None and dtype.itemsize > 2:
            quantization = Quantization(0.5 / 256, 0)
        return self.m.constant(np.ones(shape, dtype), quantization=quantization)

    def filled_like(self) -> int:
        """A scalar with the scale of the input."""
        return self.m.constant(np.array(1, self.dtype), quantization=self.q)

    def weights(self, shape: tuple[int, ...]) -> int:
        """Of products: those of int16 are int8."""
        return self.filled(shape, "int8" if self.dtype == np.int16 else self.dtype)

    def bias(self, channels: int) -> int:
        wide = {"int16": np.int64, "int8": np.int32, "uint8": np.int32}
        return self.filled((channels,), wide.get(self.dtype.name, self.dtype))

    def op(self, name: str, inputs: Any, to: Any = SHAPE, dtype: Any = None, **options: Any) -> Any:
        dtype = np.dtype(dtype or self.dtype)
        q = self.q if dtype == self.dtype else None
        return self.m.op(name, inputs, to, dtype=dtype, quantization=q, **options)


LSTMS = "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_LSTM"
RNNS = "RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN"


def one(name: str, **options: Any) -> Build:
    return lambda n: n.op(name, [n.x()], **options)


def two(name: str, **options: Any) -> Build:
    return lambda n: n.op(name, [n.x(), n.x()], **options)


def scaled(name: str, scales: dict[str, tuple[float, int]], **options: Any) -> Build:
    """An operation whose result has one scale for each quantised type."""

    def build(n: Node) -> Any:
        x = n.x()
        if n.q is not None:
            n.q = Quantization(*scales[n.dtype.name])
        return n.op(name, [x], **options)

    return build


def reduce(name: str) -> Build:
    return lambda n: n.op(name, [n.x(), n.ints(1)], (1, 4, 8))


def pool(name: str) -> Build:
    return one(name, padding="SAME", stride_w=1, stride_h=1, filter_width=2, filter_height=2)


_UNIT = {"int16": (1 / 32768, 0), "int8": (1 / 256, -128), "uint8": (1 / 256, 0)}
_SIGNED = {"int16": (1 / 32768, 0), "int8": (1 / 128, 0), "uint8": (1 / 128, 128)}
_LOG = {"int16": (16 / 32768, 0), "int8": (16 / 256, 127), "uint8": (16 / 256, 255)}

UNARY = """ABS CEIL COS ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG
    LOGICAL_NOT NEG RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SIGN SIN SQRT SQUARE"""
BINARY = """ADD ADD_N ATAN2 BITWISE_XOR DIV FLOOR_DIV FLOOR_MOD LOGICAL_AND LOGICAL_OR MAXIMUM
    MINIMUM MUL POW RIGHT_SHIFT SQUARED_DIFFERENCE STABLEHLO_ADD STABLEHLO_AND STABLEHLO_MAXIMUM
    STABLEHLO_MINIMUM STABLEHLO_MULTIPLY STABLEHLO_SHIFT_LEFT SUB"""
COMPARISONS = "EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL"
SEGMENTS = """SEGMENT_SUM UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD
    UNSORTED_SEGMENT_SUM"""
REDUCTIONS = "MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM"


def _convolution(n: Node) -> Any:
    operands = [n.x(), n.weights((8, 3, 3, 8)), n.bias(8)]
    return n.op("CONV_2D", operands, padding="SAME", stride_w=1, stride_h=1)


def _depthwise(n: Node) -> Any:
    operands = [n.x(), n.weights((1, 3, 3, 8)), n.bias(8)]
    options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "depth_multiplier": 1}
    return n.op("DEPTHWISE_CONV_2D", operands, **options)


def _transposed(n: Node) -> Any:
    operands = [n.ints(1, 8, 8, 8), n.weights((8, 3, 3, 8)), n.x()]
    return n.op("TRANSPOSE_CONV", operands, (1, 8, 8, 8), padding="SAME", stride_w=2, stride_h=2)


def _dense(n: Node) -> Any:
    return n.op("FULLY_CONNECTED", [n.x((4, 8)), n.weights((8, 8)), n.bias(8)], (4, 8))


def _transposed_product(n: Node) -> Any:
    return n.op("BATCH_MATMUL", [n.x((1, 4, 8)), n.x((1, 8, 4))], (1, 4, 4))


def _split(n: Node) -> Any:
    return n.op("SPLIT", [n.scalar(3), n.x()], [(1, 4, 4, 4)] * 2, num_splits=2)


def _split_v(n: Node) -> Any:
    operands = [n.x(), n.ints(2, 6), n.scalar(3)]
    return n.op("SPLIT_V", operands, [(1, 4, 4, 2), (1, 4, 4, 6)], num_splits=2)


def _top_k(n: Node) -> Any:
    operands = [n.x(), n.scalar(2)]
    return n.m.op("TOPK_V2", operands, [(1, 4, 4, 2)] * 2, dtype=[n.dtype, np.int32],
                  quantization=[n.q, None])  # fmt: skip


def _quantize(n: Node) -> Any:
    return n.m.op("QUANTIZE", [n.x()], SHAPE, dtype=np.int8, quantization=Quantization(0.1, 0))


def _densify(n: Node) -> Any:
    dense = np.zeros((8, 16), n.dtype)
    dense[::2, ::4] = 1
    weights = n.op("DENSIFY", [n.m.sparse_constant(dense)], (8, 16))
    return n.op("FULLY_CONNECTED", [n.x((4, 16)), weights], (4, 8))


def _composite(n: Node) -> Any:
    body = row_norm_body(1e-6, mean="MUL")
    return add_composite(n.m, "odml.rms_norm", [n.x()], {"epsilon": 1e-6}, body, dtype=n.dtype)


def _space_to_batch(n: Node) -> Any:
    operands = [n.x(), n.ints(2, 2), n.m.constant(np.zeros((2, 2), np.int32))]
    return n.op("SPACE_TO_BATCH_ND", operands, (4, 2, 2, 8))


def _batch_to_space(n: Node) -> Any:
    operands = [n.x((4, 2, 2, 8)), n.ints(2, 2), n.m.constant(np.zeros((2, 2), np.int32))]
    return n.op("BATCH_TO_SPACE_ND", operands)


def _padding(n: Node, name: str, *more: int, **options: Any) -> Any:
    sizes = n.m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    return n.op(name, [n.x(), sizes, *more], (1, 6, 6, 8), **options)


def _stablehlo_pad(n: Node) -> Any:
    sizes = {"edge_padding_low": (1, 0), "edge_padding_high": (0, 1), "interior_padding": (1, 0)}
    options = {name: np.array(values, np.int64) for name, values in sizes.items()}
    return n.op("STABLEHLO_PAD", [n.x((4, 8)), n.filled_like()], (8, 9), **options)


def _axes(**lists: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: np.array(values, np.int64) for name, values in lists.items()}


def _stablehlo_gather(n: Node) -> Any:
    options = _axes(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), slice_sizes=(1, 8)
    )
    indices = n.m.constant(np.array([[0], [2]], np.int32))
    operands = [n.x((4, 8)), indices]
    return n.op("STABLEHLO_GATHER", operands, (2, 8), index_vector_dim=1, **options)


def _region(n: Node, name: str) -> None:
    """Graph 1, with one node of two numbers."""
    graph = n.m.subgraph()
    pair = [graph.input(x, (), n.dtype, quantization=n.q) for x in "ab"]
    graph.output(graph.op(name, pair, (), dtype=n.dtype, quantization=n.q))


def _stablehlo_scatter(n: Node) -> Any:
    _region(n, "STABLEHLO_MAXIMUM")
    options = _axes(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    operands = [n.x((4, 8)), n.m.constant(np.array([[0], [2]], np.int32)), n.x((2, 8))]
    return n.op("STABLEHLO_SCATTER", operands, (4, 8), index_vector_dim=1,
                update_computation_subgraph_index=1, **options)  # fmt: skip


def _reduce_window(n: Node) -> Any:
    lists = [n.m.constant(np.array(values, np.int64)) for values in ((2, 3), (1, 1), (1, 1))]
    function = "ALL" if n.dtype == bool else "ADD"
    operands = [n.x((4, 8)), n.filled_like(), *lists]
    return n.op("REDUCE_WINDOW", operands, (3, 6), reduce_function=function)


def _stablehlo_reduce_window(n: Node) -> Any:
    _region(n, "LOGICAL_AND" if n.dtype == bool else "MAXIMUM")
    options = _axes(
        window_dimensions=(2, 3), window_strides=(1, 1), window_dilations=(1, 1),
        base_dilations=(1, 1), padding=(0, 0, 0, 0),
    )  # fmt: skip
    operands = [n.x((4, 8)), n.filled_like()]
    return n.op("STABLEHLO_REDUCE_WINDOW", operands, (3, 6), body_subgraph_index=1, **options)


def _strided(n: Node) -> Any:
    operands = [n.x(), n.ints(0, 1, 0, 0), n.ints(1, 3, 4, 8), n.ints(1, 1, 1, 1)]
    return n.op("STRIDED_SLICE", operands, (1, 2, 4, 8))


def _update(n: Node) -> Any:
    return n.op("DYNAMIC_UPDATE_SLICE", [n.x(), n.x((1, 2, 4, 8)), n.ints(0, 1, 0, 0)])


def _select(n: Node, name: str) -> Any:
    condition = n.m.input("c", SHAPE, np.bool_)
    return n.op(name, [condition, n.x(), n.x()])


def _resized(n: Node, name: str) -> Any:
    return n.op(name, [n.x(), n.ints(8, 8)], (1, 8, 8, 8))


def _chosen(n: Node, name: str) -> Any:
    return n.op(name, [n.x(), n.scalar(3)], (1, 4, 4), dtype=np.int64, output_type=np.int64)


def _one_hot(n: Node) -> Any:
    indices = n.m.input("i", (3,), np.int32)
    values = [n.m.constant(np.array(v, n.dtype)) for v in (1, 0)]
    return n.op("ONE_HOT", [indices, n.scalar(4), *values], (3, 4), axis=-1)


def _range(n: Node) -> Any:
    values = [n.m.constant(np.array(v, n.dtype)) for v in (0, 4, 1)]
    x = n.x((4,))
    return n.op("ADD", [x, n.op("RANGE", values, (4,))], (4,))


def _broadcast_args(n: Node) -> Any:
    shapes = [n.m.constant(np.array(v, n.dtype)) for v in ([4, 1, 8], [1, 4, 8])]
    return n.op("ADD", [n.x((3,)), n.op("BROADCAST_ARGS", shapes, (3,))], (3,))


def _fill(n: Node) -> Any:
    filled = n.op("FILL", [n.ints(4, 8), n.m.constant(np.array(1, n.dtype), quantization=n.q)],
                  (4, 8))  # fmt: skip
    return n.op("CONCATENATION", [n.x((4, 8)), filled], (8, 8), axis=0)


def _zeros(n: Node) -> Any:
    x = n.x((4, 8))
    return n.op("CONCATENATION", [x, n.op("ZEROS_LIKE", [x], (4, 8))], (8, 8), axis=0)


def _volume(n: Node, *, transposed: bool) -> Any:
    options = {f"stride_{axis}": 1 for axis in "dhw"}
    weights, x = n.weights((2, 2, 2, 4, 4)), n.x((1, 4, 4, 4, 4))
    if not transposed:
        return n.op("CONV_3D", [x, weights], (1, 4, 4, 4, 4), padding="SAME", **options)
    operands = [n.ints(1, 4, 4, 4, 4), weights, x]
    return n.op("CONV_3D_TRANSPOSE", operands, (1, 4, 4, 4, 4), padding="SAME", **options)


def _unique(n: Node) -> Any:
    kinds = {"dtype": [n.dtype, np.int32], "quantization": [n.q, None]}
    return n.m.op("UNIQUE", [n.x((8,))], [(-1,), (8,)], idx_out_type=np.int32, **kinds)


def _segments(n: Node, name: str) -> Any:
    number = [] if name == "SEGMENT_SUM" else [n.scalar(2)]
    return n.op(name, [n.x((4, 8)), n.ints(0, 0, 1, 1), *number], (2, 8))


def _scattered(n: Node) -> Any:
    indices = n.m.constant(np.array([[0], [2]], np.int32))
    return n.op("SCATTER_ND", [indices, n.x((2, 8)), n.ints(4, 8)], (4, 8))


def _suppression(n: Node, soft: bool) -> Any:
    inputs = [n.x((8, 4)), n.m.input("s", (8,)), n.scalar(3)]
    inputs += [n.m.constant(np.array(0.5, np.float32)) for _ in range(3 if soft else 2)]
    name = f"NON_MAX_SUPPRESSION_V{5 if soft else 4}"
    values = [((3,), np.float32)] if soft else []
    outputs: list[Any] = [((3,), np.int32), *values, ((), np.int32)]
    return n.m.op(name, inputs, [s for s, _ in outputs], dtype=[t for _, t in outputs])


def _measured(n: Node, name: str, to: tuple[int, ...]) -> Any:
    options = {"out_type": np.int32} if name == "SHAPE" else {}
    return n.op(name, [n.x()], to, dtype=np.int32, **options)


def _gates(n: Node, count: int, shape: tuple[int, ...], dtype: Any, scale: float) -> list[int]:
    """Constants of so many gates: of the activations' type where they are floats."""
    if n.dtype.kind == "f":
        return [n.m.constant(np.zeros(shape, n.dtype)) for _ in range(count)]
    return [n.m.constant(np.zeros(shape, dtype), quantization=(scale,)) for _ in range(count)]


def _state(n: Node, shape: tuple[int, ...], dtype: Any, scale: float) -> int:
    if n.dtype.kind == "f":
        return n.m.tensor(shape, n.dtype, is_variable=True)
    return n.m.tensor(shape, dtype, is_variable=True, quantization=(scale,))


def _lstm(n: Node, name: str) -> Any:
    both, lead = name.startswith("BI"), (2,) if name == "LSTM" else (2, 3)
    slots: list[int | None] = [n.x((*lead, 4)), *[None] * (47 if both else 23)]
    for i in range(2 if both else 1):
        slots[17 * i + 1 : 17 * i + 9] = _gates(n, 8, (4, 4), np.int8, 0.01)
        slots[17 * i + 12 : 17 * i + 16] = _gates(n, 4, (4,), np.int32, 0.01)
        at = 35 + 2 * i if both else 18
        slots[at : at + 2] = [
            _state(n, (2, 4), np.int8, 0.01),
            _state(n, (2, 4), np.int16, 2.0**-11),
        ]
    between = [n.m.tensor((1,), np.int8, quantization=(0.01,)) for _ in range(5)]
    to = [(*lead, 4)] * 2 if both else (*lead, 4)
    options = {} if name == "LSTM" else {"time_major": False}
    options["fused_activation_function"] = "TANH"
    return n.op(name, slots, to, intermediates=between, **options)


def _rnn(n: Node, name: str) -> Any:
    both, lead = name.startswith("BI"), (2,) if name == "RNN" else (2, 3)
    slots: list[int | None] = [n.x((*lead, 4))]
    for _ in range(2 if both else 1):
        slots += [*_gates(n, 2, (4, 4), np.int8, 0.01), *_gates(n, 1, (4,), np.int32, 0.01)]
        slots.append(_state(n, (2, 4), np.int8, 0.01))
    to = [(*lead, 4)] * 2 if both else (*lead, 4)
    slots += [None] * 3 if both else []
    return n.op(name, slots, to, fused_activation_function="TANH")


def _svdf(n: Node) -> Any:
    slots = [
        n.x((2, 4)),
        *_gates(n, 1, (6, 4), np.int8, 0.01),
        *_gates(n, 1, (6, 5), np.int16, 0.01),
        *_gates(n, 1, (6,), np.int32, 0.01),
        _state(n, (2, 30), np.int16, 0.01),
    ]
    return n.op("SVDF", slots, (2, 6), rank=1, fused_activation_function="RELU")


CONTROL = ("IF", "WHILE")
STATE = ("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "VAR_HANDLE")


def _variable(n: Node) -> Any:
    """A sum of all inputs so far."""
    first = n.m.subgraph()
    at_first = first.op("VAR_HANDLE", [], (1,), dtype="RESOURCE", shared_name="sum")
    zeros = first.constant(np.zeros((4, 8), n.dtype), quantization=n.q)
    first.op("ASSIGN_VARIABLE", [at_first, zeros], [])
    n.m.op("CALL_ONCE", [], [], init_subgraph_index=1)
    handle = n.m.op("VAR_HANDLE", [], (1,), dtype="RESOURCE", shared_name="sum")
    x = n.x((4, 8))
    read = n.op("READ_VARIABLE", [handle], (4, 8))
    found = n.op("SELECT_V2", [n.m.constant(np.ones((4, 8), np.bool_)), x, read], (4, 8))
    n.m.op("ASSIGN_VARIABLE", [handle, found], [])
    return found


def _graphs(n: Node, x: int, *makes: Callable[[ModelMaker, list[int]], list[int]]) -> None:
    """Further graphs, each of a counter and of numbers like x."""
    for make in makes:
        graph = n.m.subgraph()
        inputs = [graph.input("i", (), np.int32),
                  graph.input("y", n.m.shape(x), n.dtype, quantization=n.q)]  # fmt: skip
        graph.output(*make(graph, inputs))


def _moved(graph: ModelMaker, x: list[int]) -> list[int]:
    to = graph.constant(np.array(SHAPE, np.int32))
    return [graph.op("RESHAPE", [x[1], to], SHAPE, quantization=graph.quantization(x[1]))]


def _loop(n: Node) -> Any:
    x = n.x()
    _graphs(
        n, x,
        lambda g, x: [g.op("LESS", [x[0], g.constant(np.int32(2))], (), dtype=np.bool_)],
        lambda g, x: [g.op("ADD", [x[0], g.constant(np.int32(1))], ()), *_moved(g, x)],
    )  # fmt: skip
    results = n.m.op(
        "WHILE", [n.scalar(0), x], [(), SHAPE], dtype=[np.int32, n.dtype],
        quantization=[None, n.q], cond_subgraph_index=1, body_subgraph_index=2,
    )  # fmt: skip
    return results[1]


def _branch(n: Node) -> Any:
    x = n.x()
    _graphs(n, x, _moved, _moved)
    operands = [n.m.constant(np.bool_(True)), n.scalar(0), x]
    return n.m.op("IF", operands, [SHAPE], dtype=[n.dtype], quantization=[n.q],
                  then_subgraph_index=1, else_subgraph_index=2)[0]  # fmt: skip


NODES: dict[str, Build] = {
    "IF": _branch,
    "WHILE": _loop,
    **dict.fromkeys(STATE, _variable),
    **{name: one(name) for name in UNARY.split()},
    **{name: two(name) for name in BINARY.split()},
    **{name: two(name, dtype=np.bool_) for name in COMPARISONS.split()},
    **{name: reduce(name) for name in REDUCTIONS.split()},
    **{name: partial(_lstm, name=name) for name in LSTMS.split()},
    **{name: partial(_rnn, name=name) for name in RNNS.split()},
    **{name: pool(name) for name in ("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D")},
    "ARG_MAX": lambda n: _chosen(n, "ARG_MAX"),
    "ARG_MIN": lambda n: _chosen(n, "ARG_MIN"),
    "BATCH_MATMUL": _transposed_product,
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "BITCAST": lambda n: n.op("BITCAST", [n.x()]),
    "BROADCAST_ARGS": _broadcast_args,
    "BROADCAST_TO": lambda n: n.op("BROADCAST_TO", [n.x((1, 1, 4, 8)), n.ints(*SHAPE)], version=2),
    "BUCKETIZE": lambda n: n.op(
        "BUCKETIZE", [n.x()], dtype=np.int32, boundaries=np.array([0, 1], np.float32)
    ),
    "CAST": lambda n: n.op("CAST", [n.x()], dtype=np.float32),
    **{
        name: lambda n, name=name: n.op(name, [n.x()], dtype=np.float32)
        for name in ("COMPLEX_ABS", "IMAG", "REAL")
    },
    "CONCATENATION": lambda n: n.op("CONCATENATION", [n.x(), n.x()], (1, 4, 4, 16), axis=3),
    "CONV_2D": _convolution,
    "CONV_3D": lambda n: _volume(n, transposed=False),
    "CONV_3D_TRANSPOSE": lambda n: _volume(n, transposed=True),
    "CUMSUM": lambda n: n.op("CUMSUM", [n.x(), n.scalar(1)]),
    "DENSIFY": _densify,
    "DEPTHWISE_CONV_2D": _depthwise,
    "DEPTH_TO_SPACE": lambda n: n.op("DEPTH_TO_SPACE", [n.x()], (1, 8, 8, 2), block_size=2),
    "DEQUANTIZE": lambda n: n.op("DEQUANTIZE", [n.x()], dtype=np.float32),
    "DILATE": lambda n: n.op("DILATE", [n.x((4, 8)), n.ints(2, 1), n.filled_like()], (7, 8)),
    "DYNAMIC_UPDATE_SLICE": _update,
    "EMBEDDING_LOOKUP": lambda n: n.op(
        "EMBEDDING_LOOKUP", [n.m.input("i", (3,), np.int32), n.x((4, 8))], (3, 8)
    ),
    "EXPAND_DIMS": lambda n: n.op("EXPAND_DIMS", [n.x(), n.scalar(0)], (1, *SHAPE)),
    "FILL": _fill,
    "FULLY_CONNECTED": _dense,
    "GATHER": lambda n: n.op("GATHER", [n.x(), n.ints(0, 2)], (1, 2, 4, 8), axis=1),
    "GATHER_ND": lambda n: n.op(
        "GATHER_ND", [n.x(), n.m.constant(np.zeros((2, 1), np.int32))], (2, 4, 4, 8)
    ),
    "L2_NORMALIZATION": scaled("L2_NORMALIZATION", _SIGNED),
    "LOGISTIC": scaled("LOGISTIC", _UNIT),
    "LOG_SOFTMAX": scaled("LOG_SOFTMAX", _LOG),
    "MATRIX_DIAG": lambda n: n.op("MATRIX_DIAG", [n.x((4, 8))], (4, 8, 8)),
    "MATRIX_SET_DIAG": lambda n: n.op("MATRIX_SET_DIAG", [n.x((4, 8)), n.x((4,))], (4, 8)),
    "MIRROR_PAD": lambda n: _padding(n, "MIRROR_PAD", mode="REFLECT"),
    "NON_MAX_SUPPRESSION_V4": lambda n: _suppression(n, soft=False),
    "NON_MAX_SUPPRESSION_V5": lambda n: _suppression(n, soft=True),
    "ONE_HOT": _one_hot,
    "PACK": lambda n: n.op("PACK", [n.x(), n.x()], (2, *SHAPE), values_count=2, axis=0),
    "PAD": lambda n: _padding(n, "PAD"),
    "PADV2": lambda n: _padding(n, "PADV2", n.m.constant(np.array(0, n.dtype), quantization=n.q)),
    "PRELU": lambda n: n.op("PRELU", [n.x(), n.weights((1, 1, 8))]),
    "QUANTIZE": _quantize,
    "RANGE": _range,
    "RANK": lambda n: _measured(n, "RANK", ()),
    "RFFT2D": lambda n: n.op("RFFT2D", [n.x((2, 8)), n.ints(2, 8)], (2, 5), dtype=np.complex64),
    "REDUCE_WINDOW": _reduce_window,
    "RESHAPE": lambda n: n.op("RESHAPE", [n.x(), n.ints(4, 32)], (4, 32), new_shape=[4, 32]),
    "RESIZE_BILINEAR": lambda n: _resized(n, "RESIZE_BILINEAR"),
    "RESIZE_NEAREST_NEIGHBOR": lambda n: _resized(n, "RESIZE_NEAREST_NEIGHBOR"),
    "REVERSE_SEQUENCE": lambda n: n.op(
        "REVERSE_SEQUENCE", [n.x((4, 8)), n.ints(1, 2, 3, 4)], (4, 8), seq_dim=1, batch_dim=0
    ),
    "REVERSE_V2": lambda n: n.op("REVERSE_V2", [n.x(), n.ints(1)]),
    "SCATTER_ND": _scattered,
    **{name: (lambda n, name=name: _segments(n, name)) for name in SEGMENTS.split()},
    "SELECT": lambda n: _select(n, "SELECT"),
    "SELECT_V2": lambda n: _select(n, "SELECT_V2"),
    "SHAPE": lambda n: _measured(n, "SHAPE", (4,)),
    "SPARSE_TO_DENSE": lambda n: n.op(
        "SPARSE_TO_DENSE",
        [n.m.constant(np.array([[0, 2]], np.int32)), n.ints(4, 8), n.x((1,)), n.filled(())],
        (4, 8),
    ),
    "SLICE": lambda n: n.op("SLICE", [n.x(), n.ints(0, 1, 0, 0), n.ints(1, 2, 4, 8)], (1, 2, 4, 8)),
    "SOFTMAX": scaled("SOFTMAX", _UNIT, beta=1.0),
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": lambda n: n.op("SPACE_TO_DEPTH", [n.x()], (1, 2, 2, 32), block_size=2),
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "SVDF": _svdf,
    "SQUEEZE": lambda n: n.op("SQUEEZE", [n.x()], (4, 4, 8), squeeze_dims=[0]),
    "STABLEHLO_COMPOSITE": _composite,
    "STABLEHLO_GATHER": _stablehlo_gather,
    "STABLEHLO_PAD": _stablehlo_pad,
    "STABLEHLO_REDUCE_WINDOW": _stablehlo_reduce_window,
    "STABLEHLO_SCATTER": _stablehlo_scatter,
    "STRIDED_SLICE": _strided,
    "TANH": scaled("TANH", _SIGNED),
    "TILE": lambda n: n.op("TILE", [n.x(), n.ints(1, 2, 1, 1)], (1, 8, 4, 8)),
    "TOPK_V2": _top_k,
    "TRANSPOSE": lambda n: n.op("TRANSPOSE", [n.x(), n.ints(0, 3, 1, 2)], (1, 8, 4, 4)),
    "TRANSPOSE_CONV": _transposed,
    "UNIQUE": _unique,
    "UNPACK": lambda n: n.op("UNPACK", [n.x()], [(1, 4, 8)] * 4, num=4, axis=1),
    "WHERE": lambda n: n.m.op("WHERE", [n.x()], (-1, 4), dtype=np.int64),
    "ZEROS_LIKE": _zeros,
}


def claimed(name: str, dtype: str) -> clgpu_delegate.Node | None:
    """The report of the operation's node, if the delegate claims it."""
    node = Node(dtype)
    result = NODES[name](node)
    node.m.output(*(result if isinstance(result, tuple) else [result]))
    delegate = clgpu_delegate.load(cache="off", warm_up=False)
    interpreter = make_interpreter("ai_edge_litert", node.m.build(), [delegate])
    found = [n for n in delegate.explain().nodes if n.op == name]
    del interpreter
    return found[0] if found and found[0].claimed else None


def where(name: str, nodes: list[clgpu_delegate.Node]) -> str:
    """The mark of an operation."""
    if name in STATE:
        return "state"
    if name in CONTROL:
        return "graphs"
    if all(node.is_view for node in nodes):
        return "view"
    if all(node.reason.startswith("follows from shapes") for node in nodes):
        return "planned"
    if all(node.reason.startswith("computes a constant") for node in nodes):
        return "constants"
    return ""


def page() -> str:
    """The text of docs/operations.md."""
    handled = {op for family in _core.families() for op in family["ops"]}
    schema = members(tflite.BuiltinOperator)
    missing = sorted(handled & set(schema) - set(NODES))
    if missing:
        raise SystemExit(f"NODES of tools/render_operations.py lacks {', '.join(missing)}")
    rows = ["| operation | types | |", "| --- | --- | --- |"]
    for name in sorted(NODES):
        found = {dtype: claimed(name, dtype) for dtype in TYPES}
        nodes = [node for node in found.values() if node is not None]
        types = ", ".join(dtype for dtype, node in found.items() if node is not None)
        rows.append(f"| {name} | {types} | {where(name, nodes)} |")
    customs = ", ".join(sorted(handled - set(schema)))
    others = sorted(
        set(schema) - handled - {"CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES"}
    )
    return "\n".join(
        [
            HEAD,
            *rows,
            "",
            f"Custom operations, in float32: {customs}.",
            "",
            COMPOSITES,
            "",
            "## On the CPU",
            "",
            STABLEHLO,
            "",
            f"{', '.join(others)}.",
            "",
        ]
    )


def main() -> int:
    """Show or write the differences; 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/operations.md")
    arguments = parser.parse_args()
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    after = page()
    if before == after:
        return 0
    if arguments.write:
        PAGE.write_text(after, encoding="utf-8")
        return 0
    print(
        "".join(
            difflib.unified_diff(before.splitlines(True), after.splitlines(True), "kept", "now")
        )
    )
    return 1


if __name__ == "__main__":
    raise SystemExit(main())

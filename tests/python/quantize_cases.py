"""A small float model for each operation that quantize() knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.model_maker import ModelMaker
from tests.python.models import normal

IMAGE = (1, 4, 6, 8)
_CONV = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
_POOL = {**_CONV, "filter_width": 2, "filter_height": 2}


def _ints(m: ModelMaker, *values: object) -> int:
    return m.constant(np.array(values, np.int32))


def _product(name: str, weights: tuple[int, ...], output: tuple[int, ...], **options: object):
    def add(m: ModelMaker, x: int, rng: np.random.Generator) -> int:
        w = m.constant(normal(rng, *weights) / np.sqrt(np.prod(weights[1:], dtype=np.float32)))
        channels = weights[3] if name == "DEPTHWISE_CONV_2D" else weights[0]
        b = m.constant(normal(rng, channels))
        if name == "TRANSPOSE_CONV":
            return m.op(name, [_ints(m, *output), w, x, b], output, version=3, **options)
        return m.op(name, [x, w, b], output, **options)

    return add


def _unary(name: str, output: tuple[int, ...] = IMAGE, *more: object, **options: object):
    def add(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
        return m.op(name, [x, *(m.constant(v) for v in more)], output, dtype=np.float32, **options)

    return add


def _binary(name: str, **options: object):
    def add(m: ModelMaker, x: int, rng: np.random.Generator) -> int:
        y = m.op("MUL", [x, m.constant(normal(rng, IMAGE[-1]))], IMAGE)
        return m.op(name, [x, y], IMAGE, **options)

    return add


def _several(name: str, *inputs: object, count: int, shape: tuple[int, ...], **options: object):
    """SPLIT and its like; ``inputs`` are constants, and None for the image."""

    def add(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
        ids = [x if v is None else m.constant(v) for v in inputs]
        parts = m.op(name, ids, [shape] * count, dtype=np.float32, **options)
        return m.op("ADD", [parts[0], parts[-1]], shape)

    return add


def _joined(name: str, shape: tuple[int, ...], **options: object):
    def add(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
        return m.op(name, [x, m.op("LOGISTIC", [x], IMAGE)], shape, **options)

    return add


def _select(name: str):
    def add(m: ModelMaker, x: int, rng: np.random.Generator) -> int:
        condition = m.constant(rng.integers(0, 2, IMAGE).astype(np.bool_))
        return m.op(name, [condition, x, m.op("RELU", [x], IMAGE)], IMAGE, dtype=np.float32)

    return add


def _reads(name: str, *more: object, shape: tuple[int, ...], dtype: object, **options: object):
    """Operations whose result is not a float; it is cast for the comparison."""

    def add(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
        ids = [x, *(m.constant(v) for v in more)]
        y = m.op(name, ids, shape, dtype=dtype, **options)
        types = {"in_data_type": dtype, "out_data_type": np.float32}
        return m.op("CAST", [y], shape, dtype=np.float32, **types)

    return add


def _prelu(m: ModelMaker, x: int, rng: np.random.Generator) -> int:
    return m.op("PRELU", [x, m.constant(0.3 * normal(rng, 1, 1, IMAGE[-1]))], IMAGE)


def _matmul(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
    return m.op("BATCH_MATMUL", [x, x], (1, 4, 6, 6), adj_y=True)


def _positive(name: str):
    def add(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
        y = m.op("LOGISTIC", [x], IMAGE)
        y = m.op("ADD", [y, m.constant(np.float32(0.5))], IMAGE)
        return m.op(name, [y], IMAGE)

    return add


def _padv2(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
    value = m.constant(np.array(0.75, np.float32))
    return m.op("PADV2", [x, _ints(m, *_PADS), value], (1, 5, 7, 8))


def _gather_table(m: ModelMaker, x: int, rng: np.random.Generator) -> int:
    table = m.constant(normal(rng, 9, 6, 8))
    return m.op(
        "ADD",
        [x, m.op("GATHER", [table, _ints(m, 3, 0, 8, 3)], (4, 6, 8), dtype=np.float32, axis=0)],
        IMAGE,
    )


def _top(m: ModelMaker, x: int, _rng: np.random.Generator) -> int:
    shape = (1, 4, 6, 3)
    return m.op(
        "TOPK_V2",
        [x, m.constant(np.array(3, np.int32))],
        [shape, shape],
        dtype=[np.float32, np.int32],
    )[0]


_PADS = ([0, 0], [1, 0], [0, 1], [0, 0])
_i32 = np.int32

CASES: dict[str, Callable[[ModelMaker, int, np.random.Generator], int]] = {
    "CONV_2D": _product("CONV_2D", (5, 3, 3, 8), (1, 4, 6, 5), **_CONV),
    "DEPTHWISE_CONV_2D": _product(
        "DEPTHWISE_CONV_2D", (1, 3, 3, 16), (1, 4, 6, 16), depth_multiplier=2, **_CONV
    ),
    "TRANSPOSE_CONV": _product(
        "TRANSPOSE_CONV", (5, 3, 3, 8), (1, 8, 12, 5), padding="SAME", stride_w=2, stride_h=2
    ),
    "FULLY_CONNECTED": _product(
        "FULLY_CONNECTED", (7, 8), (1, 4, 6, 7), keep_num_dims=True
    ),
    "BATCH_MATMUL": _matmul,
    **{n: _binary(n) for n in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")},
    "AVERAGE_POOL_2D": _unary("AVERAGE_POOL_2D", **_POOL),
    "MAX_POOL_2D": _unary("MAX_POOL_2D", **_POOL),
    **{
        n: _unary(n, (1, 8), np.array([1, 2], np.int32))
        for n in ("MEAN", "REDUCE_MAX", "REDUCE_MIN")
    },
    **{
        n: _unary(n)
        for n in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LOGISTIC", "TANH", "ELU",
                  "GELU", "HARD_SWISH", "L2_NORMALIZATION", "LOG_SOFTMAX", "ABS", "EXP")
    },
    "SOFTMAX": _unary("SOFTMAX", beta=1.0),
    "LEAKY_RELU": _unary("LEAKY_RELU", alpha=0.2),
    "PRELU": _prelu,
    "RSQRT": _positive("RSQRT"),
    "CONCATENATION": _joined("CONCATENATION", (1, 4, 6, 16), axis=3),
    "PACK": _joined("PACK", (2, *IMAGE), axis=0, values_count=2),
    "PAD": _unary("PAD", (1, 5, 7, 8), np.array(_PADS, _i32)),
    "PADV2": _padv2,
    "MIRROR_PAD": _unary("MIRROR_PAD", (1, 5, 7, 8), np.array(_PADS, _i32), mode="REFLECT"),
    "RESHAPE": _unary("RESHAPE", (4, 48), np.array([4, 48], _i32), new_shape=[4, 48]),
    "SQUEEZE": _unary("SQUEEZE", (4, 6, 8), squeeze_dims=[0]),
    "EXPAND_DIMS": _unary("EXPAND_DIMS", (1, 1, 4, 6, 8), np.array(1, _i32)),
    "TRANSPOSE": _unary("TRANSPOSE", (1, 6, 8, 4), np.array([0, 2, 3, 1], _i32)),
    "SLICE": _unary(
        "SLICE", (1, 2, 6, 3), np.array([0, 1, 0, 4], _i32), np.array([1, 2, 6, 3], _i32)
    ),
    "STRIDED_SLICE": _unary(
        "STRIDED_SLICE", (1, 2, 3, 8), np.array([0, 0, 0, 0], _i32), np.array(IMAGE, _i32),
        np.array([1, 2, 2, 1], _i32),
    ),
    "SPLIT": _several(
        "SPLIT", np.array(3, _i32), None, count=2, shape=(1, 4, 6, 4), num_splits=2
    ),
    "SPLIT_V": _several(
        "SPLIT_V", None, np.array([4, 4], _i32), np.array(3, _i32),
        count=2, shape=(1, 4, 6, 4), num_splits=2,
    ),
    "UNPACK": _several("UNPACK", None, count=4, shape=(1, 6, 8), num=4, axis=1),
    "GATHER": _unary("GATHER", (1, 4, 2, 8), np.array([5, 0], _i32), axis=2),
    "GATHER/table": _gather_table,
    "GATHER_ND": _unary("GATHER_ND", (2, 6, 8), np.array([[0, 1], [0, 3]], _i32)),
    "TILE": _unary("TILE", (1, 4, 12, 8), np.array([1, 1, 2, 1], _i32)),
    "REVERSE_V2": _unary("REVERSE_V2", IMAGE, np.array([2], _i32)),
    "DEPTH_TO_SPACE": _unary("DEPTH_TO_SPACE", (1, 8, 12, 2), block_size=2),
    "SPACE_TO_DEPTH": _unary("SPACE_TO_DEPTH", (1, 2, 3, 32), block_size=2),
    "SPACE_TO_BATCH_ND": _unary(
        "SPACE_TO_BATCH_ND", (4, 2, 3, 8), np.array([2, 2], _i32), np.zeros((2, 2), _i32)
    ),
    "BATCH_TO_SPACE_ND": _unary(
        "BATCH_TO_SPACE_ND", IMAGE, np.array([1, 1], _i32), np.zeros((2, 2), _i32)
    ),
    "RESIZE_BILINEAR": _unary("RESIZE_BILINEAR", (1, 8, 12, 8), np.array([8, 12], _i32)),
    "RESIZE_NEAREST_NEIGHBOR": _unary(
        "RESIZE_NEAREST_NEIGHBOR", (1, 8, 12, 8), np.array([8, 12], _i32)
    ),
    "BROADCAST_TO": _unary("BROADCAST_TO", (3, 4, 6, 8), np.array([3, 4, 6, 8], _i32), version=2),
    "SELECT": _select("SELECT"),
    "SELECT_V2": _select("SELECT_V2"),
    "ARG_MAX": _reads(
        "ARG_MAX", np.array(3, _i32), shape=(1, 4, 6), dtype=np.int32, output_type=np.int32
    ),
    "ARG_MIN": _reads(
        "ARG_MIN", np.array(3, _i32), shape=(1, 4, 6), dtype=np.int32, output_type=np.int32
    ),
    "SHAPE": _reads("SHAPE", shape=(4,), dtype=np.int32, out_type=np.int32),
    "TOPK_V2": _top,
}  # fmt: skip


def model(name: str) -> bytes:
    """The model of a case: its operation, and those that it needs around it."""
    rng = np.random.default_rng(len(name))
    m = ModelMaker()
    m.output(CASES[name](m, m.input("x", IMAGE), rng))
    return m.build()


def samples(count: int = 3) -> list[np.ndarray]:
    """Inputs."""
    rng = np.random.default_rng(13)
    return [normal(rng, *IMAGE) for _ in range(count)]

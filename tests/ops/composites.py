"""Models with one STABLEHLO_COMPOSITE, with a decomposition as converters write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from tests.model_maker import ModelMaker

Shape = tuple[int, ...]
Body = Callable[[ModelMaker, list[int]], int]


def composite(
    name: str,
    shapes: Sequence[Shape],
    attributes: dict[str, Any] | bytes,
    body: Body,
    result: Shape | None = None,
    constants: dict[int, np.ndarray] | None = None,
    dtype: Any = np.float32,
) -> bytes:
    """A model with one composite, whose operands are inputs of the model or constants.

    Parameters
    ----------
    name
        Of the composite.
    shapes
        Of its operands.
    attributes
        Its attributes, or bytes that take their place.
    body
        Adds the decomposition to a graph with these inputs, and returns its result.
    result
        Shape of the result; that of the first operand if None.
    constants
        Values of operands, by position.
    dtype
        Element type of the other operands and of the result.
    """
    m = ModelMaker()
    operands = [
        m.constant(constants[i]) if i in (constants or {}) else m.input(f"x{i}", shape, dtype)
        for i, shape in enumerate(shapes)
    ]
    m.output(add_composite(m, name, operands, attributes, body, result, dtype))
    return m.build()


def add_composite(
    m: ModelMaker,
    name: str,
    operands: Sequence[int],
    attributes: dict[str, Any] | bytes,
    body: Body,
    result: Shape | None = None,
    dtype: Any = np.float32,
) -> int:
    """Add a composite, whose decomposition becomes the next graph of the model."""
    packed = attributes if isinstance(attributes, bytes) else flexbuffers.Dumps(attributes)
    graph = m.subgraph()
    inside = [graph.input(f"x{i}", m.shape(x), dtype) for i, x in enumerate(operands)]
    graph.output(body(graph, inside))
    return m.op(
        "STABLEHLO_COMPOSITE",
        operands,
        m.shape(operands[0]) if result is None else result,
        dtype=dtype,
        name=name,
        decomposition_subgraph_index=len(m._subgraphs),
        composite_attributes=np.frombuffer(packed, np.uint8),
    )


def number(g: ModelMaker, value: float) -> int:
    return g.constant(np.float32(value))


def ints(g: ModelMaker, *values: int) -> int:
    return g.constant(np.array(values, np.int32))


def moved(g: ModelMaker, x: int, order: tuple[int, ...]) -> int:
    shape = g.shape(x)
    return g.op("TRANSPOSE", [x, ints(g, *order)], tuple(shape[axis] for axis in order))


def reshaped(g: ModelMaker, x: int, *shape: int) -> int:
    return g.op("RESHAPE", [x, ints(g, *shape)], shape, new_shape=list(shape))


def same(g: ModelMaker, name: str, *operands: int) -> int:
    """An operation whose result has the shape of its first operand."""
    return g.op(name, list(operands), g.shape(operands[0]))


def summed(g: ModelMaker, x: int, *axes: int, name: str = "SUM") -> int:
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(g.shape(x)))
    return g.op(name, [x, ints(g, *axes)], shape, keep_dims=True)


def attention_body(scale: float) -> Body:
    """Heads of keys are repeated; queries and keys are each scaled by the root of the scale."""

    def body(g: ModelMaker, operands: list[int]) -> int:
        q, k, v, *mask = operands
        batches, queries, heads, depth = g.shape(q)
        _, keys, key_heads, _ = g.shape(k)
        cols = g.shape(v)[3]
        root = number(g, np.sqrt(scale))

        def repeated(x: int, depth: int) -> int:
            x = moved(g, x, (0, 2, 1, 3))
            if key_heads == heads:
                return x
            share = heads // key_heads
            x = reshaped(g, x, batches, key_heads, 1, keys, depth)
            whole = (batches, key_heads, share, keys, depth)
            x = g.op("BROADCAST_TO", [x, ints(g, *whole)], whole, version=2)
            return reshaped(g, x, batches, heads, keys, depth)

        q = moved(g, same(g, "MUL", q, root), (0, 2, 1, 3))
        k = moved(g, same(g, "MUL", repeated(k, depth), root), (0, 1, 3, 2))
        scores = g.op("BATCH_MATMUL", [q, k], (batches, heads, queries, keys))
        for one in mask:
            scores = same(g, "ADD", scores, one)
        weights = g.op("SOFTMAX", [scores], g.shape(scores), beta=1.0)
        shape = (batches, heads, queries, cols)
        return moved(g, g.op("BATCH_MATMUL", [weights, repeated(v, cols)], shape), (0, 2, 1, 3))

    return body


def row_norm_body(epsilon: float, *, mean: str | None) -> Body:
    """mean: the operation by which the sum of squares becomes a mean; None: it stays a sum."""

    def body(g: ModelMaker, operands: list[int]) -> int:
        x, *weight = operands
        last = len(g.shape(x)) - 1
        squares = summed(g, same(g, "MUL", x, x), last, name="MEAN" if mean == "MEAN" else "SUM")
        if mean == "MUL":
            squares = same(g, "MUL", squares, number(g, 1 / g.shape(x)[-1]))
        root = same(g, "RSQRT", same(g, "ADD", squares, number(g, epsilon)))
        y = same(g, "MUL", x, root)
        for factors in weight:
            y = same(g, "MUL", y, factors)
        return y

    return body


def group_norm_body(epsilon: float, groups: int, *, name: str = "MEAN") -> Body:
    """name: MEAN, or SUM followed by a product."""

    def body(g: ModelMaker, operands: list[int]) -> int:
        x, *factors = operands
        whole = g.shape(x)
        images, channels = whole[0], whole[-1]
        pixels = int(np.prod(whole[1:-1]))
        size = channels // groups

        def mean(y: int) -> int:
            y = summed(g, y, 1, 3, name=name)
            return y if name == "MEAN" else same(g, "MUL", y, number(g, 1 / (pixels * size)))

        x = reshaped(g, x, images, pixels, groups, size)
        apart = same(g, "SUB", x, mean(x))
        variance = mean(same(g, "MUL", apart, apart))
        root = same(g, "RSQRT", same(g, "ADD", variance, number(g, epsilon)))
        y = reshaped(g, same(g, "MUL", apart, root), *whole)
        for operation, factor in zip(("MUL", "ADD"), factors):
            y = same(g, operation, y, factor)
        return y

    return body

"""Attention in the forms in which exporters write it, against float64."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import check, op_runtime
from tests.runtimes import make_interpreter, run_interpreter

BATCH, QUERIES, KEYS, KEY_HEADS, GROUP, DEPTH, COLS = 2, 5, 21, 3, 2, 8, 4
HEADS = KEY_HEADS * GROUP
SCALE = DEPTH**-0.5


class Form:
    """A graph under construction, with operations that follow shapes."""

    def __init__(self) -> None:
        self.m = ModelMaker()
        self.inputs: list[np.ndarray] = []

    def input(self, values: np.ndarray) -> int:
        self.inputs.append(values.astype(np.float32))
        return self.m.input(f"x{len(self.inputs)}", values.shape)

    def reshape(self, x: int, *shape: int) -> int:
        wanted = self.m.constant(np.array(shape, np.int32))
        return self.m.op("RESHAPE", [x, wanted], shape, new_shape=shape)

    def transpose(self, x: int, *order: int) -> int:
        shape = tuple(self.m.shape(x)[axis] for axis in order)
        return self.m.op("TRANSPOSE", [x, self.m.constant(np.array(order, np.int32))], shape)

    def product(self, x: int, y: int, *, adj_x: bool = False, adj_y: bool = False) -> int:
        a, b = self.m.shape(x), self.m.shape(y)
        outer = np.broadcast_shapes(a[:-2], b[:-2])
        shape = (*outer, a[-1 if adj_x else -2], b[-2 if adj_y else -1])
        return self.m.op("BATCH_MATMUL", [x, y], shape, adj_x=adj_x, adj_y=adj_y)

    def scale(self, x: int, factor: float = SCALE) -> int:
        factors = self.m.constant(np.float32(factor))
        return self.m.op("MUL", [x, factors], self.m.shape(x))

    def softmax(self, x: int) -> int:
        return self.m.op("SOFTMAX", [x], self.m.shape(x), beta=1.0)

    def add(self, x: int, y: int) -> int:
        return self.m.op("ADD", [x, y], self.m.shape(x))


class Operands:
    """Float64 operands with the axes batch, position, head, element, and the result."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.q = rng.standard_normal((BATCH, QUERIES, HEADS, DEPTH)).astype(np.float32)
        self.k = rng.standard_normal((BATCH, KEYS, KEY_HEADS, DEPTH)).astype(np.float32)
        self.v = rng.standard_normal((BATCH, KEYS, KEY_HEADS, COLS)).astype(np.float32)
        self.mask = rng.standard_normal((QUERIES, KEYS)).astype(np.float32)
        self.mask[:, KEYS // 2 :] = -np.inf

    def expected(self, *, masked: bool) -> np.ndarray:
        k, v = (np.repeat(x.astype(np.float64), GROUP, axis=2) for x in (self.k, self.v))
        scores = np.einsum("btnd,bsnd->bnts", self.q.astype(np.float64), k) * SCALE
        scores = scores + self.mask if masked else scores
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bnts,bsnc->btnc", weights / weights.sum(-1, keepdims=True), v)


def broadcast_heads(f: Form, o: Operands) -> int:
    """Five axes: the heads of keys broadcast over those that share them."""
    q = f.reshape(f.input(o.q), BATCH, QUERIES, KEY_HEADS, GROUP, DEPTH)
    q = f.transpose(q, 0, 2, 3, 1, 4)
    k = f.reshape(f.transpose(f.input(o.k), 0, 2, 1, 3), BATCH, KEY_HEADS, 1, KEYS, DEPTH)
    v = f.reshape(f.transpose(f.input(o.v), 0, 2, 1, 3), BATCH, KEY_HEADS, 1, KEYS, COLS)
    scores = f.add(f.scale(f.product(q, k, adj_y=True)), f.input(o.mask))
    mixed = f.product(f.softmax(scores), v)
    return f.transpose(mixed, 0, 3, 1, 2, 4)


def keys_first(f: Form, o: Operands) -> int:
    """Scores as keys times queries; the rows are made afterwards."""
    q = f.reshape(f.scale(f.input(o.q)), BATCH, QUERIES, KEY_HEADS, GROUP, DEPTH)
    q = f.reshape(f.transpose(q, 0, 2, 4, 1, 3), BATCH, KEY_HEADS, DEPTH, QUERIES * GROUP)
    k = f.transpose(f.input(o.k), 0, 2, 1, 3)
    scores = f.reshape(f.product(k, q), BATCH, KEY_HEADS, KEYS, QUERIES, GROUP)
    scores = f.softmax(f.transpose(scores, 0, 3, 1, 4, 2))
    weights = f.reshape(f.transpose(scores, 0, 2, 4, 1, 3), BATCH, KEY_HEADS, KEYS, QUERIES * GROUP)
    mixed = f.product(f.transpose(f.input(o.v), 0, 2, 3, 1), weights)
    mixed = f.reshape(mixed, BATCH, KEY_HEADS, COLS, QUERIES, GROUP)
    return f.transpose(mixed, 0, 3, 1, 4, 2)


def keys_by_head(f: Form, o: Operands) -> int:
    """The positions of keys are behind their heads in memory."""
    q = f.transpose(f.input(o.q), 0, 2, 1, 3)
    q = f.reshape(q, BATCH, KEY_HEADS, GROUP * QUERIES, DEPTH)
    k = f.input(o.k.transpose(0, 2, 1, 3))
    v = f.input(o.v.transpose(0, 2, 1, 3))
    scores = f.softmax(f.scale(f.product(q, k, adj_y=True)))
    mixed = f.reshape(f.product(scores, v), BATCH, HEADS, QUERIES, COLS)
    return f.transpose(mixed, 0, 2, 1, 3)


def values_by_column(f: Form, o: Operands) -> int:
    """No kernel reads these values, so the products stay; the result is right."""
    q = f.transpose(f.input(o.q), 0, 2, 1, 3)
    q = f.reshape(q, BATCH, KEY_HEADS, GROUP * QUERIES, DEPTH)
    k = f.transpose(f.input(o.k), 0, 2, 1, 3)
    v = f.input(o.v.transpose(0, 2, 3, 1))
    scores = f.softmax(f.scale(f.product(q, k, adj_y=True)))
    mixed = f.reshape(f.product(scores, v, adj_y=True), BATCH, HEADS, QUERIES, COLS)
    return f.transpose(mixed, 0, 2, 1, 3)


# The form, whether it has the mask, and whether it becomes one node.
FORMS = {
    "broadcast_heads": (broadcast_heads, True, True),
    "keys_first": (keys_first, False, True),
    "keys_by_head": (keys_by_head, False, True),
    "values_by_column": (values_by_column, False, False),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_attention(name, device, precision, rng):
    graph, masked, fuses = FORMS[name]
    form, operands = Form(), Operands(rng)
    result = form.reshape(graph(form, operands), BATCH, QUERIES, HEADS, COLS)
    form.m.output(result)
    model, expected = form.m.build(), operands.expected(masked=masked)
    check(
        model, form.inputs, [expected], device=device, precision=precision,
        accumulation=KEYS + DEPTH,
    )  # fmt: skip
    delegate = clgpu_delegate.load(device=device, precision=precision)
    make_interpreter(op_runtime(), model, [delegate]).allocate_tensors()
    fused = [s for s in delegate.explain().steps if s.pass_name == "fuse_attention"]
    assert any(s.outcome == "applied" for s in fused) == fuses


@pytest.mark.parametrize(
    ("stored", "signature", "shape"),
    [
        # Positions of extent 1, as converters write open ones, look like heads.
        ((1, 1, 1, 8), (-1, 1, -1, 8), (1, 1, 6, 8)),
        ((1, 4, 8), (-1, -1, 8), (2, 2, 8)),  # as many elements
        ((1, 4, 8), (-1, -1, 8), (3, 5, 8)),
    ],
)
def test_sizes_may_change_after_the_passes(stored, signature, shape, device, rng):
    m = ModelMaker()
    q, k, v = (
        m.input(name, stored, np.float32, shape_signature=signature) for name in ("q", "k", "v")
    )
    square = (*stored[:-1], stored[-2])
    scores = m.op("SOFTMAX", [m.op("BATCH_MATMUL", [q, k], square, adj_y=True)], square, beta=1.0)
    m.output(m.op("BATCH_MATMUL", [scores, v], stored))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    for extents in (stored, shape, stored):
        inputs = [rng.standard_normal(extents).astype(np.float32) for _ in range(3)]
        (got,) = run_interpreter(interpreter, inputs, dict.fromkeys(range(3), extents))
        a, b, c = (x.astype(np.float64) for x in inputs)
        weights = np.exp(a @ b.swapaxes(-1, -2))
        expected = weights / weights.sum(-1, keepdims=True) @ c
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)

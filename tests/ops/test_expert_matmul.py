"""Products with matrices that are gathered by index: of BATCH_MATMUL and GATHER."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import LIMITED, check, half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter


def model_of(x, matrices, indices, *, left=False, adj_x=False, adj_y=False, activation=None):
    """A product of an input and of matrices that another input chooses."""
    m = ModelMaker()
    x_id = m.input("x", x.shape, np.float32)
    chosen = m.input("indices", indices.shape, indices.dtype.type)
    gathered = (*indices.shape, *matrices.shape[1:])
    stack = m.constant(matrices)
    table = m.op("GATHER", [stack, chosen], gathered, dtype=np.float32, axis=0)
    operands = [table, x_id] if left else [x_id, table]
    y = expected_of(x, matrices, indices, left=left, adj_x=adj_x, adj_y=adj_y)
    y_id = m.op("BATCH_MATMUL", operands, y.shape, dtype=np.float32, adj_x=adj_x, adj_y=adj_y)
    if activation:
        y_id = m.op(activation, [y_id], y.shape)
    m.output(y_id)
    return m.build()


def expected_of(x, matrices, indices, *, left=False, adj_x=False, adj_y=False):
    chosen = matrices.astype(np.float64)[indices]
    a, b = (chosen, x.astype(np.float64)) if left else (x.astype(np.float64), chosen)
    return (a.swapaxes(-1, -2) if adj_x else a) @ (b.swapaxes(-1, -2) if adj_y else b)


def draw(rng, *shape):
    return half_exact((rng.standard_normal(shape) * 0.5).astype(np.float32))


def run(x, matrices, indices, device, precision, **options):
    expected = expected_of(x, matrices, indices, **options)
    check(
        model_of(x, matrices, indices, **options), [x, indices], [expected],
        device=device, precision=precision, accumulation=matrices.shape[-1],
    )  # fmt: skip


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("adj_y", [True, False])
@pytest.mark.parametrize(
    ("tokens", "chosen", "experts", "rows", "cols", "depth"),
    [
        (1, 2, 5, 1, 7, 36),
        (1, 1, 1, 1, 1, 1),
        (3, 2, 4, 1, 67, 19),
        (9, 3, 4, 1, 20, 48),
        (40, 2, 3, 1, 17, 33),
        (2, 2, 3, 5, 6, 16),
        (1, 4, 16, 1, 40, 128),
        (8, 4, 16, 1, 33, 192),
        (30, 2, 3, 1, 17, 64),
        (3, 2, 2, 10, 20, 1088),
    ],
)
def test_experts(tokens, chosen, experts, rows, cols, depth, adj_y, precision, device):
    rng = np.random.default_rng(tokens)
    x = draw(rng, tokens, 1, rows, depth)
    matrices = draw(rng, experts, *((cols, depth) if adj_y else (depth, cols)))
    indices = rng.integers(0, experts, (tokens, chosen)).astype(np.int32)
    run(x, matrices, indices, device, precision, adj_y=adj_y)


@pytest.mark.parametrize(
    ("x_shape", "indices_shape"),
    [((2, 3, 1, 8), (2, 3)), ((1, 8), (4,)), ((5, 1, 8), (5,)), ((1, 1, 1, 8), (2, 3))],
)
def test_axes(x_shape, indices_shape, device):
    rng = np.random.default_rng(1)
    indices = rng.integers(0, 4, indices_shape).astype(np.int32)
    run(draw(rng, *x_shape), draw(rng, 4, 9, 8), indices, device, "fp32", adj_y=True)


@pytest.mark.parametrize(("adj_x", "adj_y"), [(False, False), (True, False), (False, True)])
def test_matrices_on_the_left(adj_x, adj_y, device):
    rng = np.random.default_rng(2)
    x = draw(rng, 3, 1, *((1, 20) if adj_y else (20, 1)))
    matrices = draw(rng, 4, *((20, 11) if adj_x else (11, 20)))
    indices = rng.integers(0, 4, (3, 2)).astype(np.int32)
    run(x, matrices, indices, device, "fp32", left=True, adj_x=adj_x, adj_y=adj_y)


@pytest.mark.parametrize("which", ["one", "all", "last"])
def test_indices(which, device):
    rng = np.random.default_rng(3)
    indices = {
        "one": np.zeros((8, 2)),
        "all": np.arange(16).reshape(8, 2) % 6,
        "last": np.full((8, 2), 5),
    }[which].astype(np.int32)
    run(draw(rng, 8, 1, 1, 24), draw(rng, 6, 10, 24), indices, device, "fp32", adj_y=True)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_types_of_indices(dtype, device):
    rng = np.random.default_rng(4)
    indices = rng.integers(0, 3, (2, 2)).astype(dtype)
    run(draw(rng, 2, 1, 1, 8), draw(rng, 3, 5, 8), indices, device, "fp32", adj_y=True)


@pytest.mark.parametrize("engine", ["rows", "shared", "by_expert", "grouped_16", "gemm_32"])
def test_rows_of_an_index_that_names_no_expert_are_zero(engine, device):
    """Also of one that names an expert once it is cut to 32 bits."""
    rng = np.random.default_rng(5)
    x, matrices = draw(rng, 6, 1, 1, 8), draw(rng, 3, 5, 8)
    indices = np.zeros((6, 1), np.int64)
    model = model_of(x, matrices, indices, adj_y=True)
    indices[2] = 2**32 + 1
    # Emulated devices may lack the work-groups that a kernel demands.
    engines = {"expert_matmul": f"{engine}|auto" if LIMITED else engine}
    delegate = clgpu_delegate.load(device=device, engines=engines)
    (got,) = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), [x, indices])
    assert {engine} <= {node.candidate for node in delegate.explain().nodes} or LIMITED
    assert not got[2].any()
    assert got[1].any()


# Tokens, indices of each, experts, rows of each, depth: one and two words of rows, several rows of
# an expert and hardly any, the depth a multiple of what all warps read at once, or not.
@pytest.mark.parametrize("half_io", [False, True])
@pytest.mark.parametrize(
    ("tokens", "chosen", "experts", "rows", "depth"),
    [
        (2, 1, 12, 1, 320),
        (7, 2, 3, 1, 320),
        (20, 3, 3, 1, 64),
        (3, 2, 4, 5, 128),
        (1, 4, 16, 1, 1024),
    ],
)
def test_tensor_cores_of_few_rows(tokens, chosen, experts, rows, depth, half_io, device):
    """Rows whose index names no expert are zero; the last index has an expert of its own."""
    rng = np.random.default_rng(6)
    x, matrices = draw(rng, tokens, 1, rows, depth), draw(rng, experts, 37, depth)
    indices = rng.integers(0, experts - 1, (tokens, chosen)).astype(np.int32)
    indices[-1, -1] = experts - 1
    model = model_of(x, matrices, indices, adj_y=True)
    expected = expected_of(x, matrices, indices, adj_y=True)
    indices[0, 0], expected[0, 0] = experts, 0
    delegate = clgpu_delegate.load(device=device, precision="fp16", half_io=half_io)
    (got,) = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), [x, indices])
    nodes = [node for node in delegate.explain().nodes if node.family == "expert_matmul"]
    if not any("warps" in node.candidates for node in nodes):
        pytest.skip("the device has no such tensor cores")
    assert {node.candidate for node in nodes} == {"warps"}
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())


def test_activation_behind_it(device):
    rng = np.random.default_rng(5)
    x, matrices = draw(rng, 4, 1, 1, 12), draw(rng, 3, 7, 12)
    indices = rng.integers(0, 3, (4, 2)).astype(np.int32)
    model = model_of(x, matrices, indices, adj_y=True, activation="RELU")
    expected = np.maximum(expected_of(x, matrices, indices, adj_y=True), 0)
    check(model, [x, indices], [expected], device=device, precision="fp32", accumulation=12)


def test_number_of_tokens_may_change(device):
    rng = np.random.default_rng(6)
    matrices = draw(rng, 3, 7, 12)
    indices = rng.integers(0, 3, (5, 2)).astype(np.int32)
    x = draw(rng, 5, 1, 1, 12)
    model = model_of(x[:2], matrices, indices[:2], adj_y=True)
    expected = expected_of(x, matrices, indices, adj_y=True)
    check(
        model, [x, indices], [expected], device=device, precision="fp32", accumulation=12,
        resize={0: x.shape, 1: indices.shape},
    )  # fmt: skip

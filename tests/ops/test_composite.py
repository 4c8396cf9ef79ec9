"""STABLEHLO_COMPOSITE: attention and normalisations that files name."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from flatbuffers import flexbuffers
from hypothesis import strategies as st

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.composites import (
    attention_body,
    composite,
    group_norm_body,
    ints,
    moved,
    number,
    reshaped,
    row_norm_body,
    same,
    summed,
)
from tests.ops.harness import EXAMPLES, check, check_refused, op_runtime
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import assert_close

ATTENTION = "odml.scaled_dot_product_attention"
RMS_NORM, L2_NORM, GROUP_NORM = "odml.rms_norm", "odml.l2_norm", "odml.group_norm"
EPSILON = 1e-6


def attention(q, k, v, mask=None, scale=1.0):
    """In float64; the axes are batch, position, head, element."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    share = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, share, axis=2) for x in (k, v))
    scores = scale * np.einsum("btnd,bsnd->bnts", q, k)
    if mask is not None:
        scores = scores + mask
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bnts,bsnc->btnc", scores / scores.sum(-1, keepdims=True), v)


def model_of(inputs, scale, attributes=None):
    shapes = [x.shape for x in inputs]
    result = (*shapes[0][:3], shapes[2][3])
    attributes = {"scale": scale} if attributes is None else attributes
    return composite(ATTENTION, shapes, attributes, attention_body(scale), result)


def operands(rng, batches, queries, keys, heads, key_heads, depth, cols=None):
    shapes = (
        (batches, queries, heads, depth),
        (batches, keys, key_heads, depth),
        (batches, keys, key_heads, cols or depth),
    )
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


# Batches, queries, keys, heads, heads of keys, elements of a head, columns; whether there is a
# mask.
CASES = {
    "one_query": ((1, 1, 70, 8, 2, 8), True),
    "one_head_of_keys": ((1, 5, 9, 6, 1, 8), False),
    "equal_heads": ((2, 7, 7, 3, 3, 8), True),
    "odd": ((1, 3, 33, 2, 1, 5, 19), False),
    # Tiles of tensor cores: several, and parts of one.
    "tiles": ((2, 50, 150, 6, 2, 64), True),
    "wide_tiles": ((1, 67, 130, 2, 2, 128), False),
    "long": ((1, 1, 300, 6, 2, 32), True),
    "shared_lanes": ((2, 2, 130, 6, 3, 16, 24), True),
}


@pytest.mark.parametrize("case", CASES)
def test_attention(case, device, precision, rng):
    sizes, masked = CASES[case]
    batches, queries, keys, *_ = sizes
    inputs = operands(rng, *sizes)
    scale = sizes[5] ** -0.5
    if masked:
        mask = np.where(np.arange(keys) > keys - 3, -np.inf, 0).astype(np.float32)
        inputs.append(np.broadcast_to(mask, (batches, 1, queries, keys)).copy())
    expected = attention(*inputs, scale=scale)
    terms = keys + sizes[5]
    model = model_of(inputs, scale)
    check(model, inputs, [expected], device=device, precision=precision, accumulation=terms)


def test_a_scale_that_is_not_given_is_the_root_of_the_depth(device, rng):
    inputs = operands(rng, 1, 4, 6, 2, 2, 9)
    model = model_of(inputs, 1 / 3, attributes={})
    expected = attention(*inputs, scale=1 / 3)
    check(model, inputs, [expected], device=device, precision="fp32", accumulation=15)


def test_a_mask_may_differ_by_head_and_open_the_last_keys_only(device, rng):
    """The first steps of a work-group have no key that counts."""
    inputs = operands(rng, 2, 3, 150, 4, 2, 8)
    mask = rng.standard_normal((2, 4, 3, 150)).astype(np.float32)
    mask[..., :140] = -np.inf
    expected = attention(*inputs, mask, scale=0.5)
    model = model_of([*inputs, mask], 0.5)
    check(model, [*inputs, mask], [expected], device=device, precision="fp32", accumulation=158)


@pytest.mark.parametrize("hidden", [-np.inf, -65504])
def test_a_causal_mask_hides_whole_tiles(hidden, device, precision, rng):
    inputs = operands(rng, 1, 150, 150, 4, 2, 64)
    inputs[0] /= 4
    mask = np.where(np.tri(150, dtype=bool), np.float32(0), np.float32(hidden))[None, None]
    expected = attention(*inputs, mask, scale=0.125)
    model = model_of([*inputs, mask], 0.125)
    check(model, [*inputs, mask], [expected], device=device, precision=precision, accumulation=214)


ENGINES = pytest.mark.parametrize(
    "engine", ["rows_1|rows_4", "split_1|split_4", "vectors_16", "lanes_8"]
)


@pytest.mark.parametrize("keys", [600, 605])
@pytest.mark.parametrize("by_head", [False, True])
def test_long_masks_are_looked_at_by_tiles(keys, by_head, device, precision, rng):
    """Tiles that are hidden, open and mixed; some queries see late keys only."""
    inputs = operands(rng, 2, 70, keys, 4, 2, 64)
    inputs[0] /= 4
    mask = np.zeros((2 if by_head else 1, 4 if by_head else 1, 70, keys), np.float32)
    mask[..., 64:200] = -np.inf
    mask[..., np.arange(keys) > 300 + np.arange(70)[:, None]] = -np.inf
    mask[:, :, 40:, 250:260] = np.arange(10) / 8
    for query, seen in ((5, slice(270, 300)), (7, slice(1)), (8, slice(keys - 1, keys))):
        mask[:, :, query, :] = -np.inf
        mask[:, :, query, seen] = 0
    if by_head:
        mask[1, 2, :, :] = -np.inf
        mask[1, 2, :, keys - 40 :] = 0
    expected = attention(*inputs, mask, scale=0.125)
    model = model_of([*inputs, mask], 0.125)
    check(
        model, [*inputs, mask], [expected], device=device, precision=precision,
        accumulation=keys + 64,
    )  # fmt: skip


@pytest.mark.parametrize("queries", [1, 2, 4, 70])
def test_rows_may_see_late_keys_only(queries, device, precision, rng):
    """Beside rows that see all keys, and each in another step of a work-group."""
    inputs = operands(rng, 2, queries, 150, 4, 2, 64)
    inputs[0] /= 4
    mask = np.zeros((2, 4, queries, 150), np.float32)
    from_key = 149 - 37 * (np.arange(8 * queries).reshape(2, 4, queries) % 5)
    mask[np.arange(150) < from_key[..., None]] = -np.inf
    expected = attention(*inputs, mask, scale=0.125)
    model = model_of([*inputs, mask], 0.125)
    check(model, [*inputs, mask], [expected], device=device, precision=precision, accumulation=214)


SEEN = {
    "one_chunk": ([slice(5)], [slice(5)]),
    "the_last_chunk": ([slice(-10, None)], [slice(-1, None)]),
    "two_chunks": ([slice(5), slice(400, 410)], [slice(5), slice(400, 410)]),
    "another_for_each_query": ([slice(5)], [slice(600, 640)]),
    "all": ([slice(None)], [slice(None)]),
}


@pytest.mark.parametrize(("length", "depth"), [(700, 64), (700, 128), (2200, 128), (1024, 256)])
@pytest.mark.parametrize("seen", SEEN)
def test_what_is_seen_lies_in_few_chunks_of_keys(seen, length, depth, device, precision, rng):
    """A work-group whose chunk of keys is the only one that counts merges nothing."""
    first, second = SEEN[seen]
    for queries in (1, 2):
        inputs = operands(rng, 1, queries, length, 6, 2, depth)
        inputs[0] /= 4
        mask = np.full((1, 1, queries, length), -np.inf, np.float32)
        for query, slices in enumerate((first, second)[:queries]):
            for each in slices:
                mask[0, 0, query, each] = 0
        expected = attention(*inputs, mask, scale=0.125)
        model = model_of([*inputs, mask], 0.125)
        check(
            model, [*inputs, mask], [expected], device=device, precision=precision,
            accumulation=length + depth,
        )  # fmt: skip


@pytest.mark.parametrize("queries", [1, 3, 70])
@pytest.mark.parametrize("hidden", [-np.inf, -1e9])
def test_a_row_that_sees_nothing(hidden, queries, device, precision, rng):
    """Beside rows that see keys. A mask of halves cannot tell the two numbers: the row is a mean.

    In floats, a row of -infinity is NaN, as with XNNPACK; ADD of the reference kernels makes it
    finite.
    """
    inputs = operands(rng, 1, queries, 150, 4, 2, 64)
    inputs[0] /= 4
    mask = np.where(np.arange(150) < 100, np.float32(hidden), np.float32(0))
    mask = np.broadcast_to(mask, (1, 4, queries, 150)).copy()
    mask[:, 1, queries // 2] = hidden
    with np.errstate(invalid="ignore"):
        expected = attention(*inputs, mask, scale=0.125)
    if precision == "fp16" or np.isfinite(hidden):
        expected[0, queries // 2, 1] = inputs[2][0, :, 0].mean(0)
    model = model_of([*inputs, mask], 0.125)
    with np.errstate(over="ignore"):  # of the mask as halves
        check(
            model, [*inputs, mask], [expected], device=device, precision=precision,
            accumulation=214, reference=precision == "fp32" and np.isfinite(hidden),
        )  # fmt: skip


def by(engine, device, inputs, mask):
    """Attention of one query with a scale of 0.5, computed by an engine."""
    model = model_of([*inputs, mask], 0.5)
    delegate = clgpu_delegate.load(device=device, engines={"composite": f"{engine}|auto"})
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    (got,) = run_interpreter(interpreter, [*inputs, mask])
    (node,) = delegate.explain().nodes
    if set(engine.split("|")).isdisjoint(node.candidates):
        pytest.skip(f"the device has no engine {engine} for this")
    assert node.candidate in engine.split("|")
    return got


@ENGINES
def test_masked_keys_are_not_read(engine, device, rng):
    """What a cache of keys holds behind the last position may be anything; values are finite."""
    inputs = operands(rng, 1, 1, 200, 4, 2, 32)
    mask = np.zeros((1, 1, 1, 200), np.float32)
    mask[..., 100:] = -np.inf
    expected = attention(*inputs, mask, scale=0.5)
    inputs[1][:, 100:] = np.nan
    got = by(engine, device, inputs, mask)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@ENGINES
def test_a_key_that_is_not_a_number_is_noticed(engine, device, rng):
    """Also where all other keys of its block are masked."""
    inputs = operands(rng, 1, 1, 200, 4, 2, 32)
    mask = np.full((1, 1, 1, 200), -np.inf, np.float32)
    mask[..., [3, *range(100, 110)]] = 0
    inputs[1][:, 3] = np.nan
    assert np.isnan(by(engine, device, inputs, mask)).all()


@ENGINES
def test_a_row_of_the_lowest_numbers_is_a_mean(engine, device, rng):
    inputs = operands(rng, 1, 1, 200, 4, 2, 32)
    mask = np.full((1, 1, 1, 200), np.finfo(np.float32).min, np.float32)
    expected = np.repeat(inputs[2].mean(1, keepdims=True), 2, axis=2)
    np.testing.assert_allclose(by(engine, device, inputs, mask), expected, rtol=1e-5, atol=1e-5)


def test_large_scores_do_not_overflow(device, rng):
    inputs = operands(rng, 1, 2, 70, 1, 1, 4)
    inputs[0] *= 1000
    expected = attention(*inputs, scale=1.0)
    model = model_of(inputs, 1.0)
    got = run_interpreter(
        make_interpreter(op_runtime(), model, [clgpu_delegate.load(device=device)]), inputs
    )
    np.testing.assert_allclose(got[0], expected, rtol=1e-3, atol=1e-3)


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    sizes=st.tuples(
        st.integers(1, 2), st.integers(1, 9), st.integers(1, 70), st.integers(1, 3),
        st.integers(1, 3), st.integers(1, 20), st.integers(1, 20),
    ),
    seed=st.integers(0),
)  # fmt: skip
def test_any_attention(device, sizes, seed):
    batches, queries, keys, key_heads, share, depth, cols = sizes
    # With as many positions as heads, a decomposition does not tell which heads are repeated.
    hypothesis.assume(1 in (share, key_heads) or keys != key_heads)
    rng = np.random.default_rng(seed)
    inputs = operands(rng, batches, queries, keys, key_heads * share, key_heads, depth, cols)
    # The root of an exact square: the decomposition multiplies twice by it.
    expected = attention(*inputs, scale=0.25)
    model = model_of(inputs, 0.25)
    check(model, inputs, [expected], device=device, precision="fp32", accumulation=keys + depth)


def row_norm(x, weight=1.0, *, mean):
    x = x.astype(np.float64)
    squares = x**2
    length = squares.mean(-1, keepdims=True) if mean else squares.sum(-1, keepdims=True)
    return x / np.sqrt(length + EPSILON) * weight


@pytest.mark.parametrize("by", ["MUL", "MEAN"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (70, 33), (1, 1, 300)])
def test_rms_norm(by, shape, device, precision, rng):
    x, weight = (rng.standard_normal(n).astype(np.float32) for n in (shape, shape[-1:]))
    body = row_norm_body(EPSILON, mean=by)
    model = composite(
        RMS_NORM, [shape, shape[-1:]], {"epsilon": EPSILON}, body, constants={1: weight}
    )
    expected = row_norm(x, weight, mean=True)
    check(model, [x], [expected], device=device, precision=precision, accumulation=shape[-1])


def test_rms_norm_without_weights_or_with_computed_ones(device, rng):
    for shapes in ([(4, 6)], [(4, 6), (6,)]):
        inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        body = row_norm_body(EPSILON, mean="MUL")
        model = composite(RMS_NORM, shapes, {"epsilon": EPSILON}, body)
        expected = row_norm(*inputs, mean=True)
        check(model, inputs, [expected], device=device, precision="fp32", accumulation=6)


@pytest.mark.parametrize("shape", [(3, 7), (1, 768)])
def test_l2_norm(shape, device, precision, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    attributes = {"axis": -1, "epsilon": EPSILON}
    model = composite(L2_NORM, [shape], attributes, row_norm_body(EPSILON, mean=None))
    expected = row_norm(x, mean=False)
    check(model, [x], [expected], device=device, precision=precision, accumulation=shape[-1])


def group_norm(x, groups, scale, bias):
    images, channels = x.shape[0], x.shape[-1]
    y = x.astype(np.float64).reshape(images, -1, groups, channels // groups)
    y = y - y.mean((1, 3), keepdims=True)
    y = y / np.sqrt((y**2).mean((1, 3), keepdims=True) + EPSILON)
    return y.reshape(x.shape) * scale + bias


@pytest.mark.parametrize(
    ("shape", "groups"), [((2, 5, 7, 12), 3), ((1, 40, 10), 1), ((2, 9, 9, 16), 16)]
)
def test_group_norm(shape, groups, device, precision, rng):
    x = rng.standard_normal(shape).astype(np.float32) + 0.5
    scale, bias = (rng.standard_normal(shape[-1:]).astype(np.float32) for _ in range(2))
    name = "SUM" if groups == 1 else "MEAN"
    model = composite(
        GROUP_NORM,
        [shape, shape[-1:], shape[-1:]],
        {"channel_axis": -1, "epsilon": EPSILON, "num_groups": groups},
        group_norm_body(EPSILON, groups, name=name),
        constants={1: scale, 2: bias},
    )
    expected = group_norm(x, groups, scale, bias)
    terms = x.size // shape[0] // groups
    check(model, [x], [expected], device=device, precision=precision, accumulation=terms)


def test_group_norm_without_factors(device, rng):
    x = rng.standard_normal((2, 6, 8)).astype(np.float32)
    attributes = {"epsilon": EPSILON, "num_groups": 4}
    model = composite(GROUP_NORM, [x.shape], attributes, group_norm_body(EPSILON, 4))
    expected = group_norm(x, 4, 1.0, 0.0)
    check(model, [x], [expected], device=device, precision="fp32", accumulation=12)


# Composites that run as their graphs


def as_graph(reason, shapes, attributes, body, name=RMS_NORM, dtype=np.float32, **more):
    """Check that a composite runs as its graph, for a reason, and that the result is stock's."""
    model = composite(name, shapes, attributes, body, dtype=dtype, **more)
    delegate = clgpu_delegate.load(warm_up=False)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    (node,) = delegate.explain().nodes
    assert node.claimed, node.reason
    assert node.reason.startswith("runs as the graph that defines it: ")
    assert reason in node.reason
    rng = np.random.default_rng(0)
    inputs = [(3 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]
    (got,) = run_interpreter(interpreter, inputs)
    (want,) = run_reference(model, inputs, op_runtime())
    assert_close(got, want, "fp32", accumulation=64)


def plain(g: ModelMaker, inputs: list[int]) -> int:
    return same(g, "ABS", inputs[0])


GIVEN = {"epsilon": EPSILON}
RMS = row_norm_body(EPSILON, mean="MUL")


def test_unknown_names_run_as_their_graphs():
    as_graph("the composite odml.other has no kernels", [(2, 3)], {}, plain, "odml.other")
    as_graph(
        "the composite odml.other has no kernels", [(2, 3)], {}, plain, "odml.other", dtype=np.int32
    )


def test_damaged_attributes_run_as_their_graphs(rng):
    whole = bytes(flexbuffers.Dumps({"epsilon": EPSILON, "axis": -1, "text": "abc", "list": [1]}))
    reason = "its attributes are not a FlexBuffers map"
    for damaged in (b"\x01", whole[:-1], whole[1:], whole[:-3] + b"\xff" + whole[-2:], bytes(9)):
        as_graph(reason, [(2, 3)], damaged, RMS)
    # Whatever the bytes are, nothing is read beyond them.
    bits = rng.integers(0, 8 * len(whole), 20)
    for bit in bits:
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        model = composite(RMS_NORM, [(2, 3)], bytes(changed), RMS)
        delegate = clgpu_delegate.load(warm_up=False)
        interpreter = make_interpreter(op_runtime(), model, [delegate])
        assert [n.op for n in delegate.explain().nodes] == ["STABLEHLO_COMPOSITE"]
        del interpreter


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("indirect", [False, True])
def test_numbers_of_every_width_are_read(width, indirect, device):
    """An attribute of that width makes the others as wide."""
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("axis")
        builder.Int(-1, byte_width=width)
        builder.Key("epsilon")
        if indirect:
            builder.IndirectFloat(0.5, byte_width=max(4, width))
        else:
            builder.Float(0.5, byte_width=max(4, width))
    body = row_norm_body(0.5, mean=None)
    x = np.array([[3.0, 4.0]], np.float32)
    model = composite(L2_NORM, [(1, 2)], bytes(builder.Finish()), body)
    check(model, [x], [x / np.sqrt(25.5)], device=device, precision="fp32", accumulation=2)


@pytest.mark.parametrize(
    "body",
    [
        plain,
        row_norm_body(2e-6, mean="MUL"),
        row_norm_body(EPSILON, mean=None),
        lambda g, inputs: same(g, "MUL", RMS(g, inputs), number(g, 2.0)),
    ],
    ids=["other", "epsilon", "sum", "factor"],
)
def test_a_decomposition_that_computes_something_else_is_run(body):
    as_graph("the decomposition computes something else than", [(2, 3)], GIVEN, body)


def test_other_attention_runs_as_its_graph():
    reason = "the decomposition computes something else than"
    shapes = [(1, 4, 2, 8)] * 3
    body = attention_body(0.25)
    as_graph(reason, shapes, {"scale": 0.5}, body, ATTENTION)
    # Positions and heads are exchanged.
    exchanged = [(1, 3, 2, 8)] * 3

    def by_head(g, inputs):
        q, k, v = inputs
        scores = g.op("BATCH_MATMUL", [q, k], (1, 3, 2, 2), adj_y=True)
        weights = g.op("SOFTMAX", [scores], (1, 3, 2, 2), beta=1.0)
        return g.op("BATCH_MATMUL", [weights, v], (1, 3, 2, 8))

    as_graph(reason, exchanged, {"scale": 1.0}, by_head, ATTENTION)

    def transposed(g, inputs):
        q, k, v = (moved(g, x, (0, 2, 1, 3)) for x in inputs)
        scores = g.op("BATCH_MATMUL", [q, k], (1, 2, 4, 4), adj_y=True)
        weights = g.op("SOFTMAX", [scores], (1, 2, 4, 4), beta=1.0)
        y = g.op("BATCH_MATMUL", [weights, v], (1, 2, 4, 8), adj_x=True)
        return moved(g, y, (0, 2, 1, 3))

    as_graph(reason, shapes, {"scale": 1.0}, transposed, ATTENTION)

    def tiled(g, inputs):
        q, k, v = (moved(g, x, (0, 2, 1, 3)) for x in inputs)
        k, v = (reshaped(g, x, 1, 1, 2, 5, 8) for x in (k, v))
        k, v = (
            g.op("BROADCAST_TO", [x, ints(g, 1, 2, 2, 5, 8)], (1, 2, 2, 5, 8), version=2)
            for x in (k, v)
        )
        k, v = (reshaped(g, x, 1, 4, 5, 8) for x in (k, v))
        scores = g.op("BATCH_MATMUL", [q, k], (1, 4, 3, 5), adj_y=True)
        weights = g.op("SOFTMAX", [scores], (1, 4, 3, 5), beta=1.0)
        return moved(g, g.op("BATCH_MATMUL", [weights, v], (1, 4, 3, 8)), (0, 2, 1, 3))

    as_graph(reason, [(1, 3, 4, 8), (1, 5, 2, 8), (1, 5, 2, 8)], {"scale": 1.0}, tiled, ATTENTION)


def test_factors_of_another_axis_and_interleaved_groups_run_as_graphs():
    check_refused(
        composite(RMS_NORM, [(4, 4), (4, 1)], GIVEN, RMS), "does not fit factors of [4, 1]"
    )

    def interleaved(g, inputs):
        x = reshaped(g, inputs[0], 1, 16, 2, 2)
        mean = summed(g, x, 1, 2, name="MEAN")
        centred = same(g, "SUB", x, mean)
        variance = summed(g, same(g, "MUL", centred, centred), 1, 2, name="MEAN")
        root = same(g, "RSQRT", same(g, "ADD", variance, number(g, EPSILON)))
        return reshaped(g, same(g, "MUL", centred, root), 1, 4, 4, 4)

    reason = "the decomposition computes something else than"
    as_graph(reason, [(1, 4, 4, 4)], {"num_groups": 2, **GIVEN}, interleaved, GROUP_NORM)


def test_a_row_without_keys_is_a_mean_in_halves(device, rng):
    inputs = operands(rng, 1, 2, 5, 1, 1, 8)
    mask = np.full((1, 1, 2, 5), -1e9, np.float32)
    mask[..., 1, :3] = 0
    model = model_of([*inputs, mask], 1.0)
    delegate = clgpu_delegate.load(device=device, precision="fp16", half_io=True)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    (got,) = run_interpreter(interpreter, [*inputs, mask])
    np.testing.assert_allclose(got[:, 0, 0], inputs[2].mean(1)[:, 0], rtol=1e-2, atol=1e-2)
    expected = attention(*inputs, mask)
    np.testing.assert_allclose(got[:, 1], expected[:, 1], rtol=1e-2, atol=1e-2)


def test_operands_and_attributes_that_do_not_fit_leave_the_graph():
    two, four = [(2, 3)], [(1, 4, 2, 8)] * 3
    as_graph("it has 2 inputs; attention takes 3 or 4", two * 2, {}, plain, ATTENTION)
    as_graph("queries has rank 2", two * 3, {}, plain, ATTENTION)
    as_graph("queries is int32", four, {}, plain, ATTENTION, dtype=np.int32)
    big = [(1, 1, 1, 2049)] * 3
    as_graph("a head is 2049 elements; supported: up to 2048", big, {}, plain, ATTENTION)
    reason = "it has 3 inputs; the normalisation takes at most 2"
    as_graph(reason, [(2, 3), (3,), (3,)], GIVEN, plain)
    as_graph("x is int32", two, GIVEN, plain, dtype=np.int32)
    as_graph("x has rank 1", [(4,)], GIVEN, plain, GROUP_NORM)
    as_graph("the attribute axis is 0", two, {"axis": 0, **GIVEN}, plain, L2_NORM)
    as_graph("the attribute epsilon is missing", two, {}, plain, L2_NORM)
    as_graph("the attribute epsilon is missing", two, {"num_groups": 1}, plain, GROUP_NORM)
    as_graph("the attribute channel_axis is 0", two, {"channel_axis": 0}, plain, GROUP_NORM)
    for groups in (0, 2, 4):
        attributes = {"num_groups": groups, **GIVEN}
        as_graph(f"the attribute num_groups is {groups}", two, attributes, plain, GROUP_NORM)


def test_results_of_another_type_are_refused():
    m = ModelMaker()
    x = m.input("x", (2, 3))
    graph = m.subgraph()
    graph.output(RMS(graph, [graph.input("x", (2, 3))]))
    attributes = np.frombuffer(flexbuffers.Dumps(GIVEN), np.uint8)
    m.output(
        m.op(
            "STABLEHLO_COMPOSITE", [x], (2, 3), dtype=np.int32, name=RMS_NORM,
            decomposition_subgraph_index=1, composite_attributes=attributes,
        )
    )  # fmt: skip
    check_refused(m.build(), "output 0 is int32; supported: float32")


def test_several_results_and_a_composite_within_a_composite(device, precision, rng):
    """One of the results is an input of the graph, and one of the operands a constant."""
    shape = (-1, 3)
    m = ModelMaker()
    empty = {"composite_attributes": np.frombuffer(flexbuffers.Dumps({}), np.uint8)}
    x, y = m.op("NEG", [m.input("x", shape)], shape), m.constant(np.float32([[1, 2, 3]]))
    outer = m.subgraph()
    inner = m.subgraph()
    a, b = outer.input("a", shape), outer.input("b", (1, 3))
    total = outer.op("ADD", [a, b], shape)
    norm = outer.op(
        "STABLEHLO_COMPOSITE", [total], shape, name="odml.other", decomposition_subgraph_index=2,
        **empty,
    )  # fmt: skip
    outer.output(b, outer.op("MUL", [norm, total], shape), total)
    z = inner.input("z", shape)
    inner.output(inner.op("TANH", [inner.op("SQUARE", [z], shape)], shape))
    found = m.op(
        "STABLEHLO_COMPOSITE", [x, y], [(1, 3), shape, shape], name="odml.some",
        decomposition_subgraph_index=1, **empty,
    )  # fmt: skip
    m.output(*(m.op("ABS", [r], m.shape(r)) for r in found))
    x = rng.standard_normal((5, 3)).astype(np.float32)
    total = np.float64([[1, 2, 3]]) - x
    want = [np.float64([[1, 2, 3]]), np.abs(np.tanh(total**2) * total), np.abs(total)]
    options = {"device": device, "precision": precision, "resize": {0: x.shape}}
    check(m.build(), [x], want, **options)


@pytest.mark.parametrize(
    ("dtypes", "reason"),
    [
        ([np.float32, np.float32], "it has several outputs; the operation has 1"),
        ([np.int32], "output is int32; supported: float32"),
    ],
)
def test_results_that_no_normalisation_has_are_those_of_the_graph(dtypes, reason, rng):
    m = ModelMaker()
    operand = m.input("x", (2, 3))
    graph = m.subgraph()
    x = graph.input("x", (2, 3))
    types = [{"in_data_type": np.float32, "out_data_type": t} for t in dtypes]
    graph.output(*(graph.op("CAST", [x], (2, 3), dtype=t["out_data_type"], **t) for t in types))
    found = m.op(
        "STABLEHLO_COMPOSITE", [operand], [(2, 3)] * len(dtypes), dtype=dtypes, name=RMS_NORM,
        decomposition_subgraph_index=1,
        composite_attributes=np.frombuffer(flexbuffers.Dumps(GIVEN), np.uint8),
    )  # fmt: skip
    m.output(*found)
    delegate = clgpu_delegate.load(warm_up=False)
    x = 3 * rng.standard_normal((2, 3)).astype(np.float32)
    got = run_interpreter(make_interpreter(op_runtime(), m.build(), [delegate]), [x])
    (node,) = delegate.explain().nodes
    assert node.claimed
    assert reason in node.reason
    for y, dtype in zip(got, dtypes):
        np.testing.assert_array_equal(y, x.astype(dtype))


def test_a_graph_that_the_device_does_not_take_is_refused():
    def with_complex(g, inputs):
        number = {"in_data_type": np.float32, "out_data_type": np.complex64}
        return g.op("CAST", inputs, (2, 3), dtype=np.complex64, **number)

    model = composite("odml.other", [(2, 3)], {}, with_complex)
    check_refused(model, "runs CAST of its graph 1, which needs the CPU")


def test_a_decomposition_that_is_not_there_is_refused():
    """Index 0 is the graph of the node itself."""
    for index in (0, 7, -1):
        m = ModelMaker()
        m.output(
            m.op(
                "STABLEHLO_COMPOSITE", [m.input("x", (2, 3))], (2, 3), name=RMS_NORM,
                decomposition_subgraph_index=index,
                composite_attributes=np.frombuffer(flexbuffers.Dumps(GIVEN), np.uint8),
            )
        )  # fmt: skip
        check_refused(m.build(), "the decomposition computes something else")


def test_verification_says_that_only_the_interpreter_runs_the_decomposition(device, rng):
    x = rng.standard_normal((2, 3)).astype(np.float32)
    model = composite(RMS_NORM, [(2, 3)], GIVEN, RMS)
    delegate = clgpu_delegate.load(device=device, verify="first")
    got = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), [x])
    np.testing.assert_allclose(got[0], row_norm(x, mean=True), rtol=1e-5)
    assert "can be run only by the interpreter" in " ".join(str(delegate.explain()).split())


# Files of other projects


def files() -> list[Path]:
    root = Path(
        os.environ.get("CLGPU_MORE_MODELS", Path(__file__).parents[3] / "shared/models/more")
    )
    names = ("*sdpa_composite*", "l2_norm_composite*", "rms_norm_composite*", "*group_norm*")
    return sorted(file for name in names for file in root.glob(f"*/{name}"))


@pytest.mark.parametrize("file", files(), ids=lambda file: file.name.split(".")[0])
def test_composites_of_other_projects(file, device, rng):
    model = file.read_bytes()
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(op_runtime(), model, [delegate])
    details = ours.get_input_details()
    inputs = [rng.standard_normal(d["shape"]).astype(d["dtype"]) for d in details]
    got = run_interpreter(ours, inputs)
    wanted = run_reference(model, inputs, op_runtime())
    (node,) = [n for n in delegate.explain().nodes if n.op == "STABLEHLO_COMPOSITE"]
    assert node.claimed, node.reason
    # The group normalisations in these files take differences from themselves, not from a mean.
    assert node.reason.startswith("runs as the graph") == ("group_norm" in file.name), node.reason
    for mine, its in zip(got, wanted):
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)

"""Mixtures of experts: what no sample has chosen is not computed, and results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from bench import networks
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import MODEL_L2, assert_close, relative_l2

EXPERTS, WIDTH, OUT = 5, 12, 7
OFF, ON = "dense", "sparse"


def expert_weights(rng):
    return (rng.standard_normal((EXPERTS, OUT, WIDTH)) * 0.3).astype(np.float32)


def gated_model(batch, chosen, weights, hot=False):
    """A mixture whose scores are an input: ``gates = scores`` where they are among the largest."""
    m = ModelMaker()
    x = m.input("x", (batch, WIDTH), np.float32)
    scores = m.input("scores", (batch, EXPERTS), np.float32)
    shapes = [(batch, chosen)] * 2
    values, indices = m.op(
        "TOPK_V2", [scores, m.constant(np.int32(chosen))], shapes, dtype=[np.float32, np.int32]
    )
    if hot:
        numbers = [np.int32(EXPERTS), np.float32(1), np.float32(0)]
        y = m.op(
            "ONE_HOT", [indices, *map(m.constant, numbers)], (batch, chosen, EXPERTS),
            dtype=np.float32, axis=-1,
        )  # fmt: skip
        shape = m.constant(np.int32([batch, chosen, 1]))
        y = m.op("MUL", [y, m.op("RESHAPE", [values, shape], (batch, chosen, 1))], m.shape(y))
        gates = m.op("SUM", [y, m.constant(np.int32([1]))], (batch, EXPERTS), keep_dims=False)
    else:
        ends = [m.constant(np.int32(place)) for place in ([0, chosen - 1], [batch, chosen], [1, 1])]
        least = m.op("STRIDED_SLICE", [values, *ends], (batch, 1))
        picked = m.op("GREATER_EQUAL", [scores, least], (batch, EXPERTS), dtype=np.bool_)
        gates = m.op(
            "SELECT_V2", [picked, scores, m.constant(np.float32(0))], (batch, EXPERTS),
            dtype=np.float32,
        )  # fmt: skip
    parts = m.op("SPLIT", [m.constant(np.int32(1)), gates], [(batch, 1)] * EXPERTS,
                 dtype=[np.float32] * EXPERTS, num_splits=EXPERTS)  # fmt: skip
    total = None
    for matrix, gate in zip(weights, parts):
        y = m.op("FULLY_CONNECTED", [x, m.constant(matrix), None], (batch, OUT))
        y = m.op("MUL", [m.op("TANH", [y], (batch, OUT)), gate], (batch, OUT))
        total = y if total is None else m.op("ADD", [total, y], (batch, OUT))
    m.output(total)
    return m.build()


def run(model, inputs, device, **options):
    """Outputs, and the explanation."""
    delegate = clgpu_delegate.load(device=device, warm_up=False, **options)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    outputs = [run_interpreter(interpreter, inputs)[0]]
    # Again, when memory has been used: what was not computed now holds old numbers.
    outputs.append(run_interpreter(interpreter, inputs)[0])
    return outputs, delegate.explain()


def skips(explanation):
    return [
        s for s in explanation.steps if s.pass_name == "skip_experts" and s.outcome == "applied"
    ]


def stock(model, inputs):
    return run_interpreter(make_interpreter(op_runtime(), model), inputs)[0]


@pytest.mark.parametrize("share_memory", [True, False])
@pytest.mark.parametrize("hot", [True, False])
@pytest.mark.parametrize(("batch", "chosen"), [(1, 2), (8, 1), (3, 2), (2, EXPERTS)])
def test_results_are_those_of_all_experts(batch, chosen, hot, share_memory, device):
    rng = np.random.default_rng(batch)
    weights = expert_weights(rng)
    inputs = [
        rng.standard_normal((batch, WIDTH)).astype(np.float32),
        rng.standard_normal((batch, EXPERTS)).astype(np.float32),
    ]
    model = gated_model(batch, chosen, weights, hot)
    wanted = stock(model, inputs)
    for experts in (OFF, ON):
        outputs, explanation = run(
            model, inputs, device, experts=experts, share_memory=share_memory
        )
        assert len(skips(explanation)) == (EXPERTS if experts == ON else 0)
        for output in outputs:
            assert_close(output, wanted, "fp32", WIDTH, experts)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("scores", ["nothing", "ties", "nan", "negative zero"])
def test_gates(scores, batch, device):
    rng = np.random.default_rng(7)
    weights = expert_weights(rng)
    gates = {
        "nothing": np.zeros(EXPERTS),
        "ties": [1, 1, 0, 1, 0],
        "nan": [0, 1, np.nan, 0, 0.5],
        "negative zero": [-0.0, 2, 0, -1, -2],
    }[scores]
    x = rng.standard_normal((batch, WIDTH)).astype(np.float32)
    inputs = [x, np.tile(np.float32(gates), (batch, 1))]
    model = gated_model(batch, 2, weights)
    dense, _ = run(model, inputs, device, experts=OFF)
    for output in run(model, inputs, device, experts=ON)[0]:
        np.testing.assert_array_equal(np.isnan(output), np.isnan(dense[0]))
        assert_close(np.nan_to_num(output), np.nan_to_num(dense[0]), "fp32", WIDTH, scores)
        if scores == "nothing":
            assert not output.any()


def test_experts_that_are_not_chosen_may_be_infinite(device):
    rng = np.random.default_rng(8)
    weights = expert_weights(rng)
    weights[3] = np.nan
    x = rng.standard_normal((2, WIDTH)).astype(np.float32)
    inputs = [x, np.float32([[3, 2, 0, 0, 1], [2, 3, 1, 0, 0]])]
    model = gated_model(2, 2, weights)
    assert np.isnan(run(model, inputs, device, experts=OFF)[0][0]).all()
    clean = weights.copy()
    clean[3] = 0
    wanted = stock(gated_model(2, 2, clean), inputs)
    assert_close(run(model, inputs, device, experts=ON)[0][0], wanted, "fp32", WIDTH, "skipped")
    inputs[1][1, 3] = 9
    output = run(model, inputs, device, experts=ON)[0][0]
    assert not np.isnan(output[0]).any()
    assert np.isnan(output[1]).all()


def test_choice_changes_from_one_inference_to_the_next(device):
    rng = np.random.default_rng(9)
    model = gated_model(2, 1, expert_weights(rng))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    for _ in range(4):
        inputs = [rng.standard_normal((2, n)).astype(np.float32) for n in (WIDTH, EXPERTS)]
        output = run_interpreter(interpreter, inputs)[0]
        assert_close(output, stock(model, inputs), "fp32", WIDTH, "")


@pytest.mark.parametrize("batch", [1, 3])
def test_launches_of_experts_in_chains(batch, device):
    rng = np.random.default_rng(11)
    model = gated_model(batch, 2, expert_weights(rng))
    inputs = [rng.standard_normal((batch, n)).astype(np.float32) for n in (WIDTH, EXPERTS)]
    delegate = clgpu_delegate.load(device=device, chain="on")
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    for _ in range(2):
        output = run_interpreter(interpreter, inputs)[0]
        assert_close(output, stock(model, inputs), "fp32", WIDTH, str(delegate.stats()["chains"]))


def convolved_model(batch, weights):
    """Experts of images: a convolution, a pool and a dense layer."""
    m = ModelMaker()
    x = m.input("x", (batch, 24, 25, 8), np.float32)
    scores = m.input("scores", (batch, len(weights)), np.float32)
    shapes = [(batch, 2)] * 2
    values, _ = m.op(
        "TOPK_V2", [scores, m.constant(np.int32(2))], shapes, dtype=[np.float32, np.int32]
    )
    ends = [m.constant(np.int32(place)) for place in ([0, 1], [batch, 2], [1, 1])]
    least = m.op("STRIDED_SLICE", [values, *ends], (batch, 1))
    picked = m.op("GREATER_EQUAL", [scores, least], (batch, len(weights)), dtype=np.bool_)
    gates = m.op("SELECT_V2", [picked, scores, m.constant(np.float32(0))], (batch, len(weights)),
                 dtype=np.float32)  # fmt: skip
    count = len(weights)
    parts = m.op("SPLIT", [m.constant(np.int32(1)), gates], [(batch, 1)] * count,
                 dtype=[np.float32] * count, num_splits=count)  # fmt: skip
    total = None
    for (filters, matrix), gate in zip(weights, parts):
        bias = m.constant(filters[:, 0, 0, 0])
        y = m.op(
            "CONV_2D", [x, m.constant(filters), bias], (batch, 24, 25, len(filters)),
            padding="SAME", stride_h=1, stride_w=1,
        )  # fmt: skip
        y = m.op(
            "MAX_POOL_2D", [y], (batch, 12, 12, len(filters)), padding="VALID", stride_h=2,
            stride_w=2, filter_height=2, filter_width=2,
        )  # fmt: skip
        y = m.op("RESHAPE", [y, m.constant(np.int32([-1, 144 * len(filters)]))],
                 (batch, 144 * len(filters)))  # fmt: skip
        y = m.op("FULLY_CONNECTED", [y, m.constant(matrix), None], (batch, len(matrix)))
        y = m.op("MUL", [y, gate], (batch, len(matrix)))
        total = y if total is None else m.op("ADD", [total, y], (batch, len(matrix)))
    m.output(total)
    return m.build()


@pytest.mark.parametrize("share_memory", [True, False])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_samples_of_images(batch, share_memory, device):
    rng = np.random.default_rng(batch)
    weights = [
        (rng.standard_normal((32, 3, 3, 8)).astype(np.float32) / 8,
         rng.standard_normal((7, 144 * 32)).astype(np.float32) / 64)
        for _ in range(4)
    ]  # fmt: skip
    model = convolved_model(batch, weights)
    for _ in range(2):
        inputs = [
            rng.standard_normal((batch, 24, 25, 8)).astype(np.float32),
            rng.standard_normal((batch, 4)).astype(np.float32),
        ]
        wanted = stock(model, inputs)
        for output in run(model, inputs, device, share_memory=share_memory)[0]:
            assert_close(output, wanted, "fp32", 144 * 32, "")


def test_batch_may_change(device):
    rng = np.random.default_rng(10)
    weights = expert_weights(rng)
    small, large = gated_model(1, 2, weights), gated_model(4, 2, weights)
    inputs = [rng.standard_normal((4, n)).astype(np.float32) for n in (WIDTH, EXPERTS)]
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), large, [delegate])
    assert_close(run_interpreter(interpreter, inputs)[0], stock(large, inputs), "fp32", WIDTH, "")
    one = [array[:1] for array in inputs]
    output = run_interpreter(interpreter, one, {i: array.shape for i, array in enumerate(one)})[0]
    assert_close(output, stock(small, one), "fp32", WIDTH, "")


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("imagenet_moe", {"size": 67, "experts": 6, "chosen": 2, "classes": 10}),
        (
            "imagenet_moe",
            {"size": 67, "experts": 6, "chosen": 2, "classes": 10, "form": "branches"},
        ),
        ("decoder_moe", {"width": 36, "hidden": 20, "experts": 7, "chosen": 3, "form": "gathered"}),
        ("decoder_moe", {"width": 36, "hidden": 20, "experts": 7, "chosen": 3, "form": "dense"}),
        ("decoder_moe", {"width": 36, "hidden": 20, "experts": 7, "chosen": 3, "form": "branches"}),
    ],
)
def test_networks(name, sizes, batch, precision, device):
    model = networks.build(name, batch, **sizes)
    inputs = networks.sample_inputs(model, 1)
    wanted = stock(model, inputs)
    for experts in (OFF, ON):
        outputs, explanation = run(model, inputs, device, experts=experts, precision=precision)
        assert all(node.claimed for node in explanation.nodes)
        taken = {s.pass_name for s in explanation.steps if s.outcome == "applied"}
        assert (not taken.isdisjoint({"skip_experts", "gather_experts"})) == (experts == ON)
        for output in outputs:
            assert relative_l2(output, wanted) < MODEL_L2[precision], experts


def gathered_model(batch, chosen, weights):
    """A mixture of gathered matrices whose scores are an input."""
    m = ModelMaker()
    x = m.input("x", (batch, WIDTH), np.float32)
    scores = m.input("scores", (batch, EXPERTS), np.float32)
    values, indices = m.op(
        "TOPK_V2", [scores, m.constant(np.int32(chosen))], [(batch, chosen)] * 2,
        dtype=[np.float32, np.int32],
    )  # fmt: skip
    shape = (batch, chosen, OUT, WIDTH)
    matrices = m.op(
        "GATHER", [m.constant(weights), indices], shape, dtype=np.float32, axis=0, batch_dims=0
    )
    rows = m.op("RESHAPE", [x, m.constant(np.int32([batch, 1, WIDTH, 1]))], (batch, 1, WIDTH, 1))
    y = m.op(
        "BATCH_MATMUL",
        [matrices, rows],
        (batch, chosen, OUT, 1),
        dtype=np.float32,
        adj_x=False,
        adj_y=False,
    )
    y = m.op("TANH", [y], m.shape(y))
    gates = m.op(
        "RESHAPE", [values, m.constant(np.int32([batch, chosen, 1, 1]))], (batch, chosen, 1, 1)
    )
    y = m.op("MUL", [y, gates], m.shape(y))
    m.output(m.op("SUM", [y, m.constant(np.int32([1, 3]))], (batch, OUT), keep_dims=False))
    return m.build()


def gathers(explanation):
    return [
        s for s in explanation.steps if s.pass_name == "gather_experts" and s.outcome == "applied"
    ]


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_scores_that_are_not_numbers_in_gathered_experts(batch, device):
    """A sample whose scores are all NaN gives NaN; the others what they give alone."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((batch, WIDTH)).astype(np.float32)
    scores = rng.standard_normal((batch, EXPERTS)).astype(np.float32)
    scores[-1] = np.nan
    model = gathered_model(batch, 2, expert_weights(rng))
    wanted = stock(model, [x, scores])
    assert np.isnan(wanted[-1]).all()
    assert not np.isnan(wanted[:-1]).any()
    for experts in (OFF, ON):
        outputs, explanation = run(model, [x, scores], device, experts=experts)
        assert bool(gathers(explanation)) == (experts == ON)
        for output in outputs:
            assert np.isnan(output[-1]).all()
            assert_close(output[:-1], wanted[:-1], "fp32", WIDTH, experts)


@pytest.mark.parametrize("form", ["dense", "gathered", "branches"])
def test_samples_that_are_not_numbers_in_networks(form, device):
    """The same for the gating network of a decoder's mixture, in each form of it."""
    sizes = {"width": 36, "hidden": 20, "experts": 7, "chosen": 3}
    model = networks.build("decoder_moe", 2, form=form, **sizes)
    inputs = networks.sample_inputs(model, 1)
    inputs[0][0] = np.nan
    wanted = stock(model, inputs)
    assert np.isnan(wanted[0]).all()
    for experts in (OFF, ON):
        for output in run(model, inputs, device, experts=experts)[0]:
            np.testing.assert_array_equal(np.isnan(output), np.isnan(wanted))
            assert relative_l2(output[1:], wanted[1:]) < MODEL_L2["fp32"], experts


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("imagenet_moe", {"size": 67, "experts": 6, "chosen": 2, "classes": 10}),
        ("decoder_moe", {"width": 36, "hidden": 20, "experts": 7, "chosen": 3, "form": "gathered"}),
        ("decoder_moe", {"width": 36, "hidden": 20, "experts": 7, "chosen": 3, "form": "dense"}),
    ],
)
def test_the_host_reads_nothing_but_the_result(name, sizes, batch, device):
    model = networks.build(name, batch, **sizes)
    inputs = networks.sample_inputs(model, 1)
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    output = run_interpreter(interpreter, inputs)[0]
    last = delegate.stats()["last_invoke"]
    assert last["bytes_down"] == output.nbytes
    assert last["bytes_up"] == sum(array.nbytes for array in inputs)


def test_forms_of_a_decoder_are_the_same_network():
    sizes = {"width": 36, "hidden": 20, "experts": 7, "chosen": 3}
    models = [
        networks.build("decoder_moe", 3, form=form, **sizes)
        for form in ("dense", "gathered", "branches")
    ]
    inputs = networks.sample_inputs(models[0], 1)
    wanted = stock(models[0], inputs)
    for model in models[1:]:
        assert_close(stock(model, inputs), wanted, "fp32", 36, "")


@pytest.mark.parametrize("name", ["imagenet_moe", "decoder_moe"])
def test_unknown_forms_are_told(name):
    with pytest.raises(ValueError, match=r"form is .sparse.; allowed: .*dense, branches"):
        networks.build(name, 1, form="sparse")

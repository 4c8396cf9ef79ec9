"""IF with a condition of run time whose graphs become part of the graph around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.test_control_flow import (
    SHAPE,
    add_graph,
    answers,
    branch,
    floats,
    left,
    results_like,
)
from tests.passes.texts import assert_texts_are_read_back
from tests.runtimes import make_interpreter
from tests.tolerance import assert_close

INLINED = "nodes choose between the results of its graphs"


def steps(explanation: clgpu_delegate.Explanation, name: str) -> list[tuple[str, str]]:
    return [(s.outcome, s.detail) for s in explanation.steps if s.pass_name == name]


def compare(
    runtime: str, device: str, model: bytes, inputs: Sequence[Sequence[Any]], **options: Any
) -> clgpu_delegate.Explanation:
    """Compare inferences with the stock runtime's: each twice, when memory holds old numbers."""
    delegate = clgpu_delegate.load(device=device, warm_up=False, **options)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for given in (*inputs, *inputs):
        found, wanted = answers(ours, given), answers(stock, given)
        for mine, its in zip(found, wanted):
            if its.dtype == np.float32:
                np.testing.assert_array_equal(np.isnan(mine), np.isnan(its))
                numbers = np.nan_to_num(its.astype(np.float64))
                assert_close(np.nan_to_num(mine), numbers, options.get("precision", "fp32"), 4)
            else:
                np.testing.assert_array_equal(mine, its)
    explanation = delegate.explain()
    assert left(explanation) == {}
    assert len(explanation.partitions) == 1
    return explanation


def dense(g: ModelMaker, x: int, weights: Any) -> int:
    return g.op("FULLY_CONNECTED", [x, g.constant(weights)], (2, len(weights)))


def expert_and_zeros(rng: np.random.Generator) -> bytes:
    """A dense layer with an activation, or zeros of another graph."""
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)
    weights = floats(rng, (4, 4))
    y = branch(m, flag, [x], lambda g, x: [g.op("TANH", [dense(g, x[0], weights)], SHAPE)],
               lambda g, _: [g.constant(np.zeros(SHAPE, np.float32))])  # fmt: skip
    m.output(m.op("ADD", [y, x], SHAPE))
    return m.build()


@pytest.mark.parametrize("options", [
    {}, {"precision": "fp16"}, {"profile": True}, {"chain": "on"}, {"reuse": 0},
    {"share_memory": False}, {"zero_copy": "off"}, {"command_list": "on"},
], ids=str)  # fmt: skip
def test_an_expert_or_zeros(runtime, device, rng, options):
    inputs = [(np.bool_(c), floats(rng)) for c in (True, False, True)]
    found = compare(runtime, device, expert_and_zeros(rng), inputs, **options)
    assert steps(found, "inline_branches") == [("applied", INLINED)]
    assert steps(found, "skip_experts") == [
        ("applied", "1 nodes run only if the condition is true, 0 if it is false")
    ]


@pytest.mark.parametrize("condition", [True, False])
def test_verification_finds_no_difference(runtime, device, rng, condition):
    inputs = [(np.bool_(condition), floats(rng))]
    found = compare(runtime, device, expert_and_zeros(rng), inputs, verify=1)
    assert found.verification is not None
    assert [check.outcome for check in found.verification.partitions] == ["right"]


def test_what_is_not_chosen_may_be_infinite(runtime, device, rng):
    """Numbers of one graph do not reach the results of the other one."""
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)
    weights = np.full((4, 4), np.nan, np.float32)
    y = branch(m, flag, [x], lambda g, x: [dense(g, x[0], weights)],
               lambda g, x: [g.op("EXP", [x[0]], SHAPE)])  # fmt: skip
    m.output(y)
    x = floats(rng)
    x[0, 0] = np.inf
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate])
    for condition in (False, True, False):
        (found,) = answers(ours, [np.bool_(condition), x])
        if condition:
            assert np.isnan(found).all()
        else:
            np.testing.assert_allclose(found, np.exp(x), rtol=1e-5)


def test_both_graphs_compute(runtime, device, rng):
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)
    y = m.op("NEG", [x], SHAPE)
    first, second = floats(rng, (4, 4)), floats(rng, (4, 4))
    z = branch(m, flag, [y], lambda g, x: [dense(g, x[0], first)],
               lambda g, x: [g.op("TANH", [dense(g, x[0], second)], SHAPE)])  # fmt: skip
    m.output(m.op("ABS", [z], SHAPE))
    inputs = [(np.bool_(c), floats(rng)) for c in (True, False)]
    found = compare(runtime, device, m.build(), inputs)
    assert steps(found, "skip_experts") == [
        ("applied", "1 nodes run only if the condition is true, 1 if it is false")
    ]


def test_several_results_and_values_that_pass(runtime, device, rng):
    """Results may be operands, each other's operands, or the same tensor twice."""
    m = ModelMaker()
    flag, x, y = m.input("c", (), np.bool_), m.input("x", SHAPE), m.input("y", SHAPE)

    def yes(g: ModelMaker, x: list[int]) -> list[int]:
        z = g.op("SIN", [x[0]], SHAPE)
        return [z, x[0], z, x[1]]

    def no(g: ModelMaker, x: list[int]) -> list[int]:
        return [x[1], x[0], x[0], g.op("COS", [x[1]], SHAPE)]

    operands = [m.op("NEG", [x], SHAPE), y]
    graphs = [add_graph(m, m, operands, make) for make in (yes, no)]
    results = m.op(
        "IF", [flag, *operands], **results_like(m, [x] * 4),
        then_subgraph_index=graphs[0], else_subgraph_index=graphs[1],
    )  # fmt: skip
    m.output(*results)
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate])
    for condition in (True, False, True):
        x, y = floats(rng), floats(rng)
        # Stock kernels give numbers of other tensors where a graph has a tensor twice.
        wanted = [np.sin(-x), -x, np.sin(-x), y] if condition else [y, -x, -x, np.cos(y)]
        for mine, its in zip(answers(ours, [np.bool_(condition), x, y]), wanted):
            assert_close(mine, its.astype(np.float64), "fp32")
    assert left(delegate.explain()) == {}
    assert steps(delegate.explain(), "inline_branches") == [("applied", INLINED)]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.bool_])
def test_types(runtime, device, rng, dtype):
    scale = {np.int8: ([0.02], [3]), np.uint8: ([0.02], [100]), np.int16: ([0.02], [0])}.get(dtype)
    m = ModelMaker()
    flag = m.input("c", (), np.bool_)
    x = m.input("x", SHAPE, dtype, quantization=scale)
    turned = m.constant(np.int32([0]))
    y = branch(
        m, flag, [x],
        lambda g, x: [g.op("REVERSE_V2", [x[0], g.constant(np.int32([0]))], SHAPE,
                           quantization=scale)],
        lambda _, x: [x[0]],
    )  # fmt: skip
    m.output(m.op("REVERSE_V2", [y, turned], SHAPE, quantization=scale))
    values = rng.integers(0, 2 if dtype == np.bool_ else 100, SHAPE).astype(dtype)
    found = compare(runtime, device, m.build(), [(np.bool_(c), values) for c in (True, False)])
    assert steps(found, "inline_branches") == [("applied", INLINED)]


def test_a_condition_that_is_computed(runtime, device, rng):
    """The condition reads what the branch reads, too, and a second branch follows the first one."""
    m = ModelMaker()
    x = m.input("x", SHAPE)
    inner = dense(m, x, floats(rng, (4, 4)))
    weights = [floats(rng, (4, 4)) for _ in range(2)]
    for matrix in weights:
        total = m.op("SUM", [inner, m.constant(np.int32([0, 1]))], (), keep_dims=False)
        flag = m.op("GREATER", [total, m.constant(np.float32(0))], (), dtype=np.bool_)
        inner = branch(m, flag, [inner, x], lambda g, x, w=matrix: [dense(g, x[0], w)],
                       lambda _, x: [x[1]])  # fmt: skip
    m.output(inner)
    inputs = [(floats(rng),) for _ in range(8)]
    found = compare(runtime, device, m.build(), inputs)
    assert len(steps(found, "inline_branches")) == 2


def test_a_condition_within_a_branch_is_always_computed(runtime, device, rng):
    """Otherwise nodes would run by a condition that nobody has computed."""
    m = ModelMaker()
    first, x = m.input("c", (), np.bool_), m.input("x", SHAPE)
    total = m.op("SUM", [m.op("EXP", [x], SHAPE), m.constant(np.int32([0, 1]))], ())
    second = m.op("GREATER", [total, m.constant(np.float32(8))], (), dtype=np.bool_)
    w = floats(rng, (4, 4))
    zeros = np.zeros(SHAPE, np.float32)
    y = branch(m, second, [x], lambda g, x: [dense(g, x[0], w)], lambda g, _: [g.constant(zeros)])
    z = branch(m, first, [y], lambda g, x: [g.op("TANH", [x[0]], SHAPE)],
               lambda g, _: [g.constant(zeros)])  # fmt: skip
    m.output(z)
    inputs = [(np.bool_(c), floats(rng)) for c in (True, False, True, False)]
    found = compare(runtime, device, m.build(), inputs)
    assert len(steps(found, "inline_branches")) == 2


def test_the_host_chooses_where_experts_are_dense(runtime, device, rng):
    inputs = [(np.bool_(c), floats(rng)) for c in (True, False)]
    found = compare(runtime, device, expert_and_zeros(rng), inputs, experts="dense")
    assert steps(found, "inline_branches") == [("skipped", "the option experts is dense")]
    assert steps(found, "skip_experts") == []


def test_only_the_graph_that_runs_takes_memory_of_a_budget(runtime, device, rng):
    inputs = [(np.bool_(c), floats(rng)) for c in (True, False)]
    found = compare(runtime, device, expert_and_zeros(rng), inputs, memory_budget="16 MiB")
    reason = "with a memory budget, only the graph that runs takes memory"
    assert steps(found, "inline_branches") == [("skipped", reason)]


@pytest.mark.parametrize("nodes", [32, 33])
def test_large_graphs_are_left_to_the_host(runtime, device, rng, nodes):
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)

    def yes(g: ModelMaker, x: list[int]) -> list[int]:
        y = x[0]
        for _ in range(nodes):
            y = g.op("SIN", [y], SHAPE)
        return [y]

    m.output(branch(m, flag, [x], yes, lambda _, x: [x[0]]))
    found = compare(runtime, device, m.build(), [(np.bool_(c), floats(rng)) for c in (1, 0)])
    reason = "a graph has 33 nodes; at most 32 are started without need"
    assert steps(found, "inline_branches") == [
        ("applied", INLINED) if nodes == 32 else ("declined", reason)
    ]


def test_branches_within_a_branch_are_left_to_the_host(runtime, device, rng):
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)
    count = m.input("n", (), np.int32)

    def yes(g: ModelMaker, v: list[int]) -> list[int]:
        few = g.op("LESS", [v[1], g.constant(np.int32(3))], (), dtype=np.bool_)
        return [branch(m, few, [v[0]], lambda g, x: [g.op("SIN", [x[0]], SHAPE)],
                       lambda g, x: [g.op("COS", [x[0]], SHAPE)], inside=g)]  # fmt: skip

    m.output(branch(m, flag, [x, count], yes, lambda _, x: [x[0]]))
    inputs = [(np.bool_(c), floats(rng), np.int32(n)) for c in (1, 0) for n in (1, 5)]
    found = compare(runtime, device, m.build(), inputs)
    outcomes = [outcome for outcome, _ in steps(found, "inline_branches")]
    assert outcomes[0] == "declined"  # and the inner one belongs to the graph that the host runs


def test_mixtures_within_a_branch_keep_their_gates(runtime, device, rng):
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)

    def yes(g: ModelMaker, x: list[int]) -> list[int]:
        shapes = [(2, 1)] * 2
        values, _ = g.op("TOPK_V2", [x[0], g.constant(np.int32(1))], shapes,
                         dtype=[np.float32, np.int32])  # fmt: skip
        return [g.op("MUL", [dense(g, x[0], np.ones((4, 4), np.float32)), values], SHAPE)]

    m.output(branch(m, flag, [x], yes, lambda _, x: [x[0]]))
    found = compare(runtime, device, m.build(), [(np.bool_(c), floats(rng)) for c in (1, 0)])
    assert steps(found, "inline_branches") == [
        ("declined", "a graph has the node TOPK_V2, which may choose experts of its own")
    ]


def test_a_resize_gives_both_graphs_new_shapes(runtime, device, rng):
    """Where only one graph's result follows, the CPU computes the partition."""
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", (1, 4), shape_signature=(-1, 4))

    def first_row(g: ModelMaker, x: list[int]) -> list[int]:
        ends = [g.constant(np.int32(v)) for v in ([0, 0], [1, 4])]
        return [g.op("SLICE", [x[0], *ends], (1, 4))]

    m.output(m.op("NEG", [branch(m, flag, [x], lambda g, x: [g.op("SIN", [x[0]], (1, 4))],
                                 first_row)], (1, 4)))  # fmt: skip
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate])
    index = {d["name"]: d["index"] for d in ours.get_input_details()}
    for rows in (1, 3, 1):
        given = floats(rng, (rows, 4))
        ours.resize_tensor_input(index["x"], given.shape)
        for condition in (True, False) if rows == 1 else (True,):
            ours.allocate_tensors()
            ours.set_tensor(index["x"], given)
            ours.set_tensor(index["c"], np.bool_(condition))
            ours.invoke()
            found = ours.get_tensor(ours.get_output_details()[0]["index"])
            wanted = np.sin(given.astype(np.float64)) if condition else given[:1]
            assert_close(found, -wanted, "fp32")
        assert bool(delegate.explain().partitions[0].on_cpu) == (rows > 1)


def test_the_host_reads_nothing_but_the_result(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    ours = make_interpreter(runtime, expert_and_zeros(rng), [delegate])
    answers(ours, [np.bool_(True), floats(rng)])
    assert delegate.stats()["last_invoke"]["bytes_down"] == 4 * 8


def test_the_text_of_choices_is_read_back(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, expert_and_zeros(rng), [delegate])
    assert_texts_are_read_back(delegate)
    del interpreter

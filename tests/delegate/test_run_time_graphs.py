"""WHILE and IF whose conditions only an inference knows: the host runs graphs on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.test_control_flow import (
    SHAPE,
    Graph,
    add_graph,
    answers,
    below,
    branch,
    floats,
    is_verified,
    left,
    loop,
    next_number,
    number,
    results_like,
)
from tests.passes.texts import assert_texts_are_read_back, graphs_of
from tests.runtimes import make_interpreter
from tests.tolerance import assert_close


def compare(
    runtime: str, device: str, model: bytes, inputs: Sequence[Sequence[Any]], **options: Any
) -> clgpu_delegate.Explanation:
    """Compare an inference for each set of inputs with the stock runtime's; the explanation."""
    delegate = clgpu_delegate.load(device=device, **options)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for given in inputs:
        found, wanted = answers(ours, given), answers(stock, given)
        for mine, its in zip(found, wanted):
            if its.dtype == np.float32:
                assert_close(mine, its.astype(np.float64), options.get("precision", "fp32"))
            else:
                np.testing.assert_array_equal(mine, its)
    return delegate.explain()


def counted() -> bytes:
    """Sines of NEG(x), as many as from `count` to 5."""
    m = ModelMaker()
    x, count = m.input("x", SHAPE), m.input("count", (), np.int32)
    body: Graph = lambda g, x: [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE)]  # noqa: E731
    steps, y = loop(m, [count, m.op("NEG", [x], SHAPE)], below(5), body)
    m.output(m.op("ABS", [y], SHAPE), steps)
    return m.build()


@pytest.mark.parametrize("verify", ["off", "first", 1])
def test_the_rounds_of_a_loop_are_a_value(runtime, device, rng, verify):
    inputs = [(floats(rng), np.int32(start)) for start in (0, 4, 5, 99, -3)]
    found = compare(runtime, device, counted(), inputs, verify=verify)
    assert left(found) == {}
    assert len(found.partitions) == 1
    if verify != "off":
        assert is_verified(found)


def until_small() -> bytes:
    """Halves x and exchanges two further states until the largest element of x is below 1."""
    m = ModelMaker()

    def more(g: ModelMaker, x: list[int]) -> list[int]:
        largest = g.op("REDUCE_MAX", [x[0], g.constant(np.int32([0, 1]))], ())
        return [g.op("LESS", [g.constant(np.float32(1)), largest], (), dtype=bool)]

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        half = g.op("MUL", [x[0], g.constant(np.float32(0.5))], SHAPE)
        sums = g.op("ADD", [x[1], half], SHAPE)
        return [half, sums, half, next_number(g, x[3])]

    x = m.input("x", SHAPE)
    m.output(*loop(m, [x, m.op("EXP", [x], SHAPE), x, number(m, 0)], more, body))
    return m.build()


@pytest.mark.parametrize("options", [
    {}, {"verify": 1}, {"precision": "fp16"}, {"profile": True}, {"chain": "on"}, {"reuse": 0},
    {"share_memory": False}, {"warm_up": False}, {"zero_copy": "off"},
], ids=str)  # fmt: skip
def test_a_condition_of_floats(runtime, device, rng, options):
    inputs = [(scale * np.abs(floats(rng)),) for scale in (1, 10, 0.1)]
    model = until_small()
    delegate = clgpu_delegate.load(device=device, **options)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for given in inputs:
        found, wanted = answers(ours, given), answers(stock, given)
        for mine, its in zip(found, wanted):
            np.testing.assert_allclose(mine, its, rtol=1e-4)
    assert left(delegate.explain()) == {}
    if options.get("verify"):
        assert is_verified(delegate.explain())
    if options.get("profile"):
        assert any(row.op == "WHILE" for row in delegate.profile().launches)


def test_states_are_exchanged_at_once(runtime, device, rng):
    """Stock kernels copy one result after the other, and lose the first state."""
    m = ModelMaker()
    body: Graph = lambda g, x: [next_number(g, x[0]), x[2], x[1]]  # noqa: E731
    start = [m.input("count", (), np.int32), m.input("x", SHAPE), m.input("y", SHAPE)]
    m.output(*loop(m, start, below(3), body)[1:])
    x, y = floats(rng), floats(rng)
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    for start_at, (first, second) in ((0, (y, x)), (1, (x, y)), (9, (x, y))):
        found = answers(interpreter, [np.int32(start_at), x, y])
        np.testing.assert_array_equal(found[0], first)
        np.testing.assert_array_equal(found[1], second)
    assert left(delegate.explain()) == {}


@pytest.mark.parametrize("verify", ["off", 1])
def test_a_branch_is_chosen_in_each_inference(runtime, device, rng, verify):
    m = ModelMaker()
    flag, x, y = m.input("c", (), np.bool_), m.input("x", SHAPE), m.input("y", SHAPE)
    weights = m.constant(floats(rng, (4, 4)))
    yes: Graph = lambda g, x: [g.op("FULLY_CONNECTED", [x[0], x[2]], SHAPE)]  # noqa: E731
    no: Graph = lambda _, x: [x[1]]  # noqa: E731
    z = branch(m, flag, [m.op("NEG", [x], SHAPE), y, weights], yes, no)
    m.output(m.op("ABS", [z], SHAPE))
    inputs = [(np.bool_(c), floats(rng), floats(rng)) for c in (True, False, False, True)]
    found = compare(runtime, device, m.build(), inputs, verify=verify)
    assert left(found) == {}
    assert len(found.partitions) == 1
    if verify != "off":
        assert is_verified(found)


@pytest.mark.parametrize("verify", ["off", 1])
def test_loops_and_branches_within_a_loop(runtime, device, rng, verify):
    """Each round: as many sines as rounds are left, then a cosine or a tangent by turns."""
    m = ModelMaker()

    def inner(g: ModelMaker, x: list[int]) -> list[int]:
        return [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE)]

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        _, y = loop(m, list(x), below(4), inner, inside=g)
        even = g.op("FLOOR_MOD", [x[0], number(g, 2)], ())
        is_even = g.op("EQUAL", [even, number(g, 0)], (), dtype=bool)
        yes: Graph = lambda g, x: [g.op("COS", [x[0]], SHAPE)]  # noqa: E731
        no: Graph = lambda g, x: [g.op("TANH", [x[0]], SHAPE)]  # noqa: E731
        return [next_number(g, x[0]), branch(m, is_even, [y], yes, no, inside=g)]

    _, y = loop(m, [m.input("count", (), np.int32), m.input("x", SHAPE)], below(4), body)
    m.output(y)
    inputs = [(np.int32(start), floats(rng)) for start in (0, 3, 4)]
    assert left(compare(runtime, device, m.build(), inputs, verify=verify)) == {}


def test_more_rounds_than_are_unrolled(runtime, device, rng):
    """A streaming loop of 1,000 steps with several nodes each, whose count is a constant."""
    m = ModelMaker()
    weights = 0.5 * floats(rng, (4, 4))

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        count, sequence, state = x
        at = g.op("RESHAPE", [count, g.constant(np.int32([1]))], (1,))
        row = g.op("GATHER", [sequence, at], (1, 4), dtype=np.float32, axis=0)
        moved = g.op("FULLY_CONNECTED", [state, g.constant(weights)], (1, 4))
        new = g.op("TANH", [g.op("ADD", [moved, row], (1, 4))], (1, 4))
        return [next_number(g, count), sequence, new]

    start = [number(m, 0), m.input("x", (1000, 4)), m.input("state", (1, 4))]
    m.output(loop(m, start, below(1000), body)[2])
    found = compare(runtime, device, m.build(), [(floats(rng, (1000, 4)), floats(rng, (1, 4)))])
    assert left(found) == {}


@pytest.mark.parametrize("verify", ["off", 1])
def test_a_loop_follows_a_resize(runtime, device, rng, verify):
    """The body's own shapes are evaluated again, and as many rounds as the input has rows."""
    m = ModelMaker()

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        shape = g.op("SHAPE", [x[2]], (2,), dtype=np.int32, out_type=np.int32)
        flat = g.op("RESHAPE", [x[2], g.constant(np.int32([-1]))], (8,))
        back = g.op("RESHAPE", [g.op("SIN", [flat], (8,)), shape], SHAPE)
        return [next_number(g, x[0]), x[1], back]

    x = m.input("x", SHAPE, shape_signature=(-1, 4))
    rows = m.op("STRIDED_SLICE", [m.op("SHAPE", [x], (2,), dtype=np.int32, out_type=np.int32),
                                  *(m.constant(np.int32([v])) for v in (0, 1, 1))],
                (), shrink_axis_mask=1)  # fmt: skip
    more: Graph = lambda g, x: [g.op("LESS", [x[0], x[1]], (), dtype=bool)]  # noqa: E731
    m.output(m.op("NEG", [loop(m, [number(m, 0), rows, x], more, body)[2]], SHAPE))
    delegate = clgpu_delegate.load(device=device, verify=verify)
    ours = make_interpreter(runtime, m.build(), [delegate])
    for count in (2, 5, 3):
        given = floats(rng, (count, 4))
        ours.resize_tensor_input(ours.get_input_details()[0]["index"], given.shape)
        (found,) = answers(ours, [given])
        wanted = given.astype(np.float64)
        for _ in range(count):
            wanted = np.sin(wanted)
        assert_close(found, -wanted, "fp32")
        assert left(delegate.explain()) == {}
        assert not delegate.explain().partitions[0].on_cpu


def test_a_state_that_grows_stays_on_the_cpu(runtime, device, rng):
    def body(g: ModelMaker, x: list[int]) -> list[int]:
        row = g.op("SUM", [x[1], g.constant(np.int32([0]))], (1, 4), keep_dims=True)
        return [next_number(g, x[0]), g.op("CONCATENATION", [x[1], row], (3, 4), axis=0)]

    m = ModelMaker()
    _, y = loop(m, [m.input("count", (), np.int32), m.input("x", SHAPE)], below(3), body)
    m.output(m.op("NEG", [y], (3, 4)))
    found = compare(runtime, device, m.build(), [(np.int32(1), floats(rng))])
    assert left(found)["WHILE"] == "state 1 has the shape [2, 4] and then [3, 4]"


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_resize_may_let_a_state_change_its_shape(runtime, device, rng, rounds):
    """The body keeps one row: the CPU's kernels compute what has more."""
    m = ModelMaker()

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        begin, size = g.constant(np.int32([0, 0])), g.constant(np.int32([1, 4]))
        return [next_number(g, x[0]), g.op("SIN", [g.op("SLICE", [x[1], begin, size], (1, 4))],
                                           (1, 4))]  # fmt: skip

    x = m.input("x", (1, 4), shape_signature=(-1, 4))
    y = loop(m, [m.input("count", (), np.int32), x], below(rounds), body)[1]
    m.output(m.op("NEG", [y], (1, 4)))
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate])
    index = {d["name"]: d["index"] for d in ours.get_input_details()}
    for rows in (1, 3, 2):
        given = floats(rng, (rows, 4))
        ours.resize_tensor_input(index["x"], given.shape)
        ours.allocate_tensors()
        ours.set_tensor(index["x"], given)
        ours.set_tensor(index["count"], np.int32(0))
        ours.invoke()
        wanted = given[:1].astype(np.float64)
        for _ in range(rounds):
            wanted = np.sin(wanted)
        found = ours.get_tensor(ours.get_output_details()[0]["index"])
        assert_close(found, -wanted, "fp32")
        assert left(delegate.explain()) == {}
        assert bool(delegate.explain().partitions[0].on_cpu) == (rows > 1)


def test_branches_of_different_shapes_stay_on_the_cpu(runtime, device, rng):
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)
    ones = np.ones(SHAPE, np.float32)
    no: Graph = lambda g, x: [  # noqa: E731
        g.op("CONCATENATION", [x[0], g.constant(ones)], (4, 4), axis=0)
    ]
    m.output(branch(m, flag, [x], lambda _, x: [x[0]], no))
    inputs = [(np.bool_(False), floats(rng))]
    found = compare(runtime, device, m.build(), inputs)
    assert left(found) == {"IF": "result 0 has the shape [2, 4] and then [4, 4]"}


def test_a_node_that_needs_the_cpu_keeps_its_loop_there(runtime, device, rng):
    found = compare(runtime, device, counted(), [(floats(rng), np.int32(2))], exclude="SIN")
    assert left(found) == {"WHILE": "left on the CPU by the option 'exclude': SIN of its graph 2"}


def test_quantized_states(runtime, device, rng):
    scale = ([0.02], [3])
    m = ModelMaker()
    count, x = m.input("count", (), np.int32), m.input("x", SHAPE, np.int8, quantization=scale)
    body: Graph = lambda g, x: [  # noqa: E731
        next_number(g, x[0]), g.op("ADD", [x[1], x[1]], SHAPE, quantization=scale)
    ]  # fmt: skip
    m.output(loop(m, [count, x], below(3), body)[1])
    inputs = [(np.int32(k), rng.integers(-128, 128, SHAPE, np.int8)) for k in (0, 2, 3)]
    assert left(compare(runtime, device, m.build(), inputs)) == {}


def test_nodes_may_run_the_same_graphs(runtime, device, rng):
    m = ModelMaker()
    body: Graph = lambda g, x: [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE)]  # noqa: E731
    first = [m.input("count", (), np.int32), m.input("x", SHAPE)]
    _, y = loop(m, first, below(2), body)
    second = [first[0], m.op("NEG", [y], SHAPE)]
    m.output(m.op("WHILE", second, **results_like(m, second),
                  cond_subgraph_index=1, body_subgraph_index=2)[1], y)  # fmt: skip
    inputs = [(np.int32(k), floats(rng)) for k in (0, 1, 2)]
    assert left(compare(runtime, device, m.build(), inputs)) == {}


@pytest.mark.parametrize(("levels", "reason"), [
    (5, None),
    (13, "its graphs have more than 8192 nodes, each counted at every place that runs it"),
])  # fmt: skip
def test_graphs_that_run_the_next_one_twice(levels, reason, rng):
    m = ModelMaker()
    flag, x = m.input("c", (), np.bool_), m.input("x", SHAPE)
    weights = m.constant(floats(rng))  # by which the graphs are found in the file
    index = add_graph(m, m, [flag, x], lambda g, v: [g.op("SIN", [v[1]], SHAPE)])
    for _ in range(levels):
        same = {"then_subgraph_index": index, "else_subgraph_index": index}
        index = add_graph(
            m, m, [flag, x],
            lambda g, v, same=same: g.op("IF", [v[0], *v], **results_like(g, v[1:]), **same),
        )  # fmt: skip
    y = m.op("IF", [flag, flag, m.op("ADD", [x, weights], SHAPE)], **results_like(m, [x]),
             then_subgraph_index=index, else_subgraph_index=index)  # fmt: skip
    m.output(*y)
    device = str(clgpu_delegate.devices()[0].index)
    inputs = [(np.bool_(k), floats(rng)) for k in (0, 1)]
    found = compare("auto", device, m.build(), inputs)
    assert left(found) == ({"IF": reason} if reason else {})


def test_memory_of_graphs_counts(runtime, device, rng):
    inputs = [(floats(rng), np.int32(1))]
    whole = compare(runtime, device, counted(), inputs)
    peak = whole.partitions[0].peak_bytes
    assert compare(runtime, device, counted(), inputs, memory_budget=peak).partitions
    with pytest.raises(Exception, match="the smallest feasible budget is"):
        compare(runtime, device, counted(), inputs, memory_budget=64)


def test_a_thousand_inferences_keep_their_state(runtime, device, rng):
    """Each inference continues with the state that the one before it has left."""
    m = ModelMaker()
    count, x = m.input("count", (), np.int32), m.input("x", SHAPE)
    body: Graph = lambda g, x: [next_number(g, x[0]), g.op("TANH", [x[1]], SHAPE)]  # noqa: E731
    m.output(loop(m, [count, x], below(3), body)[1])
    model = m.build()
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    mine = its = floats(rng)
    for step in range(100):
        start = np.int32(step % 4)
        (mine,), (its,) = answers(ours, [start, mine]), answers(stock, [start, its])
    assert_close(mine, its.astype(np.float64), "fp32")


@pytest.mark.parametrize("make", [counted, until_small])
def test_the_text_of_graphs_is_read_back(runtime, device, make):
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, make(), [delegate])
    assert all(text.count("graph {") == 2 for text in graphs_of(delegate, "after"))
    assert_texts_are_read_back(delegate)
    del interpreter

"""WHILE and IF: loops that are unrolled while planning, branches that are chosen then.

tests/delegate/test_run_time_graphs.py has those whose conditions only an inference knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate.tflite import reader, writer
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter
from tests.tolerance import assert_close

SHAPE = (2, 4)
Graph = Callable[[ModelMaker, list[int]], Sequence[int]]


def number(m: ModelMaker, value: int) -> int:
    return m.constant(np.int32(value))


def add_graph(m: ModelMaker, like: ModelMaker, operands: Sequence[int], make: Graph) -> int:
    """A further graph with inputs like these tensors; its index."""
    graph = m.subgraph()
    index = len(m._subgraphs)
    inputs = [
        graph.input(f"x{i}", like.shape(x), like.dtype(x), quantization=like.quantization(x))
        for i, x in enumerate(operands)
    ]
    graph.output(*make(graph, inputs))
    return index


def results_like(m: ModelMaker, operands: Sequence[int]) -> dict[str, Any]:
    return {
        "shape": [m.shape(x) for x in operands],
        "dtype": [m.dtype(x) for x in operands],
        "quantization": [m.quantization(x) for x in operands],
    }


def loop(
    m: ModelMaker, operands: list[int], more: Graph, body: Graph, inside: ModelMaker | None = None
) -> tuple[int, ...]:
    """WHILE, in the main graph or in another one."""
    graph = inside or m
    graphs = [add_graph(m, graph, operands, make) for make in (more, body)]
    return graph.op(
        "WHILE", operands, **results_like(graph, operands),
        cond_subgraph_index=graphs[0], body_subgraph_index=graphs[1],
    )  # fmt: skip


def branch(
    m: ModelMaker, condition: int, operands: list[int], yes: Graph, no: Graph,
    inside: ModelMaker | None = None,
) -> int:  # fmt: skip
    """IF with one result, which is like its first operand."""
    graph = inside or m
    graphs = [add_graph(m, graph, operands, make) for make in (yes, no)]
    (result,) = graph.op(
        "IF", [condition, *operands], **results_like(graph, operands[:1]),
        then_subgraph_index=graphs[0], else_subgraph_index=graphs[1],
    )  # fmt: skip
    return result


def below(limit: int) -> Graph:
    """Whether the first value is below the limit."""
    return lambda g, x: [g.op("LESS", [x[0], number(g, limit)], (), dtype=bool)]


def next_number(g: ModelMaker, x: int) -> int:
    return g.op("ADD", [x, number(g, 1)], ())


def answers(interpreter: Any, arrays: Sequence[Any]) -> list[Any]:
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def run(
    runtime: str, device: str, model: bytes, arrays: Sequence[Any], **options: Any
) -> clgpu_delegate.Explanation:
    """Compare two inferences with the stock runtime's; the explanation."""
    delegate = clgpu_delegate.load(device=device, **options)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for given in (arrays, [array[..., ::-1].copy() if array.ndim else array for array in arrays]):
        found, wanted = answers(ours, given), answers(stock, given)
        assert [y.shape for y in found] == [y.shape for y in wanted]
        for mine, its in zip(found, wanted):
            if its.dtype == np.float32:
                assert_close(mine, its.astype(np.float64), "fp32")
            else:
                np.testing.assert_array_equal(mine, its)
    return delegate.explain()


def left(explanation: clgpu_delegate.Explanation) -> dict[str, str]:
    return {node.op: node.reason for node in explanation.nodes if not node.claimed}


def is_verified(explanation: clgpu_delegate.Explanation) -> bool:
    assert explanation.verification is not None
    return [check.outcome for check in explanation.verification.partitions] == ["right"]


def floats(rng: np.random.Generator, shape: tuple[int, ...] = SHAPE) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


def recurrent(rounds: int, rng: np.random.Generator) -> bytes:
    """A recurrent layer: each round reads a row of the input and adds one to the results."""
    m = ModelMaker()
    weights, more = (rng.standard_normal((4, 4)).astype(np.float32) for _ in range(2))

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        count, sequence, state, sums = x
        row = g.op("GATHER", [sequence, g.op("RESHAPE", [count, g.constant(np.int32([1]))], (1,))],
                   (1, 4), dtype=np.float32, axis=0)  # fmt: skip
        moved = g.op("FULLY_CONNECTED", [row, g.constant(weights)], (1, 4))
        kept = g.op("FULLY_CONNECTED", [state, g.constant(more)], (1, 4))
        new = g.op("TANH", [g.op("ADD", [moved, kept], (1, 4))], (1, 4))
        return [next_number(g, count), sequence, new, g.op("ADD", [sums, new], (1, 4))]

    x = m.input("x", (5, 4))
    zeros = m.constant(np.zeros((1, 4), np.float32))
    start = [number(m, 0), m.op("ABS", [x], (5, 4)), zeros, m.input("sums", (1, 4))]
    _, _, state, sums = loop(m, start, below(rounds), body)
    m.output(state, m.op("NEG", [sums], (1, 4)))
    return m.build()


@pytest.mark.parametrize("rounds", [0, 1, 5])
@pytest.mark.parametrize("verify", ["off", "first"])
def test_a_counted_loop_is_part_of_the_partition(runtime, device, rng, rounds, verify):
    model = recurrent(rounds, rng)
    found = run(runtime, device, model, [floats(rng, (5, 4)), floats(rng, (1, 4))], verify=verify)
    assert left(found) == {}
    (partition,) = found.partitions
    if verify == "first":
        assert is_verified(found)
    if rounds == 5:
        assert partition.launches >= rounds


def test_results_may_be_inputs_constants_and_the_same_tensor(runtime, device, rng):
    def body(g: ModelMaker, x: list[int]) -> list[int]:
        y = g.op("NEG", [x[2]], SHAPE)
        return [next_number(g, x[0]), x[1], y, y, g.constant(np.ones(SHAPE, np.float32))]

    m = ModelMaker()
    x, y = m.input("x", SHAPE), m.input("y", SHAPE)
    m.output(*loop(m, [number(m, 0), x, y, x, y], below(3), body))
    found = run(runtime, device, m.build(), [floats(rng), floats(rng)], verify="first")
    assert left(found) == {}
    assert is_verified(found)


def test_states_are_exchanged_at_once(runtime, device, rng):
    """Stock kernels copy one result after the other, and lose the first state."""

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        return [next_number(g, x[0]), x[2], x[1]]

    m = ModelMaker()
    _, *found = loop(m, [number(m, 0), m.input("x", SHAPE), m.input("y", SHAPE)], below(3), body)
    m.output(*found)
    x, y = floats(rng), floats(rng)
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    for mine, its in zip(answers(interpreter, [x, y]), [y, x]):
        np.testing.assert_array_equal(mine, its)
    assert left(delegate.explain()) == {}


@pytest.mark.parametrize("verify", ["off", "first"])
def test_no_round_gives_the_inputs(runtime, device, rng, verify):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    body: Graph = lambda g, x: [next_number(g, x[0]), g.op("EXP", [x[1]], SHAPE)]  # noqa: E731
    m.output(*loop(m, [number(m, 7), x], below(7), body))
    assert left(run(runtime, device, m.build(), [floats(rng)], verify=verify)) == {}


def test_loops_and_branches_within_a_loop(runtime, device, rng):
    """Three times: two sines, and a cosine or a tangent, by turns."""
    m = ModelMaker()

    def inner(g: ModelMaker, x: list[int]) -> list[int]:
        return [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE)]

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        _, y = loop(m, [number(g, 0), x[1]], below(2), inner, inside=g)
        even = g.op("FLOOR_MOD", [x[0], number(g, 2)], ())
        is_even = g.op("EQUAL", [even, number(g, 0)], (), dtype=bool)
        yes: Graph = lambda g, x: [g.op("COS", [x[0]], SHAPE)]  # noqa: E731
        no: Graph = lambda g, x: [g.op("TANH", [x[0]], SHAPE)]  # noqa: E731
        return [next_number(g, x[0]), branch(m, is_even, [y], yes, no, inside=g)]

    _, y = loop(m, [number(m, 0), m.input("x", SHAPE)], below(3), body)
    m.output(y)
    found = run(runtime, device, m.build(), [floats(rng)], verify="first")
    assert left(found) == {}
    assert is_verified(found)


@pytest.mark.parametrize("condition", [False, True])
def test_a_branch_with_a_constant_condition(runtime, device, rng, condition):
    m = ModelMaker()
    operands = [m.input("x", SHAPE), m.input("y", SHAPE)]
    yes: Graph = lambda g, x: [g.op("SUB", x, SHAPE)]  # noqa: E731
    no: Graph = lambda _, x: [x[1]]  # noqa: E731
    y = branch(m, m.constant(np.bool_(condition)), operands, yes, no)
    m.output(m.op("ABS", [y], SHAPE))
    assert left(run(runtime, device, m.build(), [floats(rng), floats(rng)])) == {}


def test_nodes_may_run_the_same_graphs(runtime, device, rng):
    m = ModelMaker()
    body: Graph = lambda g, x: [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE)]  # noqa: E731
    first = [number(m, 0), m.input("x", SHAPE)]
    _, y = loop(m, first, below(2), body)
    second = [number(m, 1), m.op("NEG", [y], SHAPE)]
    m.output(m.op("WHILE", second, **results_like(m, second),
                  cond_subgraph_index=1, body_subgraph_index=2)[1], y)  # fmt: skip
    assert left(run(runtime, device, m.build(), [floats(rng)])) == {}


def test_a_state_may_grow(runtime, device, rng):
    def body(g: ModelMaker, x: list[int]) -> list[int]:
        row = g.op("SUM", [x[1], g.constant(np.int32([0]))], (1, 4), keep_dims=True)
        return [next_number(g, x[0]), g.op("CONCATENATION", [x[1], row], (3, 4), axis=0)]

    m = ModelMaker()
    _, y = loop(m, [number(m, 0), m.input("x", SHAPE)], below(3), body)
    m.output(m.op("NEG", [y], (5, 4)))
    assert left(run(runtime, device, m.build(), [floats(rng)], verify="first")) == {}


@pytest.mark.parametrize("fits", [True, False])
def test_quantized_loops(runtime, device, rng, fits):
    scale, other = ([0.02], [3]), ([1 / 256], [-128])

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        y = g.op("ADD", [x[1], x[2]], SHAPE, quantization=scale)
        z = g.op("LOGISTIC", [y], SHAPE, quantization=other)
        return [next_number(g, x[0]), *([y, z] if fits else [z, x[2]])]

    m = ModelMaker()
    operands = [
        m.input(name, SHAPE, np.int8, quantization=q) for name, q in zip("xy", (scale, other))
    ]
    m.output(*loop(m, [number(m, 0), *operands], below(3), body)[1:])
    given = [rng.integers(-128, 128, SHAPE, np.int8) for _ in range(2)]
    why = left(run(runtime, device, m.build(), given))
    expected = "input 1 of graph 1 has another scale or zero point than its value"
    assert why == ({} if fits else {"WHILE": expected})


@pytest.mark.parametrize("verify", ["off", "first"])
def test_loops_follow_a_resize(runtime, device, rng, verify):
    """The body's own shapes are evaluated again; shapes without elements are the CPU's."""
    m = ModelMaker()

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        shape = g.op("SHAPE", [x[1]], (2,), dtype=np.int32, out_type=np.int32)
        flat = g.op("RESHAPE", [x[1], g.constant(np.int32([-1]))], (8,))
        return [next_number(g, x[0]), g.op("RESHAPE", [g.op("SIN", [flat], (8,)), shape], SHAPE)]

    _, y = loop(m, [number(m, 0), m.input("x", SHAPE, shape_signature=(-1, 4))], below(3), body)
    m.output(m.op("NEG", [y], SHAPE))
    model = m.build()
    delegate = clgpu_delegate.load(device=device, verify=verify)
    ours = make_interpreter(runtime, model, [delegate])
    for rows in (2, 5, 0, 3):
        x = floats(rng, (rows, 4))
        ours.resize_tensor_input(ours.get_input_details()[0]["index"], x.shape)
        (found,) = answers(ours, [x])
        wanted = x.astype(np.float64)
        for _ in range(3):
            wanted = np.sin(wanted)
        assert found.shape == wanted.shape
        assert_close(found, -wanted, "fp32")
        assert left(delegate.explain()) == {}
        assert bool(delegate.explain().partitions[0].on_cpu) == (rows == 0)


def sines(rounds: int) -> bytes:
    m = ModelMaker()
    body: Graph = lambda g, x: [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE)]  # noqa: E731
    _, y = loop(m, [number(m, 0), m.input("x", SHAPE)], below(rounds), body)
    m.output(y)
    return m.build()


def test_a_loop_stays_on_the_cpu_as_a_whole(runtime, device, rng):
    why = left(run(runtime, device, sines(3), [floats(rng)], exclude="SIN"))
    assert why == {"WHILE": "left on the CPU by the option 'exclude': SIN of its graph 2"}
    why = left(run(runtime, device, sines(3), [floats(rng)], ops="core"))
    assert why == {"WHILE": "left on the CPU by the option 'ops': the operation is not one of the"
                            " core operations"}  # fmt: skip


def test_loops_with_many_rounds_are_not_unrolled(runtime, device, rng):
    found = run(runtime, device, sines(3000), [floats(rng)])
    assert left(found) == {}
    assert found.partitions[0].launches == 1, "the host runs the rounds"


def test_a_node_that_needs_the_cpu_keeps_its_loop_there(runtime, device, rng):
    m = ModelMaker()

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        y = g.op("SIN", [x[1]], SHAPE)
        found = g.op("WHERE", [g.op("LESS", [y, y], SHAPE, dtype=bool)], (0, 2), dtype=np.int64)
        g.op("NEG", [found], (0, 2))
        return [next_number(g, x[0]), y]

    _, y = loop(m, [number(m, 0), m.input("x", SHAPE)], below(2), body)
    m.output(y)
    why = left(run(runtime, device, m.build(), [floats(rng)]))
    assert why["WHILE"].startswith("runs WHERE of its graph 2, which needs the CPU: ")


def reason(runtime: str, device: str, m: ModelMaker) -> str:
    """Why WHILE or IF stays on the CPU; the model is not run, because it is malformed or large."""
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    why = left(delegate.explain())
    del interpreter
    (op,) = [op for op in why if op in ("WHILE", "IF")]
    return why[op]


def squared(g: ModelMaker, x: list[int]) -> list[int]:
    return [next_number(g, x[0]), g.op("SQUARE", [x[1]], SHAPE)]


def test_rounds_share_little_memory(runtime, device):
    weights = np.ones((2048, 2048), np.float32)

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        return [next_number(g, x[0]), g.op("MUL", [x[1], g.constant(weights)], (2048, 2048))]

    m = ModelMaker()
    m.output(loop(m, [number(m, 0), m.input("x", (2048, 2048))], below(6), body)[1])
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    interpreter.allocate_tensors()
    found = delegate.explain()
    assert left(found) == {}
    assert found.partitions[0].launches == 1, "the rounds are not unrolled"


def test_a_shape_that_an_inference_computes_is_no_loop_s(runtime, device):
    m = ModelMaker()
    x = m.op("RESHAPE", [m.input("x", (8,)), m.input("shape", (2,), np.int32)], (-1, -1))
    m.output(loop(m, [number(m, 0), x], below(3), squared)[1])
    assert reason(runtime, device, m) == "input 1 has a shape that is known only in an inference"


def while_of(m: ModelMaker, x: list[int], graphs: Sequence[int], results: int = 2) -> None:
    like = results_like(m, x[:results])
    cond, body = graphs
    m.output(*m.op("WHILE", x, **like, cond_subgraph_index=cond, body_subgraph_index=body))


def start(m: ModelMaker) -> list[int]:
    return [number(m, 0), m.input("x", SHAPE)]


def missing_result(m: ModelMaker) -> None:
    x = start(m)
    while_of(m, x, [add_graph(m, m, x, below(3)), add_graph(m, m, x, squared)], results=1)


def missing_state(m: ModelMaker) -> None:
    m.output(*loop(m, start(m), below(3), lambda g, x: [next_number(g, x[0])]))


def missing_input(m: ModelMaker) -> None:
    x = start(m)
    while_of(m, x, [add_graph(m, m, x, below(3)), add_graph(m, m, x[:1], below(3))])


def missing_graph(m: ModelMaker) -> None:
    x = start(m)
    while_of(m, x, [add_graph(m, m, x, below(3)), 99])


def several_conditions(m: ModelMaker) -> None:
    more: Graph = lambda g, _: [g.constant(np.array([True, False]))]  # noqa: E731
    m.output(*loop(m, start(m), more, squared))


def a_number_as_condition(m: ModelMaker) -> None:
    m.output(*loop(m, start(m), lambda _, x: [x[0]], squared))


def no_condition(m: ModelMaker) -> None:
    m.output(*loop(m, start(m), lambda *_: [], squared))


def a_body_that_runs_itself(m: ModelMaker) -> None:
    def body(g: ModelMaker, x: list[int]) -> list[int]:
        graphs = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
        _, y = g.op("WHILE", [number(g, 0), x[1]], **results_like(g, x), **graphs)
        return [next_number(g, x[0]), y]

    m.output(*loop(m, start(m), below(3), body))


def a_result_of_nobody(m: ModelMaker) -> None:
    body: Graph = lambda g, x: [next_number(g, x[0]), g.tensor(SHAPE)]  # noqa: E731
    m.output(*loop(m, start(m), below(3), body))


def an_operand_of_nobody(m: ModelMaker) -> None:
    def body(g: ModelMaker, x: list[int]) -> list[int]:
        return [next_number(g, x[0]), g.op("SQUARE", [g.tensor(SHAPE)], SHAPE)]

    m.output(*loop(m, start(m), below(3), body))


def another_type(m: ModelMaker) -> None:
    def body(g: ModelMaker, x: list[int]) -> list[int]:
        return [next_number(g, x[0]), g.op("CAST", [x[1]], SHAPE, dtype=np.int32)]

    m.output(*loop(m, start(m), below(3), body))


def nothing_that_changes(m: ModelMaker) -> None:
    """A loop that never ends."""
    m.output(*loop(m, [number(m, 0)], below(3), lambda _, same: same))


MALFORMED = {
    nothing_that_changes: "has no state that its rounds may change",
    missing_result: "its graph has another number of results",
    missing_state: "graph 2 has another number of results than of inputs",
    missing_input: "graph 2 has 1 inputs, and gets 2",
    missing_graph: "the runtime does not tell the inputs and outputs of graph 99",
    several_conditions: "the condition has several elements",
    a_number_as_condition: "the condition is int32; supported: bool",
    no_condition: "graph 1 has no result, or several",
    a_body_that_runs_itself: "graph 2 runs itself",
    a_result_of_nobody: "graph 2 has a result that none of its nodes writes",
    an_operand_of_nobody: "graph 2 has a node that reads what no node before it writes",
    another_type: "input 1 of graph 1 is float32; supported: int32",
}


@pytest.mark.parametrize("make", MALFORMED, ids=lambda make: make.__name__)
def test_malformed_graphs_are_left_to_the_runtime(runtime, device, make):
    m = ModelMaker()
    make(m)
    assert reason(runtime, device, m) == MALFORMED[make]


def test_a_loop_of_constants_is_computed_once(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    _, y = loop(m, [number(m, 0), m.constant(floats(rng))], below(3), squared)
    z = m.op("ADD", [m.op("SIN", [x], SHAPE), y], SHAPE)
    far = m.op("WHERE", [m.op("LESS", [z, y], SHAPE, dtype=bool)], (-1, 2), dtype=np.int64)
    m.output(m.op("MUL", [z, y], SHAPE), m.op("SHAPE", [far], (2,), dtype=np.int32,
                                              out_type=np.int32), y)  # fmt: skip
    found = run(runtime, device, m.build(), [floats(rng)], verify="first")
    assert found.nodes[0].computed == "load"


def test_a_counted_loop_within_one_that_is_not(runtime, device, rng):
    """The inner loop is unrolled in the graph that the outer one runs."""
    m = ModelMaker()
    count, x = m.input("count", (), np.int32), m.input("x", SHAPE)

    def body(g: ModelMaker, x: list[int]) -> list[int]:
        inner: Graph = lambda g, x: [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE)]  # noqa: E731
        _, y = loop(m, [number(g, 0), x[1]], below(2), inner, inside=g)
        return [next_number(g, x[0]), y]

    m.output(loop(m, [count, x], below(5), body)[1])
    model = m.build()
    for start_at in (1, 3, 7):
        assert left(run(runtime, device, model, [np.int32(start_at), floats(rng)])) == {}
    delegate = clgpu_delegate.load(device=device)
    answers(make_interpreter(runtime, model, [delegate]), [np.int32(1), floats(rng)])
    assert delegate.stats()["invokes"] == 1


def test_a_loop_within_a_memory_budget(runtime, device, rng):
    model, given = recurrent(5, rng), [floats(rng, (5, 4)), floats(rng, (1, 4))]
    whole = run(runtime, device, model, given)
    budget = whole.partitions[0].peak_bytes
    found = run(runtime, device, model, given, memory_budget=budget)
    assert left(found) == {}
    assert found.partitions[0].peak_bytes <= budget


@pytest.mark.parametrize(
    "options", [{"precision": "fp16"}, {"chain": "on"}, {"command_list": "on"}, {"profile": True}]
)
def test_options_of_loops(runtime, device, rng, options):
    delegate = clgpu_delegate.load(device=device, **options)
    model, given = recurrent(5, rng), [floats(rng, (5, 4)), floats(rng, (1, 4))]
    ours = answers(make_interpreter(runtime, model, [delegate]), given)
    stock = answers(make_interpreter(runtime, model), given)
    for mine, its in zip(ours, stock):
        np.testing.assert_allclose(mine, its, rtol=0.02, atol=0.02)
    assert left(delegate.explain()) == {}


def test_a_loop_that_never_ends_may_be_in_a_branch(runtime, device):
    """In a branch that is not taken: nobody starts it."""
    m = ModelMaker()
    x, flag = m.input("x", SHAPE), m.input("c", (), np.bool_)

    def forever(g: ModelMaker, values: list[int]) -> Sequence[int]:
        start = [number(g, 0), values[0]]
        return [loop(m, start, below(3), lambda _, same: same, inside=g)[1]]

    sine: Graph = lambda g, x: [g.op("SIN", [x[0]], SHAPE)]  # noqa: E731
    m.output(branch(m, flag, [x], forever, sine))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    (got,) = answers(interpreter, [np.ones(SHAPE, np.float32), np.bool_(False)])
    np.testing.assert_allclose(got, np.sin(np.ones(SHAPE)), rtol=1e-6)
    assert left(delegate.explain()) == {}


def test_a_condition_whose_kernel_would_abort_is_not_computed(runtime, device):
    shape = (1,) * 9
    m = ModelMaker()

    def more(g: ModelMaker, x: list[int]) -> Sequence[int]:
        return [g.op("LESS", [x[0], g.constant(np.full(shape, 3, np.int32))], shape, dtype=bool)]

    start = [number(m, 0), m.input("x", SHAPE)]
    m.output(loop(m, start, more, lambda _, same: same)[1])
    delegate = clgpu_delegate.load(device=device)
    make_interpreter(runtime, m.build(), [delegate])
    assert "WHILE" in left(delegate.explain())


def test_conditions_may_be_constants_and_flags(runtime, device, rng):
    cosine: Graph = lambda g, x: [g.op("COS", [x[0]], SHAPE)]  # noqa: E731
    tangent: Graph = lambda g, x: [g.op("TANH", [x[0]], SHAPE)]  # noqa: E731
    m = ModelMaker()

    def first_round_differs(g: ModelMaker, x: list[int]) -> Sequence[int]:
        is_first = g.op("EQUAL", [x[0], number(g, 0)], (), dtype=bool)
        return [next_number(g, x[0]), branch(m, is_first, [x[1]], cosine, tangent, inside=g)]

    start = [number(m, 0), m.input("x", SHAPE)]
    m.output(loop(m, start, below(3), first_round_differs)[1])
    assert left(run(runtime, device, m.build(), [floats(rng)])) == {}

    m = ModelMaker()
    x, flag = m.input("x", SHAPE), m.op("LESS", [number(m, 3), number(m, 5)], (), dtype=bool)
    m.output(branch(m, flag, [x], cosine, tangent))
    assert left(run(runtime, device, m.build(), [floats(rng)])) == {}

    m = ModelMaker()

    def until_done(g: ModelMaker, x: list[int]) -> Sequence[int]:
        done = g.op("LESS", [number(g, 1), x[0]], (), dtype=bool)
        return [next_number(g, x[0]), g.op("SIN", [x[1]], SHAPE), done]

    start = [number(m, 0), m.input("x", SHAPE), m.constant(np.bool_(False))]
    go_on: Graph = lambda g, x: [g.op("LOGICAL_NOT", [x[2]], (), dtype=bool)]  # noqa: E731
    m.output(loop(m, start, go_on, until_done)[1])
    assert left(run(runtime, device, m.build(), [floats(rng)])) == {}


def test_another_file_behind_it_in_the_same_page_is_not_taken_for_it(runtime, device, rng):
    def model(body: Graph) -> bytes:
        m = ModelMaker()
        start = [number(m, 0), m.input("x", SHAPE)]
        rounds: Graph = lambda g, x: [next_number(g, x[0]), *body(g, [x[1]])]  # noqa: E731
        m.output(loop(m, start, below(3), rounds)[1])
        return m.build()

    used = model(lambda g, x: [g.op("COS", [x[0]], SHAPE)])
    other = model(lambda g, x: [g.op("TANH", [g.op("ABS", [x[0]], SHAPE)], SHAPE)])
    page, large = 4096, 1 << 20  # of so many bytes, Python's text begins at the start of a page
    assert len(used) < page - 64, "the other file begins in the first page"
    content = (used + other).ljust(large, b"\0")
    assert left(run(runtime, device, content, [floats(rng)])) == {}


@pytest.mark.parametrize("name", ["net_TFL3/", ""])
def test_names_do_not_hide_the_file(runtime, device, rng, name):
    """The delegate looks for its identifier in memory; a name may contain the same letters."""
    model = reader.parse(sines(3))
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            tensor.name = f"{name}{tensor.name}" if name else ""
    assert left(run(runtime, device, writer.serialize(model), [floats(rng)])) == {}

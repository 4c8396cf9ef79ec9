"""VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE and CALL_ONCE: values that outlive an inference."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter

ROWS = 3


class Variables:
    """A main graph with variables, and the graph that sets them in the first inference."""

    def __init__(self) -> None:
        self.m = ModelMaker()
        self.first = self.m.subgraph()

    def declare(self, name: str, value: np.ndarray) -> int:
        """A variable with a first value; the tensor that names it in the main graph."""
        named = self.handle(name, self.first)
        self.first.op("ASSIGN_VARIABLE", [named, self.first.constant(value)], [])
        return self.handle(name)

    def handle(self, name: str, graph: ModelMaker | None = None) -> int:
        graph = graph or self.m
        return graph.op("VAR_HANDLE", [], (1,), dtype="RESOURCE", shared_name=name)

    def start(self) -> None:
        self.m.op("CALL_ONCE", [], [], init_subgraph_index=1)

    def read(self, handle: int, shape: tuple[int, ...], dtype=np.float32) -> int:
        return self.m.op("READ_VARIABLE", [handle], shape, dtype=dtype)

    def assign(self, handle: int, value: int) -> None:
        self.m.op("ASSIGN_VARIABLE", [handle, value], [])


def delay_line(dtype=np.float32) -> bytes:
    """Two inferences of delay, a sum of all inputs so far, and a product of both."""
    v = Variables()
    shape = (ROWS, 5)
    v.start()
    older, newer, total = (
        v.declare(name, np.full(shape, value).astype(dtype))
        for name, value in (("older", 1), ("newer", 2), ("total", 0))
    )
    x = v.m.input("x", shape, dtype)
    late = v.read(older, shape, dtype)
    v.assign(older, v.read(newer, shape, dtype))  # a variable becomes another one
    v.assign(newer, x)  # an input
    so_far = v.m.op("ADD", [v.read(total, shape, dtype), x], shape)
    v.assign(total, so_far)
    again = v.read(total, shape, dtype)  # what was assigned just now
    v.m.output(late, v.m.op("MUL", [again, late], shape), so_far)
    return v.m.build()


def stream(interpreter, inputs) -> list[list[np.ndarray]]:
    """The outputs of one inference after the other."""
    interpreter.allocate_tensors()
    (x,) = interpreter.get_input_details()
    found = []
    for value in inputs:
        interpreter.set_tensor(x["index"], value)
        interpreter.invoke()
        details = interpreter.get_output_details()
        found.append([interpreter.get_tensor(d["index"]) for d in details])
    return found


def assert_same(got, want) -> None:
    assert len(got) == len(want)
    for mine, its in zip(got, want):
        for a, b in zip(mine, its):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def numbers(rng, steps: int, dtype=np.float32, shape=(ROWS, 5)) -> list[np.ndarray]:
    return [rng.integers(-4, 5, shape).astype(dtype) for _ in range(steps)]


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_stay_from_one_inference_to_the_next(runtime, device, rng, dtype):
    model = delay_line(dtype)
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    inputs = numbers(rng, 40, dtype)
    assert_same(stream(ours, inputs), stream(stock, inputs))
    plan = delegate.explain()
    assert all(node.claimed for node in plan.nodes)
    assert len(plan.partitions) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"verify": "first"},
        {"verify": 3},
        {"profile": True},
        {"precision": "fp16"},
        {"zero_copy": "off"},
        {"memory_pool": "process"},
    ],
    ids=str,
)
def test_values_are_right_with_every_option(device, rng, options):
    model, inputs = delay_line(), numbers(rng, 8)
    delegate = clgpu_delegate.load(device=device, **options)
    ours = make_interpreter(op_runtime(), model, [delegate])
    stock = make_interpreter(op_runtime(), model, resolver="ref")
    assert_same(stream(ours, inputs), stream(stock, inputs))
    assert all(node.claimed for node in delegate.explain().nodes)


def test_interpreters_of_one_delegate_have_their_own_values(device, rng):
    model = delay_line()
    delegate = clgpu_delegate.load(device=device)
    ours = [make_interpreter(op_runtime(), model, [delegate]) for _ in range(2)]
    stock = [make_interpreter(op_runtime(), model) for _ in range(2)]
    for _ in range(3):
        for mine, its in zip(ours, stock):
            inputs = numbers(rng, 2)
            assert_same(stream(mine, inputs), stream(its, inputs))


def test_a_reset_is_that_of_the_runtime(runtime, device, rng):
    model = delay_line()
    ours = make_interpreter(runtime, model, [clgpu_delegate.load(device=device)])
    stock = make_interpreter(runtime, model, resolver="ref")
    for _ in range(3):
        inputs = numbers(rng, 2)
        assert_same(stream(ours, inputs), stream(stock, inputs))
        ours.reset_all_variables()
        stock.reset_all_variables()


def test_a_variable_that_nobody_has_set_is_an_error_as_without_the_delegate(runtime, device):
    v = Variables()
    x = v.m.input("x", (4,))
    v.m.output(v.m.op("ADD", [v.read(v.handle("v"), (4,)), x], (4,)))
    for delegates in ([], [clgpu_delegate.load(device=device)]):
        interpreter = make_interpreter(runtime, v.m.build(), delegates, resolver="ref")
        interpreter.allocate_tensors()
        for _ in range(2):
            with pytest.raises(RuntimeError, match="variable != nullptr"):
                interpreter.invoke()


def test_what_is_assigned_before_it_is_read_needs_no_first_value(runtime, device, rng):
    v = Variables()
    handle = v.handle("v")
    x = v.m.input("x", (4,))
    v.assign(handle, v.m.op("NEG", [x], (4,)))
    v.m.output(v.m.op("ABS", [v.read(handle, (4,))], (4,)))
    delegate = clgpu_delegate.load(device=device)
    inputs = numbers(rng, 3, shape=(4,))
    got = stream(make_interpreter(runtime, v.m.build(), [delegate]), inputs)
    assert_same(got, [[np.abs(x)] for x in inputs])
    assert all(node.claimed for node in delegate.explain().nodes)


def test_a_constant_may_be_assigned(runtime, device):
    v = Variables()
    v.start()
    handle = v.declare("v", np.full((4,), 7, np.float32))
    x = v.m.input("x", (4,))
    v.m.output(v.m.op("ADD", [v.read(handle, (4,)), x], (4,)))
    v.assign(handle, v.m.constant(np.arange(4, dtype=np.float32)))
    delegate = clgpu_delegate.load(device=device)
    zeros = [np.zeros(4, np.float32)] * 3
    got = stream(make_interpreter(runtime, v.m.build(), [delegate]), zeros)
    assert_same(got, [[np.full(4, 7)], [np.arange(4)], [np.arange(4)]])
    assert all(node.claimed for node in delegate.explain().nodes)


def reasons(delegate) -> dict[str, str]:
    return {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}


def left(model: bytes, inputs, device, **options) -> dict[str, str]:
    """Why nodes stay on the CPU; the results must be right all the same."""
    delegate = clgpu_delegate.load(device=device, **options)
    ours = make_interpreter(op_runtime(), model, [delegate])
    stock = make_interpreter(op_runtime(), model, resolver="ref")
    assert_same(stream(ours, inputs), stream(stock, inputs))
    return reasons(delegate)


def test_a_variable_that_nodes_on_the_cpu_use_is_theirs(device, rng):
    why = left(delay_line(), numbers(rng, 6), device, exclude="ASSIGN_VARIABLE")
    assert "may use the variable" in why["READ_VARIABLE"]
    assert why["CALL_ONCE"] == "no variable is on the device"
    why = left(delay_line(), numbers(rng, 6), device, exclude="VAR_HANDLE")
    assert why["READ_VARIABLE"] == "input 0 is a resource that no node on the device names"


def counted(exclude_one_of: str) -> bytes:
    """The node of this name lies between a variable's READ and its ASSIGN."""
    v = Variables()
    v.start()
    handle = v.declare("v", np.zeros((4,), np.float32))
    x = v.m.input("x", (4,))
    new = v.m.op("ADD", [v.m.op(exclude_one_of, [v.read(handle, (4,))], (4,)), x], (4,))
    v.assign(handle, new)
    v.m.output(v.m.op("NEG", [new], (4,)))
    return v.m.build()


def test_a_variable_of_several_partitions_stays_on_the_cpu(device, rng):
    why = left(counted("TANH"), numbers(rng, 5, shape=(4,)), device, exclude="TANH")
    assert why["READ_VARIABLE"] == "2 partitions use the variable"
    assert why["ASSIGN_VARIABLE"] == "2 partitions use the variable"
    assert not left(counted("TANH"), numbers(rng, 5, shape=(4,)), device)


def test_a_value_without_a_shape_in_the_model_stays_on_the_cpu(device, rng):
    v = Variables()
    v.start()
    handle = v.declare("v", np.ones((4,), np.float32))
    x = v.m.input("x", (4,))
    v.m.output(v.m.op("ADD", [v.read(handle, ()), x], (4,)))
    why = left(v.m.build(), numbers(rng, 2, shape=(4,)), device)
    assert why["READ_VARIABLE"] == "output 0 has no shape in the model"


def test_a_larger_variable_than_the_models_gives_its_beginning(runtime, device):
    """Stock kernels copy as many bytes as the model says."""
    v = Variables()
    v.start()
    handle = v.declare("v", np.arange(6, dtype=np.float32))
    x = v.m.input("x", (4,))
    v.m.output(v.m.op("ADD", [v.read(handle, (4,)), x], (4,)))
    delegate = clgpu_delegate.load(device=device)
    zeros = [np.zeros(4, np.float32)] * 2
    got = stream(make_interpreter(runtime, v.m.build(), [delegate]), zeros)
    assert_same(got, [[np.arange(4)]] * 2)
    assert all(node.claimed for node in delegate.explain().nodes)


def test_a_graph_of_variables_only_has_no_partition(device):
    v = Variables()
    v.start()
    handle = v.declare("v", np.ones((4,), np.float32))
    v.assign(handle, v.m.input("x", (4,)))
    v.m.output(v.read(handle, (4,)))
    why = left(v.m.build(), [np.arange(4, dtype=np.float32)], device)
    assert why["READ_VARIABLE"] == "the graph computes nothing but its variables"


def test_a_loop_on_the_cpu_may_use_the_variable(device, rng):
    v = Variables()
    v.start()
    handle = v.declare("v", np.ones((4,), np.float32))
    x = v.m.input("x", (4,))
    count = v.m.constant(np.zeros(1, np.int32))
    loop = v.m.op(
        "WHILE", [count, x], [(1,), (4,)], dtype=[np.int32, np.float32],
        cond_subgraph_index=2, body_subgraph_index=3,
    )  # fmt: skip
    v.m.output(v.m.op("ADD", [v.read(handle, (4,)), loop[1]], (4,)))
    cond, body = v.m.subgraph(), v.m.subgraph()
    i, _ = cond.input("i", (1,), np.int32), cond.input("x", (4,))
    cond.output(cond.op("LESS", [i, cond.constant(np.array([3], np.int32))], (1,), dtype=bool))
    i, y = body.input("i", (1,), np.int32), body.input("x", (4,))
    body.op("ASSIGN_VARIABLE", [v.handle("v", body), y], [])
    one = body.constant(np.ones(1, np.int32))
    body.output(body.op("ADD", [i, one], (1,)), body.op("NEG", [y], (4,)))
    why = left(v.m.build(), numbers(rng, 4, shape=(4,)), device, exclude="WHILE")
    assert "may use the variable" in why["READ_VARIABLE"]


def test_inferences_of_a_runner_follow_each_other(device, rng):
    model, inputs = delay_line(), numbers(rng, 5)
    with clgpu_delegate.Runner(model, device=device) as runner:
        got = list(runner.run_many(inputs))
        assert "each inference needs the states" in runner.reason
    want = stream(make_interpreter(op_runtime(), model, resolver="ref"), inputs)
    assert_same(got, want)


def mixed_up() -> tuple[Variables, int, int, int]:
    """Two variables; the second is on both sides of a TANH."""
    v = Variables()
    v.start()
    first, second = (v.declare(name, np.zeros((4,), np.float32)) for name in ("a", "b"))
    return v, first, second, v.m.input("x", (4,))


@pytest.mark.parametrize("verify", ["off", "first"])
def test_variables_of_one_model_stay_together(device, rng, verify):
    v, first, second, x = mixed_up()
    total = v.m.op("ADD", [v.read(first, (4,)), x], (4,))
    v.assign(first, total)
    later = v.m.op("ADD", [v.read(second, (4,)), v.m.op("TANH", [total], (4,))], (4,))
    v.assign(second, later)
    v.m.output(total, v.m.op("NEG", [later], (4,)))
    why = left(v.m.build(), numbers(rng, 4, shape=(4,)), device, exclude="TANH", verify=verify)
    assert why["READ_VARIABLE"]


def test_the_first_values_are_set_before_the_cpu_reads_them(device, rng):
    v, first, second, x = mixed_up()
    seen = v.m.op("ADD", [v.read(second, (4,)), x], (4,))
    bent = v.m.op("TANH", [seen], (4,))
    v.assign(second, v.m.op("NEG", [bent], (4,)))
    total = v.m.op("ADD", [v.read(first, (4,)), bent], (4,))
    v.assign(first, total)
    v.m.output(v.m.op("NEG", [total], (4,)), seen)
    left(v.m.build(), numbers(rng, 4, shape=(4,)), device, exclude="TANH")


@pytest.mark.parametrize("verify", ["first", 1])
def test_a_constant_that_is_assigned_is_verified(device, verify):
    v = Variables()
    v.start()
    handle = v.declare("v", np.full((4,), 7, np.float32))
    x = v.m.input("x", (4,))
    v.m.output(v.m.op("ADD", [v.read(handle, (4,)), x], (4,)))
    v.assign(handle, v.m.constant(np.arange(4, dtype=np.float32)))
    delegate = clgpu_delegate.load(device=device, verify=verify, cache="off")
    zeros = [np.zeros(4, np.float32)] * 3
    got = stream(make_interpreter(op_runtime(), v.m.build(), [delegate]), zeros)
    assert_same(got, [[np.full(4, 7)], [np.arange(4)], [np.arange(4)]])
    assert not delegate.explain().partitions[0].on_cpu


@pytest.mark.parametrize("shape", [(8,), (4,)])
def test_a_variable_of_several_shapes_stays_on_the_cpu(device, rng, shape):
    v = Variables()
    handle = v.handle("v")
    x = v.m.input("x", (2, 4))
    v.assign(handle, v.m.op("NEG", [x], (2, 4)))
    v.m.output(v.m.op("ABS", [v.read(handle, shape)], shape))
    why = left(v.m.build(), numbers(rng, 2, shape=(2, 4)), device)
    assert why["READ_VARIABLE"] == "nodes give the variable several shapes"

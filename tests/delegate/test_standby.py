"""The CPU's kernels compute shapes that no kernel of ours supports."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter


def pool(m: ModelMaker, x: int, shape: tuple[int, ...]) -> int:
    return m.op(
        "MAX_POOL_2D",
        [x],
        shape,
        padding=1,
        stride_h=2,
        stride_w=2,
        filter_height=2,
        filter_width=2,
    )


def dense_and_pool() -> bytes:
    """A partition of four nodes, with open batch and height."""
    m = ModelMaker()
    x = m.input("x", (1, 4, 6, 2), shape_signature=(-1, -1, 6, 2))
    y = pool(m, m.op("TANH", [x], (1, 4, 6, 2)), (1, 2, 3, 2))
    weights = m.constant(np.arange(6, dtype=np.float32).reshape(3, 2))
    m.output(m.op("FULLY_CONNECTED", [m.op("ABS", [y], (1, 2, 3, 2)), weights], (2, 3)))
    m.output(y)
    return m.build()


def answers(interpreter, x: np.ndarray) -> list[np.ndarray]:
    """Of one inference, after a resize to the shape of the input."""
    interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
    interpreter.allocate_tensors()
    shapes = [tuple(detail["shape"]) for detail in interpreter.get_output_details()]
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    found = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    assert [y.shape for y in found] == shapes
    return found


def assert_equal(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    assert len(got) == len(want)
    for mine, its in zip(got, want):
        assert mine.shape == its.shape
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("verify", ["off", "first"])
def test_shapes_without_elements_go_to_the_cpu_and_come_back(runtime, device, rng, verify):
    model = dense_and_pool()
    delegate = clgpu_delegate.load(device=device, verify=verify)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for shape, on_cpu in (
        ((2, 4, 6, 2), False),
        ((0, 4, 6, 2), True),
        ((3, 6, 6, 2), False),
        ((2, 0, 6, 2), True),
        ((1, 4, 6, 2), False),
    ):
        x = rng.standard_normal(shape).astype(np.float32)
        assert_equal(answers(ours, x), answers(stock, x))
        plan = delegate.explain()
        (partition,) = plan.partitions
        assert ("0 elements" in partition.on_cpu) == on_cpu
        assert any("is computed by the CPU's kernels for now" in n for n in plan.notes) == on_cpu
        for node in plan.nodes:
            assert node.claimed
            assert node.reason.startswith("computed by the CPU's kernels: ") == on_cpu
            assert not (on_cpu and node.precision)
        assert any(tensor.storage for tensor in plan.tensors) != on_cpu
        assert (partition.launches > 0) != on_cpu
        assert ("CPU (0)" in str(plan)) == on_cpu


def test_another_number_of_axes_goes_to_the_cpu(runtime, device, rng):
    m = ModelMaker()
    rows = m.input("rows", (4,), np.int32)
    table = m.constant(rng.standard_normal((5, 3)).astype(np.float32))
    m.output(m.op("NEG", [m.op("GATHER", [table, rows], (4, 3), dtype=np.float32)], (4, 3)))
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate])
    stock = make_interpreter(runtime, m.build(), resolver="ref")
    for shape, on_cpu in (((4,), False), ((2, 3), True), ((), True), ((7,), False)):
        x = rng.integers(0, 5, shape, dtype=np.int32)
        assert_equal(answers(ours, x), answers(stock, x))
        assert bool(delegate.explain().partitions[0].on_cpu) == on_cpu


def test_what_the_cpu_does_not_take_either_is_an_error_and_the_next_shape_is_right(runtime):
    m = ModelMaker()
    x, y = m.input("x", (2, 3)), m.input("y", (2, 3))
    m.output(m.op("NEG", [m.op("ADD", [x, y], (2, 3))], (2, 3)))
    interpreter = make_interpreter(runtime, m.build(), [clgpu_delegate.load()])
    interpreter.allocate_tensors()
    first, second = (detail["index"] for detail in interpreter.get_input_details())
    interpreter.resize_tensor_input(first, (2, 0))
    with pytest.raises(RuntimeError, match="ADD"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(second, (1, 1))
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape == (2, 0)


def test_a_shape_that_values_decide_on_is_known_after_the_inference(runtime, device, rng):
    """The number of repetitions is computed: by us while planning, by stock in the inference."""
    m = ModelMaker()
    x = m.input("x", (2, 6), shape_signature=(-1, 6))
    times = m.op("NEG", [m.constant(np.array([-1, -2], np.int32))], (2,))
    y = m.op("TILE", [m.op("SQUARE", [x], (2, 6)), times], (2, 12))
    m.output(m.op("NEG", [y], (2, 12)))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    for rows in (3, 0, 2, 0, 0, 5):
        x = rng.standard_normal((rows, 6)).astype(np.float32)
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], x.shape)
        interpreter.allocate_tensors()
        for _ in range(2):
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
            interpreter.invoke()
            y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
            assert_equal([y], [np.tile(-(x**2), (1, 2))])
        assert bool(delegate.explain().partitions[0].on_cpu) == (rows == 0)


def looping(rows: int, grows: bool) -> bytes:
    """A WHILE of three rounds with a state of this many rows; each round may add one."""
    m = ModelMaker()
    i, state, x = (
        m.constant(np.zeros(1, np.int32)),
        m.input("state", (rows, 4)),
        m.input("x", (1, 4)),
    )
    last = rows + 3 * grows
    _, found, y = m.op(
        "WHILE", [i, state, x], [(1,), (last, 4), (1, 4)],
        dtype=[np.int32, np.float32, np.float32], cond_subgraph_index=1, body_subgraph_index=2,
    )  # fmt: skip
    m.output(m.op("NEG", [y], (1, 4)), found)
    cond, body = m.subgraph(), m.subgraph()
    count, *_ = _inputs_of_rounds(cond, rows)
    cond.output(cond.op("LESS", [count, cond.constant(np.array([3], np.int32))], (1,), dtype=bool))
    count, state, x = _inputs_of_rounds(body, rows)
    more = body.op("CONCATENATION", [state, body.op("TANH", [x], (1, 4))], (rows + 1, 4), axis=0)
    kept = body.op("SUM", [more, body.constant(np.zeros(1, np.int32))], (1, 4), keep_dims=True)
    body.output(
        body.op("ADD", [count, body.constant(np.ones(1, np.int32))], (1,)),
        body.op("ABS", [more if grows else state], (rows + grows, 4)),
        body.op("NEG", [kept], (1, 4)),
    )
    return m.build()


def _inputs_of_rounds(graph: ModelMaker, rows: int) -> tuple[int, int, int]:
    return (
        graph.input("count", (1,), np.int32),
        graph.input("state", (rows, 4), shape_signature=(-1, 4)),
        graph.input("x", (1, 4)),
    )


# Stock TensorFlow Lite does not let a state without rows grow.
@pytest.mark.parametrize(("rows", "grows"), [(0, False), (1, True), (2, True)])
def test_states_of_loops_may_have_no_rows_or_grow(runtime, device, rng, rows, grows):
    model = looping(rows, grows)
    ours = make_interpreter(runtime, model, [clgpu_delegate.load(device=device)])
    stock = make_interpreter(runtime, model, resolver="ref")
    for _ in range(3):
        state, x = (rng.standard_normal((n, 4)).astype(np.float32) for n in (rows, 1))
        found = []
        for interpreter in (ours, stock):
            interpreter.allocate_tensors()
            by_name = {d["name"]: d["index"] for d in interpreter.get_input_details()}
            interpreter.set_tensor(by_name["state"], state)
            interpreter.set_tensor(by_name["x"], x)
            interpreter.invoke()
            details = interpreter.get_output_details()
            found.append([interpreter.get_tensor(detail["index"]) for detail in details])
        assert_equal(*found)
        assert found[0][1].shape == (rows + 3 * grows, 4)


def test_a_type_that_the_model_does_not_say_goes_to_the_cpu(runtime, device, rng):
    """Stock kernels set the types of their results, regardless of the file."""
    m = ModelMaker()
    rows = m.input("rows", (4,), np.int32)
    table = m.constant(rng.standard_normal((5, 3)).astype(np.float32))
    y = m.op("GATHER", [table, rows], (4, 3), dtype=np.int32)  # it is of floats
    m.output(m.op("NEG", [m.op("NEG", [y], (4, 3))], (4, 3)))
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate], resolver="ref")
    stock = make_interpreter(runtime, m.build(), resolver="ref")
    for count in (4, 2):
        x = rng.integers(0, 5, count, dtype=np.int32)
        assert_equal(answers(ours, x), answers(stock, x))
        (partition,) = delegate.explain().partitions
        assert "is float32; the model says int32" in partition.on_cpu


@pytest.mark.parametrize("said", [(2, 1, 3), (2, 0, 3)])
def test_a_partition_takes_a_tensor_without_elements_that_nothing_needs(runtime, device, said):
    # The model may say that the slice has elements; the runtime finds that it has none.
    m = ModelMaker()
    x = m.input("x", (2, 4, 3))
    from_to_by = [m.constant(np.int32(v)) for v in ([0, 2, 0], [2, 2, 3], [1, 1, 1])]
    m.op("ABS", [m.op("STRIDED_SLICE", [x, *from_to_by], said)], said)
    m.output(m.op("NEG", [x], (2, 4, 3)))
    delegate = clgpu_delegate.load(device=device, exclude="STRIDED_SLICE")
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    for value in (1.0, 2.0):
        given = np.full((2, 4, 3), value, np.float32)
        assert_equal(answers(interpreter, given), [-given])
    left = [n.op for n in delegate.explain().nodes if not n.claimed]
    assert left == (["STRIDED_SLICE"] if said == (2, 1, 3) else ["STRIDED_SLICE", "ABS"])

"""SHAPE, RANK, ZEROS_LIKE, FILL, RANGE, BROADCAST_ARGS, and what planning computes from them."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, check, check_refused, op_runtime
from tests.ops.movement import random_array
from tests.runtimes import make_interpreter


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def plans(model, shapes, runtime, device, rng):
    """The explanation after each shape of the input; results are compared with stock's."""
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for shape in shapes:
        value = random_array(rng, shape)
        np.testing.assert_allclose(result(ours, value), result(stock, value), rtol=1e-5, atol=1e-6)
        yield delegate.explain()


def result(interpreter, x: np.ndarray) -> np.ndarray:
    """Of one inference, after a resize to the shape of the input."""
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def scalar(m: ModelMaker, value, dtype=np.int32) -> int:
    return m.constant(np.array(value, dtype=dtype))


def extent(m: ModelMaker, x: int, axis: int) -> int:
    """One extent of a tensor, as converters write it."""
    shape = m.op("SHAPE", [x], (len(m.shape(x)),), dtype=np.int32, out_type=np.int32)
    part = [m.constant(np.array([i], dtype=np.int32)) for i in (axis, axis + 1, 1)]
    return m.op("STRIDED_SLICE", [shape, *part], (), dtype=np.int32, shrink_axis_mask=1)


def flatten(m: ModelMaker, x: int) -> int:
    """Reshapes [b, h, w] to [b, h * w], with a shape that the model computes."""
    b, h, w = m.shape(x)
    size = m.op("MUL", [extent(m, x, 1), extent(m, x, 2)], (), dtype=np.int32)
    shape = m.op("PACK", [extent(m, x, 0), size], (2,), dtype=np.int32, values_count=2, axis=0)
    return m.op("RESHAPE", [x, shape], (b, h * w))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_shape_and_rank_are_results_of_the_model(dtype, rng, device):
    m = ModelMaker()
    x = m.input("x", (2, 3, 5))
    m.output(
        m.op("NEG", [x], (2, 3, 5)),
        m.op("SHAPE", [x], (3,), dtype=dtype, out_type=dtype),
        m.op("RANK", [x], (), dtype=np.int32),
    )
    value = random_array(rng, (2, 3, 5))
    want = [-value, np.array([2, 3, 5], dtype=dtype), np.array(3, np.int32)]
    check(m.build(), [value], want, device=device, precision="fp32")


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_zeros_like_has_the_shape_of_its_input(dtype, rng, device):
    m = ModelMaker()
    x = m.input("x", (3, 5), dtype=dtype)
    m.output(m.op("ADD", [x, m.op("ZEROS_LIKE", [x], (3, 5), dtype=dtype)], (3, 5), dtype=dtype))
    value = rng.integers(-9, 9, (3, 5)).astype(dtype)
    check(m.build(), [value], [value], device=device, precision="fp32")


def test_fill_and_range_become_constants(rng, device, precision):
    m = ModelMaker()
    x = m.input("x", (4, 3))
    shape = m.op("SHAPE", [x], (2,), dtype=np.int32, out_type=np.int32)
    twos = m.op("FILL", [shape, scalar(m, 2, np.float32)], (4, 3), dtype=np.float32)
    order = m.op("RANGE", [scalar(m, 0), extent(m, x, 0), scalar(m, 2)], (2,), dtype=np.int32)
    y = m.op("GATHER", [m.op("MUL", [x, twos], (4, 3)), order], (2, 3), axis=0)
    m.output(y)
    value = random_array(rng, (4, 3))
    check(m.build(), [value], None, device=device, precision=precision)


def test_the_shape_of_two_shapes(runtime, device, rng):
    """As converters write broadcasting of tensors whose shapes are open."""
    m = ModelMaker()
    x = m.input("x", (1, 4, 1), shape_signature=(-1, 4, -1))
    y = m.constant(random_array(rng, (3, 1, 5)))
    shapes = [
        m.op("SHAPE", [m.op("ABS", [x], (1, 4, 1))], (3,), dtype=np.int32, out_type=np.int32),
        m.op("SHAPE", [y], (3,), dtype=np.int32, out_type=np.int32),
    ]
    shape = m.op("BROADCAST_ARGS", shapes, (3,), dtype=np.int32)
    m.output(m.op("SUB", [m.op("BROADCAST_TO", [x, shape], (3, 4, 5), version=2), y], (3, 4, 5)))
    shapes = ((1, 4, 1), (3, 4, 1), (1, 4, 5), (3, 4, 5))
    for plan in plans(m.build(), shapes, runtime, device, rng):
        assert all(node.claimed for node in plan.nodes)
        assert not any(partition.on_cpu for partition in plan.partitions)


def test_a_computed_shape_costs_no_launch(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, -1, 3))
    m.output(m.op("NEG", [flatten(m, m.op("ABS", [x], (1, 4, 3)))], (1, 12)))
    shapes = ((1, 4, 3), (5, 4, 3), (2, 7, 3), (1, 4, 3))
    for plan in plans(m.build(), shapes, runtime, device, rng):
        (partition,) = plan.partitions
        assert all(node.claimed for node in plan.nodes)
        assert [node.op for node in plan.nodes if node.reason.startswith("follows from shapes")]
        assert partition.launches == 2  # ABS and NEG
        assert len(partition.inputs) == len(partition.outputs) == 1


def test_values_cross_the_border_of_a_partition(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, 4, 3))
    y = m.op("ABS", [x], (1, 4, 3))
    rows = extent(m, y, 0)
    z = m.op("SIN", [y], (1, 4, 3))
    shape = m.op("PACK", [rows, scalar(m, 12)], (2,), dtype=np.int32, values_count=2, axis=0)
    m.output(m.op("NEG", [m.op("RESHAPE", [z, shape], (1, 12))], (1, 12)))
    model = m.build()
    delegate = clgpu_delegate.load(device=device, exclude="SIN")
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for batch in (1, 3, 2):
        value = random_array(rng, (batch, 4, 3))
        np.testing.assert_allclose(result(ours, value), result(stock, value), rtol=1e-5, atol=1e-6)
        plan = delegate.explain()
        assert len(plan.partitions) == 2
        assert [node.op for node in plan.nodes if not node.claimed] == ["SIN"]


def test_a_partition_may_have_nothing_else(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, 4, 3))
    shape = [extent(m, x, 0), scalar(m, 12)]
    shape = m.op("PACK", shape, (2,), dtype=np.int32, values_count=2, axis=0)
    y = m.op("SIN", [x], (1, 4, 3))
    m.output(m.op("NEG", [m.op("RESHAPE", [y, shape], (1, 12))], (1, 12)))
    model = m.build()
    delegate = clgpu_delegate.load(device=device, exclude="SIN")
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for batch in (1, 3):
        value = random_array(rng, (batch, 4, 3))
        np.testing.assert_allclose(result(ours, value), result(stock, value), rtol=1e-5, atol=1e-6)
        plan = delegate.explain()
        assert [p.launches for p in plan.partitions] == [0, 1]
        assert [node.op for node in plan.nodes if not node.claimed] == ["SIN"]


@pytest.mark.parametrize("excluded", ["SHAPE", "STRIDED_SLICE"])
def test_partitions_wait_for_values_that_the_cpu_computes(excluded, runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, 4, 3))
    shape = [extent(m, x, 0), scalar(m, 12)]
    shape = m.op("PACK", shape, (2,), dtype=np.int32, values_count=2, axis=0)
    y = m.op("ABS", [m.op("SIN", [x], (1, 4, 3))], (1, 4, 3))
    m.output(m.op("COS", [m.op("RESHAPE", [m.op("NEG", [y], (1, 4, 3)), shape], (1, 12))], (1, 12)))
    delegate = clgpu_delegate.load(device=device, exclude=excluded)
    ours = make_interpreter(runtime, m.build(), [delegate])
    stock = make_interpreter(runtime, m.build(), resolver="ref")
    for batch in (1, 3):
        value = random_array(rng, (batch, 4, 3))
        np.testing.assert_allclose(result(ours, value), result(stock, value), rtol=1e-5, atol=1e-6)
        nodes = {node.op: node for node in delegate.explain().nodes}
        assert nodes["RESHAPE"].claimed
        assert not nodes[excluded].claimed
        # The runtime's SHAPE writes its result while tensors are allocated.
        assert nodes["PACK"].claimed == (excluded == "SHAPE")


def test_the_cpu_reads_what_planning_computes(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 6), shape_signature=(-1, 6))
    y = m.op("ABS", [x], (1, 6))
    rows = extent(m, y, 0)
    m.output(
        m.op(
            "TILE",
            [y, m.op("PACK", [rows, scalar(m, 2)], (2,), dtype=np.int32, values_count=2)],
            (1, 12),
        )
    )
    model = m.build()
    delegate = clgpu_delegate.load(device=device, exclude="TILE")
    ours = make_interpreter(runtime, model, [delegate])
    for batch in (1, 3):
        value = random_array(rng, (batch, 6))
        want = np.tile(np.abs(value), (batch, 2))
        np.testing.assert_array_equal(result(ours, value), want)


def test_shapes_without_elements_go_to_the_cpu(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, -1, 3))
    m.output(m.op("NEG", [flatten(m, m.op("ABS", [x], (1, 4, 3)))], (1, 12)))
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate])
    stock = make_interpreter(runtime, m.build(), resolver="ref")
    for shape in ((2, 4, 3), (2, 0, 3), (1, 4, 3)):
        value = random_array(rng, shape)
        np.testing.assert_allclose(result(ours, value), result(stock, value), rtol=1e-5, atol=1e-6)
        (partition,) = delegate.explain().partitions
        assert bool(partition.on_cpu) == (0 in shape)


@pytest.mark.parametrize("verify", ["first", "1"])
def test_results_are_verified_after_a_resize(runtime, device, rng, verify):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, -1, 3))
    m.output(m.op("NEG", [flatten(m, m.op("ABS", [x], (1, 4, 3)))], (1, 12)))
    delegate = clgpu_delegate.load(device=device, verify=verify)
    ours = make_interpreter(runtime, m.build(), [delegate])
    for shape in ((2, 4, 3), (3, 5, 3)):
        value = random_array(rng, shape)
        want = -np.abs(value).reshape(shape[0], -1)
        np.testing.assert_array_equal(result(ours, value), want)
        (check,) = delegate.explain().verification.partitions
        assert check.checked


def test_values_of_run_time_stay_on_the_cpu(device):
    m = ModelMaker()
    n = m.input("n", (MANY,), np.int32)
    one = scalar(m, 1, np.float32)
    m.output(m.op("FILL", [n, one], (1,), dtype=np.float32))
    check_refused(m.build(), "the shape is computed at run time", device=device)
    m = ModelMaker()
    value = m.input("value", ())
    shape = m.constant(np.array([3, 2], np.int32))
    m.output(m.op("FILL", [shape, value], (3, 2), dtype=np.float32))
    check_refused(m.build(), "the value is computed at run time", device=device)
    m = ModelMaker()
    n = m.input("n", (MANY,), np.int32)
    m.output(m.op("RANGE", [scalar(m, 0), n, scalar(m, 1)], (1,), dtype=np.int32))
    check_refused(m.build(), "start, limit or delta is computed at run time", device=device)
    m = ModelMaker()
    n = m.input("n", (MANY,), np.int32)
    fixed = m.constant(np.array([3, 2], np.int32))
    m.output(m.op("BROADCAST_ARGS", [n, fixed], (MANY,), dtype=np.int32))
    check_refused(m.build(), "a shape is computed at run time", device=device)


def test_a_result_that_is_no_index_is_a_refusal(device):
    m = ModelMaker()
    m.output(m.op("RANK", [m.input("x", (2, 3))], (), dtype=np.float32))
    check_refused(m.build(), "output 0 is float32", device=device)


def test_what_is_too_large_for_a_constant_stays_on_the_cpu(device):
    m = ModelMaker()
    x = m.input("x", (1,))
    size = 2**24 + 1
    shape = m.constant(np.array([size], np.int32))
    filled = m.op("FILL", [shape, scalar(m, 0, np.float32)], (size,), dtype=np.float32)
    m.output(m.op("ADD", [x, filled], (size,)))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    fill, add = delegate.explain().nodes
    assert not fill.claimed
    assert "a tensor cannot have the shape [16777217]; allowed: up to" in fill.reason
    assert add.claimed
    del interpreter


@pytest.mark.parametrize("delta", [0, -1])
def test_a_range_that_the_runtime_refuses_stays_on_the_cpu(delta, device):
    m = ModelMaker()
    bounds = [scalar(m, value) for value in (0, 4, delta)]
    x = m.input("x", (4,), np.int32)
    m.output(m.op("ADD", [x, m.op("RANGE", bounds, (4,), dtype=np.int32)], (4,), dtype=np.int32))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    span, _ = delegate.explain().nodes
    assert not span.claimed
    assert "the CPU kernel of node 0 (RANGE) does not take its inputs" in span.reason
    del interpreter


def test_a_rank_of_another_type_than_the_kernels_give_stays_on_the_cpu(device):
    m = ModelMaker()
    m.output(m.op("RANK", [m.input("x", (2, 3))], (), dtype=np.int64))
    check_refused(m.build(), "gives its result another type than the model", device=device)


def test_partitions_without_rows_go_to_the_cpu(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, 4, 3))
    y = m.op("ABS", [x], (1, 4, 3))
    rows = extent(m, y, 0)
    z = m.op("SIN", [y], (1, 4, 3))
    shape = [rows, extent(m, z, 1), scalar(m, 3)]
    shape = m.op("PACK", shape, (3,), dtype=np.int32, values_count=3, axis=0)
    m.output(m.op("NEG", [m.op("RESHAPE", [z, shape], (1, 4, 3))], (1, 4, 3)))
    model = m.build()
    delegate = clgpu_delegate.load(device=device, exclude="SIN")
    ours = make_interpreter(runtime, model, [delegate], resolver="ref")
    stock = make_interpreter(runtime, model, resolver="ref")
    for batch in (3, 0, 2, 0, 1):
        value = random_array(rng, (batch, 4, 3))
        np.testing.assert_allclose(result(ours, value), result(stock, value), rtol=1e-5, atol=1e-6)
        on_cpu = [bool(p.on_cpu) for p in delegate.explain().partitions]
        assert on_cpu == [batch == 0] * 2


def test_lists_without_elements_are_computed(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 6), shape_signature=(-1, 6))
    shape = m.op("SHAPE", [x], (2,), dtype=np.int32, out_type=np.int32)
    bounds = [m.constant(np.array([i], np.int32)) for i in (0, 0, 1)]
    none = m.op("STRIDED_SLICE", [shape, *bounds], (0,), dtype=np.int32)
    parts = [none, m.constant(np.array([-1, 3], np.int32))]
    wanted = m.op("CONCATENATION", parts, (2,), dtype=np.int32, axis=0)
    m.output(m.op("NEG", [m.op("RESHAPE", [m.op("ABS", [x], (1, 6)), wanted], (2, 3))], (2, 3)))
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, m.build(), [delegate])
    for batch in (1, 4):
        value = random_array(rng, (batch, 6))
        np.testing.assert_array_equal(result(ours, value), -np.abs(value).reshape(-1, 3))
        (partition,) = delegate.explain().partitions
        assert not partition.on_cpu


def test_values_that_only_the_cpu_reads_stay_there(device):
    m = ModelMaker()
    x = m.input("x", (2, 3))
    shape = m.op("SHAPE", [x], (2,), dtype=np.int32, out_type=np.int32)
    m.output(m.op("BROADCAST_TO", [m.input("y", (1, 3)), shape], (2, 3), version=2))
    reason = "is read only by nodes on the CPU"
    check_refused(m.build(), reason, device=device, exclude="BROADCAST_TO")


def test_a_division_that_ends_the_process_is_left_to_the_device(device):
    m = ModelMaker()
    x = m.input("x", (2,), np.int32)
    least = m.constant(np.array([-(2**31), 4], np.int32))
    ratio = m.op("DIV", [least, m.constant(np.array([-1, 2], np.int32))], (2,), dtype=np.int32)
    m.output(m.op("ADD", [x, ratio], (2,), dtype=np.int32))
    value = np.array([1, 5], np.int32)
    want = np.array([-(2**31) + 1, 7], np.int32)
    check(m.build(), [value], [want], device=device, precision="fp32", reference=False)


def test_many_resizes_keep_no_memory(device):
    m = ModelMaker()
    x = m.input("x", (1, 6), shape_signature=(-1, 6))
    shape = m.op("SHAPE", [x], (2,), dtype=np.int32, out_type=np.int32)
    axis = m.constant(np.array([0], np.int32))
    for _ in range(40):
        size = m.op("REDUCE_PROD", [shape, axis], (1,), dtype=np.int32, keep_dims=True)
    m.output(m.op("NEG", [m.op("RESHAPE", [x, size], (6,))], (6,)))
    delegate = clgpu_delegate.load(device=device, warm_up=False)
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    index = interpreter.get_input_details()[0]["index"]

    def resize(times: int) -> int:
        for i in range(times):
            interpreter.resize_tensor_input(index, (1 + i % 2, 6))
            interpreter.allocate_tensors()
        return resident()

    first = resize(200)
    # Before its tensors were removed, each kernel left 250 bytes: 40 * 1000 of them 10 MB.
    assert resize(1000) - first < 4e6


def test_values_of_a_partition_that_is_left_are_of_run_time(runtime, device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 4, 3), shape_signature=(-1, 4, 3))
    y = m.op("ABS", [x], (1, 4, 3))
    shape = [extent(m, y, 0), scalar(m, 12)]
    shape = m.op("PACK", shape, (2,), dtype=np.int32, values_count=2, axis=0)
    z = m.op("NEG", [m.op("SIN", [y], (1, 4, 3))], (1, 4, 3))
    m.output(m.op("RESHAPE", [m.op("COS", [z], (1, 4, 3)), shape], (1, 12)))
    delegate = clgpu_delegate.load(device=device, exclude="SIN", min_nodes=2)
    ours = make_interpreter(runtime, m.build(), [delegate])
    stock = make_interpreter(runtime, m.build(), resolver="ref")
    for batch in (1, 3):
        value = random_array(rng, (batch, 4, 3))
        np.testing.assert_allclose(result(ours, value), result(stock, value), rtol=1e-5, atol=1e-6)
        nodes = {node.op: node for node in delegate.explain().nodes}
        assert nodes["COS"].claimed
        assert "input 1 is computed at run time" in nodes["RESHAPE"].reason

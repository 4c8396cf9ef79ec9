"""Which nodes are claimed, and how constants, outputs, shapes and invalid nodes are handled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.limits import needs
from tests.model_maker import ModelMaker
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference


def normal(*shape: int) -> np.ndarray:
    return models.normal(np.random.default_rng(7), *shape)


def run(
    runtime: str, model: bytes, inputs: Sequence[np.ndarray], **options: Any
) -> clgpu_delegate.Delegate:
    """Run a model, compare with the runtime alone, return the delegate."""
    delegate = clgpu_delegate.load(**options)
    got = run_interpreter(make_interpreter(runtime, model, [delegate]), inputs)
    for result, want in zip(got, run_reference(model, inputs, runtime)):
        np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)
    return delegate


def claimed(delegate: clgpu_delegate.Delegate) -> list[bool]:
    return [node.claimed for node in delegate.explain().nodes]


def test_kernel_of_a_constant_that_does_not_build_leaves_the_constant_to_the_cpu(runtime):
    m = ModelMaker()
    x = m.input("x", (2, 8))
    halves = m.constant(normal(8, 4).astype(np.float16))
    weights = m.op("DEQUANTIZE", [halves], (8, 4), dtype=np.float32)
    weights = m.op("TRANSPOSE", [weights, m.constant(np.array([1, 0], np.int32))], (4, 8))
    m.output(m.op("FULLY_CONNECTED", [x, weights, None], (2, 4)))
    files = [
        file for file in _core.kernel_sources() if file.startswith(("transpose/", "strided_copy/"))
    ]
    for file in files:
        _core.override_kernel_source(file, "#error broken\n")
    try:
        delegate = run(runtime, m.build(), [normal(2, 8)])
    finally:
        for file in files:
            _core.override_kernel_source(file, None)
    plan = delegate.explain()
    assert claimed(delegate) == [False, False, True]
    assert "a constant that a node on the CPU reads" in plan.nodes[0].reason
    assert "no kernel of transpose works" in plan.nodes[1].reason


def test_constant_that_is_an_output_is_read_by_two_partitions(runtime):
    m = ModelMaker()
    x = m.input("x", (1, 8))
    halves = m.constant(normal(1, 8).astype(np.float16))
    c = m.op("DEQUANTIZE", [halves], (1, 8), dtype=np.float32)
    y = m.op("SOFTMAX", [m.op("ADD", [x, c], (1, 8))], (1, 8), beta=1.0)
    m.output(m.op("MUL", [y, c], (1, 8)), c)
    delegate = run(runtime, m.build(), [normal(1, 8)], exclude="SOFTMAX")
    assert claimed(delegate) == [True, True, False, True]


def test_constant_that_is_no_output_is_not_copied_back(runtime):
    m = ModelMaker()
    x = m.input("x", (1, 8))
    halves = m.constant(normal(1, 8).astype(np.float16))
    c = m.op("DEQUANTIZE", [halves], (1, 8), dtype=np.float32)
    y = m.op("SOFTMAX", [m.op("ADD", [x, c], (1, 8))], (1, 8), beta=1.0)
    m.output(m.op("MUL", [y, c], (1, 8)))
    delegate = run(runtime, m.build(), [normal(1, 8)], exclude="SOFTMAX", zero_copy="off")
    assert delegate.stats()["last_invoke"]["bytes_down"] == 2 * 8 * 4
    assert delegate.stats()["last_invoke"]["bytes_up"] == 2 * 8 * 4


def test_core_takes_other_operations_for_the_constants_of_core_operations_only(runtime):
    m = ModelMaker()
    x = m.input("x", (1, 8))
    weights = m.op("EXP", [m.constant(normal(4, 8))], (4, 8))
    other = m.op("NEG", [m.constant(normal(1, 8))], (1, 8))
    m.output(m.op("FULLY_CONNECTED", [x, weights, None], (1, 4)), other)
    delegate = run(runtime, m.build(), [normal(1, 8)], ops="core")
    assert claimed(delegate) == [True, False, True]
    assert delegate.explain().nodes[1].reason == (
        "left on the CPU by the option 'ops': the operation is not one of the core operations"
    )


def test_nodes_that_compute_constants_do_not_count_for_min_nodes(runtime):
    m = ModelMaker()
    x = m.input("x", (1, 8))
    halves = m.constant(normal(1, 8).astype(np.float16))
    c = m.op("DEQUANTIZE", [halves], (1, 8), dtype=np.float32)
    y = m.op("SOFTMAX", [x], (1, 8), beta=1.0)
    y = m.op("SQRT", [m.op("ADD", [y, c], (1, 8))], (1, 8))
    m.output(m.op("SOFTMAX", [y], (1, 8), beta=1.0))
    model = m.build()
    two = run(runtime, model, [normal(1, 8)], exclude="SOFTMAX", min_nodes=2)
    assert claimed(two) == [True, False, True, True, False]
    three = run(runtime, model, [normal(1, 8)], exclude="SOFTMAX", min_nodes=3)
    assert claimed(three) == [False] * 5
    reason = "left on the CPU by the option 'min_nodes': its partition has 2 nodes, fewer than 3"
    left = three.explain().nodes[2]
    assert left.reason == reason
    assert left.refusal == clgpu_delegate.Refusal("option", "min_nodes", "2 nodes", ("3 and more",))


def test_outputs_may_be_inputs_views_and_doubles(device, precision, runtime):
    m = ModelMaker()
    x = m.input("x", (1, 8))
    y = m.op("ABS", [x], (1, 8))
    seen = m.op("RESHAPE", [y], (8,), new_shape=[8])
    raw = m.op("RESHAPE", [x], (2, 4), new_shape=[2, 4])
    unread = m.op("ADD", [x, x], (1, 8))
    first, _ = m.op("SPLIT", [m.constant(np.int32(1)), y], [(1, 4), (1, 4)], num_splits=2)
    m.op("EXP", [unread], (1, 8))
    m.output(y, y, seen, x, raw, first)
    x = normal(1, 8).astype(np.float16).astype(np.float32)
    delegate = run(runtime, m.build(), [x], device=device, precision=precision)
    assert all(claimed(delegate))


def test_output_that_is_a_view_is_not_stored_in_half(device, runtime):
    m = ModelMaker()
    x = m.input("x", (1, 5000))  # large enough to be stored in half where it stays on the device
    m.output(m.op("RESHAPE", [m.op("NEG", [x], (1, 5000))], (5000,), new_shape=[5000]))
    x = normal(1, 5000)
    delegate = clgpu_delegate.load(device=device, precision="fp16")
    (got,) = run_interpreter(make_interpreter(runtime, m.build(), [delegate]), [x])
    np.testing.assert_array_equal(got, -x[0])


@pytest.mark.parametrize("inputs", [0, 1, "absent"])
def test_node_with_too_few_inputs_is_left_to_the_runtime_to_refuse(runtime, inputs):
    m = ModelMaker()
    y = m.op("ABS", [m.input("x", (1, 8))], (1, 8))
    given = {0: [], 1: [y], "absent": [y, None, None]}[inputs]
    m.output(m.op("FULLY_CONNECTED", given, (1, 8), dtype=np.float32))
    delegate = clgpu_delegate.load()
    # Not XNNPACK, which reads beyond the tensors then.
    interpreter = make_interpreter(runtime, m.build(), [delegate], "no_delegate")
    with pytest.raises(RuntimeError, match="FULLY_CONNECTED"):
        interpreter.allocate_tensors()
    assert claimed(delegate) == [True, False]
    wanted = {
        0: "it has 0 inputs; the operation takes 2 inputs and at most 1 more",
        1: "it has 1 input; the operation takes 2 inputs and at most 1 more",
        "absent": "input 1 is absent, which the operation needs",
    }
    assert delegate.explain().nodes[1].reason == wanted[inputs]


def test_empty_tensor_leaves_its_node_to_the_cpu_but_not_its_neighbours(runtime):
    m = ModelMaker()
    y = m.op("TANH", [m.input("x", (1, 8))], (1, 8))
    empty = m.input("empty", (1, 0))
    y = m.op("CONCATENATION", [y, empty], (1, 8), axis=1)
    m.output(m.op("CONCATENATION", [y, y], (1, 16), axis=1))
    delegate = run(runtime, m.build(), [normal(1, 8), normal(1, 0)])
    assert claimed(delegate) == [True, False, True]
    assert "[1, 0] has 0 elements" in delegate.explain().nodes[1].reason


def test_another_number_of_axes_after_loading_is_an_error(runtime):
    m = ModelMaker()
    x = m.input("x", (2, 3, 4, 5))
    perm = m.constant(np.array([3, 1, 2, 0], np.int32))
    m.output(m.op("TRANSPOSE", [x, perm], (5, 3, 4, 2)))
    interpreter = make_interpreter(runtime, m.build(), [clgpu_delegate.load()])
    for shape in ([2, 3, 4], [1, 2, 3, 4, 5], [7]):
        interpreter.resize_tensor_input(0, shape)
        for _ in range(2):  # the second attempt must not take the plan of the old shapes
            with pytest.raises(RuntimeError, match="axes; the model was loaded with 4"):
                interpreter.allocate_tensors()
    x = normal(1, 2, 3, 4)
    (got,) = run_interpreter(interpreter, [x], {0: x.shape})
    np.testing.assert_array_equal(got, x.transpose(3, 1, 2, 0))


def test_tensor_of_unknown_rank_stays_on_the_cpu(runtime):
    m = ModelMaker()
    x, shape = m.input("x", (2, 6)), m.input("shape", (2,), np.int32)
    unknown = m.op("RESHAPE", [x, shape], ())
    m.output(m.op("EXPAND_DIMS", [unknown, m.constant(np.int32(-1))], ()))
    x = normal(2, 6)
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    (got,) = run_interpreter(interpreter, [x, np.array([3, 4], np.int32)])
    np.testing.assert_array_equal(got, x.reshape(3, 4, 1))
    assert claimed(delegate) == [True, False]


def test_shapes_known_only_at_run_time(device, runtime):
    m = ModelMaker()
    x, shape = m.input("x", (2, 6)), m.input("shape", (2,), np.int32)
    y = m.op("RESHAPE", [m.op("TANH", [x], (2, 6)), shape], (-1, -1))
    m.output(m.op("ABS", [m.op("EXP", [y], (-1, -1))], (-1, -1)))
    x = normal(2, 6)
    for size in ([3, 4], [12, 1]):
        # Separate interpreters: only ai_edge_litert keeps the first shape of a dynamic tensor.
        delegate = clgpu_delegate.load(device=device)
        interpreter = make_interpreter(runtime, m.build(), [delegate])
        (got,) = run_interpreter(interpreter, [x, np.array(size, np.int32)])
        np.testing.assert_allclose(got, np.exp(np.tanh(x)).reshape(size), rtol=1e-5)
        assert claimed(delegate) == [True, True, True, True]


def test_loop_runs_and_the_model_s_own_graph_is_explained(runtime):
    m = ModelMaker()
    i, x = m.constant(np.zeros(1, np.int32)), m.input("x", (1, 8))
    y = m.op("TANH", [x], (1, 8))
    _, y = m.op(
        "WHILE", [i, y], [(1,), (1, 8)], dtype=[np.int32, np.float32],
        cond_subgraph_index=1, body_subgraph_index=2,
    )  # fmt: skip
    m.output(m.op("EXP", [y], (1, 8)))
    cond = m.subgraph()
    count = cond.input("count", (1,), np.int32)
    cond.input("value", (1, 8))
    limit = cond.constant(np.array([3], np.int32))
    cond.output(cond.op("LESS", [count, limit], (1,), dtype=bool))
    body = m.subgraph()
    count, value = body.input("count", (1,), np.int32), body.input("value", (1, 8))
    one = body.constant(np.ones(1, np.int32))
    body.output(
        body.op("ADD", [count, one], (1,)),
        body.op("MUL", [body.op("SQRT", [body.op("ABS", [value], (1, 8))], (1, 8)), value], (1, 8)),
    )
    delegate = run(runtime, m.build(), [normal(1, 8)])
    plan = delegate.explain()
    assert [node.op for node in plan.nodes] == ["TANH", "WHILE", "EXP"]
    assert claimed(delegate) == [True, True, True]
    assert len(plan.partitions) == 1


def two_transposes() -> bytes:
    """Nodes 0 and 2; the second keeps the last axis, so that no tiles of it can be transposed."""
    needs.work_groups_of(256, "transpose_tiled")
    m = ModelMaker()
    x = m.input("x", (16, 24))
    y = m.op("TRANSPOSE", [x, m.constant(np.array([1, 0], np.int32))], (24, 16))
    y = m.op("RESHAPE", [y], (2, 3, 4, 16), new_shape=[2, 3, 4, 16])
    perm = m.constant(np.array([2, 1, 0, 3], np.int32))
    m.output(m.op("TRANSPOSE", [y, perm], (4, 3, 2, 16)))
    return m.build()


@pytest.mark.parametrize(
    ("engine", "first", "second"),
    [
        ("tiled|auto", ("tiled", "forced"), ("naive", "default")),
        ("tiled|naive", ("tiled", "forced"), ("naive", "forced")),
        ("naive", ("naive", "forced"), ("naive", "forced")),
    ],
)
def test_engine_is_the_first_alternative_that_can_compute_the_node(runtime, engine, first, second):
    delegate = run(runtime, two_transposes(), [normal(16, 24)], engines={"transpose": engine})
    nodes = delegate.explain().nodes
    assert [(n.candidate, n.chosen) for n in nodes] == [first, ("", ""), second]


def test_engine_that_cannot_compute_a_node_is_an_error_naming_it(runtime):
    forced = clgpu_delegate.load(engines="transpose=tiled")
    why = r"engine 'tiled' cannot compute TRANSPOSE \(node 2, output '.+'\): tiled: not offered"
    with pytest.raises(RuntimeError, match=why):
        make_interpreter(runtime, two_transposes(), [forced])


def test_engine_that_no_node_has_is_noted(runtime):
    delegate = run(runtime, two_transposes(), [normal(16, 24)], engines="transpose=tilled|auto")
    (note,) = delegate.explain().notes
    assert "'tilled' of transpose; no node of this model offers it; offered: naive, tiled" in note


def test_explanation_is_of_the_model_last_loaded_whatever_else_is_resized(runtime):
    delegate = clgpu_delegate.load()
    first = make_interpreter(runtime, models.chain((2, 5), ("TANH",)), [delegate])
    second = make_interpreter(runtime, models.chain((2, 5), ("SOFTMAX", "EXP")), [delegate])
    run_interpreter(second, [normal(2, 5)])
    before = delegate.explain().to_dict()
    run_interpreter(first, [normal(4, 5)], {0: (4, 5)})
    assert delegate.explain().to_dict() == before


def test_inference_is_counted_once_however_many_partitions_it_has(runtime):
    model, x = models.chain((1, 8), ("TANH", "SOFTMAX", "EXP")), normal(1, 8)
    delegate = clgpu_delegate.load(exclude="SOFTMAX", zero_copy="off")
    interpreter = make_interpreter(runtime, model, [delegate])
    run_interpreter(interpreter, [x])
    interpreter.invoke()
    stats = delegate.stats()
    assert stats["invokes"] == 2
    assert stats["last_invoke"]["launches"] == 2
    assert stats["last_invoke"]["bytes_up"] == 2 * x.nbytes
    assert stats["launches"] == 4


def test_plan_is_known_before_tensors_are_allocated(runtime):
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(runtime, models.chain(), [delegate])
    assert all(node.candidate for node in delegate.explain().nodes)
    del interpreter

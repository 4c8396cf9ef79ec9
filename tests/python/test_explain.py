"""The explanation accounts for every node, as data and as a table."""

from __future__ import annotations

import json

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import Explanation
from clgpu_delegate.base.rendering import as_text
from tests.model_maker import ModelMaker
from tests.python import models
from tests.runtimes import make_interpreter, resolve_runtime, run_interpreter


def explain(model: bytes, runtime: str, **options: object) -> Explanation:
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter(runtime, model, [delegate])
    interpreter.allocate_tensors()
    return delegate.explain()


def test_every_node_is_accounted_for(device, precision, runtime):
    plan = explain(models.chain(), runtime, device=device, precision=precision)
    assert [(node.index, node.op, node.claimed) for node in plan.nodes] == [
        (0, "TANH", True),
        (1, "SOFTMAX", True),
    ]
    assert plan.claimed == plan.total == 2
    assert plan.precision == precision
    assert len(plan.partitions) == 1
    assert plan.partitions[0].nodes == (0, 1)
    assert plan.partitions[0].launches == 2
    assert [node.partition for node in plan.nodes] == [0, 0]
    assert all(node.candidate in node.candidates for node in plan.nodes)
    assert plan.nodes[0].outputs == ((2, 5),)


def test_nodes_are_joined_by_tensors(runtime):
    plan = explain(models.image(), runtime)
    tensors = {tensor.id: tensor for tensor in plan.tensors}
    conv, pool, mean = plan.nodes
    assert conv.output_ids == pool.input_ids[:1]
    assert pool.output_ids == mean.input_ids[:1]
    assert [tensors[i].constant for i in conv.input_ids] == [False, True, True]
    assert [tensors[i].type for i in mean.input_ids] == ["float32", "int32"]
    assert tensors[conv.input_ids[0]].name == "x"
    assert tensors[conv.input_ids[0]].bytes == 7 * 6 * 3 * 4


def test_nodes_without_a_kernel_say_in_fields_who_computes_them(runtime):
    m = ModelMaker()
    weights = m.constant(np.ones((3, 5), np.float32))
    x = m.op("FULLY_CONNECTED", [m.input("x", (2, 5)), weights, -1], (2, 3))
    x = m.op("TANH", [x], (2, 3))
    x = m.op("RESHAPE", [x, m.constant(np.array([3, 2], np.int32))], (3, 2))
    m.output(m.op("SOFTMAX", [x], (3, 2), beta=1.0))
    nodes = explain(m.build(), runtime).nodes
    assert [node.fused_into for node in nodes] == [None, 0, None, None]
    assert [node.is_view for node in nodes] == [False, False, True, False]
    assert [bool(node.candidate) for node in nodes] == [True, False, False, True]


def test_dictionary_is_ready_for_json(runtime):
    plan = explain(models.chain(), runtime)
    data = plan.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert {"device", "precision", "nodes", "partitions", "arena_bytes"} <= set(data)
    data["nodes"].clear()
    assert plan.to_dict()["nodes"], "a copy"


def test_table_has_a_line_per_node_and_the_counts(runtime):
    text = str(explain(models.chain(), runtime, exclude="SOFTMAX"))
    assert "1 of 2 nodes claimed, 1 partition, 1 kernel launches" in text.replace("\n", " ")
    line, reason = (line for line in text.splitlines() if "SOFTMAX" in line)
    assert line.split() == ["1", "SOFTMAX", "2x5", "CPU"]
    assert reason == "node 1 (SOFTMAX) on the CPU: left on the CPU by the option 'exclude'"
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("excluded", ["1", "SOFTMAX", [1], ["SOFTMAX", 7]])
def test_excluded_nodes_stay_on_the_cpu_with_that_reason(runtime, excluded):
    plan = explain(models.chain(ops=("TANH", "SOFTMAX", "TANH")), runtime, exclude=excluded)
    assert [node.claimed for node in plan.nodes] == [True, False, True]
    assert plan.nodes[1].reason == "left on the CPU by the option 'exclude'"
    assert plan.nodes[1].refusal == clgpu_delegate.Refusal("option", "exclude", "", ())
    assert [partition.nodes for partition in plan.partitions] == [(0,), (2,)]


def test_small_partitions_stay_on_the_cpu_with_that_reason(runtime):
    ops = ("TANH", "LOGISTIC", "SOFTMAX", "TANH")
    plan = explain(models.chain(ops=ops), runtime, exclude="SOFTMAX", min_nodes=2)
    assert [node.claimed for node in plan.nodes] == [True, True, False, False]
    assert "min_nodes" in plan.nodes[3].reason


def test_core_leaves_other_families_to_the_cpu_with_that_reason(runtime):
    plan = explain(models.image(), runtime, ops="core")
    assert [node.claimed for node in plan.nodes] == [True, False, False]
    assert "core" in plan.nodes[1].reason


def test_model_with_nothing_to_claim_runs_and_is_explained(runtime):
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(runtime, models.unclaimed(), [delegate])
    (got,) = run_interpreter(interpreter, [np.ones((1, 4), np.float32)])
    np.testing.assert_array_equal(got, np.full((1, 4), 1))
    plan = delegate.explain()
    assert (plan.claimed, plan.total, plan.partitions) == (0, 1, ())
    assert plan.nodes[0].reason == "output 0 is float64, which has no kernels"


def test_delegate_without_a_model_says_so():
    plan = clgpu_delegate.load().explain()
    assert plan.total == 0
    assert "no model has been given" in str(plan)


def test_borders_tell_who_is_on_the_other_side_and_what_is_copied(device, precision, runtime):
    plan = explain(
        models.image(), runtime, device=device, precision=precision, exclude="MAX_POOL_2D",
        zero_copy="off",
    )  # fmt: skip
    first, last = plan.partitions
    (x,), (y,) = first.inputs, first.outputs
    assert (x.tensor, x.shape, x.bytes, x.other) == ("x", (1, 7, 6, 3), 4 * 7 * 6 * 3, "model")
    assert (y.shape, y.bytes, y.other) == ((1, 7, 6, 4), 4 * 7 * 6 * 4, "CPU")
    (x,), (y,) = last.inputs, last.outputs
    assert (x.shape, x.other) == ((1, 4, 3, 4), "CPU")
    assert (y.shape, y.bytes, y.other) == ((1, 4), 16, "model")
    assert {b.road for p in plan.partitions for b in (*p.inputs, *p.outputs)} == {"copy"}
    data = plan.to_dict()["partitions"][1]
    assert (data["inputs"][0]["from"], data["outputs"][0]["to"]) == ("CPU", "model")
    assert "partition 1: takes 192 B from the CPU, gives 16 B to the model" in str(plan)


def test_what_exclude_names_and_the_model_lacks_is_noted():
    m = ModelMaker()
    m.output(m.op("ABS", [m.op("TANH", [m.input("x", (1, 4))], (1, 4))], (1, 4)))
    delegate = clgpu_delegate.load(exclude=["TAHN", 1, 999])
    make_interpreter(resolve_runtime(), m.build(), [delegate]).allocate_tensors()
    plan = delegate.explain()
    assert [node.claimed for node in plan.nodes] == [True, False]
    has = "the model has no such node; it has nodes 0 to 1, of ABS, TANH"
    assert sorted(note for note in plan.notes if "exclude" in note) == [
        f"option 'exclude' names '{name}'; {has}" for name in ("999", "TAHN")
    ]


def rows(text: str) -> dict[str, list[str]]:
    """Cells of a table's nodes, by node."""
    lines = (line.split() for line in text.splitlines())
    return {cells[0]: cells[1:] for cells in lines if cells and cells[0].isdigit()}


def test_one_reason_is_told_once_for_all_its_nodes(runtime):
    m = ModelMaker()
    x = m.input("x", (2, 3))
    for _ in range(4):
        x = m.op("NEG", [m.op("ABS", [x], (2, 3))], (2, 3))
    m.output(x)
    text = str(explain(m.build(), runtime, exclude="ABS,3,5"))
    assert "nodes 0, 2-6 (ABS, NEG) on the CPU: left on the CPU by the option 'exclude'" in text
    assert text.count("hint:") == 1


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_narrow_terminals_show_the_same(runtime, width):
    plan = explain(models.chain(), runtime, exclude="SOFTMAX")
    text = as_text(plan, width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for fact in ("SOFTMAX", "device (0)", plan.nodes[0].candidate, "option 'exclude'"):
        assert fact in words


def test_what_an_inference_decides_is_told_as_unknown_and_then_known(device, rng):
    m = ModelMaker()
    x, to = m.input("x", (2, 3, 4)), m.input("to", (2,), np.int32)
    x = m.op("RESHAPE", [m.op("NEG", [x], (2, 3, 4)), to], (6, 4))
    y = m.op("ABS", [x], (6, 4))
    found = models.on_cpu(m, y, (6, 4))
    m.output(m.op("ADD", [found, found], (6, 4)))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter("auto", m.build(), [delegate])
    interpreter.allocate_tensors()
    plan = delegate.explain()
    assert [bool(p.unplanned) for p in plan.partitions] == [True, True]
    assert "2 partitions, 2 of them not planned yet" in plan.summary()
    assert [cells[1] for cells in rows(str(plan)).values()] == ["?"] * 6
    assert "partition 0: not planned yet: it depends on values that an inference has: 'to'" in (
        " ".join(str(plan).split())
    )
    inputs = interpreter.get_input_details()
    for shape in ([12, 2], [3, 8]):
        interpreter.set_tensor(inputs[0]["index"], rng.standard_normal((2, 3, 4), np.float32))
        interpreter.set_tensor(inputs[1]["index"], np.int32(shape))
        for _ in range(2):
            interpreter.invoke()
        plan = delegate.explain()
        assert not any(p.unplanned for p in plan.partitions)
        assert [node.outputs for node in plan.nodes] == [((2, 3, 4),), *[(tuple(shape),)] * 5]
        assert plan.tensors[-1].bytes == 24 * 4
        assert "2 partitions, 3 kernel launches" in plan.summary()


def test_shapes_are_those_of_the_last_resize(device, rng):
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", (-1, 5))], (-1, 5))
    y = models.on_cpu(m, m.op("ABS", [x], (-1, 5)), (-1, 5))
    m.output(m.op("ADD", [y, y], (-1, 5)))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter("auto", m.build(), [delegate])
    (detail,) = interpreter.get_input_details()
    for count in (3, 7):
        interpreter.resize_tensor_input(detail["index"], (count, 5))
        interpreter.allocate_tensors()
        interpreter.set_tensor(detail["index"], rng.standard_normal((count, 5), np.float32))
        interpreter.invoke()
        assert {node.outputs for node in delegate.explain().nodes} == {((count, 5),)}

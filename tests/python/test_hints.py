"""Hints are true: what they advise to write is claimed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core, hints
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.python import models
from tests.runtimes import make_interpreter


def explain(m: ModelMaker | bytes, **options: object) -> clgpu_delegate.Explanation:
    delegate = clgpu_delegate.load(**options)
    model = m if isinstance(m, bytes) else m.build()
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    interpreter.allocate_tensors()
    return delegate.explain()


def test_operations_that_hints_name_have_kernels():
    known = {name for family in _core.families() for name in family["ops"]}
    texts = {
        op: hints.hint({"claimed": False, "reason": f"operation {op} has no kernels"})
        for op in hints._OPERATIONS
        if op.isupper()
    }
    assert all(texts.values())
    for op, text in texts.items():
        assert op not in known, "it needs no hint"
        assert set(re.findall(r"[A-Z][A-Z0-9_]{2,}", text)) <= known, text


def _shape(m: ModelMaker, fixed: bool) -> int:
    x = m.input("x", (2, 6))
    if fixed:
        return m.op("RESHAPE", [x, m.constant(np.array([3, 4], np.int32))], (3, 4))
    return m.op("TILE", [x, m.input("multiples", (2,), np.int32)], (2, 6))


def _lookup(m: ModelMaker, gather: bool) -> int:
    table = m.constant(np.ones((5, 3), np.float32))
    indices = m.input("indices", (2,), np.int32)
    if gather:
        return m.op("GATHER", [table, indices], (2, 3), dtype=np.float32, axis=0)
    return m.op("EMBEDDING_LOOKUP", [indices, table], (2, 3), dtype=np.float32)


def _zeros(m: ModelMaker, product: bool) -> int:
    x = m.input("x", (2, 3))
    if product:
        return m.op("MUL", [x, m.constant(np.zeros((), np.float32))], (2, 3))
    return m.op("ZEROS_LIKE", [x], (2, 3))


def _segments(m: ModelMaker, product: bool) -> int:
    x = m.input("x", (3, 4))
    if product:
        which = m.constant(np.array([[1, 1, 0], [0, 0, 1]], np.float32))
        return m.op("BATCH_MATMUL", [which, x], (2, 4), dtype=np.float32)
    which = m.constant(np.array([0, 0, 1], np.int32))
    return m.op("SEGMENT_SUM", [x, which], (2, 4))


@pytest.mark.parametrize(
    ("build", "advice"),
    [
        (_shape, "fixed shapes"),
        (_lookup, "GATHER"),
        (_zeros, "MUL"),
        (_segments, "BATCH_MATMUL"),
    ],
)
def test_what_is_advised_is_claimed(build, advice):
    for rewritten in (False, True):
        m = ModelMaker()
        m.output(build(m, rewritten))
        plan = explain(m)
        assert plan.claimed == (plan.total if rewritten else 0), plan
        assert (advice in plan.nodes[-1].hint) != rewritten, plan
        assert rewritten or advice in str(plan), "people see it, too"


def test_other_types_are_advised_to_be_cast():
    """No operation of these runtimes has a type that this delegate lacks, but others may."""
    refused = {"claimed": False, "reason": "input 0 is int64; allowed: int32, float32"}
    assert "CAST to float32 in front of input 0" in hints.hint(refused)
    refused["reason"] = "input 0 is quantised (int8): CUMSUM has no integer kernels"
    assert "DEQUANTIZE in front of CUMSUM and QUANTIZE behind it" in hints.hint(refused)
    m = ModelMaker()
    x = m.input("x", (2, 4), np.int8, quantization=(0.5, 0))
    x = m.op("DEQUANTIZE", [x], (2, 4), dtype=np.float32)
    x = m.op("CUMSUM", [x, m.constant(np.array(1, np.int32))], (2, 4))
    m.output(m.op("QUANTIZE", [x], (2, 4), dtype=np.int8, quantization=(0.01, 0)))
    i = m.input("i", (4,), np.int64)
    i = m.op("CAST", [i], (4,), dtype=np.float32, in_data_type=np.int64, out_data_type=np.float32)
    m.output(m.op("SIN", [i], (4,)))
    plan = explain(m)
    assert plan.claimed == plan.total


def test_an_unrolled_cell_is_claimed():
    m = ModelMaker()
    x, h, c = (m.input(name, (1, 4)) for name in "xhc")
    weights = m.constant(np.ones((16, 8), np.float32))
    gates = m.op("CONCATENATION", [x, h], (1, 8), axis=1)
    gates = m.op("FULLY_CONNECTED", [gates, weights], (1, 16))
    axis = m.constant(np.array(1, np.int32))
    i, f, g, o = m.op("SPLIT", [axis, gates], [(1, 4)] * 4, dtype=[np.float32] * 4, num_splits=4)
    i, f, o = (m.op("LOGISTIC", [gate], (1, 4)) for gate in (i, f, o))
    new = m.op("MUL", [i, m.op("TANH", [g], (1, 4))], (1, 4))
    c = m.op("ADD", [m.op("MUL", [f, c], (1, 4)), new], (1, 4))
    m.output(m.op("MUL", [o, m.op("TANH", [c], (1, 4))], (1, 4)))
    m.output(c)
    plan = explain(m)
    assert plan.claimed == plan.total


@pytest.mark.parametrize(
    ("options", "advice"),
    [({"exclude": "TANH"}, "exclude"), ({"min_nodes": 9}, "min_nodes"), ({"ops": "core"}, "ops")],
)
def test_options_that_leave_a_node_are_named(options, advice):
    assert advice in explain(models.chain(), **options).nodes[0].hint


def test_nodes_on_the_device_have_no_hint():
    assert not any(node.hint for node in explain(models.chain()).nodes)

"""Hints are true: the delegate claims what they recommend."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from clgpu_delegate.placement import contest
from clgpu_delegate.placement.verdict import Timing, Verdict
from clgpu_delegate.report import hints
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import op_runtime
from tests.python import models
from tests.runtimes import make_interpreter
from tests.single_nodes import F32, I8, I16, I32, I64, Q, custom, ints, node

X = ((2, 4), F32)
EYE = np.eye(4, dtype=F32)


def explain(m: ModelMaker | bytes, **options: object) -> clgpu_delegate.Explanation:
    delegate = clgpu_delegate.load(**options)
    model = m if isinstance(m, bytes) else m.build()
    # Nothing is allocated, because stock kernels of nodes on the CPU may reject the model.
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    explanation = delegate.explain()
    del interpreter
    return explanation


OPERATIONS = [*hints._OPERATIONS, "STABLEHLO_RNG_BIT_GENERATOR"]


@pytest.mark.parametrize("op", OPERATIONS)
def test_operations_that_hints_name_have_kernels(op):
    known = {name for family in _core.families() for name in family["ops"]}
    assert op not in known, "it needs no hint"
    m = ModelMaker()
    m.output(m.op(op, [m.input(name, (2, 2)) for name in "xyz"], (2, 2)))
    (node,) = explain(m).nodes
    assert (node.op, node.refusal.code) == (op, "no_kernels")
    assert node.hint
    assert set(re.findall(r"\b[A-Z][A-Z0-9_]{2,}", node.hint)) <= known, node.hint


def _constant_result(m: ModelMaker) -> int:
    result = m.op("ABS", [m.input("x", (2, 4))], (2, 4))
    m._ops[0].outputs[0] = m.constant(np.zeros((2, 4), F32))
    return result


def _boxes(m: ModelMaker) -> int:
    """How many boxes stay is computed at run time."""
    operands = [m.input("boxes", (5, 4)), m.input("scores", (5,)), m.input("most", (), np.int32)]
    operands += [m.constant(np.float32(share)) for share in (0.5, 0)]
    return m.op("NON_MAX_SUPPRESSION_V4", operands, [(3,), ()], dtype=[np.int32] * 2)[0]


# Models of one node that stays on the CPU: the code, and a part of the hint; empty: it has none.
ON_THE_CPU = {
    "a custom operation of TensorFlow": (
        custom("FlexErf", b"", X), "unknown_custom", "write Erf in operations of TensorFlow Lite"
    ),
    "another custom operation": (custom("Mine", b"", X), "unknown_custom", "builtin operations"),
    "text": (
        node("RESHAPE", ((4,), "STRING"), ints(2, 2), dtype="STRING"), "type", "keep text out"
    ),
    "long complex numbers": (
        node("RESHAPE", ((4,), np.complex128), ints(2, 2), dtype=np.complex128),
        "type", "complex64",
    ),
    "a type without kernels": (
        node("RESHAPE", ((4,), np.uint64), ints(2, 2), dtype=np.uint64), "type", "CAST to float32"
    ),
    "halves": (
        node("CUMSUM", ((2, 4), np.float16), ints(0)), "type", "input to float32 with a DEQUANTIZE"
    ),
    "a type of other families": (
        node("SIN", ((2, 4), I64)), "type", "convert input to float32 with a CAST"
    ),
    "a small type": (
        node("ARG_MAX", ((2, 4), I16), ints(0), to=(4,), dtype=I32),
        "type", "the type float32 or int32 or bool or int8 or uint8",
    ),
    "no integers": (
        node("CUMSUM", ((2, 4), I8, Q), ints(0), q=Q),
        "integers", "DEQUANTIZE before CUMSUM and QUANTIZE after it",
    ),
    "a sum of integers": (
        node("ADD_N", *[((2, 4), I8, Q)] * 3, q=Q), "type", "a chain of ADDs"
    ),
    "many axes": (
        node("CUMSUM", ((1,) * 7, F32), ints(0), to=(1,) * 7), "rank", "RESHAPE neighbouring axes"
    ),
    "no image": (
        node("AVERAGE_POOL_2D", ((4, 4), F32), stride_h=1, stride_w=1, filter_height=1,
             filter_width=1),
        "rank", "RESHAPE the input to [batch, height, width, channels]",
    ),
    "a scale": (
        node("L2_NORMALIZATION", ((2, 4), I8, Q), q=Q), "quantization", "clgpu quantize"
    ),
    "moved elements": (
        node("TRANSPOSE", ((2, 4), I8, Q), ints(1, 0), to=(4, 2), q=Quantization(0.2)),
        "rescaling", "the same scale and zero point",
    ),
    "an operand at run time": (
        _boxes, "run_time", "with fixed shapes"
    ),
    "a begin at run time": (
        node("SLICE", X, ((2,), I32), ints(-1, -1)), "run_time", "a SLICE with a constant size"
    ),
    "an unknown shape": (
        lambda m: m.op("NEG", [m.op("HASHTABLE_FIND", [m.input("x", (2,))] * 3, ())], ()),
        "unknown_shape", "with fixed shapes",
    ),
    "a variable": (
        lambda m: m.op("ABS", [m.tensor((2, 4), is_variable=True)], (2, 4)),
        "variable", "an input and an output of the model",
    ),
    "sparse weights": (
        lambda m: m.op("FULLY_CONNECTED", [m.input("x", (2, 4)), m.sparse_constant(EYE)], (2, 4)),
        "sparse", "dense",
    ),
    "shuffled weights": (
        node("FULLY_CONNECTED", X, EYE, weights_format="SHUFFLED4x16INT8"), "layout", "default"
    ),
    "an activation": (
        node("CONCATENATION", X, X, to=(4, 4), axis=0, fused_activation_function="RELU"),
        "activation", "a separate operation",
    ),
    "a parameter": (node("CUMSUM", X, ints(5)), "parameter", ""),
    "operands": (
        node("PACK", X, ((2, 4), I32), to=(2, 2, 4), axis=0, values_count=2), "operands", ""
    ),
    "a result that is a constant": (_constant_result, "malformed", ""),
    "a scale on which stock aborts": (
        node("LESS", *[((2, 4), I8, Quantization(1.0))] * 2, dtype=bool), "aborts", ""
    ),
    "shapes": (node("ADD", X, ((2, 3), F32)), "shape", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_THE_CPU)
def test_what_stays_on_the_cpu_has_a_hint(name):
    build, code, advice = ON_THE_CPU[name]
    m = ModelMaker()
    m.output(build(m))
    plan = explain(m)
    refused = plan.nodes[-1]
    assert refused.refusal is not None, refused
    assert refused.refusal.code == code, refused
    assert advice in refused.hint, refused
    assert bool(advice) == bool(refused.hint), refused


def _moving(m: ModelMaker, fixed: bool) -> int:
    x, begin = m.input("x", (2, 6)), m.input("begin", (2,), np.int32)
    if fixed:
        return m.op("SLICE", [x, begin, m.constant(np.array([2, 3], np.int32))], (2, 3))
    strides = m.constant(np.ones(2, np.int32))
    return m.op("STRIDED_SLICE", [x, begin, m.input("end", (2,), np.int32), strides], (2, 3))


@pytest.mark.parametrize(
    ("build", "advice"),
    [
        (_moving, "a SLICE with a constant size"),
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


def test_other_types_that_are_converted_are_claimed():
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
    ("options", "code", "advice"),
    [
        ({"exclude": "TANH"}, "option", "the option exclude"),
        ({"min_nodes": 9}, "option", "lower the option min_nodes"),
        ({"ops": "core"}, "option", "the option ops"),
        ({"placement": "auto"}, "cost", "the option placement to all"),
    ],
)
def test_options_that_leave_a_node_are_named(options, code, advice):
    node = explain(models.chain(), **options).nodes[0]
    assert node.refusal.code == code
    assert advice in node.hint


def test_a_node_that_a_measurement_leaves_names_the_option(monkeypatch, tmp_path):
    def measure(_make, _options, runtime, threads, _progress):
        nodes = explain(models.chain()).nodes
        return Verdict(
            choice="cpu", left=tuple(n.index for n in nodes), ops=tuple(n.op for n in nodes),
            timings=(Timing("cpu", 1.0, 0), Timing("all", 2.0, 1)), device="a device",
            precision="fp32", runtime=runtime, threads=threads,
        )  # fmt: skip

    monkeypatch.setattr(contest, "measure", measure)
    node = explain(models.chain(), placement="measured", cache=str(tmp_path / "c")).nodes[0]
    assert node.refusal.code == "measured"
    assert "the option placement to all" in node.hint


def test_a_constant_that_the_cpu_reads_points_at_its_reader():
    m = ModelMaker()
    halves = m.constant(np.ones((2, 4), np.float16))
    table = m.op("DEQUANTIZE", [halves], (2, 4), dtype=np.float32)
    m.output(m.op("CAST", [table], (2, 4), dtype=np.float64))
    first = explain(m).nodes[0]
    assert first.refusal == clgpu_delegate.Refusal("reader", "", "", ())
    assert first.hint == "see the node that reads its output"


def test_a_kernel_that_does_not_build_has_no_hint():
    files = [file for file in _core.kernel_sources() if file.startswith("cumsum/")]
    m = ModelMaker()
    m.output(node("CUMSUM", X, ints(0))(m))
    for file in files:
        _core.override_kernel_source(file, "#error broken\n")
    try:
        plan = explain(m)
    finally:
        for file in files:
            _core.override_kernel_source(file, None)
    assert (plan.nodes[0].refusal.code, plan.nodes[0].hint) == ("device", "")
    assert {(fault.kernel.split("/")[0], fault.kind) for fault in plan.faults} == {
        ("cumsum", "fails")
    }


def test_every_code_is_seen():
    """Each is that of a model above, or of a test of its own, here or in tests/delegate."""
    others = {"no_kernels", "option", "cost", "measured", "reader", "device", "runtime"}
    assert {code for _, code, _ in ON_THE_CPU.values()} | others == set(_core.refusal_codes())
    assert set(hints._RULES) <= set(_core.refusal_codes())


def test_the_page_lists_all_codes():
    page = (Path(__file__).parents[2] / "docs" / "refusals.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page.split("| code |")[1], re.M) == _core.refusal_codes()


def test_nodes_on_the_device_have_no_hint():
    assert not any(node.hint for node in explain(models.chain()).nodes)

"""The text of a graph can be read back; errors in it are reported with their place."""

from __future__ import annotations

import random
import re

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from clgpu_delegate.inspection import graph_texts
from tests.model_maker import ModelMaker
from tests.models.random_graphs import make, random_graph
from tests.ops.harness import op_runtime
from tests.passes.texts import after, assert_texts_are_read_back, graphs_of, normal
from tests.runtimes import make_interpreter

ONE = "%0: float32[2]\ninputs %0\n%1: float32[2] = softmax(%0) op=SOFTMAX node=0\noutputs %1\n"


def test_all_facts_of_a_graph_are_read_back():
    text = """\
tf32
%0: int8[1, 4] "x \\"\\\\\\x0a" tflite=7 rank=3 storage=int32 \
quantized([0.5, 0.25], [1, -2], axis=1)
%1: float32[2] = const float16 [nan, -inf]
%2: int64[3] = const [1, -9223372036854775808, 9223372036854775807]
%3: bool[40] = const splat(1)
%4: bool[40] = const splat(1, 3)
%5: float32[0] = const []
%6: float32[] = const hex(0102c07f)
%7: uint8[3] quantized([0.5, 0.25], 0, block=8, narrow=true) = const [0, 128, 255]
%8: int16[2] = const [-32768, 32767]
%9: float32[4] = const bfloat16 [1.0078125, nan, -inf, 3.3895314e+38]
%10: uint16[2] = const [0, 65535]
%11: uint32[2] = const [0, 4294967295]
inputs %0
%12: float32[1, 4], %13: int32[1, 1] part(%14, pitch=9, first=-3) = topk(%0, -) {k=3} op="A b" band
%14: float32[1] = pool(%0) {kind=1, padding=VALID, rows={out=2, before=-1}} op=MAX_POOL_2D node=3 \
activation=leaky_relu alpha=0.1 residual_after tf32 bf16_pairs half_sums
outputs %12, %14
step fuse_pad applied node=1 into=2 tensor=3 "more"
step a declined node=1 "a reason"
step b skipped "an option"
"""
    assert normal(text) == text


LOOP = """\
%0: float32[2] "x"
inputs %0
%1: float32[2] = control_flow.loop(%0) op=WHILE node=1 graph {
  %0: float32[2] carried=0
  inputs %0
  %1: bool[] = softmax(%0) op=LESS node=1
  outputs %0, %1
} graph {
  %0: float32[2] carried=0
  inputs %0
  %1: float32[2] carried=0 = softmax(%0) op=SOFTMAX node=1
  %2: bool[] = softmax(%0) op=LESS node=1
  outputs %1, %2
}
outputs %1
"""


def test_graphs_of_a_node_are_read_back():
    assert normal(LOOP) == LOOP


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("control_flow.loop", "softmax", "WHILE has 2 graphs; expected 0"),
        ("outputs %1, %2\n}", "outputs %1, %2\n", "expected"),
        ("inputs %0\n  %1: bool", "inputs \n  %1: bool", "reads %0 before it is written"),
        ("%0: float32[2] carried=0", "%0: float32[2] carried=1", "an input has no number of the"),
    ],
)
def test_errors_in_graphs_of_a_node(old, new, message):
    with pytest.raises(clgpu_delegate.ClgpuError, match=message):
        normal(LOOP.replace(old, new))


@pytest.mark.parametrize("count", [1, 2, 32, 33])
@hypothesis.settings(max_examples=20)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_constants_keep_their_bits(count, seed):
    bits = np.random.default_rng(seed).integers(0, 2**32, count, np.uint32)
    bits[:: 1 + seed % 3] &= 0x807FFFFF  # numbers that are smaller than the normal ones
    text = f"%0: float32[{count}] = const hex({bits.tobytes().hex()})\ninputs \noutputs %0\n"
    written = normal(text)
    if found := re.search(r"const \[(.*)\]", written):
        numbers = np.array([float(word) for word in found[1].split(", ")], np.float32)
        usual = np.where(np.isnan(numbers), np.float32("nan"), numbers)
        assert usual.tobytes() == bits.tobytes()
    assert normal(written) == written
    assert normal(written) == normal(text)


@pytest.mark.parametrize(
    "number", ["1", "0.1", "10", "123456", "1e+06", "3.4028235e+38", "1e-45", "-0"]
)
def test_numbers_are_short(number):
    text = f"%0: float32[1] = const [{number}]\ninputs \noutputs %0\n"
    assert normal(text) == text


@pytest.mark.parametrize("seed", range(6))
def test_graphs_of_models_are_read_back(seed):
    graph = random_graph(random.Random(seed))
    delegate, _interpreter = make(graph, str(clgpu_delegate.devices()[0].index))
    assert graphs_of(delegate, "before")
    assert_texts_are_read_back(delegate)


PIPELINE = [
    "allow_tf32",
    "keep_half_constants",
    "fuse_instance_norm",
    "fuse_layer_norm",
    "fuse_activation",
    "skip_experts",
    "gather_experts",
    "fuse_lookup",
    "fuse_residual",
    "fuse_lookup",
    "quantize_weights",
    "dynamic_range",
    "fuse_pad",
    "fuse_separable",
    "remove_dead",
    "choose_storage",
    "infer_shapes",
]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_passes_make_of_a_text_what_the_delegate_makes_of_the_model(precision):
    m = ModelMaker()
    x = m.input("x", (1, 40, 40, 4))
    border = m.constant(np.int32([[0, 0], [1, 1], [1, 1], [0, 0]]))
    y = m.op("PAD", [x, border], (1, 42, 42, 4))
    weights = m.constant(np.arange(144, dtype=np.float16).reshape(4, 3, 3, 4))
    weights = m.op("DEQUANTIZE", [weights], (4, 3, 3, 4), dtype=np.float32)
    once = {"stride_h": 1, "stride_w": 1}
    y = m.op(
        "CONV_2D",
        [y, weights, m.constant(np.ones(4, np.float32))],
        (1, 40, 40, 4),
        padding="VALID",
        **once,
    )
    y = m.op("RELU6", [m.op("ADD", [y, x], (1, 40, 40, 4))], (1, 40, 40, 4))
    y = m.op("RESHAPE", [y, m.constant(np.int32([1, -1]))], (1, 6400))
    m.output(m.op("SOFTMAX", [y], (1, 6400), beta=0.5))
    delegate = clgpu_delegate.load(precision=precision)
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    interpreter.allocate_tensors()
    assert not [n.reason for n in delegate.explain().nodes if not n.claimed]
    (before,), (expected,) = graphs_of(delegate, "before"), graphs_of(delegate, "after")
    facts = "tf32\nhalf\n" if precision == "fp16" else ""
    assert after(facts + before, *PIPELINE, precision=precision, device="cpu") == expected
    assert "step fuse_residual applied" in expected


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("float32[2]\ni", "float33[2]\ni", "line 1, column 5: expected a type: float32, float16, "),
        ("[2]\ni", "[2\ni", "line 1, column 14: expected ',' or ']', found the end of the line"),
        ("[2]\ni", "[two]\ni", "line 1, column 13: expected an integer from -2147483648 to "),
        ("[2]\ni", "[2] size=3\ni", 'column 16: expected "NAME" or a fact of the tensor: tflite, '),
        ("inputs", "imputs", "line 2, column 1: expected %NUMBER or a statement: tf32, half, "),
        ("softmax", "softmin", "line 3, column 18: expected a family: softmax, add, "),
        ("(%0)", "(%7)", "line 3, column 26: the tensor %7 is not described; expected %7: TYPE"),
        ("(%0)", "(%1)", "SOFTMAX reads %1 before it is written"),
        ("(%0)", "(%9999999)", "column 27: expected an integer from 0 to 999999, found '9999999'"),
        ("(%0)", "(%0) {beta=big}", "line 3, column 36: expected a number, inf, -inf or nan"),
        ("(%0)", "(%0) {beta=1e39}", "line 3, column 36: expected a number, inf, -inf or nan"),
        ("(%0)", "(%0) {bet=1}", "line 3, column 35: there is no field 'bet'; allowed: beta, log"),
        ("(%0)", "(%0) {log=1}", "line 3, column 35: expected true or false, found '1'"),
        ("(%0)", "(%0) {log=[]}", "line 3, column 35: expected true or false, found a list, "),
        ("(%0)", "(%0) {log=true, log=true}", "column 45: the field 'log' is given twice"),
        ("(%0)", "(%0) nod=0", "expected a fact of a node: op, node, activation, alpha, "),
        ("op=", "activation=rely op=", "expected an activation: none, relu, relu_n1_to_1, "),
        ("outputs %1", "outputs %1 x", "line 4, column 12: expected the end of the line, "),
        ("outputs %1", "step a did", "line 4, column 8: expected what a pass did: applied, "),
        ("outputs", "%0: int8[1]\noutputs", "line 4, column 1: the tensor %0 is described twice"),
        ("outputs", '%2: int8[1] "x\noutputs', "column 15: expected '\"' at the end of a string"),
        ("outputs", "%2: int8[1] = const [300]\noutputs", "expected an integer from -128 to 127"),
        ("outputs", "%2: int8[1] = const [1 2]\noutputs", "expected ',' or ']', found '2'"),
        ("outputs", "%2: int8[1] = const some(1)\noutputs", "constants: splat, hex, omitted"),
        ("outputs", "%2: int8[1] = const hex(1)\noutputs", "two digits of 0 to 9 and a to f"),
        ("outputs", "%2: int8[9] = const omitted(9)\noutputs", "written without the bytes of long"),
        ("outputs", "%2: int8[9] = const splat(1, 999999999)\noutputs", "from 0 to 268435456"),
        ("outputs", "%2: int8[1] = const 1\n%1: int8[1]\noutputs", "[VALUE, ...] or a form of "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(old, new, problem):
    assert old in ONE
    with pytest.raises(clgpu_delegate.ClgpuError) as error:
        normal(ONE.replace(old, new, 1))
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("passes", "settings", "problem"),
    [
        (["fuse"], {}, "a pass is 'fuse'; allowed: inline_branches, allow_tf32, keep_half_"),
        ([], {"divice": "cpu"}, "a keyword is 'divice'; allowed: precision, plan, half_io, "),
        ([], {"device": "tpu"}, "device is 'tpu'; allowed: gpu, accelerator, cpu, other"),
        ([], {"gpu": "intle"}, "gpu is 'intle'; allowed: other, nvidia, amd, intel, adreno, "),
        (["fuse_activation"], {}, "RELU (node 1) has 0 inputs; allowed: 1 and more"),
        (["stream_rows"], {}, "band is 0; allowed: 1 and more"),
    ],
)
def test_wrong_pass_or_setting_is_told(passes, settings, problem):
    text = ONE
    if passes == ["fuse_activation"]:
        text += "%2: float32[1] = unary(-) op=RELU node=1 activation=relu\n"
    with pytest.raises(clgpu_delegate.OptionError) as error:
        after(text, *passes, **settings)
    assert problem in str(error.value)


def test_texts_cut_short_are_no_graphs_and_end_no_process():
    graph = normal(ONE + "# comment")
    for end in range(len(graph)):
        try:
            normal(graph[:end])
        except clgpu_delegate.ClgpuError:
            continue


def test_texts_for_people_leave_out_what_is_long(tmp_path):
    m = ModelMaker()
    weights = m.constant(np.arange(64, dtype=np.float32).reshape(8, 8), "w")
    m.output(m.op("FULLY_CONNECTED", [m.input("x", (1, 8)), weights], (1, 8)))
    path = tmp_path / "model.tflite"
    path.write_bytes(m.build())
    (text,) = graph_texts(path, "before", runtime=op_runtime())
    assert re.search(r'"w" tflite=\d+ = const omitted\(256, [0-9a-f]{16}\)\n', text)
    with pytest.raises(clgpu_delegate.ClgpuError, match="without the bytes of long constants"):
        normal(text)
    with pytest.raises(clgpu_delegate.OptionError, match="allowed: before, after"):
        graph_texts(path, "between")

"""Missing and excess operands, for each operation that families handle."""

from __future__ import annotations

import numpy as np
import pytest
from flatbuffers import flexbuffers

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter

# By the schema: inputs that each node has, inputs that it may have, outputs. All others have one
# input, or two.
OTHERS = {
    "ADD_N": (2, 99, 1),
    "CONCATENATION": (1, 99, 1),
    "PACK": (1, 99, 1),
    "STABLEHLO_COMPOSITE": (1, 99, 1),
    "WHILE": (1, 99, 1),
    "IF": (1, 99, 1),
    "CONV_2D": (2, 1, 1),
    "DEPTHWISE_CONV_2D": (2, 1, 1),
    "FULLY_CONNECTED": (2, 1, 1),
    "TRANSPOSE_CONV": (3, 1, 1),
    "CALL_ONCE": (0, 0, 0),
    "VAR_HANDLE": (0, 0, 1),
    "READ_VARIABLE": (1, 0, 1),
    "ASSIGN_VARIABLE": (2, 0, 0),
    "RESHAPE": (1, 1, 1),
    "PADV2": (2, 1, 1),
    "DILATE": (3, 0, 1),
    "SELECT": (3, 0, 1),
    "SELECT_V2": (3, 0, 1),
    "SLICE": (3, 0, 1),
    "RANGE": (3, 0, 1),
    "DYNAMIC_UPDATE_SLICE": (3, 0, 1),
    "SPACE_TO_BATCH_ND": (3, 0, 1),
    "BATCH_TO_SPACE_ND": (3, 0, 1),
    "SPLIT_V": (3, 0, 2),
    "SPLIT": (2, 0, 2),
    "UNPACK": (1, 0, 2),
    "TOPK_V2": (2, 0, 2),
    "ONE_HOT": (4, 0, 1),
    "STRIDED_SLICE": (4, 0, 1),
    "Convolution2DTransposeBias": (3, 0, 1),
    "MaxUnpooling2D": (2, 0, 1),
    "MaxPoolingWithArgmax2D": (1, 0, 2),
    "LSTM": (1, 23, 1),
    "RNN": (1, 4, 1),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (1, 23, 1),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (1, 4, 1),
    "BIDIRECTIONAL_SEQUENCE_LSTM": (1, 47, 1),
    "BIDIRECTIONAL_SEQUENCE_RNN": (1, 11, 1),
    "SVDF": (3, 2, 1),
    "CONV_3D": (2, 1, 1),
    "CONV_3D_TRANSPOSE": (3, 1, 1),
    "SCATTER_ND": (3, 0, 1),
    "SPARSE_TO_DENSE": (4, 0, 1),
    "UNIQUE": (1, 0, 2),
    "UNSORTED_SEGMENT_MAX": (3, 0, 1),
    "UNSORTED_SEGMENT_MIN": (3, 0, 1),
    "UNSORTED_SEGMENT_PROD": (3, 0, 1),
    "UNSORTED_SEGMENT_SUM": (3, 0, 1),
    "REDUCE_WINDOW": (5, 0, 1),
    "STABLEHLO_SCATTER": (3, 0, 1),
    "TFLite_Detection_PostProcess": (3, 0, 4),
    "Landmarks2TransformMatrix": (1, 0, 1),
    "NON_MAX_SUPPRESSION_V4": (5, 0, 2),
    "NON_MAX_SUPPRESSION_V5": (6, 0, 3),
}
OF_ONE = """
    ABS AVERAGE_POOL_2D BITCAST BUCKETIZE CAST CEIL COMPLEX_ABS COS DENSIFY DEPTH_TO_SPACE
    DEQUANTIZE ELU EXP FLOOR GELU HARD_SWISH IMAG L2_NORMALIZATION L2_POOL_2D LEAKY_RELU
    LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_NOT LOGISTIC LOG_SOFTMAX MATRIX_DIAG MAX_POOL_2D
    NEG QUANTIZE RANK REAL RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SHAPE SIGN SIN
    SOFTMAX SPACE_TO_DEPTH SQRT SQUARE SQUEEZE TANH WHERE ZEROS_LIKE
"""
OPERATIONS = sorted({name for family in _core.families() for name in family["ops"]})
CUSTOMS = {
    "Convolution2DTransposeBias",
    "Landmarks2TransformMatrix",
    "LiteRtMaxUnpooling2D",
    "MaxUnpooling2D",
    "MaxPoolingWithArgmax2D",
    "TFLite_Detection_PostProcess",
    "TransformLandmarks",
    "TransformTensor",
    "TransformTensorBilinear",
}
MAP = bytes(flexbuffers.Dumps({}))
REQUIRED = "is absent, which the operation needs"


def operands(name: str) -> tuple[int, int, int]:
    return OTHERS.get(name, (1 if name in OF_ONE.split() else 2, 0, 1))


def counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def reasons(nodes: list[tuple[str, list[int | None], int]]) -> list[str]:
    """Why each node stays on the CPU; the files are not run, because they crash runtimes."""
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 1))
    for name, inputs, outputs in nodes:
        # The stock kernel of this one reads its options before anybody checks the operands.
        options = {"options": MAP} if name == "TFLite_Detection_PostProcess" else {}
        add = m.custom if name in CUSTOMS else m.op
        given = [None if i is None else x for i in inputs]
        version = 2 if name == "BROADCAST_TO" else 1
        shapes = [(1, 2, 2, 1)] * outputs
        # Runtimes do not load these operations without such options.
        if name == "STABLEHLO_COMPOSITE":
            options = {"name": "odml.rms_norm", "composite_attributes": [0]}
        if name == "STABLEHLO_PAD":
            zeros = np.zeros(4, np.int64)
            sizes = ("edge_padding_low", "edge_padding_high", "interior_padding")
            options = dict.fromkeys(sizes, zeros)
        if name == "STABLEHLO_REDUCE_WINDOW":
            lists = ("window_dimensions", "window_strides", "window_dilations", "base_dilations")
            options = {
                **dict.fromkeys(lists, np.ones(4, np.int64)),
                "padding": np.zeros(8, np.int64),
            }
        if name == "BUCKETIZE":
            options = {"boundaries": np.zeros(1, np.float32)}
        if name == "REDUCE_WINDOW":
            options = {"reduce_function": "ADD"}
        m.output(*add(name, given, shapes, dtype=np.float32, version=version, **options))
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    found = [node.reason for node in delegate.explain().nodes]
    del interpreter
    return found


@pytest.mark.parametrize("name", OPERATIONS)
def test_operands_that_are_not_there_are_a_refusal(name):
    required, optional, outputs = operands(name)
    nodes, wanted = [], []
    for i in range(required):
        inputs = [None if i == j else 0 for j in range(required)]
        nodes.append((name, inputs, outputs))
        wanted.append(f"input {i} {REQUIRED}")
    if required > 0:
        nodes.append((name, [0] * (required - 1), outputs))
        wanted.append(f"it has {counted(required - 1, 'input')}; the operation takes ")
    if optional == 99:
        nodes.append((name, [0] * required + [None], outputs))
        wanted.append(f"input {required} {REQUIRED}")
    else:
        nodes.append((name, [0] * (required + optional + 1), outputs))
        wanted.append(f"it has {counted(required + optional + 1, 'input')}; the operation takes ")
    if outputs > 0:
        nodes.append((name, [0] * required, 0))
        wanted.append("it has 0 outputs; the operation has ")
    several = {"IF", "SPLIT", "SPLIT_V", "STABLEHLO_COMPOSITE", "UNPACK", "WHILE"}
    if name not in several and not name.startswith("BIDIRECTIONAL"):
        nodes.append((name, [0] * required, outputs + 1))
        wanted.append(f"it has {counted(outputs + 1, 'output')}; the operation has {outputs}")
    found = reasons(nodes)
    assert [text[: len(want)] for text, want in zip(found, wanted)] == wanted


def test_optional_operands_may_be_absent(runtime):
    m = ModelMaker()
    weights = m.constant(np.ones((3, 4), np.float32))
    m.output(m.op("FULLY_CONNECTED", [m.input("x", (2, 4)), weights, None], (2, 3)))
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(runtime, m.build(), [delegate])
    assert [node.claimed for node in delegate.explain().nodes] == [True]
    del interpreter


@pytest.mark.parametrize("size", [2**22, 2**31 - 1])
def test_results_that_are_too_large_are_a_refusal(size):
    # 2**44 elements, or more than 64 bits count.
    m = ModelMaker()
    x = m.input("x", (1, 1, 1, 16))
    to = m.constant(np.array([size, size], np.int32))
    m.output(m.op("RESIZE_NEAREST_NEIGHBOR", [x, to], (1, 1, 1, 16)))
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    (node,) = delegate.explain().nodes
    assert not node.claimed
    assert "elements; supported: 1 to 2147483647" in node.reason
    del interpreter


def left(model: ModelMaker) -> list[str]:
    """Why nodes of a model that is not run stay on the CPU; empty for those that do not."""
    delegate = clgpu_delegate.load()
    interpreter = make_interpreter(op_runtime(), model.build(), [delegate])
    found = ["" if node.claimed else node.reason for node in delegate.explain().nodes]
    del interpreter
    return found


def test_node_that_reads_what_a_later_one_writes_stays_on_the_cpu():
    m = ModelMaker()
    x = m.input("x", (1, 8))
    y = m.op("ABS", [x], (1, 8))
    z = m.op("NEG", [x], (1, 8))
    m._ops[0].inputs[0] = z
    m.output(y, z)
    assert left(m) == ["input 0 is written by a later node", ""]


def test_model_with_a_tensor_that_has_two_writers_stays_on_the_cpu():
    m = ModelMaker()
    x = m.input("x", (1, 8))
    y = m.op("ABS", [x], (1, 8))
    m.op("NEG", [x], (1, 8))
    m._ops[1].outputs[0] = y
    m.output(m.op("EXP", [y], (1, 8)), m.op("SIN", [x], (1, 8)))
    assert left(m) == ["a tensor of the model is written more than once"] * 4


def test_node_with_an_absent_output_stays_on_the_cpu():
    m = ModelMaker()
    k = m.constant(np.array(1, np.int32))
    m.op("TOPK_V2", [m.input("x", (1, 8)), k], [(1, 1), (1, 1)], dtype=[np.float32, np.int32])
    m.output(m._ops[0].outputs[0])
    m._ops[0].outputs[1] = -1
    assert left(m) == ["output 1 is absent"]


def test_node_of_another_delegate_is_left_to_it():
    m = ModelMaker()
    m.output(m.op("ABS", [m.input("x", (1, 8))], (1, 8)))
    delegates = clgpu_delegate.load(), clgpu_delegate.load()
    interpreter = make_interpreter(op_runtime(), m.build(), list(delegates))
    (node,) = delegates[1].explain().nodes
    assert node.reason == "another delegate has already claimed it"
    assert node.refusal.code == "runtime"
    assert not node.hint
    del interpreter


def test_model_that_the_runtime_cannot_divide_stays_on_the_cpu():
    m = ModelMaker()
    x = m.input("x", (1, 8))
    y = m.op("ABS", [x], (1, 8))
    z = m.op("MAXIMUM", [x, x], (1, 8))
    m._ops[1].inputs[1] = z
    m.output(y, z)
    reason, own = left(m)
    assert reason == (
        "the runtime cannot divide the model into partitions (PreviewDelegatePartitioning fails); "
        "one cause: a node reads a tensor that only a later node writes"
    )
    assert own == "input 1 is written by a later node"


@pytest.mark.parametrize("name", ["REDUCE_MIN", "ABS", "ADD", "SPLIT", "SOFTMAX", "RESHAPE"])
def test_result_of_another_type_than_the_input_stays_on_the_cpu(name):
    m = ModelMaker()
    x = m.input("x", (1, 8))
    axis = m.constant(np.array([1], np.int32))
    inputs = {"REDUCE_MIN": [x, axis], "ADD": [x, x], "SPLIT": [axis, x]}.get(name, [x])
    m.output(m.op(name, inputs, (1, 8), dtype=np.int32))
    slot = 1 if name == "SPLIT" else 0
    wanted = f"output 0 is int32 and input {slot} float32; the operation does not convert"
    assert left(m) == [wanted]


def test_each_part_of_another_type_than_the_whole_stays_on_the_cpu():
    m = ModelMaker()
    x, axis = m.input("x", (1, 8)), m.constant(np.int32(1))
    types = [np.float32, np.int32]
    m.output(*m.op("SPLIT", [axis, x], [(1, 4), (1, 4)], dtype=types, num_splits=2))
    assert left(m) == ["output 1 is int32 and input 1 float32; the operation does not convert"]


def test_node_that_reads_a_variable_stays_on_the_cpu():
    m = ModelMaker()
    state = m.tensor((1, 8), is_variable=True)
    m.output(m.op("ADD", [m.input("x", (1, 8)), state], (1, 8)))
    assert left(m) == ["input 1 is a variable: its state lives on the CPU"]


@pytest.mark.parametrize(("dtype", "name"), [(np.float32, "float32"), (np.int32, "int32")])
def test_result_without_a_scale_of_a_quantised_input_stays_on_the_cpu(dtype, name):
    m = ModelMaker()
    x = m.input("x", (1, 8), np.int8, quantization=(0.5, 0))
    m.output(m.op("PACK", [x, x], (2, 1, 8), dtype=dtype, axis=0, values_count=2))
    assert left(m) == [f"output 0 is {name} and input 0 int8; the operation does not convert"]


@pytest.mark.parametrize("name", ["RESHAPE", "SQUEEZE", "EXPAND_DIMS"])
def test_model_that_copies_floats_into_a_smaller_tensor_stays_on_the_cpu(name):
    # Stock kernels write beyond the output; the effect depends on the memory layout.
    m = ModelMaker()
    x = m.input("x", (1, 8))
    axis = [m.constant(np.int32(0))] if name == "EXPAND_DIMS" else []
    m.output(m.op("NEG", [x], (1, 8)), m.op(name, [x, *axis], (1, 8), dtype=np.bool_))
    assert left(m) == [
        f"the output of {name} in the model is bool and its input float32",
        "output 0 is bool and input 0 float32; the operation does not convert",
    ]


def test_model_that_reduces_into_a_smaller_type_stays_on_the_cpu():
    m = ModelMaker()
    x = m.input("x", (2, 8), np.int32)
    reduced = m.op("REDUCE_MIN", [x, m.constant(np.int32([1]))], (2,), dtype=np.float16)
    m.output(m.op("NEG", [x], (2, 8)), reduced)
    assert left(m) == [
        "output 0 is float16 and input 0 int32; the operation does not convert",
        "the output of REDUCE_MIN in the model is float16 and its input int32",
    ]


@pytest.mark.parametrize("name", ["ADD", "SQUARED_DIFFERENCE", "SOFTMAX"])
def test_model_on_which_stock_kernels_abort_stays_on_the_cpu(name):
    """Without the delegate an error of an earlier node may keep the kernel from running."""
    m = ModelMaker()
    x = m.input("x", (1, 8))
    if name == "SOFTMAX":
        a = m.input("a", (1, 8), np.int8, quantization=(1e-9, 0))
        bad = m.op(name, [a], (1, 8), quantization=(1 / 256, -128), beta=1.0)
        why = "beta times the scale of the input is 2^-26 or less"
    else:
        a = m.input("a", (1, 8), np.int8, quantization=(1.0, 0))
        bad = m.op(name, [a, a], (1, 8), quantization=(1e-7, 0))
        why = "the scale of the output is too small for that of the inputs"
    m.output(m.op("NEG", [x], (1, 8)), bad, m.op("ABS", [x], (1, 8)))
    all_nodes = f"node 0 ({name}) can end the process in the runtime's kernels: {why}"
    assert left(m) == [why, all_nodes, all_nodes]


@pytest.mark.parametrize("shape", [(9, 1, 0, 2), (9, 0, 1, 2), (9, 1, 1, 0)])
def test_weights_without_elements_stay_on_the_cpu(shape):
    m = ModelMaker()
    weights = m.constant(np.zeros(shape, np.float32))
    bias = m.constant(np.zeros(9, np.float32))
    x = m.input("x", (1, 4, 4, 2))
    convolved = m.op(
        "CONV_2D", [x, weights, bias], (1, 4, 4, 9), padding="SAME", stride_w=1, stride_h=1
    )
    m.output(m.op("NEG", [x], (1, 4, 4, 2)), convolved)
    first, second = left(m)
    assert "elements" in first or "channels" in first, first
    assert second == ""


def node_of(name: str, scale: float, dtype: type = np.int8) -> list[str]:
    """Why nodes stay on the CPU, of a NEG beside one of that name with an unusual scale."""
    m = ModelMaker()
    a = m.input("a", (1, 8), np.int8, quantization=(scale if name == "GREATER" else 1.0, 0))
    if name == "CAST":
        other = m.op(name, [a], (1, 8), dtype=dtype, quantization=(scale, 0))
    elif name == "GREATER":
        other = m.op(name, [a, a], (1, 8), dtype=bool)
    else:
        other = m.op(name, [a, a], (1, 8), quantization=(scale, 0))
    m.output(m.op("NEG", [m.input("x", (1, 8))], (1, 8)), other)
    return left(m)


@pytest.mark.parametrize(
    ("name", "scale", "whole"),
    [
        ("GREATER", 1.5, False),
        ("GREATER", 1.0, True),
        ("SUB", 1e-7, False),
        ("ADD", 1e-7, True),
        ("ADD", -1.0, True),
        ("CAST", 0.0, False),
    ],
)
def test_only_scales_on_which_stock_aborts_keep_the_whole_model_on_the_cpu(name, scale, whole):
    reasons = node_of(name, scale, np.int32)
    assert ("can end the process" in "".join(reasons)) == whole, reasons
    assert ("" in reasons) != whole, reasons


def test_reshape_to_many_axes_keeps_nothing_else_on_the_cpu():
    m = ModelMaker()
    x = m.op("ABS", [m.input("x", (2, 4))], (2, 4))
    wide = m.op("RESHAPE", [x, m.constant(np.int32([1] * 7 + [2, 4]))], (1,) * 7 + (2, 4))
    m.output(m.op("NEG", [x], (2, 4)), wide)
    reasons = left(m)
    assert "rank 9" in "".join(reasons)
    assert reasons.count("") == 2, reasons


def test_model_with_more_axes_than_stock_counts_stays_on_the_cpu():
    m = ModelMaker()
    x = m.input("x", (1,) * 9)
    m.output(m.op("MINIMUM", [x, x], (1,) * 9), m.op("NEG", [m.input("y", (2,))], (2,)))
    why = "input 0 has rank 9; supported: 0 to 8"
    assert left(m) == [why, f"node 0 (MINIMUM) can end the process in the runtime's kernels: {why}"]


def test_model_that_writes_a_constant_stays_on_the_cpu():
    m = ModelMaker()
    x = m.input("x", (1, 8))
    constant = m.constant(np.zeros((1, 8), np.float32))
    m.op("ABS", [x], (1, 8))
    m._ops[0].outputs[0] = constant
    m.output(m.op("NEG", [constant], (1, 8)))
    assert left(m) == ["a tensor of the model is written more than once"] * 2

"""Graphs that mix integers and floats, for the rewriting."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate.tflite.graph import Signature, Subgraph
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.writer import serialize
from tests import runtimes
from tests.model_maker import ModelMaker
from tests.python.models import normal

SHAPE = (2, 6)


def samples(count: int = 4, shape: tuple[int, ...] = SHAPE) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [normal(rng, *shape) for _ in range(count)]


def quantized(model: bytes, tmp_path, calibration=None, **options) -> bytes:
    out = tmp_path / "out.tflite"
    calibration = samples() if calibration is None else calibration
    clgpu_delegate.quantize(model, calibration, out, **options)
    return out.read_bytes()


def main(content: bytes) -> Subgraph:
    return parse(content).main


def ops(content: bytes) -> dict[str, int]:
    return dict(collections.Counter(op.name for op in main(content).operators))


def check_close(model: bytes, content: bytes, inputs: list[np.ndarray], bound: float) -> None:
    for runtime in runtimes.available_runtimes():
        expected = runtimes.run_reference(model, inputs, runtime)
        got = runtimes.run_reference(content, inputs, runtime)
        for g, e in zip(got, expected):
            assert np.abs(g - e).max() <= bound * np.abs(e).max()


def dense(m: ModelMaker, x: int, units: int = 6, weights: int | None = None) -> int:
    rng = np.random.default_rng(4)
    if weights is None:
        weights = m.constant(normal(rng, units, m.shape(x)[-1]))
    return m.op("FULLY_CONNECTED", [x, weights, None], (*m.shape(x)[:-1], units))


def test_operation_without_integer_kernel_stays_between_conversions(tmp_path):
    m = ModelMaker()
    y = dense(m, m.op("SIN", [dense(m, m.input("x", SHAPE))], SHAPE))
    m.output(y)
    content = quantized(m.build(), tmp_path)
    assert ops(content) == {"QUANTIZE": 2, "FULLY_CONNECTED": 2, "DEQUANTIZE": 2, "SIN": 1}
    check_close(m.build(), content, samples(1), 0.1)


@pytest.mark.parametrize("name", [2, "2", "LOGISTIC", "middle"])
def test_skipped_layer_stays_in_float(name, tmp_path):
    m = ModelMaker()
    y = m.op("TANH", [dense(m, m.input("x", SHAPE))], SHAPE)
    y = m.op("LOGISTIC", [y], SHAPE)
    m._tensors[y].name = "middle"
    m.output(dense(m, y))
    content = quantized(m.build(), tmp_path, skip=[name])
    (skipped,) = (op for op in main(content).operators if op.name == "LOGISTIC")
    assert main(content).tensors[skipped.outputs[0]].dtype == "float32"
    assert ops(content)["QUANTIZE"] == 2
    check_close(m.build(), content, samples(1), 0.1)


def test_movements_between_floats_are_left_alone(tmp_path):
    m = ModelMaker()
    y = m.op("SIN", [dense(m, m.input("x", SHAPE))], SHAPE)
    y = m.op("RESHAPE", [y], (3, 4), new_shape=[3, 4])
    m.output(m.op("COS", [m.op("TRANSPOSE", [y, m.constant(np.array([1, 0], np.int32))], (4, 3))],
                  (4, 3)))  # fmt: skip
    assert ops(quantized(m.build(), tmp_path))["QUANTIZE"] == 1


def test_concatenation_requantises_what_has_a_scale_of_its_own(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    y = dense(m, x)  # read twice: keeps its scale
    z = m.op("LOGISTIC", [y], SHAPE)  # the kernel demands 1 / 256
    w = m.op("MUL", [x, m.constant(np.float32(9))], SHAPE)  # goes nowhere else: takes the result's
    parts = [y, z, w, m.constant(np.full(SHAPE, 2, np.float32))]
    m.output(m.op("CONCATENATION", parts, (2, 24), axis=1))
    content = quantized(m.build(), tmp_path, io="int8")
    assert ops(content)["QUANTIZE"] == 2
    graph = main(content)
    (join,) = (op for op in graph.operators if op.name == "CONCATENATION")
    assert len({graph.tensors[t].affine for t in [*join.inputs, *join.outputs]}) == 1
    check_close(m.build(), quantized(m.build(), tmp_path), samples(1), 0.03)


def test_what_is_read_on_the_way_to_a_concatenation_keeps_its_scale(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    y = m.op("MUL", [x, m.constant(np.float32(0.01))], SHAPE)
    z = m.op("RESHAPE", [y], (6, 2), new_shape=[6, 2])
    z = m.op("RESHAPE", [z], SHAPE, new_shape=SHAPE)
    joined = m.op("CONCATENATION", [z, m.op("TANH", [x], SHAPE)], (2, 12), axis=1)
    m.output(joined, m.op("ADD", [y, y], SHAPE))  # y: not only to the concatenation
    report = clgpu_delegate.quantize(m.build(), samples(), tmp_path / "out.tflite")
    assert report.outputs[1].sqnr_db > 30


def test_a_narrow_form_does_not_narrow_a_wide_one(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    m.output(m.op("MAXIMUM", [x, m.constant(np.zeros(SHAPE, np.float32))], SHAPE))
    m.output(m.op("TRANSPOSE", [x, m.constant(np.array([1, 0], np.int32))], (6, 2)))
    report = clgpu_delegate.quantize(m.build(), samples(), tmp_path / "out.tflite")
    assert min(layer.sqnr_db for layer in report.outputs) > 30


def test_constant_read_by_several_operations_has_a_form_for_each(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    shared = m.constant(normal(np.random.default_rng(6), 6, 6))
    bias = m.constant(np.arange(6, dtype=np.float32))
    y = m.op("FULLY_CONNECTED", [x, shared, bias], SHAPE)
    y = m.op("FULLY_CONNECTED", [y, shared, bias], SHAPE)
    y = m.op("ADD", [y, bias], SHAPE)
    m.output(m.op("POW", [y, bias], SHAPE))
    content = quantized(m.build(), tmp_path)
    graph = main(content)
    one, two = (op for op in graph.operators if op.name == "FULLY_CONNECTED")
    assert one.inputs[1] == two.inputs[1], "one copy of equal integers"
    assert one.inputs[2] != two.inputs[2], "the scale of a bias is that of the products"
    dtypes = sorted(
        t.dtype for t in graph.tensors if t.name == parse(m.build()).main.tensors[2].name
    )
    assert dtypes == ["float32", "int32", "int32", "int8"]


def test_weights_behind_dequantize_and_transpose_are_folded(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    half = m.constant(normal(np.random.default_rng(7), 6, 5).astype(np.float16))
    weights = m.op("DEQUANTIZE", [half], (6, 5), dtype=np.float32)
    order = m.constant(np.array([1, 0], np.int32))
    m.output(dense(m, x, 5, m.op("TRANSPOSE", [weights, order], (5, 6))))
    content = quantized(m.build(), tmp_path)
    assert ops(content) == {"QUANTIZE": 1, "FULLY_CONNECTED": 1, "DEQUANTIZE": 1}
    check_close(m.build(), content, samples(1), 0.05)


@pytest.mark.parametrize(
    ("scheme", "io"), [("int8", "int8"), ("int8", "uint8"), ("int16x8", "int16")]
)
def test_inputs_and_outputs_may_be_integers(scheme, io, tmp_path, runtime):
    m = ModelMaker()
    x, ids = m.input("x", SHAPE), m.input("ids", (2,), np.int32)
    y = dense(m, x)
    m.output(y, m.op("SIN", [y], SHAPE), m.op("GATHER", [y, ids], SHAPE, dtype=np.float32, axis=0))
    calibration = [(v, np.array([1, 0], np.int32)) for v in samples()]
    content = quantized(m.build(), tmp_path, calibration, scheme=scheme, io=io)
    assert "FLOAT32" not in [
        t.dtype for t in (main(content).tensors[i] for i in main(content).outputs)
    ]
    interpreter = runtimes.make_interpreter(runtime, content)
    scale, zero_point = interpreter.get_input_details()[0]["quantization"]
    stored = np.rint(calibration[0][0] / scale + zero_point).astype(io)
    got = runtimes.run_interpreter(interpreter, [stored, calibration[0][1]])
    expected = runtimes.run_reference(m.build(), list(calibration[0]), runtime)
    for g, e, detail in zip(got, expected, interpreter.get_output_details()):
        scale, zero_point = detail["quantization"]
        assert g.dtype == io
        assert (
            np.abs(scale * (g.astype(np.float32) - zero_point) - e).max() < 0.05 * np.abs(e).max()
        )


def test_any_batch_will_do_where_the_model_leaves_it_open(tmp_path, runtime):
    m = ModelMaker()
    m.output(m.op("SOFTMAX", [dense(m, m.input("x", (-1, 6)))], (-1, 6), beta=1.0))
    calibration = [*samples(2, (3, 6)), *samples(1, (1, 6))]
    content = quantized(m.build(), tmp_path, calibration)
    x = samples(1, (5, 6))
    (got,) = runtimes.run_reference(content, x, runtime, resize={0: (5, 6)})
    (expected,) = runtimes.run_reference(m.build(), x, runtime, resize={0: (5, 6)})
    assert np.abs(got - expected).max() < 0.1


def test_signatures_subgraphs_and_metadata_survive(tmp_path, runtime):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    largest = m.op("REDUCE_MAX", [x, m.constant(np.array([0, 1], np.int32))], ())
    condition = m.op("GREATER", [largest, m.constant(np.float32(0))], (), dtype=np.bool_)
    branches = []
    for name in ("SIN", "COS"):
        branch = m.subgraph()
        branch.output(branch.op(name, [branch.input("b", SHAPE)], SHAPE))
        branches.append(branch)
    y = m.op("IF", [condition, dense(m, x)], SHAPE, dtype=np.float32,
             then_subgraph_index=1, else_subgraph_index=2)  # fmt: skip
    m.output(y)
    model = parse(m.build())
    model.signatures.append(Signature("serve", 0, {"image": x}, {"label": y}))
    model.metadata.append(("note", model.add_buffer(np.frombuffer(b"kept", np.uint8))))
    content = serialize(model)
    result = parse(quantized(content, tmp_path))
    assert [len(g.operators) for g in result.subgraphs[1:]] == [1, 1]
    assert [(n, result.buffers[b].tobytes()) for n, b in result.metadata] == [("note", b"kept")]
    runner = runtimes.make_interpreter(runtime, serialize(result)).get_signature_runner("serve")
    (expected,) = runtimes.run_reference(content, samples(1), runtime)
    assert np.abs(runner(image=samples(1)[0])["label"] - expected).max() < 0.2


def test_layers_of_zeros_have_scales(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    weights = np.zeros((6, 6), np.float32)
    y = m.op("FULLY_CONNECTED", [x, m.constant(weights), m.constant(weights[0])], SHAPE)
    m.output(m.op("ADD", [y, m.op("SUB", [x, x], SHAPE)], SHAPE))
    content = quantized(m.build(), tmp_path)
    for tensor in main(content).tensors:
        assert tensor.affine is None or min(tensor.affine.scales) > 0
    check_close(m.build(), content, samples(1), 0.0)


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_results_that_nearly_cancel_do_not_abort_the_kernels(scheme, tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    near = m.op("MUL", [x, m.constant(np.float32(1 + 1e-6))], SHAPE)
    for name in ("SUB", "SQUARED_DIFFERENCE"):
        small = m.op(name, [x, near], SHAPE)
        m.output(m.op("SOFTMAX", [small], SHAPE, beta=1.0))
    powers_of_two = m.op("TANH", [m.op("MUL", [x, m.constant(np.float32(99))], SHAPE)], SHAPE)
    m.output(m.op("ADD", [powers_of_two, powers_of_two], SHAPE))
    content = quantized(m.build(), tmp_path, scheme=scheme)
    check_close(m.build(), content, samples(1), 0.05)


def test_bias_far_above_its_products_fits(tmp_path):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    weights = np.full((6, 6), 1e-9, np.float32)
    bias = m.constant(np.linspace(-5, 5, 6, dtype=np.float32))
    m.output(m.op("FULLY_CONNECTED", [x, m.constant(weights), bias], SHAPE))
    check_close(m.build(), quantized(m.build(), tmp_path), samples(1), 0.01)

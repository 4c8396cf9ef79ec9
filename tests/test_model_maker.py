"""ModelMaker writes files that the stock runtimes load, and that mean what was asked."""

from __future__ import annotations

import numpy as np
import pytest
import tflite

from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter, run_reference


def normal(rng: np.rng.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def test_convolution_has_its_padding_strides_and_activation(runtime, rng):
    src, weights, bias = normal(rng, 1, 5, 5, 3), normal(rng, 4, 3, 3, 3), normal(rng, 4)
    m = ModelMaker()
    x = m.input("x", src.shape)
    m.output(
        m.op(
            "CONV_2D", [x, m.constant(weights), m.constant(bias)], (1, 3, 3, 4),
            padding="SAME", stride_w=2, stride_h=2, fused_activation_function="RELU",
        )
    )  # fmt: skip
    padded = np.pad(src[0], ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))[::2, ::2]
    expected = np.maximum(np.einsum("hwcyx,oyxc->hwo", windows, weights) + bias, 0)
    (dst,) = run_reference(m.build(), [src], runtime)
    np.testing.assert_allclose(dst[0], expected, atol=1e-5)


def test_absent_optional_input_is_accepted(runtime, rng):
    src, weights = normal(rng, 3, 7), normal(rng, 5, 7)
    m = ModelMaker()
    x = m.input("x", src.shape)
    m.output(m.op("FULLY_CONNECTED", [x, m.constant(weights), None], (3, 5)))
    (dst,) = run_reference(m.build(), [src], runtime)
    np.testing.assert_allclose(dst, src @ weights.T, atol=1e-5)


def test_op_with_several_outputs_returns_them_in_order(runtime, rng):
    src = normal(rng, 2, 6)
    m = ModelMaker()
    x = m.input("x", src.shape)
    axis = m.constant(1, dtype=np.int32)
    a, b, c = m.op("SPLIT", [axis, x], [(2, 2)] * 3, num_splits=3)
    m.output(a, c, b)
    dst = run_reference(m.build(), [src], runtime)
    np.testing.assert_array_equal(np.concatenate(dst, 1), src[:, [0, 1, 4, 5, 2, 3]])


def test_vector_options_are_written(runtime, rng):
    src = normal(rng, 2, 6)
    m = ModelMaker()
    y = m.op("RESHAPE", [m.input("x", src.shape)], (1, 3, 4), new_shape=[1, 3, 4])
    m.output(m.op("SQUEEZE", [y], (3, 4), squeeze_dims=[0]))
    (dst,) = run_reference(m.build(), [src], runtime)
    np.testing.assert_array_equal(dst, src.reshape(3, 4))


def test_type_options_are_numpy_dtypes(runtime):
    m = ModelMaker()
    x = m.input("x", (4,), np.int64)
    types = {"in_data_type": np.int64, "out_data_type": np.float32}
    m.output(m.op("CAST", [x], (4,), dtype=np.float32, **types))
    (dst,) = run_reference(m.build(), [np.array([-1, 0, 3, 2**30])], runtime)
    assert dst.dtype == np.float32
    np.testing.assert_array_equal(dst, np.float32([-1, 0, 3, 2**30]))


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("shape", [(5, 1, 1, 24), (3, 320)])
def test_sparse_constant_is_densified_to_itself(runtime, rng, block, shape):
    kept = rng.random((*shape[:-1], shape[-1] // block, 1)) < 0.4
    weights = (normal(rng, *shape).reshape(*kept.shape[:-1], block) * kept).reshape(shape)
    m = ModelMaker()
    dense = m.op("DENSIFY", [m.sparse_constant(weights, block=block)], shape)
    m.output(m.op("ADD", [m.input("x", shape), dense], shape))
    data = m.build()
    (dst,) = run_reference(data, [np.zeros(shape, np.float32)], runtime)
    np.testing.assert_array_equal(dst, weights)
    stored = tflite.Model.GetRootAsModel(data, 0).Buffers(1).DataLength()
    assert stored == 4 * block * kept.sum()


def test_sparse_float16_weights_pass_through_dequantize(runtime, rng):
    weights = (normal(rng, 4, 8) * (rng.random((4, 8)) < 0.5)).astype(np.float16)
    m = ModelMaker()
    half = m.op("DENSIFY", [m.sparse_constant(weights)], (4, 8))
    dense = m.op("DEQUANTIZE", [half], (4, 8), dtype=np.float32)
    m.output(m.op("FULLY_CONNECTED", [m.input("x", (1, 8)), dense, None], (1, 4)))
    src = normal(rng, 1, 8)
    (dst,) = run_reference(m.build(), [src], runtime)
    np.testing.assert_allclose(dst, src @ weights.T.astype(np.float32), atol=1e-5)


def test_quantized_add_has_its_scales_and_zero_points(runtime):
    a, b = np.arange(-8, 8, dtype=np.int8), np.arange(16, dtype=np.int8)[::-1] * 3
    m = ModelMaker()
    x = m.input("x", a.shape, np.int8, quantization=(0.5, -2))
    y = m.input("y", a.shape, np.int8, quantization=(0.25, 3))
    m.output(m.op("ADD", [x, y], a.shape, quantization=(1.0, 5), version=2))
    (dst,) = run_reference(m.build(), [a, b], runtime)
    expected = 0.5 * (a + 2.0) + 0.25 * (b - 3.0) + 5
    assert np.abs(dst - expected).max() <= 0.5 + 1e-3


def test_quantization_per_channel_keeps_its_axis(runtime):
    m = ModelMaker()
    x = m.input("x", (1, 4))
    weights = m.constant(
        np.array([[1, 2, 3, 4], [4, 3, 2, 1]], np.int8), quantization=((0.5, 2.0), (0, 0), 0)
    )
    m.output(m.op("FULLY_CONNECTED", [x, weights, None], (1, 2)))
    details = make_interpreter(runtime, m.build()).get_tensor_details()[weights]
    np.testing.assert_array_equal(details["quantization_parameters"]["scales"], [0.5, 2.0])
    np.testing.assert_array_equal(details["quantization_parameters"]["zero_points"], [0, 0])


def test_boolean_tensors_are_supported(runtime):
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    m = ModelMaker()
    m.output(m.op("LOGICAL_AND", [m.input("a", a.shape, bool), m.constant(b)], a.shape))
    (dst,) = run_reference(m.build(), [a], runtime)
    np.testing.assert_array_equal(dst, a & b)


def test_pad_takes_its_amounts_from_a_constant(runtime, rng):
    src = normal(rng, 1, 3, 2, 1)
    amounts = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)
    m = ModelMaker()
    m.output(m.op("PAD", [m.input("x", src.shape), m.constant(amounts)], (1, 6, 3, 1)))
    (dst,) = run_reference(m.build(), [src], runtime)
    np.testing.assert_array_equal(dst, np.pad(src, amounts))


def test_dynamic_extent_can_be_resized(runtime, rng):
    m = ModelMaker()
    m.output(m.op("NEG", [m.input("x", (-1, 3))], (-1, 3)))
    data, src = m.build(), normal(rng, 5, 3)
    (detail,) = make_interpreter(runtime, data).get_input_details()
    assert list(detail["shape"]) == [1, 3]
    assert list(detail["shape_signature"]) == [-1, 3]
    (dst,) = run_reference(data, [src], runtime, resize={0: (5, 3)})
    np.testing.assert_array_equal(dst, -src)


def test_variable_tensor_keeps_its_value_between_runs(runtime):
    # Rank 1, one unit, a memory of two steps: y_t = f * (x_t + x_{t-1}).
    m = ModelMaker()
    x = m.input("x", (1, 1))
    feature, time = m.constant(np.full((1, 1), 2.0, np.float32)), np.ones((1, 2), np.float32)
    state = m.tensor((1, 2), is_variable=True)
    m.output(m.op("SVDF", [x, feature, m.constant(time), None, state], (1, 1), rank=1))
    interpreter = make_interpreter(runtime, m.build(), resolver="ref")
    interpreter.allocate_tensors()
    seen = []
    for value in (1.0, 10.0, 100.0):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], [[np.float32(value)]])
        interpreter.invoke()
        seen.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).item())
    assert seen == [2.0, 22.0, 220.0]


def test_custom_op_is_refused_by_name(runtime):
    m = ModelMaker()
    m.output(m.custom("MaxUnpooling2D", [m.input("x", (1, 2, 2, 1))], (1, 4, 4, 1), b"\x01\x02"))
    with pytest.raises((RuntimeError, ValueError), match="MaxUnpooling2D"):
        run_reference(m.build(), [np.zeros((1, 2, 2, 1), np.float32)], runtime)


def test_operator_version_follows_the_types_unless_given():
    m = ModelMaker()
    x = m.input("x", (4,), np.float16)
    m.op("DEQUANTIZE", [x], (4,), dtype=np.float32)
    m.op("NEG", [x], (4,))
    m.op("ADD", [x, x], (4,), version=2)
    model = tflite.Model.GetRootAsModel(m.build(), 0)
    versions = [model.OperatorCodes(i).Version() for i in range(model.OperatorCodesLength())]
    assert versions == [3, 1, 2]


def test_constants_are_aligned_in_the_file():
    m = ModelMaker()
    m.constant(np.full(3, 7, np.uint8))
    m.constant(np.arange(5, dtype=np.float32))
    m.constant(np.arange(5, dtype=np.int64))
    data = m.build()
    model = tflite.Model.GetRootAsModel(data, 0)
    for i in range(1, model.BuffersLength()):
        assert data.find(model.Buffers(i).DataAsNumpy().tobytes()) % 16 == 0


def test_unknown_names_are_answered_with_the_known_ones():
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 1))
    with pytest.raises(ValueError, match=r"no 'CONV2D'; it has .*CONV_2D"):
        m.op("CONV2D", [x], (1,))
    with pytest.raises(ValueError, match=r"MAX_POOL_2D has no option stride; .*stride_w"):
        m.op("MAX_POOL_2D", [x], (1, 1, 1, 1), stride=2)
    with pytest.raises(ValueError, match=r"Padding has no 'FULL'; it has SAME, VALID"):
        m.op("MAX_POOL_2D", [x], (1, 1, 1, 1), padding="FULL")


def test_every_builtin_op_of_the_schema_can_be_written():
    names = [name for name in vars(tflite.BuiltinOperator) if name.isupper()]
    m = ModelMaker()
    x = m.input("x", (1,))
    for name in names:
        m.op(name, [x], (1,))
    model = tflite.Model.GetRootAsModel(m.build(), 0)
    codes = [model.OperatorCodes(i).BuiltinCode() for i in range(model.OperatorCodesLength())]
    assert codes == [getattr(tflite.BuiltinOperator, name) for name in names]


def test_signatures_share_constants_inside_and_behind_the_table(runtime, rng, tmp_path):
    weights, src = normal(rng, 3, 4), normal(rng, 2, 4)
    m = ModelMaker()
    graphs, constants = [m, m.subgraph()], []
    for rows, graph in zip((1, 2), graphs):
        x = graph.input("x", (rows, 4))
        if constants:
            w = graph.shared_constant(m, constants[0])
        else:
            w = graph.late_constant((3, 4), np.float32, lambda: iter(weights))
        constants.append(w)
        y = graph.op("FULLY_CONNECTED", [x, w], (rows, 3))
        graph.output(y)
        graph.signature(f"rows_{rows}", {"src": x}, {"dst": y})
    for outside in (False, True):
        path = tmp_path / f"{outside}.tflite"
        assert m.save(path, outside=outside) == path.stat().st_size
        content = path.read_bytes()
        assert content.count(weights.tobytes()) == 1
        assert content.endswith(weights.tobytes()) == outside
        interpreter = make_interpreter(runtime, content)
        for rows in (1, 2):
            (dst,) = interpreter.get_signature_runner(f"rows_{rows}")(src=src[:rows]).values()
            np.testing.assert_allclose(dst, src[:rows] @ weights.T, atol=1e-5)

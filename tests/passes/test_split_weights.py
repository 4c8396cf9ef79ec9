"""Layers whose weights are larger than an object become several, each of some output channels."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import Blocks, ModelMaker, Quantization
from tests.models.comparison import LIMITS, assert_close, relative_l2
from tests.ops.test_conv2d import Case
from tests.quantized.parameters import random_integers
from tests.quantized.test_conv2d import build as quantized_convolution
from tests.runtimes import make_interpreter, run_interpreter, run_reference

CHANNELS, DEPTH = 208, 64


def _constant(m: ModelMaker, rng: np.random.Generator, *shape: int) -> int:
    return m.constant(rng.standard_normal(shape).astype(np.float32) / 8)


def _dense(m, rng, x, bias, transposed):
    if transposed:
        weights = m.op(
            "TRANSPOSE",
            [_constant(m, rng, DEPTH, CHANNELS), m.constant(np.array([1, 0], np.int32))],
            (CHANNELS, DEPTH),
        )
    else:
        weights = _constant(m, rng, CHANNELS, DEPTH)
    inputs = [x, weights] + ([_constant(m, rng, CHANNELS)] if bias else [])
    return m.op("FULLY_CONNECTED", inputs, (3, CHANNELS), fused_activation_function="RELU")


def _convolution(m, rng, x, height, width):
    return m.op(
        "CONV_2D",
        [x, _constant(m, rng, CHANNELS, height, width, DEPTH), _constant(m, rng, CHANNELS)],
        (1, 5, 4, CHANNELS),
        padding="SAME", stride_w=1, stride_h=1,
    )  # fmt: skip


def _check(m: ModelMaker, x: np.ndarray, device: str, max_object: int, **options):
    model = m.build()
    delegate = clgpu_delegate.load(device=device, max_object=max_object, **options)
    interpreter = make_interpreter("auto", model, [delegate])
    got = run_interpreter(interpreter, [x])
    limit = LIMITS[options.get("precision", "fp32")]
    assert_close(got, run_reference(model, [x]), limit)
    report = delegate.explain()
    assert all(node.claimed for node in report.nodes)
    return report


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_dense_layer_in_parts(device, rng, precision, bias, transposed):
    m = ModelMaker()
    m.output(_dense(m, rng, m.input("x", (3, DEPTH)), bias, transposed))
    x = rng.standard_normal((3, DEPTH)).astype(np.float32)
    report = _check(m, x, device, CHANNELS * DEPTH, precision=precision)
    # Parts of 16 and 48 channels; nothing is joined by a copy.
    assert report.partitions[0].launches == (13 if precision == "fp32" else 5)


@pytest.mark.parametrize("taps", [(1, 1), (3, 3), (5, 1)])
def test_convolution_in_parts(device, rng, precision, taps):
    m = ModelMaker()
    m.output(_convolution(m, rng, m.input("x", (1, 5, 4, DEPTH)), *taps))
    x = rng.standard_normal((1, 5, 4, DEPTH)).astype(np.float32)
    size = CHANNELS * DEPTH * taps[0] * taps[1] * 4
    report = _check(
        m, x, device, max(size // 2, 32768), precision=precision, engines={"conv2d": "direct|auto"}
    )
    assert report.partitions[0].launches >= 2


def test_what_is_added_to_the_result_is_added_to_its_parts(device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 5, 4, DEPTH))
    first = m.op("RELU", [_convolution(m, rng, x, 1, 1)], (1, 5, 4, CHANNELS))
    m.output(m.op("ADD", [_convolution(m, rng, x, 3, 3), first], (1, 5, 4, CHANNELS)))
    image = rng.standard_normal((1, 5, 4, DEPTH)).astype(np.float32)
    _check(m, image, device, CHANNELS * DEPTH * 18)


def test_integers_in_parts_have_the_scales_of_their_channels(device, rng):
    case = Case((1, 5, 4, DEPTH), (CHANNELS, 3, 3, DEPTH))
    model = quantized_convolution(rng, case, np.int8, per_channel=True)
    x = random_integers(rng, case.image, np.int8)
    delegate = clgpu_delegate.load(device=device, max_object=CHANNELS * DEPTH * 9 // 2)
    (got,) = run_interpreter(make_interpreter("auto", model, [delegate]), [x])
    np.testing.assert_array_equal(got, run_reference(model, [x])[0])
    assert delegate.explain().partitions[0].launches >= 2


def test_grouped_convolution_stays_whole(device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 5, 4, DEPTH))
    weights = _constant(m, rng, CHANNELS, 3, 3, DEPTH // 2)
    m.output(m.op("CONV_2D", [x, weights, _constant(m, rng, CHANNELS)], (1, 5, 4, CHANNELS),
                  padding="SAME", stride_w=1, stride_h=1))  # fmt: skip
    image = rng.standard_normal((1, 5, 4, DEPTH)).astype(np.float32)
    report = _check(m, image, device, CHANNELS * DEPTH * 24, engines={"conv2d": "direct|auto"})
    assert report.partitions[0].launches == 1


@pytest.mark.parametrize("stored", ["int8", "int4", "blocks"])
def test_quantised_layers_of_floats_in_parts(device, rng, precision, stored):
    """Each part has the scales of its own channels."""
    m = ModelMaker()
    shape = (CHANNELS, DEPTH)
    x = m.input("x", (3, DEPTH))
    scales = rng.uniform(0.01, 0.1, CHANNELS).astype(np.float32)
    if stored == "int8":
        values = rng.integers(-128, 128, shape)
        weights = m.constant(values.astype(np.int8), quantization=Quantization(scales, 0, 0))
    else:
        values = rng.integers(-8, 8, shape)
        quantization: Quantization | Blocks = Quantization(scales, 0, 0)
        if stored == "blocks":
            scales = rng.uniform(0.01, 0.1, (CHANNELS, DEPTH // 32)).astype(np.float16)
            quantization = Blocks(m.constant(scales), 32)
        weights = m.int4_constant(values, quantization)
    operands = [x, weights, _constant(m, rng, CHANNELS)]
    m.output(m.op("FULLY_CONNECTED", operands, (3, CHANNELS), version=12))
    model, given = m.build(), rng.standard_normal((3, DEPTH)).astype(np.float32)
    outputs = []
    for max_object in (None, 4096):
        delegate = clgpu_delegate.load(device=device, max_object=max_object, precision=precision)
        interpreter = make_interpreter("ai_edge_litert", model, [delegate])
        outputs.append(run_interpreter(interpreter, [given]))
        report = delegate.explain()
        assert all(node.claimed for node in report.nodes)
    limit = LIMITS[precision]
    assert_close(outputs[1], outputs[0], limit)
    rows = scales.astype(np.float64).reshape(CHANNELS, -1)
    real = values * np.repeat(rows, DEPTH // rows.shape[1], axis=1)
    bias = run_interpreter(make_interpreter("ai_edge_litert", model, []), [0 * given])[0]
    assert relative_l2(outputs[1][0], given.astype(np.float64) @ real.T + bias) <= limit
    assert report.partitions[0].launches >= CHANNELS // 64


@pytest.mark.parametrize("op", ["GATHER", "EMBEDDING_LOOKUP"])
@pytest.mark.parametrize("stored", ["float32", "float16", "int8", "blocks"])
def test_rows_of_a_table_in_parts(device, rng, precision, op, stored):
    """Rows come from any part, also the last one, which is smaller; others give zeros."""
    if op == "GATHER" and stored in ("int8", "blocks"):
        pytest.skip("gives floats of floats only")
    m = ModelMaker()
    shape = (101, 64)
    ids = m.input("ids", (7,), np.int32)
    real = rng.standard_normal(shape)
    if stored == "float16":
        half = m.constant(real.astype(np.float16))
        real = real.astype(np.float16).astype(np.float64)
        table = m.op("DEQUANTIZE", [half], shape, dtype=np.float32, version=3)
    elif stored == "float32":
        real = real.astype(np.float32)
        table = m.constant(real)
    elif stored == "int8":
        scales = rng.uniform(0.01, 0.1, shape[0]).astype(np.float32)
        values = rng.integers(-128, 128, shape).astype(np.int8)
        real = scales[:, None].astype(np.float64) * values
        table = m.constant(values, quantization=Quantization(scales, 0, 0))
    else:
        blocks = rng.uniform(0.01, 0.1, (shape[0], 2)).astype(np.float16)
        values = rng.integers(-8, 8, shape)
        real = np.repeat(blocks.astype(np.float64), 32, axis=1) * values
        table = m.int4_constant(values, Blocks(m.constant(blocks), 32))
    operands, options = ([table, ids], {"axis": 0}) if op == "GATHER" else ([ids, table], {})
    m.output(m.op(op, operands, (7, 64), dtype=np.float32, **options))
    given = np.int32([0, 100, 31, 32, 99, -1, 101])
    wanted = real[np.clip(given, 0, 100)].astype(np.float64)
    wanted[-2:] = 0
    delegate = clgpu_delegate.load(device=device, max_object=8192, precision=precision)
    interpreter = make_interpreter("ai_edge_litert", m.build(), [delegate])
    for order in (given, given[::-1].copy()):
        expected = wanted if order is given else wanted[::-1]
        (found,) = run_interpreter(interpreter, [order])
        assert relative_l2(found, expected) <= LIMITS[precision]
        assert not found[expected == 0].any()
    report = delegate.explain()
    assert all(node.claimed for node in report.nodes)
    assert report.partitions[0].launches > 1

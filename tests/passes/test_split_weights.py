"""Layers whose weights are larger than an object become several, each of some output channels."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.models.comparison import LIMITS, assert_close
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

"""Quantised layers in parts: output channels with their scales, and rows, equal the whole."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.quantized.parameters import (
    add_bias,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)
from tests.runtimes import make_interpreter, run_interpreter, run_reference

CHANNELS, DEPTH = 150, 64


class Layers(ModelMaker):
    """A chain of int8 layers with a scale for each output channel, quantised at random."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.rng = rng
        self.scales = random_quantization(rng, np.int8)
        self.last = self.input("x", shape, np.int8, quantization=self.scales)

    def add(self, op: str, weights: tuple[int, ...], shape: tuple[int, ...], **options) -> None:
        scales = weights_quantization(self.rng, np.int8, weights[0], 0, per_channel=True)
        values = np.maximum(random_integers(self.rng, weights, np.int8), -127)
        bias = add_bias(self, self.rng, np.int8, self.scales, scales, weights[0])
        inputs = [self.last, self.constant(values, quantization=scales), bias]
        depth = int(np.prod(weights[1:]))
        result = output_quantization(self.rng, np.int8, self.scales, scales, depth)
        self.last = self.op(op, inputs, shape, quantization=result, **options)
        self.scales = result

    def check(self, device: str, x: np.ndarray, **options) -> clgpu_delegate.Explanation:
        self.output(self.last)
        model = self.build()
        delegate = clgpu_delegate.load(device=device, warm_up=False, **options)
        interpreter = make_interpreter(op_runtime(), model, [delegate])
        (got,) = run_interpreter(interpreter, [x])
        (want,) = run_reference(model, [x], op_runtime())
        np.testing.assert_array_equal(got, want)
        return delegate.explain()


@pytest.mark.parametrize("op", ["CONV_2D", "FULLY_CONNECTED"])
def test_weights_are_split_with_their_scales(op, device, rng):
    dense = op == "FULLY_CONNECTED"
    shape = (3, DEPTH) if dense else (1, 3, 2, DEPTH)
    layers = Layers(rng, shape)
    weights = (CHANNELS, DEPTH) if dense else (CHANNELS, 1, 1, DEPTH)
    options = {} if dense else {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    layers.add(op, weights, (*shape[:-1], CHANNELS), **options)
    report = layers.check(device, random_integers(rng, shape, np.int8), max_object=32 * DEPTH)
    assert report.partitions[0].launches >= CHANNELS // 32


def test_rows_of_integers_are_streamed(device, rng):
    shape = (1, 24, 24, 8)
    layers = Layers(rng, shape)
    for filters in (24, 24, 4):
        depth = layers.shape(layers.last)[3]
        options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
        layers.add("CONV_2D", (filters, 3, 3, depth), (*shape[:-1], filters), **options)
    x = random_integers(rng, shape, np.int8)
    report = layers.check(device, x, row_band=5)
    assert report.partitions[0].launches > 3


def test_rows_of_element_wise_functions_are_streamed(device, rng):
    shape = (1, 24, 24, 8)
    layers = Layers(rng, shape)
    layers.add("CONV_2D", (24, 3, 3, 8), (1, 24, 24, 24), padding="SAME", stride_h=1, stride_w=1)
    for op in ("QUANTIZE", "ADD", "HARD_SWISH"):
        other = random_quantization(rng, np.int8)
        bias = layers.constant(random_integers(rng, (24,), np.int8), quantization=other)
        inputs = [layers.last, bias] if op == "ADD" else [layers.last]
        layers.scales = random_quantization(rng, np.int8, (0.2, 2.0))
        layers.last = layers.op(op, inputs, (1, 24, 24, 24), quantization=layers.scales)
    layers.add("CONV_2D", (4, 3, 3, 24), (1, 24, 24, 4), padding="SAME", stride_h=1, stride_w=1)
    x = random_integers(rng, shape, np.int8)
    report = layers.check(device, x, row_band=5)
    assert report.partitions[0].launches > 9

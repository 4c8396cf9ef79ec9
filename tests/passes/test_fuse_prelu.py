"""PRELU moves into the layer before it, in the right order with an addition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.models.comparison import LIMITS, assert_close, run_delegated
from tests.ops.harness import check, half_exact, op_runtime
from tests.quantized.dynamic_range import Weights, check_dequantized, check_hybrid
from tests.runtimes import make_interpreter, run_interpreter, run_reference

FUSED, STAYS = "fused into node", "runs on the device"


class Maker:
    """Layers that keep the shape of what they read, behind a NEG: fp16 stores their input in half.

    The number of channels is that of the image; `floats` says what becomes of int8 weights.
    """

    def __init__(self, image: tuple[int, ...], *, stored: str = "float", floats: bool = True):
        self.m = ModelMaker()
        self.rng = np.random.default_rng(4)
        self.image, self.channels = image, image[-1]
        self.stored, self.floats = stored, floats
        self.inputs: list[np.ndarray] = []

    def constant(self, *shape: int) -> int:
        values = half_exact(self.rng.standard_normal(shape).astype(np.float32) * 0.25)
        if self.stored != "half":
            return self.m.constant(values)
        half = self.m.constant(values.astype(np.float16))
        return self.m.op("DEQUANTIZE", [half], shape, dtype=np.float32)

    def weights(self, *shape: int, axis: int = 0) -> int:
        if self.stored != "int8":
            return self.constant(*shape)
        drawn = Weights.draw(self.rng, shape, axis, per_channel=True)
        return drawn.add_to(self.m, floats=self.floats)

    def input(self) -> int:
        self.inputs.append(half_exact(self.rng.standard_normal(self.image).astype(np.float32)))
        x = self.m.input(f"x{len(self.inputs)}", self.image)
        return self.m.op("NEG", [x], self.image)

    def op(self, name: str, inputs: list[int], **options) -> int:
        return self.m.op(name, inputs, self.image, **options)

    def conv(self, x: int, size: int = 3) -> int:
        c = self.channels
        inputs = [x, self.weights(c, size, size, c), self.constant(c)]
        return self.op("CONV_2D", inputs, padding="SAME", stride_w=1, stride_h=1)

    def depthwise(self, x: int) -> int:
        inputs = [x, self.weights(1, 3, 3, self.channels, axis=3), self.constant(self.channels)]
        return self.op(
            "DEPTHWISE_CONV_2D", inputs, padding="SAME", stride_w=1, stride_h=1, depth_multiplier=1
        )

    def transpose_conv(self, x: int) -> int:
        c = self.channels
        shape = self.m.constant(np.array(self.image, np.int32))
        inputs = [shape, self.weights(c, 3, 3, c), x, self.constant(c)]
        options = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "version": 3}
        return self.op("TRANSPOSE_CONV", inputs, dtype=np.float32, **options)

    def dense(self, x: int) -> int:
        inputs = [x, self.weights(self.channels, self.channels), self.constant(self.channels)]
        return self.op("FULLY_CONNECTED", inputs, keep_num_dims=True, version=5)

    def prelu(self, x: int, slopes: tuple[int, ...] | None = None) -> int:
        shape = (1,) * (len(self.image) - 2) + (self.channels,)
        return self.op("PRELU", [x, self.constant(*(slopes or shape))])

    def add(self, x: int, y: int, activation: str = "NONE") -> int:
        return self.op("ADD", [x, y], fused_activation_function=activation)

    def build(self, *outputs: int) -> bytes:
        self.m.output(*(self.op("NEG", [output]) for output in outputs))
        return self.m.build()


Layer = Callable[[Maker, int], int]
LAYERS: dict[str, Layer] = {
    "conv": Maker.conv,
    "depthwise": Maker.depthwise,
    "transpose_conv": Maker.transpose_conv,
    "dense": Maker.dense,
}


def prelu_alone(m: Maker, layer: Layer) -> int:
    return m.prelu(layer(m, m.input()))


def prelu_behind_addition(m: Maker, layer: Layer) -> int:
    return m.prelu(m.add(layer(m, m.input()), m.input()))


def prelu_before_addition(m: Maker, layer: Layer) -> int:
    return m.add(m.input(), m.prelu(layer(m, m.input())))


ORDERS = [prelu_alone, prelu_behind_addition, prelu_before_addition]


def reasons_of(m: Maker, model: bytes) -> list[str]:
    """The places of the nodes but the first and last ones, NEG, and the constants' DEQUANTIZE."""
    nodes = run_delegated("auto", model, m.inputs)[1]["nodes"]
    return [node["reason"] for node in nodes if node["op"] not in ("NEG", "DEQUANTIZE")]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_prelu_is_fused_and_right(layer, order, device, precision):
    m = Maker((2, 5, 6, 8))
    model = m.build(order(m, layer))
    reasons = reasons_of(m, model)
    assert reasons[0] == STAYS
    assert all(reason.startswith(FUSED) for reason in reasons[1:])
    check(model, m.inputs, None, device=device, precision=precision, accumulation=73)


@pytest.mark.parametrize("channels", [5, 18, 70])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_odd_channels(layer, channels, device, precision):
    """Vectors end beyond the last slope."""
    m = Maker((1, 7, 5, channels))
    model = m.build(prelu_behind_addition(m, layer))
    check(model, m.inputs, None, device=device, precision=precision, accumulation=9 * channels)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_slopes_stored_as_half(layer, device, precision):
    m = Maker((1, 5, 6, 12), stored="half")
    model = m.build(prelu_alone(m, layer))
    assert reasons_of(m, model)[1].startswith(FUSED)
    check(model, m.inputs, None, device=device, precision=precision, accumulation=109)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_layers_of_int8_weights(layer, device, precision):
    """Sums are scaled first, or requantised row by row in hybrid arithmetic."""
    m, floats = (Maker((1, 5, 6, 10), stored="int8", floats=floats) for floats in (False, True))
    model, wanted = (made.build(prelu_before_addition(made, layer)) for made in (m, floats))
    assert reasons_of(m, model)[1:] == [f"{FUSED} 2", f"{FUSED} 2"]
    check_dequantized(model, wanted, m.inputs, device=device, precision=precision, accumulation=91)
    if precision == "fp32":
        check_hybrid(model, m.inputs, device=device)


@pytest.mark.parametrize("slopes", [(1,), (1, 1, 1), ()], ids=str)
def test_one_slope_is_that_of_a_leaky_relu(slopes, device, precision):
    """Which any node with an activation has: an addition of two inputs, too."""
    m = Maker((1, 3, 4, 5))
    one = m.m.constant(np.full(slopes, 0.25, np.float32))
    model = m.build(m.op("PRELU", [m.add(m.input(), m.input()), one]))
    assert reasons_of(m, model)[1].startswith(FUSED)
    check(model, m.inputs, None, device=device, precision=precision)


def test_second_prelu_stays(device, precision):
    m = Maker((1, 3, 4, 5))
    model = m.build(m.prelu(m.prelu(m.conv(m.input()))))
    assert reasons_of(m, model)[2] == STAYS
    check(model, m.inputs, None, device=device, precision=precision, accumulation=46)


def test_addition_with_an_activation_stays_behind_prelu(device, precision):
    m = Maker((1, 3, 4, 5))
    model = m.build(m.add(m.input(), m.prelu(m.conv(m.input())), "RELU"))
    assert reasons_of(m, model)[2] == STAYS
    check(model, m.inputs, None, device=device, precision=precision, accumulation=46)


def test_value_that_others_read_stays(device, precision):
    m = Maker((1, 3, 4, 5))
    y = m.conv(m.input())
    model = m.build(m.prelu(y), y)
    assert reasons_of(m, model)[1] == STAYS
    check(model, m.inputs, None, device=device, precision=precision, accumulation=46)


def test_residual_blocks_of_depthwise_and_pointwise(device, precision):
    """As in networks of landmarks: the two convolutions may be one launch."""
    m = Maker((1, 6, 7, 16))
    x = m.prelu(m.conv(m.input(), 1))
    for _ in range(2):
        x = m.prelu(m.add(m.conv(m.depthwise(x), 1), x))
    model = m.build(x)
    check(model, m.inputs, None, device=device, precision=precision, accumulation=300)
    options = {"device": device, "precision": precision}
    nodes = run(m, model, engines={"separable_conv2d": "separate"}, **options).nodes
    pairs = [node for node in nodes if node.op == "DEPTHWISE_CONV_2D"]
    assert all(len(pair.candidates) > 2 for pair in pairs)
    for name in {name for pair in pairs for name in pair.candidates}:
        run(m, model, engines={"separable_conv2d": f"{name}|auto"}, **options)


def run(m: Maker, model: bytes, **options) -> clgpu_delegate.Explanation:
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    got = run_interpreter(interpreter, m.inputs)
    assert_close(got, run_reference(model, m.inputs), LIMITS[options.get("precision", "fp32")])
    return delegate.explain()


@pytest.mark.parametrize("layer", [Maker.conv, Maker.dense])
def test_parts_of_weights_have_their_slopes(layer, device):
    m = Maker((1, 3, 4, 64))
    model = m.build(prelu_alone(m, layer))
    nodes = run(m, model, device=device, max_object=64 << 8).nodes
    assert all(node.claimed for node in nodes)


def test_split_convolution_has_slopes_at_its_end(device, precision):
    """Of a convolution of a concatenation, the last of the terms has the activation."""
    m = Maker((1, 6, 5, 8))
    shape = (1, 6, 5, 16)
    x, y = m.input(), m.input()
    both = m.m.op("CONCATENATION", [x, y], shape, axis=-1)
    weights, bias = m.constant(8, 3, 3, 16), m.constant(8)
    z = m.op("CONV_2D", [both, weights, bias], padding="SAME", stride_w=1, stride_h=1)
    model = m.build(m.prelu(z))
    run(m, model, device=device, precision=precision, engines={"concatenation": "split|auto"})


@pytest.mark.parametrize("option", ["chain", "command_list"])
def test_launches_together(option, device):
    m = Maker((1, 6, 7, 16))
    x = m.prelu(m.conv(m.input(), 1))
    for layer in (Maker.depthwise, Maker.dense, Maker.conv):
        x = m.prelu(m.add(layer(m, x), x))
    run(m, m.build(x), device=device, **{option: "on"})

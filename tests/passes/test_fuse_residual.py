"""Additions move into the convolution or matrix product that computes one of their operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.models.comparison import run_delegated
from tests.ops.harness import check, half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter

IMAGE = (2, 5, 6, 8)
FUSED, STAYS = "fused into node", "runs on the device"


class Maker:
    """Layers of fixed sizes that keep the shape of what they read, on a `ModelMaker`."""

    def __init__(self) -> None:
        self.m = ModelMaker()
        self.rng = np.random.default_rng(4)

    def constant(self, *shape: int) -> int:
        values = self.rng.standard_normal(shape) * 0.25
        return self.m.constant(half_exact(values.astype(np.float32)))

    def conv(self, x: int, activation: str = "NONE", channels: int = 8) -> int:
        weights, bias = self.constant(channels, 3, 3, 8), self.constant(channels)
        shape = (*self.m.shape(x)[:3], channels)
        return self.m.op(
            "CONV_2D", [x, weights, bias], shape, padding="SAME", stride_w=1, stride_h=1,
            fused_activation_function=activation,
        )  # fmt: skip

    def depthwise(self, x: int) -> int:
        weights, bias = self.constant(1, 3, 3, 8), self.constant(8)
        return self.m.op(
            "DEPTHWISE_CONV_2D", [x, weights, bias], self.m.shape(x), padding="SAME",
            stride_w=1, stride_h=1, depth_multiplier=1,
        )  # fmt: skip

    def transpose_conv(self, x: int) -> int:
        shape = self.m.shape(x)
        inputs = [self.m.constant(np.array(shape, np.int32)), self.constant(8, 3, 3, 8), x]
        inputs.append(self.constant(8))
        return self.m.op(
            "TRANSPOSE_CONV", inputs, shape, padding="SAME", stride_w=1, stride_h=1, version=3,
            dtype=np.float32,
        )  # fmt: skip

    def dense(self, x: int) -> int:
        weights, bias = self.constant(8, 8), self.constant(8)
        return self.m.op(
            "FULLY_CONNECTED", [x, weights, bias], self.m.shape(x), keep_num_dims=True, version=5
        )

    def add(self, a: int, b: int, activation: str = "NONE") -> int:
        shape = np.broadcast_shapes(self.m.shape(a), self.m.shape(b))
        return self.m.op("ADD", [a, b], shape, fused_activation_function=activation)

    def input(self, name: str, *shape: int) -> int:
        return self.m.input(name, shape or IMAGE)

    def build(self, *outputs: int) -> bytes:
        self.m.output(*outputs)
        return self.m.build()


def reasons_of(model: bytes, *inputs: np.ndarray) -> list[str]:
    """The reason for the place of each node of a model."""
    nodes = run_delegated("auto", model, inputs)[1]["nodes"]
    return [node["reason"] for node in nodes]


def sample(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return half_exact(rng.standard_normal(shape or IMAGE).astype(np.float32))


Layer = Callable[[Maker, int], int]
LAYERS: dict[str, Layer] = {
    "conv": Maker.conv,
    "depthwise": Maker.depthwise,
    "transpose_conv": Maker.transpose_conv,
    "dense": Maker.dense,
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("first", [True, False], ids=["layer_first", "layer_second"])
@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
def test_addition_of_another_tensor_is_fused(layer, first, activation, device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other")
    y = layer(m, x)
    model = m.build(m.add(*((y, other) if first else (other, y)), activation))
    inputs = [sample(rng), sample(rng)]
    assert reasons_of(model, *inputs)[1] == f"{FUSED} 0"
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_residual_may_be_what_the_layer_reads(layer, device, precision, rng):
    """And all of it lies between other nodes, so that fp16 stores it in half."""
    m = Maker()
    x = m.m.op("NEG", [m.input("x")], IMAGE)
    model = m.build(m.m.op("NEG", [m.add(x, layer(m, x))], IMAGE))
    inputs = [sample(rng)]
    assert reasons_of(model, *inputs)[2] == f"{FUSED} 1"
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_of_two_convolutions_the_later_takes_the_addition(device, precision, rng):
    m = Maker()
    x = m.input("x")
    a, b = m.conv(x), m.conv(x)
    model = m.build(m.add(b, a))
    inputs = [sample(rng)]
    assert reasons_of(model, *inputs) == [STAYS, STAYS, f"{FUSED} 1"]
    check(model, inputs, None, device=device, precision=precision, accumulation=146)


def test_convolution_moves_behind_what_it_adds(device, precision, rng):
    """The residual is computed between the convolution and the addition."""
    m = Maker()
    x = m.input("x")
    y = m.conv(x)
    other = m.m.op("NEG", [m.m.op("NEG", [m.conv(x, "RELU")], IMAGE)], IMAGE)
    model = m.build(m.add(y, other))
    inputs = [sample(rng)]
    assert reasons_of(model, *inputs)[4] == f"{FUSED} 0"
    check(model, inputs, None, device=device, precision=precision, accumulation=146)


def test_activation_behind_the_addition_is_fused_as_well(device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other")
    model = m.build(m.m.op("RELU", [m.add(m.conv(x), other)], IMAGE))
    inputs = [sample(rng), sample(rng)]
    assert all(reason.startswith(FUSED) for reason in reasons_of(model, *inputs)[1:])
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_result_may_be_read_by_several_and_be_an_output(device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other")
    total = m.add(m.conv(x), other)
    model = m.build(total, m.conv(total), m.m.op("NEG", [total], IMAGE))
    inputs = [sample(rng), sample(rng)]
    assert reasons_of(model, *inputs)[1] == f"{FUSED} 0"
    check(model, inputs, None, device=device, precision=precision, accumulation=730)


def test_layers_in_a_row(device, precision, rng):
    """Each addition reads the result of the one before."""
    m = Maker()
    x = m.input("x")
    for _ in range(3):
        x = m.add(x, m.conv(x), "RELU6")
    model = m.build(x)
    inputs = [sample(rng)]
    assert reasons_of(model, *inputs)[1::2] == [f"{FUSED} {i}" for i in (0, 2, 4)]
    check(model, inputs, None, device=device, precision=precision, accumulation=2000)


def test_only_the_first_of_two_additions_is_fused(device, precision, rng):
    m = Maker()
    x, a, b = m.input("x"), m.input("a"), m.input("b")
    model = m.build(m.add(m.add(m.conv(x), a), b))
    inputs = [sample(rng) for _ in range(3)]
    assert reasons_of(model, *inputs) == [STAYS, f"{FUSED} 0", STAYS]
    check(model, inputs, None, device=device, precision=precision, accumulation=74)


def test_convolution_with_an_activation_keeps_it(device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other")
    model = m.build(m.add(m.conv(x, "RELU"), other))
    inputs = [sample(rng), sample(rng)]
    assert reasons_of(model, *inputs)[1] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_convolution_whose_result_is_an_output_keeps_it(device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other")
    y = m.conv(x)
    model = m.build(y, m.add(y, other))
    inputs = [sample(rng), sample(rng)]
    assert reasons_of(model, *inputs)[1] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_convolution_with_another_reader_keeps_its_result(device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other")
    y = m.conv(x)
    model = m.build(m.m.op("NEG", [y], IMAGE), m.add(y, other))
    inputs = [sample(rng), sample(rng)]
    assert reasons_of(model, *inputs)[2] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_twice_the_same_result_is_not_fused(device, precision, rng):
    m = Maker()
    y = m.conv(m.input("x"))
    model = m.build(m.add(y, y))
    inputs = [sample(rng)]
    assert reasons_of(model, *inputs)[1] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


@pytest.mark.parametrize("shape", [(8,), (1, 1, 1, 8), (1, *IMAGE[1:]), (2, 1, 6, 8)], ids=str)
def test_broadcast_is_not_fused(shape, device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other", *shape)
    model = m.build(m.add(m.conv(x), other))
    inputs = [sample(rng), sample(rng, *shape)]
    assert reasons_of(model, *inputs)[1] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def flat_dense(m: Maker, x: int, rows: int) -> int:
    weights, bias = m.constant(8, 8), m.constant(8)
    return m.m.op("FULLY_CONNECTED", [x, weights, bias], (rows, 8))


@pytest.mark.parametrize("shape", [(1, 5, 8), (1, 1, 5, 8)])
def test_rows_without_the_axes_of_1_that_others_have(shape, device, precision, rng):
    """The result of the product gets these axes, as the addition gives them to its result."""
    m = Maker()
    x, y = m.input("x", *shape), m.input("y", *shape)
    total = m.m.op("ADD", [flat_dense(m, x, 5), y], shape)
    model = m.build(m.m.op("MUL", [total, m.constant(*shape)], shape))
    inputs = [sample(rng, *shape), sample(rng, *shape)]
    assert reasons_of(model, *inputs)[1].startswith(FUSED)
    check(model, inputs, None, device=device, precision=precision, accumulation=8)


@pytest.mark.parametrize("shape", [(5, 1, 8), (2, 5, 8), (1, 1, 8)])
def test_other_axes_in_front_are_not_fused(shape, device, precision, rng):
    m = Maker()
    x, y = m.input("x", 5, 8), m.input("y", *shape)
    result = np.broadcast_shapes((5, 8), shape)
    model = m.build(m.m.op("ADD", [flat_dense(m, x, 5), y], result))
    inputs = [sample(rng, 5, 8), sample(rng, *shape)]
    assert reasons_of(model, *inputs)[1] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=8)


def test_more_rows_after_loading(device, rng):
    m = Maker()
    x, y = m.input("x", 1, 5, 8), m.input("y", 1, 5, 8)
    model = m.build(m.m.op("ADD", [flat_dense(m, x, 5), y], (1, 5, 8)))
    inputs = [sample(rng, 1, 7, 8), sample(rng, 1, 7, 8)]
    check(
        model, inputs, None, device=device, precision="fp32", accumulation=8,
        resize={0: (1, 7, 8), 1: (1, 7, 8)},
    )  # fmt: skip


def test_broadcast_of_the_convolution_is_not_fused(device, precision, rng):
    m = Maker()
    x, other = m.input("x", 1, 1, 1, 8), m.input("other")
    model = m.build(m.add(m.conv(x), other))
    inputs = [sample(rng, 1, 1, 1, 8), sample(rng)]
    assert reasons_of(model, *inputs)[1] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_other_operations_are_not_fused(device, precision, rng):
    m = Maker()
    x, other = m.input("x"), m.input("other")
    model = m.build(m.m.op("SUB", [other, m.conv(x)], IMAGE))
    inputs = [sample(rng), sample(rng)]
    assert reasons_of(model, *inputs)[1] == STAYS
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_odd_channels_at_the_edges_of_every_tile(device, precision, rng):
    """Results of a work-item that end in the middle of a vector."""
    m = Maker()
    x, other = m.input("x", 1, 7, 10, 8), m.input("other", 1, 7, 10, 67)
    model = m.build(m.add(m.conv(x, channels=67), other, "RELU"))
    inputs = [sample(rng, 1, 7, 10, 8), sample(rng, 1, 7, 10, 67)]
    assert reasons_of(model, *inputs)[1] == f"{FUSED} 0"
    check(model, inputs, None, device=device, precision=precision, accumulation=73)


def test_other_sizes_after_loading(device, rng):
    m = Maker()
    x = m.input("x")
    model = m.build(m.add(m.conv(x), x))
    larger = (3, 7, 4, 8)
    check(
        model, [sample(rng, *larger)], None, device=device, precision="fp32", accumulation=73,
        resize={0: larger},
    )  # fmt: skip


@pytest.mark.parametrize("verify", ["off", "first"])
def test_one_operand_alone_has_another_size_after_loading(device, verify, rng):
    """Then the addition broadcasts, as it does without the delegate; and back."""
    m = Maker()
    x, other = m.input("x"), m.input("other")
    model = m.build(m.add(m.conv(x), other))
    delegate = clgpu_delegate.load(device=device, verify=verify, warm_up=False)
    delegated = make_interpreter(op_runtime(), model, [delegate])
    stock = make_interpreter(op_runtime(), model, resolver="ref")
    one = (1, *IMAGE[1:])
    for shapes in (IMAGE, IMAGE), (IMAGE, one), (one, IMAGE), (IMAGE, IMAGE):
        inputs = [sample(rng, *shape) for shape in shapes]
        (got,), (wanted,) = (
            run_interpreter(interpreter, inputs, dict(enumerate(shapes)))
            for interpreter in (delegated, stock)
        )
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
        assert all(node.claimed for node in delegate.explain().nodes)

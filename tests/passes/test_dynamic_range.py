"""Floats times int8 weights: dequantised on the fly, or in TFLite's hybrid arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused
from tests.ops.test_conv2d import CASES as CONVOLUTIONS
from tests.ops.test_depthwise_conv2d import CASES as DEPTHWISE
from tests.ops.test_transpose_conv import CASES as TRANSPOSED
from tests.quantized.dynamic_range import Weights, check_dequantized, check_hybrid


def draw(rng, shape):
    return rng.standard_normal(shape).astype(np.float32)


class Product:
    """A model of one product with int8 weights, or with the floats they stand for."""

    def __init__(self, op, image, weights, output, *, bias, shape_first=False, **options):
        self.op, self.image, self.weights, self.bias = op, image, weights, bias
        self.output, self.options, self.shape_first = output, options, shape_first

    def build(self, *, floats):
        m = ModelMaker()
        x = m.input("x", self.image.shape)
        w = self.weights.add_to(m, floats=floats)
        operands = [x, w]
        if self.shape_first:
            operands = [m.constant(np.array(self.output, np.int32)), w, x]
        if self.bias is not None:
            operands.append(m.constant(self.bias))
        m.output(m.op(self.op, operands, self.output, **self.options))
        return m.build()

    def check(self, device, precision, accumulation):
        check_dequantized(
            self.build(floats=False),
            self.build(floats=True),
            [self.image],
            device=device,
            precision=precision,
            accumulation=accumulation,
        )
        if precision == "fp32":
            check_hybrid(self.build(floats=False), [self.image], device=device)


@pytest.mark.parametrize(
    ("name", "per_channel"),
    [
        ("strided", False),
        ("pointwise_strided", True),
        ("tile_edges", True),
        ("deep_groups", True),
    ],
)
def test_convolution(name, per_channel, device, precision, rng):
    case = CONVOLUTIONS[name]
    weights = Weights.draw(rng, case.weights, 0, per_channel=per_channel)
    bias = draw(rng, case.weights[0])
    product = Product(
        "CONV_2D", draw(rng, case.image), weights, case.output, bias=bias, **case.options
    )
    product.check(device, precision, case.depth)


def test_convolution_in_groups_whose_scales_are_equal(device, rng):
    """Stock has a symmetric kernel for equal scales, but none for groups."""
    case = CONVOLUTIONS["deep_groups"]
    filters = case.weights[0]
    weights = Weights.draw(rng, case.weights, 0, per_channel=True)
    weights = weights._replace(quantization=Quantization([0.01] * filters, [0] * filters, 0))
    image, bias = 1 + draw(rng, case.image), draw(rng, (filters,))
    product = Product("CONV_2D", image, weights, case.output, bias=bias, **case.options)
    product.check(device, "fp32", case.depth)


@pytest.mark.parametrize("name", ["one_element", "odd", "four_channels_strided"])
def test_depthwise_convolution(name, device, precision, rng):
    case = DEPTHWISE[name]
    weights = Weights.draw(rng, case.weights, 3, per_channel=True)
    bias = draw(rng, case.weights[3])
    product = Product(
        "DEPTHWISE_CONV_2D", draw(rng, case.image), weights, case.output, bias=bias, **case.options
    )
    product.check(device, precision, int(np.prod(case.filter)))


@pytest.mark.parametrize("name", ["one_element", "doubling", "same_overlapping"])
def test_transposed_convolution(name, device, precision, rng):
    case = TRANSPOSED[name]
    weights = Weights.draw(rng, case.weights, 0, per_channel=True)
    product = Product(
        "TRANSPOSE_CONV",
        draw(rng, case.image),
        weights,
        case.output,
        bias=draw(rng, case.weights[0]) if case.bias else None,
        shape_first=True,
        **case.options,
    )
    product.check(device, precision, case.depth)


@pytest.mark.parametrize(
    ("rows", "cols", "depth", "per_channel", "asymmetric"),
    [
        (1, 5, 65, True, False),
        (9, 33, 40, False, False),
        (3, 7, 40, True, True),
        (1, 9, 2064, True, False),  # whole vectors of 16, in two rounds of a work-group
        (5, 6, 48, False, False),
        (35, 40, 64, True, False),  # widened for tensor cores, where there are such
    ],
)
def test_fully_connected(rows, cols, depth, per_channel, asymmetric, device, precision, rng):
    product = Product(
        "FULLY_CONNECTED",
        draw(rng, (rows, depth)),
        Weights.draw(rng, (cols, depth), 0, per_channel=per_channel),
        (rows, cols),
        bias=draw(rng, cols) if asymmetric else None,
        asymmetric_quantize_inputs=asymmetric,
        fused_activation_function="RELU",
    )
    product.check(device, precision, depth)


@pytest.mark.parametrize(("adj_x", "adj_y"), [(False, False), (False, True), (True, False)])
def test_batch_matmul(adj_x, adj_y, device, precision, rng):
    rows, cols, depth = 5, 18, 33
    options = {"adj_x": adj_x, "adj_y": adj_y, "asymmetric_quantize_inputs": adj_y}
    product = Product(
        "BATCH_MATMUL",
        draw(rng, (3, depth, rows) if adj_x else (3, rows, depth)),
        Weights.draw(rng, (cols, depth) if adj_y else (depth, cols), 0, per_channel=False),
        (3, rows, cols),
        bias=None,
        **options,
    )
    if adj_x:  # columns are not quantised: hybrid arithmetic is for rows
        model, floats = product.build(floats=False), product.build(floats=True)
        for mode in ("dequantize", "hybrid"):
            check_dequantized(
                model, floats, [product.image], device=device, precision=precision,
                accumulation=depth, dynamic_range=mode,
            )  # fmt: skip
    else:
        product.check(device, precision, depth)


def test_additions_and_activations_move_into_both_modes(device, rng):
    """A residual ADD after a convolution, and a PAD before it."""
    image = draw(rng, (1, 6, 7, 4))
    weights = Weights.draw(rng, (4, 3, 3, 4), 0, per_channel=True)

    def build(*, floats):
        m = ModelMaker()
        x = m.input("x", image.shape)
        pads = m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
        padded = m.op("PAD", [x, pads], (1, 8, 9, 4))
        w = weights.add_to(m, floats=floats)
        bias = m.constant(np.ones(4, np.float32))
        options = {"padding": "VALID", "stride_w": 1, "stride_h": 1}
        y = m.op("CONV_2D", [padded, w, bias], image.shape, **options)
        m.output(m.op("ADD", [y, x], image.shape, fused_activation_function="RELU"))
        return m.build()

    check_dequantized(
        build(floats=False), build(floats=True), [image], device=device, precision="fp32",
        accumulation=36,
    )  # fmt: skip
    check_hybrid(build(floats=False), [image], device=device)


def test_weights_that_no_mode_reads_stay_on_the_cpu(device):
    def refused(reason, scale, zero_point=0, weights_type=np.int8):
        m = ModelMaker()
        zeros = zero_point if np.isscalar(scale) else [zero_point] * len(scale)
        w = m.constant(np.ones((4, 8), weights_type), quantization=Quantization(scale, zeros, 1))
        m.output(m.op("FULLY_CONNECTED", [m.input("x", (2, 8)), w], (2, 4)))
        check_refused(m.build(), reason, device=device)

    refused("a zero point other than 0", 0.1, 3)
    refused("supported: axis 0, that of the output channels", [0.1] * 8)
    refused("supported: int8", 0.1, 3, np.uint8)

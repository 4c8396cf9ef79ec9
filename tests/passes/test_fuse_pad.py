"""Padding and cropping of height and width move into convolutions and poolings without padding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.models.comparison import run_delegated
from tests.ops.borders import Border
from tests.ops.harness import check

SHAPE = (1, 6, 5, 3)


def _convolve(m: ModelMaker, x: int, op: str, padding: str = "VALID") -> int:
    rng = np.random.default_rng(2)
    n, h, w, c = m.shape(x)
    if padding == "VALID":
        h, w = h - 2, w - 2
    options = {"depth_multiplier": 1} if op == "DEPTHWISE_CONV_2D" else {}
    filters = c if options else 4
    shape = (1, 3, 3, c) if options else (4, 3, 3, c)
    weights = m.constant(rng.standard_normal(shape, np.float32))
    bias = m.constant(rng.standard_normal(filters, np.float32))
    options |= {"padding": padding, "stride_w": 1, "stride_h": 1}
    return m.op(op, [x, weights, bias], (n, h, w, filters), **options)


def _pad(m: ModelMaker, x: int, paddings: list[list[int]], mode: str | None) -> int:
    padded = tuple(n + sum(p) for n, p in zip(m.shape(x), paddings))
    inputs = [x, m.constant(np.array(paddings, np.int32))]
    return m.op("MIRROR_PAD", inputs, padded, mode=mode) if mode else m.op("PAD", inputs, padded)


def _check(model: bytes, fused: list[int], device: str, precision: str) -> None:
    """Check which nodes have moved into others, and the result against the stock runtime's."""
    x = np.random.default_rng(5).standard_normal(SHAPE).astype(np.float32)
    nodes = run_delegated("auto", model, [x])[1]["nodes"]
    assert [n["index"] for n in nodes if n["fused_into"] is not None] == fused
    check(model, [x], None, device=device, precision=precision, accumulation=36)


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize(
    ("paddings", "padding", "mode", "fused"),
    [
        ([[0, 0], [1, 2], [0, 3], [0, 0]], "VALID", None, True),
        ([[0, 0], [1, 1], [1, 1], [0, 0]], "SAME", None, False),
        ([[0, 0], [1, 1], [1, 1], [0, 1]], "VALID", None, False),
        ([[0, 0], [1, 2], [0, 3], [0, 0]], "VALID", "REFLECT", True),
        ([[0, 0], [1, 1], [1, 1], [0, 0]], "SAME", "REFLECT", False),
        ([[0, 0], [1, 1], [1, 1], [0, 1]], "VALID", "REFLECT", False),
        ([[0, 0], [1, 1], [1, 1], [0, 0]], "VALID", "SYMMETRIC", False),
    ],
)
def test_padding_is_fused_where_it_can_be(op, paddings, padding, mode, fused, device, precision):
    m = ModelMaker()
    m.output(_convolve(m, _pad(m, m.input("x", SHAPE), paddings, mode), op, padding))
    _check(m.build(), [0] if fused else [], device, precision)


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_crop_is_fused_where_it_can_be(op, padding, device, precision):
    m = ModelMaker()
    x = Border((-1, -2), (-1, 0)).add(m, m.input("x", SHAPE))
    m.output(_convolve(m, x, op, padding))
    _check(m.build(), [0] if padding == "VALID" else [], device, precision)


def test_crop_that_depends_on_the_size_is_not_fused(device, precision):
    """It leaves out another number of rows after the input has been resized."""
    m = ModelMaker()
    x = m.input("x", SHAPE)
    begin, end, one = (m.constant(np.array(v, np.int32)) for v in ([0] * 4, [1, 5, 5, 3], [1] * 4))
    x = m.op("STRIDED_SLICE", [x, begin, end, one], (1, 5, 5, 3))
    m.output(_convolve(m, x, "CONV_2D"))
    _check(m.build(), [], device, precision)


@pytest.mark.parametrize(
    ("first", "second", "fused"),
    [
        # What is next to the convolution moves; the one before would read what lies outside.
        ((1, "REFLECT"), (1, None), [1]),
        ((1, None), (1, "REFLECT"), [1]),
        ((2, None), (-1, None), [1]),
        ((-1, None), (1, "REFLECT"), [1]),
    ],
)
def test_one_of_two_borders_is_fused(first, second, fused, device, precision):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    for size, mode in (first, second):
        x = Border((size, size), (size, size), mode is not None).add(m, x)
    m.output(_convolve(m, x, "CONV_2D"))
    _check(m.build(), fused, device, precision)


def test_every_reader_takes_the_padding_or_none_does(device, precision):
    m = ModelMaker()
    x = Border((1, 1), (1, 1)).add(m, m.input("x", SHAPE))
    m.output(_convolve(m, x, "CONV_2D"))
    m.output(_convolve(m, x, "DEPTHWISE_CONV_2D"))
    _check(m.build(), [0], device, precision)
    m = ModelMaker()
    x = Border((1, 1), (1, 1)).add(m, m.input("x", SHAPE))
    m.output(_convolve(m, x, "CONV_2D"))
    m.output(m.op("NEG", [x], m.shape(x)))
    _check(m.build(), [], device, precision)


@pytest.mark.parametrize(("value", "fused"), [(0.0, [0]), (-0.0, []), (1.5, [])])
def test_padding_with_another_value_than_zero_is_not_fused(value, fused, device, precision):
    m = ModelMaker()
    paddings = m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    x = m.op("PADV2", [m.input("x", SHAPE), paddings, m.constant(np.float32(value))], (1, 8, 7, 3))
    m.output(_convolve(m, x, "CONV_2D"))
    _check(m.build(), fused, device, precision)


@pytest.mark.parametrize(
    ("op", "activation", "paddings", "padding", "fused"),
    [
        ("MAX_POOL_2D", "RELU", [[1, 2], [0, 1]], "VALID", True),
        ("MAX_POOL_2D", "RELU6", [[2, 0], [1, 1]], "VALID", True),
        ("MAX_POOL_2D", "RELU", [[1, 1], [1, 1]], "SAME", False),
        ("MAX_POOL_2D", "RELU", [[3, 0], [0, 0]], "VALID", False),  # a window of zeros alone
        ("MAX_POOL_2D", "RELU_N1_TO_1", [[1, 1], [1, 1]], "VALID", False),
        ("MAX_POOL_2D", None, [[1, 1], [1, 1]], "VALID", False),
        ("AVERAGE_POOL_2D", "RELU", [[1, 1], [1, 1]], "VALID", False),  # its zeros count
    ],
)
def test_padding_is_fused_into_the_maximum_of_positive_numbers(
    op, activation, paddings, padding, fused, device, precision
):
    m = ModelMaker()
    x = m.input("x", (1, 6, 5, 4))
    h = m.op("ADD", [x, x], (1, 6, 5, 4), fused_activation_function=activation or "NONE")
    h = _pad(m, h, [[0, 0], *paddings, [0, 0]], None)
    size = [n - 2 if padding == "VALID" else n for n in m.shape(h)[1:3]]
    geometry = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1}
    m.output(m.op(op, [h], (1, *size, 4), padding=padding, **geometry))
    x = np.random.default_rng(5).standard_normal((1, 6, 5, 4)).astype(np.float32)
    nodes = run_delegated("auto", m.build(), [x])[1]["nodes"]
    assert [n["index"] for n in nodes if n["fused_into"] is not None] == ([1] if fused else [])
    check(m.build(), [x], None, device=device, precision=precision, accumulation=9)


def test_padding_is_fused_into_the_maximum_of_integers(device, precision):
    m = ModelMaker()
    x = m.input("x", (1, 6, 5, 4), np.int8, quantization=Quantization(0.05, -100))
    result = {"quantization": Quantization(0.1, -100)}
    h = m.op("ADD", [x, x], (1, 6, 5, 4), fused_activation_function="RELU", **result)
    paddings = m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    h = m.op("PAD", [h, paddings], (1, 8, 7, 4), **result)
    geometry = {"filter_height": 3, "filter_width": 3, "stride_h": 2, "stride_w": 2}
    m.output(m.op("MAX_POOL_2D", [h], (1, 3, 3, 4), padding="VALID", **geometry, **result))
    x = np.random.default_rng(5).integers(-128, 128, (1, 6, 5, 4)).astype(np.int8)
    nodes = run_delegated("auto", m.build(), [x])[1]["nodes"]
    assert [n["index"] for n in nodes if n["fused_into"] is not None] == [1]
    check(m.build(), [x], None, device=device, precision=precision)

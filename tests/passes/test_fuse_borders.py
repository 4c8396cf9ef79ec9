"""QUANTIZE and DEQUANTIZE move into the kernels around them, and no number changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import alternatives, check, op_runtime
from tests.quantized.parameters import (
    add_bias,
    output_quantization,
    random_integers,
    random_quantization,
    weights_quantization,
)
from tests.runtimes import make_interpreter, run_interpreter

APART = {"quantize": "elementwise", "dequantize": "elementwise"}
TYPES = [np.int8, np.uint8, np.int16]
WINDOW = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
IMAGE = (1, 5, 7, 6)
# Channels that fill no vector, and those that fill some and leave none over.
CHANNELS = [7, 32]

Layer = Callable[[ModelMaker, np.random.Generator, int], int]


def floats(m: ModelMaker, rng: np.random.Generator, *shape: int) -> int:
    return m.constant(rng.standard_normal(shape).astype(np.float32) / 4)


def convolution(channels: int, size: int = 3, activation: str = "NONE") -> Layer:
    def layer(m: ModelMaker, rng: np.random.Generator, x: int) -> int:
        shape = m.shape(x)
        inputs = [x, floats(m, rng, channels, size, size, shape[3]), floats(m, rng, channels)]
        shape = (*shape[:3], channels)
        return m.op("CONV_2D", inputs, shape, fused_activation_function=activation, **WINDOW)

    return layer


def depthwise(m: ModelMaker, rng: np.random.Generator, x: int) -> int:
    shape = m.shape(x)
    inputs = [x, floats(m, rng, 1, 3, 3, shape[3]), floats(m, rng, shape[3])]
    return m.op("DEPTHWISE_CONV_2D", inputs, shape, depth_multiplier=1, **WINDOW)


def upsampling(m: ModelMaker, rng: np.random.Generator, x: int) -> int:
    n, h, w, c = m.shape(x)
    shape = (n, 2 * h, 2 * w, 5)
    inputs = [m.constant(np.int32(shape)), floats(m, rng, 5, 3, 3, c), x]
    return m.op("TRANSPOSE_CONV", inputs, shape, padding="SAME", stride_w=2, stride_h=2)


def dense(channels: int) -> Layer:
    def layer(m: ModelMaker, rng: np.random.Generator, x: int) -> int:
        shape = m.shape(x)
        inputs = [x, floats(m, rng, channels, shape[-1]), floats(m, rng, channels)]
        return m.op("FULLY_CONNECTED", inputs, (*shape[:-1], channels), keep_num_dims=True)

    return layer


def product(m: ModelMaker, rng: np.random.Generator, x: int) -> int:
    shape = m.shape(x)
    return m.op("BATCH_MATMUL", [x, floats(m, rng, shape[-1], 5)], (*shape[:-1], 5))


def pool(name: str) -> Layer:
    def layer(m: ModelMaker, _: np.random.Generator, x: int) -> int:
        options = {"filter_width": 3, "filter_height": 3, **WINDOW}
        return m.op(name, [x], m.shape(x), **options)

    return layer


def unary(name: str) -> Layer:
    return lambda m, _, x: m.op(name, [x], m.shape(x))


def binary(name: str, *, one_channel: bool = False) -> Layer:
    def layer(m: ModelMaker, rng: np.random.Generator, x: int) -> int:
        shape = m.shape(x)
        other = floats(m, rng, *((*shape[:-1], 1) if one_channel else shape))
        return m.op(name, [x, other], shape)

    return layer


def mean(m: ModelMaker, _: np.random.Generator, x: int) -> int:
    shape = m.shape(x)
    return m.op("MEAN", [x, m.constant(np.int32([1, 2]))], (shape[0], shape[3]))


def larger(m: ModelMaker, _: np.random.Generator, x: int) -> int:
    n, _, _, c = m.shape(x)
    return m.op("RESIZE_BILINEAR", [x, m.constant(np.int32([9, 11]))], (n, 9, 11, c))


def softmax(m: ModelMaker, _: np.random.Generator, x: int) -> int:
    return m.op("SOFTMAX", [x], m.shape(x), beta=1.0)


READERS: dict[str, Layer] = {
    "max_pool": pool("MAX_POOL_2D"),
    "average_pool": pool("AVERAGE_POOL_2D"),
    "exp": unary("EXP"),
    "add": binary("ADD"),
    "multiply_by_columns": binary("MUL", one_channel=True),
    "mean": mean,
    "resize": larger,
    "softmax": softmax,
}
WRITERS: dict[str, Layer] = {
    **READERS,
    "convolution": convolution(7, activation="RELU6"),
    "convolution_of_vectors": convolution(32),
    "pointwise": convolution(16, 1),
    "depthwise": depthwise,
    "transposed": upsampling,
    "dense": dense(10),
    "dense_of_vectors": dense(32),
    "product": product,
}


def run(
    model: bytes, inputs: Sequence[np.ndarray], engines: dict[str, str], **options: Any
) -> tuple[list[np.ndarray], clgpu_delegate.Explanation]:
    delegate = clgpu_delegate.load(engines=engines, warm_up=False, share_memory=False, **options)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    return run_interpreter(interpreter, inputs), delegate.explain()


def assert_equal(
    model: bytes,
    inputs: Sequence[np.ndarray],
    *,
    steps: int = 0,
    fused: Sequence[int] = (),
    **options: Any,
) -> None:
    """Check that all candidates give what they give with borders of their own.

    Parameters
    ----------
    model, inputs
        What is run.
    steps
        By how much integers may differ.
    fused
        Nodes that have to be fused.
    **options
        Of `clgpu_delegate.load`.
    """
    explanation = run(model, inputs, {}, **options)[1]
    for index in fused:
        node = explanation.nodes[index]
        assert node.fused_into is not None, (node, explanation.steps)
    for family, name in [("softmax", "auto"), *alternatives(explanation)]:
        engines = {family: f"{name}|auto"}
        got, taken = run(model, inputs, engines, **options)
        assert name == "auto" or name in {n.candidate for n in taken.nodes}, (name, taken)
        want = run(model, inputs, {**engines, **APART}, **options)[0]
        for g, w in zip(got, want):
            if steps:
                off = np.abs(g.astype(np.int32) - w.astype(np.int32))
                assert off.max() <= steps, (family, name)
            else:
                np.testing.assert_array_equal(g, w, err_msg=f"{family}={name}")


def rounding_model(layer: Layer, rng: np.random.Generator, dtype: type, image: tuple) -> bytes:
    """Floats, then QUANTIZE."""
    m = ModelMaker()
    y = layer(m, rng, m.input("x", image))
    q = Quantization(
        0.02 if dtype != np.int16 else 1e-4, {np.int8: -5, np.uint8: 121}.get(dtype, 0)
    )
    m.output(m.op("QUANTIZE", [y], m.shape(y), dtype=dtype, quantization=q))
    return m.build()


@pytest.mark.parametrize("name", WRITERS)
def test_kernels_of_floats_write_int8(name, device, rng):
    model = rounding_model(WRITERS[name], rng, np.int8, IMAGE)
    x = rng.standard_normal(IMAGE).astype(np.float32)
    assert_equal(model, [x], fused=[1], device=device)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
@pytest.mark.parametrize("name", ["add", "convolution", "convolution_of_vectors", "depthwise"])
def test_kernels_of_floats_write_other_integers(name, dtype, device, rng):
    model = rounding_model(WRITERS[name], rng, dtype, IMAGE)
    x = rng.standard_normal(IMAGE).astype(np.float32)
    assert_equal(model, [x], fused=[1], device=device)


def test_winograd_writes_int8(device, rng):
    image = (1, 14, 14, 32)
    model = rounding_model(convolution(32), rng, np.int8, image)
    x = rng.standard_normal(image).astype(np.float32) / 4
    assert_equal(model, [x], fused=[1], device=device)


def test_halves_become_int8_without_rounding_to_half(device, rng):
    """The result may be one step from that of a kernel that reads halves."""
    model = rounding_model(convolution(32), rng, np.int8, (1, 14, 14, 32))
    x = rng.standard_normal((1, 14, 14, 32)).astype(np.float16).astype(np.float32) / 4
    assert_equal(model, [x], fused=[1], steps=1, device=device, precision="fp16")


def test_halves_go_away_from_zero_and_ends_are_clamped(device):
    x = np.float32(0.25) * np.float32([-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5, 1e6, -1e6])
    m = ModelMaker()
    y = m.op("NEG", [m.input("x", x.shape)], x.shape)
    m.output(m.op("QUANTIZE", [y], x.shape, dtype=np.int8, quantization=(0.25, 3)))
    expected = np.int8([6, 5, 4, 3, 2, 1, 0, -128, 127])
    check(m.build(), [x], [expected], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", READERS)
def test_kernels_of_floats_read_integers(name, dtype, device, rng):
    q = random_quantization(rng, dtype) if dtype != np.int16 else Quantization(1e-4)
    m = ModelMaker()
    x = m.input("x", IMAGE, dtype, quantization=q)
    y = m.op("DEQUANTIZE", [x], IMAGE, dtype=np.float32)
    m.output(READERS[name](m, rng, y))
    inputs = [random_integers(rng, IMAGE, dtype)]
    explanation = run(m.build(), inputs, {}, device=device)[1]
    assert explanation.nodes[0].fused_into == 1, explanation.steps
    check(m.build(), inputs, None, device=device, precision="fp32", accumulation=35)


def test_reads_and_writes_integers(device, rng):
    m = ModelMaker()
    x = m.input("x", IMAGE, np.int8, quantization=(0.05, 3))
    y = m.op("DEQUANTIZE", [x], IMAGE, dtype=np.float32)
    y = pool("AVERAGE_POOL_2D")(m, rng, y)
    m.output(m.op("QUANTIZE", [y], IMAGE, dtype=np.uint8, quantization=(0.03, 101)))
    inputs = [random_integers(rng, IMAGE, np.int8)]
    assert_equal(m.build(), inputs, fused=[0, 2], device=device)


def integer_convolution(
    m: ModelMaker, rng: np.random.Generator, dtype: type, channels: int, op: str = "CONV_2D"
) -> int:
    src = random_quantization(rng, dtype)
    deep = op == "CONV_2D"
    shape = (channels, 3, 3, IMAGE[3]) if deep else (1, 3, 3, IMAGE[3])
    kind = np.uint8 if dtype == np.uint8 else np.int8
    count, axis = (channels, 0) if deep else (IMAGE[3], 3)
    weights = weights_quantization(rng, kind, count, axis, per_channel=dtype != np.uint8)
    values = random_integers(rng, shape, kind)
    if kind == np.int8:
        values = np.maximum(values, -127)
    x = m.input("x", IMAGE, dtype, quantization=src)
    w = m.constant(values, quantization=weights)
    bias = add_bias(m, rng, dtype, src, weights, count)
    dst = output_quantization(rng, dtype, src, weights, 9 * IMAGE[3] if deep else 9)
    options = dict(WINDOW) if deep else {**WINDOW, "depth_multiplier": 1}
    return m.op(op, [x, w, bias], (*IMAGE[:3], count), quantization=dst, **options)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_integer_convolutions_write_floats(dtype, channels, device, precision, rng):
    m = ModelMaker()
    y = integer_convolution(m, rng, dtype, channels)
    m.output(m.op("DEQUANTIZE", [y], m.shape(y), dtype=np.float32))
    x = random_integers(rng, IMAGE, dtype)
    assert_equal(m.build(), [x], fused=[1], device=device, precision=precision)
    check(m.build(), [x], None, device=device, precision=precision)


@pytest.mark.parametrize("dtype", TYPES)
def test_integer_depthwise_convolutions_write_floats(dtype, device, rng):
    m = ModelMaker()
    y = integer_convolution(m, rng, dtype, 0, "DEPTHWISE_CONV_2D")
    m.output(m.op("DEQUANTIZE", [y], m.shape(y), dtype=np.float32))
    x = random_integers(rng, IMAGE, dtype)
    assert_equal(m.build(), [x], fused=[1], device=device)


def test_a_table_behind_a_product_writes_floats(device, rng):
    m = ModelMaker()
    y = integer_convolution(m, rng, np.int8, 16)
    y = m.op("LOGISTIC", [y], m.shape(y), quantization=(1 / 256, -128))
    m.output(m.op("DEQUANTIZE", [y], m.shape(y), dtype=np.float32))
    x = random_integers(rng, IMAGE, np.int8)
    assert_equal(m.build(), [x], fused=[1, 2], device=device)
    check(m.build(), [x], None, device=device, precision="fp32")


def test_an_addition_behind_a_product_writes_floats(device, rng):
    m = ModelMaker()
    y = integer_convolution(m, rng, np.int8, 16)
    other = m.input("other", m.shape(y), np.int8, quantization=(0.1, 3))
    y = m.op("ADD", [y, other], m.shape(y), quantization=(0.2, 5))
    m.output(m.op("DEQUANTIZE", [y], m.shape(y), dtype=np.float32))
    inputs = [random_integers(rng, IMAGE, np.int8), random_integers(rng, m.shape(other), np.int8)]
    assert_equal(m.build(), inputs, fused=[1, 2], device=device)
    check(m.build(), inputs, None, device=device, precision="fp32")


def integer_dense(m: ModelMaker, rng: np.random.Generator, x: int) -> int:
    w = m.constant(rng.integers(-127, 128, (9, IMAGE[3])).astype(np.int8), quantization=(0.01, 0))
    bias = m.constant(rng.integers(-99, 99, 9).astype(np.int32), quantization=(0.0005, 0))
    return m.op("FULLY_CONNECTED", [x, w, bias], (*IMAGE[:3], 9), keep_num_dims=True,
                quantization=(0.03, 4))  # fmt: skip


INTEGERS: dict[str, Callable[[ModelMaker, np.random.Generator, int], int]] = {
    "dense": integer_dense,
    "max_pool": lambda m, _, x: m.op(
        "MAX_POOL_2D", [x], IMAGE, quantization=(0.05, 3), filter_width=3, filter_height=3, **WINDOW
    ),
    "average_pool": lambda m, _, x: m.op(
        "AVERAGE_POOL_2D", [x], IMAGE, quantization=(0.05, 3), filter_width=3, filter_height=3,
        **WINDOW,
    ),
    "add": lambda m, rng, x: m.op(
        "ADD",
        [x, m.constant(random_integers(rng, IMAGE, np.int8), quantization=(0.1, 1))],
        IMAGE,
        quantization=(0.09, 2),
    ),
    "mean": lambda m, _, x: m.op(
        "MEAN", [x, m.constant(np.int32([1, 2]))], (1, IMAGE[3]), quantization=(0.02, 9)
    ),
    "table": lambda m, _, x: m.op("TANH", [x], IMAGE, quantization=(1 / 128, 0)),
    "resize": lambda m, _, x: m.op(
        "RESIZE_BILINEAR", [x, m.constant(np.int32([9, 11]))], (1, 9, 11, 6),
        quantization=(0.05, 3),
    ),
    "softmax": lambda m, _, x: m.op(
        "SOFTMAX", [x], IMAGE, quantization=(1 / 256, -128), beta=1.0
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_kernels_of_integers_write_floats(name, device, precision, rng):
    m = ModelMaker()
    y = INTEGERS[name](m, rng, m.input("x", IMAGE, np.int8, quantization=(0.05, 3)))
    m.output(m.op("DEQUANTIZE", [y], m.shape(y), dtype=np.float32))
    x = random_integers(rng, IMAGE, np.int8)
    assert_equal(m.build(), [x], fused=[1], device=device, precision=precision)
    check(m.build(), [x], None, device=device, precision=precision)


def test_uint8_is_interpolated_in_float_and_truncated(device, rng):
    m = ModelMaker()
    x = m.input("x", IMAGE, np.uint8, quantization=(0.05, 3))
    size = m.constant(np.int32([9, 11]))
    y = m.op("RESIZE_BILINEAR", [x, size], (1, 9, 11, 6), quantization=(0.05, 3))
    m.output(m.op("DEQUANTIZE", [y], m.shape(y), dtype=np.float32))
    inputs = [random_integers(rng, IMAGE, np.uint8)]
    assert_equal(m.build(), inputs, fused=[1], device=device)


def test_parts_of_a_concatenation_are_rounded_in_place(device, rng):
    m = ModelMaker()
    x = m.input("x", (1, 5, 7, 8))
    parts = []
    for channels in (8, 16):
        y = convolution(channels)(m, rng, x)
        q = Quantization(0.02, -5)
        parts.append(m.op("QUANTIZE", [y], m.shape(y), dtype=np.int8, quantization=q))
    m.output(m.op("CONCATENATION", parts, (1, 5, 7, 24), axis=3, quantization=(0.02, -5)))
    x = rng.standard_normal((1, 5, 7, 8)).astype(np.float32)
    assert_equal(m.build(), [x], fused=[1, 3], device=device)


def test_an_addition_behind_a_concatenation_of_integer_products_stays(device, rng):
    m = ModelMaker()
    q_in = random_quantization(rng, np.int8)
    x = m.input("x", (1, 5, 7, 8), np.int8, quantization=q_in)
    parts = []
    for _ in range(2):
        weights = m.constant(
            random_integers(rng, (16, 1, 1, 8), np.int8), quantization=Quantization(0.01, 0)
        )
        y = m.op(
            "CONV_2D", [x, weights], (1, 5, 7, 16), dtype=np.int8, quantization=(0.1, 3), **WINDOW
        )
        parts.append(m.op("DEQUANTIZE", [y], (1, 5, 7, 16), dtype=np.float32))
    joined = m.op("CONCATENATION", parts, (1, 5, 7, 32), axis=3)
    other = m.input("other", (1, 5, 7, 32))
    m.output(m.op("ADD", [joined, other], (1, 5, 7, 32)))
    inputs = [
        random_integers(rng, (1, 5, 7, 8), np.int8),
        rng.standard_normal((1, 5, 7, 32)).astype(np.float32),
    ]
    assert_equal(m.build(), inputs, fused=[1, 3], device=device)

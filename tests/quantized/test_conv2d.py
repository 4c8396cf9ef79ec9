"""CONV_2D of quantised integers equals the reference kernels."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.convolutions import GEOMETRIES
from tests.ops.harness import EXAMPLES
from tests.ops.test_conv2d import CASES, Case
from tests.quantized.parameters import (
    add_bias,
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
    typed,
    weights_quantization,
)
from tests.runtimes import make_interpreter

# What integer kernels have branches for; the rest is that of the float kernels.
BRANCHES = [
    "one_element", "strided", "pointwise", "pointwise_strided", "valid", "dilated", "tile_edges",
    "deep_groups", "few_pixels_great_depth", "dilated_chunks", "two_panels_of_outputs",
]  # fmt: skip
NAMES = list(dict.fromkeys([*GEOMETRIES, *BRANCHES]))


def build(rng: np.random.Generator, case: Case, dtype: type, *, per_channel: bool) -> bytes:
    m = ModelMaker()
    src = random_quantization(rng, dtype)
    weights_type = np.uint8 if dtype == np.uint8 else np.int8
    channels = case.weights[0]
    weights = weights_quantization(rng, weights_type, channels, 0, per_channel)
    x = m.input("x", case.image, dtype, quantization=src)
    values = random_integers(rng, case.weights, weights_type)
    if weights_type == np.int8:
        values = np.maximum(values, -127)
    w = m.constant(values, quantization=weights)
    bias = add_bias(m, rng, dtype, src, weights, channels)  # the stock kernels demand one
    dst = output_quantization(rng, dtype, src, weights, case.depth)
    m.output(m.op("CONV_2D", [x, w, bias], case.output, quantization=dst, **case.options))
    return m.build()


@pytest.mark.parametrize(("dtype", "name"), typed(NAMES, BRANCHES))
def test_convolution_equals_the_reference(name, dtype, device, rng):
    case = CASES[name]
    per_channel = dtype != np.uint8
    model = build(rng, case, dtype, per_channel=per_channel)
    engines = {} if name in BRANCHES else {"conv2d": "auto"}
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device, engines=engines)


@pytest.mark.parametrize("name", ["strided", "pointwise"])
def test_weights_of_int4_equal_the_reference(name, device, rng):
    case = CASES[name]
    m = ModelMaker()
    src = random_quantization(rng, np.int8)
    channels = case.weights[0]
    weights = weights_quantization(rng, np.int8, channels, 0, per_channel=True)
    w = m.int4_constant(rng.integers(-7, 8, case.weights).astype(np.int8), weights)
    bias = add_bias(m, rng, np.int8, src, weights, channels)
    dst = output_quantization(rng, np.int8, src, weights, case.depth)
    dst = dst._replace(scales=dst.scales / 16)
    x = m.input("x", case.image, np.int8, quantization=src)
    m.output(m.op("CONV_2D", [x, w, bias], case.output, quantization=dst, **case.options))
    check_exact(m.build(), [random_integers(rng, case.image, np.int8)], device=device)


def test_addition_behind_channels_that_fill_no_vector(device, rng):
    case = Case((1, 3, 5, 4), (7, 1, 1, 4))
    scales = [random_quantization(rng, np.int8) for _ in range(4)]
    m = ModelMaker()
    x = m.input("x", case.image, np.int8, quantization=scales[0])
    other = m.input("other", case.output, np.int8, quantization=scales[1])
    weights = weights_quantization(rng, np.int8, 7, 0, per_channel=True)
    w = m.constant(
        np.maximum(random_integers(rng, case.weights, np.int8), -127), quantization=weights
    )
    bias = add_bias(m, rng, np.int8, scales[0], weights, 7)
    y = m.op("CONV_2D", [x, w, bias], case.output, quantization=scales[2], **case.options)
    m.output(m.op("ADD", [y, other], case.output, quantization=scales[3]))
    check_exact(
        m.build(),
        [random_integers(rng, s, np.int8) for s in (case.image, case.output)],
        device=device,
    )


# Large enough for products by four warps, and for pairs of columns.
LARGE = {
    "3x3": Case((1, 61, 47, 48), (136, 3, 3, 48), activation="RELU"),
    "1x1": Case((2, 113, 97, 64), (160, 1, 1, 64)),
    "pairs of columns": Case((4, 121, 222, 3), (72, 7, 7, 3), stride=(2, 2), activation="RELU"),
    "pairs from an odd column": Case((6, 91, 160, 4), (64, 5, 5, 4), stride=(1, 2)),
    "pairs of an odd width": Case((7, 131, 161, 2), (128, 7, 5, 2), (2, 2), padding="VALID"),
}


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("name", LARGE)
def test_large_convolutions_on_tensor_cores(name, added, device, rng):
    if not clgpu_delegate.devices()[int(device)].abilities().mma_s8:
        pytest.skip("only NVIDIA's tensor cores have such kernels")
    case = LARGE[name]
    scales = [random_quantization(rng, np.int8) for _ in range(3)]
    weights = weights_quantization(rng, np.int8, case.weights[0], 0, per_channel=True)
    m = ModelMaker()
    x = m.input("x", case.image, np.int8, quantization=scales[0])
    values = np.maximum(random_integers(rng, case.weights, np.int8), -127)
    w = m.constant(values, quantization=weights)
    bias = add_bias(m, rng, np.int8, scales[0], weights, case.weights[0])
    dst = output_quantization(rng, np.int8, scales[0], weights, case.depth)
    shapes = [case.image]
    y = m.op("CONV_2D", [x, w, bias], case.output, quantization=dst, **case.options)
    if added:
        shapes.append(case.output)
        other = m.input("other", case.output, np.int8, quantization=scales[1])
        total = Quantization(2 * float(np.max(dst.scales)), scales[2].zero_points)
        y = m.op("ADD", [y, other], case.output, quantization=total)
    m.output(y)
    inputs = [random_integers(rng, shape, np.int8) for shape in shapes]
    model = m.build()
    delegate = clgpu_delegate.load(device=device, warm_up=False)
    make_interpreter("auto", model, [delegate]).allocate_tensors()
    node = delegate.explain().nodes[0]  # an addition behind it is part of it
    tiles = [n for n in node.candidates if n.startswith("tensor_")]
    assert tiles
    for tile in tiles:
        check_exact(model, inputs, device=device, engines={"conv2d": tile})


@pytest.mark.parametrize("channels", [4, 16])
def test_images_are_mirrored_by_every_engine(channels, device, rng):
    """The mirrored padding moves into the convolution, as in PyNET."""
    case = Case((1, 9, 8, channels), (8, 3, 3, channels), padding="VALID")
    src, dst = (random_quantization(rng, np.int8) for _ in range(2))
    weights = weights_quantization(rng, np.int8, 8, 0, per_channel=True)
    m = ModelMaker()
    x = m.input("x", (1, 7, 6, channels), np.int8, quantization=src)
    paddings = m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    x = m.op("MIRROR_PAD", [x, paddings], case.image, mode="REFLECT", quantization=src)
    w = m.constant(
        np.maximum(random_integers(rng, case.weights, np.int8), -127), quantization=weights
    )
    bias = add_bias(m, rng, np.int8, src, weights, 8)
    m.output(m.op("CONV_2D", [x, w, bias], case.output, quantization=dst, **case.options))
    check_exact(m.build(), [random_integers(rng, (1, 7, 6, channels), np.int8)], device=device)


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_convolution_of_any_geometry(draw, device, rng):
    small, filters, steps = st.integers(1, 9), st.integers(1, 4), st.integers(1, 3)
    group_in, group_out = draw.draw(st.integers(1, 17)), draw.draw(st.integers(1, 9))
    groups = draw.draw(st.integers(1, 3))
    weights = (groups * group_out, draw.draw(filters), draw.draw(filters), group_in)
    dilation = draw.draw(st.tuples(steps, steps))
    size = [(n - 1) * d + draw.draw(small) for n, d in zip(weights[1:3], dilation)]
    padding = draw.draw(st.sampled_from(["SAME", "VALID"]))
    image = (draw.draw(st.integers(1, 2)), *size, groups * group_in)
    case = Case(image, weights, draw.draw(st.tuples(steps, steps)), dilation, padding)
    dtype = draw.draw(st.sampled_from([np.int8, np.uint8]))
    model = build(rng, case, dtype, per_channel=dtype == np.int8 and draw.draw(st.booleans()))
    check_exact(model, [random_integers(rng, case.image, dtype)], device=device)


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_scales_of_uint8_multiply_as_floats(op, device):
    """1 / 3 * 3 / 2 is 1 / 2 as floats and above it as doubles: halves below 0 go up, not down."""
    image = np.arange(28, 229, dtype=np.uint8).reshape(1, 1, -1, 1)
    scales = float(np.float32(1 / 3)), 1.5
    m = ModelMaker()
    x = m.input("x", image.shape, np.uint8, quantization=Quantization(scales[0], 128))
    one = np.full((1, 1, 1, 1), 129, np.uint8)
    w = m.constant(one, quantization=Quantization(scales[1], 128))
    bias = m.constant(np.zeros(1, np.int32), quantization=Quantization(scales[0] * scales[1]))
    options = {"padding": "VALID", "stride_w": 1, "stride_h": 1}
    if op == "DEPTHWISE_CONV_2D":
        options["depth_multiplier"] = 1
    dst = Quantization(1.0, 128)
    m.output(m.op(op, [x, w, bias], image.shape, quantization=dst, **options))
    check_exact(m.build(), [image], device=device)

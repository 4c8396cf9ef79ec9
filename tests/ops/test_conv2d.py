"""CONV_2D: strides, dilations, paddings, groups, biases, activations, any odd size."""

from __future__ import annotations

from typing import Any, NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.borders import Border
from tests.ops.convolutions import (
    GEOMETRIES,
    Data,
    convolve,
    dilations_of,
    make_data,
    options_of,
    windows,
)
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import assert_close


class Case(NamedTuple):
    """One convolution; weights are (output channels, height, width, input channels of a group)."""

    image: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "NONE"
    bias: bool = True

    @classmethod
    def of(cls, name: str, inputs: int, outputs: int) -> Case:
        """Give a geometry channels."""
        image, size, *rest = GEOMETRIES[name]
        return cls((*image, inputs), (outputs, *size, inputs), *rest)

    @property
    def options(self) -> dict:
        return options_of(self, **dilations_of(self))

    @property
    def output(self) -> tuple[int, int, int, int]:
        (_, height), (_, width) = self.windows
        return (self.image[0], height, width, self.weights[0])

    @property
    def windows(self) -> list[tuple[int, int]]:
        """Zeros before the image and output size, for both axes."""
        return windows(self.image[1:3], self.weights[1:3], *self[2:5])

    @property
    def depth(self) -> int:
        return int(np.prod(self.weights[1:]))


# Input and output channels by geometry.
CHANNELS = {
    "one_element": (1, 1), "odd": (3, 4), "strided": (3, 5), "strided_columns": (3, 6),
    "pointwise": (12, 33), "pointwise_strided": (4, 17), "valid": (5, 7), "dilated": (8, 6),
    "filter_larger_than_image": (4, 8), "high_filter": (4, 3), "doubling": (2, 1), "gaps": (3, 4),
    "wide_rows": (4, 5),
}  # fmt: skip

COMMON = {"odd", "strided_columns", "high_filter", "doubling", "gaps", "wide_rows"}

# The sizes meet the edges of every tile: 4, 6, 8, 16, 32, 64 and 128, with one less or more.
CASES = {
    **{name: Case.of(name, *CHANNELS[name]) for name in GEOMETRIES},
    "tile_edges": Case((1, 13, 5, 17), (65, 3, 3, 17)),
    "several_tiles": Case((3, 7, 7, 20), (130, 1, 3, 20)),
    "deep": Case((1, 4, 5, 34), (18, 3, 3, 34)),
    "deep_groups": Case((1, 5, 3, 64), (14, 3, 3, 32), stride=(1, 2), activation="RELU6"),
    "two_groups": Case((1, 6, 5, 8), (6, 3, 3, 4), padding="VALID"),
    "deep_and_small": Case((1, 4, 5, 264), (24, 3, 3, 264), activation="RELU"),
    "two_channels": Case((1, 9, 8, 2), (40, 5, 5, 2), stride=(2, 1)),
    # Winograd's tiles of 2, 3 and 4 pixels, filters of one block and of several, channels that do
    # not fill a vector, two images.
    "winograd_3x3": Case((2, 9, 6, 18), (7, 3, 3, 18), activation="RELU6"),
    "winograd_3x3_of_quads": Case((2, 9, 6, 8), (12, 3, 3, 8), bias=False),
    "winograd_5x5": Case((2, 5, 11, 9), (9, 5, 5, 9), padding="VALID"),
    "winograd_7x7": Case((1, 9, 10, 10), (6, 7, 7, 10), bias=False),
    "winograd_9x8": Case((1, 10, 10, 8), (4, 9, 8, 8), padding="VALID"),
    # Tiles of 16, 32 and 8 pixels with a rim, channels in chunks of 16, 32 and 64 bytes.
    "few_outputs": Case((1, 19, 37, 16), (3, 3, 3, 16), activation="RELU"),
    "several_chunks": Case((2, 18, 35, 72), (72, 3, 3, 72), padding="VALID"),
    "very_high_filter": Case((1, 10, 17, 34), (34, 9, 1, 34)),
    "few_channels": Case((1, 17, 33, 4), (32, 5, 5, 4), activation="RELU6"),
    "dilated_chunks": Case((1, 20, 18, 40), (16, 3, 3, 40), dilation=(2, 3), bias=False),
    "three_outputs_of_a_point": Case((1, 20, 13, 4), (3, 1, 1, 4)),
    "sixteen_outputs": Case((1, 17, 33, 4), (16, 5, 3, 4), activation="RELU"),
    "some_outputs": Case((2, 9, 33, 8), (21, 2, 5, 8), padding="VALID"),
    "two_panels_of_outputs": Case((1, 9, 17, 8), (70, 3, 3, 8)),
    "groups_of_tiles": Case((1, 6, 9, 16), (72, 3, 3, 8)),
    "few_pixels_great_depth": Case((1, 3, 2, 192), (20, 3, 3, 192)),
    "group_per_channel": Case((1, 5, 5, 3), (6, 3, 3, 1)),
}


def make_model(case: Case, data: Data, *, run_time: bool = False, half: bool = False) -> bytes:
    """One CONV_2D, its weights and bias constant, of type float16, or inputs of the model."""
    m = ModelMaker()
    x = m.input("image", case.image)
    if run_time:
        weights = m.input("weights", case.weights)
        bias = m.input("bias", (case.weights[0],))
    elif half:
        weights, bias = (
            m.op("DEQUANTIZE", [m.constant(a.astype(np.float16))], a.shape, dtype=np.float32)
            for a in data[1:]
        )
    else:
        weights = m.constant(data.weights)
        bias = m.constant(data.bias) if case.bias else None
    inputs = [x, weights] if bias is None else [x, weights, bias]
    m.output(m.op("CONV_2D", inputs, case.output, dtype=np.float32, **case.options))
    return m.build()


def check_case(case: Case, rng: np.random.Generator, **options: Any) -> None:
    data = make_data(case, rng)
    check(
        make_model(case, data),
        [data.image],
        [convolve(*data, case)],
        accumulation=case.depth,
        reference=case.bias,  # the runtime's kernel insists on one
        **options,
    )


@pytest.mark.parametrize("name", [name for name in CASES if name not in COMMON])
def test_conv_2d_is_the_sum_over_the_window(name, device, precision, rng):
    check_case(CASES[name], rng, device=device, precision=precision)


@pytest.mark.parametrize("name", sorted(COMMON))
def test_conv_2d_of_common_geometry(name, device, rng):
    check_case(CASES[name], rng, device=device, precision="fp32", engines={"conv2d": "auto"})


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_conv_2d_of_any_geometry(draw, device, rng):
    small, filters, steps = st.integers(1, 9), st.integers(1, 4), st.integers(1, 3)
    group_in, groups, group_out = (draw.draw(st.integers(1, 5)) for _ in range(3))
    weights = (groups * group_out, draw.draw(filters), draw.draw(filters), group_in)
    dilation = draw.draw(st.tuples(steps, steps))
    least = [(n - 1) * d for n, d in zip(weights[1:3], dilation)]
    case = Case(
        (
            draw.draw(st.integers(1, 2)),
            least[0] + draw.draw(small),
            least[1] + draw.draw(small),
            groups * group_in,
        ),
        weights,
        draw.draw(st.tuples(steps, steps)),
        dilation,
        draw.draw(st.sampled_from(["SAME", "VALID"])),
    )
    data = make_data(case, rng)
    check(
        make_model(case, data),
        [data.image],
        [convolve(*data, case)],
        device=device,
        precision="fp32",
        accumulation=case.depth,
    )


# Borders that move into the convolution, which mirrors or skips rows and columns. The sizes are
# those of the image without its border.
BORDERS = {
    "reflect_3x3": (Case((2, 9, 6, 8), (7, 3, 3, 8)), Border((1, 1), (1, 1))),
    "reflect_5x5": (Case((1, 5, 11, 12), (33, 5, 5, 12)), Border((2, 2), (2, 2))),
    "reflect_7x7": (Case((1, 4, 9, 8), (16, 7, 7, 8)), Border((3, 3), (3, 3))),
    "reflect_9x9": (Case((1, 5, 17, 16), (3, 9, 9, 16)), Border((4, 4), (4, 4))),
    "reflect_uneven": (
        Case((2, 5, 6, 3), (5, 3, 2, 3), stride=(2, 1), activation="RELU"),
        Border((4, 0), (1, 3)),
    ),
    "reflect_dilated": (
        Case((1, 7, 6, 40), (18, 3, 3, 40), dilation=(2, 3)),
        Border((2, 2), (3, 3)),
    ),
    "reflect_groups": (Case((1, 6, 5, 16), (6, 3, 3, 8)), Border((1, 1), (1, 2))),
    "reflect_pointwise": (Case((1, 3, 4, 4), (5, 1, 1, 4)), Border((1, 2), (0, 1))),
    "reflect_one_row": (Case((1, 1, 5, 2), (4, 1, 3, 2)), Border((0, 0), (1, 1))),
    "reflect_deep": (Case((1, 3, 2, 192), (20, 3, 3, 192)), Border((1, 1), (1, 1))),
    "crop_3x3": (Case((2, 14, 11, 8), (7, 3, 3, 8)), Border((-3, -2), (-1, 0))),
    "crop_5x5": (Case((1, 12, 19, 12), (9, 5, 5, 12)), Border((0, -5), (-2, -1))),
    "crop_strided": (
        Case((1, 13, 9, 3), (5, 3, 3, 3), stride=(2, 2), dilation=(1, 2)),
        Border((-4, -1), (0, -1)),
    ),
    "crop_rows_of_points": (Case((1, 9, 5, 32), (20, 1, 1, 32)), Border((-3, -2), (0, 0))),
    "crop_points": (Case((2, 9, 5, 32), (20, 1, 1, 32)), Border((-3, -2), (-1, 0))),
}


def make_bordered(case: Case, border: Border, data: Data) -> bytes:
    """A border of its own, then the convolution, VALID."""
    m = ModelMaker()
    x = border.add(m, m.input("image", case.image))
    case = case._replace(image=border.shape(case.image), padding="VALID")
    inputs = [x, m.constant(data.weights), m.constant(data.bias)]
    m.output(m.op("CONV_2D", inputs, case.output, **case.options))
    return m.build()


def check_bordered(case: Case, border: Border, rng: np.random.Generator, **options: str) -> None:
    data = make_data(case, rng)
    image = border.apply(data.image)
    whole = case._replace(image=image.shape, padding="VALID")
    check(
        make_bordered(case, border, data),
        [data.image],
        [convolve(image, data.weights, data.bias, whole)],
        accumulation=case.depth,
        **options,
    )


@pytest.mark.parametrize(("case", "border"), BORDERS.values(), ids=BORDERS)
def test_conv_2d_with_a_border(case, border, device, precision, rng):
    check_bordered(case, border, rng, device=device, precision=precision)


@pytest.mark.parametrize("name", ["reflect_3x3", "crop_5x5"])
def test_conv_2d_with_a_border_and_factors_rounded_to_tf32(name, device, rng):
    check_bordered(*BORDERS[name], rng, device=device, precision="tf32")


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_conv_2d_of_any_reflected_geometry(draw, device, rng):
    extent, filters, steps = st.integers(2, 9), st.integers(1, 4), st.integers(1, 3)
    group_in, groups, group_out = (draw.draw(st.integers(1, 5)) for _ in range(3))
    weights = (groups * group_out, draw.draw(filters), draw.draw(filters), group_in)
    dilation = draw.draw(st.tuples(steps, steps))
    image = [draw.draw(extent) for _ in range(2)]
    added = [draw.draw(st.tuples(*[st.integers(0, min(4, n - 1))] * 2)) for n in image]
    for axis in range(2):  # room for the filter
        reach = (weights[1 + axis] - 1) * dilation[axis] + 1
        image[axis] += max(0, reach - image[axis] - sum(added[axis]))
    case = Case(
        (draw.draw(st.integers(1, 2)), *image, groups * group_in),
        weights,
        draw.draw(st.tuples(steps, steps)),
        dilation,
    )
    check_bordered(case, Border(*added), rng, device=device, precision="fp32")


def test_reflecting_conv_2d_of_another_size(device, rng):
    """Shapes are checked again, before the border is fused: it may exceed what can be mirrored."""
    case, border = Case((1, 8, 9, 4), (6, 7, 7, 4)), Border((3, 3), (3, 3))
    data = make_data(case, rng)
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), make_bordered(case, border, data), [delegate])
    refused = (
        r"MIRROR_PAD \(node 0\): paddings \(3, 3\) of axis 1 of \[1, 3, 9, 4\] exceed what can be"
    )
    with pytest.raises(RuntimeError, match=refused):
        run_interpreter(interpreter, [data.image], resize={0: (1, 3, 9, 4)})
    image = rng.standard_normal((2, 4, 5, 4)).astype(np.float32)
    (got,) = run_interpreter(interpreter, [image], resize={0: image.shape})
    bordered = border.apply(image)
    want = convolve(bordered, *data[1:], case._replace(image=bordered.shape, padding="VALID"))
    assert_close(got, want, "fp32", case.depth, "at another size")


@pytest.mark.parametrize("outputs", [20, 40])
def test_conv_2d_plus_another_tensor(outputs, device, precision, rng):
    """The epilogue adds a residual, by vectors of channels and by channels."""
    case = Case((2, 9, 18, 8), (outputs, 3, 3, 8))
    data = make_data(case, rng)
    other = half_exact(rng.standard_normal(case.output).astype(np.float32))
    m = ModelMaker()
    x, y = m.input("image", case.image), m.input("other", case.output)
    inputs = [x, m.constant(data.weights), m.constant(data.bias)]
    x = m.op("CONV_2D", inputs, case.output, **case.options)
    m.output(m.op("ADD", [x, y], case.output, fused_activation_function="RELU6"))
    check(
        m.build(),
        [data.image, other],
        [np.clip(convolve(*data, case) + other, 0, 6)],
        device=device,
        precision=precision,
        accumulation=case.depth,
    )


def test_conv_2d_with_weights_of_the_caller(device, precision, rng):
    case = CASES["tile_edges"]
    data = make_data(case, rng)
    data = data._replace(bias=half_exact(data.bias))
    check(
        make_model(case, data, run_time=True),
        list(data),
        [convolve(*data, case)],
        device=device,
        precision=precision,
        accumulation=case.depth,
    )


def test_conv_2d_with_float16_weights(device, precision, rng):
    case = CASES["tile_edges"]
    data = make_data(case, rng)
    data = data._replace(bias=half_exact(data.bias))
    check(
        make_model(case, data, half=True),
        [data.image],
        [convolve(*data, case)],
        device=device,
        precision=precision,
        accumulation=case.depth,
    )


@pytest.mark.parametrize("name", ["deep_and_small", "two_channels", "deep_groups", "several_tiles"])
def test_conv_2d_with_factors_rounded_to_tf32(name, device, rng):
    case = CASES[name]
    image = rng.standard_normal(case.image).astype(np.float32)  # not numbers that TF32 holds
    data = make_data(case, rng)._replace(image=image)
    check(
        make_model(case, data),
        [image],
        [convolve(*data, case)],
        device=device,
        precision="tf32",
        accumulation=case.depth,
    )


# Parts of tiles of 64 and 128 pixels and channels.
LARGE = {
    "3x3": Case((1, 61, 47, 48), (136, 3, 3, 48), activation="RELU"),
    "1x1": Case((2, 113, 97, 64), (160, 1, 1, 64)),
    "strides": Case((1, 121, 93, 32), (104, 5, 3, 32), stride=(2, 1), padding="VALID"),
    "split": Case((1, 24, 23, 512), (256, 3, 3, 512)),
    "pairs of columns": Case((4, 121, 222, 3), (72, 7, 7, 3), stride=(2, 2), activation="RELU"),
    "pairs from an odd column": Case((6, 91, 160, 4), (64, 5, 5, 4), stride=(1, 2)),
    "pairs of an odd width": Case((7, 131, 161, 2), (128, 7, 5, 2), (2, 2), padding="VALID"),
}


@pytest.mark.parametrize("name", LARGE)
def test_conv_2d_large_enough_for_products_by_four_warps(name, device, rng):
    if not clgpu_delegate.devices()[int(device)].abilities().wgmma:
        pytest.skip("only NVIDIA's Hopper has products by four warps")
    case = LARGE[name]
    data = make_data(case, rng)
    check(
        make_model(case, data),
        [data.image],
        [convolve(*data, case)],
        device=device,
        precision="fp16",
        accumulation=case.depth,
    )


# For tiles of 32 and 64 pixels and channels whose operands go to registers.
MIDDLE = {
    "strides": Case((1, 63, 81, 64), (104, 3, 3, 64), stride=(2, 2), activation="RELU"),
    "dilated": Case((1, 29, 31, 64), (190, 3, 3, 64), dilation=(2, 3)),
    "groups": Case((1, 29, 31, 136), (208, 3, 3, 68), padding="VALID"),
    "1x1": Case((1, 41, 43, 200), (188, 1, 1, 200), activation="RELU6"),
}


def tiles_of_registers(delegate: clgpu_delegate.Delegate) -> list[str]:
    """Names of the candidates of a model's last node."""
    return [n for n in delegate.explain().nodes[-1].candidates if n.endswith("_registers")]


@pytest.mark.parametrize("precision", ["fp16", "tf32"])
@pytest.mark.parametrize("name", MIDDLE)
def test_conv_2d_whose_operands_go_to_registers(name, precision, device, rng):
    abilities = clgpu_delegate.devices()[int(device)].abilities()
    if not (abilities.mma_f16 and abilities.mma_tf32):
        pytest.skip("only NVIDIA's tensor cores have such kernels")
    case = MIDDLE[name]
    data = make_data(case, rng)
    model = make_model(case, data)
    delegate = clgpu_delegate.load(device=device, precision=precision, warm_up=False)
    make_interpreter(op_runtime(), model, [delegate]).allocate_tensors()
    for tile in tiles_of_registers(delegate):
        check(
            model,
            [data.image],
            [convolve(*data, case)],
            device=device,
            precision=precision,
            accumulation=case.depth,
            engines={"conv2d": tile},
        )


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case((1, 5, 5, 4), (6, 7, 7, 4)), "the filter is 7x7; supported: 3x3"),
        (Case((1, 5, 5, 4), (6, 3, 3, 4), stride=(2, 1)), "the stride is 2x1; supported: 1x1"),
        (Case((1, 7, 7, 4), (6, 3, 3, 4), dilation=(1, 2)), "the dilation is 1x2; supported: 1x1"),
        (Case((1, 5, 5, 4), (6, 3, 3, 2)), "there are 2 groups; supported: 1"),
    ],
)
def test_winograd_says_why_it_cannot(case, reason, device, rng):
    model = make_model(case, make_data(case, rng))
    with pytest.raises(RuntimeError, match=f"CONV_2D.*{reason}"):
        make_interpreter(
            op_runtime(),
            model,
            [clgpu_delegate.load(device=device, engines={"conv2d": "winograd_f4x4_3x3"})],
        )


def test_conv_2d_between_convolutions(device, precision, rng):
    """In fp16 the tensors between nodes are half, unlike the model's input and output."""
    first = Case((1, 7, 6, 4), (20, 1, 1, 4))
    second = Case(first.output, (9, 3, 3, 20))
    third = Case(second.output, (5, 1, 1, 9))
    m = ModelMaker()
    x = m.input("image", first.image)
    image = half_exact(rng.standard_normal(first.image).astype(np.float32))
    expected = image
    for case in (first, second, third):
        # Powers of two: the products are exact, so that only the sums tell the precisions apart.
        weights = np.exp2(rng.integers(-3, 1, case.weights)).astype(np.float32)
        bias = np.zeros(case.weights[0], np.float32)
        inputs = [x, m.constant(weights), m.constant(bias)]
        x = m.op("CONV_2D", inputs, case.output, **case.options)
        expected = convolve(expected, weights, bias, case)
    m.output(x)
    check(
        m.build(),
        [image],
        [expected],
        device=device,
        precision=precision,
        accumulation=first.depth + second.depth + third.depth,
    )


def test_conv_2d_of_another_batch_and_size(device, rng):
    case = CASES["strided"]
    data = make_data(case, rng)
    larger = case._replace(image=(3, 12, 11, 3))
    image = rng.standard_normal(larger.image).astype(np.float32)
    check(
        make_model(case, data),
        [image],
        [convolve(image, data.weights, data.bias, larger)],
        device=device,
        precision="fp32",
        accumulation=case.depth,
        resize={0: larger.image},
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stride_w": 0}, "a stride is below 1"),
        ({"dilation_h_factor": 0}, "a dilation is below 1"),
    ],
)
def test_conv_2d_that_does_not_move_is_refused(options, reason):
    case = Case((1, 5, 5, 4), (6, 3, 3, 4))
    m = ModelMaker()
    inputs = [m.input("image", case.image), m.constant(np.ones(case.weights, np.float32))]
    inputs.append(m.constant(np.zeros(6, np.float32)))
    m.output(m.op("CONV_2D", inputs, case.output, **{**case.options, **options}))
    check_refused(m.build(), reason)


@pytest.mark.parametrize(
    ("image", "weights", "reason"),
    [
        (
            np.zeros((5, 5, 4), np.float32),
            np.ones((6, 3, 3, 4), np.float32),
            "input has rank 3; supported: 4",
        ),
        (
            np.zeros((1, 5, 5, 4), np.float32),
            np.ones((6, 36), np.float32),
            "weights tensor has rank 2; supported: 4",
        ),
        (np.zeros((1, 5, 5, 4), np.int32), np.ones((6, 3, 3, 4), np.float32), "input is int32"),
        (
            np.zeros((1, 5, 5, 4), np.float32),
            np.ones((6, 3, 3, 4), np.int32),
            "weights tensor is int32",
        ),
    ],
)
def test_conv_2d_of_other_operands_is_refused(image, weights, reason):
    m = ModelMaker()
    inputs = [m.input("image", image.shape, image.dtype), m.constant(weights)]
    inputs.append(m.constant(np.zeros(6, np.float32)))
    options = Case((1, 5, 5, 4), (6, 3, 3, 4)).options
    m.output(m.op("CONV_2D", inputs, (1, 5, 5, 6), dtype=image.dtype, **options))
    check_refused(m.build(), reason)

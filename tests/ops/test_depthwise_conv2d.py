"""DEPTHWISE_CONV_2D: strides, dilations, paddings, depth multipliers, any number of channels."""

from __future__ import annotations

from typing import Any, NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

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
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact


class Case(NamedTuple):
    """One convolution; each input channel has `multiplier` output channels."""

    image: tuple[int, int, int, int]
    filter: tuple[int, int]
    multiplier: int = 1
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "NONE"
    bias: bool = True

    @classmethod
    def of(cls, name: str, channels: int, multiplier: int = 1) -> Case:
        """Give a geometry channels."""
        image, size, *rest = GEOMETRIES[name]
        return cls((*image, channels), size, multiplier, *rest)

    @property
    def options(self) -> dict:
        return options_of(self, depth_multiplier=self.multiplier, **dilations_of(self))

    @property
    def weights(self) -> tuple[int, int, int, int]:
        return (1, *self.filter, self.image[3] * self.multiplier)

    @property
    def windows(self) -> list[tuple[int, int]]:
        """Zeros before the image and output size, for both axes."""
        return windows(self.image[1:3], self.filter, *self[3:6])

    @property
    def output(self) -> tuple[int, int, int, int]:
        (_, height), (_, width) = self.windows
        return (self.image[0], height, width, self.weights[3])


# Channels, and the multiplier, by geometry: vectors of 16, 8, 4 and 1.
CHANNELS = {
    "one_element": (1,), "odd": (3,), "strided": (4,), "strided_columns": (3, 5), "pointwise": (4,),
    "pointwise_strided": (8,), "valid": (24,), "dilated": (16,), "filter_larger_than_image": (8,),
    "high_filter": (32,), "doubling": (16,), "gaps": (3,), "wide_rows": (4,),
}  # fmt: skip
COMMON = GEOMETRIES.keys() - {"one_element", "odd", "strided_columns", "high_filter"}
CASES = {
    **{name: Case.of(name, *CHANNELS[name]) for name in GEOMETRIES},
    "four_channels_strided": Case((2, 9, 6, 4), (3, 3), stride=(2, 2)),
    "eight_channels_valid": Case((1, 7, 11, 24), (3, 2), padding="VALID", bias=False),
    "dilated_sixteen_channels": Case((1, 12, 11, 16), (3, 3), dilation=(2, 3)),
    "filter_higher_than_image": Case((1, 2, 3, 8), (7, 5)),
    "multiplied_by_two": Case((1, 6, 5, 8), (3, 3), multiplier=2),
    "multiplied_by_a_vector": Case((1, 5, 6, 3), (3, 2), multiplier=8, stride=(2, 1)),
    "one_channel_multiplied": Case((1, 5, 5, 1), (3, 3), multiplier=7, padding="VALID"),
}


def make_model(case: Case, data: Data, *, run_time: bool = False) -> bytes:
    """One DEPTHWISE_CONV_2D, its weights and bias constant or inputs of the model."""
    m = ModelMaker()
    inputs = [m.input("image", case.image)]
    if run_time:
        inputs += [m.input("weights", case.weights), m.input("bias", (case.weights[3],))]
    else:
        inputs.append(m.constant(data.weights))
        if case.bias:
            inputs.append(m.constant(data.bias))
    m.output(m.op("DEPTHWISE_CONV_2D", inputs, case.output, dtype=np.float32, **case.options))
    return m.build()


def check_case(case: Case, rng: np.random.Generator, **options: Any) -> None:
    data = make_data(case, rng)
    check(
        make_model(case, data),
        [data.image],
        [convolve(*data, case)],
        accumulation=int(np.prod(case.filter)),
        reference=case.bias,  # the runtime's kernel insists on one
        **options,
    )


@pytest.mark.parametrize("name", [name for name in CASES if name not in COMMON])
def test_depthwise_conv_2d_filters_each_channel(name, device, precision, rng):
    check_case(CASES[name], rng, device=device, precision=precision)


@pytest.mark.parametrize("name", sorted(COMMON))
def test_depthwise_conv_2d_of_common_geometry(name, device, rng):
    check_case(
        CASES[name], rng, device=device, precision="fp32", engines={"depthwise_conv2d": "auto"}
    )


# Borders that move into the convolution, which mirrors or skips rows and columns.
BORDERS = {
    "reflect": (Case((2, 6, 7, 16), (3, 3)), Border((1, 1), (1, 1))),
    "reflect_5x5": (Case((1, 5, 9, 6), (5, 5), stride=(2, 1)), Border((4, 2), (2, 3))),
    "reflect_multiplied": (Case((1, 4, 5, 3), (3, 2), 4, dilation=(2, 1)), Border((3, 1), (0, 2))),
    "crop": (Case((2, 9, 8, 8), (3, 3)), Border((-2, -1), (0, -3))),
    "crop_multiplied": (Case((1, 9, 8, 3), (3, 3), 2, stride=(2, 2)), Border((-1, 0), (-1, -1))),
}


@pytest.mark.parametrize(("case", "border"), BORDERS.values(), ids=BORDERS)
def test_depthwise_conv_2d_with_a_border(case, border, device, precision, rng):
    data = make_data(case, rng)
    image = border.apply(data.image)
    whole = case._replace(image=image.shape, padding="VALID")
    m = ModelMaker()
    x = border.add(m, m.input("image", case.image))
    inputs = [x, m.constant(data.weights), m.constant(data.bias)]
    m.output(m.op("DEPTHWISE_CONV_2D", inputs, whole.output, **whole.options))
    check(
        m.build(),
        [data.image],
        [convolve(image, data.weights, data.bias, whole)],
        device=device,
        precision=precision,
        accumulation=int(np.prod(case.filter)),
    )


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_depthwise_conv_2d_of_any_geometry(draw, device, rng):
    small, steps = st.integers(1, 9), st.integers(1, 3)
    filter_size = draw.draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    dilation = draw.draw(st.tuples(steps, steps))
    least = [(n - 1) * d for n, d in zip(filter_size, dilation)]
    case = Case(
        (
            draw.draw(st.integers(1, 2)),
            least[0] + draw.draw(small),
            least[1] + draw.draw(small),
            draw.draw(st.integers(1, 17)),
        ),
        filter_size,
        draw.draw(steps),
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
        accumulation=int(np.prod(filter_size)),
    )


def test_depthwise_conv_2d_with_weights_of_the_caller(device, precision, rng):
    case = CASES["high_filter"]
    data = make_data(case, rng)
    data = data._replace(bias=half_exact(data.bias))
    check(
        make_model(case, data, run_time=True),
        list(data),
        [convolve(*data, case)],
        device=device,
        precision=precision,
        accumulation=int(np.prod(case.filter)),
    )


def test_depthwise_conv_2d_between_convolutions(device, precision, rng):
    """In fp16 the tensors between nodes are half, unlike the model's input and output."""
    case = Case((1, 6, 7, 8), (3, 3))
    m = ModelMaker()
    x = m.input("image", case.image)
    image = half_exact(rng.standard_normal(case.image).astype(np.float32))
    expected = image
    for _ in range(3):
        weights = np.exp2(rng.integers(-3, 1, case.weights)).astype(np.float32)
        bias = np.zeros(case.weights[3], np.float32)
        inputs = [x, m.constant(weights), m.constant(bias)]
        x = m.op("DEPTHWISE_CONV_2D", inputs, case.output, **case.options)
        expected = convolve(expected, weights, bias, case)
    m.output(x)
    check(m.build(), [image], [expected], device=device, precision=precision, accumulation=3 * 9)


def test_depthwise_conv_2d_of_another_batch_and_size(device, rng):
    case = CASES["four_channels_strided"]
    data = make_data(case, rng)
    larger = case._replace(image=(3, 12, 7, 4))
    image = rng.standard_normal(larger.image).astype(np.float32)
    check(
        make_model(case, data),
        [image],
        [convolve(image, data.weights, data.bias, larger)],
        device=device,
        precision="fp32",
        accumulation=int(np.prod(case.filter)),
        resize={0: larger.image},
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stride_h": 0}, "a stride is below 1"),
        ({"dilation_w_factor": 0}, "a dilation is below 1"),
    ],
)
def test_depthwise_conv_2d_that_does_not_move_is_refused(options, reason):
    case = Case((1, 5, 5, 4), (3, 3))
    m = ModelMaker()
    inputs = [m.input("image", case.image), m.constant(np.ones(case.weights, np.float32))]
    inputs.append(m.constant(np.zeros(4, np.float32)))
    m.output(m.op("DEPTHWISE_CONV_2D", inputs, case.output, **{**case.options, **options}))
    check_refused(m.build(), reason)


def test_depthwise_conv_2d_with_integer_weights_is_refused():
    case = Case((1, 5, 5, 4), (3, 3))
    m = ModelMaker()
    inputs = [m.input("image", case.image), m.constant(np.ones(case.weights, np.int32))]
    inputs.append(m.constant(np.zeros(4, np.float32)))
    m.output(m.op("DEPTHWISE_CONV_2D", inputs, case.output, **case.options))
    check_refused(m.build(), "weights tensor is int32; supported: float32")

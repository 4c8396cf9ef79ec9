"""TRANSPOSE_CONV, and Convolution2DTransposeBias of MediaPipe's models."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.convolutions import GEOMETRIES, Data, finished, make_data, options_of
from tests.ops.harness import EXAMPLES, MANY, check, check_refused, half_exact

CUSTOM = "Convolution2DTransposeBias"


class Case(NamedTuple):
    """One transposed convolution; weights are (output channels, height, width, input channels)."""

    image: tuple[int, int, int, int]
    weights: tuple[int, int, int, int]
    stride: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "NONE"
    bias: bool = True
    excess: tuple[int, int] = (0, 0)  # extra size of the output

    @classmethod
    def of(cls, name: str, inputs: int, outputs: int) -> Case:
        """Give a geometry, which must not be dilated, channels."""
        geometry = GEOMETRIES[name]
        image, weights = (*geometry.image, inputs), (outputs, *geometry.filter, inputs)
        return cls(image, weights, geometry.stride, *geometry[4:])

    @property
    def options(self) -> dict:
        return options_of(self)

    @property
    def output(self) -> tuple[int, int, int, int]:
        sizes = []
        for axis in (0, 1):
            size, stride = self.image[1 + axis], self.stride[axis]
            more = max(self.weights[1 + axis] - stride, 0) if self.padding == "VALID" else 0
            sizes.append(size * stride + more + self.excess[axis])
        return (self.image[0], *sizes, self.weights[0])

    @property
    def offsets(self) -> list[int]:
        """Rows and columns that are cut off at the start of the scattered result."""
        if self.padding == "VALID":
            return [0, 0]
        return [
            max(0, (-(-n // s) - 1) * s + f - n) // 2
            for n, s, f in zip(self.output[1:3], self.stride, self.weights[1:3])
        ]

    @property
    def depth(self) -> int:
        return int(np.prod(self.weights[1:]))


# Input and output channels by geometry.
CHANNELS = {
    "one_element": (1, 1), "odd": (3, 4), "strided": (3, 5), "strided_columns": (3, 6),
    "pointwise": (12, 33), "pointwise_strided": (4, 17), "valid": (5, 7),
    "filter_larger_than_image": (4, 8), "high_filter": (4, 3), "doubling": (16, 1), "gaps": (3, 4),
    "wide_rows": (4, 5),
}  # fmt: skip
COMMON = CHANNELS.keys() - {"one_element", "doubling", "gaps", "wide_rows"}
CASES = {
    **{name: Case.of(name, *channels) for name, channels in CHANNELS.items()},
    "same_overlapping": Case((2, 3, 7, 5), (9, 3, 3, 5), (2, 2), activation="RELU"),
    "valid_overlapping": Case((1, 4, 3, 8), (17, 4, 3, 8), (2, 1), "VALID", bias=False),
    "stride_of_one": Case((1, 7, 9, 6), (7, 3, 3, 6)),
    "output_not_a_multiple": Case((1, 4, 3, 4), (3, 3, 3, 4), (2, 2), "SAME", excess=(-1, -1)),
}


def scatter(image: np.ndarray, weights: np.ndarray, bias: np.ndarray | None, case: Case):
    """The transposed convolution in float64: each input element adds its filter to the output."""
    image, weights = image.astype(np.float64), weights.astype(np.float64)
    batch, in_h, in_w, _ = image.shape
    outputs, filter_h, filter_w, _ = weights.shape
    _, height, width, _ = case.output
    top, left = case.offsets
    full = np.zeros(
        (
            batch,
            max((in_h - 1) * case.stride[0] + filter_h, top + height),
            max((in_w - 1) * case.stride[1] + filter_w, left + width),
            outputs,
        )
    )
    for y in range(in_h):
        for x in range(in_w):
            y0, x0 = y * case.stride[0], x * case.stride[1]
            full[:, y0 : y0 + filter_h, x0 : x0 + filter_w] += np.einsum(
                "ni,ohwi->nhwo", image[:, y, x], weights
            )
    return finished(full[:, top : top + height, left : left + width], bias, case.activation)


def make_model(case: Case, data: Data, *, run_time: bool = False) -> bytes:
    """One TRANSPOSE_CONV, its weights constant or an input of the model."""
    m = ModelMaker()
    x = m.input("image", case.image)
    weights = m.input("weights", case.weights) if run_time else m.constant(data.weights)
    inputs = [m.constant(np.array(case.output, np.int32)), weights, x]
    if case.bias:
        inputs.append(m.constant(data.bias))
    version = 3 if case.bias else 1
    m.output(
        m.op(
            "TRANSPOSE_CONV", inputs, case.output, dtype=np.float32, version=version, **case.options
        )
    )
    return m.build()


def make_custom(case: Case, data: Data, options: bytes | None = None, **attributes) -> bytes:
    """One Convolution2DTransposeBias."""
    if options is None:
        options = struct.pack("<3i", 1 + (case.padding == "VALID"), case.stride[1], case.stride[0])
    m = ModelMaker()
    x = m.input("image", case.image, **attributes)
    inputs = [x, m.constant(data.weights), m.constant(data.bias)]
    m.output(m.custom(CUSTOM, inputs, case.output, options, dtype=np.float32))
    return m.build()


def check_case(case: Case, rng: np.random.Generator, **options: Any) -> None:
    data = make_data(case, rng)
    check(
        make_model(case, data),
        [data.image],
        [scatter(*data, case)],
        accumulation=case.depth,
        **options,
    )


@pytest.mark.parametrize("name", [name for name in CASES if name not in COMMON])
def test_transpose_conv_scatters_the_filter(name, device, precision, rng):
    check_case(CASES[name], rng, device=device, precision=precision)


@pytest.mark.parametrize("name", sorted(COMMON))
def test_transpose_conv_of_common_geometry(name, device, rng):
    check_case(
        CASES[name], rng, device=device, precision="fp32", engines={"transpose_conv": "auto"}
    )


@hypothesis.given(draw=st.data())
@hypothesis.settings(max_examples=EXAMPLES)
def test_transpose_conv_of_any_geometry(draw, device, rng):
    size, few, channels = st.integers(1, 9), st.integers(1, 4), st.integers(1, 18)
    image = (draw.draw(st.integers(1, 2)), draw.draw(size), draw.draw(size), draw.draw(channels))
    case = Case(
        image,
        (draw.draw(channels), draw.draw(few), draw.draw(few), image[3]),
        draw.draw(st.tuples(few, few)),
        draw.draw(st.sampled_from(["SAME", "VALID"])),
    )
    data = make_data(case, rng)
    check(
        make_model(case, data),
        [data.image],
        [scatter(*data, case)],
        device=device,
        precision="fp32",
        accumulation=case.depth,
    )


def test_transpose_conv_with_weights_of_the_caller(device, precision, rng):
    case = CASES["same_overlapping"]
    data = make_data(case, rng)
    check(
        make_model(case, data, run_time=True),
        [data.image, data.weights],
        [scatter(*data, case)],
        device=device,
        precision=precision,
        accumulation=case.depth,
    )


def test_transpose_conv_between_others(device, precision, rng):
    """In fp16 the tensors between nodes are half, unlike the model's input and output."""
    cases = [Case((1, 3, 4, 8), (8, 2, 2, 8), (2, 2))]
    for _ in range(2):
        cases.append(Case(cases[-1].output, (8, 2, 2, 8), (1, 1)))
    m = ModelMaker()
    x = m.input("image", cases[0].image)
    image = half_exact(rng.standard_normal(cases[0].image).astype(np.float32))
    expected = image
    for case in cases:
        weights = np.exp2(rng.integers(-3, 1, case.weights)).astype(np.float32)
        inputs = [m.constant(np.array(case.output, np.int32)), m.constant(weights), x]
        x = m.op("TRANSPOSE_CONV", inputs, case.output, dtype=np.float32, **case.options)
        expected = scatter(expected, weights, None, case)
    m.output(x)
    check(
        m.build(),
        [image],
        [expected],
        device=device,
        precision=precision,
        accumulation=sum(case.depth for case in cases),
    )


@pytest.mark.parametrize("name", ["doubling", "same_overlapping", "gaps", "wide_rows"])
def test_custom_transpose_conv_scatters_the_filter(name, device, precision, rng):
    case = CASES[name]._replace(activation="NONE")
    data = make_data(case, rng)
    check(
        make_custom(case, data),
        [data.image],
        [scatter(*data, case)],
        device=device,
        precision=precision,
        accumulation=case.depth,
        reference=False,
    )


def test_custom_transpose_conv_of_another_size(device, rng):
    case = CASES["doubling"]
    data = make_data(case, rng)
    larger = case._replace(image=(2, 6, 9, 16))
    image = rng.standard_normal(larger.image).astype(np.float32)
    check(
        make_custom(case, data),
        [image],
        [scatter(image, data.weights, data.bias, larger)],
        device=device,
        precision="fp32",
        accumulation=case.depth,
        reference=False,
        resize={0: larger.image},
    )


def test_an_output_shape_computed_at_run_time_is_refused(rng):
    case = CASES["doubling"]
    data = make_data(case, rng)
    m = ModelMaker()
    shape = m.input("shape", (MANY,), np.int32)
    inputs = [shape, m.constant(data.weights), m.input("image", case.image)]
    m.output(
        m.op("TRANSPOSE_CONV", inputs, (-1, -1, -1, 1), dtype=np.float32, version=1, **case.options)
    )
    check_refused(m.build(), "the output shape is computed at run time")


@pytest.mark.parametrize("size", [(0, 6), (10, 0)], ids=str)
def test_an_output_shape_without_rows_or_columns_is_refused(size, rng):
    case = CASES["doubling"]
    m = ModelMaker()
    shape = m.constant(np.array([1, *size, 1], np.int32))
    inputs = [shape, m.constant(make_data(case, rng).weights), m.input("image", case.image)]
    m.output(m.op("TRANSPOSE_CONV", inputs, (1, 10, 6, 1), dtype=np.float32, **case.options))
    check_refused(m.build(), "the output shape has a size below 1")


def test_short_custom_options_are_refused(rng):
    case = CASES["doubling"]
    model = make_custom(case, make_data(case, rng), options=b"\1\0\0\0")
    check_refused(model, "the custom options are shorter than 12 bytes")


def test_an_unknown_padding_is_refused(rng):
    case = CASES["doubling"]
    model = make_custom(case, make_data(case, rng), options=struct.pack("<3i", 7, 2, 2))
    check_refused(model, "the padding is 7; supported: 1 (SAME), 2 (VALID)")


def test_a_stride_below_one_is_refused(rng):
    case = CASES["doubling"]
    model = make_custom(case, make_data(case, rng), options=struct.pack("<3i", 1, 0, 2))
    check_refused(model, "a stride is below 1")


def test_an_integer_image_is_refused(rng):
    case = CASES["doubling"]
    model = make_custom(case, make_data(case, rng), dtype=np.int32)
    check_refused(model, "input is int32; supported: float32")


def test_an_image_of_another_rank_is_refused(rng):
    case = CASES["doubling"]
    m = ModelMaker()
    data = make_data(case, rng)
    inputs = [m.input("image", (5, 3, 16)), m.constant(data.weights), m.constant(data.bias)]
    options = struct.pack("<3i", 1, 2, 2)
    m.output(m.custom(CUSTOM, inputs, (10, 6, 1), options, dtype=np.float32))
    check_refused(m.build(), "input has rank 3; supported: 4")

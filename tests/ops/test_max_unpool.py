"""MaxUnpooling2D: of MediaPipe, with places in windows; of LiteRT, with places in images."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact
from tests.ops.test_max_pool_argmax import argmax_pool, options
from tests.ops.test_pool import Case

CASES = [  # of the pooling that is undone
    Case((1, 4, 6, 3), (2, 2), (2, 2), "SAME"),
    Case((2, 6, 9, 4), (2, 3), (2, 3), "VALID"),
]


def unpool(values: np.ndarray, places: np.ndarray, case: Case) -> np.ndarray:
    """Scatter in order, as MediaPipe does: where windows overlap the last one wins."""
    n, h, w, c = values.shape
    dst = np.zeros((n, h * case.filter[0], w * case.filter[1], c))
    before = [
        max(0, ((size - 1) * step + extent - size * extent) // 2)
        for size, step, extent in zip((h, w), case.stride, case.filter)
    ]
    for (b, y, x, k), place in np.ndenumerate(places.astype(int)):
        row = y * case.stride[0] - before[0] + place // case.filter[1]
        column = x * case.stride[1] - before[1] + place % case.filter[1]
        if 0 <= row < dst.shape[1] and 0 <= column < dst.shape[2]:
            dst[b, row, column, k] = values[b, y, x, k]
    return dst


def unpool_model(shape: tuple, case: Case) -> bytes:
    """Of ``-x``, in nodes before and after which fp16 stores tensors in half."""
    wide = (shape[0], shape[1] * case.filter[0], shape[2] * case.filter[1], shape[3])
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", shape)], shape)
    places = m.input("places", shape)
    y = m.custom("MaxUnpooling2D", [h, places], wide, options(case))
    m.output(m.op("NEG", [y], wide))
    return m.build()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_return_to_their_places(device, precision, rng, case):
    x = half_exact(rng.standard_normal(case.shape).astype(np.float32))
    values, indices = argmax_pool(x, case)
    places = indices.astype(np.float32) + np.float32(0.1)
    data = unpool_model(values.shape, case)
    inputs = [values.astype(np.float32), places]
    expected = unpool(values, indices, case)
    check(data, inputs, [expected], device=device, precision=precision, reference=False)


def test_pooling_and_unpooling_keep_the_maxima(device, precision, rng):
    case = Case((1, 4, 6, 3), (2, 2), (2, 2), "SAME")
    m = ModelMaker()
    x = m.input("x", case.shape)
    shape = (1, 2, 3, 3)
    values, places = m.custom("MaxPoolingWithArgmax2D", [x], [shape] * 2, options(case))
    m.output(m.custom("MaxUnpooling2D", [values, places], case.shape, options(case)))
    src = half_exact(rng.standard_normal(case.shape).astype(np.float32))
    maxima = argmax_pool(src, case)[0].repeat(2, axis=1).repeat(2, axis=2)
    expected = np.where(src == maxima, src, 0)
    check(m.build(), [src], [expected], device=device, precision=precision, reference=False)


@hypothesis.given(
    size=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    extent=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)
@hypothesis.settings(max_examples=4 * EXAMPLES)
def test_overlapping_and_distant_windows(device, rng, size, extent, stride):
    case = Case((), extent, stride, "SAME")
    shape = (1, *size, 3)
    x = rng.standard_normal(shape).astype(np.float32)
    places = (rng.integers(0, extent[0] * extent[1], shape) + 0.1).astype(np.float32)
    expected = -unpool(-x, places, case)
    data = unpool_model(shape, case)
    check(data, [x, places], [expected], device=device, precision="fp32", reference=False)


def test_places_outside_of_the_window_are_ignored(device):
    case = Case((), (2, 2), (2, 2), "SAME")
    x = np.float32([1, 2, 3]).reshape(1, 1, 3, 1)
    places = np.float32([-5, 1e6, 3]).reshape(1, 1, 3, 1)
    expected = np.zeros((1, 2, 6, 1))
    expected[0, 1, 5, 0] = 3
    data = unpool_model(x.shape, case)
    check(data, [x, places], [expected], device=device, precision="fp32", reference=False)


@pytest.mark.parametrize("name", ["MaxUnpooling2D", "LiteRtMaxUnpooling2D"])
@pytest.mark.parametrize(
    ("case", "size"),
    [
        (Case((2, 2, 4, 3), (2, 2), (2, 3), "VALID"), (4, 11)),
        (Case((1, 3, 5, 4), (3, 2), (2, 2), "SAME"), (6, 10)),
    ],
)
def test_integer_indices_are_places_in_an_image(name, case, size, device, precision, rng):
    """Of several values for a place the last one counts; indices outside are ignored."""
    batches, channels = case.shape[0], case.shape[3]
    count = size[0] * size[1] * channels
    src = half_exact(rng.standard_normal(case.shape).astype(np.float32))
    indices = rng.integers(0, count, case.shape).astype(np.int32)
    indices[:, 0, 0, :2] = indices[:, 1, 1, :2] = indices[:, 1, 0, :2]
    indices[:, 0, 1, :2] = [-1, count]
    expected = np.zeros((batches, count))
    for (b, *_), value, place in zip(np.ndindex(*case.shape), src.ravel(), indices.ravel()):
        if 0 <= place < count:
            expected[b, place] = value
    shape = (batches, *size, channels)
    m = ModelMaker()
    operands = [m.input("x", case.shape), m.input("indices", case.shape, np.int32)]
    m.output(m.custom(name, operands, shape, options(case)))
    check(
        m.build(), [src, indices], [expected.reshape(shape)],
        device=device, precision=precision, reference=False,
    )  # fmt: skip


def test_strides_of_a_damaged_file_are_refused():
    case = Case((1, 8, 2, 1), (2, 2), (2**30, 1), "SAME")
    m = ModelMaker()
    operands = [m.input("x", case.shape), m.input("indices", case.shape, np.int32)]
    m.output(m.custom("MaxUnpooling2D", operands, case.shape, options(case)))
    check_refused(m.build(), "strides make more than 2147483647 rows or columns")


def test_missing_parameters_are_refused():
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 1))
    m.output(m.custom("MaxUnpooling2D", [x, x], (1, 4, 4, 1), b"\0" * 8))
    check_refused(m.build(), "its custom data holds no pooling parameters")


def test_missing_indices_are_refused():
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 1))
    m.output(m.custom("MaxUnpooling2D", [x], (1, 4, 4, 1), options(CASES[0])))
    check_refused(m.build(), "it has 1 input; the operation takes 2 inputs")


def test_indices_of_another_type_are_refused():
    m = ModelMaker()
    x, i = m.input("x", (1, 2, 2, 1)), m.input("i", (1, 2, 2, 1), np.int64)
    m.output(m.custom("MaxUnpooling2D", [x, i], (1, 4, 4, 1), options(CASES[0])))
    check_refused(m.build(), "the input of indices is int64; supported: float32, int32")

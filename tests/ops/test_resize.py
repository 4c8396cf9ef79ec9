"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, height and width of the result
CASES = [
    ((1, 3, 5, 1), (6, 10)),
    ((2, 5, 7, 3), (3, 4)),
    ((1, 7, 3, 4), (5, 8)),  # whole pixels: vectors, wide units
    ((1, 1, 1, 3), (3, 2)),
    ((1, 4, 5, 2), (1, 1)),
    ((1, 17, 5, 1), (17, 33)),
]
ALIGNMENTS = [(False, False), (True, False), (False, True)]


def _scale(n, size, align_corners):
    if align_corners and size > 1:
        return np.float32(n - 1) / np.float32(size - 1)
    return np.float32(n) / np.float32(size)


def _places(n, size, align_corners, half_pixel_centers):
    """The positions of the result's pixels in the input, in float like the stock kernel."""
    shift = np.float32(0.5 if half_pixel_centers else 0)
    scale = _scale(n, size, align_corners)
    return (np.arange(size, dtype=np.float32) + shift) * scale, shift


def _bilinear(x, size, align_corners, half_pixel_centers):
    x = x.astype(np.float64)
    for axis, n in ((1, size[0]), (2, size[1])):
        last = x.shape[axis] - 1
        places, shift = _places(last + 1, n, align_corners, half_pixel_centers)
        places = places - shift
        low = np.clip(np.floor(places).astype(int), 0, last)
        high = np.clip(np.ceil(places).astype(int), 0, last)
        part = (places - low).reshape(-1, *[1] * (3 - axis))
        x = x.take(low, axis) * (1 - part) + x.take(high, axis) * part
    return x


def _nearest(x, size, align_corners, half_pixel_centers):
    for axis, n in ((1, size[0]), (2, size[1])):
        last = x.shape[axis] - 1
        places, _ = _places(last + 1, n, align_corners, half_pixel_centers)
        places = np.floor(places + np.float32(0.5)) if align_corners else np.floor(places)
        x = x.take(np.clip(places.astype(int), 0, last), axis)
    return x


def _resize(name, size, align_corners=False, half_pixel_centers=False):
    options = {"align_corners": align_corners, "half_pixel_centers": half_pixel_centers}
    resize = _bilinear if name == "RESIZE_BILINEAR" else _nearest

    def add(m, x):
        n, _, _, c = m.shape(x)
        inputs = [x, m.constant(np.array(size, np.int32))]
        return m.op(name, inputs, (n, *size, c), **options)

    return add, lambda x: resize(x, size, **options)


@pytest.mark.parametrize(("align_corners", "half_pixel_centers"), ALIGNMENTS)
@pytest.mark.parametrize(("shape", "size"), CASES)
def test_bilinear_weighs_four_neighbours(
    shape, size, align_corners, half_pixel_centers, rng, device, precision
):
    x = random_array(rng, shape)
    both = _resize("RESIZE_BILINEAR", size, align_corners, half_pixel_centers)
    check_moves(*both, x, device=device, precision=precision, accumulation=4)


@pytest.mark.parametrize(("align_corners", "half_pixel_centers"), [*ALIGNMENTS, (True, True)])
@pytest.mark.parametrize(("shape", "size"), CASES)
def test_nearest_takes_one_neighbour(
    shape, size, align_corners, half_pixel_centers, rng, device, precision
):
    x = random_array(rng, shape)
    both = _resize("RESIZE_NEAREST_NEIGHBOR", size, align_corners, half_pixel_centers)
    check_moves(*both, x, device=device, precision=precision)


def test_bilinear_of_equal_inputs_is_that_value(device, precision):
    x = np.full((1, 5, 7, 3), 1.25, np.float32)
    both = _resize("RESIZE_BILINEAR", (11, 4), half_pixel_centers=True)
    check_moves(*both, x, device=device, precision=precision)


@pytest.mark.parametrize("dtype", TYPES)
def test_nearest_moves_every_type(dtype, rng, device):
    x = random_array(rng, (1, 3, 2, 3), dtype)
    both = _resize("RESIZE_NEAREST_NEIGHBOR", (4, 5))
    # The stock kernel knows fewer types.
    known = dtype in (np.uint8, np.int8, np.int16)
    check_moves(*both, x, device=device, reference=known)


def test_nearest_becomes_half_and_back(rng, device):
    both = _resize("RESIZE_NEAREST_NEIGHBOR", (4, 5))
    check_converts(*both, random_array(rng, (1, 3, 2, 3)), device=device)


def test_bilinear_becomes_half_and_back(rng, device):
    check_converts(
        *_resize("RESIZE_BILINEAR", (4, 5)), random_array(rng, (1, 3, 2, 3)), device=device
    )


@pytest.mark.parametrize("name", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_output_follows_resized_axes(name, rng, device):
    m = ModelMaker()
    add, resize = _resize(name, (4, 6))
    m.output(add(m, m.input("x", (1, 2, 3, 3))))
    value = random_array(rng, (3, 5, 2, 3))
    check(
        m.build(),
        [value],
        [resize(value)],
        device=device,
        precision="fp32",
        accumulation=4,
        resize={0: value.shape},
    )


@given(
    n=st.integers(1, 40),
    size=st.integers(1, 40),
    alignment=st.sampled_from([*ALIGNMENTS, (True, True)]),
)
@settings(max_examples=4 * EXAMPLES)
def test_nearest_rounds_as_the_stock_kernel_does(n, size, alignment, device):
    x = np.arange(n, dtype=np.float32).reshape(1, 1, n, 1)
    both = _resize("RESIZE_NEAREST_NEIGHBOR", (2, size), *alignment)
    check_moves(*both, x, device=device)


def _refused(
    reason, name="RESIZE_BILINEAR", shape=(1, 3, 3, 1), dtype=np.float32, size=(2, 2), **options
):
    m = ModelMaker()
    inputs = [m.input("x", shape, dtype), m.constant(np.array(size, np.int32))]
    m.output(m.op(name, inputs, (1, 2, 2, 1), **options))
    check_refused(m.build(), reason)


def test_bilinear_of_integers_is_refused():
    _refused("input is int32; supported: float32, float16", dtype=np.int32)


def test_input_of_another_rank_is_refused():
    _refused("input has rank 3; supported: 4", shape=(3, 3, 1))


@pytest.mark.parametrize("size", [(0, 2), (2, 0), (2,)], ids=str)
def test_size_of_zero_or_without_a_width_is_refused(size):
    _refused("the new size is not a positive height and width", size=size)


def test_both_alignments_are_refused():
    reason = "align_corners and half_pixel_centers exclude each other"
    _refused(reason, align_corners=True, half_pixel_centers=True)


def test_size_at_run_time_is_refused():
    m = ModelMaker()
    x, size = m.input("x", (1, 3, 3, 1)), m.input("size", (MANY,), np.int32)
    m.output(m.op("RESIZE_NEAREST_NEIGHBOR", [x, size], (1, 2, 2, 1)))
    check_refused(m.build(), "the new size is computed at run time")

"""STRIDED_SLICE and SLICE."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

NEW = np.newaxis
# shape, what numpy would write between brackets
CASES = [
    ((7,), (slice(1, 6, 2),)),
    ((7,), (slice(None, None, -1),)),
    ((7,), (slice(5, None, -2),)),
    ((5, 7), (slice(-3, -1), slice(0, 100))),
    ((5, 8), (slice(1, 3), slice(4, 8))),  # multiples of four: wide units
    ((3, 5, 7), (2,)),
    ((3, 5, 7), (slice(None), -1, slice(6, 1, -3))),
    ((3, 5, 7), (Ellipsis, slice(1, 3))),
    ((3, 5, 7), (0, Ellipsis, 2)),
    ((3, 5, 7), (NEW, slice(1, 3), Ellipsis, NEW)),
    ((3, 5, 7), (slice(0, 2), NEW, slice(None), 3)),
    ((1, 9, 5, 3), (slice(None), slice(None, None, 2), slice(None, None, 2), slice(None))),
    ((2, 3, 2, 3, 2), (slice(None), slice(1, 3), 1, slice(None, None, -1), slice(0, 1))),
]
# shape, begin, size
SLICES = [
    ((7,), (2,), (3,)),
    ((5, 7), (1, 2), (-1, 3)),
    ((3, 5, 8), (0, 1, 4), (-1, 3, 4)),
    ((2, 3, 5, 7), (1, 0, 2, 3), (1, -1, 2, -1)),
]


def _strided(index, shape):
    """The op that numpy's `index` of an array of `shape` stands for."""
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("begin", "end", "ellipsis", "new_axis", "shrink_axis"), 0)
    for i, item in enumerate(index):
        bit, values = 1 << i, (0, 0, 1)
        if item is Ellipsis:
            masks["ellipsis"] |= bit
        elif item is NEW:
            masks["new_axis"] |= bit
        elif isinstance(item, slice):
            masks["begin"] |= bit if item.start is None else 0
            masks["end"] |= bit if item.stop is None else 0
            values = (item.start or 0, item.stop or 0, item.step or 1)
        else:
            masks["shrink_axis"] |= bit
            values = (item, item + 1, 1)
        for into, value in zip((begin, end, strides), values):
            into.append(value)
    result = np.empty(shape, np.bool_)[index].shape
    masks = {f"{name}_mask": mask for name, mask in masks.items()}
    return _strided_raw(begin, end, strides, result, **masks)


def _strided_raw(begin, end, strides, result, **options):
    def add(m, x):
        constants = [m.constant(np.array(v, np.int32)) for v in (begin, end, strides)]
        return m.op("STRIDED_SLICE", [x, *constants], result, **options)

    return add


def _slice(begin, size, dtype=np.int32):
    def add(m, x):
        sizes = zip(m.shape(x), begin, size)
        result = tuple(n - b if s == -1 else s for n, b, s in sizes)
        constants = [m.constant(np.array(v, dtype)) for v in (begin, size)]
        return m.op("SLICE", [x, *constants], result)

    return add


@pytest.mark.parametrize(("shape", "index"), CASES)
def test_strided_slice_is_what_numpy_indexing_is(shape, index, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(_strided(index, shape), lambda x: x[index], x, device=device, precision=precision)


@pytest.mark.parametrize(("shape", "begin", "size"), SLICES)
def test_slice_takes_size_elements_from_begin(shape, begin, size, rng, device, precision):
    index = tuple(slice(b, None if s == -1 else b + s) for b, s in zip(begin, size))
    x = random_array(rng, shape)
    check_moves(_slice(begin, size), lambda x: x[index], x, device=device, precision=precision)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (5, 7), dtype)
    check_moves(_slice((1, 2), (3, 5), np.int64), lambda x: x[1:4, 2:], x, device=device)


def test_float_becomes_half_and_back(rng, device):
    x = random_array(rng, (5, 7))
    check_converts(_slice((1, 2), (3, 5)), lambda x: x[1:4, 2:], x, device=device)


def test_constant_begin_may_have_fewer_bits(rng, device):
    x = random_array(rng, (5, 7))
    index = (slice(1, 4), slice(None, None, 2))

    def add(m, x):
        begin, end, strides = (m.constant(np.int16(v)) for v in ([1, 0], [4, 7], [1, 2]))
        return m.op("STRIDED_SLICE", [x, begin, end, strides], (3, 4))

    check_moves(add, lambda x: x[index], x, device=device, reference=False)


def test_end_may_count_from_begin(rng, device):
    x = random_array(rng, (5, 7))
    add = _strided_raw([1, -4], [3, 2], [1, 1], (3, 2), offset=True)
    check_moves(add, lambda x: x[1:4, 3:5], x, device=device)


def test_six_axes(rng, device):
    shape = (2, 3, 2, 3, 2, 3)
    index = (slice(None), slice(0, 2), slice(1, 2), slice(None, None, -1), 0, slice(2, 3))
    x = random_array(rng, shape)
    check_moves(_strided(index, shape), lambda x: x[index], x, device=device, reference=False)


def _resized(add, want, value, device, reference):
    m = ModelMaker()
    m.output(add(m, m.input("x", (1, 5))))
    resize = {0: value.shape}
    options = {"device": device, "precision": "fp32", "reference": reference}
    check(m.build(), [value], [want], resize=resize, **options)


def test_strided_slice_follows_resized_axes(rng, device):
    value = random_array(rng, (3, 6))
    add = _strided((slice(None), slice(-2, None)), (1, 5))
    _resized(add, value[:, -2:], value, device, reference=True)


def test_slice_follows_resized_axes(rng, device):
    value = random_array(rng, (3, 6))
    # The stock kernel insists on the size in the file.
    _resized(_slice((0, 1), (-1, 3)), value[:, 1:4], value, device, reference=False)


def test_index_outside_of_its_axis_is_refused():
    m = ModelMaker()
    add = _strided_raw([3], [4], [1], (5,), shrink_axis_mask=1)
    m.output(add(m, m.input("x", (3, 5))))
    check_refused(m.build(), "index 3 is outside of an axis of size 3")


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_range_with_any_stride(data, device):
    size = data.draw(st.integers(3, 9))
    step = data.draw(st.integers(-3, 3).filter(bool))
    ends = st.one_of(st.none(), st.integers(-2 * size, 2 * size))
    index = slice(data.draw(ends), data.draw(ends), step)
    x = np.arange(2 * size, dtype=np.float32).reshape(2, size)
    if x[:, index].size == 0:
        index = slice(None, None, step)
    add = _strided((slice(None), index), x.shape)
    check_moves(add, lambda x: x[:, index], x, device=device)


def _refused(begin, end, strides, reason, **options):
    m = ModelMaker()
    m.output(_strided_raw(begin, end, strides, (1, 1), **options)(m, m.input("x", (3, 5))))
    check_refused(m.build(), reason)


def test_stride_of_zero_is_refused():
    _refused([0, 0], [1, 1], [1, 0], "a stride is 0")


def test_more_axes_than_the_input_has_are_refused():
    _refused([0, 0, 0], [1, 1, 1], [1, 1, 1], "begin names more axes than the input has")


def test_lengths_that_differ_are_refused():
    _refused([0, 0], [1, 1], [1], "begin, end and strides differ in length")


def test_two_ellipses_are_refused():
    _refused([0, 0], [1, 1], [1, 1], "there is more than one ellipsis", ellipsis_mask=3)


def test_ellipsis_for_no_axis_is_refused():
    _refused(
        [0, 0, 0], [1, 1, 1], [1, 1, 1], "the ellipsis does not stand for any axis", ellipsis_mask=1
    )


# shape, begins, size
MOVING = [
    ((7,), [(0,), (2,), (4,)], (3,)),
    ((5, 7), [(0, 0), (2, 4), (1, 1)], (3, 3)),
    ((3, 5, 8), [(0, 0, 0), (2, 3, 0)], (1, 2, 8)),  # the last axis whole: wide units
    ((2, 3, 1, 5, 2, 3), [(0, 1, 0, 3, 1, 0)], (2, 2, 1, 2, 1, 3)),
]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("shape", "begins", "size"), MOVING, ids=str)
def test_begin_of_a_slice_may_come_at_run_time(shape, begins, size, dtype, rng, device, precision):
    x = random_array(rng, shape)
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", shape)], shape)
    sizes = m.constant(np.array(size, np.int32))
    if dtype == np.int64:
        sizes = m.constant(np.array(size, np.int64))
    m.output(m.op("SLICE", [h, m.input("begin", (len(shape),), dtype), sizes], size))
    for begin in begins:
        index = tuple(slice(b, b + s) for b, s in zip(begin, size))
        inputs, options = [x, np.array(begin, dtype)], {"device": device, "precision": precision}
        check(m.build(), inputs, [-x[index]], reference=len(shape) < 6, **options)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves_from_a_begin_at_run_time(dtype, rng, device):
    x = random_array(rng, (5, 8), dtype)
    m = ModelMaker()
    operands = [m.input("x", x.shape, dtype), m.input("begin", (2,), np.int32)]
    m.output(m.op("SLICE", [*operands, m.constant(np.array([2, 8], np.int32))], (2, 8)))
    inputs = [x, np.array([3, 0], np.int32)]
    check(m.build(), inputs, [x[3:]], device=device, precision="fp32")


def _indexed(shape, result, strides=None, **masks):
    """STRIDED_SLICE whose begin and end are inputs."""
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", shape)], shape)
    ends = [m.input(name, (len(shape),), np.int32) for name in ("begin", "end")]
    steps = m.constant(np.array(strides or [1] * len(shape), np.int32))
    m.output(m.op("STRIDED_SLICE", [x, *ends, steps], result, **masks))
    return m.build()


@pytest.mark.parametrize("index", [0, 2, 4, -1, -5])
def test_indices_may_come_at_run_time(index, rng, device):
    x = random_array(rng, (3, 5, 7))
    data = _indexed(x.shape, (3, 7), begin_mask=5, end_mask=5, shrink_axis_mask=2)
    begin = np.array([1, index, 2], np.int32)
    want = [-x[:, index]]
    check(data, [x, begin, begin + 1], want, device=device, precision="fp32")


def test_indices_at_run_time_beside_steps_and_new_axes(rng, device):
    x = random_array(rng, (4, 5, 6))
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", x.shape)], x.shape)
    begin, end = (m.input(name, (4,), np.int32) for name in ("begin", "end"))
    strides = m.constant(np.array([1, 1, -1, 2], np.int32))
    masks = {"begin_mask": 12, "end_mask": 12, "new_axis_mask": 2, "shrink_axis_mask": 1}
    m.output(m.op("STRIDED_SLICE", [h, begin, end, strides], (1, 5, 3), **masks))
    inputs = [x, np.array([2, 0, 0, 0], np.int32), np.array([3, 0, 0, 0], np.int32)]
    check(m.build(), inputs, [-x[2, NEW, ::-1, ::2]], device=device, precision="fp32")


@pytest.mark.parametrize(("begin", "first"), [(9, 4), (-9, 0)])
def test_begins_outside_of_their_axis_are_moved_into_it(begin, first, rng, device):
    """The stock runtime stops with an error, or reads what lies beside the tensor."""
    x = random_array(rng, (7, 2))
    m = ModelMaker()
    size = m.constant(np.array([3, 2], np.int32))
    m.output(m.op("SLICE", [m.input("x", x.shape), m.input("begin", (2,), np.int32), size], (3, 2)))
    inputs = [x, np.array([begin, 0], np.int32)]
    want = [x[first : first + 3]]
    check(m.build(), inputs, want, device=device, precision="fp32", reference=False)


def _refused_inputs(runtime, reason, dtype=np.int32, **masks):
    """STRIDED_SLICE with these operands as inputs, the others being constants."""
    m = ModelMaker()
    operands = [m.input("x", (3, 5))]
    for name in ("begin", "end", "strides"):
        one = np.ones(2, dtype)
        operands.append(m.input(name, (2,), dtype) if name in runtime else m.constant(one))
    m.output(m.op("STRIDED_SLICE", operands, (2, 4), **masks))
    check_refused(m.build(), reason)


def test_ranges_that_move_are_refused():
    _refused_inputs(["begin"], "begin is computed at run time")
    _refused_inputs(["begin", "end"], "end is computed at run time")
    _refused_inputs(["begin", "end", "strides"], "the tensor of strides is computed at run time")


def test_rest_from_a_begin_at_run_time_is_refused():
    m = ModelMaker()
    x, begin = m.input("x", (3,)), m.input("begin", (1,), np.int32)
    m.output(m.op("SLICE", [x, begin, m.constant(np.array([-1], np.int32))], (1,)))
    check_refused(m.build(), "begin is computed at run time")


def test_many_sizes_at_run_time_are_refused():
    m = ModelMaker()
    x, size = m.input("x", (1,) * 6), m.input("size", (6,), np.float32)
    begin = m.constant(np.zeros(6, np.int32))
    m.output(m.op("SLICE", [x, begin, size], (1,) * 6))
    check_refused(m.build(), "size is computed at run time")


def test_begins_of_another_type_are_refused():
    m = ModelMaker()
    x, begin = m.input("x", (3,)), m.input("begin", (1,), np.int8)
    m.output(m.op("SLICE", [x, begin, m.constant(np.array([1], np.int32))], (1,)))
    check_refused(m.build(), "begin is int8; supported: int32, int64")


@pytest.mark.parametrize(("begin", "size"), [(-1, 1), (0, -2)])
def test_slice_with_negative_begin_or_size_is_refused(begin, size):
    m = ModelMaker()
    range_ = [m.constant(np.array([v], np.int32)) for v in (begin, size)]
    m.output(m.op("SLICE", [m.input("x", (3,)), *range_], (1,)))
    check_refused(m.build(), "begin or size is negative")


def test_slice_of_another_rank_is_refused():
    m = ModelMaker()
    m.output(_slice((0,), (1,))(m, m.input("x", (3, 1))))
    check_refused(m.build(), "begin and size do not have one value per axis of the input")

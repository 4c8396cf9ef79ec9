"""DEPTH_TO_SPACE, SPACE_TO_DEPTH, BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# n, h, w, c of the tensor with fewer channels, block
BLOCKS = [(1, 2, 4, 1, 2), (3, 3, 6, 5, 3), (2, 10, 4, 4, 2), (1, 3, 5, 2, 1)]
# shape, block, paddings
TO_BATCH = [
    ((1, 4, 6, 1), (2, 2), ((0, 0), (0, 0))),
    ((3, 5, 7, 3), (2, 3), ((1, 0), (2, 3))),
    ((2, 3, 5, 4), (3, 1), ((1, 2), (0, 0))),  # whole pixels: wide units
    ((2, 5, 3), (3,), ((1, 3),)),
]
# shape, block, crops
TO_SPACE = [
    ((4, 2, 3, 1), (2, 2), ((0, 0), (0, 0))),
    ((18, 3, 4, 3), (2, 3), ((1, 2), (2, 0))),
    ((6, 3, 5, 4), (3, 1), ((1, 0), (0, 1))),  # whole pixels: wide units
    ((6, 2, 3), (3,), ((1, 3),)),
]


def _space_to_depth(x, b):
    n, h, w, c = x.shape
    y = x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)
    return y.reshape(n, h // b, w // b, b * b * c)


def _depth_to_space(x, b):
    n, h, w, c = x.shape
    c //= b * b
    y = x.reshape(n, h, w, b, b, c).transpose(0, 1, 3, 2, 4, 5)
    return y.reshape(n, h * b, w * b, c)


def _space_to_batch(x, block, paddings):
    x = np.pad(x, ((0, 0), *paddings, (0, 0)))
    starts = np.ndindex(*block)
    steps = [tuple(slice(s, None, b) for s, b in zip(start, block)) for start in starts]
    return np.concatenate([x[(slice(None), *step)] for step in steps])


def _batch_to_space(x, block, crops):
    spatial = [n * b for n, b in zip(x.shape[1:], block)]
    y = np.empty((x.shape[0] // np.prod(block), *spatial, x.shape[-1]), x.dtype)
    parts = np.split(x, np.prod(block))
    for start, part in zip(np.ndindex(*block), parts):
        y[(slice(None), *(slice(s, None, b) for s, b in zip(start, block)))] = part
    kept = tuple(slice(before, n - after) for n, (before, after) in zip(spatial, crops))
    return y[(slice(None), *kept)]


def _blocks(name, b):
    move = _space_to_depth if name == "SPACE_TO_DEPTH" else _depth_to_space

    def add(m, x):
        result = move(np.empty(m.shape(x), np.bool_), b).shape
        return m.op(name, [x], result, block_size=b)

    return add, lambda x: move(x, b)


def _batches(name, block, margins, dtype=np.int32):
    move = _space_to_batch if name == "SPACE_TO_BATCH_ND" else _batch_to_space

    def add(m, x):
        result = move(np.empty(m.shape(x), np.bool_), block, margins).shape
        constants = [m.constant(np.array(v, dtype)) for v in (block, margins)]
        return m.op(name, [x, *constants], result)

    return add, lambda x: move(x, block, margins)


@pytest.mark.parametrize(("n", "h", "w", "c", "block"), BLOCKS)
def test_blocks_of_space_become_depth(n, h, w, c, block, rng, device, precision):
    h, w = h * block, w * block
    x = random_array(rng, (n, h, w, c))
    check_moves(*_blocks("SPACE_TO_DEPTH", block), x, device=device, precision=precision)


@pytest.mark.parametrize(("n", "h", "w", "c", "block"), BLOCKS)
def test_depth_becomes_blocks_of_space(n, h, w, c, block, rng, device, precision):
    x = random_array(rng, (n, h, w, c * block * block))
    check_moves(*_blocks("DEPTH_TO_SPACE", block), x, device=device, precision=precision)


@pytest.mark.parametrize(("shape", "block", "paddings"), TO_BATCH)
def test_places_in_a_block_become_batches(shape, block, paddings, rng, device, precision):
    x = random_array(rng, shape)
    both = _batches("SPACE_TO_BATCH_ND", block, paddings)
    check_moves(*both, x, device=device, precision=precision)


@pytest.mark.parametrize(("shape", "block", "crops"), TO_SPACE)
def test_batches_become_places_in_a_block(shape, block, crops, rng, device, precision):
    x = random_array(rng, shape)
    both = _batches("BATCH_TO_SPACE_ND", block, crops)
    check_moves(*both, x, device=device, precision=precision)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_becomes_depth(dtype, rng, device):
    x = random_array(rng, (1, 4, 2, 3), dtype)
    known = dtype not in (np.bool_, np.int16)  # to the stock kernel
    check_moves(*_blocks("SPACE_TO_DEPTH", 2), x, device=device, reference=known)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_becomes_batches(dtype, rng, device):
    x = random_array(rng, (1, 3, 2, 3), dtype)
    both = _batches("SPACE_TO_BATCH_ND", (2, 2), ((1, 0), (0, 0)))
    known = dtype is not np.bool_  # to the stock kernel
    check_moves(*both, x, device=device, reference=known)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_becomes_space(dtype, rng, device):
    x = random_array(rng, (4, 3, 2, 3), dtype)
    both = _batches("BATCH_TO_SPACE_ND", (2, 2), ((1, 0), (0, 0)))
    known = dtype is not np.bool_  # to the stock kernel
    check_moves(*both, x, device=device, reference=known)


@pytest.mark.parametrize(
    "both",
    [
        _blocks("SPACE_TO_DEPTH", 2),
        _batches("SPACE_TO_BATCH_ND", (2, 2), ((2, 0), (0, 0))),
        _batches("BATCH_TO_SPACE_ND", (2, 2), ((1, 0), (0, 2))),
    ],
    ids=["space_to_depth", "space_to_batch", "batch_to_space"],
)
def test_float_becomes_half_and_back(both, rng, device):
    check_converts(*both, random_array(rng, (4, 4, 2, 3)), device=device)


def test_output_follows_a_resized_batch(rng, device):
    m = ModelMaker()
    x = m.input("x", (1, 4, 2, 3))
    add, move = _blocks("SPACE_TO_DEPTH", 2)
    m.output(add(m, x))
    value = random_array(rng, (3, 4, 2, 3))
    resize = {0: value.shape}
    check(m.build(), [value], [move(value)], device=device, precision="fp32", resize=resize)


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_blocks_with_any_paddings(data, device):
    small = st.integers(1, 3)
    n, c = data.draw(small), data.draw(st.integers(1, 5))
    block = (data.draw(small), data.draw(small))
    paddings = tuple((data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in block)
    sizes = [b * (data.draw(small) + 2) - sum(p) for b, p in zip(block, paddings)]
    sizes = [s if s > 0 else s + 2 * b for s, b in zip(sizes, block)]
    x = np.arange(n * c * np.prod(sizes), dtype=np.float32).reshape(n, *sizes, c)
    check_moves(*_batches("SPACE_TO_BATCH_ND", block, paddings), x, device=device)


def test_input_of_another_rank_has_no_depth():
    m = ModelMaker()
    m.output(m.op("SPACE_TO_DEPTH", [m.input("x", (2, 2, 1))], (1, 1, 4), block_size=2))
    check_refused(m.build(), "input has rank 3; supported: 4")


@pytest.mark.parametrize("size", [0, 65536])  # the square of which is 0 in 32 bits
def test_block_size_out_of_range_is_refused(size):
    m = ModelMaker()
    m.output(m.op("DEPTH_TO_SPACE", [m.input("x", (1, 1, 1, 4))], (1, 2, 2, 1), block_size=size))
    check_refused(m.build(), "the block size is not one of 1 to 32767")


def test_channels_that_do_not_divide_are_refused():
    m = ModelMaker()
    m.output(m.op("DEPTH_TO_SPACE", [m.input("x", (1, 1, 1, 5))], (1, 2, 2, 1), block_size=2))
    check_refused(m.build(), "[1, 1, 1, 5]: channel count 5 is not a multiple of 4")


def _refused(reason, shape=(4, 1, 1, 1), block=(2, 2), margins=((0, 0), (0, 0))):
    m = ModelMaker()
    constants = [m.constant(np.array(v, np.int32)) for v in (block, margins)]
    m.output(m.op("BATCH_TO_SPACE_ND", [m.input("x", shape), *constants], (1, 2, 2, 1)))
    check_refused(m.build(), reason)


def test_input_of_two_axes_is_refused():
    _refused("input has rank 2; supported: 3 to 4", shape=(4, 1))


def test_block_shape_of_another_rank_is_refused():
    _refused("the block shape does not fit the axes of the input", block=(2,))


def test_crops_of_fewer_axes_than_the_block_has_are_refused():
    _refused("the block shape does not fit the axes of the input", margins=((0, 0),))


def test_block_of_a_size_out_of_range_is_refused():
    for block in ((2, 0), (65536, 65536)):
        _refused("a block size is not one of 1 to 32767", block=block)


def test_negative_crop_is_refused():
    _refused("a padding or crop is negative", margins=((0, -1), (0, 0)))


def test_batch_that_does_not_divide_is_refused():
    _refused("batch 3 is not a multiple of 4", shape=(3, 1, 1, 1))


def test_crops_that_exceed_the_result_are_refused():
    reason = "the crops exceed the output of [4, 1, 1, 1]"
    _refused(reason, margins=((2, 1), (0, 0)))


@pytest.mark.parametrize("which", [0, 1])
def test_block_shape_and_paddings_at_run_time_are_refused(which):
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 1))
    inputs = [m.constant(np.array([2, 2], np.int32)), m.constant(np.zeros((2, 2), np.int32))]
    inputs[which] = m.input("late", ((MANY,), (MANY, 2))[which], np.int32)
    m.output(m.op("SPACE_TO_BATCH_ND", [x, *inputs], (4, 1, 1, 1)))
    reasons = (
        "the block shape is computed at run time",
        "the tensor of paddings or crops is computed at run time",
    )
    check_refused(m.build(), reasons[which])

"""PAD, PADV2 and MIRROR_PAD."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, MANY, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, paddings
CASES = [
    ((5,), ((2, 3),)),
    ((3, 5), ((0, 0), (1, 0))),
    ((3, 8), ((1, 2), (0, 0))),  # rows as a whole: wide units
    ((3, 8), ((0, 1), (4, 8))),
    ((1, 5, 7, 3), ((0, 0), (1, 2), (3, 0), (0, 0))),
    ((1, 5, 7, 4), ((0, 0), (1, 1), (1, 1), (0, 0))),
    ((2, 3, 2, 3), ((1, 0), (0, 1), (1, 1), (2, 0))),
    ((2, 1, 2, 3, 2), ((1, 1), (0, 1), (0, 0), (1, 0), (0, 2))),
]
SIX_AXES = ((2, 1, 2, 3, 2, 3), ((1, 0), (0, 1), (1, 1), (0, 0), (1, 0), (0, 2)))
# shape, paddings that both modes allow
MIRRORS = [
    ((5,), ((4, 2),)),
    ((3, 5), ((2, 1), (0, 3))),
    ((1, 5, 7, 4), ((0, 0), (1, 2), (3, 1), (0, 0))),  # whole pixels: wide units
    ((3, 4, 3), ((2, 0), (0, 0), (0, 1))),
    ((2, 3, 2, 3), ((1, 1), (0, 2), (1, 0), (2, 2))),
]


def _padded(shape, paddings):
    return tuple(n + before + after for n, (before, after) in zip(shape, paddings))


def _pad(paddings, value=None, dtype=np.int32):
    def add(m, x):
        result = _padded(m.shape(x), paddings)
        inputs = [x, m.constant(np.array(paddings, dtype))]
        if value is None:
            return m.op("PAD", inputs, result)
        return m.op("PADV2", [*inputs, m.constant(np.array(value, m.dtype(x)))], result)

    return add


def _mirror(paddings, mode):
    def add(m, x):
        inputs = [x, m.constant(np.array(paddings, np.int32))]
        return m.op("MIRROR_PAD", inputs, _padded(m.shape(x), paddings), mode=mode)

    return add


@pytest.mark.parametrize("value", [None, -2.5])
@pytest.mark.parametrize(("shape", "paddings"), CASES)
def test_outside_of_the_input_is_the_constant(shape, paddings, value, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(
        _pad(paddings, value),
        lambda x: np.pad(x, paddings, constant_values=value or 0),
        x,
        device=device,
        precision=precision,
    )


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize(("shape", "paddings"), MIRRORS)
def test_outside_of_the_input_is_its_mirror_image(shape, paddings, mode, rng, device, precision):
    x = random_array(rng, shape)
    check_moves(
        _mirror(paddings, mode.upper()),
        lambda x: np.pad(x, paddings, mode),
        x,
        device=device,
        precision=precision,
    )


def test_symmetric_may_mirror_all_of_an_axis(rng, device):
    x = random_array(rng, (3, 4))
    paddings = ((3, 3), (0, 4))
    add = _mirror(paddings, "SYMMETRIC")
    check_moves(add, lambda x: np.pad(x, paddings, "symmetric"), x, device=device)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (3, 5), dtype)
    paddings = ((1, 0), (0, 2))
    known = dtype is not np.bool_  # to the stock kernel
    add = _pad(paddings, dtype=np.int64)
    check_moves(add, lambda x: np.pad(x, paddings), x, device=device, reference=known)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_takes_a_constant(dtype, rng, device):
    x = random_array(rng, (3, 5), dtype)
    paddings = ((1, 0), (0, 2))
    check_moves(
        _pad(paddings, 1),
        lambda x: np.pad(x, paddings, constant_values=dtype(1)),
        x,
        device=device,
        reference=dtype is not np.bool_,
    )


def test_six_axes(rng, device):
    shape, paddings = SIX_AXES
    x = random_array(rng, shape)
    add = _pad(paddings, 1.5)
    check_moves(
        add,
        lambda x: np.pad(x, paddings, constant_values=1.5),
        x,
        device=device,
        reference=False,
    )


def test_float_becomes_half_and_back(rng, device):
    x = random_array(rng, (3, 5))
    paddings = ((1, 2), (0, 3))
    check_converts(_pad(paddings), lambda x: np.pad(x, paddings), x, device=device)


def test_mirror_image_becomes_half_and_back(rng, device):
    x = random_array(rng, (3, 5))
    paddings = ((1, 2), (0, 3))
    add = _mirror(paddings, "REFLECT")
    check_converts(add, lambda x: np.pad(x, paddings, "reflect"), x, device=device)


def test_half_tensors_take_a_float_constant(rng, device):
    m = ModelMaker()
    paddings = ((1, 2), (0, 3))
    y = m.op("NEG", [m.input("x", (3, 5))], (3, 5))
    y = _pad(paddings, -2.5)(m, y)
    m.output(m.op("NEG", [y], (6, 8)))
    value = random_array(rng, (3, 5))
    wanted = [np.pad(value, paddings, constant_values=2.5)]
    check(m.build(), [value], wanted, device=device, precision="fp16")


def test_constant_may_be_computed_at_run_time(rng, device, precision):
    m = ModelMaker()
    x, value = m.input("x", (3, 5)), m.input("value", (1,))
    value = m.op("NEG", [value], (1,))
    paddings = m.constant(np.array([[0, 0], [1, 1]], np.int32))
    m.output(m.op("PADV2", [x, paddings, value], (3, 7)))
    values = [random_array(rng, (3, 5)), np.array([0.75], np.float32)]
    want = np.pad(values[0], ((0, 0), (1, 1)), constant_values=-0.75)
    check(m.build(), values, [want], device=device, precision=precision)


def test_output_follows_resized_axes(rng, device):
    m = ModelMaker()
    paddings = ((0, 0), (1, 2))
    m.output(_pad(paddings)(m, m.input("x", (1, 3))))
    value = random_array(rng, (4, 5))
    wanted = [np.pad(value, paddings)]
    check(m.build(), [value], wanted, device=device, precision="fp32", resize={0: (4, 5)})


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_paddings_of_any_shape(data, device):
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    mode = data.draw(st.sampled_from(["constant", "reflect", "symmetric"]))
    less = 1 if mode == "reflect" else 0
    paddings = tuple(
        (data.draw(st.integers(0, n - less)), data.draw(st.integers(0, n - less))) for n in shape
    )
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    add = _pad(paddings) if mode == "constant" else _mirror(paddings, mode.upper())
    check_moves(add, lambda x: np.pad(x, paddings, mode), x, device=device)


def test_mirror_of_more_than_there_is_is_refused():
    m = ModelMaker()
    m.output(_mirror(((0, 3),), "REFLECT")(m, m.input("x", (3,))))
    check_refused(m.build(), "paddings (0, 3) of axis 0 of [3] exceed what can be mirrored")


def test_paddings_at_run_time_are_refused():
    m = ModelMaker()
    x, paddings = m.input("x", (3,)), m.input("paddings", (MANY, 2), np.int32)
    m.output(m.op("PAD", [x, paddings], (5,)))
    check_refused(m.build(), "the tensor of paddings is computed at run time")


def test_negative_padding_is_refused():
    m = ModelMaker()
    m.output(_pad(((2, -1),))(m, m.input("x", (3,))))
    check_refused(m.build(), "a padding is -1")


def test_paddings_of_another_rank_are_refused():
    m = ModelMaker()
    m.output(_pad(((1, 1),))(m, m.input("x", (3, 1))))
    check_refused(m.build(), "there are not two paddings per axis of the input")


def test_constant_of_another_type_is_refused():
    m = ModelMaker()
    inputs = [m.input("x", (3,)), m.constant(np.array([[1, 1]], np.int32))]
    m.output(m.op("PADV2", [*inputs, m.constant(np.int32(1))], (5,)))
    check_refused(m.build(), "the value and the input differ in type")


def test_constant_of_several_elements_is_refused():
    m = ModelMaker()
    inputs = [m.input("x", (3,)), m.constant(np.array([[1, 1]], np.int32))]
    m.output(m.op("PADV2", [*inputs, m.constant(np.zeros(2, np.float32))], (5,)))
    check_refused(m.build(), "the value is not a scalar")


def test_padv2_without_a_value_pads_with_zeros(device, rng):
    m = ModelMaker()
    x, paddings = m.input("x", (2, 3)), m.constant(np.array([[1, 0], [0, 2]], np.int32))
    m.output(m.op("PADV2", [x, paddings, None], (3, 5)))
    values = rng.standard_normal((2, 3)).astype(np.float32)
    expected = np.pad(values, ((1, 0), (0, 2)))
    check(m.build(), [values], [expected], device=device, precision="fp32")

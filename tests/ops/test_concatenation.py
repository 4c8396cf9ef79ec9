"""CONCATENATION and PACK."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused
from tests.ops.movement import TYPES, random_array

# shapes of the inputs, axis
CASES = [
    (((3,), (5,)), 0),
    (((7,),), 0),
    (((3, 5), (3, 1), (3, 7)), 1),
    (((3, 5), (1, 5)), -2),
    (((3, 5, 4), (3, 5, 8)), 2),  # multiples of four: wide units
    (((2, 3, 5, 7), (2, 3, 5, 1)), -1),
    (((1, 3, 5, 7), (1, 1, 5, 7)), 1),
    (((1, 2, 3, 2, 3), (1, 2, 1, 2, 3)), 2),
]
# shape of the inputs, their number, axis
PACKS = [((5,), 2, 0), ((5,), 3, 1), ((3, 4), 2, -2), ((2, 3, 5), 2, -1)]


def _concatenation(shapes, axis, dtype=np.float32, **options):
    m = ModelMaker()
    inputs = [m.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes)]
    size = list(shapes[0])
    size[axis] = sum(shape[axis] for shape in shapes)
    m.output(m.op("CONCATENATION", inputs, tuple(size), axis=axis, **options))
    return m.build()


def _pack(shape, count, axis, dtype=np.float32):
    m = ModelMaker()
    inputs = [m.input(f"x{i}", shape, dtype) for i in range(count)]
    at = axis % (len(shape) + 1)
    result = (*shape[:at], count, *shape[at:])
    m.output(m.op("PACK", inputs, result, values_count=count, axis=axis))
    return m.build()


@pytest.mark.parametrize(("shapes", "axis"), CASES)
def test_inputs_lie_one_behind_the_other(shapes, axis, rng, device, precision):
    values = [random_array(rng, shape) for shape in shapes]
    check(
        _concatenation(shapes, axis),
        values,
        [np.concatenate(values, axis)],
        device=device,
        precision=precision,
        half_io=precision == "fp16",
    )


@pytest.mark.parametrize(("shape", "count", "axis"), PACKS)
def test_pack_adds_an_axis(shape, count, axis, rng, device, precision):
    values = [random_array(rng, shape) for _ in range(count)]
    check(
        _pack(shape, count, axis),
        values,
        [np.stack(values, axis)],
        device=device,
        precision=precision,
        half_io=precision == "fp16",
    )


def test_scalars_are_packed_into_a_vector(rng, device):
    m = ModelMaker()
    scalars = m.op("UNPACK", [m.input("x", (3,))], [()] * 3, num=3)
    m.output(m.op("PACK", scalars[::-1], (3,), values_count=3))
    value = random_array(rng, (3,))
    check(m.build(), [value], [value[::-1]], device=device, precision="fp32")


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    shapes = ((3, 5), (3, 2))
    values = [random_array(rng, shape, dtype) for shape in shapes]
    wanted = [np.concatenate(values, 1)]
    check(_concatenation(shapes, 1, dtype), values, wanted, device=device, precision="fp32")


def test_one_input_may_be_half_and_another_float(rng, device):
    m = ModelMaker()
    x = m.input("x", (3, 5))
    negative = m.op("NEG", [x], (3, 5))
    constant = random_array(rng, (3, 2))
    both = m.op("CONCATENATION", [negative, x, m.constant(constant)], (3, 12), axis=1)
    m.output(both, m.op("NEG", [both], (3, 12)))
    value = random_array(rng, (3, 5))
    want = np.concatenate([-value, value, constant], 1)
    check(m.build(), [value], [want, -want], device=device, precision="fp16")


def test_one_tensor_may_be_several_inputs(rng, device):
    m = ModelMaker()
    x = m.input("x", (3, 5))
    m.output(m.op("CONCATENATION", [x, x], (6, 5), axis=0))
    value = random_array(rng, (3, 5))
    check(m.build(), [value], [np.concatenate([value, value])], device=device, precision="fp32")


def test_output_follows_resized_inputs(rng, device):
    values = [random_array(rng, (4, 5)), random_array(rng, (4, 2))]
    check(
        _concatenation(((1, 5), (1, 2)), 1),
        values,
        [np.concatenate(values, 1)],
        device=device,
        precision="fp32",
        resize={0: (4, 5), 1: (4, 2)},
    )


@given(
    before=st.lists(st.integers(1, 3), max_size=2),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    behind=st.lists(st.integers(1, 5), max_size=2),
)
@settings(max_examples=EXAMPLES)
def test_any_sizes_along_any_axis(before, sizes, behind, device):
    shapes = [(*before, size, *behind) for size in sizes]
    values = [
        i + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for i, shape in enumerate(shapes)
    ]
    axis = len(before)
    model = _concatenation(shapes, axis)
    check(model, values, [np.concatenate(values, axis)], device=device, precision="fp32")


def test_inputs_that_differ_elsewhere_are_refused():
    model = _concatenation(((3, 5), (2, 1)), 1)
    check_refused(model, "inputs [3, 5] and [2, 1] differ in more than the axis 1")


def test_axis_outside_of_the_output_is_refused():
    m = ModelMaker()
    m.output(m.op("CONCATENATION", [m.input("x", (2, 3))], (2, 3), axis=2))
    check_refused(m.build(), "the axis is 2; supported: -2 to 1")


def test_fused_activation_is_refused():
    model = _concatenation(((3,), (5,)), 0, fused_activation_function="RELU")
    check_refused(model, "a fused activation is not supported here")


def test_inputs_of_different_ranks_are_refused():
    m = ModelMaker()
    inputs = [m.input("x", (2, 3)), m.input("y", (2,))]
    m.output(m.op("CONCATENATION", inputs, (4, 3), axis=0))
    check_refused(m.build(), "the inputs differ in their number of axes")


def test_inputs_of_different_types_are_refused():
    m = ModelMaker()
    inputs = [m.input("x", (3,)), m.input("y", (3,), np.int32)]
    m.output(m.op("PACK", inputs, (2, 3), values_count=2))
    check_refused(m.build(), "the inputs differ in type")

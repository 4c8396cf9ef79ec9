"""DYNAMIC_UPDATE_SLICE."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused
from tests.ops.movement import TYPES, random_array

# shape, shape of the update, start
CASES = [
    ((7,), (3,), (2,)),
    ((5, 8), (2, 8), (1, 0)),  # whole rows: wide units
    ((5, 8), (2, 8), (9, 3)),  # moved to the end
    ((5, 8), (2, 4), (-4, 2)),  # moved to the start
    ((2, 3, 5, 4), (1, 2, 2, 4), (1, 1, 2, 0)),
    ((1, 2, 3, 2, 3, 4), (1, 1, 3, 1, 2, 3), (0, 1, 0, 1, 1, 1)),
    ((4, 6), (4, 6), (0, 0)),
]


def updated(x, update, start):
    result = x.copy()
    room = np.array(x.shape) - update.shape
    first = np.clip(np.asarray(start), 0, room)
    result[tuple(slice(f, f + n) for f, n in zip(first, update.shape))] = update
    return result


def model(shape, update, index=np.int32, dtype=np.float32):
    m = ModelMaker()
    operands = [m.input("x", shape, dtype), m.input("update", update, dtype)]
    start = m.input("start", (len(shape),), index)
    m.output(m.op("DYNAMIC_UPDATE_SLICE", [*operands, start], shape, dtype=dtype))
    return m.build()


@pytest.mark.parametrize(("shape", "part", "start"), CASES)
def test_the_part_is_replaced(shape, part, start, rng, device, precision):
    x, update = random_array(rng, shape), random_array(rng, part)
    start = np.array(start, np.int32)
    check(
        model(shape, part),
        [x, update, start],
        [updated(x, update, start)],
        device=device,
        precision=precision,
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_is_copied(dtype, rng, device):
    x, update = random_array(rng, (3, 5), dtype), random_array(rng, (2, 5), dtype)
    start = np.array([1, 0], np.int64)
    check(
        model((3, 5), (2, 5), np.int64, dtype),
        [x, update, start],
        [updated(x, update, start)],
        device=device,
        precision="fp32",
        reference=dtype not in (np.int16, np.uint8),
    )


def test_results_of_kernels_are_updated(rng, device, precision):
    m = ModelMaker()
    x, update = m.input("x", (4, 8)), m.input("update", (1, 8))
    start = m.input("start", (2,), np.int32)
    y = m.op("DYNAMIC_UPDATE_SLICE", [m.op("NEG", [x], (4, 8)), update, start], (4, 8))
    m.output(m.op("ABS", [y], (4, 8)))
    values = [random_array(rng, (4, 8)), random_array(rng, (1, 8)), np.array([2, 0], np.int32)]
    check(m.build(), values, None, device=device, precision=precision)


# With fp16, tensors between nodes are half if they are large: any of the three, or all.
@pytest.mark.parametrize("part", [(1, 64), (128, 64), (1, 5), (128, 60)])
@pytest.mark.parametrize("between", ["x", "update", "x and update"])
def test_storages_may_differ(part, between, rng, device):
    m = ModelMaker()
    shape = (256, 64)
    x, update = m.input("x", shape), m.input("update", part)
    h = m.op("NEG", [x], shape) if "x" in between else x
    u = m.op("NEG", [update], part) if "update" in between else update
    start = m.input("start", (2,), np.int32)
    m.output(m.op("ABS", [m.op("DYNAMIC_UPDATE_SLICE", [h, u, start], shape)], shape))
    values = [random_array(rng, shape), random_array(rng, part), np.array([3, 2], np.int32)]
    check(m.build(), values, None, device=device, precision="fp16", half_io=False)


def test_operands_that_do_not_fit_are_a_refusal(device):
    check_refused(model((4, 3), (5, 3)), "does not fit into [4, 3]", device=device)
    check_refused(model((4, 3), (2, 3), np.int16), "the tensor of indices is int16", device=device)
    check_refused(model((4, 3), (3,)), "the update has rank 1", device=device)
    check_refused(model((), ()), "input 0 has rank 0", device=device)


def test_other_operands_that_do_not_fit_are_a_refusal(device):
    m = ModelMaker()
    operands = [m.input("x", (4, 3)), m.input("update", (2, 3), np.int32)]
    start = m.input("start", (2,), np.int32)
    m.output(m.op("DYNAMIC_UPDATE_SLICE", [*operands, start], (4, 3)))
    check_refused(m.build(), "the update is int32", device=device)
    for shape, reason in (
        ((3,), "there are 3 indices for the 2 axes"),
        ((1, 2), "the tensor of indices has rank 2"),
    ):
        m = ModelMaker()
        operands = [m.input("x", (4, 3)), m.input("update", (2, 3)), m.input("i", shape, np.int32)]
        m.output(m.op("DYNAMIC_UPDATE_SLICE", operands, (4, 3)))
        check_refused(m.build(), reason, device=device)

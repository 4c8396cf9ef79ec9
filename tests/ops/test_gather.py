"""GATHER."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_maker import Blocks, ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check, check_refused
from tests.ops.movement import TYPES, check_converts, check_moves, random_array

# shape, shape of the indices, axis, batch axes
CASES = [
    ((7,), (3,), 0, 0),
    ((7,), (2, 3), 0, 0),
    ((5, 8), (3,), 0, 0),  # rows of eight: wide units
    ((5, 7), (3,), 1, 0),
    ((3, 5, 7), (2, 2), -2, 0),
    ((3, 5), (3, 2), 1, 1),
    ((2, 3, 5, 4), (2, 3), 2, 1),
    ((2, 3, 5, 3), (2, 3, 2), 2, 2),
    ((2, 3, 5), (2, 3), -1, -1),
]


def _gather_reference(x, indices, axis, batch_dims):
    axis %= x.ndim
    batch_dims %= indices.ndim + (batch_dims >= 0)
    if batch_dims == 0:
        return np.take(x, indices, axis)
    pairs = zip(x, indices)
    return np.stack([_gather_reference(a, b, axis - 1, batch_dims - 1) for a, b in pairs])


def _model(shape, indices, axis=0, batch_dims=0, dtype=np.float32):
    """Model with x as its input, and the shape of its output."""
    m = ModelMaker()
    x = m.input("x", shape, dtype)
    result = _gather_reference(
        np.empty(shape), np.zeros(indices.shape, int), axis, batch_dims
    ).shape
    i = m.input("indices", indices.shape, indices.dtype)
    m.output(m.op("GATHER", [x, i], result, dtype=dtype, axis=axis, batch_dims=batch_dims))
    return m.build()


@pytest.mark.parametrize(("shape", "chosen", "axis", "batch_dims"), CASES)
def test_places_along_the_axis_are_chosen(shape, chosen, axis, batch_dims, rng, device, precision):
    x = random_array(rng, shape)
    indices = rng.integers(0, shape[axis], chosen, np.int32)
    check(
        _model(shape, indices, axis, batch_dims),
        [x, indices],
        [_gather_reference(x, indices, axis, batch_dims)],
        device=device,
        precision=precision,
        half_io=precision == "fp16",
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_moves(dtype, rng, device):
    x = random_array(rng, (5, 3), dtype)
    indices = rng.integers(0, 5, (4,), np.int64)
    model = _model(x.shape, indices, dtype=dtype)
    check(model, [x, indices], [x[indices]], device=device, precision="fp32")


def test_indices_may_be_int16(rng, device):
    x = random_array(rng, (5, 3))
    indices = rng.integers(0, 5, (4,), np.int16)
    model = _model(x.shape, indices)
    check(model, [x, indices], [x[indices]], device=device, precision="fp32")


def test_indices_may_be_a_constant_scalar(rng, device):
    def add(m, x):
        return m.op("GATHER", [x, m.constant(np.int32(3))], (7,))

    check_moves(add, lambda x: x[3], random_array(rng, (5, 7)), device=device)


def test_float_becomes_half_and_back(rng, device):
    indices = np.array([2, 0], np.int32)

    def add(m, x):
        return m.op("GATHER", [x, m.constant(indices)], (2, 7))

    check_converts(add, lambda x: x[indices], random_array(rng, (5, 7)), device=device)


def test_indices_outside_of_the_axis_yield_zeros(rng, device):
    x = random_array(rng, (3, 5, 3))  # other numbers are before and after each part of the axis
    indices = np.array([-1, 5, 2, 2**31 - 1], np.int32)
    want = np.zeros((3, 4, 3), np.float32)
    want[:, 2] = x[:, 2]
    # The stock kernel stops with an error.
    options = {"device": device, "precision": "fp32", "reference": False}
    check(_model(x.shape, indices, axis=1), [x, indices], [want], **options)


def test_output_follows_resized_indices(rng, device):
    x = random_array(rng, (5, 3))
    indices = np.array([4, 0, 1], np.int32)
    model = _model(x.shape, indices[:1])
    resize = {1: (3,)}
    check(model, [x, indices], [x[indices]], device=device, precision="fp32", resize=resize)


@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_any_axis_of_any_shape(data, device):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    axis = data.draw(st.integers(0, len(shape) - 1))
    place = st.integers(0, shape[axis] - 1)
    indices = np.array(data.draw(st.lists(place, min_size=1, max_size=5)), np.int32)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    model = _model(shape, indices, axis)
    check(model, [x, indices], [x.take(indices, axis)], device=device, precision="fp32")


def test_axis_outside_of_the_input_is_refused():
    m = ModelMaker()
    indices = m.constant(np.zeros(2, np.int32))
    m.output(m.op("GATHER", [m.input("x", (2, 3)), indices], (2, 3), axis=2))
    check_refused(m.build(), "the axis is 2; supported: -2 to 1")


def test_batch_axes_behind_the_axis_are_refused():
    m = ModelMaker()
    indices = m.constant(np.zeros((2, 3), np.int32))
    m.output(m.op("GATHER", [m.input("x", (2, 3)), indices], (2, 3, 3), axis=0, batch_dims=1))
    check_refused(
        m.build(),
        "there are 1 batch axes, more than the indices have or than lie in front of the axis",
    )


def test_more_batch_axes_than_indices_have_are_refused():
    m = ModelMaker()
    indices = m.constant(np.zeros(2, np.int32))
    x = m.input("x", (2, 3, 4))
    m.output(m.op("GATHER", [x, indices], (2, 3), axis=2, batch_dims=2))
    check_refused(m.build(), "there are 2 batch axes")


def test_indices_of_another_type_are_refused():
    m = ModelMaker()
    indices = m.constant(np.zeros(2, np.uint8))
    m.output(m.op("GATHER", [m.input("x", (2, 3)), indices], (2, 3)))
    check_refused(m.build(), "the tensor of indices is uint8")


def test_batch_axes_that_differ_are_refused():
    m = ModelMaker()
    indices = m.constant(np.zeros((3, 1), np.int32))
    m.output(m.op("GATHER", [m.input("x", (2, 3)), indices], (2, 1), axis=1, batch_dims=1))
    check_refused(m.build(), "input [2, 3] and indices [3, 1] differ in batch axis 0")


def _lookup(ids, table, dtype=np.float32):
    m = ModelMaker()
    operands = [m.input("ids", ids, np.int32), m.input("table", table, dtype)]
    m.output(m.op("EMBEDDING_LOOKUP", operands, (*ids, *table[1:]), dtype=dtype))
    return m.build()


@pytest.mark.parametrize("table", [(7, 8), (5, 3), (4, 2, 3)])
def test_embedding_lookup_takes_rows_of_its_second_input(table, rng, device, precision):
    ids, rows = rng.integers(0, table[0], 6, np.int32), random_array(rng, table)
    check(_lookup((6,), table), [ids, rows], [rows[ids]], device=device, precision=precision)


def test_embedding_lookup_has_a_list_of_indices_and_a_table(device):
    check_refused(_lookup((2, 3), (4, 5)), "the tensor of indices has rank 2", device=device)
    check_refused(_lookup((2,), (4,)), "the table has rank 1", device=device)


def _scaled(table, quantization, stored, ids=6):
    """A lookup of floats in a table of integers, whose scales a function adds to the model."""
    m = ModelMaker()
    if stored == "int8":
        rows = m.constant(table.astype(np.int8), quantization=quantization(m))
    else:
        rows = m.int4_constant(table, quantization(m), bits=int(stored[3:]))
    operands = [m.input("ids", (ids,), np.int32), rows]
    m.output(m.op("EMBEDDING_LOOKUP", operands, (ids, *table.shape[1:]), dtype=np.float32))
    return m.build()


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("stored", ["int8", "int4", "int2"])
@pytest.mark.parametrize("shape", [(7, 8), (5, 36)])
def test_embedding_lookup_gives_the_floats_of_integers(shape, stored, each, rng, device, precision):
    low = {"int8": -128, "int4": -8, "int2": -2}[stored]
    table = rng.integers(low, -low, shape)
    scales = rng.uniform(0.01, 0.1, shape[0] if each else 1).astype(np.float32)
    ids = rng.integers(0, shape[0], 6, np.int32)
    wanted = (scales[:, None].astype(np.float64) * table)[ids]
    quantization = Quantization(scales.tolist(), [0] * len(scales), axis=0)
    check(
        _scaled(table, lambda _: quantization, stored), [ids], [wanted], device=device,
        precision=precision, runtime="ai_edge_litert",
    )  # fmt: skip


@pytest.mark.parametrize("block", [32, 64])
def test_embedding_lookup_of_blocks(block, rng, device):
    table = rng.integers(-8, 8, (5, 128))
    scales = rng.uniform(0.01, 0.1, (5, 128 // block)).astype(np.float16)
    ids = rng.integers(0, 5, 6, np.int32)
    wanted = (np.repeat(scales.astype(np.float64), block, 1) * table)[ids]
    check(
        _scaled(table, lambda m: Blocks(m.constant(scales), block), "int4"), [ids], [wanted],
        device=device, precision="fp32", runtime="ai_edge_litert",
    )  # fmt: skip


def test_tables_that_give_no_floats_are_refused(rng, device):
    def refused(table, quantization, stored, reason):
        check_refused(_scaled(table, lambda _: quantization, stored), reason, device=device)

    table = rng.integers(-2, 2, (4, 8))
    refused(table, Quantization(0.5, 1), "int8", "the table has zero points that are not 0")
    columns = Quantization([0.5] * 8, [0] * 8, axis=1)
    refused(table, columns, "int8", "the table has scales along axis 1")
    odd = "the table has rows that do not begin at whole bytes"
    refused(table[:, :7], Quantization(0.5), "int4", odd)
    m = ModelMaker()
    ids, one = m.input("ids", (2,), np.int32), Quantization(0.5)
    unsigned = m.constant(np.zeros((4, 8), np.uint8), quantization=one)
    m.output(m.op("EMBEDDING_LOOKUP", [ids, unsigned], (2, 8), dtype=np.float32))
    check_refused(m.build(), "the table is uint8", device=device)
    m = ModelMaker()
    ids = m.input("ids", (2,), np.int32)
    operands = [ids, m.int4_constant(table, one)]
    m.output(m.op("EMBEDDING_LOOKUP", operands, (2, 8), dtype=np.int8, quantization=one))
    check_refused(m.build(), "the table is int4", device=device)

"""STABLEHLO_GATHER: slices that begin where vectors of indices say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused
from tests.ops.movement import TYPES, random_array

Array = Any


class Case(NamedTuple):
    """Shapes of the input and of the indices, and the parameters."""

    src: tuple[int, ...]
    indices: tuple[int, ...]
    offset: tuple[int, ...]
    collapsed: tuple[int, ...]
    starts: tuple[int, ...]
    index_axis: int
    slice: tuple[int, ...]


ROWS = Case((7, 8), (3, 1), (1,), (0,), (0,), 1, (1, 8))  # wide units
CASES = [
    ROWS,
    Case((7, 5), (3, 1), (1,), (0,), (0,), 1, (1, 3)),  # a part of rows
    Case((5, 6, 4), (2, 3), (0, 2), (1,), (1, 0, 2), 1, (2, 1, 3)),
    Case((5, 6, 4), (2, 4, 3), (1, 3), (1,), (2, 0), 0, (3, 1, 2)),  # vectors along the first axis
    Case((4, 5), (6, 2), (), (0, 1), (1, 0), 1, (1, 1)),  # numbers
    Case((9,), (1,), (0,), (), (0,), 0, (4,)),  # one slice
    Case((2, 3, 2, 5, 2, 4), (3, 2), (1, 2, 3), (0, 2, 4), (4, 1), 1, (1, 2, 1, 5, 1, 4)),
]


def reference(x: Array, indices: Array, case: Case) -> Array:
    vectors = np.moveaxis(indices, case.index_axis, -1)
    batches = vectors.shape[:-1]
    rank = len(batches) + len(case.offset)
    kept = [axis for axis in range(x.ndim) if axis not in case.collapsed]
    sizes = iter([case.slice[axis] for axis in kept])
    counts = iter(batches)
    shape = [next(sizes) if axis in case.offset else next(counts) for axis in range(rank)]
    dst = np.empty(shape, x.dtype)
    for place in np.ndindex(*shape):
        batch = tuple(place[axis] for axis in range(rank) if axis not in case.offset)
        start = np.zeros(x.ndim, int)
        start[list(case.starts)] = vectors[batch]
        start = np.clip(start, 0, np.array(x.shape) - case.slice)
        start[kept] += np.array([place[axis] for axis in range(rank) if axis in case.offset], int)
        dst[place] = x[tuple(start)]
    return dst


def model(case: Case, result: tuple, dtype: Any = np.float32, index_type: Any = np.int32) -> bytes:
    m = ModelMaker()
    x = m.input("x", case.src, dtype)
    indices = m.input("indices", case.indices, index_type)
    y = m.op(
        "STABLEHLO_GATHER", [x, indices], result, dtype=dtype,
        offset_dims=np.array(case.offset, np.int64),
        collapsed_slice_dims=np.array(case.collapsed, np.int64),
        start_index_map=np.array(case.starts, np.int64),
        index_vector_dim=case.index_axis,
        slice_sizes=np.array(case.slice, np.int64),
    )  # fmt: skip
    m.output(y)
    return m.build()


def inputs_of(rng: np.random.Generator, case: Case, dtype: Any, index_type: Any) -> list[Array]:
    """Indices from below the first element to behind the last one."""
    x = random_array(rng, case.src, dtype)
    indices = rng.integers(-2, 8, case.indices).astype(index_type)
    return [x, indices]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_slices_begin_where_indices_say(case, device, precision, rng):
    x, indices = inputs_of(rng, case, np.float32, np.int32)
    expected = reference(x, indices, case)
    check(
        model(case, expected.shape), [x, indices], [expected],
        device=device, precision=precision, half_io=precision == "fp16",
    )  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_all_types(dtype, index_type, device, rng):
    for case in (ROWS, CASES[2]):
        x, indices = inputs_of(rng, case, dtype, index_type)
        expected = reference(x, indices, case)
        data = model(case, expected.shape, dtype, index_type)
        check(data, [x, indices], [expected], device=device, precision="fp32")


def test_indices_beyond_32_bits_are_those_of_the_last_slice(device, rng):
    case = CASES[5]
    x, _ = inputs_of(rng, case, np.float32, np.int64)
    for index, first in ((2**40, 5), (-(2**40), 0)):
        check(
            model(case, (4,), np.float32, np.int64), [x, np.array([index])], [x[first : first + 4]],
            device=device, precision="fp32",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"offset": (2,)}, "the offset axes are not different ones of 0 to 1"),
        ({"collapsed": (0, 0)}, "the collapsed axes are not different ones of 0 to 1"),
        ({"offset": (0, 1)}, "the offset and collapsed axes are not as many as the input has"),
        ({"slice": (1,)}, "the sizes of the slice are not one for each axis of the input"),
        ({"slice": (0, 8)}, "a size of the slice is 0; supported: 1 and more"),
        ({"slice": (1, 9)}, "slices of 9 along axis 1 are larger than the input [7, 8]"),
        ({"index_axis": 2}, "the axis of the index vectors is 2; supported: 0 to 1"),
        ({"starts": (0, 1)}, "along axis 1 have not one number for each of 2 axes"),
        ({"indices": ()}, "the input of indices has rank 0"),
        ({"src": ()}, "input has rank 0"),
    ],
)
def test_damaged_parameters_are_refused(change, reason):
    check_refused(model(ROWS._replace(**change), (3, 8)), reason)


def test_results_of_many_axes_are_refused():
    case = Case((2,) * 4, (1,) * 4, (3, 4, 5, 6), (), (0,), 3, (1,) * 4)
    check_refused(model(case, (1,) * 6), "the result has more than 6 axes")


def test_indices_of_another_type_are_refused():
    data = model(ROWS, (3, 8), index_type=np.int16)
    check_refused(data, "the input of indices is int16; supported: int32, int64")

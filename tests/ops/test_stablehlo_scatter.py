"""STABLEHLO_SCATTER: windows of updates combined with a tensor, where vectors of indices say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter

Array = Any
REGIONS = {
    "": lambda _, b: b,
    "STABLEHLO_ADD": lambda a, b: a + b,
    "STABLEHLO_MULTIPLY": lambda a, b: a * b,
    "STABLEHLO_MINIMUM": np.minimum,
    "STABLEHLO_MAXIMUM": np.maximum,
}


class Case(NamedTuple):
    """Shapes of the input, the indices and the updates, and the parameters."""

    src: tuple[int, ...]
    indices: tuple[int, ...]
    updates: tuple[int, ...]
    window: tuple[int, ...]
    inserted: tuple[int, ...]
    starts: tuple[int, ...]
    index_axis: int


ROWS = Case((5, 7), (9, 1), (9, 7), (1,), (0,), (0,), 1)
CASES = [
    ROWS,
    Case((5, 7), (9, 1), (7, 9), (0,), (0,), (0,), 1),  # windows in front, which do not move
    Case((6, 7), (8, 2), (8, 2, 3), (1, 2), (), (1, 0), 1),  # windows that move and meet
    Case((3, 4, 5), (2, 2, 6), (2, 4, 6), (1,), (0, 2), (2, 0), 1),  # vectors in the middle
    Case((4, 5), (12, 2), (12,), (), (0, 1), (0, 1), 1),  # numbers
    Case((8,), (1,), (3,), (0,), (), (0,), 0),  # one window
    Case((2, 3, 1, 2, 2, 4), (4, 2), (2, 4, 2, 2), (0, 2, 3), (1, 2, 5), (1, 5), 1),
]


def reference(x: Array, indices: Array, updates: Array, case: Case, region: str) -> Array:
    """Update for update, in order; what is outside is ignored."""
    vectors = np.moveaxis(indices, case.index_axis, -1)
    dst = x.copy()
    kept = [axis for axis in range(x.ndim) if axis not in case.inserted]
    for place in np.ndindex(*updates.shape):
        batch = tuple(p for axis, p in enumerate(place) if axis not in case.window)
        at = np.zeros(x.ndim, int)
        at[list(case.starts)] = vectors[batch]
        at[kept] += np.array([place[axis] for axis in case.window], int)
        if (at >= 0).all() and (at < x.shape).all():
            dst[tuple(at)] = REGIONS[region](dst[tuple(at)], updates[place])
    return dst


def model(
    case: Case, region: str, dtype: Any = np.float32, index_type: Any = np.int32,
    update_type: Any = None,
) -> bytes:  # fmt: skip
    m = ModelMaker()
    operands = [
        m.input("x", case.src, dtype),
        m.input("indices", case.indices, index_type),
        m.input("updates", case.updates, update_type or dtype),
    ]
    graph = m.subgraph()
    pair = [graph.input(name, (), dtype) for name in "ab"]
    graph.output(graph.op(region, pair, (), dtype=dtype) if region else pair[1])
    y = m.op(
        "STABLEHLO_SCATTER", operands, case.src, dtype=dtype,
        update_window_dims=np.array(case.window, np.int64),
        inserted_window_dims=np.array(case.inserted, np.int64),
        scatter_dims_to_operand_dims=np.array(case.starts, np.int64),
        index_vector_dim=case.index_axis,
        update_computation_subgraph_index=1,
    )  # fmt: skip
    m.output(y)
    return m.build()


def inputs_of(rng: np.random.Generator, case: Case, dtype: Any, index_type: Any) -> list[Array]:
    """Vectors that name places twice, and places behind the last one."""

    def numbers(shape: tuple[int, ...]) -> Array:
        if dtype == np.float32:
            return half_exact(rng.uniform(0.5, 1.5, shape).astype(dtype))
        return rng.integers(0, 90, shape).astype(dtype)

    indices = rng.integers(0, 6, case.indices).astype(index_type)
    return [numbers(case.src), indices, numbers(case.updates)]


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_windows_are_combined_where_indices_say(case, region, device, precision, rng):
    inputs = inputs_of(rng, case, np.float32, np.int32)
    expected = reference(*inputs, case, region)
    check(
        model(case, region), inputs, [expected],
        device=device, precision=precision, accumulation=12,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
def test_integers_wrap(dtype, device, rng):
    for region in REGIONS:
        for case, index_type in ((ROWS, np.int64), (CASES[2], np.int32)):
            inputs = inputs_of(rng, case, dtype, index_type)
            with np.errstate(over="ignore"):
                expected = reference(*inputs, case, region)
            data = model(case, region, dtype, index_type)
            check(data, inputs, [expected], device=device, precision="fp32")


def test_nan_counts_as_in_the_runtime(device):
    case = Case((4,), (3, 1), (3,), (), (0,), (0,), 1)
    x = np.array([1, np.nan, 3, 4], np.float32)
    indices, updates = np.array([[0], [1], [2]], np.int32), np.float32([np.nan, 2, np.nan])
    for region, third in (("STABLEHLO_MINIMUM", 3), ("STABLEHLO_MAXIMUM", 3), ("", np.nan)):
        expected = [third if region == "" else 1, 2 if region == "" else np.nan, third, 4]
        check(
            model(case, region), [x, indices, updates], [np.array(expected)],
            device=device, precision="fp32",
        )  # fmt: skip


def test_indices_far_outside_are_ignored(device, rng):
    """Of negative ones the runtime may write in front of its memory."""
    x, indices, updates = inputs_of(rng, ROWS, np.float32, np.int64)
    indices[:4, 0] = [-1, 2**40, -(2**40), 2**31 - 1]
    expected = reference(x, indices, updates, ROWS, "STABLEHLO_ADD")
    check(
        model(ROWS, "STABLEHLO_ADD", index_type=np.int64), [x, indices, updates], [expected],
        device=device, precision="fp32", accumulation=9, reference=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"window": (2,)}, "the window axes are not different ones of 0 to 1"),
        ({"window": (0, 1, 1)}, "the number of the window axes is 3; supported: 0 to 2"),
        ({"window": (0, 1)}, "the window and inserted axes are not as many as the input has"),
        (
            {"window": (0, 1), "inserted": ()},
            "the updates have not the axes of windows and vectors",
        ),
        ({"index_axis": -1}, "the axis of the index vectors is -1; supported: 0 to 1"),
        ({"starts": (0, 1)}, "updates [9, 7] at indices [9, 1] do not fit the input [5, 7]"),
        ({"indices": (8, 1)}, "updates [9, 7] at indices [8, 1] do not fit the input [5, 7]"),
        ({"indices": ()}, "the input of indices has rank 0"),
        ({"src": ()}, "input has rank 0"),
    ],
)
def test_damaged_parameters_are_refused(change, reason):
    check_refused(model(ROWS._replace(**change), ""), reason)


def test_windows_that_meet_in_another_order_are_refused():
    """Window axes in front of those of vectors: the runtime combines all first elements first."""
    case = Case((6, 7), (8, 1), (2, 8, 7), (0, 2), (), (0,), 1)
    check_refused(
        model(case, ""), "may meet along axis 0 in another order than that of their vectors"
    )


def test_other_types_are_refused():
    check_refused(model(ROWS, "", np.complex64), "input is complex64")
    data = model(ROWS, "", index_type=np.int16)
    check_refused(data, "the input of indices is int16; supported: int32, int64")
    data = model(ROWS, "", update_type=np.int32)
    check_refused(data, "the updates and the input differ in type")


def test_other_regions_are_refused():
    reason = "the region is none of an update, ADD, MULTIPLY, MAXIMUM and MINIMUM"
    check_refused(model(ROWS, "SUB"), reason)


def test_the_runtime_still_computes_what_is_refused(device, rng):
    """Its kernel looks for the node of the region, which the delegate therefore leaves alone."""
    case = Case((6, 7), (8, 1), (2, 8, 7), (0, 2), (), (0,), 1)
    inputs = inputs_of(rng, case, np.float32, np.int32)
    data = model(case, "STABLEHLO_ADD")
    delegate = clgpu_delegate.load(device=device)
    (got,) = run_interpreter(make_interpreter(op_runtime(), data, [delegate]), inputs)
    np.testing.assert_allclose(got, reference(*inputs, case, "STABLEHLO_ADD"), rtol=1e-6)

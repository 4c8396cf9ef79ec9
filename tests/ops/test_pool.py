"""MAX_POOL_2D, AVERAGE_POOL_2D and L2_POOL_2D."""

from __future__ import annotations

from typing import NamedTuple

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact

NAMES = ["MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"]
REDUCE = {
    "MAX_POOL_2D": lambda window: window.max((1, 2)),
    "AVERAGE_POOL_2D": lambda window: window.mean((1, 2)),
    "L2_POOL_2D": lambda window: np.sqrt((window**2).mean((1, 2))),
}


class Case(NamedTuple):
    """Geometry of a pooling."""

    shape: tuple
    filter: tuple
    stride: tuple
    padding: str


CASES = [
    Case((1, 1, 1, 1), (1, 1), (1, 1), "VALID"),
    Case((1, 7, 5, 3), (2, 2), (2, 2), "VALID"),
    Case((2, 7, 5, 4), (3, 3), (2, 2), "SAME"),
    Case((1, 8, 9, 8), (3, 2), (1, 3), "SAME"),
    Case((1, 5, 4, 7), (5, 7), (3, 1), "SAME"),
    Case((1, 6, 5, 3), (1, 2), (3, 3), "VALID"),
    Case((2, 9, 7, 12), (3, 3), (1, 1), "SAME"),
    Case((1, 8, 7, 4), (5, 4), (2, 1), "VALID"),
]
LARGE = [  # windows that a work-group shares
    Case((2, 7, 7, 33), (7, 7), (1, 1), "VALID"),
    Case((1, 17, 13, 3), (17, 13), (17, 13), "VALID"),
    Case((1, 9, 10, 5), (7, 7), (4, 4), "SAME"),
    Case((1, 8, 8, 36), (8, 8), (8, 8), "VALID"),
]


def windows(case: Case) -> tuple[list[list[tuple[slice, slice]]], tuple]:
    """The window of each output pixel, cut to the input, and the output's shape."""
    rows = []
    for axis in (0, 1):
        size, extent, step = case.shape[1 + axis], case.filter[axis], case.stride[axis]
        if case.padding == "SAME":
            count = -(-size // step)
            before = max(0, (count - 1) * step + extent - size) // 2
        else:
            count, before = (size - extent) // step + 1, 0
        starts = [i * step - before for i in range(count)]
        rows.append([slice(max(0, s), min(size, s + extent)) for s in starts])
    grid = [[(y, x) for x in rows[1]] for y in rows[0]]
    return grid, (case.shape[0], len(rows[0]), len(rows[1]), case.shape[3])


def pool(name: str, src: np.ndarray, case: Case) -> np.ndarray:
    grid, shape = windows(case)
    dst = np.empty(shape)
    for i, row in enumerate(grid):
        for j, (y, x) in enumerate(row):
            dst[:, i, j] = REDUCE[name](src.astype(np.float64)[:, y, x])
    return dst


def pool_model(names: list[str], case: Case, **options) -> bytes:
    """Poolings of ``-x``, in nodes before and after which fp16 stores tensors in half."""
    shape = windows(case)[1]
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", case.shape)], case.shape)
    geometry = {
        "filter_height": case.filter[0], "filter_width": case.filter[1],
        "stride_h": case.stride[0], "stride_w": case.stride[1], "padding": case.padding,
    }  # fmt: skip
    results = [m.op(name, [h], shape, **geometry, **options) for name in names]
    m.output(*(m.op("NEG", [y], shape) for y in results))
    return m.build()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_pooling_leaves_padding_out(device, precision, rng, case):
    x = half_exact(rng.standard_normal(case.shape).astype(np.float32))
    expected = [-pool(name, -x, case) for name in NAMES]
    terms = case.filter[0] * case.filter[1]
    check(
        pool_model(NAMES, case), [x], expected, device=device, precision=precision,
        accumulation=terms,
    )  # fmt: skip


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_large_windows(device, precision, rng, case):
    # Positive numbers: the means of others are next to nothing.
    x = -half_exact(rng.random(case.shape).astype(np.float32))
    expected = [-pool(name, -x, case) for name in NAMES]
    terms = case.filter[0] * case.filter[1]
    check(
        pool_model(NAMES, case), [x], expected, device=device, precision=precision,
        accumulation=terms,
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_activation_is_fused(device, rng, name):
    case = Case((1, 5, 5, 3), (2, 2), (1, 1), "SAME")
    x = 8 * rng.standard_normal(case.shape).astype(np.float32)
    data = pool_model([name], case, fused_activation_function="RELU6")
    expected = -np.clip(pool(name, -x, case), 0, 6)
    check(data, [x], [expected], device=device, precision="fp32", accumulation=4)


def test_following_activation_is_taken_over(device, rng):
    x = rng.standard_normal((1, 4, 4, 4)).astype(np.float32)
    m = ModelMaker()
    y = m.op(
        "AVERAGE_POOL_2D", [m.input("x", x.shape)], (1, 2, 2, 4),
        filter_height=2, filter_width=2, stride_h=2, stride_w=2, padding="VALID",
    )  # fmt: skip
    m.output(m.op("TANH", [y], (1, 2, 2, 4)))
    mean = pool("AVERAGE_POOL_2D", x, Case(x.shape, (2, 2), (2, 2), "VALID"))
    check(m.build(), [x], [np.tanh(mean)], device=device, precision="fp32", accumulation=4)


def test_input_may_be_resized(device, rng):
    case = Case((1, -1, -1, 3), (2, 2), (2, 2), "SAME")
    m = ModelMaker()
    options = {"filter_height": 2, "filter_width": 2, "stride_h": 2, "stride_w": 2}
    y = m.op("MAX_POOL_2D", [m.input("x", case.shape)], (1, -1, -1, 3), padding="SAME", **options)
    m.output(y)
    x = rng.standard_normal((2, 5, 7, 3)).astype(np.float32)
    expected = pool("MAX_POOL_2D", x, case._replace(shape=x.shape))
    check(m.build(), [x], [expected], device=device, precision="fp32", resize={0: x.shape})


@hypothesis.given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    extent=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(["SAME", "VALID"]),
    channels=st.sampled_from([3, 4]),
)
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_geometry(device, rng, size, extent, stride, padding, channels):
    hypothesis.assume(padding == "SAME" or (size[0] >= extent[0] and size[1] >= extent[1]))
    case = Case((1, *size, channels), extent, stride, padding)
    x = rng.standard_normal(case.shape).astype(np.float32)
    expected = -pool("MAX_POOL_2D", -x, case)
    check(pool_model(["MAX_POOL_2D"], case), [x], [expected], device=device, precision="fp32")


def test_other_types_are_refused():
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 1), np.int16)
    m.output(m.op("MAX_POOL_2D", [x], (1, 2, 2, 1), filter_height=1, filter_width=1))
    check_refused(m.build(), "input is int16; supported: float32")


def test_other_ranks_are_refused():
    m = ModelMaker()
    m.output(m.op("MAX_POOL_2D", [m.input("x", (2, 2))], (2, 2), filter_height=1, filter_width=1))
    check_refused(m.build(), "input has rank 2; supported: 4")


def test_stride_of_zero_is_refused():
    m = ModelMaker()
    m.output(m.op("MAX_POOL_2D", [m.input("x", (1, 2, 2, 1))], (1, 2, 2, 1), padding="SAME"))
    check_refused(m.build(), "a stride or filter size is below 1")


@pytest.mark.parametrize("extent", [(3, 1), (1, 3)], ids=str)
def test_filter_larger_than_the_input_is_refused(extent):
    m = ModelMaker()
    geometry = {"filter_height": extent[0], "filter_width": extent[1], "stride_h": 1, "stride_w": 1}
    x = m.input("x", (1, 2, 2, 1))
    m.output(m.op("MAX_POOL_2D", [x], (1, 1, 1, 1), padding="VALID", **geometry))
    check_refused(m.build(), "the filter is larger than the input [1, 2, 2, 1]")

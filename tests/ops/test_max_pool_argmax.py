"""MediaPipe's custom operation MaxPoolingWithArgmax2D."""

from __future__ import annotations

import struct

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused, half_exact
from tests.ops.test_pool import Case

CASES = [
    Case((1, 4, 6, 3), (2, 2), (2, 2), "SAME"),
    Case((2, 5, 7, 4), (2, 3), (2, 3), "SAME"),
    Case((1, 5, 7, 1), (3, 3), (1, 2), "VALID"),
]


def options(case: Case, activation: int = 0) -> bytes:
    """The parameters as MediaPipe's converter stores them: a TfLitePoolParams."""
    padding = {"SAME": 1, "VALID": 2}[case.padding]
    return struct.pack(
        "<6i16x",
        padding,
        case.stride[1],
        case.stride[0],
        case.filter[1],
        case.filter[0],
        activation,
    )


def argmax_pool(src: np.ndarray, case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Maxima and their indices within windows, which count padding."""
    shape, before = [src.shape[0], 0, 0, src.shape[3]], [0, 0]
    for axis in (0, 1):
        size, extent, step = src.shape[1 + axis], case.filter[axis], case.stride[axis]
        if case.padding == "SAME":
            shape[1 + axis] = -(-size // step)
            before[axis] = max(0, (shape[1 + axis] - 1) * step + extent - size) // 2
        else:
            shape[1 + axis] = (size - extent) // step + 1
    margin = [(before[i], case.filter[i]) for i in (0, 1)]
    padded = np.pad(src.astype(np.float64), [(0, 0), *margin, (0, 0)], constant_values=-np.inf)
    values, indices = np.empty(shape), np.empty(shape)
    for y in range(shape[1]):
        for x in range(shape[2]):
            top, left = y * case.stride[0], x * case.stride[1]
            window = padded[:, top : top + case.filter[0], left : left + case.filter[1]]
            flat = window.reshape(shape[0], -1, shape[3])
            values[:, y, x], indices[:, y, x] = flat.max(1), flat.argmax(1)
    return values, indices


def argmax_model(case: Case, **changes) -> bytes:
    """Of ``-x``; the maxima pass another node, so that fp16 stores them in half."""
    shape = argmax_pool(np.zeros(case.shape), case)[0].shape
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", case.shape)], case.shape)
    data = options(case, **changes)
    values, indices = m.custom("MaxPoolingWithArgmax2D", [h], [shape, shape], data)
    m.output(m.op("NEG", [values], shape), indices)
    return m.build()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_maxima_and_their_places(device, precision, rng, case):
    x = half_exact(rng.standard_normal(case.shape).astype(np.float32))
    values, indices = argmax_pool(-x, case)
    check(
        argmax_model(case), [x], [-values, indices + 0.1], device=device, precision=precision,
        reference=False,
    )  # fmt: skip


def test_first_of_equal_maxima_counts(device):
    case = Case((1, 2, 4, 1), (2, 2), (2, 2), "VALID")
    x = np.float32([[5, 5, 7, 7], [5, 5, 7, 6]]).reshape(case.shape) * -1
    expected = [np.float64([-5, -7]).reshape(1, 1, 2, 1), np.full((1, 1, 2, 1), 0.1)]
    check(argmax_model(case), [x], expected, device=device, precision="fp32", reference=False)


def test_activation_leaves_the_places_alone(device, rng):
    case = CASES[0]
    x = rng.standard_normal(case.shape).astype(np.float32) + 0.5
    values, indices = argmax_pool(-x, case)
    expected = [-np.maximum(values, 0), indices + 0.1]
    data = argmax_model(case, activation=1)
    check(data, [x], expected, device=device, precision="fp32", reference=False)


@hypothesis.given(
    size=st.tuples(st.integers(3, 7), st.integers(3, 7)),
    extent=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    padding=st.sampled_from(["SAME", "VALID"]),
)
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_geometry(device, rng, size, extent, padding):
    case = Case((1, *size, 3), extent, extent, padding)
    x = rng.standard_normal(case.shape).astype(np.float32)
    values, indices = argmax_pool(-x, case)
    expected = [-values, indices + 0.1]
    check(argmax_model(case), [x], expected, device=device, precision="fp32", reference=False)


def test_missing_parameters_are_refused():
    m = ModelMaker()
    x = m.input("x", (1, 2, 2, 1))
    m.output(*m.custom("MaxPoolingWithArgmax2D", [x], [(1, 1, 1, 1)] * 2, b"\0" * 8))
    check_refused(m.build(), "its custom data holds no pooling parameters")


def test_missing_output_is_refused():
    m = ModelMaker()
    x = m.input("x", (1, 4, 6, 3))
    m.output(m.custom("MaxPoolingWithArgmax2D", [x], (1, 2, 3, 3), options(CASES[0])))
    check_refused(m.build(), "it has 1 output; the operation has 2")


def test_huge_window_is_refused():
    case = Case((1, 40, 40, 1), (40, 40), (1, 1), "VALID")
    check_refused(argmax_model(case), "the window has more than 1024 elements", exclude=["NEG"])

"""REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW: the elements of a moving window, combined to one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact

Array = Any
FUNCTIONS = {
    "ADD": np.add,
    "MUL": np.multiply,
    "MINIMUM": np.minimum,
    "MAXIMUM": np.maximum,
    "ALL": np.logical_and,
    "ANY": np.logical_or,
}
# Of regions, in the order of FUNCTIONS.
NODES = [
    ("ADD", "STABLEHLO_ADD"),
    ("MUL", "STABLEHLO_MULTIPLY"),
    ("MINIMUM", "STABLEHLO_MINIMUM"),
    ("MAXIMUM", "STABLEHLO_MAXIMUM"),
    ("LOGICAL_AND", "STABLEHLO_AND"),
    ("LOGICAL_OR",),
]


class Case(NamedTuple):
    """Of each axis; the padding has a pair for each of them."""

    shape: tuple[int, ...]
    window: tuple[int, ...]
    step: tuple[int, ...]
    apart: tuple[int, ...]
    base: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()


INPUTS = [
    Case((7,), (3,), (1,), (1,)),
    Case((5, 9), (2, 3), (2, 1), (3, 2)),
    Case((2, 6, 5, 3), (1, 3, 2, 1), (1, 2, 1, 1), (1, 1, 2, 1)),
    Case((2, 3, 2, 3, 2, 4), (1, 2, 1, 1, 2, 3), (1, 1, 1, 2, 1, 1), (1,) * 6),
]
PARAMETERS = [
    Case((7,), (3,), (2,), (2,), (1,), (2, 1)),
    Case((4, 5), (2, 3), (1, 2), (2, 1), (2, 3), (1, 0, -2, 3)),
    Case((3, 4), (1, 1), (1, 2), (1, 1), (2, 1), (1, 0, 0, 0)),  # a window of one position
    Case(
        (1, 5, 4, 3),
        (1, 2, 2, 1),
        (1, 2, 1, 1),
        (1, 1, 1, 1),
        (1, 1, 2, 1),
        (0, 0, 1, 1, 0, 1, 0, 0),
    ),
]


def reference(x: Array, init: Array, case: Case, function: str) -> Array:
    """The input dilated and padded with the initial value, then combined one by one."""
    combine = FUNCTIONS[function]
    base = case.base or (1,) * x.ndim
    padding = np.reshape(case.padding or (0,) * 2 * x.ndim, (-1, 2))
    whole = np.full([(s - 1) * b + 1 for s, b in zip(x.shape, base)], init)
    whole[tuple(slice(None, None, b) for b in base)] = x
    whole = np.pad(whole, np.maximum(padding, 0), constant_values=init)
    cut = [slice(max(0, -low), s - max(0, -high)) for (low, high), s in zip(padding, whole.shape)]
    whole = whole[tuple(cut)]
    reach = [(w - 1) * a + 1 for w, a in zip(case.window, case.apart)]
    shape = [(s - r) // t + 1 for s, r, t in zip(whole.shape, reach, case.step)]
    dst = np.full(shape, init)
    for w in np.ndindex(*case.window):
        first = [k * a for k, a in zip(w, case.apart)]
        part = tuple(slice(f, f + (n - 1) * t + 1, t) for f, n, t in zip(first, shape, case.step))
        dst = combine(dst, whole[part])
    return dst


def model(
    case: Case, result: tuple, function: str, dtype: Any, *, node: str | None = None,
    init: tuple = (), init_type: Any = None,
) -> bytes:  # fmt: skip
    """With a node of the region STABLEHLO_REDUCE_WINDOW, else REDUCE_WINDOW."""
    m = ModelMaker()
    x, y = m.input("x", case.shape, dtype), m.input("init", init, init_type or dtype)
    lists = [np.array(list_, np.int64) for list_ in case[1:]]
    if node is None:
        operands = [x, y, *(m.constant(list_) for list_ in lists[:3])]
        m.output(m.op("REDUCE_WINDOW", operands, result, dtype=dtype, reduce_function=function))
        return m.build()
    region = m.subgraph()
    pair = [region.input(name, (), dtype) for name in "ab"]
    region.output(region.op(node, pair, (), dtype=dtype) if node else pair[1])
    y = m.op(
        "STABLEHLO_REDUCE_WINDOW", [x, y], result, dtype=dtype,
        window_dimensions=lists[0], window_strides=lists[1], window_dilations=lists[2],
        base_dilations=lists[3], padding=lists[4], body_subgraph_index=1,
    )  # fmt: skip
    m.output(y)
    return m.build()


def inputs_of(rng: np.random.Generator, case: Case, dtype: Any) -> tuple[Array, Array]:
    if np.dtype(dtype) == bool:
        return rng.random(case.shape) < 0.7, np.array(rng.random() < 0.5)
    if dtype == np.float32:
        return half_exact(rng.uniform(0.5, 2, case.shape).astype(dtype)), np.array(0.75, dtype)
    return rng.integers(0, 50, case.shape).astype(dtype), np.array(3, dtype)


def types_of(function: str) -> Any:
    return bool if function in ("ALL", "ANY") else np.float32


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("case", INPUTS, ids=str)
def test_windows_given_by_inputs(case, function, device, precision, rng):
    dtype = types_of(function)
    x, init = inputs_of(rng, case, dtype)
    expected = reference(x, init, case, function)
    check(
        model(case, expected.shape, function, dtype), [x, init], [expected],
        device=device, precision=precision, accumulation=12,
    )  # fmt: skip


@pytest.mark.parametrize("case", PARAMETERS, ids=str)
def test_windows_given_by_parameters(case, device, precision, rng):
    for function, nodes in zip(FUNCTIONS, NODES):
        dtype = types_of(function)
        x, init = inputs_of(rng, case, dtype)
        expected = reference(x, init, case, function)
        for node in nodes:
            data = model(case, expected.shape, function, dtype, node=node)
            # The resolver of reference kernels lacks one node.
            options = {"reference": node != "STABLEHLO_AND"}
            check(
                data, [x, init], [expected],
                device=device, precision=precision, accumulation=12, **options,
            )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16, np.int8, np.uint8])
def test_integers_wrap(dtype, device, rng):
    case = INPUTS[1]
    x, init = inputs_of(rng, case, dtype)
    for function in ("ADD", "MUL", "MINIMUM", "MAXIMUM"):
        expected = reference(x, init, case, function)
        data = model(case, expected.shape, function, dtype)
        check(data, [x, init], [expected], device=device, precision="fp32")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"window": (0, 1)}, "a size of the window is 0; supported: 1 to 16777216"),
        ({"step": (1, 0)}, "a stride is 0; supported: 1 to 16777216"),
        ({"apart": (1, -1)}, "a dilation is -1; supported: 1 to 16777216"),
        ({"window": (1,)}, "the window has not the axes of the input"),
        ({"window": (6, 1)}, "a window of 16 positions along axis 0 does not fit into 5 positions"),
        ({"shape": ()}, "input has rank 0"),
    ],
)
def test_damaged_windows_are_refused(change, reason):
    case = INPUTS[1]._replace(**change)
    check_refused(model(case, (2, 5), "ADD", np.float32), reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"base": (0, 1)}, "a dilation of the input is 0; supported: 1 to 16777216"),
        ({"padding": (2**30, 0, 0, 0)}, "an edge padding is 1073741824; supported: -16777216 to"),
    ],
)
def test_damaged_parameters_are_refused(change, reason):
    case = PARAMETERS[1]._replace(**change)
    check_refused(model(case, (2, 5), "ADD", np.float32, node="ADD"), reason)


def test_other_functions_are_refused():
    case, shape = INPUTS[0], (5,)
    check_refused(model(case, shape, "ADD", bool), "the function is not one of the input's type")
    check_refused(
        model(case, shape, "ADD", np.float32, init=(2,)), "the initial value is not a scalar"
    )
    check_refused(
        model(case, shape, "ADD", np.float32, init_type=np.int32),
        "the initial value and the input differ in type",
    )
    check_refused(model(case, shape, "ADD", np.complex64), "input is complex64")
    region = model(PARAMETERS[0], (3,), "ADD", np.float32, node="SUB")
    check_refused(region, "the region is not one node that combines two numbers")


def test_a_window_that_is_computed_at_run_time_is_refused():
    m = ModelMaker()
    lists = [m.input(name, (1,), np.int64) for name in ("window", "step", "apart")]
    operands = [m.input("x", (7,)), m.input("init", ()), *lists]
    m.output(m.op("REDUCE_WINDOW", operands, (5,), reduce_function="ADD"))
    check_refused(m.build(), "the window is computed at run time")

"""DILATE and STABLEHLO_PAD."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import MANY, check, check_refused
from tests.ops.movement import TYPES, random_array

Array = np.ndarray
# shape; low, high and interior padding of each axis
PADDINGS = [
    ((7,), (1,), (2,), (1,)),
    ((3, 5), (0, 2), (1, 0), (2, 0)),
    ((3, 4, 5), (-1, 0, 3), (0, -2, 1), (1, 2, 0)),  # below 0: elements are cut off
    ((2, 1, 3, 2), (1, 0, 0, -1), (0, 3, 0, 2), (0, 2, 1, 3)),
    ((2, 3, 1, 2, 2, 3), (1, 0, 0, 1, 0, 0), (0, 1, 0, 0, 0, 1), (0, 1, 5, 0, 1, 0)),
    ((3,), (-2,), (-2,), (1,)),  # one element between two of the input
]


def padded(x: Array, value, low, high, interior) -> Array:
    """As the specification of StableHLO says, for paddings that cut and others."""
    sizes = [n + (n - 1) * i for n, i in zip(x.shape, interior)]
    spread = np.full(sizes, value, x.dtype)
    spread[tuple(slice(None, None, i + 1) for i in interior)] = x
    around = [(max(a, 0), max(b, 0)) for a, b in zip(low, high)]
    whole = np.pad(spread, around, constant_values=value)
    ends = [(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, whole.shape)]
    return whole[tuple(slice(a, b) for a, b in ends)]


def stablehlo_pad(shape, to, value, sizes, dtype=np.float32) -> bytes:
    m = ModelMaker()
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    options = {name: np.array(v, np.int64) for name, v in zip(names, sizes)}
    operands = [m.input("x", shape, dtype), m.constant(np.array(value, dtype))]
    m.output(m.op("STABLEHLO_PAD", operands, to, **options))
    return m.build()


def dilate(shape, to, value, steps, dtype=np.float32, **scale) -> bytes:
    m = ModelMaker()
    x = m.input("x", shape, dtype, **scale)
    operands = [
        x,
        m.constant(np.array(steps, np.int32)),
        m.constant(np.array(value, dtype), **scale),
    ]
    m.output(m.op("DILATE", operands, to, dtype=dtype, **scale))
    return m.build()


@pytest.mark.parametrize(("shape", "low", "high", "interior"), PADDINGS, ids=str)
def test_paddings(shape, low, high, interior, device, precision, rng):
    x = random_array(rng, shape)
    want = padded(x, 0.5, low, high, interior)
    model = stablehlo_pad(shape, want.shape, 0.5, (low, high, interior))
    check(model, [x], [want.astype(np.float64)], device=device, precision=precision)


@pytest.mark.parametrize("shape", [(9,), (3, 5), (2, 3, 4), (1, 2, 1, 3, 2, 2)], ids=str)
def test_dilations(shape, device, precision, rng):
    x = random_array(rng, shape)
    steps = rng.integers(1, 4, len(shape))
    nothing = [0] * len(shape)
    want = padded(x, -1.5, nothing, nothing, steps - 1)
    model = dilate(shape, want.shape, -1.5, steps)
    check(model, [x], [want.astype(np.float64)], device=device, precision=precision)


@pytest.mark.parametrize("dtype", [*TYPES, np.float16])
def test_every_type_is_moved(dtype, device, rng):
    x = random_array(rng, (3, 5), dtype)
    want = padded(x, 1, (0, 0), (0, 0), (1, 2))
    check(
        dilate(x.shape, want.shape, 1, (2, 3), dtype), [x], [want], device=device, precision="fp32"
    )
    sizes = (1, -1), (0, 2), (0, 1)
    want = padded(x, 1, *sizes)
    model = stablehlo_pad(x.shape, want.shape, 1, sizes, dtype)
    check(model, [x], [want], device=device, precision="fp32")


def test_the_value_of_the_middle_of_a_graph_may_be_computed(device, precision, rng):
    x, value = random_array(rng, (3, 4)), np.float32(0.25)
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", x.shape)], x.shape)
    filled = m.op("NEG", [m.input("value", ())], ())
    steps = m.constant(np.array([2, 1], np.int32))
    m.output(m.op("ABS", [m.op("DILATE", [h, steps, filled], (5, 4), dtype=np.float32)], (5, 4)))
    want = np.abs(padded(-x, -value, (0, 0), (0, 0), (1, 0)).astype(np.float64))
    check(m.build(), [x, value], [want], device=device, precision=precision)


def test_quantised_numbers_are_moved(device, rng):
    x = random_array(rng, (3, 5), np.int8)
    scale = {"quantization": Quantization(0.5, 3)}
    want = padded(x, 3, (0, 0), (0, 0), (1, 0))
    model = dilate(x.shape, want.shape, 3, (2, 1), np.int8, **scale)
    check(model, [x], [want], device=device, precision="fp32")


def test_dilations_may_come_at_run_time(device, rng):
    x = random_array(rng, (3, 4))
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", x.shape)], x.shape)
    steps = m.input("steps", (2,), np.int32)
    m.output(m.op("DILATE", [h, steps, m.constant(np.float32(2))], (5, 4), dtype=np.float32))
    for given in ([2, 1], [1, 3]):
        want = padded(-x, 2, (0, 0), (0, 0), np.array(given) - 1)
        inputs = [x, np.array(given, np.int32)]
        check(m.build(), inputs, [want], device=device, precision="fp32")


def test_shapes_may_be_resized(device, rng):
    x = random_array(rng, (4, 3))
    want = padded(x, 0, (0, 0), (0, 0), (2, 1))
    model = dilate((-1, 3), (-1, 5), 0, (3, 2))
    options = {"device": device, "precision": "fp32", "resize": {0: x.shape}}
    check(model, [x], [want], **options)


def test_what_has_no_result_is_refused():
    check_refused(dilate((3,), (3,), 0, (0,)), "a dilation is 0; supported: 1 to 16777216")
    check_refused(dilate((3,), (3,), 0, (1, 1)), "there is not one dilation per axis of the input")
    check_refused(
        stablehlo_pad((3,), (3,), 0, ((0,), (0,), (-1,))),
        "an interior padding is -1; supported: 0 to 16777215",
    )
    check_refused(stablehlo_pad((3,), (1,), 0, ((-3,), (0,), (0,))), "would have 0 elements")
    check_refused(
        stablehlo_pad((3,), (3,), 0, ((1 << 25,), (0,), (0,))),
        "an edge padding is 33554432; supported: -16777216 to 16777216",
    )
    check_refused(stablehlo_pad((), (), 0, ((), (), ())), "input has rank 0; supported: 1 to 6")
    check_refused(
        stablehlo_pad((3,), (3,), [0, 1], ((0,), (0,), (0,))), "the value is not a scalar"
    )
    m = ModelMaker()
    operands = [m.input("x", (3,)), m.input("steps", (MANY,), np.int32), m.constant(np.float32(0))]
    m.output(m.op("DILATE", operands, (5,)))
    check_refused(m.build(), "the tensor of dilations is computed at run time")
    m = ModelMaker()
    operands = [m.input("x", (3,)), m.constant(np.int32([2])), m.constant(np.int32(0))]
    m.output(m.op("DILATE", operands, (5,)))
    check_refused(m.build(), "the value and the input differ in type")

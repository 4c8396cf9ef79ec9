"""CAST between element types."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import EXAMPLES, check, check_refused, op_runtime
from tests.runtimes import make_interpreter, run_interpreter, run_reference

TYPES = [
    np.float32, np.int32, np.int64, bool, np.int16, np.int8, np.uint8, np.uint16, np.uint32,
]  # fmt: skip


def values(dtype) -> np.ndarray:
    """Numbers that every type can hold once they are cut to integers."""
    x = np.array([0, 1, 1.9, 2.5, 3, 100.5, 127])
    return (x > 0) if dtype is bool else x.astype(dtype)


def cast(m: ModelMaker, tensor: int, shape: tuple, source, target) -> int:
    types = {"in_data_type": source, "out_data_type": target}
    return m.op("CAST", [tensor], shape, dtype=target, **types)


@pytest.mark.parametrize("source", TYPES)
def test_cast_to_every_type(device, source):
    x = values(source)
    m = ModelMaker()
    src = m.input("x", x.shape, source)
    targets = [t for t in TYPES if t is not source]
    m.output(*(cast(m, src, x.shape, source, t) for t in targets))
    check(m.build(), [x], [x.astype(t) for t in targets], device=device, precision="fp32")


def test_floats_are_cut_towards_zero(device, precision):
    x = np.float32([-2.75, -1, -0.5, 0.5, 1.5, 200.5])
    m = ModelMaker()
    h = m.op("NEG", [m.input("x", x.shape)], x.shape)
    m.output(cast(m, h, x.shape, np.float32, np.int32), cast(m, h, x.shape, np.float32, np.int64))
    expected = np.trunc(-x).astype(np.int32)
    check(m.build(), [x], [expected, expected], device=device, precision=precision)


def test_integers_become_half_in_fp16(device, precision):
    x = np.int32([-3, 0, 5, 1000])
    m = ModelMaker()
    h = cast(m, m.input("x", x.shape, np.int32), x.shape, np.int32, np.float32)
    m.output(m.op("NEG", [h], x.shape))
    check(m.build(), [x], [-x.astype(np.float64)], device=device, precision=precision)


def test_wide_integers_lose_their_upper_bits(device):
    x = np.array([2**33 + 5, -(2**33) - 7, 300], np.int64)
    m = ModelMaker()
    src = m.input("x", x.shape, np.int64)
    m.output(*(cast(m, src, x.shape, np.int64, t) for t in (np.int32, np.uint8)))
    expected = [x.astype(np.int32), x.astype(np.uint8)]
    check(m.build(), [x], expected, device=device, precision="fp32")


def test_large_integers_round_to_the_nearest_float(device):
    x = np.array([2**24 + 1, 2**24 + 3, -(2**31) + 1], np.int32)
    m = ModelMaker()
    m.output(cast(m, m.input("x", x.shape, np.int32), x.shape, np.int32, np.float32))
    check(m.build(), [x], [x.astype(np.float32)], device=device, precision="fp32")


def test_float16_constant_is_widened(device):
    x = np.float16([0.1, -2.5, 7])
    m = ModelMaker()
    h = cast(m, m.constant(x), x.shape, np.float16, np.float32)
    m.output(m.op("ADD", [m.input("y", x.shape), h], x.shape))
    y = np.float32([1, 2, 3])
    # The runtimes have no kernel for it.
    check(m.build(), [y], [x + np.float64(y)], device=device, precision="fp32", reference=False)


@hypothesis.given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=6))
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_shape(device, rng, shape):
    x = rng.integers(-100, 100, shape, np.int32)
    m = ModelMaker()
    m.output(cast(m, m.input("x", x.shape, np.int32), x.shape, np.int32, np.float32))
    check(m.build(), [x], [x.astype(np.float64)], device=device, precision="fp32")


def test_unsigned_numbers_are_no_negative_ones(device):
    m = ModelMaker()
    words = np.uint32([0, 2**31 - 1, 2**31, 2**31 + 2**7, 2**32 - 1])
    shorts = np.uint16([0, 1, 2**15 - 1, 2**15, 2**16 - 1])
    x, y = m.input("x", (5,), np.uint32), m.input("y", (5,), np.uint16)
    wide = [np.float32, np.int64, np.int32, np.uint16]
    m.output(
        *(cast(m, x, (5,), np.uint32, to) for to in wide),
        *(cast(m, y, (5,), np.uint16, to) for to in [*wide[:3], np.uint32, np.int16]),
    )
    expected = [words.astype(to) for to in wide]
    expected += [shorts.astype(to) for to in [*wide[:3], np.uint32, np.int16]]
    check(m.build(), [words, shorts], expected, device=device, precision="fp32")


def test_floats_become_large_unsigned_numbers(device):
    m = ModelMaker()
    x = m.input("x", (4,))
    m.output(cast(m, x, (4,), np.float32, np.uint32), cast(m, x, (4,), np.float32, np.uint16))
    values = np.float32([0.9, 40000.9, 65535.5, 2])
    large = np.float32([3e9, 2**31, 4294967040, 1])
    expected = [values.astype(np.uint32), values.astype(np.uint16)]
    check(m.build(), [values], expected, device=device, precision="fp32")
    m = ModelMaker()
    m.output(cast(m, m.input("x", (4,)), (4,), np.float32, np.uint32))
    check(m.build(), [large], [large.astype(np.uint32)], device=device, precision="fp32")


def test_bfloat16_from_and_to_every_type(device):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    pytest.importorskip("ai_edge_litert", reason="tflite_runtime does not know bfloat16")
    sources = {kind: values(kind) for kind in [*TYPES, np.float16]}
    # Ties, the largest number, overflow, subnormal numbers, nothing left, NaN.
    sources[np.float32] = np.float32(
        [0.1, 1 + 2**-8, 1 + 3 * 2**-8, 3.38953139e38, 3.4e38, -1e-40, 1e-45, -np.inf, np.nan, 7]
    )
    sources[np.int32] = np.int32([0, 2**24 + 1, -(2**31), 2**31 - 1, 257, 259, -257])
    for source, x in sources.items():
        m = ModelMaker()
        m.output(cast(m, m.input("x", x.shape, source), x.shape, source, bfloat16))
        (got,) = run_with(m.build(), x, device)
        (stock,) = run_reference(m.build(), [x], op_runtime())
        np.testing.assert_array_equal(got.view(np.uint16), stock.view(np.uint16))
    for target in [*TYPES, np.float16]:
        x = values(np.float32).astype(bfloat16)
        m = ModelMaker()
        m.output(cast(m, m.input("x", x.shape, bfloat16), x.shape, bfloat16, target))
        (got,) = run_with(m.build(), x, device)
        (stock,) = run_reference(m.build(), [x], op_runtime())
        np.testing.assert_array_equal(got, stock)
        np.testing.assert_array_equal(got, (x != 0) if target is bool else x.astype(target))


@pytest.mark.parametrize("source", TYPES)
def test_cast_to_float16(device, source):
    x = values(source)
    if source is np.float32:  # ties, the largest half, overflow, subnormal halves, nothing left
        x = np.float32([0.1, 1 + 2**-11, 1 + 3 * 2**-11, -65504, 65520, 1e30, 3e-7, -1e-9, np.nan])
    m = ModelMaker()
    m.output(cast(m, m.input("x", x.shape, source), x.shape, source, np.float16))
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    (got,) = run_with(m.build(), x, device)
    np.testing.assert_array_equal(got, want)
    (stock,) = run_reference(m.build(), [x], op_runtime())
    np.testing.assert_array_equal(stock, want)


def test_float16_inputs_become_floats(device):
    x = np.float16([0.1, -65504, 6e-8, np.inf, np.nan])
    m = ModelMaker()
    m.output(cast(m, m.input("x", x.shape, np.float16), x.shape, np.float16, np.float32))
    (got,) = run_with(m.build(), x, device)
    np.testing.assert_array_equal(got, x.astype(np.float32))


def test_float16_in_the_middle_of_a_graph(device, precision):
    """Values are rounded to half even where floats are stored as float."""
    x = np.float32([[0.1, 1 + 3 * 2**-11, -7.3], [1000.7, 2049, -0.33]])
    m = ModelMaker()
    h = cast(m, m.op("NEG", [m.input("x", x.shape)], x.shape), x.shape, np.float32, np.float16)
    new = m.constant(np.array([3, 2], np.int32))
    h = m.op("RESHAPE", [h, new], (3, 2), dtype=np.float16)
    y = cast(m, h, (3, 2), np.float16, np.float32)
    m.output(m.op("ADD", [y, m.constant(np.float32(1))], (3, 2), dtype=np.float32))
    want = -x.astype(np.float16).astype(np.float64).reshape(3, 2) + 1
    check(m.build(), [x], [want], device=device, precision=precision, reference=False)


def run_with(model: bytes, x: np.ndarray, device: str) -> list[np.ndarray]:
    delegate = clgpu_delegate.load(device=device)
    outputs = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), [x])
    assert delegate.explain().claimed == 1
    return outputs


def test_cast_to_complex_numbers_is_refused():
    m = ModelMaker()
    m.output(cast(m, m.input("x", (4,)), (4,), np.float32, np.complex64))
    check_refused(m.build(), "output is complex64; supported: float32, float16, int32")


def test_complex_numbers_become_floats_only():
    m = ModelMaker()
    x = m.input("x", (3,), np.complex64)
    m.output(
        m.op("CAST", [x], (3,), dtype=np.int32, in_data_type=np.complex64, out_data_type=np.int32)
    )
    check_refused(m.build(), "output of a complex input is int32; supported: float32")

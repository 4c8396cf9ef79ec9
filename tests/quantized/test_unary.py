"""Functions of one quantised tensor equal the reference kernels at every value it can hold."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check, check_refused
from tests.quantized.parameters import ACTIVATION_TYPES, check_exact, random_quantization

# The types that each function has reference kernels for.
FUNCTIONS = {
    "RELU": "int8 uint8 int16",
    "RELU6": "int8 uint8 int16",
    "RELU_N1_TO_1": "int8 uint8",
    "RELU_0_TO_1": "int8 uint8",
    "LEAKY_RELU": "int8 uint8 int16",
    "LOGISTIC": "int8 uint8 int16",
    "TANH": "int8 uint8 int16",
    "HARD_SWISH": "int8 uint8",
    "GELU": "int8 uint8 int16",
    "ABS": "int8 int16",
    "NEG": "int8 int16",
    "EXP": "int8 int16",
    "LOG": "int8 int16",
}
NOT_NEGATIVE = ["SQRT", "RSQRT"]  # of int8 and int16; the reference kernels stop below zero


def every_value(dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.arange(info.min, info.max + 1).astype(dtype)


def names_of(dtype) -> list[str]:
    return [name for name, types in FUNCTIONS.items() if np.dtype(dtype).name in types.split()]


def result_quantization(rng, name: str, dtype) -> Quantization:
    wide = dtype == np.int16
    zero = random_quantization(rng, dtype).zero_points
    if name == "LOGISTIC" or (name == "TANH" and wide):
        return Quantization(2.0**-15 if wide else 2.0**-8, zero)
    scale = random_quantization(rng, dtype, (2e-5, 4e-4) if wide else (0.005, 0.1)).scales
    return Quantization(scale, zero)


def build(rng, names, dtype, count: int, src: Quantization) -> bytes:
    m = ModelMaker()
    x = m.input("x", (count,), dtype, quantization=src)
    for name in names:
        slope = {"alpha": float(np.float32(rng.uniform(-0.5, 1.5)))}
        ways = {"GELU": [{"approximate": a} for a in (False, True)], "LEAKY_RELU": [slope]}
        for option in ways.get(name, [{}]):
            dst = result_quantization(rng, name, dtype)
            m.output(m.op(name, [x], (count,), quantization=dst, **option))
    return m.build()


@pytest.mark.parametrize("dtype", ACTIVATION_TYPES)
def test_functions_equal_the_reference(dtype, device, rng):
    scales = (2e-5, 4e-4) if dtype == np.int16 else (0.005, 0.1)
    values = every_value(dtype)
    model = build(rng, names_of(dtype), dtype, values.size, random_quantization(rng, dtype, scales))
    check_exact(model, [values], device=device)


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_roots_equal_the_reference(dtype, device, rng):
    src = random_quantization(rng, dtype)
    values = every_value(dtype)
    values = values[values >= src.zero_points]
    check_exact(build(rng, NOT_NEGATIVE, dtype, values.size, src), [values], device=device)


@pytest.mark.parametrize("exponent", [-11, -12, -10])
def test_int16_scales_that_are_powers_of_two(device, rng, exponent):
    values = every_value(np.int16)
    src = Quantization(2.0**exponent)
    check_exact(
        build(rng, ["LOGISTIC", "TANH"], np.int16, values.size, src), [values], device=device
    )


@pytest.mark.parametrize("count", [65536, 13])
def test_sizes_of_int16_without_a_scale_wrap(device, count):
    x = every_value(np.int16)[:count]
    m = ModelMaker()
    m.output(m.op("ABS", [m.input("x", x.shape, x.dtype)], x.shape))
    check(m.build(), [x], [np.abs(x)], device=device, precision="fp32")


def test_elu_is_a_table_of_floats(device, rng):
    # The reference runtime does not register it; the stock kernel is a table, too.
    src, dst = random_quantization(rng, np.int8), random_quantization(rng, np.int8)
    x = np.float32(src.scales) * (every_value(np.int8).astype(np.int32) - src.zero_points)
    y = np.where(x < 0, np.expm1(x.astype(np.float32)), x).astype(np.float32)
    stored = np.trunc(y / np.float32(dst.scales) + np.copysign(0.5, y)) + dst.zero_points
    m = ModelMaker()
    m.output(
        m.op("ELU", [m.input("x", (256,), np.int8, quantization=src)], (256,), quantization=dst)
    )
    expected = np.clip(stored, -128, 127).astype(np.int8)
    options = {"device": device, "precision": "fp32", "reference": False}
    check(m.build(), [every_value(np.int8)], [expected], **options)


@hypothesis.given(exponent=st.floats(-6, 3), dtype=st.sampled_from(ACTIVATION_TYPES))
@hypothesis.settings(max_examples=EXAMPLES)
def test_any_scale(device, rng, exponent, dtype):
    zero = random_quantization(rng, dtype).zero_points
    src = Quantization(float(np.float32(10**exponent)), zero)
    names = [name for name in names_of(dtype) if name != "HARD_SWISH"]
    values = every_value(dtype)
    check_exact(build(rng, names, dtype, values.size, src), [values], device=device)


def test_chain_of_odd_length(device, rng):
    q = random_quantization(rng, np.int8)
    m = ModelMaker()
    x = m.input("x", (1, 2, 3, 7), np.int8, quantization=q)
    m.output(m.op("NEG", [m.op("RELU", [x], (1, 2, 3, 7), quantization=q)], (1, 2, 3, 7)))
    values = rng.integers(-128, 128, (1, 2, 3, 7)).astype(np.int8)
    check_exact(m.build(), [values], device=device)


@pytest.mark.parametrize(
    ("name", "dtype", "scale", "reason"),
    [
        ("LOGISTIC", np.int8, 0.5, "output has the scale 0.500000; supported: 1/256"),
        ("TANH", np.int16, 0.5, "supported: 1/32768"),
        ("HARD_SWISH", np.int8, 1e-5, "supported: at least 1/128 of the input's"),
        ("ELU", np.uint8, 0.5, "input is uint8; supported: float32, int8"),
        ("SIN", np.int8, 0.5, "input is int8; supported: float32"),
    ],
)
def test_what_the_reference_refuses_is_refused(name, dtype, scale, reason):
    m = ModelMaker()
    x = m.input("x", (4,), dtype, quantization=Quantization(0.5))
    m.output(m.op(name, [x], (4,), quantization=Quantization(scale)))
    check_refused(m.build(), reason)

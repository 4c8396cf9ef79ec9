"""NaN stays NaN wherever it does in the reference kernels.

A clamp by fmax and fmin would turn a NaN into a number, and hide that a network has overflowed.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.ops.harness import check

CLAMPS = ("RELU", "RELU_N1_TO_1", "RELU6")
OTHERS = ("RELU_0_TO_1", "HARD_SWISH", "LOGISTIC", "TANH", "ABS", "SQRT", "GELU")
ROWS = (3, 33)
IMAGE = (1, 5, 6, 12)
ONCE = {"stride_h": 1, "stride_w": 1}  # options of a window that moves by one


def holed(*shape: int) -> np.ndarray:
    """Numbers of which each last axis but the first has a NaN, at another place each."""
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    for i, row in enumerate(x.reshape(-1, shape[-1])[1:]):
        row[(5 * i) % len(row)] = np.nan
    return x


def weights(m: ModelMaker, *shape: int) -> int:
    """Weights with a NaN for the second output channel only.

    However sums are computed, that channel of the result is NaN, and the others are numbers.
    """
    values = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    values[(0, 1, 1, 1) if shape[0] == 1 else 1] = np.nan
    return m.constant(values)


def bias(m: ModelMaker, count: int) -> int:
    return m.constant(np.linspace(-1, 1, count, dtype=np.float32))


def functions(m: ModelMaker) -> list[int]:
    x = m.input("x", ROWS)
    leaky = m.op("LEAKY_RELU", [x], ROWS, alpha=0.125)
    return [leaky, *(m.op(name, [x], ROWS) for name in (*CLAMPS, *OTHERS))]


def pairs(m: ModelMaker) -> list[int]:
    x = m.input("x", ROWS)
    y = m.constant(np.full(ROWS, 0.25, np.float32))
    sums = [m.op("ADD", [x, y], ROWS, fused_activation_function=act) for act in CLAMPS]
    # Where one of two operands is a NaN, the second one is the result.
    extremes = [
        m.op(name, operands, ROWS)
        for name in ("MAXIMUM", "MINIMUM")
        for operands in ([x, y], [y, x])
    ]
    return sums + extremes


def rows(m: ModelMaker) -> list[int]:
    x = m.input("x", ROWS)
    return [m.op(name, [x], ROWS) for name in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")]


def averages(m: ModelMaker) -> list[int]:
    x = m.input("x", IMAGE)
    window = {"filter_height": 2, "filter_width": 2, "padding": "VALID", **ONCE}
    operation = {"fused_activation_function": "RELU6", **window}
    return [m.op("AVERAGE_POOL_2D", [x], (1, 4, 5, 12), **operation)]


def fully_connected(m: ModelMaker) -> list[int]:
    operands = [m.input("x", (4, 33)), weights(m, 7, 33), bias(m, 7)]
    return [m.op("FULLY_CONNECTED", operands, (4, 7), fused_activation_function="RELU6")]


def convolution(m: ModelMaker) -> list[int]:
    operands = [m.input("x", IMAGE), weights(m, 8, 3, 3, 12), bias(m, 8)]
    options = {"fused_activation_function": "RELU6", **ONCE}
    return [m.op("CONV_2D", operands, (1, 5, 6, 8), **options)]


def depthwise(m: ModelMaker) -> list[int]:
    operands = [m.input("x", IMAGE), weights(m, 1, 3, 3, 12), bias(m, 12)]
    options = {"fused_activation_function": "RELU", **ONCE}
    return [m.op("DEPTHWISE_CONV_2D", operands, IMAGE, **options)]


INPUTS = (functions, pairs, rows, averages)
WEIGHTS = (fully_connected, convolution, depthwise)


@pytest.mark.parametrize("build", INPUTS, ids=lambda build: build.__name__)
def test_a_nan_of_the_input_stays_where_the_reference_keeps_it(device, precision, build):
    m = ModelMaker()
    m.output(*build(m))
    check(m.build(), [holed(*m.shape(0))], None, device=device, precision=precision)


@pytest.mark.parametrize("build", WEIGHTS, ids=lambda build: build.__name__)
def test_a_nan_of_the_weights_is_that_of_its_channel(device, precision, rng, build):
    m = ModelMaker()
    m.output(*build(m))
    x = rng.standard_normal(m.shape(0)).astype(np.float32)
    check(m.build(), [x], None, device=device, precision=precision, accumulation=108)

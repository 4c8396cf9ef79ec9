"""SVDF: filters that keep their last results."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused, op_runtime
from tests.ops.states import check_states
from tests.runtimes import make_interpreter, run_interpreter

# Batch, depth, units, rank, memory; a dimension longer than a work-group, one of each size 1.
CASES = [(1, 7, 5, 1, 4), (2, 70, 3, 2, 9), (1, 1, 1, 3, 1), (3, 20, 17, 1, 66)]
INFERENCES = 5


def model(case, rng, weights="float", *, bias=True, activation="RELU"):
    batch, depth, units, rank, memory = case
    m = ModelMaker()
    filters = units * rank
    feature = (rng.standard_normal((filters, depth)) * 0.3).astype(np.float32)
    time = (rng.standard_normal((filters, memory)) * 0.3).astype(np.float32)
    b = rng.standard_normal(units).astype(np.float32) if bias else None
    x = m.input("x", (batch, depth))
    if weights == "float":
        ids = [m.constant(feature), m.constant(time)]
    else:
        scales = [float(np.float32(np.abs(array).max() / 127)) for array in (feature, time)]
        feature, time = (np.round(a / s).astype(np.int8) for a, s in zip((feature, time), scales))
        ids = [m.constant(a, quantization=(s,)) for a, s in zip((feature, time), scales)]
        feature, time = (a * np.float64(s) for a, s in zip((feature, time), scales))
    state = m.tensor((batch, filters * memory), is_variable=True)
    inputs = [x, *ids, None if b is None else m.constant(b), state]
    m.output(m.op("SVDF", inputs, (batch, units), rank=rank, fused_activation_function=activation))
    return m, feature, time, b


def reference(case, inferences, feature, time, bias, relu):
    batch, _, units, rank, memory = case
    state = np.zeros((batch, units * rank, memory))
    results = []
    for (x,) in inferences:
        product = x.astype(np.float64) @ feature.astype(np.float64).T
        state = np.concatenate([state[:, :, 1:], product[:, :, None]], axis=2)
        y = (state * time).sum(2).reshape(batch, units, rank).sum(2)
        y = y if bias is None else y + bias
        results.append([np.maximum(y, 0) if relu else y])
    return results


def random_inputs(case, rng):
    shape = case[:2]
    return [[rng.standard_normal(shape).astype(np.float32)] for _ in range(INFERENCES)]


@pytest.mark.parametrize("case", CASES)
def test_floats(case, device, precision, rng):
    bias = case[0] != 2
    activation = "RELU" if bias else "NONE"
    m, *parameters = model(case, rng, bias=bias, activation=activation)
    inputs = random_inputs(case, rng)
    expected = reference(case, inputs, *parameters, activation == "RELU")
    terms = case[1] + case[3] * case[4]
    check_states(
        m.build(), inputs, expected, device=device, precision=precision, accumulation=terms
    )


def test_int8_weights_of_floats(device, precision, rng):
    case = CASES[1]
    m, *parameters = model(case, rng, "int8", activation="NONE")
    inputs = random_inputs(case, rng)
    expected = reference(case, inputs, *parameters, False)
    check_states(
        m.build(),
        inputs,
        expected,
        device=device,
        precision=precision,
        accumulation=case[1] + case[3] * case[4],
        stock=False,  # its kernels round the input to int8
    )


def test_refused_zero_point_of_weights(rng):
    m, *_ = model(CASES[0], rng, "int8")
    weights = m._tensors[m._ops[0].inputs[1]]
    weights.quantization = Quantization(0.5, 3)
    check_refused(m.build(), "weights of features has the scale 0.500000 and the zero point 3")


def integer_model(case, rng, parts=None, **changes):
    """Put the arrays and the scales into ``parts``, if that is a dictionary."""
    batch, depth, units, rank, memory = case
    filters = units * rank
    m = ModelMaker()
    scale = {"x": 0.05, "feature": 0.01, "time": 0.0003, "state": 0.004, "dst": 0.02, **changes}
    x = m.input("x", (batch, depth), np.int8, quantization=(scale["x"], -100))
    feature = rng.integers(-128, 128, (filters, depth)).astype(np.int8)
    time = rng.integers(-32768, 32768, (filters, memory)).astype(np.int16)
    time = time.astype(changes.get("time_type", np.int16))
    most = changes.get("bias", 2**20)
    bias = rng.integers(-most, most, units).astype(np.int32)
    state_type = changes.get("state_type", np.int16)
    inputs = [
        x,
        m.constant(feature, quantization=(scale["feature"], changes.get("feature_zero", 0))),
        m.constant(time, quantization=(scale["time"],)),
        m.constant(bias, quantization=(scale["state"] * scale["time"],)),
        m.tensor(
            (batch, filters * memory),
            state_type,
            is_variable=changes.get("is_variable", True),
            quantization=(scale["state"], changes.get("state_zero", 0)),
        ),
    ]
    if parts is not None:
        parts.update(feature=feature, time=time, bias=bias, scale=scale)
    activation = changes.get("activation", "RELU")
    options = {"rank": changes.get("rank", rank), "fused_activation_function": activation}
    m.output(m.op("SVDF", inputs, (batch, units), quantization=(scale["dst"], -128), **options))
    return m.build()


def test_integers_of_a_hundred_steps(device, rng):
    case = (1, 12, 6, 1, 8)
    inputs = [[rng.integers(-128, 128, case[:2]).astype(np.int8)] for _ in range(100)]
    check_states(integer_model(case, rng), inputs, None, device=device)


def rescaled(x, scale):
    """The integers times a real number, as gemmlowp's two roundings have it."""
    fraction, exponent = np.frexp(float(scale))
    multiplier = int(np.floor(fraction * 2**31 + 0.5))
    x = x.astype(np.int64) << max(exponent, 0)
    product = x * multiplier
    high = (product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))).astype(object)
    high = np.array([int(h) >> 31 if h >= 0 else -(int(-h) >> 31) for h in high.ravel()], np.int64)
    high = high.reshape(x.shape)
    right = max(-exponent, 0)
    rest = high & ((1 << right) - 1)
    return (high >> right) + (rest > ((1 << right) - 1 >> 1) + (high < 0))


INT8_STATE = {
    "state_type": np.int8, "time_type": np.int8, "state_zero": 5, "bias": 2**13,
    "state": 0.15, "time": 0.01, "dst": 0.2,
}  # fmt: skip


def integer_reference(case, inferences, parts, state_zero, most):
    batch, _, units, rank, memory = case
    scale = {
        name: np.float32(parts["scale"][name]) for name in ("x", "feature", "state", "time", "dst")
    }
    feature, time = (parts[name].astype(np.int64) for name in ("feature", "time"))
    state = np.full((batch, units * rank, memory), state_zero)
    results = []
    for (x,) in inferences:
        product = (x.astype(np.int64) + 100) @ feature.T
        product = rescaled(product, scale["x"] * scale["feature"] / scale["state"]) + state_zero
        product = np.clip(product, -most - 1, most)
        state = np.concatenate([state[:, :, 1:], product[:, :, None]], axis=2)
        total = ((state - state_zero) * time).sum(2).reshape(batch, units, rank).sum(2)
        total = (total + parts["bias"]).astype(np.int32)
        result = rescaled(total, scale["state"] * scale["time"] / scale["dst"]) - 128
        results.append([np.clip(result, -128, 127)])
    return results


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("state", [np.int16, np.int8])
def test_integers_equal_the_reference(state, case, device, rng):
    """The runtimes write beyond a state of int8, which TensorFlow Lite Micro has."""
    inputs = [[rng.integers(-128, 128, case[:2]).astype(np.int8)] for _ in range(INFERENCES)]
    is_short = state == np.int16
    parts = {}
    data = integer_model(case, rng, parts, **({} if is_short else INT8_STATE))
    limits = (0, 32767) if is_short else (5, 127)
    expected = integer_reference(case, inputs, parts, *limits)
    check_states(data, inputs, expected, device=device, stock=is_short)


def test_a_state_of_int8_is_not_verified(device, rng):
    delegate = clgpu_delegate.load(device=device, verify="first")
    data = integer_model(CASES[0], rng, **INT8_STATE)
    run_interpreter(make_interpreter(op_runtime(), data, [delegate]), [np.zeros((1, 7), np.int8)])
    (check,) = delegate.explain().verification.partitions
    assert "stock kernels write beyond the state of int8 at node 0 (SVDF)" in check.reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state_type": np.int8}, "state is int8; supported: int16"),
        ({"time_type": np.int8}, "state is int16; supported: int8"),
        ({"time_type": np.int32}, "weights of time is int32; supported: int16, int8"),
        ({"activation": "NONE"}, "the fused activation is 0; supported: 1"),
        ({"feature_zero": 3}, "input 1 has the scale 0.010000 and the zero point 3"),
        ({"is_variable": False}, "the state is not a variable tensor"),
        ({"rank": 0}, "the rank is 0; supported: 1 and more"),
    ],
)
def test_refused_integers(changes, reason, rng):
    check_refused(integer_model(CASES[0], rng, **changes), reason)


INT8 = {"dtype": np.dtype(np.int8), "quantization": Quantization(0.5, 0)}


@pytest.mark.parametrize(
    ("slot", "changes", "reason"),
    [
        (0, {"dtype": np.dtype(np.uint8)}, "input is uint8; supported: float32, int8"),
        (0, {"shape": (1, 1, 7)}, "input has rank 3; supported: 2"),
        (1, {"shape": (1, 5, 7)}, "weights of features has rank 3; supported: 2"),
        (2, {"shape": (1, 5, 4)}, "weights of time has rank 3; supported: 2"),
        (4, {"shape": (1, 5, 4)}, "state has rank 3; supported: 2"),
        (
            1,
            {"dtype": np.dtype(np.int32)},
            "weights of features is int32; supported: float32, int8",
        ),
        (2, {**INT8, "buffer": 0}, "weights of time is computed at run time"),
        (
            1,
            {**INT8, "buffer": 0, "quantization": Quantization(0.5, 3)},
            "weights of features is computed at run time",
        ),
        (3, {"dtype": np.dtype(np.int32)}, "bias is int32; supported: float32"),
    ],
)
def test_refused(slot, changes, reason, rng):
    m, *_ = model(CASES[0], rng)
    for name, value in changes.items():
        setattr(m._tensors[m._ops[0].inputs[slot]], name, value)
        if slot == 0 and name == "dtype":
            m._tensors[m._ops[0].outputs[0]].dtype = value
    check_refused(m.build(), reason)

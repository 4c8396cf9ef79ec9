"""Activations move into the preceding node if no other node reads its result."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model_maker import ModelMaker
from tests.models.comparison import run_delegated
from tests.ops.harness import check

SHAPE = (1, 5, 7, 3)


def _model(*activations: str, also_output: bool = False) -> bytes:
    rng = np.random.default_rng(1)
    m = ModelMaker()
    x = m.input("x", SHAPE, np.float32)
    weights = m.constant(rng.standard_normal((4, 3, 3, 3), np.float32))
    bias = m.constant(rng.standard_normal(4, np.float32))
    y = m.op("CONV_2D", [x, weights, bias], (1, 5, 7, 4), padding="SAME", stride_w=1, stride_h=1)
    if also_output:
        m.output(y)
    for activation in activations:
        options = {"alpha": 0.2} if activation == "LEAKY_RELU" else {}
        y = m.op(activation, [y], (1, 5, 7, 4), **options)
    m.output(y)
    return m.build()


def _explained(model: bytes, rng: np.random.Generator):
    return run_delegated("auto", model, [rng.standard_normal(SHAPE).astype(np.float32)])[1]


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "LEAKY_RELU", "TANH", "LOGISTIC"])
def test_activation_is_fused_and_right(activation, device, precision, rng):
    model = _model(activation)
    node = _explained(model, rng)["nodes"][1]
    assert (node["fused_into"], node["reason"]) == (0, "fused into node 0")
    x = rng.standard_normal(SHAPE).astype(np.float32)
    check(model, [x], None, device=device, precision=precision, accumulation=27)


def test_only_the_first_of_two_activations_fuses(device, rng):
    model = _model("TANH", "RELU")
    nodes = _explained(model, rng)["nodes"]
    assert [node["reason"] for node in nodes[1:]] == ["fused into node 0", "runs on the device"]
    assert [node["fused_into"] for node in nodes] == [None, 0, None]
    x = rng.standard_normal(SHAPE).astype(np.float32)
    check(model, [x], None, device=device, precision="fp32", accumulation=27)


def test_a_result_that_is_an_output_too_stays(device, rng):
    model = _model("RELU", also_output=True)
    assert _explained(model, rng)["nodes"][1]["reason"] == "runs on the device"
    x = rng.standard_normal(SHAPE).astype(np.float32)
    check(model, [x], None, device=device, precision="fp32", accumulation=27)

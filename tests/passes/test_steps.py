"""Passes report what they did at each node, and why they did not change others."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter

IMAGE = (1, 6, 6, 4)
ONCE = {"stride_h": 1, "stride_w": 1}


def steps(m: ModelMaker, **options) -> list[tuple]:
    """(pass, outcome, node, into, detail) of all steps."""
    delegate = clgpu_delegate.load(**options)
    make_interpreter(op_runtime(), m.build(), [delegate]).allocate_tensors()
    found = delegate.explain().steps
    assert all(step.partition == 0 for step in found)
    return [(s.pass_name, s.outcome, s.node, s.into, s.detail) for s in found]


def convolution(m: ModelMaker, x: int, padding: str = "SAME", side: int = 6) -> int:
    weights = m.constant(np.ones((4, 3, 3, 4), np.float32))
    bias = m.constant(np.ones(4, np.float32))
    return m.op("CONV_2D", [x, weights, bias], (1, side, side, 4), padding=padding, **ONCE)


def test_activation_that_is_fused():
    m = ModelMaker()
    m.output(m.op("RELU", [convolution(m, m.input("x", IMAGE))], IMAGE))
    assert ("fuse_activation", "applied", 1, 0, "") in steps(m)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("two readers", "other nodes read its input"),
        ("result", "its input is a result of the partition"),
        ("second", "the node before it has an activation already"),
    ],
)
def test_activation_that_stays(case, reason):
    m = ModelMaker()
    y = convolution(m, m.input("x", IMAGE))
    if case == "two readers":
        m.output(m.op("ABS", [y], IMAGE))
    if case == "result":
        m.output(y)
    first = m.op("RELU6", [y], IMAGE)
    m.output(m.op("TANH", [first], IMAGE) if case == "second" else first)
    found = [s for s in steps(m) if s[0] == "fuse_activation" and s[1] == "declined"]
    assert [(s[2], s[4]) for s in found] == [(1 if case == "result" else 2, reason)]


def test_addition_that_is_fused_and_one_that_stays():
    m = ModelMaker()
    x = m.input("x", IMAGE)
    total = m.op("ADD", [convolution(m, x), x], IMAGE)
    m.output(m.op("ADD", [total, m.constant(np.float32(1))], IMAGE))
    found = [s for s in steps(m) if s[0] == "fuse_residual"]
    assert found[0] == ("fuse_residual", "applied", 1, 0, "")
    assert found[1][1:4] == ("declined", 2, None)
    assert found[1][4] == (
        "input 0: CONV_2D (node 0) adds another tensor already; "
        "input 1: no node of the partition computes it"
    )


def test_padding_that_is_fused_and_one_that_stays():
    m = ModelMaker()
    x = m.input("x", IMAGE)
    border = m.constant(np.int32([[0, 0], [1, 1], [1, 1], [0, 0]]))
    padded = m.op("PAD", [x, border], (1, 8, 8, 4))
    m.output(convolution(m, padded, "VALID"))
    other = m.op("PAD", [x, border], (1, 8, 8, 4))
    m.output(m.op("ABS", [other], (1, 8, 8, 4)))
    found = [s for s in steps(m) if s[0] == "fuse_pad"]
    assert ("fuse_pad", "applied", 0, 1, "") in found
    assert (
        "fuse_pad",
        "declined",
        2,
        None,
        "the reader ABS (node 3) cannot have this border",
    ) in found


def test_pass_that_an_option_keeps_away():
    m = ModelMaker()
    x = m.input("x", IMAGE)
    weights = m.constant(np.ones((1, 3, 3, 4), np.float32))
    y = m.op("DEPTHWISE_CONV_2D", [x, weights, m.constant(np.ones(4, np.float32))], IMAGE, **ONCE)
    m.output(y)
    (found,) = (s for s in steps(m, engines={"depthwise_conv2d": "direct"}) if s[1] == "skipped")
    assert found[0] == "fuse_separable"
    assert found[2:4] == (None, None)
    assert "engines" in found[4]


def test_node_whose_result_nothing_reads():
    m = ModelMaker()
    x = m.input("x", IMAGE)
    m.op("ABS", [x], IMAGE)
    m.output(m.op("NEG", [x], IMAGE))
    assert ("remove_dead", "applied", 0, None, "nothing reads its results") in steps(m)

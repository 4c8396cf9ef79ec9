"""Operations and bytes of nodes: the least work of any kernel."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter

SAME = {"padding": "SAME", "stride_w": 1, "stride_h": 1}


def products() -> bytes:
    """Each sort of product, and what stands between them in networks."""
    m = ModelMaker()

    def weights(*shape: int) -> int:
        return m.constant(np.ones(shape, np.float32))

    x = m.input("x", (1, 8, 8, 4))
    x = m.op("CONV_2D", [x, weights(12, 3, 3, 4), weights(12)], (1, 8, 8, 12), **SAME)
    x = m.op(
        "DEPTHWISE_CONV_2D", [x, weights(1, 3, 3, 12), weights(12)], (1, 8, 8, 12),
        depth_multiplier=1, **SAME,
    )  # fmt: skip
    x = m.op("CONV_2D", [x, weights(5, 1, 1, 12)], (1, 8, 8, 5), **SAME)
    shape = m.constant(np.array([1, 16, 16, 3], np.int32))
    x = m.op(
        "TRANSPOSE_CONV", [shape, weights(3, 4, 4, 5), x], (1, 16, 16, 3),
        padding="SAME", stride_w=2, stride_h=2,
    )  # fmt: skip
    x = m.op(
        "AVERAGE_POOL_2D", [x], (1, 8, 8, 3),
        padding="SAME", stride_w=2, stride_h=2, filter_width=2, filter_height=2,
    )  # fmt: skip
    x = m.op("RESHAPE", [x, m.constant(np.array([64, 3], np.int32))], (64, 3))
    x = m.op("FULLY_CONNECTED", [x, weights(7, 3)], (64, 7))
    x = m.op("SOFTMAX", [x], (64, 7), beta=1.0)
    x = m.op("BATCH_MATMUL", [x, weights(7, 2)], (64, 2))
    x = m.op("TRANSPOSE", [x, m.constant(np.array([1, 0], np.int32))], (2, 64))
    m.output(m.op("MEAN", [x, m.constant(np.array([1], np.int32))], (2,)))
    return m.build()


DEPTHWISE, POINTWISE = 2 * 8 * 8 * 12 * 9, 2 * 8 * 8 * 5 * 12
FLOPS = {
    "CONV_2D": 2 * 8 * 8 * 12 * 36,
    "DEPTHWISE_CONV_2D": DEPTHWISE,
    "CONV_2D 1x1": POINTWISE,
    "TRANSPOSE_CONV": 2 * (8 * 8 * 5) * (4 * 4 * 3),  # each pixel of the image, all weights
    "AVERAGE_POOL_2D": 8 * 8 * 3 * 4,
    "RESHAPE": 0,
    "FULLY_CONNECTED": 2 * 64 * 7 * 3,
    "SOFTMAX": 5 * 64 * 7,
    "BATCH_MATMUL": 2 * 64 * 2 * 7,
    "TRANSPOSE": 0,
    "MEAN": 2 * 64,
}


def nodes_of(model: bytes, **options: object) -> tuple[clgpu_delegate.Node, ...]:
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    interpreter.allocate_tensors()
    nodes = delegate.explain().nodes
    assert all(node.claimed for node in nodes)
    return nodes


@pytest.mark.parametrize("separable", [False, True])
def test_operations_and_bytes_of_products(separable):
    engines = {"separable_conv2d": "separate"} if separable else {"conv2d": "auto"}
    nodes = nodes_of(products(), engines=engines)
    expected = list(FLOPS.values())
    if separable:
        expected[1:3] = DEPTHWISE + POINTWISE, 0
    assert [node.flops for node in nodes] == expected
    conv, last = nodes[0], nodes[1 if separable else 2]
    assert conv.bytes_read == 4 * (8 * 8 * 4 + 12 * 36 + 12)
    assert conv.bytes_written == 4 * 8 * 8 * 12
    # What lies between the two parts of a separable convolution need not be in memory.
    own = 8 * 8 * 12 + 5 * 12
    assert last.bytes_read == 4 * (own + 12 * 9 + 12 if separable else own)
    assert last.bytes_written == 4 * 8 * 8 * 5


def test_bytes_are_those_of_the_storage():
    m = ModelMaker()
    x = m.input("x", (4, 8), np.int8, quantization=(0.5, 0))
    weights = m.constant(np.ones((3, 8), np.int8), quantization=(0.5, 0))
    bias = m.constant(np.ones(3, np.int32), quantization=(0.25, 0))
    m.output(m.op("FULLY_CONNECTED", [x, weights, bias], (4, 3), quantization=(2.0, 0)))
    (node,) = nodes_of(m.build())
    assert (node.flops, node.bytes_read, node.bytes_written) == (2 * 4 * 3 * 8, 32 + 24 + 12, 12)


def test_an_operand_read_twice_counts_once():
    m = ModelMaker()
    x = m.input("x", (3, 4))
    m.output(m.op("MUL", [x, x], (3, 4)))
    (node,) = nodes_of(m.build())
    assert (node.flops, node.bytes_read, node.bytes_written) == (12, 48, 48)


def test_bands_of_a_node_add_up():
    m = ModelMaker()
    shape = (1, 32, 32, 4)
    x = m.input("x", shape)
    for _ in range(3):
        weights = m.constant(np.ones((4, 3, 3, 4), np.float32))
        x = m.op("CONV_2D", [x, weights], shape, **SAME)
    m.output(x)
    model = m.build()
    whole, banded = nodes_of(model), nodes_of(model, row_band=8)
    assert [node.flops for node in banded] == [node.flops for node in whole]
    assert [node.family for node in banded] == ["conv2d"] * 3
    assert banded[0].bytes_read > whole[0].bytes_read, "weights and border rows are read again"

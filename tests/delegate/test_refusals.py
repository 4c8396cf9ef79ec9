"""Refusals of single operations: each sentence that no other test of its family expects.

A text is the family, a colon and a part of the sentence; `tests/repo/test_refusals.py` reads them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import check_refused
from tests.single_nodes import BOOL, F32, I8, I16, I32, I64, U8, Build, Q, custom, ints, node

X = ((2, 4), F32)
IMAGE = ((1, 4, 4, 2), F32)
POOL = {"stride_h": 1, "stride_w": 1, "filter_height": 1, "filter_width": 1}
KERNEL = np.ones((3, 1, 1, 2), F32)

CASES: dict[str, Build] = {
    "softmax: input has rank 0; supported: 1 to 6": node("SOFTMAX", ((), F32), to=()),
    "softmax: output is uint8": node("SOFTMAX", ((2, 4), I8, Q), dtype=U8, q=Q, beta=1.0),
    "softmax: beta times the scale of the input is 2^-26 or less": node(
        "SOFTMAX", ((2, 4), I8, Q), q=Quantization(1 / 256, -128), beta=1e-12
    ),
    "arg_min_max: input is int16": node("ARG_MAX", ((2, 4), I16), ints(0), to=(4,), dtype=I32),
    "arg_min_max: output is float32": node("ARG_MAX", X, ints(0), to=(4,), dtype=F32),
    "arg_min_max: the axis is not one number": node("ARG_MAX", X, ints(0, 1), to=(4,), dtype=I32),
    "arg_min_max: the axis is 5; supported: -2 to 1": node(
        "ARG_MAX", X, ints(5), to=(4,), dtype=I32
    ),
    "batch_matmul: y has a zero point other than 0": node(
        "BATCH_MATMUL", ((2, 4), I16, Q), ((4, 4), I8, Quantization(0.1, 3)), q=Q
    ),
    "binary: slope is int16": node("PRELU", ((2, 4), I16, Q), ((4,), I16, Q), q=Q),
    "cumsum: input is int16": node("CUMSUM", ((2, 4), I16), ints(0)),
    "cumsum: the axis is not one number": node("CUMSUM", X, ints(0, 1)),
    "cumsum: the axis is 5; supported: -2 to 1": node("CUMSUM", X, ints(5)),
    "dequantize: output is int32": node("DEQUANTIZE", ((2, 4), I8, Q), dtype=I32),
    "fully_connected: weights tensor has rank 3; supported: 2": node(
        "FULLY_CONNECTED", X, np.ones((1, 3, 4), F32), to=(2, 3)
    ),
    "fully_connected: input is int32": node(
        "FULLY_CONNECTED", ((2, 4), I32), np.ones((3, 4), F32), to=(2, 3)
    ),
    "fully_connected: weights tensor is int32": node(
        "FULLY_CONNECTED", X, np.ones((3, 4), I32), to=(2, 3)
    ),
    "fully_connected: bias is int32": node(
        "FULLY_CONNECTED", X, np.ones((3, 4), F32), ints(1, 2, 3), to=(2, 3)
    ),
    "fully_connected: input has rank 0; supported: 1 to 6": node(
        "FULLY_CONNECTED", ((), F32), np.ones((3, 1), F32), to=(3,), keep_num_dims=True
    ),
    "gather_nd: input has rank 0; supported: 1 to 6": node("GATHER_ND", ((), F32), ints(0), to=()),
    "l2_normalization: output is int16": node(
        "L2_NORMALIZATION", ((2, 4), I8, Q), dtype=I16, q=Quantization(1 / 128, 0)
    ),
    "l2_normalization: its fused activation is not defined on integers": node(
        "L2_NORMALIZATION",
        ((2, 4), I8, Q),
        q=Quantization(1 / 128, 0),
        fused_activation_function="RELU",
    ),
    "l2_normalization: input has rank 0; supported: 1 to 6": node(
        "L2_NORMALIZATION", ((), F32), to=()
    ),
    "local_response_normalization: input is int32": node(
        "LOCAL_RESPONSE_NORMALIZATION", ((1, 4, 4, 2), I32), to=(1, 4, 4, 2), radius=1
    ),
    "local_response_normalization: input has rank 0; supported: 1 to 6": node(
        "LOCAL_RESPONSE_NORMALIZATION", ((), F32), to=(), radius=1
    ),
    "local_response_normalization: the radius is negative": node(
        "LOCAL_RESPONSE_NORMALIZATION", IMAGE, to=(1, 4, 4, 2), radius=-1
    ),
    "pool: output is uint8": node(
        "MAX_POOL_2D", ((1, 4, 4, 2), I8, Q), to=(1, 4, 4, 2), dtype=U8, q=Q, **POOL
    ),
    "quantize: the scale of the output is too small for that of the input": node(
        "QUANTIZE", ((2, 4), I8, Quantization(1e6)), dtype=I8, q=Quantization(1e-6)
    ),
    "reduce: the scale of its input is too large for 64-bit products": node(
        "REDUCE_PROD", ((2, 4), I8, Quantization(1e5)), ints(0), to=(4,), q=Quantization(0.1)
    ),
    "reduce: output is uint8": node(
        "MEAN", ((2, 4), I8, Q), ints(0), to=(4,), dtype=U8, q=Quantization(0.1, 128)
    ),
    "reduce: the axis is 5; supported: -2 to 1": node("MEAN", X, ints(5), to=(4,)),
    "reshape: there is more than one new axis": node("EXPAND_DIMS", X, ints(0, 1), to=(1, 2, 4)),
    "topk: input is bool": node(
        "TOPK_V2", ((2, 4), BOOL), ints(1), to=[(2, 1), (2, 1)], dtype=[BOOL, I32]
    ),
    "topk: output of indices is int64": node(
        "TOPK_V2", X, ints(1), to=[(2, 1), (2, 1)], dtype=[F32, I64]
    ),
    "topk: input has rank 0; supported: 1 to 6": node(
        "TOPK_V2", ((), F32), ints(1), to=[(), ()], dtype=[F32, I32]
    ),
    "topk: k is not a positive number": node(
        "TOPK_V2", X, ints(0), to=[(2, 0), (2, 0)], dtype=[F32, I32]
    ),
    "transpose_conv: the output shape does not have 4 elements": node(
        "TRANSPOSE_CONV", ints(1, 4, 4), KERNEL, IMAGE, to=(1, 4, 4, 3), stride_h=1, stride_w=1
    ),
    "transpose_conv: the output shape has a size below 1": node(
        "TRANSPOSE_CONV", ints(1, 0, 4, 3), KERNEL, IMAGE, to=(1, 4, 4, 3), stride_h=1, stride_w=1
    ),
    "quantized_binary: the inputs' scales, powers of two, are greater than the output's": node(
        "ADD",
        ((2, 4), I16, Quantization(0.5)),
        ((2, 4), I16, Quantization(0.5)),
        q=Quantization(0.25),
        pot_scale_int16=True,
    ),
}


def pooling(padding: int) -> bytes:
    """TfLitePoolParams of windows of 2 x 2."""
    return np.array([padding, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0], I32).tobytes()


ARGMAX, UNPOOL = "MaxPoolingWithArgmax2D", "MaxUnpooling2D"
INTEGERS, MATRIX = ((1, 4, 4, 2), I32), ((4, 4), F32)
CASES |= {
    "max_pool_argmax: input is int32": custom(ARGMAX, pooling(1), INTEGERS, outputs=2, dtype=I32),
    "max_pool_argmax: the output of indices is int32": custom(
        ARGMAX, pooling(1), IMAGE, outputs=2, dtype=[F32, I32]
    ),
    "max_pool_argmax: input has rank 2; supported: 4": custom(
        ARGMAX, pooling(1), MATRIX, outputs=2
    ),
    "max_unpool: input is int32": custom(UNPOOL, pooling(1), INTEGERS, INTEGERS, dtype=I32),
    "max_unpool: input has rank 2; supported: 4": custom(UNPOOL, pooling(1), MATRIX, MATRIX),
    "custom_pool: the padding is 7; supported: 1 (SAME), 2 (VALID)": custom(
        UNPOOL, pooling(7), IMAGE, IMAGE
    ),
    "transpose_conv: output is int32": custom(
        "Convolution2DTransposeBias", pooling(1), INTEGERS, INTEGERS, INTEGERS, dtype=I32
    ),
}


def sparse_weights(m: ModelMaker) -> Any:
    """A node that cannot read sparse weights, which only DENSIFY unpacks."""
    weights = m.sparse_constant(np.eye(4, dtype=F32))
    return m.op("FULLY_CONNECTED", [m.input("x", (2, 4)), weights], (2, 4))


def malformed(m: ModelMaker) -> Any:
    """A sparse constant with elements beyond its last column."""
    weights = m.sparse_constant(np.eye(4, dtype=F32))
    where = m._tensors[weights].sparsity
    assert where is not None
    m._tensors[weights].sparsity = dataclasses.replace(where, indices=where.indices + 100)
    dense = m.op("DENSIFY", [weights], (4, 4))
    return m.op("TOPK_V2", [dense, m.constant(ints(1))], [(4, 1), (4, 1)], dtype=[I32, I32])


def of_unknown_shape(m: ModelMaker) -> Any:
    """Files store an unknown shape as that of a scalar."""
    return m.op("NEG", [m.op("ABS", [m.input("x", ())], ())], ())


def ints_as_weights(m: ModelMaker) -> Any:
    """Weights of int8 that are passed at run time."""
    weights = m.input("weights", (3, 4), I8, quantization=Q)
    return m.op("FULLY_CONNECTED", [m.input("x", (2, 4)), weights], (2, 3))


CASES |= {
    "model: input 0 is quantised (int8): the operation has no integer kernels": node(
        "CUMSUM", ((2, 4), I8, Q), ints(0), q=Q
    ),
    "model: input 0 is a variable: its state lives on the CPU": lambda m: m.op(
        "ABS", [m.tensor((2, 4), is_variable=True)], (2, 4)
    ),
    "compare: input 0 is complex64": node("LESS", *[((2, 4), np.complex64)] * 2, dtype=BOOL),
    "select: input 1 is complex64": node(
        "SELECT", ((2, 4), BOOL), *[((2, 4), np.complex64)] * 2, dtype=np.complex64
    ),
    "max_unpool: the input of indices has rank 2; supported: 4": custom(
        UNPOOL, pooling(1), IMAGE, MATRIX
    ),
    "pad: the mode is neither reflect nor symmetric": node(
        "MIRROR_PAD", X, np.zeros((2, 2), I32), mode=5
    ),
    "pool: L2_POOL_2D of integers is not defined": node(
        "L2_POOL_2D", ((1, 4, 4, 2), I8, Q), to=(1, 4, 4, 2), q=Q, **POOL
    ),
    "quantized: input 0 has the scale 0.100000 and the zero point 0, output 0 has the scale "
    "0.200000 and the zero point 0; elements are moved as they are": node(
        "TRANSPOSE", ((2, 4), I8, Q), ints(1, 0), to=(4, 2), q=Quantization(0.2, 0)
    ),
    "quantized: the int8 weights are no constant": ints_as_weights,
    "quantized_binary: int16 with scales that are powers of two is not broadcast": node(
        "ADD",
        ((2, 4), I16, Quantization(0.5)),
        ((4,), I16, Quantization(0.5)),
        q=Quantization(0.5),
        pot_scale_int16=True,
    ),
    "model: input 0 has rank 7; supported: 0 to 6": node(
        "TILE", ((1, 1, 1, 1, 1, 1, 2), F32), ints(*[1] * 7), to=(1, 1, 1, 1, 1, 1, 2)
    ),
    "model: input 1 is sparse and not expanded by a DENSIFY": sparse_weights,
    "densify: the sparse constant is malformed: ": malformed,
    "model: input 0 comes from the CPU without a known shape": of_unknown_shape,
}


@pytest.mark.parametrize("text", CASES)
def test_refusal(text):
    m = ModelMaker()
    outputs = CASES[text](m)
    m.output(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    exclude = ["ABS"] if "without a known shape" in text else []
    check_refused(m.build(), text.split(": ", 1)[1], exclude=exclude)

"""BATCH_MATMUL of quantised integers equals the reference kernels of the newer runtime."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from tests.model_maker import ModelMaker, Quantization
from tests.ops.harness import EXAMPLES, check, check_refused, op_runtime
from tests.ops.test_batch_matmul import ADJOINTS
from tests.quantized.parameters import (
    check_exact,
    output_quantization,
    random_integers,
    random_quantization,
)
from tests.runtimes import make_interpreter, run_interpreter, run_reference

# Batches of x, of y, then rows, cols, depth. All of one adjoint pair make one model.
CASES = [
    ((), (), (1, 1, 1)),
    ((3,), (3,), (1, 17, 5)),
    ((2,), (), (3, 5, 7)),
    ((), (3,), (9, 18, 11)),
    ((2, 1, 3), (1, 2, 1), (3, 5, 4)),
    ((2,), (2,), (35, 36, 72)),
]
# Element types of x, y and the result.
TYPES = [
    (np.int8, np.int8, np.int8),
    (np.int16, np.int16, np.int16),
    (np.int16, np.int8, np.int16),
    (np.int8, np.int8, np.int32),
]


def add_product(m, rng, case, types, adj_x, adj_y, constant=False):
    """Append a product as an output; returns the arrays of the new inputs."""
    x_batches, y_batches, (rows, cols, depth) = case
    x_shape = (*x_batches, *((depth, rows) if adj_x else (rows, depth)))
    y_shape = (*y_batches, *((cols, depth) if adj_y else (depth, cols)))
    x, y = random_integers(rng, x_shape, types[0]), random_integers(rng, y_shape, types[1])
    x_scale, y_scale = random_quantization(rng, types[0]), random_quantization(rng, types[1])
    if types[0] == np.int16:
        y_scale = y_scale._replace(zero_points=0)
    left = m.input(f"x{case}", x.shape, x.dtype, quantization=x_scale)
    if constant:
        right = m.constant(y, quantization=y_scale)
    else:
        right = m.input(f"y{case}", y.shape, y.dtype, quantization=y_scale)
    shape = (*np.broadcast_shapes(x_batches, y_batches), rows, cols)
    options = {"adj_x": adj_x, "adj_y": adj_y}
    if types[2] == np.int32:
        result = m.op("BATCH_MATMUL", [left, right], shape, dtype=np.int32, **options)
    else:
        dst = output_quantization(rng, types[0], x_scale, y_scale, depth)
        result = m.op("BATCH_MATMUL", [left, right], shape, quantization=dst, **options)
    m.output(result)
    return [x] if constant else [x, y]


@pytest.mark.parametrize("types", TYPES, ids=lambda t: "_".join(x.__name__ for x in t))
@pytest.mark.parametrize(("adj_x", "adj_y"), ADJOINTS)
def test_products_equal_the_reference(adj_x, adj_y, types, device, rng):
    m = ModelMaker()
    inputs = []
    for i, case in enumerate(CASES):
        inputs += add_product(m, rng, case, types, adj_x, adj_y, constant=i % 2 == 1)
    check_exact(m.build(), inputs, device=device)


@hypothesis.settings(max_examples=EXAMPLES)
@hypothesis.given(
    size=st.tuples(st.integers(1, 20), st.integers(1, 40), st.integers(1, 40)),
    batches=st.integers(1, 3),
    adjoints=st.sampled_from(ADJOINTS),
    types=st.sampled_from(TYPES),
    seed=st.integers(0, 99),
)
def test_any_size_and_scale(size, batches, adjoints, types, seed, device):
    rng = np.random.default_rng(seed)
    m = ModelMaker()
    inputs = add_product(m, rng, ((batches,), (1,), size), types, *adjoints)
    check_exact(m.build(), inputs, device=device)


@pytest.mark.parametrize("types", TYPES[::2], ids=lambda t: "_".join(x.__name__ for x in t))
@pytest.mark.parametrize(("adj_x", "adj_y"), ADJOINTS)
def test_each_column_may_have_a_scale(adj_x, adj_y, types, device, rng):
    """The runtime multiplies all sums by 0; its product with each column alone is right."""
    m = ModelMaker()
    inputs, expected = [], []
    for i, (batches, rows, cols, depth) in enumerate([((), 3, 1, 5), ((2,), 9, 19, 17)]):
        x_shape = (*batches, *((depth, rows) if adj_x else (rows, depth)))
        y_shape = (cols, depth) if adj_y else (depth, cols)
        x, y = random_integers(rng, x_shape, types[0]), random_integers(rng, y_shape, types[1])
        x_scale = random_quantization(rng, types[0])
        scales = [float(s) for s in rng.uniform(0.002, 0.02, cols).astype(np.float32)]
        y_scale = Quantization(scales, [0] * cols, 0 if adj_y else 1)
        dst = output_quantization(rng, types[0], x_scale, y_scale, depth)
        options = {"adj_x": adj_x, "adj_y": adj_y}

        def product(model, name, y, scale, x=x, x_scale=x_scale, dst=dst, options=options):
            operands = [
                model.input(name, x.shape, x.dtype, quantization=x_scale),
                model.constant(y, quantization=scale),
            ]
            rows = x.shape[-1 if options["adj_x"] else -2]
            cols = y.shape[0 if options["adj_y"] else 1]
            shape = (*x.shape[:-2], rows, cols)
            model.output(model.op("BATCH_MATMUL", operands, shape, quantization=dst, **options))

        product(m, f"x{i}", y, y_scale)
        inputs.append(x)
        columns = []
        for c, scale in enumerate(scales):
            alone = ModelMaker()
            column = y[c : c + 1] if adj_y else y[:, c : c + 1]
            product(alone, "x", column, Quantization(scale))
            columns += run_reference(alone.build(), [x], "ai_edge_litert")
        expected.append(np.concatenate(columns, -1))
    check(m.build(), inputs, expected, device=device, precision="fp32", reference=False)


def test_the_runtime_cannot_verify_several_scales(device):
    m = ModelMaker()
    x = m.input("x", (2, 3), np.int16, quantization=Quantization(0.1))
    y = m.constant(np.ones((3, 4), np.int8), quantization=Quantization([0.1] * 4, [0] * 4, 1))
    m.output(m.op("BATCH_MATMUL", [x, y], (2, 4), quantization=Quantization(0.1)))
    delegate = clgpu_delegate.load(device=device, verify="first")
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    (got,) = run_interpreter(interpreter, [np.full((2, 3), 100, np.int16)])
    np.testing.assert_array_equal(got, 30)
    (check,) = delegate.explain().verification.partitions
    assert "stock kernels multiply all sums by 0, as y has several scales" in check.reason


def test_types_and_scales_without_a_reference_are_refused(device):
    def refused(reason, y_type=np.int8, y_scales=0.1, dst_type=np.int8, axis=1, zero=0):
        m = ModelMaker()
        x = m.input("x", (2, 3), np.int8, quantization=Quantization(0.1))
        y = Quantization(y_scales, np.full(np.size(y_scales), zero).tolist(), axis)
        right = m.constant(np.ones((3, 4), y_type), quantization=y)
        dst = Quantization(0.1)
        m.output(m.op("BATCH_MATMUL", [x, right], (2, 4), dtype=dst_type, quantization=dst))
        check_refused(m.build(), reason, device=device)

    refused("y is int16; supported: int8", y_type=np.int16)
    refused("y has 4 scales; supported: one", y_scales=[0.1] * 4, dst_type=np.int32)
    refused("y has scales along axis 0; supported: axis 1", y_scales=[0.1] * 3, axis=0)
    refused("y has a zero point other than 0", y_scales=[0.1] * 4, zero=1)
    refused("output is int16", dst_type=np.int16)


def test_scales_multiply_as_floats(device):
    """1 / 3 * 3 / 2 is 1 / 2 as floats and above it as doubles: halves below 0 go up, not down."""
    x = np.arange(-100, 101, dtype=np.int8).reshape(-1, 1)
    m = ModelMaker()
    left = m.input("x", x.shape, np.int8, quantization=Quantization(float(np.float32(1 / 3))))
    right = m.constant(np.ones((1, 1), np.int8), quantization=Quantization(1.5))
    dst = Quantization(1.0)
    m.output(m.op("BATCH_MATMUL", [left, right], x.shape, quantization=dst))
    check_exact(m.build(), [x], device=device)

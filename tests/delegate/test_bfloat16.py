"""bfloat16 tensors, weights of bfloat16, and floats that a plan stores as bfloat16."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.ops.harness import alternatives, op_runtime
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import BFLOAT_EPS, assert_close, relative_l2
from tools.render_operations import NODES, SHAPE, Node

ml_dtypes = pytest.importorskip("ml_dtypes", reason="numpy has no bfloat16 of its own")
pytest.importorskip("ai_edge_litert", reason="tflite_runtime does not know bfloat16")
BF16 = np.dtype(ml_dtypes.bfloat16)

Array = Any
Build = Callable[[ModelMaker, list[int]], Sequence[int]]


def every() -> Array:
    """All numbers of the type, infinities and NaN included."""
    return np.arange(1 << 16, dtype=np.uint16).view(BF16).reshape(256, 256)


def bits(array: Array) -> Array:
    """Of each element, with one NaN instead of many."""
    if array.dtype != BF16:
        return array
    stored = array.view(np.uint16)
    return np.where((stored & 0x7FFF) > 0x7F80, 0x7FC0, stored)


def run(build: Build, inputs: Sequence[Array], device: str, **options: Any) -> tuple[bytes, Any]:
    """The model of nodes that read the inputs, and its results on the device."""
    m = ModelMaker()
    m.output(*build(m, [m.input(f"x{i}", x.shape, x.dtype) for i, x in enumerate(inputs)]))
    model = m.build()
    delegate = clgpu_delegate.load(device=device, warm_up=False, **options)
    results = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), inputs)
    assert not [f"{n.op}: {n.reason}" for n in delegate.explain().nodes if not n.claimed]
    return model, results


def check_as_stock(build: Build, inputs: Sequence[Array], device: str, **options: Any) -> None:
    """Every element is that of the reference kernels."""
    model, results = run(build, inputs, device, **options)
    for mine, its in zip(results, run_reference(model, inputs, op_runtime())):
        assert mine.dtype == its.dtype
        np.testing.assert_array_equal(bits(mine), bits(its))


def check_rounded(
    build: Build, inputs: Sequence[Array], want: Sequence[Array], device: str
) -> None:
    """Results in float64 are rounded once, except for errors of float near the middle."""
    for mine, exact in zip(run(build, inputs, device)[1], want):
        assert mine.dtype == BF16
        near = bits(exact.astype(np.float32).astype(BF16))
        steps = np.abs(bits(mine).astype(np.int32) - near.astype(np.int32))
        assert steps.max() <= 1
        assert np.mean(steps > 0) <= 0.02


@pytest.mark.parametrize("name", ["NEG", "FLOOR", "LOGISTIC", "TANH"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_functions_of_every_number_are_those_of_the_reference_kernels(device, name, precision):
    x = every()
    check_as_stock(
        lambda m, inputs: [m.op(name, inputs, x.shape)], [x], device, precision=precision
    )


@pytest.mark.parametrize("name", ["MAXIMUM", "MINIMUM", "LESS", "GREATER"])
@pytest.mark.parametrize("other", [(256, 256), (256,), (256, 1)], ids=str)
def test_pairs_are_compared_as_in_the_reference_kernels(device, rng, name, other):
    x = every()
    y = rng.permutation(every().reshape(-1))[: int(np.prod(other))].reshape(other)
    dtype = np.bool_ if name in ("LESS", "GREATER") else BF16
    check_as_stock(lambda m, inputs: [m.op(name, inputs, x.shape, dtype=dtype)], [x, y], device)


def test_atan2(device, rng):
    x, y = (rng.normal(0, 3, (3, 17)).astype(BF16) for _ in range(2))
    want = np.arctan2(x.astype(np.float64), y.astype(np.float64))
    check_rounded(lambda m, inputs: [m.op("ATAN2", inputs, x.shape)], [x, y], [want], device)


MOVES: dict[str, Build] = {
    "PAD": lambda m, x: [m.op("PAD", [x[0], m.constant(np.int32([[1, 2], [0, 3]]))], (7, 9))],
    "PADV2": lambda m, x: [
        m.op("PADV2", [x[0], m.constant(np.int32([[1, 2], [0, 3]])),
                       m.constant(np.array(1.5, BF16))], (7, 9))
    ],
    "MIRROR_PAD": lambda m, x: [
        m.op("MIRROR_PAD", [x[0], m.constant(np.int32([[1, 2], [0, 3]]))], (7, 9), mode="REFLECT")
    ],
    "GATHER": lambda m, x: [m.op("GATHER", [x[0], m.constant(np.int32([3, 0]))], (2, 6), axis=0)],
    "GATHER_ND": lambda m, x: [m.op("GATHER_ND", [x[0], m.constant(np.int32([[1], [3]]))], (2, 6))],
    "CONCATENATION": lambda m, x: [m.op("CONCATENATION", [x[0], x[0]], (8, 6), axis=0)],
    "SLICE": lambda m, x: [
        m.op("SLICE", [x[0], m.constant(np.int32([1, 2])), m.constant(np.int32([2, 3]))], (2, 3))
    ],
    "TRANSPOSE": lambda m, x: [m.op("TRANSPOSE", [x[0], m.constant(np.int32([1, 0]))], (6, 4))],
    "REVERSE_V2": lambda m, x: [m.op("REVERSE_V2", [x[0], m.constant(np.int32([1]))], (4, 6))],
    "UNPACK": lambda m, x: list(m.op("UNPACK", [x[0]], [(6,)] * 4, num=4, axis=0)),
    "TILE": lambda m, x: [m.op("TILE", [x[0], m.constant(np.int32([2, 1]))], (8, 6))],
    "SELECT_V2": lambda m, x: [
        m.op("SELECT_V2", [m.constant(np.arange(24).reshape(4, 6) % 3 == 0), x[0], x[0]], (4, 6),
             dtype=BF16)
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_elements_are_moved_as_they_are(device, rng, name):
    x = rng.normal(0, 1e30, (4, 6)).astype(BF16)
    check_as_stock(MOVES[name], [x], device)


ARITHMETIC: dict[str, tuple[str, Callable[..., Array], dict[str, Any]]] = {
    "ADD": ("ADD", np.add, {}),
    "MUL": ("MUL", np.multiply, {}),
    "ADD, RELU6": ("ADD", lambda a, b: np.clip(a + b, 0, 6),
                   {"fused_activation_function": "RELU6"}),
    "STABLEHLO_ADD": ("STABLEHLO_ADD", np.add, {}),
    "STABLEHLO_MAXIMUM": ("STABLEHLO_MAXIMUM", np.maximum, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_rounded_once(device, rng, name):
    """The reference kernels have none of it."""
    op, function, options = ARITHMETIC[name]
    x, y = (rng.normal(0, 3, (33, 17)).astype(BF16) for _ in range(2))
    want = function(x.astype(np.float64), y.astype(np.float64))
    check_rounded(lambda m, inputs: [m.op(op, inputs, x.shape, **options)], [x, y], [want], device)


def test_verification_takes_steps_that_stock_kernels_round(device, rng):
    """Other kernels of the runtimes than the reference kernels compute LOGISTIC in bfloat16."""
    x = rng.standard_normal((64, 64)).astype(BF16)
    m = ModelMaker()
    m.output(m.op("LOGISTIC", [m.input("x", x.shape, BF16)], x.shape))
    delegate = clgpu_delegate.load(device=device, verify="first", cache="off")
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    run_interpreter(interpreter, [x])
    verification = delegate.explain().verification
    assert verification is not None
    (check,) = verification.partitions
    assert (check.outcome, check.level) == ("right", "as asked")


def test_functions_without_a_reference_are_rounded_once(device, rng):
    x = rng.normal(0, 3, (33, 16)).astype(BF16)
    exact = x.astype(np.float64)
    softmax = np.exp(exact - exact.max(-1, keepdims=True))
    softmax /= softmax.sum(-1, keepdims=True)
    want = [np.sin(exact), np.cos(exact), softmax]
    check_rounded(
        lambda m, inputs: [
            m.op("SIN", inputs, x.shape), m.op("COS", inputs, x.shape),
            m.op("SOFTMAX", inputs, x.shape, beta=1.0),
        ],
        [x], want, device,
    )  # fmt: skip


def test_activation_of_a_rounded_sum_is_no_part_of_the_sum(device, rng):
    """TANH reads the sum that was rounded to bfloat16."""
    x, y = (rng.normal(0, 1, (33, 17)).astype(BF16) for _ in range(2))
    total = (x.astype(np.float32) + y.astype(np.float32)).astype(BF16)
    want = np.tanh(total.astype(np.float64))
    check_rounded(
        lambda m, inputs: [m.op("TANH", [m.op("ADD", inputs, x.shape)], x.shape)],
        [x, y], [want], device,
    )  # fmt: skip


def dense(weights: Array, op: str = "CAST") -> bytes:
    """FULLY_CONNECTED whose weights and bias are stored as they are, and widened."""
    m = ModelMaker()
    x = m.input("x", (4, weights.shape[1]))

    def widened(array: Array) -> int:
        types = {"in_data_type": array.dtype, "out_data_type": np.float32} if op == "CAST" else {}
        return m.op(op, [m.constant(array)], array.shape, dtype=np.float32, **types)

    bias = widened(np.arange(weights.shape[0]).astype(weights.dtype))
    m.output(m.op("FULLY_CONNECTED", [x, widened(weights), bias], (4, weights.shape[0])))
    return m.build()


@pytest.mark.parametrize("op", ["CAST", "DEQUANTIZE"])
@pytest.mark.parametrize(
    ("precision", "storage"), [("fp32", "bfloat16"), ("fp16", "float16"), ("tf32", "bfloat16")]
)
def test_weights_stay_in_16_bits(device, rng, op, precision, storage):
    weights = rng.standard_normal((64, 128)).astype(BF16)
    x = rng.standard_normal((4, 128), np.float32)
    delegate = clgpu_delegate.load(device=device, precision=precision, warm_up=False)
    (got,) = run_interpreter(make_interpreter(op_runtime(), dense(weights, op), [delegate]), [x])
    explanation = delegate.explain()
    assert explanation.claimed == explanation.total
    assert next(t.storage for t in explanation.tensors if t.storage.endswith("16")) == storage
    assert sum(p.weights_bytes for p in explanation.partitions) < 1.5 * weights.nbytes
    want = x.astype(np.float64) @ weights.astype(np.float64).T + np.arange(64)
    assert_close(got, want, precision, 128)


def test_weights_beyond_half_stay_bfloat16_in_fp16(device, rng):
    weights = (1e6 * rng.standard_normal((64, 128))).astype(BF16)
    x = rng.standard_normal((4, 128), np.float32)
    delegate = clgpu_delegate.load(device=device, precision="fp16", warm_up=False)
    (got,) = run_interpreter(make_interpreter(op_runtime(), dense(weights), [delegate]), [x])
    assert "bfloat16" in [t.storage for t in delegate.explain().tensors]
    assert relative_l2(got, x.astype(np.float64) @ weights.astype(np.float64).T) < 1e-3


def test_halves_that_cast_widens_stay_halves(device, rng):
    weights = rng.standard_normal((64, 128)).astype(np.float16)
    x = rng.standard_normal((4, 128), np.float32)
    delegate = clgpu_delegate.load(device=device, warm_up=False)
    (got,) = run_interpreter(make_interpreter(op_runtime(), dense(weights), [delegate]), [x])
    assert "float16" in [t.storage for t in delegate.explain().tensors]
    want = x.astype(np.float64) @ weights.astype(np.float64).T + np.arange(64)
    assert_close(got, want, "fp32", 128)


# Their results have steps, rounding takes numbers out of their domain, or they take no floats.
STEPS = [
    "ARG_MAX", "ARG_MIN", "BITCAST", "BROADCAST_ARGS", "CEIL", "FLOOR", "FLOOR_DIV",
    "FLOOR_MOD", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "POW", "QUANTIZE", "RANGE",
    "RANK", "ROUND", "SHAPE", "SIGN",
]  # fmt: skip


class Between(Node):
    """Nodes before and after it read and write the model's inputs and outputs, which stay float."""

    def x(self, shape: tuple[int, ...] = SHAPE) -> int:
        return self.m.op("ABS", [super().x(shape)], shape)


@pytest.fixture
def large():
    """No tensor is too small to be stored in 16 bits."""
    _core.pretend_no_small_tensors(True)
    yield
    _core.pretend_no_small_tensors(False)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", sorted(set(NODES) - set(STEPS)))
def test_every_kernel_reads_and_writes_floats_that_are_stored_as_bfloat16(device, rng, name):
    node = Between("float32")
    result = NODES[name](node)
    for tensor in result if isinstance(result, tuple) else [result]:
        is_float = node.m.dtype(tensor) == np.float32
        node.m.output(node.m.op("ABS", [tensor], node.m.shape(tensor)) if is_float else tensor)
    model = node.m.build()

    def loaded(**options: Any) -> tuple[Any, Any]:
        delegate = clgpu_delegate.load(device=device, warm_up=False, share_memory=False, **options)
        return delegate, make_interpreter(op_runtime(), model, [delegate])

    delegate, interpreter = loaded(precision="mixed")
    explanation = delegate.explain()
    if explanation.mixed is None or name not in [n.op for n in explanation.nodes if n.claimed]:
        pytest.skip("the device does not take it as float32")
    inputs = []
    for detail in interpreter.get_input_details():
        x = rng.uniform(0.1, 1, detail["shape"]).astype(BF16).astype(np.float32)
        inputs.append(x.astype(detail["dtype"]))
    stock = run_reference(model, inputs, op_runtime(), "no_delegate")
    plan = f"model={explanation.mixed.model},bfloat=0-999"

    def checked(**engines: str) -> clgpu_delegate.Explanation:
        delegate, interpreter = loaded(precision=plan, engines=engines)
        got = run_interpreter(interpreter, inputs)
        explanation = delegate.explain()
        broken = [note for note in explanation.notes if "does not work on this device" in note]
        assert not broken, broken[0]
        assert "bfloat16" in [t.storage for t in explanation.tensors]
        for mine, its in zip(got, stock):
            if its.dtype.kind == "f":
                assert relative_l2(mine, its) < 8 * BFLOAT_EPS, engines
            elif its.dtype.kind == "c":
                assert np.abs(mine - its).max() < 8 * BFLOAT_EPS * np.abs(its).max(), engines
            else:
                np.testing.assert_array_equal(mine, its)
        return explanation

    for family, candidate in alternatives(checked()):
        checked(**{family: f"{candidate}|auto"})

"""RFFT2D, and complex numbers on their way through other operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests.limits import needs
from tests.model_maker import ModelMaker
from tests.ops.harness import check, check_refused, half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter

Array = Any
# Shape of the input, height and width of the transform.
CASES = [
    ((1, 2), 1, 2),
    ((3, 1, 64), 1, 64),
    ((1, 5, 3), 4, 8),  # cut and filled
    ((2, 3, 9, 17), 8, 16),
    ((16, 32), 16, 32),
    ((2, 4), 4, 2),
]


def model(shape: tuple, height: int, width: int, parts: str = "REAL IMAG") -> bytes:
    out = (*shape[:-2], height, width // 2 + 1)
    m = ModelMaker()
    size = m.constant(np.array([height, width], np.int32))
    y = m.op("RFFT2D", [m.input("x", shape), size], out, dtype=np.complex64)
    for part in parts.split():
        m.output(m.op(part, [y], out, dtype=np.float32))
    return m.build()


def transform(x: Array, height: int, width: int) -> Array:
    return np.fft.rfft2(x.astype(np.float64), (height, width))


def reals(x: Array) -> list[Array]:
    return [x.real, x.imag]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_parts(device, precision, rng, case):
    x = half_exact(rng.standard_normal(case[0]).astype(np.float32))
    want = reals(transform(x, *case[1:]))
    check(model(*case), [x], want, device=device, precision=precision, accumulation=case[2])


@pytest.mark.parametrize(("height", "width"), [(1, 2048), (64, 64)])
def test_errors_are_those_of_float(device, rng, height, width):
    x = rng.standard_normal((1, height, width)).astype(np.float32)
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), model(x.shape, height, width), [delegate])
    real, imaginary = run_interpreter(interpreter, [x])
    want = transform(x, height, width)
    error = np.abs(real + 1j * imaginary - want)
    assert np.sqrt(np.mean(error**2)) <= 3e-7 * np.sqrt(np.mean(np.abs(want) ** 2))


def test_lines_that_local_memory_cannot_hold(device, rng):
    needs.long_loops()
    x = rng.standard_normal((1, 2**17)).astype(np.float32)
    want = reals(transform(x, 1, 2**17))
    check(model(x.shape, 1, 2**17), [x], want, device=device, precision="fp32", accumulation=999)


def test_spectrogram(device, precision, rng):
    """As in BirdNET: frames, a window, the transform, its real or absolute values."""
    m = ModelMaker()
    x = m.input("x", (1, 320))
    steps = m.op("RESHAPE", [x, m.constant(np.int32([1, 10, 32]))], (1, 10, 32))
    window = m.op("MUL", [steps, m.constant(np.hanning(32).astype(np.float32))], (1, 10, 32))
    shape = m.op("SHAPE", [window], (3,), dtype=np.int32, out_type=np.int32)
    ends = [m.constant(np.int32([i])) for i in (0, 2, 1)]
    batch = m.op("STRIDED_SLICE", [shape, *ends], (2,), dtype=np.int32)
    one = m.constant(np.int32([1, 32]))
    wide = m.op("CONCATENATION", [batch, one], (4,), dtype=np.int32, axis=0)
    frames = m.op("RESHAPE", [window, wide], (1, 10, 1, 32))
    size = m.constant(np.int32([1, 32]))
    lines = m.op("RFFT2D", [frames, size], (1, 10, 1, 17), dtype=np.complex64)
    to = m.constant(np.int32([1, 10, 17]))
    lines = m.op("RESHAPE", [lines, to], (1, 10, 17), dtype=np.complex64)
    m.output(m.op("COMPLEX_ABS", [lines], (1, 10, 17), dtype=np.float32))
    m.output(
        m.op("CAST", [lines], (1, 10, 17), dtype=np.float32,
             in_data_type=np.complex64, out_data_type=np.float32)
    )  # fmt: skip
    signal = half_exact(rng.standard_normal((1, 320)).astype(np.float32))
    want = np.fft.rfft(signal.astype(np.float64).reshape(1, 10, 32) * np.hanning(32))
    expected = [np.abs(want), want.real]
    check(m.build(), [signal], expected, device=device, precision=precision, accumulation=32)


def moved(m: ModelMaker, x: int, name: str) -> int:
    def ints(*values: int) -> int:
        return m.constant(np.array(values, np.int32))

    kinds: dict[str, tuple[list[int], tuple, dict[str, Any]]] = {
        "TRANSPOSE": ([x, ints(1, 2, 0)], (3, 5, 2), {}),
        "SLICE": ([x, ints(0, 1, 1), ints(2, 2, 3)], (2, 2, 3), {}),
        "CONCATENATION": ([x, x], (2, 3, 10), {"axis": 2}),
        "PAD": ([x, m.constant(np.int32([[0, 0], [1, 0], [2, 1]]))], (2, 4, 8), {}),
        "TILE": ([x, ints(1, 2, 1)], (2, 6, 5), {}),
        "GATHER": ([x, ints(2, 0)], (2, 2, 5), {"axis": 1}),
        "REVERSE_V2": ([x, ints(1)], (2, 3, 5), {}),
        "RESHAPE": ([x, ints(6, 5)], (6, 5), {}),
        "EXPAND_DIMS": ([x, ints(0)], (1, 2, 3, 5), {}),
        "STRIDED_SLICE": ([x, ints(0, 0, 4), ints(2, 3, 0), ints(1, 2, -2)], (2, 2, 2), {}),
        "PACK": ([x, x], (2, 2, 3, 5), {"axis": 0, "values_count": 2}),
    }
    operands, to, options = kinds[name]
    return m.op(name, operands, to, dtype=np.complex64, **options)


MOVED: dict[str, Any] = {
    "TRANSPOSE": lambda x: x.transpose(1, 2, 0),
    "SLICE": lambda x: x[:, 1:3, 1:4],
    "CONCATENATION": lambda x: np.concatenate([x, x], 2),
    "PAD": lambda x: np.pad(x, [(0, 0), (1, 0), (2, 1)]),
    "TILE": lambda x: np.tile(x, (1, 2, 1)),
    "GATHER": lambda x: x[:, [2, 0]],
    "REVERSE_V2": lambda x: x[:, ::-1],
    "RESHAPE": lambda x: x.reshape(6, 5),
    "EXPAND_DIMS": lambda x: x[None],
    "STRIDED_SLICE": lambda x: x[:, ::2, 4:0:-2],
    "PACK": lambda x: np.stack([x, x]),
}


@pytest.mark.parametrize("name", MOVED)
def test_complex_numbers_are_moved(device, rng, name):
    """Into the model, through an operation, and out of it."""
    m = ModelMaker()
    m.output(moved(m, m.input("x", (2, 3, 5), np.complex64), name))
    x = (rng.standard_normal((2, 3, 5)) + 1j * rng.standard_normal((2, 3, 5))).astype(np.complex64)
    want = [np.ascontiguousarray(MOVED[name](x))]
    check(m.build(), [x], want, device=device, precision="fp32", reference=False)


def test_constants_are_complex(device):
    m = ModelMaker()
    values = (np.arange(6) - 3j * np.arange(6)).astype(np.complex64).reshape(2, 3)
    x = m.input("x", (1, 3), np.complex64)
    m.output(m.op("CONCATENATION", [m.constant(values), x], (3, 3), dtype=np.complex64, axis=0))
    x = np.complex64([[1j, 2, 3 + 1j]])
    want = [np.concatenate([values, x])]
    check(m.build(), [x], want, device=device, precision="fp32", reference=False)


def test_verified_against_the_stock_kernels(device, rng):
    m = ModelMaker()
    size = m.constant(np.array([1, 16], np.int32))
    m.output(m.op("RFFT2D", [m.input("x", (3, 1, 16)), size], (3, 1, 9), dtype=np.complex64))
    x = rng.standard_normal((3, 1, 16)).astype(np.float32)
    delegate = clgpu_delegate.load(device=device, verify="first", cache="off")
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    (got,) = run_interpreter(interpreter, [x])
    np.testing.assert_allclose(got, transform(x, 1, 16), rtol=1e-5, atol=1e-5)
    (node,) = delegate.explain().nodes
    assert node.claimed, node.reason


def refused(
    why: str, shape: tuple = (2, 4), size: Any = (2, 4), dtype: Any = np.float32,
    out: Any = np.complex64,
) -> None:  # fmt: skip
    m = ModelMaker()
    x = m.input("x", shape, dtype)
    lengths = m.input("n", (2,), np.int32) if size is None else m.constant(np.int32(size))
    m.output(m.op("RFFT2D", [x, lengths], shape, dtype=out))
    check_refused(m.build(), why)


def test_operands_are_refused():
    refused("input is int32; supported: float32", dtype=np.int32)
    refused("output is float32; supported: complex64", out=np.float32)
    refused("input has rank 1; supported: 2 to 6", shape=(4,))
    refused("the size of the transform is computed at run time", size=None)
    refused("the size of the transform is not two numbers", size=(2, 4, 8))
    refused(
        "the height of the transform is 3; supported: a power of two from 1 to 2^20", size=(3, 4)
    )
    refused(
        "the width of the transform is 1; supported: a power of two from 2 to 2^20", size=(2, 1)
    )

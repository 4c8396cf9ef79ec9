"""Half sums (option ``sums``): within the bound that the length of their blocks sets.

A block of B products of numbers that half holds is off by at most the sum of their absolute values
times B u / (1 - B u), u = 2^-11: each product is rounded once, and so is each of the B - 1 sums
that it takes part in. Blocks are added in float; storing the result as half adds another u.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.ops import test_conv2d, test_depthwise_conv2d, test_transpose_conv
from tests.ops.convolutions import Data, convolve, make_data
from tests.ops.harness import half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import FLOAT_EPS, HALF_EPS

BLOCK = 32
TINY = 2.0**-24  # the smallest half: where a product or a sum is below the normal ones

Conv, Depthwise = test_conv2d.Case, test_depthwise_conv2d.Case
Transposed = test_transpose_conv.Case

CONVOLUTIONS = {
    "image_of_three_channels": Conv((1, 9, 7, 3), (8, 3, 3, 3), stride=(2, 2)),
    "points": Conv((1, 5, 7, 64), (33, 1, 1, 64), activation="RELU6"),
    "point_of_many_channels": Conv((1, 1, 1, 260), (40, 1, 1, 260)),  # its parts share sums
    "five_channels": Conv((2, 6, 5, 5), (7, 3, 3, 5), padding="VALID", bias=False),
    "groups": Conv((1, 6, 5, 16), (6, 3, 3, 8), dilation=(2, 1)),
    "deep": Conv((1, 4, 5, 36), (18, 5, 3, 36)),
    "winograd": Conv((1, 9, 6, 72), (12, 3, 3, 72)),
    "winograd_valid": Conv((2, 7, 10, 8), (8, 3, 3, 8), padding="VALID"),
}
DEPTHWISE = {
    "3x3": Depthwise((1, 9, 7, 16), (3, 3), stride=(2, 2), activation="RELU6"),
    "5x5": Depthwise((1, 7, 9, 24), (5, 5)),
    "7x7": Depthwise((1, 9, 8, 8), (7, 7), bias=False),
    "one_row": Depthwise((1, 3, 60, 4), (1, 51)),
    "three_channels": Depthwise((2, 5, 7, 3), (3, 3), dilation=(2, 1)),
    "multiplied": Depthwise((1, 6, 5, 8), (3, 3), multiplier=2),
    "multiplied_by_a_vector": Depthwise((1, 5, 6, 3), (5, 3), multiplier=8, stride=(2, 1)),
}
TRANSPOSED = {
    "strided": Transposed((1, 4, 5, 24), (7, 3, 3, 24), (2, 2), activation="RELU"),
    "five_channels": Transposed((2, 3, 7, 5), (9, 4, 4, 5), (2, 2)),
    "stride_of_one": Transposed((1, 7, 9, 36), (8, 3, 3, 36), bias=False),
}
# Rows, depth, columns, and the transposed operands.
MATRICES = {
    "plain": (5, 70, 9, False, False),
    "columns": (8, 33, 12, False, True),
    "rows": (7, 41, 6, True, False),
    "both": (4, 64, 5, True, True),
}
LAYERS = {"one_row": (1, 300, 41), "rows": (7, 65, 30), "odd": (3, 7, 5)}


@pytest.fixture
def halves(device: str) -> str:
    """A device with half arithmetic."""
    if not clgpu_delegate.devices()[int(device)].abilities().half_arithmetic:
        pytest.skip("the device has no half arithmetic")
    return device


def load(device: str, **options: Any) -> clgpu_delegate.Delegate:
    options = {"precision": "fp16", "sums": "half", "half_io": True, **options}
    return clgpu_delegate.load(device=device, warm_up=False, cache="off", **options)


def run(model: bytes, inputs: list, device: str, **options: Any) -> tuple[np.ndarray, Any]:
    delegate = load(device, **options)
    (got,) = run_interpreter(make_interpreter(op_runtime(), model, [delegate]), inputs)
    return got.astype(np.float64), delegate.explain()


def half_forms(
    model: bytes, inputs: list, device: str, **options: Any
) -> Iterator[tuple[str, np.ndarray]]:
    """The result of each candidate that adds halves."""
    _, explanation = run(model, inputs, device, **options)
    (node,) = [node for node in explanation.nodes if node.family]
    names = [name for name in node.candidates if name.endswith("_half") or "_half_" in name]
    assert any(name.startswith("quads") for name in names), node.candidates
    for name in names:
        try:
            got, explained = run(model, inputs, device, engines={node.family: name}, **options)
        except RuntimeError as refused:
            # Some drivers tell only while loading how large the work-groups of a kernel may be.
            if "this kernel allows" not in str(refused):
                raise
            continue
        (node,) = [node for node in explained.nodes if node.family]
        assert (node.candidate, node.adds_halves, node.sums) == (name, True, "half")
        yield name, got


def check(
    model: bytes, inputs: list, device: str, want: np.ndarray, size: np.ndarray, terms: int,
    winograd: np.ndarray | None = None,
) -> None:  # fmt: skip
    """Compare all half forms with float64; ``size``: sums of the absolute values of products."""
    rounded = False
    for name, got in half_forms(model, inputs, device):
        length = min(BLOCK, terms)
        whole = size
        if name.startswith("winograd"):
            # Its factors are rounded after their transforms.
            assert winograd is not None
            length, whole = BLOCK + 2, winograd
        bound = length * HALF_EPS / (1 - length * HALF_EPS) * whole
        bound += HALF_EPS * (np.abs(want) + bound)  # of the result as half
        bound += FLOAT_EPS * terms * whole + TINY * (terms + 1)
        error = np.abs(got - want)
        assert np.all(error <= bound), f"{name}: {np.max(error / bound):.2f} of the bound"
        rounded = rounded or np.any(error > HALF_EPS * np.abs(want) + FLOAT_EPS * terms * size)
    assert rounded or terms < 2, "no error is larger than that of float sums"


def of_absolutes(data: Data) -> Data:
    return Data(np.abs(data.image), np.abs(data.weights), None)


def plain(case: Any) -> Any:
    return case._replace(activation="NONE", bias=False)


def winograd_size(data: Data, case: Conv) -> np.ndarray:
    """The sums of absolute values in F(2x2, 3x3): of transforms, products and results."""
    # The matrices of the transforms of image, filter and result.
    b = np.abs(np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], float))
    g = np.abs(np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]]))
    a = np.abs(np.array([[1, 1, 1, 0], [0, 1, -1, -1]], float))
    (top, height), (left, width) = case.windows
    image = np.abs(data.image.astype(np.float64))
    padded = np.zeros((image.shape[0], height + 4, width + 4, image.shape[3]))
    rows, columns = (
        min(n, m - o) for n, m, o in zip(image.shape[1:3], padded.shape[1:3], (top, left))
    )
    padded[:, top : top + rows, left : left + columns] = image[:, :rows, :columns]
    filters = np.einsum("pi,oijc,qj->pqoc", g, np.abs(data.weights.astype(np.float64)), g)
    result = np.zeros((image.shape[0], height + 1, width + 1, case.weights[0]))
    for y in range(0, height, 2):
        for x in range(0, width, 2):
            tile = padded[:, y : y + 4, x : x + 4]
            products = np.einsum("pi,nijc,qj,pqoc->npqo", b, tile, b, filters, optimize=True)
            result[:, y : y + 2, x : x + 2] = np.einsum("rp,npqo,sq->nrso", a, products, a)
    return result[:, :height, :width]


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name, halves, rng):
    case = CONVOLUTIONS[name]
    data = make_data(case, rng)
    check(
        test_conv2d.make_model(case, data),
        [data.image],
        halves,
        convolve(*data, case),
        convolve(*of_absolutes(data), plain(case)),
        case.depth,
        winograd_size(data, case) if name.startswith("winograd") else None,
    )


@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise_convolution(name, halves, rng):
    case = DEPTHWISE[name]
    data = make_data(case, rng)
    check(
        test_depthwise_conv2d.make_model(case, data),
        [data.image],
        halves,
        convolve(*data, case),
        convolve(*of_absolutes(data), plain(case)),
        int(np.prod(case.filter)),
    )


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed_convolution(name, halves, rng):
    case = TRANSPOSED[name]
    data = make_data(case, rng)
    scatter = test_transpose_conv.scatter
    check(
        test_transpose_conv.make_model(case, data),
        [data.image],
        halves,
        scatter(*data, case),
        scatter(*of_absolutes(data), plain(case)),
        case.depth,
    )


@pytest.mark.parametrize("name", LAYERS)
def test_fully_connected(name, halves, rng):
    rows, depth, columns = LAYERS[name]
    x, weights = (half_exact(rng.standard_normal((n, depth), np.float32)) for n in (rows, columns))
    m = ModelMaker()
    inputs = [m.input("x", x.shape), m.constant(weights), None]
    m.output(m.op("FULLY_CONNECTED", inputs, (rows, columns)))
    x64, w64 = x.astype(np.float64), weights.astype(np.float64)
    check(m.build(), [x], halves, x64 @ w64.T, np.abs(x64) @ np.abs(w64).T, depth)


@pytest.mark.parametrize("name", MATRICES)
def test_batch_matmul(name, halves, rng):
    rows, depth, columns, adj_x, adj_y = MATRICES[name]
    x = half_exact(rng.standard_normal((2, rows, depth), np.float32))
    y = half_exact(rng.standard_normal((2, depth, columns), np.float32))
    m = ModelMaker()
    given = [x.swapaxes(1, 2) if adj_x else x, y.swapaxes(1, 2) if adj_y else y]
    given = [np.ascontiguousarray(array) for array in given]
    operands = [m.input(f"x{i}", array.shape) for i, array in enumerate(given)]
    m.output(m.op("BATCH_MATMUL", operands, (2, rows, columns), adj_x=adj_x, adj_y=adj_y))
    want, size = x.astype(np.float64) @ y, np.abs(x).astype(np.float64) @ np.abs(y)
    check(m.build(), given, halves, want, size, depth)


UNIT = np.float32(63 / 32)
"""Half holds 32 of them exactly, and no odd multiple above: 33 * 63 has twelve bits."""


def ones(case: Any, make_model: Any) -> bytes:
    bias = np.zeros(case.output[3], np.float32) if case.bias else None
    return make_model(case, Data(np.zeros(0), np.ones(case.weights, np.float32), bias))


@pytest.mark.parametrize(
    ("module", "case"),
    [
        (test_conv2d, Conv((1, 3, 5, 264), (8, 1, 1, 264))),
        (test_conv2d, Conv((1, 1, 1, 1000), (8, 1, 1, 1000))),
        (test_conv2d, Conv((1, 4, 5, 7), (9, 3, 3, 7))),
        (test_conv2d, Conv((1, 5, 5, 12), (6, 5, 5, 12), stride=(2, 1))),
        (test_depthwise_conv2d, Depthwise((1, 9, 8, 8), (7, 7))),
        (test_depthwise_conv2d, Depthwise((1, 3, 60, 3), (1, 51))),
        (test_depthwise_conv2d, Depthwise((1, 20, 5, 8), (19, 5))),
        (test_transpose_conv, Transposed((1, 4, 5, 72), (7, 3, 3, 72), (2, 2))),
        (test_transpose_conv, Transposed((1, 4, 5, 9), (7, 5, 5, 9), (1, 2))),
    ],
)
def test_no_block_has_more_products(module, case, halves):
    model, image = ones(case, module.make_model), np.full(case.image, UNIT)
    data = Data(image, np.ones(case.weights), None)
    compute = convolve if module is not test_transpose_conv else module.scatter
    want = compute(*data, plain(case))
    assert want.max() > 40 * UNIT
    for name, got in half_forms(model, [image], halves, half_io=False):
        if not name.startswith("winograd"):  # whose transforms add first
            assert np.array_equal(got, want), name


@pytest.mark.parametrize("adj_y", [False, True])
@pytest.mark.parametrize("depth", [264, 131])
def test_no_block_of_a_matrix_has_more_products(depth, adj_y, halves):
    x, y = np.full((1, 5, depth), UNIT), np.ones((1, 6, depth) if adj_y else (1, depth, 6))
    m = ModelMaker()
    operands = [m.input("x", x.shape), m.input("y", y.shape)]
    m.output(m.op("BATCH_MATMUL", operands, (1, 5, 6), adj_x=False, adj_y=adj_y))
    for name, got in half_forms(m.build(), [x, y.astype(np.float32)], halves, half_io=False):
        assert np.array_equal(got, np.full((1, 5, 6), depth * 63 / 32)), name


def layer(weights: np.ndarray, rows: int = 6) -> bytes:
    """FULLY_CONNECTED without a bias."""
    m = ModelMaker()
    inputs = [m.input("x", (rows, weights.shape[1])), m.constant(weights), None]
    m.output(m.op("FULLY_CONNECTED", inputs, (rows, weights.shape[0])))
    return m.build()


QUADS = {"fully_connected": "quads"}


def test_sums_stay_float_unless_they_are_asked_for(halves, rng):
    weights, x = (half_exact(rng.standard_normal((n, 96), np.float32)) for n in (40, 6))
    floats, explanation = run(layer(weights), [x], halves, sums="float", engines=QUADS)
    (node,) = explanation.nodes
    assert not [name for name in node.candidates if "half" in name]
    assert (node.sums, node.adds_halves, explanation.notes) == ("float", False, ())
    rounded, explanation = run(layer(weights), [x], halves, engines=QUADS)
    assert explanation.nodes[0].sums == "half"
    again, _ = run(layer(weights), [x], halves, sums="float", engines=QUADS)
    assert np.array_equal(floats, again), "programs of both are kept apart"
    assert not np.array_equal(floats, rounded)


def test_weights_beyond_half_have_float_sums(halves, rng):
    weights = rng.standard_normal((40, 96)).astype(np.float32)
    weights[3, 5] = 1e5
    x = half_exact(rng.standard_normal((6, 96), np.float32))
    _, explanation = run(layer(weights), [x], halves, engines=QUADS)
    assert explanation.nodes[0].sums == "float"
    (step,) = [step for step in explanation.steps if step.pass_name == "choose_sums"]
    assert (step.outcome, step.node) == ("declined", 0)
    assert step.detail == "sums stay float: a constant is beyond the largest half"


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_other_precisions_have_float_sums_and_say_so(halves, rng, precision):
    weights, x = (half_exact(rng.standard_normal((n, 96), np.float32)) for n in (40, 6))
    options = {"precision": precision, "half_io": False}
    _, explanation = run(layer(weights), [x], halves, engines=QUADS, **options)
    assert explanation.nodes[0].sums == "float"
    assert (
        f"sums are float: sums half has no effect with precision {precision}; use fp16, mixed or a "
        "plan"
    ) in explanation.notes


def test_device_without_half_arithmetic_has_float_sums_and_says_so(device, rng):
    weights, x = (half_exact(rng.standard_normal((n, 96), np.float32)) for n in (40, 6))
    had = clgpu_delegate.devices()[int(device)].abilities()
    codes = {"none": 0, "khronos": 1, "arm": 2, "nvidia": 3}
    facts = {"mma_f16": had.mma_f16, "mma_tf32": had.mma_tf32, "mma_s8": had.mma_s8}

    floats, _ = run(layer(weights), [x], device, sums="float", engines=QUADS)
    _core.pretend_probe(device, half_arithmetic=False, dot8=codes[had.dot8], **facts)
    try:
        got, explanation = run(layer(weights), [x], device, engines=QUADS)
    finally:
        _core.stop_pretending(device)
    assert np.array_equal(got, floats)
    (node,) = explanation.nodes
    assert node.sums == "float"
    assert not [name for name in node.candidates if "half" in name]
    note = "sums half are float here: the device has no half arithmetic (cl_khr_fp16)"
    assert note in explanation.notes


def test_chains_have_half_sums(halves, rng):
    """Two layers in one kernel have the numbers of two launches."""
    m = ModelMaker()
    x = m.input("x", (6, 96))
    for _ in range(2):
        weights = m.constant(half_exact(rng.standard_normal((96, 96), np.float32) / 8))
        x = m.op("FULLY_CONNECTED", [x, weights, None], (6, 96))
    m.output(x)
    given = [half_exact(rng.standard_normal((6, 96), np.float32))]
    plain, _ = run(m.build(), given, halves, engines=QUADS, chain="off")
    _core.pretend_chain_groups(1)
    try:
        delegate = load(halves, engines=QUADS, chain="on")
        (got,) = run_interpreter(make_interpreter(op_runtime(), m.build(), [delegate]), given)
    finally:
        _core.pretend_chain_groups(0)
    assert {node.sums for node in delegate.explain().nodes} == {"half"}
    assert np.array_equal(got, plain)


# Verification, and plans of precisions.


def test_verification_goes_back_to_float_sums_where_blocks_overflow(halves):
    """32 products of 2500 are beyond half, and 32 others make up for them."""
    weights = np.full((40, 64), 50, np.float32)
    weights[:, 32:] = -50
    weights[:, -1] = -48
    x = np.full((6, 64), 50, np.float32)
    model = layer(weights)
    options = {"engines": {"fully_connected": "quads|auto"}, "half_io": False}
    got, _ = run(model, [x], halves, **options)
    if np.isfinite(got).all() and "CLGPU_LIMITS" in os.environ:
        pytest.skip("the kernel of this device adds the products in another order")
    assert not np.isfinite(got).any()
    got, explanation = run(model, [x], halves, verify="first", **options)
    assert np.array_equal(got, np.full((6, 40), 100.0))
    (check_,) = explanation.verification.partitions
    assert (check_.level, check_.outcome) == ("exact sums", "replaced")
    assert check_.engine == ""
    assert "half sums are off at node 0 (FULLY_CONNECTED)" in check_.reason
    assert explanation.nodes[0].sums == "float"
    # Numbers that fit are right with half sums, in the same process.
    fit, explanation = run(model, [x / 50], halves, verify="first", **options)
    assert np.array_equal(fit, np.full((6, 40), 2.0))
    assert explanation.nodes[0].sums == "half"


def network(rng: np.random.Generator) -> tuple[bytes, np.ndarray]:
    """Three convolutions of images of more than 4096 elements."""
    shape = (1, 20, 20, 16)
    m = ModelMaker()
    x = m.input("x", shape)
    for _ in range(3):
        weights = half_exact(rng.standard_normal((16, 3, 3, 16), np.float32) / 12)
        operands = [x, m.constant(weights), m.constant(np.zeros(16, np.float32))]
        x = m.op("CONV_2D", operands, shape, padding="SAME", stride_h=1, stride_w=1)
    m.output(x)
    return m.build(), half_exact(rng.standard_normal(shape, np.float32))


def test_plan_of_precisions_names_nodes_with_half_sums(halves, rng):
    model, x = network(rng)
    options = {"half_io": False, "engines": {"conv2d": "quads"}}
    _, explained = run(model, [x], halves, precision="mixed", sums="float", **options)
    assert explained.mixed is not None
    tensors = "+".join(str(tensor.id) for tensor in explained.tensors)
    plan = f"model={explained.mixed.model},half={tensors}"

    def sums(text: str, sums: str = "float") -> list[str]:
        _, explanation = run(model, [x], halves, precision=text, sums=sums, **options)
        return [node.sums for node in explanation.nodes]

    assert sums(plan) == ["float"] * 3
    # The first image is an input of the model, which stays float.
    assert sums(f"{plan},sums=0-1") == ["float", "half", "float"]
    assert sums(plan, "half") == ["float", "half", "half"]
    _, explanation = run(model, [x], halves, precision=f"{plan},sums=1", sums="float", **options)
    assert explanation.mixed.half_sums == (1,)
    assert ", 1 with half sums," in " ".join(str(explanation).split())

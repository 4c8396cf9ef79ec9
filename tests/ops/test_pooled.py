"""A convolution, or a local response normalisation, and the pooling of its result as one node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import LIMITED, half_exact, op_runtime
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import assert_close

# Emulated devices may lack the work-groups that a kernel demands.
FUSED = {"pooled": "fused|auto" if LIMITED else "fused"}
APART, PLAIN = {"pooled": "separate"}, {"pooled": "naive"}


class Case(NamedTuple):
    """Sizes leave rows and columns over."""

    image: tuple[int, int, int, int]
    filters: int = 0  # 0: a normalisation
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "RELU"
    bias: bool = True
    radius: int = 2
    beta: float = 0.75
    pool: str = "MAX_POOL_2D"
    window: tuple[int, int] = (2, 2)
    step: tuple[int, int] = (2, 2)
    edges: str = "VALID"  # padding of the pooling
    after: str = "NONE"  # activation of the pooling


CASES = {
    "lenet_first": Case((1, 12, 12, 1), 6, (5, 5), activation="TANH", pool="AVERAGE_POOL_2D"),
    "lenet_second": Case((2, 9, 9, 6), 16, (5, 5), padding="VALID", pool="AVERAGE_POOL_2D"),
    "long_sum": Case((1, 7, 8, 12), 33),
    "strided": Case((1, 14, 11, 4), 5, (3, 2), (2, 1), bias=False, activation="NONE"),
    "narrow_window": Case((2, 5, 9, 3), 7, window=(1, 3), step=(1, 3)),
    "gaps": Case((1, 9, 9, 3), 4, (1, 1), window=(2, 1), step=(3, 2)),
    "alexnet": Case((1, 9, 7, 12), window=(3, 3)),
    "root_mean_square": Case((1, 8, 6, 2), 3, activation="NONE", pool="L2_POOL_2D"),
    "average": Case((2, 6, 5, 8), pool="AVERAGE_POOL_2D", radius=1, beta=0.5),
    "activation": Case((1, 5, 5, 4), radius=4, after="RELU6", beta=1.0),
    "edges": Case((2, 8, 7, 8), window=(3, 3), edges="SAME"),
    "edges_of_averages": Case(
        (1, 5, 6, 4), pool="AVERAGE_POOL_2D", window=(3, 2), step=(1, 2), edges="SAME"
    ),
    "no_neighbours": Case((1, 4, 4, 16), radius=0, window=(2, 3), step=(1, 1)),
}


def make_model(case: Case, rng: np.random.Generator, *, zeros: bool = False) -> bytes:
    """Both nodes, with something before them, so that fp16 stores their image in half.

    With ``zeros`` a missing bias is one of zeros, because the runtime's kernels need one.
    """
    m = ModelMaker()
    x = m.op("NEG", [m.input("image", case.image)], case.image)
    m.output(add_pooled(m, x, case, rng, zeros=zeros))
    return m.build()


def add_pooled(
    m: ModelMaker, x: int, case: Case, rng: np.random.Generator, *, zeros: bool = False
) -> int:
    n, h, w, channels = case.image
    if case.filters:
        weights = rng.standard_normal((case.filters, *case.kernel, channels)) / 4
        operands = [x, m.constant(half_exact(weights.astype(np.float32)))]
        bias = half_exact(rng.standard_normal(case.filters).astype(np.float32))
        if case.bias or zeros:
            operands.append(m.constant(bias if case.bias else np.zeros_like(bias)))
        extents = [
            -(-size // stride) if case.padding == "SAME" else (size - kernel) // stride + 1
            for size, kernel, stride in zip((h, w), case.kernel, case.stride)
        ]
        shape = (n, *extents, case.filters)
        apart = case.activation == "TANH"  # the runtime's convolutions leave it out
        x = m.op(
            "CONV_2D", operands, shape, padding=case.padding, stride_h=case.stride[0],
            stride_w=case.stride[1], fused_activation_function="NONE" if apart else case.activation,
        )  # fmt: skip
        x = m.op("TANH", [x], shape) if apart else x
    else:
        shape = case.image
        x = m.op(
            "LOCAL_RESPONSE_NORMALIZATION", [x], shape, radius=case.radius, bias=1.0, alpha=0.5,
            beta=case.beta,
        )  # fmt: skip
    rows, columns = (
        -(-size // step) if case.edges == "SAME" else (size - window) // step + 1
        for size, window, step in zip(shape[1:], case.window, case.step)
    )
    (filter_h, filter_w), (stride_h, stride_w) = case.window, case.step
    return m.op(
        case.pool, [x], (n, rows, columns, shape[3]), padding=case.edges, stride_h=stride_h,
        stride_w=stride_w, filter_height=filter_h, filter_width=filter_w,
        fused_activation_function=case.after,
    )  # fmt: skip


def run(model: bytes, image: np.ndarray, delegate: clgpu_delegate.Delegate | None) -> np.ndarray:
    delegates = [] if delegate is None else [delegate]
    (got,) = run_interpreter(make_interpreter(op_runtime(), model, delegates), [image])
    return got


@pytest.mark.parametrize("engines", [FUSED, APART, PLAIN], ids=["fused", "separate", "naive"])
@pytest.mark.parametrize("name", list(CASES))
def test_results(name, engines, device, precision):
    case = CASES[name]
    model = make_model(case, np.random.default_rng(1))
    stock = make_model(case, np.random.default_rng(1), zeros=True)
    rng = np.random.default_rng(len(name))
    image = half_exact(rng.standard_normal(case.image).astype(np.float32))
    delegate = clgpu_delegate.load(device=device, precision=precision, engines=engines)
    got = run(model, image, delegate)
    (node,) = (node for node in delegate.explain().nodes if node.family == "pooled")
    assert node.candidate == engines["pooled"] or LIMITED
    expected = run(stock, image, None)
    terms = case.kernel[0] * case.kernel[1] * case.image[3] if case.filters else 2 * case.radius + 3
    assert_close(got, expected, precision, terms, what=name)


def test_what_others_read_stays(device):
    rng = np.random.default_rng(1)
    m = ModelMaker()
    x = m.op(
        "CONV_2D",
        [m.input("image", (1, 4, 4, 3)), m.constant(np.ones((4, 1, 1, 3), np.float32)),
         m.constant(np.zeros(4, np.float32))],
        (1, 4, 4, 4), padding="VALID", stride_h=1, stride_w=1,
    )  # fmt: skip
    m.output(x)
    m.output(
        m.op(
            "MAX_POOL_2D", [x], (1, 2, 2, 4), padding="VALID", stride_h=2, stride_w=2,
            filter_height=2, filter_width=2,
        )
    )  # fmt: skip
    delegate = clgpu_delegate.load(device=device, engines=FUSED)
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    run_interpreter(interpreter, [rng.standard_normal((1, 4, 4, 3)).astype(np.float32)])
    assert [node.family for node in delegate.explain().nodes] == ["conv2d", "pool"]


@pytest.mark.parametrize("name", ["lenet_second", "alexnet", "edges"])
def test_number_of_images_may_change(name, device):
    case = CASES[name]
    rng = np.random.default_rng(2)
    delegate = clgpu_delegate.load(device=device, engines=FUSED)
    interpreter = make_interpreter(op_runtime(), make_model(case, rng), [delegate])
    for images, height in ((1, 12), (3, 11), (2, 9)):
        shape = (images, height, *case.image[2:])
        image = rng.standard_normal(shape).astype(np.float32)
        (got,) = run_interpreter(interpreter, [image], {0: shape})
        other = make_model(case._replace(image=shape), np.random.default_rng(2))
        assert_close(got, run(other, image, None), "fp32", 200, what=str(shape))
        kernels = {n.candidate for n in delegate.explain().nodes if n.family == "pooled"}
        assert kernels == {"fused"} or LIMITED


@pytest.mark.parametrize("name", ["lenet_first", "alexnet"])
def test_result_may_be_a_part_of_another(name, device):
    case = CASES[name]
    rng = np.random.default_rng(3)
    m = ModelMaker()
    x = m.op("NEG", [m.input("image", case.image)], case.image)
    parts = [add_pooled(m, x, case, rng) for _ in range(2)]
    shape = m.shape(parts[0])
    m.output(m.op("CONCATENATION", parts, (*shape[:3], 2 * shape[3]), axis=3))
    model, image = m.build(), rng.standard_normal(case.image).astype(np.float32)
    got = run(model, image, clgpu_delegate.load(device=device, engines=FUSED))
    assert_close(got, run(model, image, None), "fp32", 200, what=name)


NOTHING_BUILDS = """
from tests.ops.test_pooled import *
from clgpu_delegate import _core

for name in _core.kernel_sources():
    if name.startswith(("conv2d/", "pool/", "pooled/", "local_response_normalization/")):
        _core.override_kernel_source(name, "no OpenCL C")
for name in ("lenet_first", "alexnet"):
    case = CASES[name]
    model = make_model(case, np.random.default_rng(1))
    image = np.random.default_rng(2).standard_normal(case.image).astype(np.float32)
    delegate = clgpu_delegate.load(engines={"pooled": "auto"}, cache="off")
    assert_close(run(model, image, delegate), run(model, image, None), "fp32", 25, what=name)
    assert {n.op for n in delegate.explain().nodes if n.claimed} <= {"NEG", "TANH"}
"""


def test_nodes_stay_on_the_cpu_where_no_kernel_builds():
    """Also those that a pass has made one node of."""
    assert_succeeds(run_python(NOTHING_BUILDS))

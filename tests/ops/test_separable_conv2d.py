"""A depthwise convolution and the following 1x1 convolution as one node, in every way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.limits import needs
from tests.model_maker import ModelMaker
from tests.ops.borders import Border
from tests.ops.convolutions import GEOMETRIES, windows
from tests.ops.harness import LIMITED, SMALL, half_exact, op_runtime
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import assert_close

ALWAYS = {"separable_conv2d": "separate"}
# A name that only blocks have makes them, also where no kernel computes them in one launch.
BLOCKS = {"separable_conv2d": "inverted_half|separate"}
PARTS = {"conv2d": "naive", "depthwise_conv2d": "naive"}  # tested by files of their own
FUSED, STAYS = "fused into node", "runs on the device"


class Case(NamedTuple):
    """A depthwise convolution, then one of 1x1; sizes meet the edges of the tiles."""

    image: tuple[int, int, int, int]
    filters: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activations: tuple[str, str] = ("NONE", "NONE")
    bias: bool = True
    residual: bool = False
    border: Border | None = None  # separate operations before the first convolution
    expanded: int = 0  # channels of a 1x1 convolution with RELU6 before the two; 0: there is none

    @classmethod
    def of(cls, name: str, channels: int, filters: int) -> Case:
        """Give the first convolution a geometry, which must not be dilated."""
        image, kernel, stride, _, padding, activation, bias = GEOMETRIES[name]
        image = (*image, channels)
        return cls(image, filters, kernel, stride, padding, (activation, "NONE"), bias)

    @property
    def output(self) -> tuple[int, int, int, int]:
        n, *image, _ = self.border.shape(self.image) if self.border else self.image
        sizes = windows(image, self.kernel, self.stride, (1, 1), self.padding)
        return (n, *(size for _, size in sizes), self.filters)


# Channels and filters by geometry that the cases below do not have.
CHANNELS = {
    "one_element": (4, 1), "odd": (4, 3), "strided_columns": (4, 6), "doubling": (16, 4),
}  # fmt: skip
CASES = {
    **{name: Case.of(name, *channels) for name, channels in CHANNELS.items()},
    "edges": Case((2, 9, 19, 36), 33, activations=("RELU", "RELU6")),
    "strided": Case((1, 11, 18, 8), 70, stride=(2, 2), activations=("RELU6", "RELU")),
    "several_chunks": Case((1, 6, 9, 132), 40),
    "valid_wide_filter": Case((1, 9, 10, 12), 20, (5, 2), padding="VALID", bias=False),
    "tanh_between": Case((1, 4, 5, 8), 8, activations=("TANH", "RELU_N1_TO_1")),
    "residual": Case((1, 6, 7, 16), 16, activations=("RELU6", "NONE"), residual=True),
    "inverted": Case((1, 6, 7, 8), 8, activations=("RELU6", "NONE"), residual=True, expanded=40),
    "inverted_strided": Case((2, 9, 7, 40), 33, (5, 3), (2, 2), bias=False, expanded=24),
}


def make_model(case: Case, rng: np.random.Generator, *, between: bool = False) -> bytes:
    """A chain with something before it, so that fp16 stores the image in half."""
    m = ModelMaker()
    c, shape = case.image[3], case.output
    x = m.op("NEG", [m.input("image", case.image)], case.image)
    if case.border:
        x = case.border.add(m, x)

    def constant(*shape: int) -> int:
        values = half_exact(rng.standard_normal(shape).astype(np.float32))
        return m.constant(values * np.float32(0.25))

    image = x
    if case.expanded:
        inputs = [x, constant(case.expanded, 1, 1, c)]
        c = case.expanded
        if case.bias:
            inputs.append(constant(c))
        x = m.op(
            "CONV_2D", inputs, (*case.image[:3], c), padding="VALID", stride_w=1, stride_h=1,
            fused_activation_function="RELU6",
        )  # fmt: skip
    inputs = [x, constant(1, *case.kernel, c)]
    if case.bias:
        inputs.append(constant(c))
    y = m.op(
        "DEPTHWISE_CONV_2D", inputs, (*shape[:3], c), padding=case.padding, depth_multiplier=1,
        stride_h=case.stride[0], stride_w=case.stride[1],
        fused_activation_function=case.activations[0],
    )  # fmt: skip
    if between:
        m.output(y)
    inputs = [y, constant(case.filters, 1, 1, c)]
    if case.bias:
        inputs.append(constant(case.filters))
    z = m.op(
        "CONV_2D", inputs, shape, padding="VALID", stride_w=1, stride_h=1,
        fused_activation_function=case.activations[1],
    )  # fmt: skip
    if case.residual:
        z = m.op("ADD", [image, z], shape)
    m.output(m.op("NEG", [z], shape))
    return m.build()


def sample(case: Case, rng: np.random.Generator) -> np.ndarray:
    return half_exact(rng.standard_normal(case.image).astype(np.float32))


def run(
    model: bytes, x: np.ndarray, engines: dict[str, str], resize: bool = False, **options: Any
) -> tuple[np.ndarray, list[dict]]:
    """The result, and how the explanation describes the nodes. Unwritten memory is NaN."""
    delegate = clgpu_delegate.load(engines=engines, **{"share_memory": False, **options})
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    outputs = run_interpreter(interpreter, [x], {0: x.shape} if resize else None)
    return outputs[-1], delegate.explain().to_dict()["nodes"]


def skip_if_large(products: float) -> None:
    if SMALL and products > 20_000:
        pytest.skip("too large for an interpreted device")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_candidate_is_both_convolutions(case, device, precision, rng):
    model, x = make_model(case, rng), sample(case, rng)
    options = {"device": device, "precision": precision}
    skip_if_large(np.prod(case.image) * max(case.filters, case.expanded))
    want, _ = run(model, x, PARTS, **options)
    _, nodes = run(model, x, BLOCKS if case.expanded else ALWAYS, **options)
    assert nodes[2]["reason"] == f"{FUSED} 1"
    if case.expanded:
        assert nodes[3]["reason"] == f"{FUSED} 1"
    assert {"separate", "naive"} <= set(nodes[1]["candidates"])
    assert len(nodes[1]["candidates"]) > 2 or LIMITED or case.expanded
    for name in nodes[1]["candidates"]:
        engine = f"{name}|inverted_half|auto" if case.expanded else f"{name}|auto"
        got, nodes = run(model, x, {"separable_conv2d": engine}, **options)
        assert nodes[1]["candidate"] == name or LIMITED
        depth = 25 * max(case.image[3], case.expanded)
        assert_close(got, want, precision, depth, f"with {name}")


@pytest.mark.parametrize(
    "border", [Border((2, 1), (1, 2)), Border((-1, -2), (0, -1)), Border((1, 1), (1, 1), False)]
)
def test_border_moves_into_every_candidate(border, device, precision, rng):
    case = Case((1, 7, 9, 8), 12, padding="VALID", border=border)
    model, x = make_model(case, rng), sample(case, rng)
    options = {"device": device, "precision": precision}
    want, _ = run(model, x, PARTS, **options)
    _, nodes = run(model, x, ALWAYS, **options)
    assert [node["reason"] for node in nodes[1:4:2]] == [f"{FUSED} 2"] * 2
    for name in nodes[2]["candidates"]:
        got, _ = run(model, x, {"separable_conv2d": f"{name}|auto"}, **options)
        assert_close(got, want, precision, 9 * 8, f"with {name}")


@pytest.mark.parametrize("engine", ["separate", "fused"])
def test_another_batch_and_size(engine, device, rng):
    needs.work_groups_of(128 if engine == "fused" else 1, "separable_conv2d_fused")
    case = CASES["edges"]
    model, x = make_model(case, rng), sample(case._replace(image=(3, 12, 9, 36)), rng)
    skip_if_large(x.size * case.filters)
    want, _ = run(model, x, PARTS, resize=True, device=device)
    got, _ = run(model, x, {"separable_conv2d": f"{engine}|auto"}, resize=True, device=device)
    assert_close(got, want, "fp32", 25 * 36, f"with {engine}")


def test_inverted_block_of_another_batch_and_size(device, rng):
    case = CASES["inverted"]
    model, x = make_model(case, rng), sample(case._replace(image=(3, 5, 9, 8)), rng)
    want, _ = run(model, x, PARTS, resize=True, device=device)
    got, _ = run(model, x, BLOCKS, resize=True, device=device)
    assert_close(got, want, "fp32", 25 * 40, "inverted")


@pytest.mark.parametrize("engines", [ALWAYS, BLOCKS], ids=["pairs", "blocks"])
@pytest.mark.parametrize("option", ["row_band", "memory_budget", "reuse"])
def test_inverted_block_stays_on_the_device_where_others_have_bands(engines, option, device, rng):
    """A block is computed as a whole: its results between have other rows than its result."""
    case = CASES["inverted"]._replace(image=(1, 24, 7, 8))
    model, x = make_model(case, rng), sample(case, rng)
    skip_if_large(x.size * case.expanded)
    want, _ = run(model, x, PARTS, device=device)
    values = {
        "row_band": {"row_band": 3},
        "memory_budget": {"memory_budget": 60_000, "share_memory": True},  # less than the whole
        "reuse": {"reuse": 1e-6},
    }
    got, nodes = run(model, x, engines, device=device, **values[option])
    assert all(node["claimed"] for node in nodes), [node["reason"] for node in nodes]
    assert (nodes[2]["reason"] == f"{FUSED} 1") == (engines == BLOCKS)
    assert_close(got, want, "fp32", 25 * 40, option)


def test_engine_of_pairs_is_taken_behind_a_1x1_convolution(device, rng):
    needs.work_groups_of(128, "separable_conv2d_fused")
    case = CASES["inverted"]
    model, x = make_model(case, rng), sample(case, rng)
    want, _ = run(model, x, PARTS, device=device)
    got, nodes = run(model, x, {"separable_conv2d": "fused_16x32"}, device=device)
    assert (nodes[1]["reason"], nodes[3]["reason"]) == (STAYS, f"{FUSED} 2")
    assert nodes[2]["candidate"] == "fused_16x32"
    assert_close(got, want, "fp32", 25 * 40, "fused_16x32")


@pytest.mark.parametrize("expanded", [0, 40], ids=["pair", "block"])
def test_result_between_is_a_half_only_where_the_precision_lets_it(expanded, device, rng):
    case = Case((1, 24, 24, 8), 8, expanded=expanded)
    model = make_model(case, rng)
    skip_if_large(np.prod(case.image) * max(8, expanded))
    had = clgpu_delegate.devices()[int(device)].abilities()
    codes = {"none": 0, "khronos": 1, "arm": 2, "nvidia": 3}
    facts = {"half_arithmetic": had.half_arithmetic, "mma_tf32": had.mma_tf32}

    def explain(precision: str) -> clgpu_delegate.Explanation:
        # The kernels for tensor cores are offered, but not built.
        engines = {"separable_conv2d": "naive|inverted_half" if expanded else "naive"}
        options = {"device": device, "precision": precision, "engines": engines}
        delegate = clgpu_delegate.load(**options, cache="off", warm_up=False)
        make_interpreter(op_runtime(), model, [delegate]).allocate_tensors()
        return delegate.explain()

    _core.pretend_probe(device, mma_f16=True, mma_s8=had.mma_s8, dot8=codes[had.dot8], **facts)
    try:
        whole = explain("fp16")
        halves = [t.id for t in whole.tensors if t.storage == "float16"]
        _, *between, _ = halves
        assert len(between) == (2 if expanded else 1)
        plan = f"model={explain('mixed').mixed.model},half="
        mixed = explain(plan + "+".join(map(str, halves)))
        refusing = [explain(plan + "+".join(map(str, set(halves) - {i}))) for i in between]
    finally:
        _core.stop_pretending(device)
    engine = "inverted_half" if expanded else "fused_half"
    for explanation in (whole, mixed):
        assert not explanation.nodes[1].refused
        assert any(name.startswith(engine) for name in explanation.nodes[1].candidates)
    for explanation in refusing:
        assert dict(explanation.nodes[1].refused)[engine] == (
            "the precision does not let the result between the convolutions be rounded to half"
        )


def test_tuning_measures_both_ways(device, rng):
    """In a separate graph, the node has other tensors; the one in the middle is not a result."""
    needs.work_groups_of(256, "separable_conv2d_fused")
    case = CASES["edges"]
    model, x = make_model(case, rng), sample(case, rng)
    skip_if_large(x.size * case.filters)
    want, _ = run(model, x, PARTS, device=device)
    options = {"tuning": "exhaustive", "cache": "off", "device": device}
    got, nodes = run(model, x, {"separable_conv2d": "auto"}, **options)
    assert {"separate", "naive", "fused_64x64"} <= set(nodes[1]["candidates"])
    assert not nodes[1]["refused"]
    assert_close(got, want, "fp32", 25 * 36, "tuned")


@pytest.mark.parametrize(
    "engines", [{"conv2d": "naive"}, {"depthwise_conv2d": "naive"}], ids=["conv2d", "depthwise"]
)
def test_forced_parts_stay_apart(engines, device, rng):
    case = CASES["odd"]
    _, nodes = run(make_model(case, rng), sample(case, rng), engines, device=device)
    assert nodes[2]["reason"] == STAYS
    assert "naive" in (nodes[1]["candidate"], nodes[2]["candidate"])


def test_result_between_that_is_an_output_stays(device, rng):
    case = CASES["odd"]
    model = make_model(case, rng, between=True)
    _, nodes = run(model, sample(case, rng), ALWAYS, device=device)
    assert nodes[2]["reason"] == STAYS


@pytest.mark.parametrize(
    "case",
    [
        Case((1, 5, 5, 6), 8),  # channels not by fours
        Case((1, 9, 9, 4), 8, (7, 7)),
        Case((1, 9, 9, 4), 8, stride=(3, 3)),
    ],
    ids=["channels", "filter", "stride"],
)
def test_pairs_the_fused_kernel_cannot_take_stay_apart(case, device, rng):
    _, nodes = run(make_model(case, rng), sample(case, rng), ALWAYS, device=device)
    assert nodes[2]["reason"] == STAYS

"""Plans correct the biases of products whose weights they round, by the means of their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import ChannelMeans
from clgpu_delegate.measure import means
from clgpu_delegate.runtimes import find_runtime
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import MODEL_L2, relative_l2

Array = Any
_WEIGHTS = 1  # tensor of the model: behind its input


def model(
    op: str, image: tuple[int, ...], weights: tuple[int, ...], out: tuple[int, ...], **options: Any
) -> bytes:
    rng = np.random.default_rng(7)
    m = ModelMaker()
    x = m.input("x", image)
    w = m.constant(rng.standard_normal(weights, np.float32))
    bias = m.constant(rng.standard_normal(out[-1], np.float32))
    m.output(m.op(op, [x, w, bias], out, **options))
    return m.build()


_NONE = {"fused_activation_function": "NONE"}
_SAME, _VALID = (
    {"padding": padding, "stride_h": 2, "stride_w": 1, **_NONE} for padding in ("SAME", "VALID")
)
CASES = {
    "filter": ("CONV_2D", (1, 9, 7, 24), (20, 3, 3, 24), (1, 5, 7, 20), _SAME),
    "inside": ("CONV_2D", (1, 9, 7, 24), (20, 3, 3, 24), (1, 4, 5, 20), _VALID),
    "groups": ("CONV_2D", (1, 9, 7, 24), (40, 3, 3, 12), (1, 4, 5, 40), _VALID),
    "depthwise": (
        "DEPTHWISE_CONV_2D", (1, 9, 7, 40), (1, 5, 3, 80), (1, 5, 7, 80),
        {"depth_multiplier": 2, **_SAME},
    ),
    "matrix": ("FULLY_CONNECTED", (3, 70), (33, 70), (3, 33), _NONE),
}  # fmt: skip


class Loaded:
    """A model on a device with a precision."""

    def __init__(self, content: bytes, precision: str, device: str, **options: Any) -> None:
        options = {"cache": "off", "warm_up": False, **options}
        self.delegate = clgpu_delegate.load(device=device, precision=precision, **options)
        self.interpreter = make_interpreter("auto", content, [self.delegate])

    def __call__(self, x: Array) -> Array:
        return run_interpreter(self.interpreter, [x])[0]

    def plan(self, *items: str) -> str:
        mixed = self.delegate.explain().mixed
        assert mixed is not None
        return ",".join([f"model={mixed.model}", *items])


@pytest.mark.parametrize("storage", ["half", "bfloat", "int8"])
@pytest.mark.parametrize("case", CASES)
def test_results_of_rounded_weights_are_right_on_average(device, case, storage):
    op, image, weights, out, options = CASES[case]
    content = model(op, image, weights, out, **options)
    # Means that a bfloat16 holds, the same everywhere.
    channels = np.round(np.random.default_rng(8).standard_normal(image[-1]) * 8) / 8
    x = np.broadcast_to(channels.astype(np.float32), image).copy()
    floats = Loaded(content, "mixed", device)
    exact = floats(x)
    rounded = Loaded(content, floats.plan(f"{storage}={_WEIGHTS}"), device)(x)
    bits = ChannelMeans.of(0, channels).bits
    corrected = Loaded(content, floats.plan(f"{storage}={_WEIGHTS}", f"means=0/{bits}"), device)
    got = corrected(x)
    places = tuple(range(exact.ndim - 1))
    scale = float(np.abs(exact).max())
    before, after = (np.abs((y - exact).mean(axis=places)).max() / scale for y in (rounded, got))
    assert after < before / 20
    if options.get("padding") != "SAME":  # near a border, less of the mean is multiplied
        assert relative_l2(got, exact) < MODEL_L2["fp32"]
    name = "quantize_weights" if storage == "int8" else "round_weights"
    steps = [s for s in corrected.delegate.explain().steps if s.pass_name == name]
    assert [step.outcome for step in steps] == ["applied"]
    assert "its bias has the mean of what that changes" in steps[0].detail


@pytest.mark.parametrize(
    ("items", "outcomes"),
    [
        (["means=0/3f80"], []),  # its weights are float
        ([f"half={_WEIGHTS}", "means=5/3f80"], []),  # of another tensor
        ([f"half={_WEIGHTS}", "means=0/3f80"], ["declined"]),
    ],
)
def test_products_that_means_do_not_concern_stay_as_they_are(device, items, outcomes):
    op, image, weights, out, options = CASES["filter"]
    content = model(op, image, weights, out, **options)
    x = np.random.default_rng(9).standard_normal(image, np.float32)
    plain = Loaded(content, "mixed", device)
    without = [item for item in items if not item.startswith("means")]
    expected = Loaded(content, plain.plan(*without), device)(x)
    loaded = Loaded(content, plain.plan(*items), device)
    assert np.array_equal(loaded(x), expected)
    steps = [s for s in loaded.delegate.explain().steps if s.pass_name == "round_weights"]
    assert [step.outcome for step in steps] == outcomes
    assert all("the plan has 1 means, its input 24 channels" in step.detail for step in steps)


@pytest.mark.parametrize("case", CASES)
def test_means_are_those_of_all_samples_and_places(case):
    op, image, weights, out, options = CASES[case]
    rng = np.random.default_rng(10)
    samples = [[rng.standard_normal(image, np.float32)] for _ in range(3)]
    found = means.observe(model(op, image, weights, out, **options), find_runtime(None), samples)
    assert dict(found.inputs) == {_WEIGHTS: frozenset({0})}
    (of_input,) = found.of([_WEIGHTS, 99])
    want = np.mean([x.reshape(-1, image[-1]) for (x,) in samples], axis=(0, 1))
    assert of_input.tensor == 0
    np.testing.assert_allclose(of_input.values, want, rtol=2.0**-8)


def test_model_without_products_has_no_means():
    m = ModelMaker()
    m.output(m.op("ABS", [m.input("x", (2, 3))], (2, 3)))
    assert (
        means.observe(m.build(), find_runtime(None), [[np.ones((2, 3), np.float32)]]) is means.NONE
    )


def test_half_io_rounds_inputs_and_outputs_of_a_plan(device):
    op, image, weights, out, options = CASES["filter"]
    content = model(op, image, weights, out, **options)
    x = np.random.default_rng(11).standard_normal(image, np.float32)
    floats = Loaded(content, "mixed", device)
    exact = floats(x)
    halves = Loaded(content, floats.plan(), device, half_io=True)
    got = halves(x)
    assert np.array_equal(got, got.astype(np.float16).astype(np.float32))
    assert not np.array_equal(got, exact)
    assert relative_l2(got, exact) < MODEL_L2["fp16"]
    stored = {t.id: t.storage for t in halves.delegate.explain().tensors}
    assert stored[0] == "float16"
    assert stored[_WEIGHTS] == "float32"
    assert np.array_equal(Loaded(content, "mixed", device, half_io=True)(x), exact)

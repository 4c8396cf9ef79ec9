"""The option ``reuse``: results are those of the values that are held, whatever was left out."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from bench import networks
from clgpu_delegate import Runner
from tests import quick
from tests.delegate.test_faults import (
    PRELUDE,
    library,  # noqa: F401  # a fixture
)
from tests.held import Held, frames
from tests.models.comparison import relative_l2
from tests.ops.harness import op_runtime
from tests.passes.test_stream_rows import MODELS, PLAIN, SAME, Rows, random_chain, start
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter

TOLERANCE = 0.1
NOISE = 0.02  # less than half of that


class Sequence:
    """A model that runs on one input after the other."""

    def __init__(self, model: bytes, device: str, **options: Any) -> None:
        options = {"warm_up": False, **options}
        self.delegate = clgpu_delegate.load(device=device, **options)
        self.interpreter = make_interpreter(op_runtime(), model, [self.delegate])

    def run(self, *inputs: Any) -> list[Any]:
        return run_interpreter(self.interpreter, list(inputs))

    @property
    def counts(self) -> dict[str, Any]:
        (entry,) = self.delegate.stats()["reuse"]
        return dict(entry)

    @property
    def steps(self) -> list[Any]:
        return [s for s in self.delegate.explain().steps if s.pass_name == "reuse_rows"]


def check_frames(
    m: Rows, device: str, *, band: int = 0, same: float = SAME, count: int = 8, **options: Any
) -> Sequence:
    """Compare frames with the same model, without reuse, on what is held."""
    model = m.build()
    plain = Sequence(model, device, **options)
    reusing = Sequence(model, device, reuse=TOLERANCE, row_band=band, **options)
    held = Held(TOLERANCE)
    for number, x in enumerate(frames(m.image, m.rng, noise=NOISE, count=count)):
        value = held.take(x)
        assert np.abs(value - x).max() <= np.float32(TOLERANCE)
        for index, (got, want) in enumerate(zip(reusing.run(x), plain.run(value))):
            error = relative_l2(got, want)
            assert error <= same, f"frame {number}, output {index} is off by {error:.1e}"
    counts = reusing.counts
    assert counts["inferences"] == count
    assert 0 < counts["computed"] <= 1
    return reusing


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_what_is_held(name, device):
    # Each tensor has its own memory, filled with NaN: what is read must have been written.
    check_frames(MODELS[name](), device, band=5, engines=PLAIN, share_memory=False)


@pytest.mark.parametrize("name", ["skips", "hourglass", "blocks", "separable"])
def test_tensors_between_share_memory(name, device):
    check_frames(MODELS[name](), device, band=3)


@pytest.mark.parametrize("name", ["skips", "rowwise", "transposed"])
def test_halves(name, device):
    check_frames(MODELS[name](), device, band=6, precision="fp16", engines=PLAIN, same=2e-3)


@hypothesis.settings(max_examples=3 if quick.is_on() else 12)
@hypothesis.given(seed=st.integers(0, 2**31), band=st.sampled_from([0, 1, 2, 5, 9]))
def test_random_chains(seed, band, device):
    m = random_chain(seed)
    options: dict[str, Any] = {"engines": PLAIN, "share_memory": seed % 2 == 0}
    check_frames(m, device, band=band, count=5, **options)


@pytest.mark.parametrize("name", ["mobilenet_v1", "mobilenet_v2", "unet", "espcn"])
def test_networks(name, device, rng):
    sizes = {"espcn": {"size": 48}, "unet": {"size": 64}}.get(name, {})
    model = networks.build(name, 1, **sizes)
    (image,) = networks.sample_inputs(model, seed=1)
    plain, reusing = Sequence(model, device), Sequence(model, device, reuse=TOLERANCE)
    held = Held(TOLERANCE)
    for number, noise in enumerate(frames(image.shape, rng, noise=NOISE, count=4)):
        x = image + noise * np.float32(number > 0)
        for got, want in zip(reusing.run(x), plain.run(held.take(x))):
            assert relative_l2(got, want) <= 1e-5
    (applied,) = reusing.steps
    assert applied.outcome == "applied"


def _three() -> Rows:
    m, x = start((1, 64, 16, 4))
    for _ in range(3):
        x = m.conv(x, 8, act="RELU")
    m.output(x)
    return m


def test_rows_that_do_not_change_are_left_out(device, rng):
    m = _three()
    x = rng.standard_normal(m.image).astype(np.float32)
    sequence = Sequence(m.build(), device, reuse=TOLERANCE, row_band=8)
    total = 0.0

    def computed() -> float:
        nonlocal total
        counts = sequence.counts
        before, total = total, counts["computed"] * counts["inferences"]
        return total - before

    (first,) = sequence.run(x)
    assert computed() == pytest.approx(1)
    (second,) = sequence.run(x + np.float32(NOISE))
    assert computed() == pytest.approx(0)
    np.testing.assert_array_equal(second, first)
    x[:, 20] += 1
    (third,) = sequence.run(x)
    # Each convolution has one band of eight rows, of eight, within which the rows around lie.
    assert computed() == pytest.approx(1 / 8)
    changed = np.flatnonzero((third != first).any(axis=(0, 2, 3)))
    assert changed.min() >= 16
    assert changed.max() < 24


def test_a_gradual_change_adds_up_to_the_tolerance_only(device):
    model = models.chain((1, 8, 4, 2), ("NEG",))
    sequence = Sequence(model, device, reuse=0.1)
    for step in range(20):
        x = np.full((1, 8, 4, 2), 0.03 * step, np.float32)
        (got,) = sequence.run(x)
        assert np.abs(got + x).max() <= np.float32(0.1)


def test_other_shapes_begin_anew(device, rng):
    model = models.image((1, 24, 6, 3))
    plain, reusing = Sequence(model, device), Sequence(model, device, reuse=0.5)
    held = Held(0.5)
    for height in (24, 24, 36, 36, 24):
        x = rng.uniform(-0.2, 0.2, (1, height, 6, 3)).astype(np.float32)
        for sequence in (plain, reusing):
            (detail,) = sequence.interpreter.get_input_details()
            if tuple(detail["shape"]) != x.shape:
                sequence.interpreter.resize_tensor_input(detail["index"], x.shape)
        (got,), (want,) = reusing.run(x), plain.run(held.take(x))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_outputs_that_the_application_writes_over_are_right_again(device, rng):
    m = _three()
    x = rng.standard_normal(m.image).astype(np.float32)
    with Runner(m.build(), device=device, reuse=TOLERANCE) as runner:
        want = np.array(runner.run(x))
        for out in (np.zeros_like(want), runner.output_arrays()):
            out[...] = 7
            np.testing.assert_array_equal(runner.run(x, out=out), want)
            out[...] = 8
            np.testing.assert_array_equal(runner.run(x), want)


@pytest.mark.parametrize("zero_copy", ["auto", "off"])
def test_inferences_in_flight_are_in_the_order_of_the_inputs(zero_copy, device, rng):
    m = _three()
    model, inputs = m.build(), list(frames(m.image, rng, noise=NOISE, count=10))
    plain, held = Sequence(model, device), Held(TOLERANCE)
    want = [plain.run(held.take(x))[0] for x in inputs]
    with Runner(model, device=device, reuse=TOLERANCE, zero_copy=zero_copy) as runner:
        # A stream begins with an inference of zeros, which is within the tolerance of no input.
        for got, expected in zip(runner.run_many(inputs), want):
            assert relative_l2(got, expected) <= SAME


def test_launches_may_be_stages_of_one_kernel(device):
    sequence = check_frames(_three(), device, band=16, chain="on", warm_up=True)
    (chains,) = sequence.delegate.stats()["chains"]
    if not chains["kernels"]:
        pytest.skip(chains["reason"])
    assert chains["launches"] > chains["kernels"]


def test_times_are_those_of_changed_inputs(device, rng):
    m = _three()
    x = rng.standard_normal(m.image).astype(np.float32)
    sequence = Sequence(m.build(), device, reuse=TOLERANCE)
    (want,) = sequence.run(x)
    inferences = sequence.counts["inferences"]
    assert sequence.delegate.device_time(3) > 0
    assert sequence.delegate.device_time(2, 1) > 0
    assert len(sequence.delegate.launch_times(2)) > 3
    # They compute something else; after them nothing is taken as known.
    np.testing.assert_array_equal(sequence.run(x)[0], want)
    assert sequence.counts["inferences"] <= inferences


def test_verified_results_are_right(device, rng):
    m = _three()
    model, held = m.build(), Held(TOLERANCE)
    sequence = Sequence(model, device, reuse=TOLERANCE, verify=2)
    plain = Sequence(model, device)
    for number, x in enumerate(frames(m.image, rng, noise=NOISE, count=5)):
        if number % 2 == 0:
            held.value = None
        (got,), (want,) = sequence.run(x), plain.run(held.take(x))
        assert relative_l2(got, want) <= 1e-5
    verification = sequence.delegate.explain().verification
    assert verification is not None
    assert [check.outcome for check in verification.partitions] == ["right"]
    assert verification.checked == 3


def test_nodes_that_depend_on_states_or_the_cpu_are_always_computed(device, rng):
    m = Rows((1, 24, 8, 4))
    x = m.input("x", m.image)
    y = m.conv(x, 4)
    z = m.each("FLOOR", y)
    m.output(m.conv(z, 4), m.conv(y, 2))
    x = rng.standard_normal(m.image).astype(np.float32)
    sequence = Sequence(m.build(), device, reuse=TOLERANCE, exclude="FLOOR")
    for _ in range(2):
        sequence.run(x)
    declined = [s for s in sequence.steps if s.outcome == "declined"]
    assert [s.detail for s in declined] == ["no node depends on inputs of the application alone"]
    assert [entry["partition"] for entry in sequence.delegate.stats()["reuse"]] == [0]


def test_memory_that_does_not_suffice_for_it(device, rng):
    m = _three()
    model = m.build()
    x = rng.standard_normal(m.image).astype(np.float32)
    plain = Sequence(model, device)
    (want,) = plain.run(x)
    peak = plain.delegate.explain().partitions[0].peak_bytes
    sequence = Sequence(model, device, reuse=TOLERANCE, memory_budget=peak)
    np.testing.assert_allclose(sequence.run(x)[0], want, rtol=1e-5, atol=1e-5)
    (declined,) = sequence.steps
    assert declined.outcome == "declined"
    assert "of device memory; the budget is" in declined.detail
    assert sequence.delegate.stats()["reuse"] == []


def test_without_the_option_nothing_is_kept(device, rng):
    m = _three()
    sequence = Sequence(m.build(), device)
    sequence.run(rng.standard_normal(m.image).astype(np.float32))
    assert sequence.delegate.stats()["reuse"] == []
    assert sequence.steps == []


def test_an_inference_that_fails_leaves_nothing_that_seems_unchanged(library):  # noqa: F811
    script = """
from tests.passes.test_stream_rows import Rows
m = Rows((1, 24, 8, 4))
t = m.input("x", m.image)
for _ in range(3):
    t = m.conv(t, 4)
m.output(t)
model = m.build()
random = np.random.default_rng(3)
first, second = (models.normal(random, 1, 24, 8, 4) for _ in range(2))
wants = {id(x): run_reference(model, [x], runtime)[0] for x in (first, second)}
delegate, interpreter = load(reuse=0.001, row_band=6)
launches = delegate.explain().partitions[0].launches
failed = 0
for after in range(launches + 2):
    run_interpreter(interpreter, [first])
    fault("clEnqueueNDRangeKernel", OUT_OF_RESOURCES, after=after, count=1)
    try:
        run_interpreter(interpreter, [second])
    except RuntimeError:
        failed += 1
    layer.clear()
    for x in (second, second, first):
        np.testing.assert_allclose(
            run_interpreter(interpreter, [x])[0], wants[id(x)], rtol=1e-4, atol=1e-4)
assert failed == launches, (failed, launches)
"""
    assert_succeeds(run_python(PRELUDE + script, op_runtime(), **library, CLGPU_PROGRAMS=""))

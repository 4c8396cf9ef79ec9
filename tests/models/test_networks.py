"""The networks that the project builds, through the delegate and through the stock runtime."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from bench import networks
from tests.models.comparison import LIMITS, assert_close, run_delegated
from tests.runtimes import run_reference

# PyNET's full width would take minutes on a CPU; a quarter has the same layers.
SIZES = {"pynet": {"width": 0.25}}
CLASSIFIERS = {
    "alexnet",
    "inception_v1",
    "inception_v3",
    "lenet5",
    "mobilenet_v1",
    "mobilenet_v2",
    "resnet50",
}


@functools.lru_cache(maxsize=1)
def _case(name: str, float16_weights: bool = False):
    model = networks.build(name, float16_weights=float16_weights, **SIZES.get(name, {}))
    inputs = networks.sample_inputs(model, seed=1)
    return model, inputs, run_reference(model, inputs, resolver="builtin", threads=2)


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
def test_network_is_claimed_whole_and_right(name, device, precision):
    model, inputs, want = _case(name)
    got, report = run_delegated("auto", model, inputs, device=device, precision=precision)
    refused = [f"{n['op']}: {n['reason']}" for n in report["nodes"] if not n["claimed"]]
    assert not refused
    assert len(report["partitions"]) == 1
    assert_close(got, want, LIMITS[precision])
    if name in CLASSIFIERS:
        assert np.array_equal(got[0].argmax(-1), want[0].argmax(-1))


@pytest.mark.parametrize("name", ["mobilenet_v2", "unet"])
def test_float16_weights_stay_half_on_the_device(name, device):
    model, inputs, want = _case(name, float16_weights=True)
    engines = {"conv2d": "direct|quads|auto"}  # Winograd's transformed filters are float
    got, report = run_delegated("auto", model, inputs, device=device, engines=engines)
    assert all(node["claimed"] for node in report["nodes"])
    assert_close(got, want, LIMITS["fp32"])
    _, full = run_delegated("auto", _case(name)[0], inputs, device=device, engines=engines)
    # Half, but for the padding of channel blocks.
    assert report["weights_bytes"] < 0.6 * full["weights_bytes"]


@pytest.mark.parametrize("name", ["lenet5", "mobilenet_v1"])
def test_network_runs_in_every_runtime(name, runtime, device):
    model, inputs, want = _case(name)
    got, _ = run_delegated(runtime, model, inputs, device=device)
    assert_close(got, want, LIMITS["fp32"])


def test_arena_shares_memory_between_tensors():
    model, inputs, _ = _case("mobilenet_v1")
    # Engines without buffers of their own: what remains are the tensors.
    _, report = run_delegated("auto", model, inputs, engines={"conv2d": "direct|auto"})
    (partition,) = report["partitions"]
    assert partition["arena_bytes"] < 0.25 * partition["naive_bytes"]

"""Every benchmark network loads in the stock runtime and computes useful values."""

from __future__ import annotations

import numpy as np
import pytest
import tflite

from bench.networks import NETWORKS, build, sample_inputs
from bench.networks.samples import inputs_of
from tests.runtimes import make_interpreter, run_interpreter, run_reference

SIZES = {"pynet": {"width": 0.25}}  # the published width takes seconds
LARGEST_FLOAT16 = 65504.0


@pytest.mark.parametrize("name", NETWORKS)
def test_network_computes_in_a_range_that_float16_holds(name):
    """Activations neither vanish nor nearly overflow, and another image gives another result."""
    model = build(name, **SIZES.get(name, {}))
    assert inputs_of(model) == list(NETWORKS[name].inputs)
    interpreter = make_interpreter(
        "auto", model, resolver="no_delegate", threads=2, preserve_all_tensors=True
    )
    (other,) = run_interpreter(interpreter, sample_inputs(model, seed=1))
    (output,) = run_interpreter(interpreter, sample_inputs(model, seed=0))
    assert np.abs(output - other).mean() > 0.05 * np.abs(output).mean()
    graph = tflite.Model.GetRootAsModel(model, 0).Subgraphs(0)
    for i in range(graph.OperatorsLength()):
        values = interpreter.get_tensor(graph.Operators(i).Outputs(0))
        assert np.isfinite(values).all()
        assert np.abs(values).max() < 0.01 * LARGEST_FLOAT16
        assert values.std() > 1e-3


@pytest.mark.parametrize("name", ["lenet5", "mobilenet_v2", "transformer", "unet"])
def test_float16_weights_change_the_result_but_little(name, runtime):
    model = build(name)
    half = build(name, float16_weights=True)
    assert len(half) < 0.6 * len(model)
    inputs = sample_inputs(name)
    (expected,) = run_reference(model, inputs, runtime, "builtin")
    (output,) = run_reference(half, inputs, runtime, "builtin")
    assert 0 < np.abs(output - expected).max() < 0.01


@pytest.mark.parametrize("name", ["lenet5", "resnet50", "pynet", "transformer"])
def test_batch_is_computed_as_its_images_are(name):
    sizes = SIZES.get(name, {})
    batch = build(name, batch=2, **sizes)
    inputs = sample_inputs(batch)
    (outputs,) = run_reference(batch, inputs, resolver="builtin")
    single = build(name, **sizes)
    for i, output in enumerate(outputs):
        (expected,) = run_reference(single, [x[i : i + 1] for x in inputs], resolver="builtin")
        np.testing.assert_allclose(output, expected[0], atol=1e-3)


def test_weights_depend_on_nothing_but_the_seed():
    assert build("lenet5", seed=3) == build("lenet5", seed=3)
    assert build("lenet5", seed=3) != build("lenet5", seed=4)


def test_unknown_network_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="no network 'vgg'; there are alexnet, espcn"):
        build("vgg")


@pytest.mark.parametrize(("flavour", "images"), [("pt", 1), ("tf", 6)])
def test_pynet_takes_any_height_and_width(flavour, images):
    model = build("pynet", size=(32, 48), width=0.25, flavour=flavour)
    outputs = run_reference(model, sample_inputs(model), resolver="builtin")
    assert [x.shape for x in outputs] == [(1, 64 >> i, 96 >> i, 3) for i in range(images)]
    assert all(0.05 < x.std() < 1 for x in outputs)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"size": (32, 40)}, "multiples of 16"),
        ({"size": 16}, "from 32 on"),
        ({"flavour": "jax"}, "'jax' is no flavour"),
    ],
)
def test_pynet_of_no_such_size_or_flavour_is_an_error(sizes, words):
    with pytest.raises(ValueError, match=words):
        build("pynet", width=0.25, **sizes)

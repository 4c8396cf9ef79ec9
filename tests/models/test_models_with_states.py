"""Published models that keep a state: each result of inferences in a row equals the runtime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from tests.ops.states import run
from tests.runtimes import make_interpreter
from tests.tolerance import MODEL_L2, relative_l2

# Older kernels of other operations differ by a step.
RUNTIME = "ai_edge_litert"
ROOT = Path(__file__).resolve().parents[2].parent / "shared" / "models" / "more"
# Inferences, and operations that may stay on the CPU.
MODELS = {
    "coral/keras_lstm_mnist_ptq": (10, set()),
    "tflm/dtln_noise_suppression": (100, set()),
    "tflm/keyword_scrambled": (100, {"SOFTMAX", "QUANTIZE"}),
    "tflm/micro_speech_lstm": (10, set()),
    "tflm/trained_lstm": (10, set()),
    "tflm/trained_lstm_int8": (10, set()),
}


def random_input(detail, rng):
    if detail["dtype"] == np.float32:
        return rng.standard_normal(detail["shape"]).astype(np.float32)
    info = np.iinfo(detail["dtype"])
    return rng.integers(info.min, info.max + 1, detail["shape"]).astype(detail["dtype"])


@pytest.mark.parametrize("name", MODELS)
def test_equals_the_runtime(name, device, rng):
    pytest.importorskip(RUNTIME)
    path = ROOT / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    count, left = MODELS[name]
    content = path.read_bytes()
    plain = make_interpreter(RUNTIME, content, resolver="ref")
    inputs = plain.get_input_details()
    inferences = [[random_input(detail, rng) for detail in inputs] for _ in range(count)]
    wanted = run(plain, inferences)
    delegate = clgpu_delegate.load(device=device, warm_up=False)
    got = run(make_interpreter(RUNTIME, content, [delegate]), inferences)
    assert {node.op for node in delegate.explain().nodes if not node.claimed} <= left
    for results, arrays in zip(got, wanted):
        for result, want in zip(results, arrays):
            if want.dtype == np.float32:
                assert relative_l2(result, want) < MODEL_L2["fp32"]
            else:
                np.testing.assert_array_equal(result, want)

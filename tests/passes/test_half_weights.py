"""Large weights may be half on the device while everything else is float."""

from __future__ import annotations

import numpy as np

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter, run_interpreter, run_reference


def _layers(rng: np.random.Generator, scale: float = 1.0) -> bytes:
    """A convolution, a depthwise one and a fully connected layer, of weights of 0.1 `scale`."""

    def weights(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.1 * scale).astype(np.float32)

    m = ModelMaker()
    x = m.input("x", (1, 9, 8, 16))
    x = m.op(
        "CONV_2D", [x, m.constant(weights(128, 3, 3, 16)), m.constant(weights(128))],
        (1, 9, 8, 128), padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU",
    )  # fmt: skip
    x = m.op(
        "DEPTHWISE_CONV_2D", [x, m.constant(weights(1, 3, 3, 128)), m.constant(weights(128))],
        (1, 9, 8, 128), padding="SAME", stride_w=1, stride_h=1, depth_multiplier=1,
    )  # fmt: skip
    x = m.op("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (1, 128))
    m.output(m.op("FULLY_CONNECTED", [x, m.constant(weights(40, 128))], (1, 40)))
    return m.build()


def _run(runtime, model, x, **options):
    delegate = clgpu_delegate.load(**options)
    interpreter = make_interpreter(runtime, model, [delegate])
    (y,) = run_interpreter(interpreter, [x])
    return y, delegate.explain().to_dict()["weights_bytes"]


def test_weights_take_half_the_memory_and_are_rounded_once(device, runtime, rng):
    model = _layers(rng)
    x = rng.standard_normal((1, 9, 8, 16)).astype(np.float32)
    (want,) = run_reference(model, [x], runtime)
    exact, full = _run(runtime, model, x, device=device)
    for precision in ("fp32", "tf32"):
        y, bytes_taken = _run(
            runtime, model, x, device=device, precision=precision, half_weights=True
        )
        assert bytes_taken < 0.55 * full
        error = np.linalg.norm(y - want) / np.linalg.norm(want)
        assert error < 1e-3
    assert np.linalg.norm(exact - want) / np.linalg.norm(want) < 1e-5
    assert error > 1e-6, "they are rounded"


def test_weights_beyond_half_stay_float(device, runtime, rng):
    model = _layers(rng, 1e6)
    x = rng.standard_normal((1, 9, 8, 16)).astype(np.float32)
    (want,) = run_reference(model, [x], runtime)
    y, bytes_taken = _run(runtime, model, x, device=device, half_weights=True)
    _, full = _run(runtime, model, x, device=device)
    assert bytes_taken == full
    assert np.linalg.norm(y - want) / np.linalg.norm(want) < 1e-5


def test_every_kernel_of_the_layers_reads_half_weights(device, runtime, rng):
    model = _layers(rng)
    x = rng.standard_normal((1, 9, 8, 16)).astype(np.float32)
    (want,) = run_reference(model, [x], runtime)
    delegate = clgpu_delegate.load(device=device, half_weights=True)
    interpreter = make_interpreter(runtime, model, [delegate])
    families = {
        "CONV_2D": "conv2d",
        "DEPTHWISE_CONV_2D": "depthwise_conv2d",
        "FULLY_CONNECTED": "fully_connected",
    }
    pairs = [
        (families[node.op], name)
        for node in delegate.explain().nodes
        if node.op in families
        for name in node.candidates
    ]
    del interpreter
    assert len(pairs) > 3
    for family, name in pairs:
        y, _ = _run(
            runtime, model, x, device=device, half_weights=True, engines={family: f"{name}|auto"}
        )
        error = np.linalg.norm(y - want) / np.linalg.norm(want)
        assert error < 2e-3, f"{family}={name}: {error}"

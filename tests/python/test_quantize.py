"""quantize() writes integer models that both runtimes run, close to the float model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import clgpu_delegate
from clgpu_delegate import cli
from clgpu_delegate.cli import exits
from tests import runtimes
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.python.models import normal

CONV = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
POOL = {**CONV, "filter_width": 2, "filter_height": 2}


def small_network() -> bytes:
    """Every kind of operation that a network for images is made of, once."""
    rng = np.random.default_rng(11)
    m = ModelMaker()
    x = m.input("image", (1, 9, 8, 3))
    padding = m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    y = m.op("PAD", [x, padding], (1, 11, 10, 3))
    filters = m.constant(0.3 * normal(rng, 8, 3, 3, 3))
    y = m.op(
        "CONV_2D", [y, filters, m.constant(normal(rng, 8))], (1, 9, 8, 8),
        padding="VALID", stride_w=1, stride_h=1, fused_activation_function="RELU6",
    )  # fmt: skip
    deep = m.constant(0.4 * normal(rng, 1, 3, 3, 8))
    z = m.op(
        "DEPTHWISE_CONV_2D", [y, deep, m.constant(normal(rng, 8))], (1, 9, 8, 8),
        depth_multiplier=1, **CONV,
    )  # fmt: skip
    z = m.op("ADD", [z, y], (1, 9, 8, 8))
    z = m.op("RELU", [z], (1, 9, 8, 8))
    a = m.op("MAX_POOL_2D", [z], (1, 9, 8, 8), **POOL)
    b = m.op("AVERAGE_POOL_2D", [y], (1, 9, 8, 8), **POOL)
    y = m.op("CONCATENATION", [a, b], (1, 9, 8, 16), axis=3)
    y = m.op("MEAN", [y, m.constant(np.array([1, 2], np.int32))], (1, 16))
    y = m.op("RESHAPE", [y, m.constant(np.array([1, 16], np.int32))], (1, 16), new_shape=[1, 16])
    dense = m.constant(0.3 * normal(rng, 5, 16))
    y = m.op("FULLY_CONNECTED", [y, dense, m.constant(normal(rng, 5))], (1, 5))
    m.output(m.op("SOFTMAX", [y], (1, 5), beta=1.0))
    return m.build()


def samples(count: int = 6, shape: tuple[int, ...] = (1, 9, 8, 3)) -> list[np.ndarray]:
    rng = np.random.default_rng(12)
    return [normal(rng, *shape) for _ in range(count)]


@pytest.mark.parametrize("per_channel", [True, False])
def test_int8_network_is_close_to_the_float_network(per_channel, tmp_path, runtime):
    model, out = small_network(), tmp_path / "int8.tflite"
    options = {"per_channel": per_channel, "runtime": runtime}
    report = clgpu_delegate.quantize(model, samples(), out, **options)
    assert (report.quantized, len(report.layers)) == (12, 12)
    assert out.stat().st_size == report.bytes
    for resolver in ("builtin", "ref"):
        for x in samples(3):
            (expected,) = runtimes.run_reference(model, [x], runtime)
            (got,) = runtimes.run_reference(out.read_bytes(), [x], runtime, resolver)
            assert np.abs(got - expected).max() < 0.05


# By scheme: least SQNR of the output in dB, and the size of the new file at most.
SCHEMES = {"int8": (20, 0.95), "int16x8": (30, 1.0), "fp16": (50, 0.9), "dynamic": (25, 0.9)}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_trade_exactness_for_size(scheme, tmp_path, runtime):
    least, size = SCHEMES[scheme]
    model, out = wide_network(), tmp_path / "out.tflite"
    report = clgpu_delegate.quantize(model, samples(shape=(1, 64)), out, scheme=scheme)
    assert report.outputs[0].sqnr_db > least
    assert report.bytes == out.stat().st_size < size * report.float_bytes
    (x,) = samples(1, (1, 64))
    (expected,) = runtimes.run_reference(model, [x], runtime)
    for resolver in ("builtin", "ref"):
        (got,) = runtimes.run_reference(out.read_bytes(), [x], runtime, resolver)
        assert np.abs(got - expected).max() < 10 ** (-least / 20) * np.abs(expected).max() * 3


def wide_network() -> bytes:
    """Weights that outweigh the rest of the file; products of each kind with hybrid kernels."""
    rng = np.random.default_rng(14)
    m = ModelMaker()
    x = m.input("x", (1, 64))
    x = m.op("FULLY_CONNECTED", [x, m.constant(normal(rng, 64, 64) / 8), None], (1, 64))
    x = m.op("BATCH_MATMUL", [x, m.constant(normal(rng, 64, 64) / 8)], (1, 64))
    x = m.op("RESHAPE", [x], (1, 4, 4, 4), new_shape=[1, 4, 4, 4])
    filters, bias = m.constant(normal(rng, 32, 3, 3, 4) / 6), m.constant(normal(rng, 32))
    x = m.op("CONV_2D", [x, filters, bias], (1, 4, 4, 32), **CONV)
    deep = m.constant(normal(rng, 1, 3, 3, 32) / 3)
    m.output(m.op("DEPTHWISE_CONV_2D", [x, deep, bias], (1, 4, 4, 32), depth_multiplier=1, **CONV))
    return m.build()


@pytest.mark.parametrize("scheme", ["fp16", "dynamic"])
@pytest.mark.parametrize("per_channel", [True, False])
def test_schemes_without_ranges_need_no_samples(scheme, per_channel, tmp_path):
    out = tmp_path / "out.tflite"
    report = clgpu_delegate.quantize(
        wide_network(), None, out, scheme=scheme, per_channel=per_channel, skip=["CONV_2D"]
    )
    assert (report.samples, report.quantized) == (0, 3)
    assert all(layer.sqnr_db is None for layer in report.layers)
    for runtime in runtimes.available_runtimes():
        runtimes.run_reference(out.read_bytes(), samples(1, (1, 64)), runtime)


@pytest.mark.parametrize("scheme", ["int8", "int16x8"])
def test_pseudo_quantised_model_behaves_like_the_integer_model(scheme, tmp_path, runtime):
    model, out = small_network(), tmp_path / "out.tflite"
    integer = clgpu_delegate.quantize(model, samples(), out, scheme=scheme)
    (expected,) = runtimes.run_reference(out.read_bytes(), samples(1), runtime)
    pseudo = clgpu_delegate.pseudo_quantize(model, samples(), out, scheme=scheme)
    (got,) = runtimes.run_reference(out.read_bytes(), samples(1), runtime)
    assert pseudo.mode == "pseudo"
    steps = (got - expected) / integer.outputs[0].scale
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3, err_msg="on the grid")
    assert np.abs(steps).max() <= (2 if scheme == "int8" else 40)
    assert abs(pseudo.outputs[0].sqnr_db - integer.outputs[0].sqnr_db) < 3


def test_report_lists_the_worst_layers_first(tmp_path):
    report = clgpu_delegate.quantize(small_network(), samples(), tmp_path / "o.tflite")
    decibels = [layer.sqnr_db for layer in report.layers]
    assert decibels == sorted(decibels)
    assert {layer.node for layer in report.layers} == set(range(12))
    layers = {layer.op: layer for layer in report.layers}
    assert (layers["CONV_2D"].low, layers["CONV_2D"].zero_point) == (0, -128), "behind RELU6"
    dense = layers["FULLY_CONNECTED"]
    assert dense.scale == pytest.approx((max(dense.high, 0) - min(dense.low, 0)) / 255)
    (last,) = report.outputs
    assert (last.op, last.scale, last.zero_point) == ("SOFTMAX", 1 / 256, -128)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["layers"][0]["op"] == report.layers[0].op
    assert (data["quantized"], data["scheme"]) == (12, "int8")
    assert "12 of 12 layers quantised (int8), 6 samples" in " ".join(str(report).split())


def test_samples_come_in_many_forms_and_are_read_once(tmp_path):
    model, out = small_network(), tmp_path / "out.tflite"
    results = set()
    np.save(tmp_path / "s.npy", np.concatenate(samples()))
    np.savez(tmp_path / "s.npz", image=np.stack(samples()))
    for calibration in [
        iter(samples()), np.stack(samples()), [(x,) for x in samples()],
        [{"image": x[0]} for x in samples()], {"image": np.stack(samples()).astype(np.float64)},
        tmp_path / "s.npy", str(tmp_path / "s.npz"),
    ]:  # fmt: skip
        assert clgpu_delegate.quantize(model, calibration, out).samples == 6
        results.add(out.read_bytes())
    assert len(results) == 1


def test_progress_is_reported(tmp_path, capsys):
    calls = []
    clgpu_delegate.quantize(
        small_network(), samples(), tmp_path / "o.tflite", progress=lambda *call: calls.append(call)
    )
    assert calls[:2] == [("observing ranges", 1, 6), ("observing ranges", 2, 6)]
    assert calls[-1] == ("comparing layers", 6, 6)
    clgpu_delegate.quantize(small_network(), iter(samples()), tmp_path / "o.tflite")
    assert capsys.readouterr() == ("", ""), "quiet where there is no terminal"


def test_command_prints_the_report(tmp_path, capsys):
    model, data, out = (str(tmp_path / name) for name in ("m.tflite", "d.npy", "o.tflite"))
    (tmp_path / "m.tflite").write_bytes(small_network())
    np.save(data, np.stack(samples()))
    arguments = ["quantize", model, out, "--calibration", data, "--observer", "mse"]
    text = CliRunner().invoke(cli.app, [*arguments, "--skip", "1", "--skip", "SOFTMAX"])
    assert "10 of 12 layers quantised (int8), 6 samples" in " ".join(text.stdout.split())
    text = CliRunner().invoke(cli.app, [*arguments, "--json", "--pseudo", "--per-tensor"])
    report = json.loads(text.stdout)
    assert (report["mode"], report["per_channel"], report["observer"]) == ("pseudo", False, "mse")
    assert exits.answer(cli.app, [*arguments, "--scheme", "int3"]) == exits.USAGE
    error = "clgpu: scheme is 'int3'; allowed: int8, int16x8, fp16, dynamic\n"
    assert capsys.readouterr().err == error


def test_delegate_equals_the_reference_kernels(tmp_path, device):
    out = tmp_path / "out.tflite"
    clgpu_delegate.quantize(small_network(), samples(), out)
    content = out.read_bytes()
    delegate = clgpu_delegate.load(device=device)
    interpreter = runtimes.make_interpreter(op_runtime(), content, [delegate], "ref")
    (got,) = runtimes.run_interpreter(interpreter, samples(1))
    (expected,) = runtimes.run_reference(content, samples(1), op_runtime(), "ref")
    np.testing.assert_array_equal(got, expected)

"""Benchmarks: variants compared with the stock CPU, and peak rates of devices."""

from __future__ import annotations

import json

import pytest

import clgpu_delegate
from clgpu_delegate import ClgpuError, OptionError
from tests.litert.compiled import needs_litert
from tests.python import models
from tests.python.test_cli import clgpu


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "image.tflite"
    path.write_bytes(models.image((1, 96, 96, 3)))
    return str(path)


def test_variants_stand_beside_the_stock_cpu(model):
    options = ["--precision", "fp32,fp16", "--runs", "3"]
    data = json.loads(clgpu("bench", model, "--json", *options))
    stock, fp32, fp16 = data["measurements"]
    assert [m["variant"] for m in (stock, fp32, fp16)] == ["stock CPU", "fp32", "fp16"]
    assert stock["p90_ms"] >= stock["median_ms"] >= stock["p10_ms"] >= stock["best_ms"] > 0
    assert data["rounds"] == len(stock["rounds_ms"]) == 3
    assert stock["device_bytes"] is None
    assert stock["speedup"] is None
    for m in (fp32, fp16):
        assert m["problem"] is None
        ratios = [s / own for s, own in zip(stock["rounds_ms"], m["rounds_ms"])]
        assert m["speedups"] == pytest.approx(ratios)
        assert m["speedup"] == pytest.approx(sorted(ratios)[1])
        spreads = [max(each["rounds_ms"]) / min(each["rounds_ms"]) for each in (stock, m)]
        assert m["noisy"] == (max(spreads) > 1.25)
        assert m["first_ms"] >= m["best_ms"]
        assert (m["claimed"], m["total"], m["partitions"]) == (3, 3, 1)
    assert fp32["device_bytes"] > fp16["device_bytes"] > 96**2 * 4 * 2
    assert fp32["relative_l2_error"] < 1e-6 < fp16["relative_l2_error"] < 1e-2


def test_memory_is_that_of_the_measured_process(model):
    ballast = b"x" * 400_000_000  # some numbers count the memory of the parent, too
    found = clgpu_delegate.benchmark(model, precisions=["fp32"], runs=1)
    del ballast
    assert all(m.host_bytes > 0 for m in found.measurements)


def test_quantised_model_is_compared_with_the_reference_kernels(tmp_path, model):
    path = tmp_path / "int8.tflite"
    path.write_bytes(models.quantized())
    result = clgpu_delegate.benchmark([str(path), model], precisions=["fp32"], runs=1)
    quantised, floats = result.measurements[:2], result.measurements[2:]
    assert [m.reference_max_abs_error for m in quantised] == [0, 0]
    assert [m.reference_relative_l2_error for m in floats] == [None, None]
    assert "ref: to the reference kernels" in str(result)
    alone = clgpu_delegate.benchmark(model, precisions=["fp32"], runs=1)
    assert "ref: to the reference kernels" not in str(alone)


@needs_litert
def test_compiled_model_stands_beside_litert_s_own_gpu(model):
    data = json.loads(clgpu("bench", model, "--json", "--api", "compiled", "--runs", "3"))
    stock, own, fp32, fp16 = data["measurements"]
    assert data["api"] == "compiled"
    assert [m["variant"] for m in (stock, own, fp32, fp16)] == [
        "stock CPU", "LiteRT's GPU", "fp32", "fp16",
    ]  # fmt: skip
    assert own["problem"] or own["median_ms"] > 0
    for m in (fp32, fp16):
        assert m["speedup"] > 0
        assert (m["claimed"], m["total"], m["undone"]) == (3, 3, False)
    assert fp32["relative_l2_error"] < 1e-6 < fp16["relative_l2_error"] < 1e-2


def test_variant_that_fails_is_a_row_and_all_that_fail_are_an_error(model):
    found = clgpu_delegate.benchmark(model, precisions=["fp32"], runs=1, engines={"conv2d": "none"})
    stock, failed = found.measurements
    assert stock.median_ms is not None
    assert failed.median_ms is None
    assert "engine 'none' cannot compute CONV_2D" in failed.problem
    assert failed.problem in " ".join(str(found).split())


def test_what_a_placement_came_to_is_told(tmp_path):
    path = tmp_path / "chain.tflite"
    path.write_bytes(models.chain())
    found = clgpu_delegate.benchmark(path, precisions=["fp32"], placements=["auto"], runs=1)
    assert found.measurements[1].choice == "cpu"
    assert found.measurements[1].claimed == 0
    assert "fp32, auto: cpu" in str(found)


def test_process_that_crashes_is_an_error(model, monkeypatch):
    crash = "import os, sys; print('bad driver', file=sys.stderr, flush=True); os.abort()"
    monkeypatch.setattr("clgpu_delegate.measure.job._MAIN", crash)
    with pytest.raises(ClgpuError, match="the process ended with signal 6: bad driver"):
        clgpu_delegate.benchmark(model, precisions=[])


def test_options_that_do_not_fit(model):
    for options, part in [
        ({"runs": 0}, "runs is 0; allowed: 1 and more"),
        ({"rounds": 0}, "rounds is 0; allowed: 1 and more"),
        ({"threads": 0}, "threads is 0; allowed"),
        ({"precision": "fp16"}, "'precision' does not fit here; precisions has its values"),
        ({"placements": ["some"]}, "option 'placement' is 'some'; allowed"),
    ]:
        with pytest.raises(OptionError, match=part):
            clgpu_delegate.benchmark(model, **options)


def test_ceilings_of_a_device(device):
    (ceiling,) = clgpu_delegate.ceilings(device, seconds=0.05).devices
    assert str(ceiling.device.index) == device
    assert ceiling.problem is None
    assert min(ceiling.fma_flops, ceiling.copy_bytes, ceiling.upload_bytes) > 1e6
    assert "GFLOP/s" in str(clgpu_delegate.Ceilings((ceiling,)))

"""``python -m bench half_sums``: a small network, and a device without half arithmetic."""

from __future__ import annotations

import csv

import pytest
from typer.testing import CliRunner

import clgpu_delegate
from bench.__main__ import app


def test_error_of_a_small_network(tmp_path):
    path = tmp_path / "sums.csv"
    results = {}
    for device in clgpu_delegate.devices():
        asked = ["half_sums", "lenet5", "--csv", str(path), "--device", str(device.index)]
        result = CliRunner().invoke(app, asked)
        results[device.abilities().half_arithmetic] = result
        if device.abilities().half_arithmetic:
            break
    if False in results:
        assert results[False].exit_code == 2
        assert "cl_khr_fp16" in results[False].output
    if True not in results:
        pytest.skip("no device has half arithmetic")
    assert results[True].exit_code == 0, results[True].output
    with path.open() as file:
        (row,) = csv.DictReader(file)
    assert 0 < float(row["fp16_error"]) < float(row["half_error"]) < 5e-3
    assert int(row["nodes"]) > 2
    assert 0.9 < float(row["products"]) <= 1


def test_mistakes():
    result = CliRunner().invoke(app, ["half_sums", "abacus"])
    assert result.exit_code == 2

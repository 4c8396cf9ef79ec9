"""``python -m bench frames``: one small frame."""

from __future__ import annotations

import csv

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from tests.litert import host
from tests.litert.compiled import needs_litert

pytestmark = [
    needs_litert,
    pytest.mark.skipif(host.litert() is None, reason="this LiteRT has no library of its own"),
]


def test_all_kinds_of_buffers_are_measured(device, tmp_path):
    path = tmp_path / "frames.csv"
    size = ["--height", "36", "--width", "64", "--precision", "fp32", "--rounds", "2"]
    result = CliRunner().invoke(app, ["frames", *size, "--csv", str(path), "--device", device])
    assert result.exit_code == 0, result.output
    with path.open() as file:
        (row,) = csv.DictReader(file)
    times = ("interpreter_ms", "host_ms", "opencl_ms", "on_device_ms")
    assert min(float(row[name]) for name in times) > 0
    assert float(row["error"]) == 0

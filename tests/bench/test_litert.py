"""``python -m bench litert``: one small case."""

from __future__ import annotations

import csv

from typer.testing import CliRunner

from bench.__main__ import app
from tests.litert.compiled import needs_litert

pytestmark = needs_litert


def test_both_apis_are_measured(device, tmp_path):
    path = tmp_path / "litert.csv"
    arguments = ["litert", "lenet5", "--precision", "fp32", "--rounds", "2", "--csv", str(path)]
    result = CliRunner().invoke(app, [*arguments, "--device", device])
    assert result.exit_code == 0, result.output
    with path.open() as file:
        (row,) = csv.DictReader(file)
    assert (row["model"], row["precision"]) == ("lenet5", "fp32")
    assert min(float(row[name]) for name in ("cpu_ms", "interpreter_ms", "compiled_ms")) > 0
    assert float(row["error"]) < 1e-5
    assert row["gpu_ms"] or row["problem"]

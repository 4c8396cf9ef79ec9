"""``python -m bench stream``: one small case, and wrong arguments."""

from __future__ import annotations

import csv

from typer.testing import CliRunner

from bench.__main__ import app


def test_sequences_are_measured_and_equal(device, tmp_path):
    path = tmp_path / "stream.csv"
    arguments = ["stream", "colours", "--scale", "0.01", "--rounds", "1", "--count", "3"]
    result = CliRunner().invoke(
        app, [*arguments, "--device", device, "--zero-copy", "off", "--csv", str(path)]
    )
    assert result.exit_code == 0, result.output
    with path.open() as file:
        (row,) = csv.DictReader(file)
    assert (row["network"], row["mode"], row["exact"]) == ("colours", "stream", "True")
    assert min(float(row[name]) for name in ("device", "invoke", "run", "many", "bound")) > 0


def test_unknown_network():
    result = CliRunner().invoke(app, ["stream", "lenet6"])
    assert result.exit_code == 2
    assert "no network" in result.output

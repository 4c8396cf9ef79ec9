"""``python -m bench pool``: a small network on one device and on two, and wrong arguments."""

from __future__ import annotations

import csv

import pytest
from typer.testing import CliRunner

from bench import pool
from bench.__main__ import app

SMALL = ["pool", "lenet5", "--batch", "2", "--count", "6", "--rounds", "1"]


def test_ratios_to_one_device_are_measured(device, tmp_path):
    path = tmp_path / "pool.csv"
    result = CliRunner().invoke(
        app, [*SMALL, "--devices", f"{device},{device}", "--csv", str(path)]
    )
    assert result.exit_code == 0, result.output
    with path.open() as file:
        one, two = csv.DictReader(file)
    assert (one["devices"], two["devices"], two["exact"]) == ("1", "2", "True")
    assert float(one["times"]) == float(one["in_place_times"]) == 1
    assert float(two["times"]) == pytest.approx(float(two["rate"]) / float(one["rate"]))
    assert 0 <= float(two["least"]) <= 1 <= float(two["most"]) <= 2


@pytest.mark.parametrize(
    ("most", "counts"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8])]
)
def test_numbers_of_devices(most, counts):
    assert pool.sizes(most) == counts


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["lenet6"], "no network"), (["--devices", "abacus"], "no OpenCL device")],
)
def test_mistakes(arguments, words):
    result = CliRunner().invoke(app, ["pool", *arguments])
    assert result.exit_code == 2
    assert words in result.output

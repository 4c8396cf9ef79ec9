"""``python -m bench pynet``: a small PyNET, and wrong arguments."""

from __future__ import annotations

import csv
import dataclasses
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import pynet
from bench.__main__ import app
from bench.networks.samples import inputs_of
from bench.setting import Setting

QUICK = {"rounds": 1, "budget": 0.01, "threads": 1}


@pytest.mark.slow
def test_rows_are_measured_and_compared(device, runtime):
    setting = Setting(device=device, runtime=runtime, **QUICK)
    ways = [pynet.Way("half"), pynet.Way("single", "fp32")]
    rows = list(pynet.measure(ways, setting, size=(32, 48), width=0.125))
    assert [row.way for row in rows] == ["half", "single", "stock CPU"]
    half, single, stock = rows
    assert single.error == 0
    assert math.isinf(single.psnr)
    assert 0 < half.error < 2e-2
    assert half.psnr > 40
    assert stock.error < 1e-4
    for row in rows[:2]:
        assert not row.note
        assert min(row.host_ms, row.device_ms, row.predicted) > 0


@pytest.mark.slow
def test_what_fails_is_a_note(device, runtime, tmp_path):
    path = tmp_path / "pynet.csv"
    (row,) = pynet.run(
        Setting(device=device, runtime=runtime, csv=path, **QUICK),
        size="32x48",
        width=0.125,
        engines="conv2d=no_such_engine",
        precision="fp32",
        stock=False,
    )
    assert "no_such_engine" in row.note
    assert row.device_ms is None
    with path.open() as file:
        (read,) = csv.DictReader(file)
    assert list(read) == ["device", *(f.name for f in dataclasses.fields(pynet.Row))]


def test_budgets_of_small_images_are_scaled_by_area():
    full, small = pynet.published(), pynet.published(1 / 64)
    assert [way.budget for way in full] == [
        None, None, 1_500_000_000, 2_500_000_000, None, None, 0,
    ]  # fmt: skip
    assert small[2].budget == round(1.5e9 / 64)
    assert small[3].max_object == round(1e9 / 64)


def test_smallest_budget_is_read_from_the_refusal():
    text = "no plan fits into 1 bytes; the smallest feasible budget is 12.1 KiB (12345 bytes)"
    assert pynet.smallest_budget(text) == 12345
    assert pynet.smallest_budget("out of memory") is None


def test_psnr():
    image = np.zeros((4, 4), np.float32)
    assert pynet.psnr(image + 0.1, image) == pytest.approx(20, abs=1e-3)


def test_file_is_written(tmp_path):
    path = tmp_path / "pynet.tflite"
    arguments = ["pynet", "--write", str(path), "--size", "32x48", "--width", "0.125"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert inputs_of(path.read_bytes())[0].shape == (1, 32, 48, 4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", "large"], "'large' is no size"),
        (["--size", "32x40"], "multiples of 16"),
        (["nothing"], "no row begins with nothing"),
        (["--flavour", "jax", "--write", "x"], "'jax' is no flavour"),
    ],
)
def test_mistake_is_a_sentence(arguments, words):
    result = CliRunner().invoke(app, ["pynet", *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())

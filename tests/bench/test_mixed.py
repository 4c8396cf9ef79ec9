"""``python -m bench mixed``: the precisions of a small network, and wrong arguments."""

from __future__ import annotations

import csv
import json

from typer.testing import CliRunner

from bench import mixed, networks
from bench.__main__ import app

SMALL = ["mixed", "lenet5", "--samples", "3", "--budget", "1"]


def test_plan_is_compared_with_whole_precisions(tmp_path, monkeypatch):
    monkeypatch.setenv("CLGPU_CACHE", str(tmp_path / "cache.sqlite"))
    path = tmp_path / "mixed.csv"
    result = CliRunner().invoke(
        app, [*SMALL, "--max-error", "0.1", "--prefer", "memory", "--csv", str(path)]
    )
    assert result.exit_code == 0, result.output
    with path.open() as file:
        (row,) = csv.DictReader(file)
    assert float(row["error"]) < 0.1
    assert float(row["mb"]) <= float(row["fp32_mb"])
    assert min(float(row[f"{way}_ms"]) for way in ("fp32", "fp16", "mixed")) > 0


def test_mixtures_of_experts_are_tuned_too(monkeypatch):
    monkeypatch.setattr(networks, "build", lambda name, batch: f"{name} {batch}".encode())
    every = [model.name for model in mixed.models((), None, 2)]
    assert every == [*networks.NETWORKS, *networks.MIXTURES]
    (model,) = mixed.models(["decoder_moe"], None, 1)
    assert model.read() == b"decoder_moe 1"


def test_searches_run_in_processes(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    (models / "small.tflite").write_bytes(networks.build("lenet5"))
    (models / "torn.tflite").write_bytes(networks.build("lenet5")[:-1000])
    (tmp_path / "measured").mkdir()
    sheet = tmp_path / "measured" / "mixed.json"
    result = CliRunner().invoke(
        app,
        ["mixed", "--folder", str(models), "--samples", "3", "--budget", "1", "--max-error", "0.1",
         "--prefer", "memory", "--processes", "2", "--json", str(sheet), "--commit", "none"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "torn: left out: " in result.output
    (row,) = json.loads(sheet.read_text())["rows"]
    assert (row["model"], row["batch"]) == ("small", 1)
    assert row["error"] < 0.1
    assert row["mb"] < row["fp32_mb"]
    assert row["fp16_error"] > row["fp32_error"] > 0


def test_searches_that_do_not_end_are_left_out():
    result = CliRunner().invoke(app, [*SMALL, "--processes", "2", "--limit", "0.2"])
    assert result.exit_code == 0, result.output
    assert "lenet5: left out: no answer within 0 s" in result.output


def test_model_that_cannot_be_tuned_is_left_out():
    result = CliRunner().invoke(app, [*SMALL, "--max-error", "1e-12"])
    assert result.exit_code == 0, result.output
    assert "lenet5: left out: max_error is 1e-12, but fp32 itself" in result.output


def test_mistakes():
    result = CliRunner().invoke(app, [*SMALL, "--device", "abacus"])
    assert result.exit_code == 2

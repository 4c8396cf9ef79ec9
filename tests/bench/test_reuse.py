"""``python -m bench reuse``: scenes of a small network, and wrong arguments."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import networks, reuse
from bench.__main__ import app


def test_scenes_are_measured(device, tmp_path, monkeypatch):
    monkeypatch.setitem(reuse.SIZES, "espcn", {"size": 32})
    path = tmp_path / "reuse.csv"
    common = ["--rounds", "2", "--device", str(device), "--row-band", "8"]
    result = CliRunner().invoke(app, ["reuse", "espcn", *common, "--csv", str(path)])
    assert result.exit_code == 0, result.output
    with path.open() as file:
        rows = {row["scene"]: row for row in csv.DictReader(file)}
    assert list(rows) == list(reuse.SCENES)
    for row in rows.values():
        assert float(row["times"]) == pytest.approx(float(row["plain_ms"]) / float(row["reuse_ms"]))
        assert 0 <= float(row["error"]) < 0.2
    assert float(rows["pan"]["computed"]) == pytest.approx(1)
    assert 0 < float(rows["object"]["computed"]) < 1
    assert float(rows["static"]["computed"]) == 0


def test_scenes_are_what_they_are_called():
    (image,) = networks.sample_inputs(networks.build("espcn", size=64), seed=1)
    scenes = {name: reuse.scene(name, image) for name in reuse.SCENES}
    noise = 12 * 2 / 255
    for first, second in zip(scenes["static"], scenes["static"][1:]):
        assert 0 < np.abs(first - second).max() < noise
    moved = [np.abs(a - b) > noise for a, b in zip(scenes["object"], scenes["object"][1:])]
    rows = np.flatnonzero(np.any(moved, axis=(0, 1, 3, 4)))
    assert 0 < rows.max() - rows.min() < 64 // 8
    assert np.abs(scenes["pan"][0] - scenes["pan"][1]).max() > noise


def test_a_network_that_does_not_exist():
    result = CliRunner().invoke(app, ["reuse", "lenet5"])
    assert result.exit_code == 2
    assert "no network" in result.output

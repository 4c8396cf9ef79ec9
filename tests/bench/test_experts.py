"""``python -m bench experts``: small mixtures, and wrong arguments."""

from __future__ import annotations

import csv

import pytest
from typer.testing import CliRunner

from bench.__main__ import app

SMALL = ["--experts", "3", "--chosen", "1", "--width", "16", "--hidden", "8", "--size", "67"]


def test_forms_are_measured(device, tmp_path):
    path = tmp_path / "experts.csv"
    common = ["--batch", "1,2", "--rounds", "1", "--device", str(device), "--stock"]
    result = CliRunner().invoke(app, ["experts", *SMALL, *common, "--csv", str(path)])
    assert result.exit_code == 0, result.output
    with path.open() as file:
        rows = list(csv.DictReader(file))
    found = [(row["network"], row["form"], row["batch"]) for row in rows]
    assert found == [
        *(
            ("decoder_moe", form, batch)
            for batch in "12"
            for form in ("dense", "gathered", "branches")
        ),
        *(("imagenet_moe", form, batch) for batch in "12" for form in ("dense", "branches")),
    ]
    for row in rows:
        assert float(row["times"]) == pytest.approx(float(row["all_ms"]) / float(row["sparse_ms"]))
        assert float(row["error"]) < 1e-5
        assert float(row["stock_ms"]) > 0
        if row["form"] == "dense":
            assert row["all_ms"] == row["dense_ms"]


def test_some_forms(device, tmp_path):
    path = tmp_path / "experts.csv"
    common = ["--batch", "1", "--rounds", "1", "--device", str(device), "--csv", str(path)]
    result = CliRunner().invoke(app, ["experts", *SMALL, *common, "--forms", "gathered"])
    assert result.exit_code == 0, result.output
    with path.open() as file:
        found = [(row["network"], row["form"]) for row in csv.DictReader(file)]
    expected = [("decoder_moe", "dense"), ("decoder_moe", "gathered"), ("imagenet_moe", "dense")]
    assert found == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lenet5"], "no network"),
        (["--chosen", "17"], "17 experts are chosen of 16"),
        (["--forms", "sparse"], "no form; there are dense, gathered, branches"),
    ],
)
def test_mistakes(arguments, words):
    result = CliRunner().invoke(app, ["experts", *arguments])
    assert result.exit_code == 2
    assert words in result.output

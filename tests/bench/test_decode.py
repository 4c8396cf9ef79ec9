"""``python -m bench decode``: tiny decoders, and wrong arguments."""

from __future__ import annotations

import csv
import dataclasses

import pytest
from typer.testing import CliRunner

from bench import decode
from bench.__main__ import app
from bench.networks.decoder import BLOCKS, DECODERS, FORMS, make_decoder

SMALL = ["--prompt", "5", "--tokens", "3", "--cache", "16", "--rounds", "2", "--budget", "1"]


def test_delegate_and_stock_are_measured(device, tmp_path):
    path = tmp_path / "decode.csv"
    arguments = ["tiny", *SMALL, "--form", "float16,int4", "--precision", "fp32,fp16", "--stock"]
    files = ["--csv", str(path), "--folder", str(tmp_path)]
    runtime = ["--runtime", "ai_edge_litert", "--device", str(device)]
    result = CliRunner().invoke(app, ["decode", *arguments, *files, *runtime])
    assert result.exit_code == 0, result.output
    with path.open() as file:
        rows = list(csv.DictReader(file))
    found = [(row["form"], row["way"], row["precision"]) for row in rows]
    ways = [("delegate", "fp32"), ("delegate", "fp16"), ("stock CPU", "")]
    assert found == [(form, *way) for form in ("float16", "int4") for way in ways]
    for row in rows:
        assert float(row["step_ms"]) > 0
        if row["way"] == "delegate":
            # Token and position go up; the next token and the sum of the logits come down. Devices
            # that share the host's memory copy nothing.
            assert int(row["bus_bytes"]) <= 16
            assert int(row["device_bytes"]) > int(row["weight_bytes"])
            assert float(row["memory_share"]) > 0
    assert len(list(tmp_path.glob("*.tflite"))) == 2


@pytest.mark.parametrize("form", FORMS)
def test_bytes_of_weights_are_those_of_the_file(form):
    tiny = dataclasses.replace(DECODERS["tiny"], width=128, depth=32, hidden=128)
    embedding = tiny.vocabulary * tiny.width * (4 if form == "float32" else 2)
    assert decode.weight_bytes(tiny, form) + embedding < len(make_decoder(tiny, form=form).build())
    large = DECODERS["0.1b"]
    matrices = large.parameters - large.vocabulary * large.width
    each = {"float32": 4.0, "float16": 2.0, "int8": 1.0, "int4": 0.5}.get(form)
    if each is None:
        each = 0.5 + 2 / BLOCKS[form]
    assert decode.weight_bytes(large, form) == pytest.approx(matrices * each, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["7b"], "'7b' is no decoder"),
        (["--form", "int3"], "'int3' is no form of weights"),
        (["--cache", "100"], "need 161 positions; the caches have 100"),
        (["tiny", "--folder", "/nowhere"], "/nowhere is not a folder"),
    ],
)
def test_mistakes(arguments, words):
    result = CliRunner().invoke(app, ["decode", *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())

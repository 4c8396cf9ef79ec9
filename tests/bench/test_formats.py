"""``python -m bench formats``: small networks, a format that is refused, and wrong arguments."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import clgpu_delegate
from bench import formats
from bench.__main__ import app

SMALL = ["--samples", "2", "--rounds", "1", "--budget", "0.1", "--search", "0.5"]


def rows_of(tmp_path, *arguments):
    path = tmp_path / "formats.json"
    command = ["formats", *SMALL, *arguments, "--json", str(path), "--commit", "abc"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return {row["format"]: row for row in json.loads(path.read_text())["rows"]}, result.output


def test_formats_of_a_network_are_measured(device, tmp_path):
    common = ["lenet5", "--device", str(device), "--batch", "2", "--max-error", "0.1"]
    rows, output = rows_of(tmp_path, *common)
    assert tuple(rows) == formats.FORMATS
    for name, row in rows.items():
        assert (row["network"], row["batch"]) == ("lenet5", 2)
        assert row["claimed"] == row["nodes"] > 0, name
        assert min(row["device_ms"], row["host_ms"], row["peak_bytes"]) > 0
        assert row["error"] < 0.3, name
        assert 0 <= row["top1"] <= 1
        assert row["accuracy"] is None
    assert rows["fp32"]["error"] < 1e-5 < rows["int8"]["error"]
    assert rows["int8"]["weight_bytes"] < rows["fp16"]["weight_bytes"]
    assert rows["fp16"]["weight_bytes"] < rows["fp32"]["weight_bytes"]
    assert rows["tuned"]["error"] <= 0.1
    assert rows["tuned"]["note"]
    assert "accuracy" not in output, "a column without numbers is left out"


def test_digits_have_labels(device, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra: examples)")
    arguments = [formats.DIGITS, "--formats", "fp32,int8", "--batch", "16", "--device", str(device)]
    rows, _ = rows_of(tmp_path, *arguments)
    assert rows["fp32"]["accuracy"] > 0.95
    assert rows["fp32"]["top1"] == 1
    assert rows["int8"]["accuracy"] > 0.9


def test_network_without_its_data_is_left_out(monkeypatch):
    def missing(*_):
        raise ImportError("No module named 'sklearn'")

    monkeypatch.setattr(formats.Subject, "of", missing)
    result = CliRunner().invoke(app, ["formats", formats.DIGITS])
    assert result.exit_code == 0, result.output
    assert "lenet5_digits: left out: No module named 'sklearn' (extra: examples)" in result.output


def test_format_that_is_refused_is_a_row(tmp_path, monkeypatch):
    def refusing(*_, **__):
        raise clgpu_delegate.ClgpuError("no such integers here\nmore")

    monkeypatch.setattr(formats, "quantized", refusing)
    arguments = ["lenet5", "--formats", "int16,fp32,tuned", "--max-error", "1e-12"]
    rows, output = rows_of(tmp_path, *arguments)
    assert list(rows) == ["int16", "fp32", "tuned"]
    assert rows["int16"]["note"] == "no such integers here"
    assert rows["tuned"]["note"].startswith("max_error is 1e-12, but fp32 itself has an error of")
    for name in ("int16", "tuned"):
        assert rows[name]["device_ms"] is rows[name]["error"] is rows[name]["peak_bytes"] is None
    assert rows["fp32"]["device_ms"] > 0
    assert "int16 refused, fp32 " in output


def test_repeated_samples_of_the_last_batch_do_not_count():
    images = np.arange(5, dtype=np.float32)[:, np.newaxis]
    batches = formats._in_batches(images, 3, 2)
    assert [batch.ravel().tolist() for (batch,) in batches] == [[0, 1, 2], [3, 4, 0]]
    subject = formats.Subject("net", 3, b"", [], batches, labels=np.array([1, 1, 0, 1, 1]))
    want = np.zeros((2, 3, 2))
    want[..., 1] = 1
    got = want.copy()
    got[1, 2] = 1, 0  # the repetition
    got[0, 0] = 1, 0
    judged = subject.judge(got, want)
    assert judged["top1"] == 4 / 5
    assert judged["accuracy"] == 3 / 5
    assert judged["error"] == pytest.approx((2 / 3) ** 0.5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet50"], "no network"),
        (["--formats", "fp32,int4"], "'int4' is no format"),
        (["--batch", "0"], "'0' is no batch size"),
        (["--max-error", "0"], "max-error is 0; allowed: a number above 0"),
        (["--max-error", "nan"], "max-error is nan"),
        (["--prefer", "beauty"], "'beauty' is no preference"),
        (["--device", "abacus"], "abacus"),
        (["--samples", "1"], "--samples"),
    ],
)
def test_mistakes(arguments, words):
    result = CliRunner().invoke(app, ["formats", *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())

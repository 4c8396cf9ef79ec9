"""The command clgpu prints what the functions it calls return."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

import clgpu_delegate
from clgpu_delegate import cli
from tests.model_maker import ModelMaker
from tests.python import models


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "chain.tflite"
    path.write_bytes(models.chain())
    return str(path)


def clgpu(*arguments: str) -> str:
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(monkeypatch, capsys, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["clgpu", *arguments])
    with pytest.raises(SystemExit) as info:
        cli.main()
    assert info.value.code == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1, "one line"
    return output.err


def test_info_lists_the_devices():
    found = [device.to_dict() for device in clgpu_delegate.devices()]
    assert json.loads(clgpu("info", "--json")) == found
    assert clgpu("info").count("OpenCL") >= 1


def test_explain_prints_a_table_or_json(model, runtime):
    data = json.loads(clgpu("explain", model, "--json", "--runtime", runtime, "--ops", "core"))
    assert [node["claimed"] for node in data["nodes"]] == [False, False]
    text = clgpu("explain", model, "--runtime", runtime, "--exclude", "SOFTMAX,7")
    assert "1 of 2 nodes claimed" in text


def test_run_compares_with_the_stock_runtime(model, runtime, precision, device):
    options = ["--runs", "2", "--runtime", runtime, "--precision", precision, "--device", device]
    data = json.loads(clgpu("run", model, "--json", *options))
    assert (data["claimed"], data["total"], data["partitions"]) == (2, 2, 1)
    assert data["precision"] == precision
    assert data["device"]["index"] == int(device)
    assert data["relative_l2_error"] < {"fp32": 1e-5, "fp16": 5e-3}[precision]
    assert data["max_abs_error"] < 1e-2
    assert not data["undone"]
    assert min(data["stock_ms"], data["delegate_ms"], data["first_ms"]) > 0


def test_run_prints_what_matters(model):
    text = clgpu("run", model, "--runs", "1")
    for words in ("device", "2 of 2 on the device, in 1 partition", "relative L2", "compiled"):
        assert words in text


def test_missing_model_is_one_sentence(monkeypatch, capsys):
    error = fails(monkeypatch, capsys, "explain", "nowhere.tflite")
    assert error == "clgpu: cannot read the model nowhere.tflite: No such file or directory\n"


def test_file_that_is_no_model_is_one_sentence(monkeypatch, capsys, tmp_path):
    path = tmp_path / "readme.txt"
    path.write_text("not a model")
    assert "is not a .tflite model" in fails(monkeypatch, capsys, "run", str(path))


def test_model_that_the_runtime_rejects_is_one_sentence(monkeypatch, capsys, tmp_path, runtime):
    m = ModelMaker()
    m.output(m.custom("Frobnicate", [m.input("x", (1, 4))], (1, 4)))
    path = tmp_path / "custom.tflite"
    path.write_bytes(m.build())
    error = fails(monkeypatch, capsys, "run", str(path), "--runtime", runtime)
    assert "without the delegate cannot run the model" in error
    assert "Frobnicate" in error


def test_absent_device_is_one_sentence(monkeypatch, capsys, model):
    error = fails(monkeypatch, capsys, "run", model, "--device", "abacus")
    assert "no OpenCL device has 'abacus' in its name; found: 0 = " in error


def test_option_that_is_not_allowed_is_one_sentence(monkeypatch, capsys, model):
    error = fails(monkeypatch, capsys, "run", model, "--precision", "int8")
    assert "option 'precision' is 'int8'; allowed: fp32, fp16, tf32" in error

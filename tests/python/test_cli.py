"""The command clgpu prints what the functions it calls return."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import re

import pytest
import typer
from typer.testing import CliRunner

import clgpu_delegate
from clgpu_delegate import ClgpuError, Options, _core, cli
from clgpu_delegate.cli import completion, exits, settings
from tests.litert.compiled import needs_litert
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

# Options of commands: rows of the one table by name.
TABLE = {row["key"]: row for row in _core.option_table() if row["key"] not in settings.NOT_OPTIONS}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "chain.tflite"
    path.write_bytes(models.chain())
    return str(path)


def clgpu(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert exits.answer(cli.app, arguments) == exits.DONE
    return out.getvalue()


def fails(capsys, code: int, *arguments: str) -> str:
    assert exits.answer(cli.app, arguments) == code
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1, "one line"
    return output.err


def test_devices_lists_them():
    found = [device.to_dict() for device in clgpu_delegate.devices()]
    assert json.loads(clgpu("devices", "--json")) == found
    assert clgpu("devices").count("OpenCL") >= 1
    assert clgpu("info") == clgpu("devices"), "its first name"


def test_explain_prints_a_table_or_json(model, runtime):
    data = json.loads(clgpu("explain", model, "--json", "--runtime", runtime, "--ops", "core"))
    assert [node["claimed"] for node in data["nodes"]] == [False, False]
    text = clgpu("explain", model, "--runtime", runtime, "--exclude", "SOFTMAX,7")
    assert "1 of 2 nodes claimed" in text


@needs_litert
def test_explain_tells_of_a_compiled_model(model):
    data = json.loads(clgpu("explain", model, "--json", "--api", "compiled"))
    assert [node["claimed"] for node in data["nodes"]] == [True, True]
    assert "arena" in clgpu("explain", model, "--api", "compiled", "--memory")
    assert clgpu("explain", model, "--api", "compiled", "--ir", "after") == clgpu(
        "explain", model, "--ir", "after"
    )


@needs_litert
@pytest.mark.parametrize("words", [["explain"], ["run", "--runs", "1"]], ids=lambda words: words[0])
def test_what_litert_tells_of_itself_is_left_out(model, words):
    script = "from clgpu_delegate.__main__ import main; main()"
    result = run_python(script, words[0], model, *words[1:], "--api", "compiled")
    assert_succeeds(result)
    assert result.stderr == ""


def test_what_a_driver_says_is_passed_on_even_where_it_ends_the_process():
    more = "\N{BOX DRAWINGS LIGHT UP AND RIGHT} more\n"
    told = f"INFO: [environment.cc:1] told\nWARNING: [npu_registry.cc:1] no\n{more}"
    memory = "[compiled_model.cc:1] Failed to get buffer requirements for tensor `x`.\n\n"
    told += f"WARNING: {memory}"
    said = f"ERROR: {memory}WARNING: [compiled_model.cc:1] no\n{more}terminate called\n"
    script = f"""
import os
from clgpu_delegate.cli.quiet import quiet
with quiet(None, "compiled"):
    os.write(2, {(told + said).encode()!r})
    os._exit(3)
"""
    result = run_python(script)
    assert (result.returncode, result.stderr) == (3, said)


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


def test_missing_model_is_one_sentence(capsys):
    error = fails(capsys, exits.FILE, "explain", "nowhere.tflite")
    assert error == "clgpu: cannot read the model nowhere.tflite: No such file or directory\n"


def test_model_that_the_runtime_rejects_is_one_sentence(capsys, tmp_path, runtime):
    m = ModelMaker()
    m.output(m.custom("Frobnicate", [m.input("x", (1, 4))], (1, 4)))
    path = tmp_path / "custom.tflite"
    path.write_bytes(m.build())
    error = fails(capsys, exits.FILE, "run", str(path), "--runtime", runtime)
    assert "without the delegate cannot run the model" in error
    assert "Frobnicate" in error


def test_absent_device_is_one_sentence(capsys, model):
    error = fails(capsys, exits.NO_DEVICE, "run", model, "--device", "abacus")
    assert "no OpenCL device has 'abacus' in its name; found: 0 = " in error


def test_option_that_is_not_allowed_is_one_sentence(capsys, model):
    error = fails(capsys, exits.USAGE, "run", model, "--precision", "int8")
    assert "option 'precision' is 'int8'; allowed: fp32, fp16, tf32, mixed, a plan" in error


@pytest.mark.parametrize(
    "arguments",
    [["fly"], ["run"], ["cache"], ["run", "m", "--nonsense"], ["run", "m", "--runs", "many"]],
)
def test_wrong_usage_is_one_sentence(capsys, arguments):
    error = fails(capsys, exits.USAGE, *arguments)
    assert error.startswith("clgpu: ")
    assert "--help" in error


def test_errors_are_json_with_json(capsys):
    assert json.loads(fails(capsys, exits.FILE, "explain", "nowhere.tflite", "--json")) == {
        "error": "cannot read the model nowhere.tflite: No such file or directory",
        "kind": "FileError",
        "exit_code": exits.FILE,
    }


def test_a_mistake_of_ours_is_one_sentence_that_tells_how_to_see_more(monkeypatch, capsys):
    def fail():
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("clgpu_delegate.cli.devices.find_devices", fail)
    error = fails(capsys, exits.FAILED, "devices")
    assert "ZeroDivisionError: by nothing" in error
    assert "CLGPU_TRACEBACK" in error
    monkeypatch.setenv("CLGPU_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        exits.answer(cli.app, ["devices"])


def test_what_is_no_option_of_commands_is_a_field_of_the_options():
    assert settings.NOT_OPTIONS.keys() <= {field.name for field in dataclasses.fields(Options)}


def test_options_of_commands_are_as_the_table_of_options_has_them():
    added = {parameter.name: parameter for parameter in settings._parameters()}
    assert added.keys() - {"runtime", "shape"} == TABLE.keys()
    explain = typer.main.get_command(cli.app).commands["explain"]
    flags = {parameter.name: parameter for parameter in explain.params}
    types = {"switch": bool, "count": int}
    for name, row in TABLE.items():
        dashed = name.replace("_", "-")
        assert flags[name].opts == [f"--{dashed}"]
        assert flags[name].default == getattr(Options(), name)
        assert added[name].annotation.__origin__ is types.get(row["kind"], str)
        opposite = row["kind"] == "switch" and row["default"] == "on"
        assert flags[name].secondary_opts == ([f"--no-{dashed}"] if opposite else [])
        assert row["help"][1:] in flags[name].help
        if row["kind"] == "choice":
            assert all(word in flags[name].help for word in row["words"])
        if "choice" in row["kind"]:
            (option,) = added[name].annotation.__metadata__
            assert option.autocompletion("") == row["words"]


def test_commands_have_their_options_without_the_extension(monkeypatch):
    """``clgpu doctor`` has to run there; the others say what is missing once they are used."""

    def missing():
        raise ClgpuError("the compiled extension is missing")

    monkeypatch.setattr(settings._core, "option_table", missing)
    assert [p.name for p in settings._parameters()] == [*TABLE, "runtime", "shape"]


def test_options_reach_the_delegate_with_the_defaults_of_options(monkeypatch):
    got = []
    monkeypatch.setattr(
        "clgpu_delegate.inspection.explain_model", lambda _, **kw: got.append(kw) or _Nothing()
    )
    ours = {"runtime": None, "shapes": None, "api": "interpreter"}
    clgpu("explain", "m.tflite", "--json")
    defaults = {name: getattr(Options(), name) for name in TABLE}
    assert got.pop() == {**defaults, **ours}
    clgpu("explain", "m.tflite", "--json", "--verify", "3", "--no-warm-up", "--half-io")
    assert Options.from_settings(
        **{name: value for name, value in got.pop().items() if name not in ours}
    ) == Options(verify=3, warm_up=False, half_io=True)


def test_graphs_are_printed_as_text_or_json(monkeypatch):
    asked = []

    def texts(model, when, **_):
        asked.append((model.name, when))
        return ("inputs %0\n", "inputs %1\n")

    monkeypatch.setattr("clgpu_delegate.inspection.graph_texts", texts)
    printed = clgpu("explain", "m.tflite", "--ir", "before")
    assert printed == "# partition 0\ninputs %0\n\n# partition 1\ninputs %1\n\n"
    listed = json.loads(clgpu("explain", "m.tflite", "--ir", "after", "--json"))
    assert listed == ["inputs %0\n", "inputs %1\n"]
    assert asked == [("m.tflite", "before"), ("m.tflite", "after")]


class _Nothing:
    def to_dict(self):
        return {"finite": 1.0, "infinite": float("inf")}


def test_json_has_finite_numbers_only(monkeypatch):
    monkeypatch.setattr("clgpu_delegate.inspection.explain_model", lambda *_, **__: _Nothing())
    assert json.loads(clgpu("explain", "m.tflite", "--json")) == {"finite": 1.0, "infinite": None}


def _commands(group, *words):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, *words, name)
        elif not command.hidden:
            yield pytest.param(command, [*words, name], id=" ".join([*words, name]))


ALL = list(_commands(typer.main.get_command(cli.app)))


@pytest.mark.parametrize(("command", "words"), ALL)
def test_each_command_has_help_with_an_example_and_json(command, words):
    text = clgpu(*words, "--help")
    assert "For example:" in text
    assert f"clgpu {' '.join(words)}" in text.split("For example:")[1]
    assert any("--json" in parameter.opts for parameter in command.params)
    assert all(getattr(parameter, "help", None) for parameter in command.params)


def test_help_tells_the_exit_codes_and_the_version():
    text = clgpu("--help")
    for code, meaning in exits.MEANINGS.items():
        assert f"{code} {meaning}" in " ".join(text.split())
    assert clgpu() == text
    assert clgpu("--version") == f"clgpu_delegate {clgpu_delegate.__version__}\n"


def test_start_is_light():
    heavy = "matplotlib, tflite, flatbuffers, ai_edge_litert, tflite_runtime, tensorflow, jinja2"
    script = f"""
import sys
import clgpu_delegate.cli
assert not set(sys.modules) & set("{heavy}".split(", ")), sys.modules.keys()
"""
    assert_succeeds(run_python(script))


def complete(*words: str) -> list[str]:
    """What bash is offered for the last word."""
    environment = {
        "_CLGPU_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["clgpu", *words]),
        "COMP_CWORD": str(len(words)),
    }
    runner = CliRunner()
    return runner.invoke(cli.app, [], prog_name="clgpu", env=environment).stdout.splitlines()


def test_completion(tmp_path, monkeypatch):
    (tmp_path / "nets" / "deep").mkdir(parents=True)
    (tmp_path / "nets" / "deep" / "one.tflite").touch()
    (tmp_path / "notes.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert complete("expl") == ["explain"]
    assert complete("explain", "--precision", "fp") == ["fp32", "fp16"]
    assert complete("explain", "--runtime", "tf") == ["tflite_runtime"]
    assert complete("explain", "n") == ["nets/deep/one.tflite"]
    assert complete("explain", "--engines", "fc=auto,conv2d") == ["fc=auto,conv2d="]
    assert complete("explain", "--device", "0") == ["0"]
    # A word of it, which "(R)" may follow.
    name = re.split(r"[^\w.+-]", clgpu_delegate.devices()[0].name)[0]
    assert name.lower() in [word.lower() for word in completion.devices(name[:3].lower())]


def test_documentation_has_all_commands_and_exit_codes():
    text = (ROOT / "docs" / "cli.md").read_text()
    missing = [p.id for p in ALL if f"`clgpu {p.id.split()[0]}" not in text]
    assert not missing
    for code, meaning in exits.MEANINGS.items():
        assert f"| {code} | {meaning} |" in text

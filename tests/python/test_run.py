"""clgpu run: inputs from files, outputs to files, and what verification found."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from clgpu_delegate import InputError, LiteRtSwitch, ModelError, _core, cli
from clgpu_delegate.base import files
from clgpu_delegate.cli import exits
from clgpu_delegate.cli import quiet as quiet_cli
from clgpu_delegate.litert import compiled
from clgpu_delegate.measure import turns
from clgpu_delegate.measure.comparison import compare
from tests.litert.compiled import needs_litert
from tests.model_maker import ModelMaker
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.python.test_cli import clgpu, fails
from tests.runtimes import run_reference
from tests.tolerance import relative_l2


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Nothing waits for idle cores: times do not matter here."""
    monkeypatch.setattr(turns, "wait_until_quiet", lambda: 0.0)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "chain.tflite"
    path.write_bytes(models.chain())
    return str(path)


def two_by_two() -> bytes:
    m = ModelMaker()
    a, b = m.input("a", (2, 3)), m.input("b", (2, 3))
    m.output(m.op("SUB", [a, b], (2, 3)))
    m.output(m.op("MUL", [a, b], (2, 3)))
    return m.build()


def test_inputs_and_outputs_are_files(tmp_path, runtime):
    model, given, out = (str(tmp_path / name) for name in ("m.tflite", "x.npz", "y.npz"))
    (tmp_path / "m.tflite").write_bytes(two_by_two())
    x = {name: models.normal(np.random.default_rng(i), 2, 3) for i, name in enumerate("ba")}
    np.savez(given, **x)
    data = json.loads(
        clgpu("run", model, "--input", given, "--output", out, "--runs", "1", "--json",
              "--runtime", runtime)
    )  # fmt: skip
    written = files.read_arrays(out)
    expected = run_reference(two_by_two(), [x["a"], x["b"]], runtime)
    assert [output["name"] for output in data["outputs"]] == list(written)
    for got, want in zip(written.values(), expected):
        assert relative_l2(got, want) < 1e-6


@needs_litert
def test_compiled_model_is_compared(tmp_path, device):
    model, given, out = (str(tmp_path / name) for name in ("m.tflite", "x.npz", "y.npz"))
    (tmp_path / "m.tflite").write_bytes(two_by_two())
    x = {name: models.normal(np.random.default_rng(i), 2, 3) for i, name in enumerate("ba")}
    np.savez(given, **x)
    arguments = ["--input", given, "--output", out, "--runs", "1", "--device", device]
    data = json.loads(clgpu("run", model, *arguments, "--json", "--api", "compiled"))
    assert (data["api"], data["claimed"], data["undone"]) == ("compiled", 2, False)
    assert bool(data["own_gpu_problem"]) != bool(data["own_gpu_ms"])
    expected = run_reference(two_by_two(), [x["a"], x["b"]])
    for got, want in zip(files.read_arrays(out).values(), expected):
        assert relative_l2(got, want) < 1e-6


@needs_litert
def test_integers_of_any_size_pass_compiled_models(tmp_path):
    """LiteRT's Python buffers have no names for these types."""
    for dtype in (np.int16, np.int64):
        m = ModelMaker()
        x = m.input("x", (2, 3), dtype)
        m.output(m.op("TRANSPOSE", [x, m.constant(np.array([1, 0], np.int32))], (3, 2)))
        path = tmp_path / "m.tflite"
        path.write_bytes(m.build())
        values = np.array([[1, -2, 3], [40, 5, -600]], dtype)
        found = compare(path, api="compiled", inputs=values, runs=1)
        (output,) = found.outputs.values()
        np.testing.assert_array_equal(output, values.T)
        assert "with CompiledModel" in str(found)


@needs_litert
def test_what_compiled_models_do_not_allow_is_one_sentence(model, tmp_path, capsys):
    said = fails(capsys, exits.USAGE, "run", model, "--api", "other")
    assert "api is 'other'; allowed: interpreter, compiled" in said
    arguments = ["--api", "compiled", "--runtime", "tflite_runtime"]
    for command in ("run", "bench", "explain"):
        said = fails(capsys, exits.USAGE, command, model, *arguments)
        assert "runtime is 'tflite_runtime'; only ai_edge_litert has CompiledModel" in said
    broken = tmp_path / "broken.tflite"
    m = ModelMaker()
    m.output(m.custom("Unheard", [m.input("x", (1, 4))], (1, 4)))
    broken.write_bytes(m.build())
    assert "cannot run the model" in fails(
        capsys, exits.FILE, "run", str(broken), "--api", "compiled"
    )


@needs_litert
def test_own_gpu_of_litert_that_is_ours_is_told(monkeypatch):
    switch = LiteRtSwitch(True, "2.3.0", "", "", "")
    monkeypatch.setattr(compiled, "litert_status", lambda: switch)
    with pytest.raises(ModelError, match="run `clgpu litert off` first"):
        compiled.on_own_gpu(b"")


@pytest.mark.parametrize(
    ("array", "part"),
    [
        (np.zeros((2, 6), np.float32), "given is float32 of shape (2, 6)"),
        (np.zeros((2, 5), np.uint8), "given is uint8 of shape (2, 5)"),
        ({"y": np.zeros((2, 5), np.float32)}, "no input 'y'; inputs are: 'x'"),
    ],
)
def test_input_that_does_not_fit_is_one_sentence(array, part, model, tmp_path, capsys):
    files.write_arrays(tmp_path / "x.npz", array if isinstance(array, dict) else {"x": array})
    arguments = ["run", model, "--input", str(tmp_path / "x.npz")]
    assert part in fails(capsys, exits.FAILED, *arguments)
    with pytest.raises(InputError):
        compare(model, inputs=array)


def test_input_that_is_no_array_is_one_sentence(model, tmp_path, capsys):
    for name in ("gone.npy", "text.npy"):
        (tmp_path / "text.npy").write_text("1 2 3")
        said = fails(capsys, exits.FILE, "run", model, "--input", str(tmp_path / name))
        assert f"cannot read the arrays {tmp_path / name}" in said


def test_outputs_of_any_names_are_written(tmp_path):
    arrays = {"file": np.arange(3), "a/b:0": np.float32(1.5), "": np.zeros((0, 2), np.int8)}
    files.write_arrays(tmp_path / "y.npz", arrays)
    for (name, want), (got_name, got) in zip(
        arrays.items(), files.read_arrays(tmp_path / "y.npz").items()
    ):
        assert got_name == name
        np.testing.assert_array_equal(got, want)


def test_wrong_numbers_that_verification_finds_have_an_exit_code(model, capsys):
    arguments = ["run", model, "--verify", "first", "--runs", "1", "--cache", "off"]
    assert exits.answer(cli.app, arguments) == exits.DONE
    assert "verification" in capsys.readouterr().out
    file = "softmax/softmax.cl"
    text = _core.kernel_sources()[file]
    _core.override_kernel_source(file, text.replace("exp(x) / sum)", "exp(x) / sum + 1)"))
    try:
        assert exits.answer(cli.app, [*arguments, "--json"]) == exits.FINDING
    finally:
        _core.override_kernel_source(file, None)
    (verdict,) = json.loads(capsys.readouterr().out)["verification"]["partitions"]
    assert (verdict["level"], verdict["outcome"]) == ("cpu", "replaced")


def test_what_is_computed_in_integers_is_not_called_fp32(tmp_path):
    m = ModelMaker()
    x, shape = m.input("x", (1, 4, 4, 2), np.int8, quantization=(0.1, 0)), (1, 4, 4, 2)
    m.output(m.op("RELU", [x], shape, dtype=np.int8, quantization=(0.1, 0)))
    path = tmp_path / "integers.tflite"
    path.write_bytes(m.build())
    result = compare(path, runs=1)
    assert result.explanation.arithmetic == "int8"
    assert "precision       int8\n" in str(result)
    assert result.to_dict()["arithmetic"] == "int8"
    assert ", int8: 1 of 1 nodes" in result.explanation.summary()
    (tmp_path / "floats.tflite").write_bytes(models.chain())
    floats = compare(tmp_path / "floats.tflite", runs=1, precision="fp16").explanation
    assert floats.arithmetic == "fp16"


@pytest.mark.parametrize("command", ["run", "bench", "profile"])
def test_threads_that_are_not_allowed_are_refused_as_the_help_says(command, model, capsys):
    said = fails(capsys, exits.USAGE, command, model, "--threads", "-1")
    least = 1 if command == "profile" else 0
    assert "--threads" in said
    assert f"{least}" in said
    assert "1 and more" not in said


@pytest.mark.parametrize(
    "words", ["run --runs 1", "explain --exclude 1", "profile --runs 1 --exclude 1"]
)
def test_no_command_prints_what_the_runtime_says_to_itself(words, model):
    command, *options = words.split()
    script = "import sys; sys.argv[0] = 'clgpu'; from clgpu_delegate.__main__ import main; main()"
    result = run_python(script, command, model, *options, CLGPU_CACHE="off")
    assert_succeeds(result)
    assert result.stderr == ""


def test_what_else_the_runtime_prints_is_passed_on(capfd):
    with quiet_cli._without_notice():
        os.write(2, b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\nERROR: no\n")
    assert capfd.readouterr().err == "ERROR: no\n"


def lossy() -> bytes:
    """An int8 mean, which the stock kernels and the reference kernels may round differently."""
    m = ModelMaker()
    x = m.input("x", (1, 5, 5, 3), np.int8, quantization=(0.5, 3))
    axes = m.constant(np.int32([1, 2]))
    m.output(m.op("MEAN", [x, axes], (1, 3), dtype=np.int8, quantization=(0.25, -2), version=2))
    return m.build()


def test_quantised_model_is_compared_with_the_reference_kernels(tmp_path):
    path = tmp_path / "int8.tflite"
    path.write_bytes(lossy())
    given = np.random.default_rng(1).integers(-128, 128, (1, 5, 5, 3)).astype(np.int8)
    result = compare(path, runs=1, inputs=given)
    (reference,) = run_reference(lossy(), [given])
    (found,) = result.outputs.values()
    difference = np.abs(found.astype(int) - reference.astype(int)).max()
    assert result.reference_max_abs_error == difference == 0
    assert result.reference_problem == ""
    assert result.stock_reference_max_abs_error == result.max_abs_error
    text = str(result)
    assert "from the stock run" in text
    assert "0 absolute, 0 relative L2; stock run:" in text


def test_float_model_has_no_reference_kernels(model):
    result = compare(model, runs=1)
    assert (result.reference_max_abs_error, result.reference_problem) == (None, "")
    assert "to reference" not in str(result)


def test_reference_kernels_that_take_too_long_are_told(tmp_path, monkeypatch):
    path = tmp_path / "int8.tflite"
    path.write_bytes(lossy())
    monkeypatch.setattr("clgpu_delegate.measure.comparison.REFERENCE_S", 0.001)
    result = compare(path, runs=1)
    assert result.reference_max_abs_error is None
    assert result.reference_problem == "not finished within 0.001 s"
    assert "not known: the reference kernels: not finished" in str(result)

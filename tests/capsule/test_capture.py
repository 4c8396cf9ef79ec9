"""A capsule has the smallest part of a model that fails, and replays it."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import (
    DependencyError,
    DeviceError,
    FileError,
    InputError,
    ModelError,
    OptionError,
    cli,
)
from clgpu_delegate.capsule import archive, capture, facts, replay
from clgpu_delegate.capsule.outcome import Outcome
from clgpu_delegate.capsule.trials import Bench
from clgpu_delegate.cli import exits
from clgpu_delegate.doctor.finding import Diagnosis
from clgpu_delegate.tflite import schema
from clgpu_delegate.tflite.reader import parse
from tests.capsule import cases
from tests.model_maker import ModelMaker
from tests.python import models


@pytest.fixture(autouse=True)
def _quick_doctor(monkeypatch):
    """The doctor takes seconds, and has its own tests."""
    monkeypatch.setattr(facts, "doctor", lambda **_: Diagnosis(()))


def ops(file) -> list[str]:
    with zipfile.ZipFile(file) as archive:
        return [op.name for op in parse(archive.read("model.tflite")).main.operators]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A capsule of a wrong softmax, and the result of its capture."""
    path = tmp_path_factory.mktemp("capsule") / "wrong.clgpu.zip"
    with cases.wrong_softmax():
        return path, capture(cases.network(1, batch=2), path)


def test_wrong_kernel_is_found_alone_and_its_batch_is_cut(wrong):
    path, result = wrong
    assert result.outcome.kind == "wrong"
    assert result.outcome.relative_l2 > 0.01
    assert result.shrunk
    assert result.nodes == ((5, "SOFTMAX"),)
    assert result.total == 6
    with zipfile.ZipFile(path) as archive:
        (softmax,) = parse(archive.read("model.tflite")).main.operators
        assert softmax.name == "SOFTMAX"
        assert parse(archive.read("model.tflite")).main.tensors[0].shape == (1, 5)
        (program,) = json.loads(archive.read("kernels/programs.json"))
        assert program["file"] == cases.SOFTMAX
        assert b"1.5f * beta" in archive.read(f"kernels/{cases.SOFTMAX}")


def test_replay_tells_whether_it_is_mended(wrong):
    path, result = wrong
    healthy = replay(path)
    assert healthy.verdict == "not reproduced"
    assert not healthy.failed
    assert any(cases.SOFTMAX in warning for warning in healthy.warnings)
    recorded = replay(path, kernels="recorded")
    assert recorded.verdict == "reproduced"
    assert recorded.outcome == result.outcome, "the same numbers"
    assert "SOFTMAX" in recorded.summary()
    with cases.wrong_softmax():
        again = replay(path)
    assert again.verdict == "reproduced"
    assert not again.warnings


def test_same_capture_has_the_same_bytes(wrong, tmp_path):
    with cases.wrong_softmax():
        capture(cases.network(1, batch=2), tmp_path / "again.clgpu.zip")
    assert (tmp_path / "again.clgpu.zip").read_bytes() == wrong[0].read_bytes()


def test_wrong_fusion_is_found_as_the_nodes_that_fuse(tmp_path, runtime):
    path = tmp_path / "fusion.clgpu.zip"
    with cases.broken("common/epilogue.cl", "(v) + (r), c", "(v) - (r), c"):
        result = capture(cases.network(), path, runtime=runtime)
    assert result.outcome.kind == "wrong"
    assert ops(path) == ["CONV_2D", "ADD"]


def test_kernel_that_does_not_build_is_found_with_its_log(tmp_path):
    path = tmp_path / "build.clgpu.zip"
    with cases.broken(cases.SOFTMAX, "float largest", "#error no softmax today\n"):
        result = capture(cases.network(1), path)
    assert result.outcome.kind == "build"
    assert all(kernel.startswith("softmax/") for kernel in result.outcome.signs)
    assert result.nodes == ((5, "SOFTMAX"),)
    with zipfile.ZipFile(path) as archive:
        assert b"no softmax today" in archive.read("build_log.txt")
    assert replay(path, kernels="recorded").verdict == "reproduced"


def test_crash_is_found_and_survived(tmp_path):
    if clgpu_delegate.devices()[0].type != "cpu":
        pytest.skip("a wild write on the first device ends its queue, not the process")
    path = tmp_path / "crash.clgpu.zip"
    crash = "((volatile __global int *)(size_t)64)[0] = 1;\n  float largest"
    with cases.broken(cases.SOFTMAX, "float largest", crash):
        result = capture(models.chain(ops=("SOFTMAX",)), path, shrink=False)
    assert result.outcome.kind == "crash"
    assert result.outcome.text == "SIGSEGV"
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("kernels/programs.json")), "told without a run"


def test_part_of_an_integer_model_keeps_its_scales(tmp_path):
    path = tmp_path / "int8.clgpu.zip"
    with cases.broken("softmax/quantized.cl", "__kernel", "#error none\n__kernel"):
        capture(cases.integers(), path)
    assert ops(path) == ["SOFTMAX"]
    with zipfile.ZipFile(path) as archive:
        x, y = parse(archive.read("model.tflite")).main.tensors
    assert x.affine.scales == pytest.approx([0.1])
    assert y.affine.zero_points == (-128,)


def test_what_agrees_is_captured_whole(tmp_path, runtime):
    path, model = tmp_path / "fine.clgpu.zip", cases.integers()
    x = np.arange(-9, 9, dtype=np.int8).reshape(2, 9)
    result = capture(
        model, path, inputs={"x": x}, runtime=runtime, tolerance=0, device=0, cache="off"
    )
    assert result.outcome.kind == "agrees", "with the reference kernels, in every bit"
    assert not result.shrunk
    assert replay(path).verdict == "nothing failed, then or now"
    with zipfile.ZipFile(path) as archive:
        assert archive.read("model.tflite") == model
        assert json.loads(archive.read("options.json"))["used"] == {}
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert str(tmp_path).encode() not in everything


def test_error_is_found_with_its_message(tmp_path):
    path = tmp_path / "error.clgpu.zip"
    result = capture(models.chain(), path, engines={"softmax": "none"})
    assert result.outcome.kind == "error"
    assert "SOFTMAX" in result.outcome.text
    assert result.outcome.signs == ("OptionError", "", "")
    assert ops(path) == ["SOFTMAX"]
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("device.json"))["doctor"] == {
            "findings": [],
            "healthy": True,
        }
    assert replay(path).verdict == "reproduced"
    assert replay(path, engines="").verdict == "not reproduced"


def test_without_the_packages_that_read_models_nothing_shrinks(tmp_path, monkeypatch):
    def missing(name: str):
        raise DependencyError(f"{name} is missing")

    monkeypatch.setattr(schema, "module", missing)
    path = tmp_path / "whole.clgpu.zip"
    with cases.wrong_softmax():
        result = capture(models.chain(), path)
        assert result.outcome.kind == "wrong"
        assert not result.shrunk
        assert "tflite is missing" in result.remark
        with pytest.raises(DependencyError):
            capture(models.chain(), path, shrink=True)


def test_state_is_a_reason_not_to_shrink(tmp_path):
    m = ModelMaker()
    x = m.input("x", (1, 4))
    state = m.tensor((1, 4), is_variable=True)
    m.output(m.op("SOFTMAX", [m.op("ADD", [x, state], (1, 4))], (1, 4), beta=1.0))
    with cases.wrong_softmax():
        result = capture(m.build(), tmp_path / "state.clgpu.zip")
    assert result.outcome.kind == "wrong"
    assert not result.shrunk
    assert "keeps state" in result.remark


def test_bad_input_is_one_line_and_leaves_no_file(tmp_path):
    out = tmp_path / "out.clgpu.zip"
    (tmp_path / "text.npz").write_text("no arrays")
    chain, x = models.chain(), np.zeros((2, 5), np.float32)
    cases_of_errors = [
        (FileError, (tmp_path / "none.tflite",), {}),
        (ModelError, (b"no model at all",), {}),
        (ModelError, (chain[: len(chain) // 2],), {}),
        (FileError, (chain,), {"inputs": tmp_path / "none.npz"}),
        (FileError, (chain,), {"inputs": tmp_path / "text.npz"}),
        (InputError, (chain,), {"inputs": [x[:, :3]]}),
        (InputError, (chain,), {"inputs": [x, x]}),
        (InputError, (chain,), {"inputs": x[:, :3]}),
        (InputError, (chain,), {"inputs": {"a": x, "b": x}}),
        (InputError, (chain,), {"inputs": [x.astype(np.int32)]}),
        (OptionError, (chain,), {"precision": "fp8"}),
        (OptionError, (chain,), {"timeout": 0}),
        (DeviceError, (chain,), {"device": "no such device"}),
    ]
    for kind, arguments, settings in cases_of_errors:
        with pytest.raises(kind) as error:
            capture(*arguments, out, **settings)
        assert "\n" not in str(error.value)
        assert [p.name for p in tmp_path.iterdir()] == ["text.npz"]
    with pytest.raises(FileError):
        capture(chain, tmp_path / "no folder" / "out.clgpu.zip")


def test_time_limit_may_be_endless(tmp_path, capfd):
    capture(models.chain(), tmp_path / "out.clgpu.zip", timeout=float("inf"))
    assert "Traceback" not in capfd.readouterr().err


def test_interrupted_capture_leaves_no_file(tmp_path):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(models.chain(), tmp_path / "out.clgpu.zip", progress=interrupt)
    assert not list(tmp_path.iterdir())


def test_commands_end_with_their_codes(wrong, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert exits.answer(cli.app, ["replay", "none.clgpu.zip"]) == exits.FILE
    assert capsys.readouterr().err.count("\n") == 1
    Path("chain.tflite").write_bytes(models.chain(ops=("SOFTMAX",)))
    assert exits.answer(cli.app, ["capture", "chain.tflite", "--json"]) == exits.DONE
    captured = json.loads(capsys.readouterr().out)
    assert captured["outcome"]["kind"] == "agrees"
    assert captured["path"] == "chain.clgpu.zip"
    assert Path("chain.clgpu.zip").is_file()
    replay_wrong = ["replay", str(wrong[0]), "--kernels", "recorded", "--json"]
    assert exits.answer(cli.app, replay_wrong) == exits.FINDING
    replayed = json.loads(capsys.readouterr().out)
    assert replayed["verdict"] == "reproduced"
    assert "**reproduced**" in replayed["summary"]


def test_what_fails_once_is_kept(tmp_path, monkeypatch):
    run = Bench.run

    def heals(self, *arguments, **how):
        trial = run(self, *arguments, **how)
        return dataclasses.replace(trial, outcome=Outcome("agrees")) if how else trial

    monkeypatch.setattr(Bench, "run", heals)
    with cases.wrong_softmax():
        result = capture(models.chain(ops=("SOFTMAX",)), tmp_path / "once.clgpu.zip")
    assert result.outcome.kind == "wrong"
    assert result.remark == "the failure does not occur every time"


def test_bfloat16_is_captured_and_replayed(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="numpy has no bfloat16 of its own")
    pytest.importorskip("ai_edge_litert", reason="tflite_runtime does not know bfloat16")
    kind = np.dtype(ml_dtypes.bfloat16)
    m = ModelMaker()
    x, y = m.input("x", (2, 3)), m.input("y", (4,), kind)
    m.output(m.op("CAST", [x], (2, 3), dtype=kind), m.op("CAST", [y], (4,)))
    file = tmp_path / "bfloat16.clgpu.zip"
    given = [np.ones((2, 3), np.float32), np.array([1.5, -2, 0, 3e38], kind)]
    capture(m.build(), file, inputs=given, runtime="ai_edge_litert")
    _, members = archive.unpack(file)
    kept = archive.from_npz(members["inputs.npz"])
    assert any(array.dtype == kind and np.array_equal(array, given[1]) for array in kept.values())
    assert replay(file, runtime="ai_edge_litert").outcome.kind == "agrees"

"""Profiles of models that run: what is recorded, and the command that shows it."""

from __future__ import annotations

import json

import pytest

import clgpu_delegate
from clgpu_delegate import ClgpuError, DependencyError, OptionError, cli
from clgpu_delegate.cli import exits
from clgpu_delegate.profiling import plotting
from tests.model_maker import ModelMaker
from tests.python import models
from tests.runtimes import make_interpreter


@pytest.fixture
def model(tmp_path):
    """Two partitions with a node of the CPU between them."""
    m = ModelMaker()
    x = m.input("x", (2, 5))
    for op in ("TANH", "LOGISTIC", "TANH"):
        x = m.op(op, [x], (2, 5))
    m.output(x)
    path = tmp_path / "model.tflite"
    path.write_bytes(m.build())
    return path


def test_all_launches_of_the_timed_inferences_are_there(model, device, runtime):
    profile = clgpu_delegate.profile_model(
        model, runs=3, runtime=runtime, device=device, exclude="LOGISTIC"
    )
    assert profile.inferences == len(profile.invokes) == 3
    assert profile.totals.launches == 2
    assert [(node.node, node.op, node.partition) for node in profile.nodes] == [
        (0, "TANH", 0),
        (2, "TANH", 1),
    ]
    assert all(0 < node.device_seconds < 1 for node in profile.nodes)
    assert sum(node.share for node in profile.nodes) == pytest.approx(1)
    totals = profile.totals
    assert totals.cpu_seconds > 0
    assert totals.kernel_seconds < totals.wall_seconds
    for invoke in profile.invokes:
        inside = [launch for launch in profile.launches if launch.inference == invoke.inference]
        assert all(invoke.start <= x.host_start <= x.host_end <= invoke.end for x in inside)


def test_delegate_has_the_profile_of_its_own_inferences(runtime):
    delegate = clgpu_delegate.load(profile=True)
    interpreter = make_interpreter(runtime, models.chain(), [delegate])
    interpreter.allocate_tensors()
    with pytest.raises(ClgpuError, match=r"call invoke\(\) first"):
        delegate.profile()
    for _ in range(2):
        interpreter.invoke()
    profile = delegate.profile()
    assert profile.inferences == 2
    assert profile.invokes == ()
    assert "2 kernel launches" in " ".join(str(profile).split())  # a device's name may fill a line


def test_command_writes_what_it_is_told(model, tmp_path, capsys):
    names = {"html": "r.html", "trace": "t.json", "csv": "n.csv"}
    words = [word for k, name in names.items() for word in (f"--{k}", str(tmp_path / name))]
    assert exits.answer(cli.app, ["profile", str(model), "--runs", "2", "--json", *words]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["inferences"] == 2
    assert "<!DOCTYPE html>" in (tmp_path / "r.html").read_text()
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert (tmp_path / "n.csv").read_text().count("\n") == 1 + len(data["nodes"])
    assert exits.answer(cli.app, ["profile", str(model), "--runs", "1"]) == 0
    assert "TANH" in capsys.readouterr().out


def test_nothing_to_profile_is_said(tmp_path, model, monkeypatch):
    with pytest.raises(OptionError, match="runs is 0"):
        clgpu_delegate.profile_model(model, runs=0)
    with pytest.raises(ClgpuError, match="no node of the model runs on the device"):
        clgpu_delegate.profile_model(model, exclude="TANH,LOGISTIC")
    monkeypatch.setattr(plotting, "_canvas", lambda: (_ for _ in ()).throw(DependencyError("no")))
    with pytest.raises(DependencyError):  # before the model is read
        clgpu_delegate.profile_model(tmp_path / "nowhere", plot=tmp_path / "p.png")

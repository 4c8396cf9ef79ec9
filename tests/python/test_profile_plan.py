"""The profile of a model that follows a plan of precisions has what was measured for the plan."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import Options, PrecisionChange, PrecisionPlan, PrecisionPoint, Profile, cli
from clgpu_delegate import cache as cache_module
from clgpu_delegate.cli import exits
from clgpu_delegate.profiling import page
from tests.model_maker import ModelMaker
from tests.python import made_profile

SHAPE = (1, 8, 8, 4)


def point(name: str, seconds: float, error: float) -> PrecisionPoint:
    return PrecisionPoint(name, error=error, seconds=seconds)


def front(*points: tuple[float, float]) -> list[str]:
    """Names of the points in the front, which are their positions."""
    named = tuple(point(str(i), *each) for i, each in enumerate(points))
    return [found.name for found in made_profile.plan(points=named).front()]


@pytest.mark.parametrize(
    ("points", "best"),
    [
        ([], []),
        ([(3, 0.0), (1, 0.2), (2, 0.1)], ["1", "2", "0"]),
        ([(3, 0.0), (1, 0.2), (2, 0.2)], ["1", "0"]),
        ([(3, 0.0), (3, 0.1)], ["0"]),
        ([(3, 0.1), (3, 0.1)], ["0", "1"]),
        ([(0, 0.0), (0, 0.0), (0, 0.1)], ["0", "1"]),
        ([(1, math.inf), (2, 0.5)], ["1"]),
        ([(1, math.inf)], []),
    ],
    ids=[
        "none", "all", "same error", "same time", "equal", "no times", "infinite",
        "infinite only",
    ],
)  # fmt: skip
def test_front_has_what_no_other_point_beats(points, best):
    assert front(*points) == best


def test_profile_without_a_plan_has_none():
    for profile in (made_profile.profile(), made_profile.profile(source="")):
        assert profile.plan is None
        assert profile.to_dict()["plan"] is None
        assert page.data(profile)["plan"] is None


def test_fields_of_the_plan_are_plain_data():
    plan = made_profile.plan()
    profile = made_profile.profile(source="given", plan=plan)
    assert profile.plan is plan
    assert profile.to_dict()["plan"] == page.data(profile)["plan"]
    fields = json.loads(json.dumps(profile.to_dict()["plan"], allow_nan=False))
    assert (fields["source"], fields["device"], fields["complete"]) == ("given", "Device", False)
    assert (fields["max_error"], fields["metric"]) == (1e-3, made_profile.HOSTILE)
    assert (fields["error"], fields["samples"], fields["held_back"]) == (8e-4, 4, 2)
    assert [(entry["name"], entry["front"]) for entry in fields["points"]] == [
        ("fp32", True), ("fp16", True), ("mixed", True),
    ]  # fmt: skip
    assert [entry["error"] for entry in fields["changes"]] == [5e-4, 0.0, None, 3e-3]
    assert fields["changes"][0] == {
        "op": "CONV_2D", "kind": "results", "tensors": [1], "nodes": [], "error": 5e-4,
        "seconds": 60e-6, "bytes": 200, "taken": 1, "measured": True, "reason": "", "why": "",
        "layers": [0],
    }  # fmt: skip


def test_changes_name_the_nodes_whose_kernels_they_concern():
    def layers(kind: str, tensors: tuple[int, ...], nodes: tuple[int, ...] = ()) -> list[int]:
        change = PrecisionChange("X", kind, tensors, nodes, 1e-3, 0.0, 0, taken=0)
        plan = made_profile.plan(changes=(change,))
        (entry,) = made_profile.profile(source="given", plan=plan).to_dict()["plan"]["changes"]
        return entry["layers"]

    assert layers("results", (1,)) == [0]
    assert layers("results", (4,)) == [2], "node 3 is fused into node 2"
    assert layers("results", (1, 3, 4)) == [0, 2]
    assert layers("weights", (5,)) == layers("int8", (5,)) == [0]
    assert layers("bfloat", (1,)) == [0], "a result belongs to the node that writes it"
    assert layers("bfloat", (5,)) == layers("several", (5,)) == [0]
    assert layers("several", (4,)) == [2]
    assert layers("factors", (), (3, 0)) == [0, 2]
    assert layers("results", (99,)) == layers("factors", (), (99,)) == []


def test_plan_of_which_only_the_text_is_known_has_its_bound():
    fields = made_profile.profile(source="kept").to_dict()["plan"]
    assert (fields["source"], fields["max_error"]) == ("kept", 1e-3)
    assert fields["metric"] == "relative L2"
    assert fields["points"] == fields["changes"] == []
    assert fields["device"] is fields["error"] is fields["complete"] is None


def test_plan_without_measurements_has_empty_lists():
    plan = made_profile.plan(points=(), changes=(), error=math.inf)
    fields = made_profile.profile(source="given", plan=plan).to_dict()["plan"]
    assert fields["points"] == fields["changes"] == []
    assert fields["error"] is None
    assert plan.front() == ()


def test_profiles_with_and_without_a_plan_stand_side_by_side(tmp_path):
    with_plan = made_profile.profile(source="given", plan=made_profile.plan())
    without = made_profile.profile()
    for now, before in ((with_plan, without), (without, with_plan), (with_plan, with_plan)):
        path = tmp_path / "before.json"
        path.write_text(json.dumps(before.to_dict()))
        change = now.against(path)
        assert change == now.against(before)
        assert all(each.difference == 0 for each in change.nodes)
    old = {key: value for key, value in without.to_dict().items() if key != "plan"}
    assert with_plan.against(old).nodes, "of an earlier version"


def test_page_has_the_plan_as_data_only():
    profile = made_profile.profile(source="given", plan=made_profile.plan())
    text = page.text(profile)
    assert text.count("</script>") == 2
    content = text.split('id="data">')[1].split("</script>")[0]
    assert "Infinity" not in content
    assert json.loads(content)["plan"] == json.loads(json.dumps(profile.to_dict()["plan"]))


def test_options_keep_the_plan_beside_its_text(tmp_path):
    plan = made_profile.plan()
    plan.save(tmp_path / "plan.json")
    for value in (plan, tmp_path / "plan.json", str(tmp_path / "plan.json")):
        options = Options(precision=value)
        assert (options.plan, options.precision) == (plan, plan.text)
        assert type(options.as_delegate_dict()["precision"]) is str
        assert dataclasses.replace(options, profile=True).plan == plan
        assert copy.deepcopy(options).plan == pickle.loads(pickle.dumps(options)).plan == plan
        assert options == Options(precision=plan.text)
    assert Options(precision=plan.text).plan is Options(precision="mixed").plan is None


# With a device.


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A convolution and an activation of its own."""
    m = ModelMaker()
    x = m.input("x", SHAPE)
    weights = m.constant(np.random.default_rng(1).standard_normal((4, 3, 3, 4), np.float32))
    x = m.op(
        "CONV_2D", [x, weights, m.constant(np.ones(4, np.float32))], SHAPE, padding="SAME",
        stride_w=1, stride_h=1, fused_activation_function="NONE",
    )  # fmt: skip
    m.output(m.op("MEAN", [m.op("TANH", [x], SHAPE), m.constant(np.int32([1, 2]))], (1, 4)))
    path = tmp_path / "model.tflite"
    path.write_bytes(m.build())
    return str(path)


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "cache.sqlite")


def tune(model: str, **options: Any) -> PrecisionPlan:
    samples = np.random.default_rng(5).random((4, *SHAPE), np.float32)
    return clgpu_delegate.tune(model, samples, max_error=0.1, prefer="memory", **options)


def recorded(model: str, **options: Any) -> Profile:
    return clgpu_delegate.profile_model(model, runs=1, **options)


def test_profile_has_the_plan_that_was_given_or_kept(model, cache):
    plan = tune(model, cache=cache)
    assert plan.points
    assert plan.changes
    given = recorded(model, precision=plan, cache="off")
    kept = recorded(model, precision="mixed", cache=cache)
    text = recorded(model, precision=plan.text, cache=cache)
    assert given.plan == kept.plan == text.plan == plan
    sources = [profile.to_dict()["plan"]["source"] for profile in (given, kept, text)]
    assert sources == ["given", "kept", "given"]
    profiled = {node.node for node in given.nodes}
    changes = given.to_dict()["plan"]["changes"]
    assert all(change["layers"] and profiled.issuperset(change["layers"]) for change in changes)
    assert recorded(model, precision="fp16", cache=cache).to_dict()["plan"] is None
    assert recorded(model, precision="mixed", cache="off").to_dict()["plan"] is None
    assert recorded(model, precision=plan.text, cache="off").plan is None


def test_measurements_that_are_lost_or_damaged_leave_the_plan(model, cache):
    plan = tune(model, cache=cache)
    (measured,) = [e for e in cache_module.entries(cache) if e.label.endswith("measurements")]
    assert measured.kind == "precision"
    store = clgpu_delegate._core.Store(cache)
    other = json.dumps(dataclasses.replace(plan, half=(99,)).to_dict()).encode()
    for content in (b"", b"[]", b"\xff", b"[" * 100_000, other):
        store.put("precision", measured.key, content)
        profile = recorded(model, precision="mixed", cache=cache)
        assert profile.plan is None
        assert profile.to_dict()["plan"]["source"] == "kept"


def test_command_takes_a_plan_file(model, cache, tmp_path, capsys):
    plan = tune(model, cache=cache)
    plan.save(tmp_path / "plan.json")
    words = ["profile", model, "--runs", "1", "--json", "--precision", str(tmp_path / "plan.json")]
    html, before = tmp_path / "report.html", tmp_path / "before.json"
    assert exits.answer(cli.app, [*words, "--html", str(html)]) == 0
    before.write_text(capsys.readouterr().out)
    fields = json.loads(before.read_text())["plan"]
    assert [entry["name"] for entry in fields["points"]] == [each.name for each in plan.points]
    assert '"front":true' in html.read_text()
    assert exits.answer(cli.app, [*words, "--against", str(before)]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"]

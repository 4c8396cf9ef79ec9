"""``python -m bench guard``: its baselines, builds of other commits, and the smallest network."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import clgpu_delegate
from bench import guard, guard_baseline, guard_builds, guard_plans, guard_session
from bench.__main__ import app
from bench.guard_clock import Clock, Work
from bench.guard_items import Item, all_items
from bench.guard_report import Row
from bench.guard_session import Build, Measured, Result, Session, Worker
from bench.guard_worker import SKETCH, Server
from bench.plans import models, snapshots, text
from clgpu_delegate import Explanation, _core

ONLY = ("lenet5 b1 fp32",)
ROWS = [Row("lenet5 b1 fp32", 0.5, 0.01, 0.03, 9, 8, 13, 13, notes=("a kernel",))]
FEW = ["--rounds", "2", "--processes", "1", "--no-plans"]


@pytest.fixture
def first() -> clgpu_delegate.Device:
    """A device of this machine."""
    return clgpu_delegate.devices()[0]


@pytest.fixture
def other(first) -> clgpu_delegate.Device:
    """A device that this machine does not have."""
    return dataclasses.replace(first, name="Fast GPU")


def write(path: Path, device: clgpu_delegate.Device, rows: list[Row] = ROWS) -> str:
    guard_baseline.write(
        path, device, rows, work=(4096, 100), command="guard", commit="abc", options={}
    )
    return path.read_text()


def invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["guard", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


# ---------------------------------------------------------------------- baselines


def test_baseline_is_found_by_its_device(tmp_path, first, other):
    write(tmp_path / "a.json", other)
    write(tmp_path / "b.json", first)
    found = guard_baseline.find(first, folder=tmp_path)
    assert found.path.name == "b.json"
    assert (found.commit, found.work, found.rows) == ("abc", (4096, 100), ROWS)
    assert found.device["driver"] == first.driver_version
    assert guard_baseline.target(first, folder=tmp_path) == found.path


def test_second_run_of_a_commit_tells_the_noise_between_runs(tmp_path, first):
    path = tmp_path / "a.json"
    write(path, first)
    baseline = guard_baseline.read(path)
    assert baseline.is_same(first, "abc")
    assert not baseline.is_same(first, "abd")
    assert not baseline.is_same(dataclasses.replace(first, driver_version="2"), "abc")
    slower = dataclasses.replace(ROWS[0], ratio=0.7, ms=0.05)
    (row,) = guard_baseline.joined([slower], baseline.rows)
    assert (row.ratio, row.ms) == pytest.approx((0.6, 0.04))
    assert row.noise == pytest.approx(1 / 6)
    assert row.rounds == 18
    for other in (
        dataclasses.replace(slower, launches=9),
        dataclasses.replace(slower, error="no"),
        dataclasses.replace(slower, item="another"),
    ):
        assert guard_baseline.joined([other], baseline.rows) == [other]


def test_missing_baseline_is_a_sentence(tmp_path, first):
    with pytest.raises(guard_baseline.MissingError, match=r"make one .* --write"):
        guard_baseline.find(first, folder=tmp_path)
    name = guard_baseline.target(first, folder=tmp_path).name
    assert name == f"{guard_baseline.slug(first)}.json"
    assert list(tmp_path.iterdir()) == []


def test_slug_is_made_of_words(first):
    nvidia = dataclasses.replace(first, name="NVIDIA H200", platform="NVIDIA CUDA")
    assert guard_baseline.slug(nvidia) == "nvidia-h200-cuda"


def test_baseline_of_another_device_is_refused(tmp_path, other):
    path = tmp_path / "mine.json"
    before = write(path, other)
    for arguments in ((), ("--write",)):
        code, output = invoke("--baseline", path, "--only", ONLY[0], *arguments)
        assert code == 2
        assert "is the baseline of Fast GPU" in output
        assert path.read_text() == before


@pytest.mark.parametrize("arguments", [(), ("--write",)])
def test_file_that_is_no_baseline_is_refused(tmp_path, arguments):
    path = tmp_path / "notes.json"
    path.write_text("{}")
    code, output = invoke("--baseline", path, "--only", ONLY[0], *arguments)
    assert code == 2
    assert "notes.json" in re.sub(r"[\s│]", "", output)  # a long path is wrapped
    assert path.read_text() == "{}"


def test_rows_of_another_time_are_refused(tmp_path, first):
    path = tmp_path / "old.json"
    path.write_text(write(path, first).replace('"launches"', '"starts"'))
    with pytest.raises(ValueError, match="is no baseline of bench guard: its rows"):
        guard_baseline.read(path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "lenet6"], "nothing that is guarded is called 'lenet6'"),
        (["--baseline", "none/x.json"], "there is no"),
        (["--write", "--baseline", "none/x.json"], "there is no folder for"),
        (["--write", "--only", "lenet5"], "a baseline has all items"),
        (["--write", "--quick"], "a baseline has all items"),
        (["--markdown", "none/x.md"], "there is no folder for"),
        (["--json", "none/x.json"], "there is no folder for"),
    ],
)
def test_mistake_is_a_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output = invoke(*arguments)
    assert code == 2
    assert words in output
    assert list(tmp_path.iterdir()) == []


def test_run_without_a_baseline_says_how_to_make_one(tmp_path, first):
    request = guard.Request(device=str(first.index), only=ONLY[0], folder=tmp_path)
    with pytest.raises(ValueError, match=r"there is no baseline for .* --write"):
        guard.run(request)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- other commits


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.com"]
    command = ["git", "-C", str(root), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def repository(root: Path, files: dict[str, str]) -> str:
    """Make a repository of one commit, and return its hash."""
    root.mkdir()
    git(root, "init", "-q")
    for name, content in files.items():
        (root / name).write_text(content)
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "Begin")
    return git(root, "rev-parse", "HEAD")


BROKEN = {
    "pyproject.toml": """
[build-system]
requires = ["scikit-build-core"]
build-backend = "scikit_build_core.build"
[project]
name = "clgpu_delegate"
version = "0"
""",
    "CMakeLists.txt": """
cmake_minimum_required(VERSION 3.20)
project(clgpu_delegate LANGUAGES CXX)
add_library(_core MODULE core.cpp)
install(TARGETS _core DESTINATION clgpu_delegate)
""",
    "core.cpp": "int fine() { return 0; }\nint broken() { return no_such_name; }\n",
}


def test_commit_that_does_not_exist_is_a_sentence(tmp_path):
    code, output = invoke("--against", "no-such-commit", "--only", ONLY[0])
    assert code == 2
    assert "there is no commit 'no-such-commit'" in output or "there is no git here" in output
    root = tmp_path / "repository"
    repository(root, {"README": "Hello."})
    with pytest.raises(guard_builds.CommitError, match="no commit 'v1' in repository"):
        guard_builds.resolve("v1", root)
    with pytest.raises(guard_builds.CommitError, match="there is no git here"):
        guard_builds.resolve("v1", tmp_path)


@pytest.mark.skipif(
    importlib.util.find_spec("scikit_build_core") is None, reason="builds need scikit-build-core"
)
def test_commit_that_does_not_build_is_a_sentence(tmp_path, first):
    root, kept = tmp_path / "repository", tmp_path / "builds"
    commit = repository(root, BROKEN)
    request = guard.Request(
        device=str(first.index), against=("HEAD",), only=ONLY[0], root=root, builds=kept,
        folder=tmp_path,
    )  # fmt: skip
    with pytest.raises(ValueError, match=f"^{commit[:10]} does not build: ") as caught:
        guard.run(request)
    assert "core.cpp:2" in str(caught.value)
    assert "no_such_name" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(kept.iterdir()) == []


def test_last_error_is_the_compiler_s(tmp_path):
    source = tmp_path / "source" / "a.cpp"
    output = f"cc a.cpp\n{source}:3:1: error: expected ';'\nninja: stopped\nERROR: Failed\n"
    assert guard_builds.last_error(output, tmp_path) == "a.cpp:3:1: error: expected ';'"
    assert guard_builds.last_error("one\ntwo\n\n", tmp_path) == "two"
    assert guard_builds.last_error("", tmp_path) == "pip said nothing"


# ---------------------------------------------------------------------- measuring


def clock_of(device: clgpu_delegate.Device) -> dict[str, object]:
    return {"library": device.library, "platform": device.platform, "device": device.name}


def device_of(index: str) -> clgpu_delegate.Device:
    return next(d for d in clgpu_delegate.devices() if str(d.index) == index)


def test_calibration_kernel_runs_on_every_device(device):
    found = device_of(device)
    clock = Clock(**clock_of(found), work=Work(1024, 16))
    assert clock.seconds() > 0
    assert clock.launch_seconds(rounds=1) > 0
    with pytest.raises(RuntimeError, match="no device 'none'"):
        Clock(**{**clock_of(found), "device": "none"})


@pytest.mark.slow
def test_guard_writes_a_baseline_and_fails_on_a_doctored_one(device, tmp_path):
    path, note, data = (tmp_path / name for name in ("own.json", "note.md", "data.json"))
    common = ["--device", device, "--only", ONLY[0], "--baseline", path, *FEW]
    code, output = invoke(*common, "--write", "--commit", "abc")
    assert code == 0, output
    assert "passed: none of 1 items is worse" in output
    (row,) = guard_baseline.read(path).rows
    assert min(row.ratio, row.ms, row.launches) > 0
    assert (row.claimed, row.nodes, row.rounds) == (13, 13, 2)
    assert len(row.sketch) == SKETCH
    assert row.sketch != (0.0,) * SKETCH

    # Far apart, so that load on this machine does not matter.
    doctored = dataclasses.replace(
        row, ratio=row.ratio / 1e6, launches=row.launches - 1,
        sketch=tuple(1.1 * number for number in row.sketch),
    )  # fmt: skip
    missing = dataclasses.replace(row, item="lenet5 b1 fp32 gone")
    write(path, device_of(device), [doctored, missing])
    code, output = invoke(*common, "--markdown", note, "--json", data)
    assert code == 1, output
    assert "FAILED: 2 of 2 items" in output
    assert f"more launches: {row.launches - 1} -> {row.launches}" in note.read_text()
    changes = json.loads(data.read_text())["changes"]["baseline"]
    slower, results, _ = changes[0]["problems"]
    assert slower.startswith("slower: ")
    assert results == "other results: they differ by 0.091 of their norm"
    assert changes[1]["problems"] == ["not measured"]


@pytest.mark.parametrize(
    ("alone", "options", "verdict"),
    [
        (0.5, [], "passed: none of 1 items is worse"),
        (1.5, [], "FAILED: 1 of 1 items"),
        (0.5, ["--write", "--commit", "def"], "passed: none of 1 items is worse"),
        (1.5, ["--write", "--commit", "def"], "written, and 1 of 1 items are worse than in the"),
    ],
)
def test_slower_item_that_launches_bound_is_measured_again_alone(
    alone, options, verdict, first, tmp_path, monkeypatch
):
    launches, calls = 8, []

    def measured(request: guard.Request, items: list[Item], *_: Any, **__: Any) -> Measured:
        calls.append((request.time_limit, [item.name for item in items]))
        facts = {"launches": launches, "claimed": 13, "nodes": 13, "notes": [], "sketch": []}
        ratio = 2.0 if len(calls) == 1 else alone
        samples = dict.fromkeys(range(5), (ratio * 0.03, 0.03))
        clock = {"seconds": 0.03, "launch_seconds": 1.0, "work": [4096, 100]}
        results = {guard.THIS: {items[0].name: Result(samples, facts)}}
        return Measured(results, clock, {}, 5, {"loading": 1.0, "all": 1.0})

    monkeypatch.setattr(guard, "_measure", measured)
    path = tmp_path / "own.json"
    write(path, first)
    code, output = invoke(
        "--device", first.index, "--only", ONLY[0], "--baseline", path, *FEW, "--scale", "0.125",
        *options,
    )  # fmt: skip
    assert code == verdict.startswith("FAILED"), output
    assert verdict in output
    assert f"against the {'replaced ' if options else ''}baseline" in output
    again = f"measured again alone: lenet5 b1 fp32 4.00 -> {2 * alone:.2f}"
    assert f"bound by launches, and {again}" in output
    assert calls == [(0.0, list(ONLY)), (60.0, list(ONLY))]
    (row,) = guard_baseline.read(path).rows
    assert row.ratio == pytest.approx(alone if options else ROWS[0].ratio)


def copied_package(folder: Path) -> None:
    """Put a copy of the package into the folder of a commit's build."""
    shutil.copytree(
        Path(clgpu_delegate.__file__).parent, folder / "clgpu_delegate",
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    shutil.copy(_core.__file__, folder / "clgpu_delegate")


@pytest.mark.slow
def test_commits_are_measured_in_turns(first, tmp_path):
    root, kept = tmp_path / "repository", tmp_path / "builds"
    commit = repository(root, {"README": "Hello."})
    copied_package(kept / f"{commit[:12]}-{sys.implementation.cache_tag}")
    request = guard.Request(
        device=str(first.index), against=("HEAD", commit), only=ONLY[0], root=root, builds=kept,
        folder=tmp_path, rounds=2, processes=1, plans=False,
    )  # fmt: skip
    outcome = guard.run(request)
    (change,) = outcome.changes.pop(commit[:10])
    assert outcome.changes == {}
    assert change.ratio is not None
    assert change.now.launches == change.then.launches > 0
    assert not any("slower" not in problem for problem in change.problems)


def session(
    tmp_path: Path, device: clgpu_delegate.Device, items: list[Item], **options: Any
) -> Session:
    clock = {**clock_of(device), "position": 0, "work": [1024, 16]}
    usual = {"limit_s": 60, "rounds": 1, "processes": 1}
    return Session(
        items, [Build("this")], device=str(device.index), clock=clock, folder=tmp_path,
        **{**usual, **options},
    )  # fmt: skip


def test_what_fails_is_a_row_and_the_others_go_on(first, tmp_path):
    good = Item("good", "network lenet5 1", {"precision": "fp32"})
    items = [
        Item("model", "network lenet6 1", {}),
        Item("option", good.model, {"engines": "conv2d=no_such_engine"}),
        good,
    ]
    results = session(tmp_path, first, items).run().results["this"]
    assert "lenet6" in results["model"].error
    assert "no_such_engine" in results["option"].error
    assert results["good"].error == ""
    assert list(results["good"].samples) == [0]


@pytest.mark.parametrize("during", ["prepare", "hold", "time"])
def test_process_that_ends_costs_one_item(first, tmp_path, monkeypatch, during):
    ask = Worker.ask

    def fatal(self: Worker, do: str, timeout: float, **request: Any) -> dict[str, Any]:
        if do == during and "bad" in (request.get("name"), request.get("item", {}).get("name")):
            self._process.kill()
            self._process.wait()
        return ask(self, do, timeout, **request)

    monkeypatch.setattr(Worker, "ask", fatal)
    items = [Item(name, "network lenet5 1", {"precision": "fp32"}) for name in ("bad", "good")]
    results = session(tmp_path, first, items).run().results["this"]
    assert results["bad"].error == "the process ended with signal 9"
    assert results["good"].error == ""
    assert list(results["good"].samples) == [0]


def test_item_that_hangs_takes_the_time_of_few(first, tmp_path, monkeypatch):
    ask, waited = Worker.ask, []

    def stopped(self: Worker, do: str, timeout: float, **request: Any) -> dict[str, Any]:
        if do == "prepare" and request["item"]["name"] == "bad":
            waited.append(timeout)
            self._process.send_signal(signal.SIGSTOP)
            timeout = 1
        return ask(self, do, timeout, **request)

    monkeypatch.setattr(Worker, "ask", stopped)
    items = [Item(name, "network lenet5 1", {"precision": "fp32"}) for name in ("bad", "good")]
    results = session(tmp_path, first, items, limit_s=600).run().results["this"]
    assert waited == [guard_session._PREPARING_S]
    assert results["bad"].error.startswith("no answer within 1 s")
    assert list(results["good"].samples) == [0]


def test_items_are_loaded_for_each_timing_where_memory_is_short(first, tmp_path, monkeypatch):
    monkeypatch.setattr(guard_session, "_MEMORY", 0.0)
    item = Item("good", "network lenet5 1", {"precision": "fp32"})
    result = session(tmp_path, first, [item]).run().results["this"]["good"]
    assert result.error == ""
    assert list(result.samples) == [0]


def test_time_limit_ends_a_run_early(first, tmp_path):
    item = Item("good", "network lenet5 1", {"precision": "fp32"})
    late = session(tmp_path, first, [item], limit_s=0).run().results["this"]["good"]
    assert late.error == "not loaded within the time limit"


def test_items_that_were_loaded_in_time_are_timed(first, tmp_path, monkeypatch):
    ask, asked = Worker.ask, []

    def slow(self: Worker, do: str, timeout: float, **request: Any) -> dict[str, Any]:
        asked.append((do, request.get("name") or request.get("item", {}).get("name")))
        answer = ask(self, do, timeout, **request)
        if do == "time":
            monkeypatch.setattr(one, "_limit_s", 0.0)
        return answer

    monkeypatch.setattr(Worker, "ask", slow)
    items = [Item(name, "network lenet5 1", {"precision": "fp32"}) for name in ("first", "late")]
    one = session(tmp_path, first, items, limit_s=600, rounds=9)
    results = one.run().results["this"]
    assert list(results["first"].samples) == [0]
    assert results["late"].error == "not loaded within the time limit"
    assert [what for what in asked if what[0] in ("hold", "time")] == [
        ("hold", "first"), ("time", "first"),
    ]  # fmt: skip


# ---------------------------------------------------------------------- plans


def test_plans_are_compared_with_the_kept_ones(first, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    item = Item("lenet5 b1 fp32", "network lenet5 1", {"precision": "fp32"})
    results = session(tmp_path, first, [item], plans=True).run().results["this"]
    assert guard_plans.compare("mine", [item], results) == []  # none is kept

    lines = text.plan_text(Explanation(results[item.name].facts["plan"]))
    path = snapshots.path_of("mine", "lenet5")
    path.parent.mkdir()
    path.write_text(text.snapshot_text(["head"], {"fp32, batch 1": lines}))
    assert guard_plans.compare("mine", [item], results) == []
    assert guard_plans.compare("mine", [item], {item.name: Result(error="no")}) == []

    path.write_text(path.read_text().replace("nodes 13 of 13", "nodes 12 of 13"))
    (change,) = guard_plans.compare("mine", [item], results)
    assert change.problems[0].startswith("another plan: - nodes 12 of 13")
    assert "+ nodes 13 of 13" in change.problems[0]


def test_every_network_has_its_kept_plan():
    items = all_items(gpu=True, tensor_cores=True)
    found = {i.name: guard_plans.snapshot_of(i) for i in items}
    assert {name for name, where in found.items() if where is None} == {
        i.name for i in items if i.model.startswith(("layer", "decoder", "mixture"))
    }
    for where in filter(None, found.values()):
        assert where[1] in [way.title for way in models.ways(where[0])]


# ---------------------------------------------------------------------- language models


@pytest.mark.parametrize(("words", "arrays"), [("token int4", 2), ("prompt fp16", 1)])
def test_caches_of_decoders_stay_on_the_device(words, arrays, tmp_path):
    """The last of them counts as a result, beside the logits."""
    items = all_items(gpu=False, tensor_cores=False)
    (item,) = (i for i in items if i.name == f"decoder-0.1b x0.25 {words}")
    server = Server("0", str(tmp_path / "cache.sqlite"), str(tmp_path))
    server.build(item.model)
    facts = server.hold(dataclasses.asdict(item))
    assert facts["claimed"] == facts["nodes"]
    assert len(facts["sketch"]) == arrays * SKETCH
    assert all(any(facts["sketch"][i : i + SKETCH]) for i in range(0, arrays * SKETCH, SKETCH))
    kernels = server._held[item.name].delegate.launch_times(1)
    assert not any(launch.kernel == "dynamic_update_slice_select" for launch in kernels)
    server.drop(item.name)

"""The plans of networks for recorded devices equal the stored ones."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re

import pytest
from typer.testing import CliRunner

from bench.__main__ import app
from bench.plans import emulated, models, paper, profile, snapshots, text
from bench.plans.making import Planner
from bench.plans.profile import KernelFacts, ProfileError
from tests.limits.build import LayerError
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

H200 = "nvidia_h200"
LONG_FIRST = sorted(models.NAMES, key=lambda name: "pynet alexnet".find(name.split("_12")[0]) < 0)
QUICK = ("espcn", "lenet5", "mobilenet_v1", "mobilenet_v2", "transformer", "unet")
NETWORKS = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in LONG_FIRST
]


@pytest.fixture(autouse=True)
def _driver():
    try:
        paper.driver()
    except LayerError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("network", NETWORKS)
def test_plans_are_those_that_are_kept(network):
    if network == models.PYNET_12MP and importlib.util.find_spec("ai_edge_litert") is None:
        pytest.skip("tflite_runtime runs out of memory once a delegate has refused PyNET")
    found = [snapshots.find(name) for name in snapshots.profile_names()]
    found = [device for device in found if network in snapshots.networks_of(device)]
    for device, made in zip(found, snapshots.make(network, found)):
        lines = "\n".join(snapshots.differences(network, device, made))
        assert not lines, (
            f"plans of {network} for {device.name} have changed. If that is wanted: "
            f"python -m bench plans --write, and the reason in the commit's message\n{lines}"
        )


def test_every_snapshot_has_a_profile_and_a_network():
    known = {
        snapshots.path_of(name, network)
        for name in snapshots.profile_names()
        for network in snapshots.networks_of(snapshots.find(name))
    }
    assert set(snapshots.FOLDER.rglob("*.txt")) == known


# ------------------------------------------------------------------ they are those of real devices


@pytest.mark.slow
def test_device_on_paper_plans_as_the_real_one(device, tmp_path, monkeypatch):
    monkeypatch.setattr(profile, "FOLDER", tmp_path)
    emulated_one = os.environ.get("CLGPU_LIMITS")
    assert snapshots.find_for(device) in (None, emulated_one)
    facts = tmp_path / "real.json"
    recorded = run_python(
        "import sys; sys.argv[0] = 'bench'; from bench.__main__ import app; app()",
        "facts", str(facts), "lenet5", "--device", device, "--workers", "1",
    )  # fmt: skip
    assert_succeeds(recorded)
    real = profile.load(facts)
    assert not profile.differences(real, device)
    assert snapshots.find_for(device) in ("real", emulated_one)
    other = dataclasses.replace(real, device={**real.device, "CL_DEVICE_MAX_COMPUTE_UNITS": 77})
    (difference,) = profile.differences(other, device)
    assert re.fullmatch(r"CL_DEVICE_MAX_COMPUTE_UNITS is \d+, and 77 in the profile", difference)
    (planned,) = paper.make(["lenet5"], [real])["lenet5"]
    planner = Planner(models.Models("lenet5"), device)
    for way in models.ways("lenet5"):
        assert planned.blocks[way.title] == text.plan_text(planner.plan(way))
    assert not planned.unknown


@pytest.mark.parametrize(
    "network", ["lenet5", pytest.param("mobilenet_v1", marks=pytest.mark.slow), "transformer"]
)
def test_plans_do_not_depend_on_values_of_weights_and_ranges(network):
    found = [snapshots.find(H200), snapshots.find("mali_g78")]
    real = paper.make([network], found, real=True)[network]
    plans = paper.make([network], found)[network]
    assert [made.blocks for made in real] == [made.blocks for made in plans]


# ------------------------------------------------------------------ they catch mistakes


def with_kernels(change):
    """The H200 with a function applied to the facts of each kernel."""
    device = snapshots.find(H200)
    kernels = {key: change(facts) for key, facts in device.kernels.items()}
    return dataclasses.replace(device, kernels=kernels)


def test_kernels_refused_for_their_local_memory_show():
    # A check once refused them, although they run: the driver's answer includes its own bytes.
    limit = snapshots.find(H200).device["CL_DEVICE_LOCAL_MEM_SIZE"]
    refusing = with_kernels(lambda facts: facts._replace(is_refused=facts.local_bytes > limit))
    assert any(facts.is_refused for facts in refusing.kernels.values())
    (made,) = snapshots.make("mobilenet_v2", [refusing])
    lines = snapshots.differences("mobilenet_v2", refusing, made)
    gone = [line for line in lines if line.startswith("-  conv2d/tensor_gemm_")]
    why = "does not work on this device: clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES"
    notes = [line for line in lines if line.startswith("+  note: kernel conv2d/") and why in line]
    assert len(gone) > 10
    assert notes
    assert "tf32, batch 16" in lines


def test_smaller_work_groups_show():
    small = with_kernels(lambda facts: facts._replace(work_group=32))
    (made,) = snapshots.make("lenet5", [small])
    assert any("work-groups" in line for line in snapshots.differences("lenet5", small, made))


def test_kernel_that_does_not_build_shows():
    none = with_kernels(lambda _: KernelFacts(0, 0))
    (made,) = snapshots.make("lenet5", [none])
    lines = snapshots.differences("lenet5", none, made)
    assert any("the device profile says that it does not build" in line for line in lines)


def test_kernels_without_facts_have_the_limits_of_the_device_and_are_counted():
    recorded = snapshots.find(H200)
    unknown = dataclasses.replace(recorded, kernels={})
    (without,) = paper.make(["lenet5"], [unknown])["lenet5"]
    # Those that have changed since may not be recorded yet.
    limits = KernelFacts(recorded.device["CL_DEVICE_MAX_WORK_GROUP_SIZE"], 0)
    lines = {tuple(line.split("\t")): limits for line in without.unknown}
    assert len(lines.keys() & recorded.kernels.keys()) > len(lines) / 2
    known = dataclasses.replace(recorded, kernels={**lines, **recorded.kernels})
    (with_facts,) = paper.make(["lenet5"], [known])["lenet5"]
    assert with_facts.blocks == without.blocks
    assert without.unknown
    assert not with_facts.unknown
    assert any(line.startswith("conv2d_") and "-DSRC_T=" in line for line in without.unknown)
    (made,) = snapshots.make("lenet5", [unknown])
    assert f"kernels that the profile does not know: {len(without.unknown)}\n" in made


# ------------------------------------------------------------------ profiles


def test_profile_is_written_as_it_was_read(tmp_path):
    for path in profile.FOLDER.glob("*.json"):
        profile.save(profile.load(path), tmp_path / path.name)
        assert (tmp_path / path.name).read_text() == path.read_text()
        assert path.stat().st_size < 300_000


def test_changed_kernels_are_told():
    device = emulated.profile("mali_g78")
    device.sources = profile.source_digests()
    assert snapshots.stale_sources(device) == []
    device.sources = {**device.sources, "softmax/softmax.cl": "another", "gone.cl": "x"}
    assert snapshots.stale_sources(device) == ["softmax/softmax.cl", "gone.cl"]


def test_profiles_answer_all_that_is_asked():
    api = (ROOT / "src_cpp" / "cl" / "api.hpp").read_text()
    asked = (ROOT / "src_cpp" / "cl" / "device.cpp").read_text()
    numbers = dict(re.findall(r"(CL_\w+) = (0x\w+)", api))
    told = {**profile.PLATFORM_QUESTIONS, **profile.DEVICE_QUESTIONS}
    kinds = r"CL_DEVICE_TYPE_|CL_DEVICE_NOT_FOUND"
    questions = set(re.findall(rf"\b(?!{kinds})CL_(?:DEVICE|PLATFORM|DRIVER)_\w+", asked))
    assert questions == set(told)
    assert {name: int(numbers[name], 16) for name in told} == {n: c for n, (c, _) in told.items()}


def test_emulated_profiles_know_all_kernels():
    names = {name for name, _ in emulated.profile("videocore").kernels}
    assert {"conv2d_direct", "instance_norm_factors", "topk_select", "quantize_rescale"} <= names


# ------------------------------------------------------------------ texts


def test_snapshot_is_read_as_it_was_written():
    blocks = {
        "fp32, batch 1": ["  nodes 1", "  peak 2", "  a/b 0"],
        "tf32, batch 1": ["  nodes 1", "  peak 2", "  note: as fp32", "  a/b 0"],
        "fp16, batch 1": ["  no plan: why"],
    }
    written = text.snapshot_text(["head"], blocks)
    assert "tf32, batch 1\n  note: as fp32\n  the same plan as fp32, batch 1\n" in written
    assert text.blocks_of(written) == blocks
    other = text.snapshot_text(["another head", "of two lines"], blocks)
    assert text.digest_of(written) == text.digest_of(other)
    changed = {**blocks, "fp16, batch 1": ["  no plan: another reason"]}
    assert text.digest_of(written) != text.digest_of(text.snapshot_text(["head"], changed))


def test_differences_to_a_plan_of_a_device(monkeypatch, tmp_path):
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    assert "there is no snapshot" in snapshots.differences_to("d", "n", "t", "sentence")[0]
    assert snapshots.digest("d", "n") is None
    path = snapshots.path_of("d", "n")
    path.parent.mkdir()
    path.write_text(text.snapshot_text(["head"], {"t": text.plan_text("sentence")}))
    assert snapshots.digest("d", "n") is not None
    assert snapshots.differences_to("d", "n", "t", "sentence") == []
    assert snapshots.differences_to("d", "n", "t", "other") == [
        "-  no plan: sentence", "+  no plan: other",
    ]  # fmt: skip


# ------------------------------------------------------------------ the command


def run_command(*arguments: str):
    return CliRunner(env={"COLUMNS": "500", "NO_COLOR": "1"}).invoke(app, ["plans", *arguments])


def test_change_is_shown_and_written_only_when_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    path = snapshots.path_of("mali_g78", "lenet5")
    first = run_command("lenet5", "--profile", "mali_g78")
    assert first.exit_code == 1
    assert "there is no snapshot" in first.output
    assert not path.exists()
    assert run_command("lenet5", "--profile", "mali_g78", "--write").exit_code == 0
    kept = path.read_text()
    assert run_command("lenet5", "--profile", "mali_g78").exit_code == 0
    path.write_text(re.sub(r"launches \d+", "launches 99", kept))
    changed = run_command("lenet5", "--profile", "mali_g78")
    assert changed.exit_code == 1
    assert re.search(r"-  nodes .* launches 99\n", changed.output)
    assert re.search(r"\+  nodes .* launches \d+\n", changed.output)
    assert "reason" in changed.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lenet6"], "'lenet6' is no network"),
        (["--profile", "nvidia_h300"], "there is no device profile 'nvidia_h300'; there are"),
        (["--profile", "../profiles/pocl"], "there is no device profile"),
    ],
)
def test_mistakes_are_sentences_and_nothing_is_written(arguments, words, monkeypatch, tmp_path):
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path)
    result = run_command(*arguments, "--write")
    assert result.exit_code == 2
    assert words in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.output).split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged.json is no device profile"),
        (b"\xff\xfe", "damaged.json is no device profile"),
        (b"[]", "damaged.json is no device profile"),
        (b'{"kernels": {}}', "damaged.json is no device profile"),
        (b'{"platform": {}, "device": {}, "probe": {}, "kernels": {}}', "lacks CL_PLATFORM_VERS"),
        (b'{"platform": {}, "device": {}, "probe": {}, "kernels": {"k": {"often": [""]}}}', "k"),
    ],
)
def test_damaged_profile_is_a_sentence(content, words, monkeypatch, tmp_path):
    (tmp_path / "damaged.json").write_bytes(content)
    with pytest.raises(ProfileError, match=words) as failure:
        profile.load(tmp_path / "damaged.json")
    assert "\n" not in str(failure.value)
    monkeypatch.setattr(profile, "FOLDER", tmp_path)
    monkeypatch.setattr(snapshots, "FOLDER", tmp_path / "snapshots")
    result = run_command("lenet5", "--profile", "damaged", "--write")
    assert result.exit_code == 2
    assert not (tmp_path / "snapshots").exists()


def test_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(ProfileError, match=r"cannot read the device profile none\.json"):
        profile.load(tmp_path / "none.json")

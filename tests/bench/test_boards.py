"""Recipes and estimates for boards that are not at hand."""

from __future__ import annotations

import re

import pytest

from bench.boards import command, estimates, machines
from bench.boards.chips import CHIPS
from tests.limits.build import LayerError


@pytest.fixture(scope="module")
def loads():
    try:
        return estimates.loads()
    except LayerError as error:
        pytest.skip(str(error))


def test_page_has_what_the_doctor_says_and_what_the_cost_model_expects(loads, monkeypatch):
    monkeypatch.setattr(estimates, "loads", lambda: loads)
    text = command.PAGE.read_text(encoding="utf-8")
    assert command.rendered(text) == text, "python -m bench boards --write"


def test_command_tells_what_differs(loads, monkeypatch, tmp_path, capsys):
    page = tmp_path / "arm64.md"
    page.write_text(
        "before\n<!-- doctor -->\nold\n<!-- /doctor -->\n<!-- estimates -->\n<!-- /estimates -->\n"
    )
    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setattr(estimates, "loads", lambda: loads)
    assert command.run(write=False) == 1
    assert "-old\n" in capsys.readouterr().out
    assert command.run(write=True) == 0
    assert command.run(write=False) == 0
    page.write_text("no marks")
    with pytest.raises(ValueError, match="needs one pair of marks 'doctor'"):
        command.run(write=True)


def test_last_state_of_each_board_works():
    last = {stage.board: stage for stage in machines.STAGES}
    for board in ("Raspberry Pi 5", "RK3588, vendor's kernel", "AMD GPU", "Jetson Orin"):
        found = machines.findings(last[board])
        assert [f.what for f in found if f.status == "problem"] == []
        assert [f.check for f in found if f.check == "devices"] == ["devices"]


def test_each_fix_is_in_the_recipes():
    text = command.PAGE.read_text(encoding="utf-8").partition("<!-- doctor -->")[0]
    recipes = re.sub(r"\s+", " ", text.partition("## Recipes")[2])
    for stage in machines.STAGES:
        for finding in machines.findings(stage):
            if finding.status == "problem" and finding.check == "GPU driver":
                assert finding.fix.removeprefix("sudo apt install ") in recipes, stage


def test_estimates_follow_the_rates_of_a_chip(loads):
    faster = {
        name: [estimates.milliseconds(chip, made[name]) for chip, made in zip(CHIPS, loads)]
        for name in estimates.NETWORKS
    }
    for name, times in faster.items():
        by_chip = dict(zip((chip.name for chip in CHIPS), times))
        slow, fast = (
            by_chip["Adreno 640, Snapdragon 855"],
            by_chip["Adreno 740, Snapdragon 8 Gen 2"],
        )
        assert slow > 1.5 * fast, name
        # No faster than the arithmetic alone, at the peak rate.
        for chip, made, time in zip(CHIPS, loads, times):
            work = sum(node["flops"] for node in made[name]["nodes"])
            assert time > 1e3 * work / chip.flops
    assert all(chip.published.keys() <= estimates.NETWORKS.keys() for chip in CHIPS)

"""The doctor as a whole: this machine, its output, and that no error stops it."""

from __future__ import annotations

import json
import time

import pytest

import clgpu_delegate
from clgpu_delegate import Finding, cli
from clgpu_delegate.cli import exits
from clgpu_delegate.doctor import child, examination
from clgpu_delegate.doctor.finding import Diagnosis
from clgpu_delegate.doctor.redact import redact, redactor
from tests.doctor.machine import NO_LOADER


@pytest.fixture(scope="module")
def diagnosis():
    return clgpu_delegate.doctor()


def test_this_machine_is_healthy(diagnosis):
    assert diagnosis.healthy, str(diagnosis)
    counts = {}
    for finding in diagnosis.findings:
        counts[finding.check] = counts.get(finding.check, 0) + (finding.status == "ok")
    found = len(clgpu_delegate.devices())
    assert counts["devices"] == counts["test kernel"] == found
    assert counts["test model"] >= found
    for device in clgpu_delegate.devices():
        assert f"{device.index} = {device.name} ({device.platform})" in " ".join(
            str(diagnosis).split()
        )


def test_text_has_the_command_in_one_line():
    fix = "sudo " + "very " * 40 + "long"
    bad = Finding("loader", "problem", "what is wrong", "why", fix, ("detail",))
    text = str(Diagnosis((bad, Finding("cache", "ok", "fine"))))
    assert f"fix:  {fix}\n" in text
    assert text.endswith("1 problem, no warnings.")
    assert Diagnosis((bad,)).to_dict()["findings"][0]["fix"] == fix


@pytest.mark.parametrize(
    ("environ", "loader", "check", "fix"),
    [
        ({}, False, "vendor files", "pip install 'clgpu_delegate[cpu]'"),
        ({"OCL_ICD_VENDORS": "/nowhere"}, True, "variables", "unset OCL_ICD_VENDORS"),
        ({"CLGPU_OPENCL_LIBRARY": "/no.so"}, False, "variables", "unset CLGPU_OPENCL_LIBRARY"),
    ],
)
def test_one_cause_is_one_problem(machine, environ, loader, check, fix):
    if not loader:
        machine.real, machine.env.loader_names = ("list_platforms",), NO_LOADER
    machine.set(**environ)
    found = examination.examine(machine.env).problems
    others = ("runtimes", "package")  # are not installed either
    assert [(f.check, f.fix) for f in found if f.check not in others] == [(check, fix)]


def test_check_that_raises_is_a_finding(machine, monkeypatch):
    def broken(_survey):
        yield Finding("x", "ok", "so far")
        raise RuntimeError("oh")

    monkeypatch.setattr(examination, "CHECKS", (("x", broken),))
    first, second = examination.examine(machine.env).findings
    assert first.what == "so far"
    assert (second.status, second.why) == ("warning", "RuntimeError: oh")


def test_names_of_people_are_left_out(machine):
    machine.env.user = "alice"
    machine.set(HOME="/data/people/alice")
    apply = redactor(machine.env)
    what = "/data/people/alice/.cache/x and /" + "home/bob/y"
    told = redact(Finding("x", "ok", what, "alice-in", details=("by alice",)), apply)
    assert told == Finding("x", "ok", "~/.cache/x and ~/y", "alice-in", details=("by USER",))


@pytest.mark.parametrize(
    ("statuses", "code"), [(("ok", "warning"), exits.DONE), (("ok", "problem"), exits.FINDING)]
)
def test_exit_code_tells_of_problems(monkeypatch, capsys, statuses, code):
    details = ("a longer line", "short")
    found = Diagnosis(tuple(Finding("x", s, "what", "why", "do", details) for s in statuses))
    monkeypatch.setattr("clgpu_delegate.cli.doctor.examine", lambda **_: found)
    assert exits.answer(cli.app, ["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == found.to_dict()
    assert exits.answer(cli.app, ["doctor"]) == code
    text = capsys.readouterr().out
    assert "fix:  do" in text
    assert not any(line.endswith(" ") for line in text.splitlines())


def test_process_that_hangs_with_children_is_ended_in_time(tmp_path):
    script = tmp_path / "probe.py"
    script.write_text(
        "import os, subprocess, time\n"
        "def hang():\n"
        "    print('noise'); subprocess.Popen(['sleep', '100']); time.sleep(100)\n"
        "def abort():\n"
        "    os.abort()\n"
        "def answer(x):\n"
        "    os.write(1, b'noise without an end of line'); return {'x': x}\n"
    )
    start = time.monotonic()
    outcome = child.call(str(script), "hang", environ={"PATH": "/bin:/usr/bin"}, timeout=0.5)
    assert time.monotonic() - start < 50
    assert (outcome.ok, outcome.died) == (False, True)
    assert "did not return" in outcome.failure
    assert child.call(str(script), "abort", environ={}, timeout=50).failure == "crashed (SIGABRT)"
    assert child.call(str(script), "answer", 1, environ={}, timeout=50).answer == {"x": 1}

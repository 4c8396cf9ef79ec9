"""The ARM system is made once, again if its recipe changes, or fails with one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.arm64 import common, system


def make(folder: Path, recipe: str, *, fails: bool = False) -> bool:
    """Whether the folder was made."""
    with common.made_once(folder, recipe, "making it") as part:
        if part is not None:
            part.mkdir()
            (part / recipe).touch()
            if fails:
                raise common.Missing("no network")
    return part is not None


def test_folder_is_made_once_for_a_recipe(tmp_path):
    folder = tmp_path / "parent" / "folder"
    assert make(folder, "a")
    assert not make(folder, "a")
    assert make(folder, "b")
    assert [path.name for path in folder.iterdir()] == ["b"]


def test_folder_whose_making_failed_is_not_there(tmp_path):
    folder = tmp_path / "folder"
    make(folder, "a")
    with pytest.raises(common.Missing):
        make(folder, "b", fails=True)
    assert not folder.exists()
    assert make(folder, "a"), "the old one is gone"


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands in for apt-get; its output is in the file."""
    answer = tmp_path / "answer"
    (tmp_path / "apt-get").write_text(f"#!/bin/sh\ncat {answer}\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv(system.MIRROR_VARIABLE, raising=False)
    return answer


def test_mirror_is_that_of_apt_or_the_one_that_is_named(apt, monkeypatch):
    apt.write_text(
        "Other http://other.test/x/\nDebian http://debian.test/debian-security/\n"
        "Debian http://debian.test/debian/\nDebian http://second.test/debian/\n"
    )
    assert system.mirror() == "http://debian.test/debian/"
    monkeypatch.setenv(system.MIRROR_VARIABLE, "http://named.test/")
    assert system.mirror() == "http://named.test/"


def test_mirror_that_apt_does_not_know_is_asked_for(apt):
    apt.write_text("Ubuntu http://ubuntu.test/ubuntu/\n")
    with pytest.raises(common.Missing, match=f"set {system.MIRROR_VARIABLE} to the address"):
        system.mirror()


def test_missing_compiler_is_one_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "tools.arm64", "build"],
        cwd=common.REPOSITORY, env={**os.environ, "PATH": "/nowhere"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "arm64: aarch64-linux-gnu-g++ is not on the PATH "
        "(Debian and Ubuntu: apt-get install g++-aarch64-linux-gnu)\n"
    )

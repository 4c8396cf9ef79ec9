"""`make wheels` finds Pythons and says what is missing; here, nothing is built."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import pytest

from tests.wheel.test_metadata import PYTHONS
from tools import build_wheel, build_wheels

THIS = sys.executable
OURS = "{}.{}".format(*sys.version_info)
OTHER = "3.9" if OURS != "3.9" else "3.10"


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """A machine whose only Python suits no version; returns a function that adds a program."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))

    def add(path: str, answer: str) -> str:
        """A program that prints what a Python would answer."""
        program = tmp_path / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\necho '{answer}'\n")
        program.chmod(0o755)
        return str(program)

    monkeypatch.setattr(sys, "executable", add("this/python", '"is cpython 3.1"'))
    return add


@pytest.fixture
def made(monkeypatch):
    """Collects what the builder of one wheel is asked for, in place of building."""
    asked = []

    def make(python: str, arch: str, glibc: str, out: Path) -> Path:
        asked.append((python, arch, glibc))
        if "broken" in python:
            raise SystemExit("the compiler does not like it")
        path = out / f"{len(asked)}-{arch}.whl"
        path.write_bytes(bytes(2_000_000))
        return path

    monkeypatch.setattr(build_wheel, "make", make)
    return asked


def test_the_pythons_are_those_of_the_metadata():
    assert build_wheels.supported() == PYTHONS


def test_a_real_python_is_asked_for_its_version():
    assert build_wheels.defect(THIS, OURS) in (None, "has no headers", "has no venv module")
    assert build_wheels.defect(THIS, OTHER) == f"is cpython {OURS}"


def test_a_python_is_looked_for_by_name_in_path_and_in_the_folders_of_pyenv_and_uv(alone):
    named = alone("somewhere/python", "null")
    in_path = alone(f"bin/python{OTHER}", "null")
    older = alone(f"pyenv/versions/{OTHER}.9/bin/python{OTHER}", "null")
    newer = alone(f"pyenv/versions/{OTHER}.10/bin/python{OTHER}", "null")
    of_uv = alone(f"uv/cpython-{OTHER}.2-linux-x86_64-gnu/bin/python{OTHER}", "null")
    expected = [named, sys.executable, in_path, newer, older, of_uv]
    assert build_wheels.candidates(OTHER, [named]) == expected
    assert build_wheels.find(OTHER, [named]) == named
    assert build_wheels.find(OTHER) == in_path


def test_a_python_that_does_not_suit_is_passed_over(alone):
    alone(f"bin/python{OTHER}", "pyenv: command not found")
    good = alone(f"pyenv/versions/{OTHER}.1/bin/python{OTHER}", "null")
    assert build_wheels.find(OTHER) == good


def test_a_python_that_is_missing_is_told_with_what_there_is_instead(alone):
    shim = alone(f"bin/python{OTHER}", "")
    bare = alone(f"pyenv/versions/{OTHER}.1/bin/python{OTHER}", '"has no headers"')
    with pytest.raises(LookupError) as error:
        build_wheels.find(OTHER)
    told = str(error.value)
    assert f"no CPython {OTHER} with headers was found" in told
    assert f"{shim} does not start; {bare} has no headers" in told
    assert f"uv python install {OTHER}" in told


def test_the_others_are_built_where_one_is_missing(alone, made, tmp_path, capsys):
    alone("bin/python3.12", '"is free-threaded"')
    alone("bin/python3.13", "null")
    out = tmp_path / "dist"
    with pytest.raises(SystemExit) as ended:
        build_wheels.main(["--pythons", "3.12,3.13", "--out", str(out), "--glibc", "2.28"])
    assert ended.value.code == 1
    assert [(arch, glibc) for _, arch, glibc in made] == [("x86_64", "2.28"), ("aarch64", "2.28")]
    *_, counted, missing = capsys.readouterr().out.splitlines()
    assert counted == f"2 of 4 wheels, 4.0 MB together, in {out}"
    assert missing.startswith("3.12: no CPython 3.12 with headers was found")


def test_a_wrong_choice_is_told_with_what_is_allowed(capsys):
    for words, told in (
        (["--arch", "s390x"], "'s390x'; allowed: x86_64, aarch64"),
        (["--pythons", "3.13,3.8"], "'3.8'; allowed: 3.9, 3.10"),
    ):
        with pytest.raises(SystemExit):
            build_wheels.main(words)
        assert told in capsys.readouterr().err


def test_an_architecture_is_built_for_all_pythons_before_the_next(alone, made, tmp_path):
    """So a change between them is not compiled twice, and half of a run is of some use."""
    for version in PYTHONS:
        alone(f"bin/python{version}", "null")
    build_wheels.main(["--out", str(tmp_path / "dist")])
    assert [arch for _, arch, _ in made] == ["x86_64"] * 6 + ["aarch64"] * 6
    assert {glibc for *_, glibc in made} == {"2.17"}


@pytest.mark.usefixtures("made")
def test_a_build_that_fails_is_told_at_the_end(alone, tmp_path, capsys):
    alone("pyenv/versions/3.12.1-broken/bin/python3.12", "null")
    alone("bin/python3.13", "null")
    words = ["--out", str(tmp_path), "--pythons", "3.12,3.13", "--arch", "aarch64"]
    with pytest.raises(SystemExit) as ended:
        build_wheels.main(words)
    assert ended.value.code == 1
    counted, failed = capsys.readouterr().out.splitlines()[-2:]
    assert counted.startswith("1 of 2 wheels")
    assert failed == "3.12 aarch64: the compiler does not like it"


@pytest.mark.usefixtures("made")
def test_wheels_of_this_machine_are_tried(alone, tmp_path, capsys, monkeypatch):
    python = alone("bin/python3.13", "null")
    used = []
    monkeypatch.setattr(build_wheels, "use", lambda *pair: used.append(pair) or "works")
    out = ["--out", str(tmp_path / "dist"), "--pythons", "3.13", "--try"]
    build_wheels.main(out)
    ours = [(python, tmp_path / "dist" / f"{i}-{arch}.whl") for i, arch in
            enumerate(build_wheels.ARCHITECTURES, 1) if arch == platform.machine()]  # fmt: skip
    assert used == ours
    assert capsys.readouterr().out.count("wheels: works") == len(ours)

    def fails(*_: object) -> str:
        raise SystemExit("nothing ran on the device")

    monkeypatch.setattr(build_wheels, "use", fails)
    if ours:
        with pytest.raises(SystemExit):
            build_wheels.main(out)
        assert "does not work: nothing ran on the device" in capsys.readouterr().out


def test_it_starts_as_make_starts_it():
    root = Path(__file__).resolve().parents[2]
    tool = [sys.executable, str(root / "tools/build_wheels.py"), "--help"]
    told = build_wheel.run(tool, {"PATH": os.defpath})
    assert "--pythons" in told


def test_a_configuration_that_was_interrupted_begins_anew(tmp_path):
    (tmp_path / "CMakeCache.txt").touch()
    (tmp_path / "build.ninja").touch()
    build_wheel.drop_unfinished(tmp_path)
    assert tmp_path.exists()
    (tmp_path / "build.ninja").unlink()
    build_wheel.drop_unfinished(tmp_path)
    assert not tmp_path.exists()
    build_wheel.drop_unfinished(tmp_path)

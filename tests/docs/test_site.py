"""The site builds without a warning, lists the whole API, and docstrings fit the code."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate import errors

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {field.name for field in dataclasses.fields(clgpu_delegate.Options)}
NOT_IN_THE_API = {"__version__", "errors"}
PUBLIC = sorted(set(clgpu_delegate.__all__) - NOT_IN_THE_API)


def needs(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; the extra 'docs' has it")


def documented_parameters(text: str) -> set[str]:
    """Names in the section Parameters of a numpy docstring."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\w[\w ]*\n-+\n|\Z)", text, re.DOTALL)
    if section is None:
        return set()
    lines = re.findall(r"^(\S[^:\n]*)(?: :.*)?$", section[1], re.MULTILINE)
    return {name.strip().lstrip("*") for line in lines for name in line.split(",")}


def taken_parameters(function: object) -> set[str]:
    names = set(inspect.signature(function).parameters) - {"self", "cls"}
    if names >= OPTIONS:  # a function with ``**settings`` shows them all
        names = names - OPTIONS | {"settings"}
    return names


def public_methods(cls: type) -> list[tuple[str, object]]:
    return [
        (f"{cls.__name__}.{name}", getattr(cls, name))
        for name, value in vars(cls).items()
        if not name.startswith("_") and callable(getattr(value, "__func__", value))
    ]


@pytest.mark.slow
def test_site_builds_without_a_warning(tmp_path):
    needs("mkdocs", "material", "mkdocstrings_handlers.python", "mkdocs_jupyter")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="https?://fonts\.', page), "nothing is fetched"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_a_docstring_and_a_place_in_the_reference(name):
    thing = getattr(clgpu_delegate, name)
    assert inspect.getdoc(thing)
    pages = "".join(p.read_text() for p in (ROOT / "docs").rglob("*.md"))
    if isinstance(thing, type) and issubclass(thing, BaseException):
        assert "::: clgpu_delegate.errors" in pages
    else:
        assert re.search(rf"^::: clgpu_delegate\.{name}$", pages, re.MULTILINE), "docs/api"


@pytest.mark.parametrize("name", errors.__all__)
def test_page_of_errors_describes_those_of_the_core(name):
    error = getattr(errors, name)
    if error.__module__ == errors.__name__:
        return  # mkdocstrings reads the source of errors.py
    page = (ROOT / "docs" / "api" / "errors.md").read_text(encoding="utf-8")
    found = re.search(
        rf"^## {name} {{ #clgpu_delegate\.errors\.{name} }}$(.*?)(?=^## |\Z)", page, re.M | re.S
    )
    assert found
    bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__)
    assert f"Bases: {bases}\n" in found[1]
    meaning, example = inspect.getdoc(error).split("\n\nExamples\n--------\n")
    assert meaning.replace("``", "`") in found[1]
    assert f"```pycon\n{example}\n```" in found[1]


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_describe_the_parameters_there_are(name):
    thing = getattr(clgpu_delegate, name)
    functions = public_methods(thing) if isinstance(thing, type) else [(name, thing)]
    for label, function in functions:
        text = inspect.getdoc(function) or ""
        assert text, label
        taken, documented = taken_parameters(function), documented_parameters(text)
        # One line is sufficient for few parameters, if it names them.
        if documented or len(taken) > 2:
            assert documented == taken, label


def test_every_page_is_in_the_navigation():
    listed = set(
        re.findall(r":\s+([\w/]+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(), re.M)
    )
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.*")}
    assert {p for p in pages if p.endswith((".md", ".ipynb"))} == listed


@pytest.fixture
def hook():
    needs("mkdocs")
    spec = importlib.util.spec_from_file_location("docs_pages", ROOT / "tools" / "docs_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_that_take_too_long_leave_no_process(hook, tmp_path, monkeypatch):
    maker = tmp_path / "maker.py"
    maker.write_text(
        "import pathlib, subprocess, sys, time\n"
        "server = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(server.pid))\n"
        "time.sleep(60)\n"
    )
    for name, value in {"MAKER": maker, "PICTURES": tmp_path / "pid", "LIMIT_S": 5}.items():
        monkeypatch.setattr(hook, name, value)
    monkeypatch.delenv("CLGPU_DOCS_PICTURES", raising=False)
    hook.on_pre_build(None)
    state = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    end = time.monotonic() + 20
    while state.exists() and " Z " not in state.read_text() and time.monotonic() < end:
        time.sleep(0.05)
    assert not state.exists() or " Z " in state.read_text()


def test_every_picture_has_a_place_and_a_title(hook):
    pages = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "docs").glob("*.md"))
    assert sorted(hook.PLACE.findall(pages)) == sorted(hook.TITLES)

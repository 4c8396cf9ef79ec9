"""What people meet on the project's pages: citation, templates, workflows."""

from __future__ import annotations

import re

import pytest

from tests.repo.test_shape_of_repo import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (extra: docs)")


def load(path: str) -> dict:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_citation_has_the_packages_version_and_license():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    citation = load("CITATION.cff")
    for field in ("version", "license"):
        assert re.search(rf'^{field} = "(.*)"$', project, re.MULTILINE)[1] == citation[field]
    assert {"cff-version", "title", "message", "authors"} <= citation.keys()


@pytest.mark.parametrize("name", ["failure", "wish"])
def test_forms_have_what_github_needs(name):
    form = load(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(set(ids)) == len(ids) > 0
    assert all("label" in part["attributes"] for part in form["body"] if "id" in part)


def test_a_failure_is_reported_with_a_capsule():
    assert "clgpu capture" in (ROOT / ".github/ISSUE_TEMPLATE/failure.yml").read_text()


@pytest.mark.parametrize("name", ["tests", "wheels"])
def test_jobs_of_workflows_need_jobs_that_exist(name):
    jobs = load(f".github/workflows/{name}.yml")["jobs"]
    for job in jobs.values():
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= jobs.keys()
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])


def test_commands_of_workflows_are_targets():
    heads = re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    text = (ROOT / ".github/workflows/tests.yml").read_text()
    used = set(re.findall(r"run: make (\w+)", text))
    assert used
    assert used <= set(" ".join(heads).split())

"""The notebook of the documentation runs from top to bottom."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"


def test_notebook_is_stored_without_outputs():
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.slow
def test_notebook_runs(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="the extra 'docs' is not installed")
    nbformat = pytest.importorskip("nbformat", reason="the extra 'docs' is not installed")
    pytest.importorskip("ipykernel", reason="the extra 'docs' is not installed")
    monkeypatch.setenv("CLGPU_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(ROOT)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    assert outputs
    assert not [o for o in outputs if o.get("name") == "stderr"], "warnings"

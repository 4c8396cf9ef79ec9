"""The notebook of the documentation runs from top to bottom, and its stored outputs are valid."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "tour.ipynb"


def load_tool():
    spec = importlib.util.spec_from_file_location("run_notebook", ROOT / "tools/run_notebook.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def stored():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def test_notebook_is_stored_with_outputs_that_anyone_may_see():
    assert list(load_tool().faults(stored())) == []


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        (None, "no output"),
        ({"output_type": "stream", "name": "stderr", "text": ["WARNING: odd"]}, "a warning"),
        ({"output_type": "stream", "name": "stdout", "text": ["/opt/ann/x.tflite"]}, "a path"),
        ({"output_type": "stream", "name": "stdout", "text": "2026-11-23 01:02"}, "a time"),
        ({"output_type": "display_data", "data": {"text/plain": ["<a.B at 0x7f12ab34>"]}}, "0x7f"),
        ({"output_type": "display_data", "data": {"image/png": ["iVBOR"]}}, "image/png"),
        ({"output_type": "display_data", "data": {"text/html": ["x" * 30_000]}}, "30000 bytes"),
    ],
    ids=["missing", "warning", "path", "time", "address", "picture", "large"],
)
def test_outputs_that_do_not_belong_into_the_repository_are_found(output, fault):
    notebook = stored()
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    code[-1]["outputs"] = [output] if output else []
    (found,) = load_tool().faults(notebook)
    assert fault in found


@pytest.mark.slow
def test_notebook_runs(tmp_path, monkeypatch):
    for name in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(name, reason="the extra 'docs' is not installed")
    monkeypatch.setenv("CLGPU_CACHE", "")  # the tool sets both; monkeypatch takes them back
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "")
    tool = load_tool()
    assert list(tool.faults(tool.run(str(tmp_path)))) == []

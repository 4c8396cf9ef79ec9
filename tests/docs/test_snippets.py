"""The Python code that pages print runs, in the order of the page."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate.doctor import model
from clgpu_delegate.measure import turns
from clgpu_delegate.runtimes import find_runtime
from tests.docs.test_site import ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# What is not run here, and why.
ELSEWHERE = {
    "/usr/lib/libclgpu_delegate.so": "tests/library installs that file in a folder of its own",
    "import ray": "tests/ray/test_data.py; this one reads from a cloud",
    "clgpu_delegate.ray": "tests/ray/test_service.py",
    "tokenizer.decode": "there is no tokenizer; tests/generation",
    "temperature": "tests/generation",
    "tests.model_maker": "shows how stock kernels read beyond an array",
}
# Where code is left out.
LEFT_OUT = "interpreter.allocate_tensors(); interpreter.invoke()"


def blocks(page: Path) -> Iterator[str]:
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if not any(words in block for words in ELSEWHERE):
            runs = re.sub(r"^.*# needs .*$", "", block, flags=re.MULTILINE)  # another option
            yield re.sub(r"^\.\.\..*$", LEFT_OUT, runs, flags=re.MULTILINE)


def test_what_runs_elsewhere_is_still_there():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert all(any(words in block for block in BLOCK.findall(text)) for words in ELSEWHERE)


@pytest.fixture
def names(tmp_path, monkeypatch):
    """A folder with the files that snippets read, and the names that they use."""
    for name in ("model", "float"):
        (tmp_path / f"{name}.tflite").write_bytes(model.content())
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o700)  # a cache that others could replace is not used
    monkeypatch.setenv("CLGPU_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.setattr(turns, "wait_until_quiet", lambda: 0.0)
    before = clgpu_delegate.profile_model("model.tflite", runs=2)
    Path("before.json").write_text(json.dumps(before.to_dict()))
    images = np.random.default_rng(0).random((8, *model.INPUT), np.float32)
    return {
        "clgpu_delegate": clgpu_delegate,
        "Interpreter": find_runtime().module.Interpreter,
        "np": np,
        "image": images[0],
        "x": images[0],
        "images": list(images),
        "samples": images[:, 0],
    }


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(blocks(page))], ids=lambda page: page.stem
)
def test_snippets_of_a_page_run(page, names):
    for block in blocks(page):
        for module in re.findall(r"^from ([\w.]+) import", block, re.MULTILINE):
            if importlib.util.find_spec(module.split(".")[0]) is None:
                pytest.skip(f"{module} is not installed")
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, str(page), "exec"), names)

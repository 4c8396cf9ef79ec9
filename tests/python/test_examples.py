"""Each public name has an example in its documentation, and all of these run."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from bench.networks.decoder import DECODERS, save_decoder
from clgpu_delegate.doctor import model
from clgpu_delegate.litert import package
from clgpu_delegate.measure import turns
from clgpu_delegate.runtimes import find_runtime
from tests.litert.compiled import CompiledModel

FOLDER = Path(clgpu_delegate.__file__).parent
FINDER = doctest.DocTestFinder(recurse=False)
# Objects that have no documentation of their own.
WITHOUT = {"__version__"}


def public() -> list[str]:
    return [name for name in clgpu_delegate.__all__ if name not in WITHOUT]


def examples(name: str) -> list[doctest.Example]:
    """Those of a public name that run."""
    documented = inspect.getdoc(getattr(clgpu_delegate, name)) or ""
    found = doctest.DocTestParser().get_examples(documented)
    return [example for example in found if not example.options.get(doctest.SKIP)]


def modules() -> list[str]:
    """Modules with examples that belong to no public name."""
    files = [p for p in sorted(FOLDER.rglob("*.py")) if ">>>" in p.read_text()]
    names = [".".join(("clgpu_delegate", *p.relative_to(FOLDER).with_suffix("").parts))
             for p in files]  # fmt: skip
    return [name.removesuffix(".__init__") for name in names]


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A folder with ``model.tflite`` and ``decoder.tflite``, and the names that examples use."""
    (tmp_path / "model.tflite").write_bytes(model.content())
    save_decoder(tmp_path / "decoder.tflite", DECODERS["tiny"], prefill=(8,), cache=32)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLGPU_CACHE", "off")
    monkeypatch.setattr(turns, "wait_until_quiet", lambda: 0.0)
    if CompiledModel is not None:  # the switch of this test, not that of the environment
        monkeypatch.setattr(package, "folder", lambda: tmp_path)
    return {
        "clgpu_delegate": clgpu_delegate,
        "np": np,
        "x": np.zeros((1, *model.INPUT[1:]), np.float32),
        "Interpreter": find_runtime().module.Interpreter,
    }


def run(found: list[doctest.DocTest]) -> None:
    told = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False)
    for test in found:
        with contextlib.redirect_stdout(io.StringIO()):
            runner.run(test, out=told.write)
    assert runner.failures == 0, told.getvalue()


@pytest.mark.parametrize("name", public())
def test_name_has_an_example(name):
    assert examples(name), f"the documentation of {name} has no example that runs"


@pytest.mark.parametrize("name", public())
def test_example_runs(name, room, tmp_path):
    if name.lower().startswith("litert") and CompiledModel is None:
        pytest.skip("LiteRT is not installed")
    if "cache=" in "".join(example.source for example in examples(name)):
        tmp_path.chmod(0o700)  # a cache that others could replace is not used
    run(FINDER.find(getattr(clgpu_delegate, name), name, globs=room))


@pytest.mark.parametrize("name", modules())
def test_examples_of_members_and_modules_run(name, room):
    module = importlib.import_module(name)
    shown = {f"{name}.{each}" for each in public()}
    found = doctest.DocTestFinder().find(module, name, globs=room)
    run([test for test in found if test.name not in shown])

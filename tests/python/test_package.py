"""Further promises of the package: types, examples, names."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import numpy as np

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.python.subprocesses import assert_succeeds, run_python

FOLDER = Path(clgpu_delegate.__file__).parent


def test_stub_has_what_the_extension_has():
    tree = ast.parse((FOLDER / "_core.pyi").read_text())
    stub = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert stub == {name for name in dir(_core) if not name.startswith("_")}
    (native,) = [n for n in tree.body if getattr(n, "name", "") == "NativeDelegate"]
    members = {node.name for node in native.body if isinstance(node, ast.FunctionDef)}
    ours = {name for name in dir(_core.NativeDelegate) if not name.startswith("_")}
    assert members - {"__init__"} == ours


def test_package_is_marked_as_typed():
    assert (FOLDER / "py.typed").exists()


def test_public_names_exist_and_are_documented():
    for name in clgpu_delegate.__all__:
        assert getattr(clgpu_delegate, name).__doc__ or name.startswith("__"), name


def test_in_a_clone_the_installed_package_takes_the_place_of_its_sources(tmp_path):
    sources, installed = tmp_path / "clone" / "clgpu_delegate", tmp_path / "site" / "clgpu_delegate"
    without = shutil.ignore_patterns("*.so", "__pycache__")
    for folder in (sources, installed):
        shutil.copytree(FOLDER, folder, ignore=without)
    shutil.copy(_core.__file__, installed)
    script = f"""
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.path[:0] = [{str(sources.parent)!r}, {str(installed.parent)!r}]
import clgpu_delegate
from clgpu_delegate import _core, delegate
for module in (clgpu_delegate, delegate, _core):
    print(module.__file__)
clgpu_delegate.devices()
"""
    result = run_python(script)
    assert_succeeds(result)
    files = [Path(line).parent for line in result.stdout.splitlines()]
    assert files == [sources, installed, installed]


def test_dir_shows_the_public_names():
    assert dir(clgpu_delegate) == sorted(clgpu_delegate.__all__)


def test_results_are_shown_in_notebooks():
    shown = {
        name
        for name in clgpu_delegate.__all__
        if hasattr(getattr(clgpu_delegate, name), "_repr_html_")
    }
    assert shown == {
        "Benchmark", "Ceilings", "Comparison", "Diagnosis", "Explanation", "MemoryMap", "Placement",
        "PrecisionPlan", "Profile", "Quantization", "Quickstart", "Tuning",
    }  # fmt: skip


def test_what_a_notebook_shows_is_text_of_strangers_escaped():
    m = ModelMaker()
    m.output(m.op("TANH", [m.input("<b>x</b>\x1b[2J", (1, 4))], (1, 4)))
    with clgpu_delegate.Runner(m.build()) as runner:
        assert repr(runner).startswith("<clgpu_delegate.Runner on ")
        runner.run(np.zeros((1, 4), np.float32))
        assert not repr(runner).endswith(": idle>")
        for result in (runner.explain(), runner.delegate.memory_map()):
            html = result._repr_html_()
            assert html.startswith("<pre"), html
            assert "<b>" not in html
            assert "\x1b" not in html
            lines = [line.strip() for line in str(result).splitlines()]
            assert lines[0][:30] in html
    assert repr(runner).endswith(": closed>")

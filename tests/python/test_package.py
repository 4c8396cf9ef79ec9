"""What the package promises beside its functions: types, examples, names."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate import _core

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


@pytest.mark.parametrize(
    "name",
    [m.name for m in pkgutil.iter_modules([str(FOLDER)]) if m.name not in ("_core", "__main__")],
)
def test_examples_in_the_documentation_run(name):
    module = importlib.import_module(f"clgpu_delegate.{name}")
    assert doctest.testmod(module).failed == 0

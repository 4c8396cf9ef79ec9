"""Imports between the subpackages of the Python package: in one direction, without cycles.

Imports within functions and those for type checkers count as any other.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.repo.test_shape_of_repo import ROOT

PACKAGE = ROOT / "clgpu_delegate"
TOP = "clgpu_delegate"

# Folders, and modules of the root, from the lowest to the highest; as in docs/architecture.md.
# A folder imports from itself and from the folders named here.
BELOW = {
    "_core": set(),
    "extension": set(),
    "errors": {"_core", "extension"},
    "base": {"_core", "errors"},
    "precision": {"base", "errors"},
    "options": {"_core", "errors", "precision"},
    "devices": {"_core", "base"},
    "cache": {"_core", "base", "errors"},
    "runtimes": {"errors"},
    "native": {"_core", "base", "cache", "devices", "options", "precision"},
    "tflite": {"base", "errors", "runtimes"},
    "report": {"base", "precision"},
    "profiling": {"base", "errors", "precision", "report"},
    "placement": {
        "_core", "base", "cache", "errors", "native", "options", "report", "runtimes", "tflite",
    },
    "delegate": {
        "_core", "base", "devices", "errors", "native", "options", "placement", "precision",
        "profiling", "report",
    },
    "litert": {"_core", "delegate", "errors", "native", "options", "runtimes", "tflite"},
    "inspection": {
        "base", "delegate", "errors", "litert", "options", "report", "runtimes", "tflite",
    },
    "measure": {
        "_core", "base", "delegate", "devices", "errors", "litert", "native", "options",
        "precision", "profiling", "quantization", "report", "runner", "runtimes", "tflite",
    },
    "runner": {
        "_core", "base", "delegate", "devices", "errors", "options", "profiling", "report",
        "runtimes",
    },
    "generation": {
        "base", "delegate", "errors", "litert", "options", "runtimes", "tflite",
    },
    "ray": {"base", "delegate", "devices", "errors", "options", "runner"},
    "quantization": {"base", "errors", "runtimes", "tflite"},
    "doctor": {"_core", "base", "errors", "litert", "runtimes", ""},
    "capsule": {
        "_core", "base", "delegate", "devices", "doctor", "errors", "options", "runtimes",
        "tflite",
    },
    "cli": {
        "_core", "base", "cache", "capsule", "devices", "doctor", "errors", "inspection",
        "litert", "measure", "options", "profiling", "quantization", "runtimes",
        "tflite", "",
    },
    "__main__": {"cli"},
}  # fmt: skip


def modules() -> dict[str, str]:
    """Names and texts."""
    names = {f"{TOP}._core": ""}  # compiled
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        names[name] = file.read_text()
    return names


def imports() -> dict[str, set[str]]:
    """Of each module the modules that it names in import statements, wherever these stand."""
    texts = modules()
    found: dict[str, set[str]] = {name: set() for name in texts}
    for name, text in texts.items():
        for statement in ast.walk(ast.parse(text)):
            if isinstance(statement, ast.Import):
                named = [alias.name for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                assert not statement.level, f"{name}: relative import of {statement.module}"
                source = str(statement.module)
                whole = [f"{source}.{alias.name}" for alias in statement.names]
                named = [module if module in texts else source for module in whole]
            else:
                continue
            found[name] |= {module for module in named if module.split(".")[0] == TOP}
        found[name].discard(name)
    return found


def folder_of(module: str) -> str:
    """``clgpu_delegate.cli.run`` is in ``cli``; the package itself is ``""``."""
    return module.removeprefix(TOP).removeprefix(".").split(".")[0]


def test_every_import_names_a_module():
    known = modules()
    wrong = [f"{a}: {b}" for a, named in imports().items() for b in named if b not in known]
    assert not wrong, wrong


def test_every_folder_and_module_of_the_root_is_listed():
    assert {folder_of(module) for module in modules()} - {""} == set(BELOW)


@pytest.mark.parametrize("folder", BELOW)
def test_folder_imports_only_what_is_below_it(folder):
    wrong = [
        f"{module} imports {other}"
        for module, others in imports().items()
        if folder_of(module) == folder
        for other in sorted(others)
        if folder_of(other) not in {*BELOW[folder], folder}
    ]
    assert not wrong, wrong


def test_what_a_folder_may_import_it_imports():
    used = {folder: set() for folder in BELOW}
    for module, others in imports().items():
        if module != TOP:
            used[folder_of(module)] |= {folder_of(other) for other in others}
    assert {
        folder: below - used[folder] for folder, below in BELOW.items() if below - used[folder]
    } == {}


def test_the_page_has_the_same_folders():
    page = (ROOT / "docs" / "architecture.md").read_text().split("## The Python package")[1]
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\w, ]*)\|$", page.split("\n## ")[0], re.MULTILINE)
    folders = {folder for folder in BELOW if (PACKAGE / folder).is_dir()}
    listed = {
        folder: {name for name in re.split(r"[, ]+", below) if name} for folder, below in rows
    }
    assert listed == {folder: BELOW[folder] & folders for folder in folders}


def test_folders_are_in_one_order():
    # Commands, and the doctor's probe as a program of its own, also import the whole package, "".
    order = TopologicalSorter({folder: below - {""} for folder, below in BELOW.items()})
    assert list(order.static_order())


def test_no_modules_import_each_other():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' imports '.join(reversed(error.args[1]))}")


def test_the_root_has_few_files():
    files = [file.name for file in PACKAGE.iterdir() if file.suffix == ".py"]
    assert len(files) <= 12, f"a module belongs into a folder: {sorted(files)}"

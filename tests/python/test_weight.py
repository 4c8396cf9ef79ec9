"""What an import loads, and what works without the packages that only commands need."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate.base import consoles
from clgpu_delegate.base.tables import Fitting, Group, Table, Text
from clgpu_delegate.doctor.environment import Environment
from tests.python import models
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

# Packages of the extra `commands`, and what they need.
COMMANDS = ("click", "markdown_it", "pydantic", "pygments", "rich", "shellingham", "typer")
WITHOUT_COMMANDS = f"""
import sys
for name in {COMMANDS}:
    sys.modules[name] = None
"""


def loaded_by(statement: str) -> set[str]:
    """Modules, without those that Python and the environment load at the start."""
    script = (
        f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    )
    result = run_python(script)
    assert_succeeds(result)
    return set(result.stdout.split())


def test_import_loads_what_every_program_needs():
    loaded = loaded_by("import clgpu_delegate")
    heavy = {"asyncio", "concurrent.futures", "email", "hashlib", "importlib.metadata", "logging",
             "numpy", "platformdirs", "sqlite3", "subprocess", "tempfile", "zipfile"}  # fmt: skip
    assert not loaded & {*heavy, *COMMANDS}
    assert {name for name in loaded if name.startswith("clgpu_delegate")} == {
        "clgpu_delegate", "clgpu_delegate._core", "clgpu_delegate.base",
        "clgpu_delegate.base.children", "clgpu_delegate.base.embedded", "clgpu_delegate.devices",
        "clgpu_delegate.doctor", "clgpu_delegate.errors", "clgpu_delegate.extension",
        "clgpu_delegate.base.interrupts",
    }  # fmt: skip


@pytest.mark.parametrize(
    "names", ["load", "load, Options, OptionError", "Runner", "explain_model", "Profile, compare"]
)
def test_no_name_of_the_library_needs_what_commands_need(names):
    assert not loaded_by(f"from clgpu_delegate import {names}") & set(COMMANDS)


def test_load_needs_no_measurements():
    loaded = loaded_by("from clgpu_delegate import load")
    parts = {name.split(".")[1] for name in loaded if name.startswith("clgpu_delegate.")}
    assert not parts & {"capsule", "cli", "measure", "placement", "profiling", "quantization"}
    assert "concurrent.futures" not in loaded


def test_every_name_comes_from_where_type_checkers_find_it():
    tree = ast.parse(Path(clgpu_delegate.__file__).read_text())
    found = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("clgpu_delegate.")
        for alias in node.names
    }
    for name, module in clgpu_delegate._MODULE_OF.items():
        assert found[name] == f"clgpu_delegate.{module}", name
    eager = {"devices", "doctor", "errors", "__version__"}
    assert set(clgpu_delegate._MODULE_OF) | eager == set(clgpu_delegate.__all__)


def test_modules_do_not_replace_functions():
    """Python stores a module in its package when it is imported."""
    script = """
import clgpu_delegate.devices, clgpu_delegate.doctor.finding, clgpu_delegate
assert callable(clgpu_delegate.devices) and callable(clgpu_delegate.doctor)
for name in clgpu_delegate.__all__:
    getattr(clgpu_delegate, name)
assert callable(clgpu_delegate.devices) and callable(clgpu_delegate.doctor)
assert clgpu_delegate.cache.KINDS, "modules are imported when they are used"
try:
    clgpu_delegate.nonsense
except AttributeError as error:
    print(error)
"""
    result = run_python(script)
    assert_succeeds(result)
    assert result.stdout == "module 'clgpu_delegate' has no attribute 'nonsense'\n"


def test_results_are_texts_without_rich(tmp_path):
    path = tmp_path / "chain.tflite"
    path.write_bytes(models.chain())
    script = """
import clgpu_delegate, sys
results = [
    clgpu_delegate.explain_model(sys.argv[1]),
    clgpu_delegate.map_memory(sys.argv[1]),
    clgpu_delegate.compare(sys.argv[1], runs=1),
    clgpu_delegate.profile_model(sys.argv[1], runs=1, progress=True),
]
for result in results:
    print(result)
    assert "<pre" in result._repr_html_()
print(results[-1].table())
"""
    result = run_python(WITHOUT_COMMANDS + script, str(path))
    assert_succeeds(result)
    assert "2 of 2 nodes claimed" in result.stdout
    assert "stock TFLite" in result.stdout
    assert result.stderr.count("\n") >= 1, "the stages of progress, a line each"


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("module", ["typer", "rich"])
def test_commands_say_what_to_install(module, as_json):
    script = (
        f"import sys; sys.modules[{module!r}] = None; sys.argv[:1] = ['clgpu'];"
        "from clgpu_delegate.__main__ import main; main()"
    )
    result = run_python(script, "devices", *["--json"] * as_json)
    assert result.returncode == 2
    assert result.stdout == ""
    told = json.loads(result.stderr)["error"] if as_json else result.stderr
    assert "pip install 'clgpu_delegate[commands]'" in told
    assert told.startswith("clgpu: the commands need the package") or as_json
    assert result.stderr.count("\n") == 1, "no traceback"


def test_doctor_works_without_commands():
    script = "import runpy; runpy.run_module('clgpu_delegate.doctor', run_name='__main__')"
    result = run_python(WITHOUT_COMMANDS + script)
    assert result.returncode in (0, 5), result.stderr
    assert "system: Python" in result.stdout


def table(rows: list[tuple[str, ...]]) -> Table:
    made = Table()
    made.add_column("node", right=True)
    made.add_column("op")
    made.add_column("reason", fold=True)
    for row in rows:
        made.add_row(*row, style="bold")
    return made


@pytest.mark.parametrize(
    "rows",
    [
        [("1", "CONV_2D", "short"), ("12", "日本語", "two\nlines")],
        [("1", "ADD", "many words " * 30), ("2", "B", "")],
        [("1", "ADD", "x" * 250)],
        [("1", "ADD", "a word and " + "x" * 120 + " behind")],
        [],
    ],
)
def test_text_is_laid_out_as_rich_does_it(rows):
    group = Group(Text("words " * 40), table(rows), Text("note: \x1b[1m [red]"))
    console = consoles.SafeConsole(width=100, color_system=None)
    with console.capture() as shown:
        console.print(group)
    expected = [line.rstrip() for line in shown.get().splitlines()]
    assert group.lines(100) == expected


@pytest.mark.parametrize("width", [30, 100])
def test_a_table_that_does_not_fit_gives_way_to_texts(width):
    rows = [("1", "CONV_2D", "a long reason for it")]
    narrow = Text("1 CONV_2D"), Text("a long reason for it, which is told", "dim", indent=4)
    group = Group(Text("before"), Fitting(table(rows), *narrow), Text("after"))
    console = consoles.SafeConsole(width=width, color_system=None)
    with console.capture() as shown:
        console.print(group)
    assert group.lines(width) == [line.rstrip() for line in shown.get().splitlines()]
    assert ("    a long" in "\n".join(group.lines(width))) == (width == 30)
    assert max(map(len, group.lines(width))) <= width


def test_columns_share_what_room_there_is():
    made = Table()
    for heading in ("a", "b", "c"):
        made.add_column(heading, fold=True)
    made.add_row("x" * 100, "y" * 60, "z" * 5)
    assert max(map(len, made.lines(50))) <= 50
    assert max(map(len, Text("x" * 100, wrap=False).lines(50))) == 100


def test_only_commands_import_what_commands_need():
    folder = Path(clgpu_delegate.__file__).parent
    allowed = {folder / "base" / "consoles.py", *(folder / "cli").glob("*.py")}
    for file in set(folder.rglob("*.py")) - allowed:
        for node in ast.parse(file.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & set(COMMANDS), file


def test_requirements_are_those_of_the_library():
    text = (ROOT / "pyproject.toml").read_text()
    (line,) = re.findall(r"^dependencies = \[(.*)\]$", text, re.MULTILINE)
    assert re.findall(r'"(\w+)', line) == ["numpy", "platformdirs"]
    (line,) = re.findall(r"^commands = \[(.*)\]$", text, re.MULTILINE)
    assert re.findall(r'"(\w+)', line) == ["rich", "typer"]
    assert Environment().requirements == ("numpy", "platformdirs")

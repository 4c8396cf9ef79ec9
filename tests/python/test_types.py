"""What type checkers, help() and completion know of the public functions."""

from __future__ import annotations

import dataclasses
import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import clgpu_delegate
from clgpu_delegate import Options, _core
from clgpu_delegate.litert import compiled
from clgpu_delegate.quantization import api, observers, schemes
from clgpu_delegate.runtimes import NAMES, RuntimeName

WITH_SETTINGS = (
    "load", "Runner", "litert_environment", "explain_model", "map_memory", "compare", "tune",
    "profile_model", "measure_placement", "capture",
)  # fmt: skip

# As a user writes it: mypy tells the type of each line's expression.
PROGRAM = """
import numpy as np
import clgpu_delegate
x = np.zeros((1, 2), np.float32)
runner = clgpu_delegate.Runner("m.tflite", precision="fp16", runtime="ai_edge_litert")
reveal_type(runner.run({"x": x}))
reveal_type(runner.run(x))
reveal_type(runner.run_async({"x": x}))
reveal_type(list(runner.run_many([{"x": x}])))
reveal_type(clgpu_delegate.load(placement="auto").explain())
runner.run(x).argmax()
"""
WRONG = """
import clgpu_delegate
clgpu_delegate.load(precision="int8")
clgpu_delegate.Runner("m.tflite", runtime="tflite")
clgpu_delegate.compare("m.tflite", api="gpu")
clgpu_delegate.nonsense
"""


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_help_shows_the_options(name):
    parameters = inspect.signature(getattr(clgpu_delegate, name)).parameters
    for field in dataclasses.fields(Options):
        assert parameters[field.name].default == field.default
        assert parameters[field.name].annotation == field.type
    assert not [p for p in parameters.values() if p.kind is p.VAR_KEYWORD]


def test_values_of_the_options_are_those_that_are_allowed():
    rows = {row["key"]: row for row in _core.option_table()}
    hints = {f.name: str(f.type) for f in dataclasses.fields(Options)}
    for name, row in rows.items():
        if row["kind"] in ("choice", "choice or count", "choice or number"):
            assert f"Literal[{', '.join(map(repr, row['words']))}]".replace("'", '"') in hints[
                name
            ].replace("'", '"')


def literals(function: object, name: str) -> tuple[str, ...]:
    """The values of a parameter's Literal, which may be one part of a union."""
    hint = function.__annotations__[name]
    scope = {**vars(inspect.getmodule(function)), "Literal": Literal}
    parts = [part.strip() for part in hint.replace("\n", " ").split("|")]
    (literal,) = [v for v in (eval(part, scope) for part in parts) if get_origin(v) is Literal]
    return get_args(literal)


def test_words_of_functions_are_those_that_they_allow():
    assert get_args(RuntimeName) == NAMES
    assert get_args(compiled.Api) == compiled.APIS
    quantize = clgpu_delegate.quantize
    assert set(literals(quantize, "scheme")) == set(schemes.SCHEMES)
    assert set(literals(quantize, "mode")) == set(api._MODES)
    assert set(literals(quantize, "observer")) == set(observers.NAMES)
    assert get_type_hints(Options.as_delegate_dict)["return"] == dict[str, str]


def mypy() -> list[str]:
    found = shutil.which("mypy", path=Path(sys.executable).parent) or shutil.which("mypy")
    if found is None:
        pytest.skip("mypy is not installed")
    return [found]


@pytest.mark.slow
def test_type_checkers_see_results_and_refuse_wrong_words(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(PROGRAM)
    wrong.write_text(WRONG)
    told = subprocess.run(
        [*mypy(), "--python-executable", sys.executable, "--no-incremental", right, wrong],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    ).stdout  # fmt: skip
    assert 'right.py:6: note: Revealed type is "dict[str, numpy.ndarray' in told.replace(
        "builtins.", ""
    )
    assert 'right.py:8: note: Revealed type is "concurrent.futures._base.Future[' in told
    assert "Explanation" in told
    assert not [line for line in told.splitlines() if "right.py" in line and "error" in line]
    for line in (3, 4, 5, 6):
        assert f"wrong.py:{line}: error" in told, told

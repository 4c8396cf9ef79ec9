"""The JSON for C programs is valid whatever drivers write, and equal to that for Python."""

from __future__ import annotations

import json
import math
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clgpu_delegate
from clgpu_delegate import _core
from tests.library.conftest import tool
from tests.python import models
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
)
VALUES = st.recursive(
    PLAIN,
    lambda each: st.lists(each) | st.dictionaries(st.text(st.characters(codec="utf-8")), each),
    max_leaves=20,
)


def as_python(value: Any) -> Any:
    """Return the value that JSON can represent."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list):
        return [as_python(item) for item in value]
    if isinstance(value, dict):
        return {key: as_python(item) for key, item in value.items()}
    return value


@given(VALUES)
def test_every_value_is_read_back(value):
    assert json.loads(_core.json_of(value).decode()) == as_python(value)


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc3(", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xe0\x80\x80a"]
)
def test_bytes_that_are_no_text_are_replaced_as_python_does(text):
    assert json.loads(_core.json_of(text).decode()) == text.decode(errors="replace")


def test_reports_are_those_of_python(runtime, rng):
    delegate = clgpu_delegate.load(profile=True, verify="first")
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    for _ in range(2):
        run_interpreter(interpreter, [models.normal(rng, 1, 7, 6, 3)])
    native = delegate._native
    explanation, profile = native.explain(), native.profile()
    assert all([explanation["nodes"], explanation["verification"]])
    assert all([profile["launches"], profile["peaks"]])
    assert json.loads(_core.explain_json(native).decode()) == as_python(explanation)
    assert json.loads(_core.profile_json(native).decode()) == as_python(profile)


LOCALE = """
import json, locale, sys
import numpy as np
locale.setlocale(locale.LC_ALL, "comma")
assert locale.localeconv()["decimal_point"] == ","
import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter, run_interpreter
m = ModelMaker()
x = m.op("LEAKY_RELU", [m.input("x", (2, 3))], (2, 3), alpha=0.25)
m.output(x)
delegate = clgpu_delegate.load(cache="off")
interpreter = make_interpreter(sys.argv[1], m.build(), [delegate])
(y,) = run_interpreter(interpreter, [np.full((2, 3), -2, np.float32)])
assert [n.claimed for n in delegate.explain().nodes] == [True], delegate.explain()
assert (y == -0.5).all(), y
assert json.loads(_core.json_of([0.5, 12345678])) == [0.5, 12345678]
"""


def test_decimal_comma_of_the_process_changes_nothing(runtime, tmp_path):
    # A host that calls setlocale(LC_ALL, "") in Germany. A locale of that kind is made here.
    made = subprocess.run(
        [tool("localedef"), "-i", "de_DE", "-f", "UTF-8", tmp_path / "comma"],
        capture_output=True,
        check=False,
    )
    if not (tmp_path / "comma" / "LC_NUMERIC").exists():
        pytest.skip(f"no locale can be made: {made.stderr.decode()[:200]}")
    assert_succeeds(run_python(LOCALE, runtime, LOCPATH=str(tmp_path)))

"""Options are checked in Python and in C++, and both know the same ones."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from typing import Any

import pytest

import clgpu_delegate
from clgpu_delegate import OptionError, Options, _core

TABLE = _core.option_table()

# By kind of value: a value that is not allowed.
BAD = {"choice": "some", "count": -1, "choice or count": 0, "choice or number": -0.5,
       "bytes": "1 pound", "path": "", "choice or plan": "half=1"}  # fmt: skip
BAD_VALUES = {row["key"]: (row, BAD[row["kind"]]) for row in TABLE if row["kind"] in BAD}


def example(row: dict[str, Any]) -> object:
    """A value that is allowed and not the default."""
    by_kind = {
        "device": "0", "switch": row["default"] == "off", "bytes": "1.5 GiB",
        "engines": {"conv2d": "winograd|auto", "softmax": "auto"}, "nodes": ["TILE", 3],
        "carried": {"kv_0": {0: (5, 12), 1: (6, 13)}},
        "path": "/data/local/tmp/a cache.sqlite", "choice or count": row["most"],
        "choice or number": 0.03125,
        "count": row["most"], "choice or plan": "model=0a,error=0.001,half=3+7-12",
    }  # fmt: skip
    other = next((word for word in row["words"] if word != row["default"]), None)
    return other if row["kind"] == "choice" else by_kind[row["kind"]]


EXAMPLES = {row["key"]: example(row) for row in TABLE}


def test_python_and_cpp_have_the_same_options_and_defaults():
    def text(value: object) -> str:
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)

    ours = [(field.name, text(field.default)) for field in dataclasses.fields(Options)]
    assert ours == [(row["key"], row["default"]) for row in TABLE]


def test_type_checkers_see_each_word_that_is_allowed():
    """What stands in the source; see tests/repo/test_options.py for all of it."""
    tree = ast.parse(inspect.getsource(clgpu_delegate.options))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for name in ("Settings", "Options"):
        hints = {
            node.target.id: ast.unparse(node.annotation)
            for node in classes[name].body
            if isinstance(node, ast.AnnAssign)
        }
        assert list(hints) == [row["key"] for row in TABLE]
        for row in TABLE:
            if "choice" in row["kind"]:
                words = ", ".join(map(repr, row["words"]))
                assert hints[row["key"]].startswith(f"Literal[{words}]")


def test_every_option_of_the_table_says_what_it_is_for():
    assert all(row["help"] and row["allowed"] for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["key"])
def test_each_value_that_the_table_allows_is_taken_by_python_and_cpp(row):
    values = [*row["words"]] if row["kind"] != "switch" else [True, False]
    if "count" in row["kind"]:
        values += [row["least"], row["most"]]
    for value in values:
        options = Options(**{row["key"]: value})
        _core.make_delegate({"placement": "all", **options.as_delegate_dict()})
    for value in values and [row["least"] - 1, row["most"] + 1] if "count" in row["kind"] else []:
        with pytest.raises(OptionError):
            Options(**{row["key"]: value})


def test_options_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options().precision = "fp16"


def test_defaults_are_not_passed_on():
    assert Options().as_delegate_dict() == {}


def test_values_become_the_strings_of_the_delegate():
    options = Options(
        device=1,
        precision="fp16",
        ops="core",
        engines={"softmax": "rows", "add": "vec4"},
        exclude=["SOFTMAX", 3],
        min_nodes=2,
        warm_up=False,
        half_io=True,
        profile=True,
        placement="measured",
        verify=8,
    )
    assert options.as_delegate_dict() == {
        "device": "1",
        "precision": "fp16",
        "ops": "core",
        "engines": "softmax=rows,add=vec4",
        "exclude": "SOFTMAX,3",
        "min_nodes": "2",
        "warm_up": "off",
        "half_io": "on",
        "profile": "on",
        "placement": "measured",
        "verify": "8",
    }


@pytest.mark.parametrize("name", BAD_VALUES)
def test_value_that_is_not_allowed_is_answered_with_those_that_are(name):
    row, value = BAD_VALUES[name]
    with pytest.raises(OptionError, match=f"'{name}' is .*{value}.*; allowed: ") as ours:
        Options(**{name: value})
    with pytest.raises(OptionError, match=f"'{name}' is '{value}'; allowed: {row['allowed']}$"):
        _core.make_delegate({name: str(value)})
    if row["kind"] not in ("bytes", "path"):  # Python takes None and paths, too
        assert str(ours.value).endswith(f"allowed: {row['allowed']}")


@pytest.mark.parametrize(
    "settings",
    [
        {"min_nodes": "2"},
        {"min_nodes": True},
        {"warm_up": "on"},
        {"device": None},
        {"engines": {"softmax": "a,b"}},
        {"engines": ["softmax"]},
        {"exclude": 3},
        {"exclude": [1.5]},
    ],
)
def test_value_of_the_wrong_type_is_refused(settings):
    with pytest.raises(OptionError, match="; allowed: "):
        Options(**settings)


def test_values_have_no_colon():
    with pytest.raises(OptionError, match="'device' is 'a:b'; ':' and ';' are not allowed"):
        Options(device="a:b")
    with pytest.raises(OptionError, match="'engines' is 'tile:a'; ':' and ';' are not allowed"):
        _core.make_delegate({"engines": "tile:a"})


def test_no_value_needs_what_benchmark_model_splits_at():
    """Its syntax is key:value;key:value; an option with a second colon it drops silently."""
    texts = Options(**EXAMPLES).as_delegate_dict()
    assert set(texts) == set(EXAMPLES), "each example is no default"
    line = ";".join(f"{key}:{value}" for key, value in texts.items())
    words = [option.split(":") for option in line.split(";")]
    assert dict(word for word in words if len(word) == 2) == texts
    texts["cache"] = "off"  # the tests' own machine has no such folder
    assert _core.make_delegate(texts)


def test_unknown_option_is_answered_with_the_known_ones():
    with pytest.raises(OptionError, match=r"'precison' \(did you mean 'precision'\?\).*device, "):
        clgpu_delegate.load(precison="fp16")
    with pytest.raises(OptionError, match="unknown option 'precison'; options are: device, "):
        _core.make_delegate({"precison": "fp16"})


def test_unknown_family_is_answered_with_the_known_ones():
    with pytest.raises(OptionError, match=r"'engines' is 'softmacs=rows'.*softmax"):
        clgpu_delegate.load(engines={"softmacs": "rows"})


def test_option_error_is_a_value_error_and_an_error_of_ours():
    assert issubclass(OptionError, ValueError)
    assert issubclass(OptionError, clgpu_delegate.ClgpuError)

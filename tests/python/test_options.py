"""Options are checked in Python and in C++, and both know the same ones."""

from __future__ import annotations

import dataclasses

import pytest

import clgpu_delegate
from clgpu_delegate import OptionError, Options, _core

BAD_VALUES = {
    "precision": ("fp64", "fp32, fp16, tf32"),
    "ops": ("some", "all, core"),
    "tuning": ("on", "auto, off, exhaustive"),
    "zero_copy": ("on", "auto, off"),
    "min_nodes": (0, "1 to 999999"),
    "placement": ("best", "all, auto, measured"),
    "verify": (0, "off, first, 1 to 999999"),
}


def test_python_and_cpp_have_the_same_options_and_defaults():
    def text(value: object) -> str:
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)

    ours = {field.name: text(field.default) for field in dataclasses.fields(Options)}
    assert ours == {option["key"]: option["default"] for option in _core.option_table()}


def test_every_option_of_the_table_says_what_it_is_for():
    assert all(option["help"] and option["allowed"] for option in _core.option_table())


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
    value, allowed = BAD_VALUES[name]
    with pytest.raises(OptionError, match=f"'{name}' is .*{value}.*; allowed: {allowed}"):
        Options(**{name: value})
    with pytest.raises(OptionError, match=f"'{name}' is '{value}'; allowed: {allowed}"):
        _core.make_delegate({name: str(value)})


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
    set_options = {
        "device": "0", "precision": "tf32", "ops": "core", "warm_up": False, "tuning": "exhaustive",
        "engines": {"conv2d": "winograd|auto", "softmax": "auto"}, "exclude": ["TILE", 3],
        "min_nodes": 999_999, "cache": "/data/local/tmp/a cache.sqlite", "half_io": True,
        "memory_budget": "1.5 GiB", "max_object": 1 << 20, "row_band": 16, "half_weights": True,
        "dynamic_range": "hybrid", "zero_copy": "off", "share_memory": False,
        "memory_pool": "process", "profile": True, "placement": "measured", "verify": "first",
    }  # fmt: skip
    assert set(set_options) == {field.name for field in dataclasses.fields(Options)}
    texts = Options(**set_options).as_delegate_dict()
    assert set(texts) == set(set_options), "each example is no default"
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

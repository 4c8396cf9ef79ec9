"""Sizes in bytes as options: Python and C++ accept the same values."""

from __future__ import annotations

import pytest

import clgpu_delegate
from clgpu_delegate import _core

GOOD = [1, 2**40, "1", "64 MiB", "64MiB", "1.5 GB", "1.5gb", ".5 KiB", "3 B", "2 TiB", "7 kB"]
BAD = [
    0,
    -1,
    1.5,
    True,
    "0",
    "-1",
    "1e9",
    "x",
    "5 q",
    "5 k",
    "MiB",
    "1 2",
    "1.2.3 MB",
    "0x10",
    "inf",
]
BAD += ["1,5 GB", " 5", [], b"5"]


@pytest.mark.parametrize("option", ["memory_budget", "max_object"])
@pytest.mark.parametrize("value", GOOD)
def test_size_is_taken(option, value):
    options = clgpu_delegate.Options(**{option: value})
    assert options.as_delegate_dict() == {option: str(value)}
    _core.make_delegate(options.as_delegate_dict())


@pytest.mark.parametrize("option", ["memory_budget", "max_object"])
@pytest.mark.parametrize("value", BAD)
def test_other_value_is_an_error_that_says_what_is_allowed(option, value):
    with pytest.raises(clgpu_delegate.OptionError, match=f"'{option}' is .*allowed: .*bytes"):
        clgpu_delegate.Options(**{option: value})
    if isinstance(value, str):
        with pytest.raises(clgpu_delegate.OptionError, match=f"'{option}' is .*allowed: .*bytes"):
            _core.make_delegate({option: value})


@pytest.mark.parametrize("option", ["memory_budget", "max_object"])
def test_none_and_nothing_are_no_limit(option):
    for value in (None, ""):
        assert clgpu_delegate.Options(**{option: value}).as_delegate_dict() == {}

"""The rule of ``--quick``, which ``make test`` uses to select tests."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# Set by conftest.py for the modules of tests, and for processes that they start.
VARIABLE = "CLGPU_TEST_QUICK"

PREFERRED = "intel"  # it compiles faster than PoCL, and every x86-64 machine has it


def is_on() -> bool:
    """Whether the rule holds, for modules that are imported after ``pytest_configure``."""
    return bool(os.environ.get(VARIABLE))


def device_of(names: Mapping[str, object]) -> str | None:
    """Return the name of the device that quick tests run on, of the names of all devices."""
    return PREFERRED if PREFERRED in names else next(iter(names), None)


def kept(items: Iterable[pytest.Item], device: str | None) -> list[pytest.Item]:
    """Return the tests that the rule keeps, in the same order.

    Tests that are marked ``slow`` are left out. Of a test function with cases for each OpenCL
    device or for each TensorFlow Lite runtime one case stays, or one for each runtime: on one
    device, the case that a hash of the names draws. Every other test stays with all of its cases.
    """
    items = [item for item in items if item.get_closest_marker("slow") is None]
    drawn: dict[tuple[str, object], pytest.Item] = {}
    for item in items:
        if not is_sampled(item):
            continue
        group = function_of(item), parameters(item).get("runtime")
        if group not in drawn or rank(item, device) < rank(drawn[group], device):
            drawn[group] = item
    chosen = set(drawn.values())
    return [item for item in items if not is_sampled(item) or item in chosen]


def is_sampled(item: pytest.Item) -> bool:
    """Whether there is a case of the test for each OpenCL device or for each runtime."""
    return not {"device", "runtime"}.isdisjoint(parameters(item))


def parameters(item: pytest.Item) -> Mapping[str, object]:
    """Return the values of a test's parameters by their names."""
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.params


def function_of(item: pytest.Item) -> str:
    """Return the name of a test without that of the case."""
    return item.nodeid.partition("[")[0]


def rank(item: pytest.Item, device: str | None) -> tuple[bool, int, str]:
    """Return the sort key of the cases of a function; the first one is kept."""
    elsewhere = device is not None and parameters(item).get("device", device) != device
    return elsewhere, zlib.crc32(item.nodeid.encode()), item.nodeid

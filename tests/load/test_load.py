"""A sample of `python -m tests.campaign load`, which repeats the same more often."""

from __future__ import annotations

from pathlib import Path

import pytest

import clgpu_delegate
from tests.limits.build import LayerError
from tests.load import cases

BUILD = Path(__file__).resolve().parents[2] / "build" / "load"
SLOW = {"endings", "spawns"}
# Drivers differ in what they do in a child and at the end of a process.
BY_DRIVER = {"forks", "forks_among_threads", "endings"}
PLATFORMS = ("Intel", "Portable Computing Language")


def _attempts() -> list[object]:
    names = [(name, "") for name in cases.CASES if name not in BY_DRIVER]
    names += [(name, platform) for name in sorted(BY_DRIVER) for platform in PLATFORMS]
    return [
        pytest.param(name, platform, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, platform in names
    ]


@pytest.mark.parametrize(("name", "platform"), _attempts())
def test_each_attempt_ends_well(name, platform):
    if not any(platform in device.platform for device in clgpu_delegate.devices()):
        pytest.skip(f"no device of {platform}")
    case, variables = cases.CASES[name], {}
    if case.counts_objects:
        try:
            variables = cases.counting(BUILD)
        except LayerError as error:
            pytest.skip(str(error))
    row, said = cases.attempt(name, case.few, platform, patience=60, **variables)
    assert row.tried > 0, said
    assert row.is_clean(), f"{row}\n{said}"


def test_a_load_that_leaves_something_behind_is_found():
    # The same process without the release of queues: then the values that `loads` checks grow.
    try:
        variables = cases.counting(BUILD)
    except LayerError as error:
        pytest.skip(str(error))
    row, said = cases.attempt("loads", 40, FAULTS_KEEPS="clReleaseKernel", **variables)
    assert row.leaked == 1, said

"""Requirements of tests on a device with emulated limits."""

from __future__ import annotations

import os

import pytest

from tests.limits.profiles import PROFILES


def allows(items: int, kernel: str) -> bool:
    """Whether a kernel can have such work-groups with the limits of this run."""
    name = os.environ.get("CLGPU_LIMITS")
    return name is None or PROFILES[name].work_group_of(kernel) >= items


def work_groups_of(items: int, kernel: str) -> None:
    """Skip a test of a kernel that cannot be launched with the limits of this run."""
    if not allows(items, kernel):
        name = os.environ["CLGPU_LIMITS"]
        allowed = PROFILES[name].work_group_of(kernel)
        pytest.skip(f"{kernel} needs work-groups of {items} work-items; {name} allows {allowed}")

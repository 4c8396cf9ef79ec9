"""What a test needs of a device whose limits are emulated."""

from __future__ import annotations

import os

import pytest

from tests.limits.profiles import PROFILES


def work_groups_of(items: int, kernel: str) -> None:
    """Skip a test of a kernel that cannot be launched with the limits of this run."""
    name = os.environ.get("CLGPU_LIMITS")
    if name is None:
        return
    allowed = PROFILES[name].work_group_of(kernel)
    if allowed < items:
        pytest.skip(f"{kernel} needs work-groups of {items} work-items; {name} allows {allowed}")

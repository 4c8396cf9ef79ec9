"""Requirements of tests on a device with limits, emulated or real."""

from __future__ import annotations

import os

import pytest

from tests.limits.profiles import PROFILES

_RUSTICL = 32  # work-items of a work-group, in kernels with local memory


def _allowed(name: str, kernel: str) -> int:
    return PROFILES[name].work_group_of(kernel) if name in PROFILES else _RUSTICL


def allows(items: int, kernel: str) -> bool:
    """Whether a kernel can have such work-groups with the limits of this run."""
    name = os.environ.get("CLGPU_LIMITS")
    return name is None or _allowed(name, kernel) >= items


def work_groups_of(items: int, kernel: str) -> None:
    """Skip a test of a kernel that cannot be launched with the limits of this run."""
    if not allows(items, kernel):
        name = os.environ["CLGPU_LIMITS"]
        allowed = _allowed(name, kernel)
        pytest.skip(f"{kernel} needs work-groups of {items} work-items; {name} allows {allowed}")


def long_loops() -> None:
    """Skip a test of loops with more than 65535 rounds, after which llvmpipe leaves a loop."""
    if os.environ.get("CLGPU_LIMITS") == "rusticl":
        pytest.skip("llvmpipe leaves loops after 65535 rounds")

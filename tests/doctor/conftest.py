"""Fixtures of the doctor's tests."""

from __future__ import annotations

import pytest

from tests.doctor.machine import Machine


@pytest.fixture
def machine(tmp_path):
    """A simulated machine without any GPU, driver or runtime."""
    return Machine(tmp_path)

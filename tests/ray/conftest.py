"""A folder for tests that start Ray; they are skipped where it is not installed."""

from __future__ import annotations

import importlib.util
import tempfile

import pytest


@pytest.fixture
def short_folder():
    """A folder whose name is short: Ray's sockets lie in it, and these may have 107 characters."""
    names = [n for n in ("ray", "pandas", "pyarrow") if importlib.util.find_spec(n) is None]
    if names:
        pytest.skip(f"{', '.join(names)} not installed (extra: ray)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield folder

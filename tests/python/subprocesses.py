"""Python in a separate process, for code that needs another environment or may crash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_python(
    script: str,
    *arguments: str,
    timeout: float = 120,
    stdout: int = subprocess.PIPE,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a script that can import the same modules as this process."""
    path = os.pathsep.join([*(p for p in sys.path if p), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd="/",  # the current folder is first in the path, and its package has no extension
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=timeout,
        check=False,
    )


def assert_succeeds(result: subprocess.CompletedProcess[str]) -> None:
    """Assert that the process succeeded, else show its output."""
    assert result.returncode == 0, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"

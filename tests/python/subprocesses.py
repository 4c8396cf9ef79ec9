"""Python in a process of its own: for what needs another environment, or might crash."""

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
    """Run a script; what this process can import, it can, too."""
    path = os.pathsep.join([*(p for p in sys.path if p), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd="/",  # the current folder leads the path, and ours has a package without extension
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=timeout,
        check=False,
    )


def assert_succeeds(result: subprocess.CompletedProcess[str]) -> None:
    """Assert that the process ended well, else show what it said."""
    assert result.returncode == 0, f"exit {result.returncode}\n{result.stdout}\n{result.stderr}"

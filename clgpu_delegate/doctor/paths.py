"""Tests of files that return False instead of raising if access is denied."""

from __future__ import annotations

from pathlib import Path


def exists(path: Path) -> bool:
    """Whether there is such a file or folder, as far as this user can see."""
    try:
        return path.exists()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether there is such a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder whose names fit, sorted; none where there is no such folder."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []

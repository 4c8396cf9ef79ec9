"""Builds of other commits, for ``python -m bench guard --against COMMIT``."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from bench.guard_worker import PACKAGE

KEPT = Path("build") / "guard"
"""The folder for builds in the repository; git ignores it."""


class CommitError(ValueError):
    """There is no such commit, or it does not build; the message is a sentence."""


def resolve(commit: str, root: Path) -> str:
    """Return the full hash of a commit.

    Raises
    ------
    CommitError
        If git knows no such commit, or there is no repository.
    """
    try:
        name = f"{commit}^{{commit}}"
        found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", name)
    except FileNotFoundError:
        raise CommitError("git is not installed, and --against needs it") from None
    except subprocess.CalledProcessError:
        what = f"no commit {commit!r} in {root.name}" if _is_repository(root) else "no git here"
        raise CommitError(f"there is {what}") from None
    return found.decode().strip()


def build(
    commit: str, root: Path, kept: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Path:
    """Build the package of a commit, or find an existing build.

    Parameters
    ----------
    commit
        The full hash.
    root, kept
        The repository, and the folder for builds; None: `KEPT`.
    say
        Called with a line when something is built.

    Returns
    -------
    Path
        The folder that holds `clgpu_delegate`.

    Raises
    ------
    CommitError
        If it does not build.
    """
    kept = kept or root / KEPT
    place = kept / f"{commit[:12]}-{sys.implementation.cache_tag}"
    if (place / PACKAGE).is_dir():
        return place
    kept.mkdir(parents=True, exist_ok=True)
    say(f"building {commit[:10]}")
    with tempfile.TemporaryDirectory(dir=kept, prefix="new-") as name:
        new = Path(name)
        with zipfile.ZipFile(io.BytesIO(_git(root, "archive", "--format=zip", commit))) as archive:
            archive.extractall(new / "source")
        _install(commit, new)
        try:
            (new / "package").rename(place)
        except OSError:  # another process was faster
            if not (place / PACKAGE).is_dir():
                raise
    return place


def _install(commit: str, new: Path) -> None:
    command = [
        sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index",
        "--no-cache-dir", "--disable-pip-version-check", "--target", str(new / "package"), "-C",
        f"build-dir={new / 'objects'}", str(new / "source"),
    ]  # fmt: skip
    folder = Path(sys.executable).parent  # has cmake and ninja in a virtual environment
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    result = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        encoding="utf-8", errors="replace",
    )  # fmt: skip
    core = list((new / "package" / PACKAGE).glob("_core*"))
    if result.returncode or not any(path.suffix in (".so", ".pyd") for path in core):
        raise CommitError(f"{commit[:10]} does not build: {last_error(result.stdout, new)}")
    shutil.rmtree(new / "objects", ignore_errors=True)


def last_error(output: str, folder: Path) -> str:
    """The last line with a compiler error; without one, the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    compilers = [line for line in lines if re.search(r"(?<!\w)(fatal )?error: \S", line)]
    ours = [line for line in compilers if re.search(r"\.(cpp|hpp|c|h|txt|cmake):\d+", line)]
    line = next(iter((ours or compilers or lines or ["pip said nothing"])[-1:]))
    return line.replace(f"{folder / 'source'}{os.sep}", "")


def _git(root: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _is_repository(root: Path) -> bool:
    try:
        _git(root, "rev-parse")
    except subprocess.CalledProcessError:
        return False
    return True

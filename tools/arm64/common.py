"""Folders and exceptions."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "build" / "arm64"


class Missing(Exception):  # not always an error: tests skip
    """Something is missing on this machine; the message says what to do."""


class Failed(Exception):
    """A command failed; the message ends with what it printed."""


def require(tool: str, package: str, path: str | None = None) -> str:
    """Find a program of a package of Debian and Ubuntu on the PATH, or on another path."""
    found = shutil.which(tool, path=path)
    if found is None:
        raise Missing(f"{tool} is not on the PATH (Debian and Ubuntu: apt-get install {package})")
    return found


def run(command: Sequence[str | Path], **how: object) -> str:
    """Run a command; return what it printed."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **how,
    )  # type: ignore[call-overload]  # fmt: skip
    if done.returncode != 0:
        raise Failed(
            f"this command ended with {done.returncode}: {' '.join(map(str, command))}\n"
            f"{done.stdout[-4000:]}"
        )
    return str(done.stdout)


@contextlib.contextmanager
def made_once(folder: Path, recipe: str, what: str) -> Iterator[Path | None]:
    """Yield a new folder that becomes `folder`, or None if the same recipe has already made it.

    Processes that want the same folder wait for the first of them.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder.parent / f"{folder.name}.recipe"
        if folder.is_dir() and stamp.is_file() and stamp.read_text() == recipe:
            yield None
            return
        stamp.unlink(missing_ok=True)
        part = folder.parent / f"{folder.name}.part"
        for left in (part, folder):
            if left.exists():
                shutil.rmtree(left)
        print(f"arm64: {what} ...", flush=True)
        start = time.monotonic()
        yield part
        part.rename(folder)
        stamp.write_text(recipe)
        print(f"arm64: {what}: {time.monotonic() - start:.0f} s", flush=True)

"""The switch for programs that cannot be changed: a link in LiteRT's folder."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from clgpu_delegate.errors import FileError, RuntimeNotFoundError
from clgpu_delegate.litert import package


@dataclasses.dataclass(frozen=True)
class LiteRtSwitch:
    """Whether every ``CompiledModel`` of this Python environment uses this delegate as its GPU."""

    is_on: bool
    """LiteRT finds the accelerator of this installation."""

    litert: str
    """Version of LiteRT; empty where it is not installed."""

    link: str
    """The link in LiteRT's folder, whether it exists or not; empty without LiteRT."""

    accelerator: str
    """The library of this installation that the link names."""

    problem: str
    """What is wrong, and what to do; empty where nothing is."""

    def to_dict(self) -> dict[str, Any]:
        """The fields."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        text = f"on: {self.link} names {self.accelerator}" if self.is_on else "off"
        if self.litert:
            text += f" (LiteRT {self.litert})"
        return f"{text}; {self.problem}" if self.problem else text


def litert_status() -> LiteRtSwitch:
    """Tell whether the switch is on, and what is wrong with it.

    Raises
    ------
    FileError
        If the accelerator's library is missing from this installation.
    """
    ours = package.accelerator()
    try:
        link = package.folder() / package.LIBRARY
    except RuntimeNotFoundError as error:
        return LiteRtSwitch(False, "", "", str(ours), str(error))
    version = package.version()
    is_on = link.is_symlink() and link.exists() and link.resolve() == ours
    is_on = is_on and not package.problem(version)
    return LiteRtSwitch(is_on, version, str(link), str(ours), _problem(link, ours, version))


def litert_on() -> LiteRtSwitch:
    """Make this delegate the GPU of every ``CompiledModel`` of this Python environment.

    This writes one symbolic link into LiteRT's folder. Options come from the environment variable
    ``CLGPU_LITERT_OPTIONS``, as ``key=value;key=value``. Calling it twice changes nothing.

    Raises
    ------
    RuntimeNotFoundError
        If LiteRT is not installed, or older than 2.2.
    FileError
        If there is a file of that name that is not this package's, or the folder is not writable.
    """
    ours = package.accelerator()
    link = package.folder() / package.LIBRARY
    obstacle = package.problem(package.version())
    if obstacle:
        raise RuntimeNotFoundError(obstacle)
    if os.path.lexists(link):
        if not _is_ours(link):
            raise FileError(f"{link} does not belong to clgpu_delegate; it was not changed")
        if link.exists() and link.resolve() == ours:
            return litert_status()
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(ours)  # fails instead of overwriting a file that was just created
    except OSError as error:
        raise FileError(f"cannot write {link}: {error.strerror}") from None
    return litert_status()


def litert_off() -> LiteRtSwitch:
    """Undo `litert_on`; without effect where it is off.

    Raises
    ------
    RuntimeNotFoundError
        If LiteRT is not installed.
    FileError
        If there is a file of that name that is not this package's, or the folder is not writable.
    """
    link = package.folder() / package.LIBRARY
    if os.path.lexists(link):
        if not _is_ours(link):
            raise FileError(f"{link} does not belong to clgpu_delegate; it was not changed")
        try:
            link.unlink()
        except OSError as error:
            raise FileError(f"cannot remove {link}: {error.strerror}") from None
    return litert_status()


def _is_ours(link: Path) -> bool:
    """Whether it is a link to the library of this package, of any installation."""
    if not link.is_symlink():
        return False
    named = link.readlink()
    return named.parts[-2:] == ("clgpu_delegate", package.LIBRARY) or (
        link.exists() and link.resolve() == package.accelerator()
    )


def _problem(link: Path, ours: Path, version: str) -> str:
    obstacle = package.problem(version)
    if obstacle or not os.path.lexists(link):
        return obstacle
    if not _is_ours(link):
        return f"{link} does not belong to clgpu_delegate"
    if not link.exists():
        return f"{link} names a file that is gone; run `clgpu litert on` or `clgpu litert off`"
    if link.resolve() != ours:
        return f"{link} names another installation; run `clgpu litert on` to use this one"
    return package.doubt(version)

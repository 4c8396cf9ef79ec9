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
    """Whether every ``CompiledModel`` of this Python environment uses this delegate as its GPU.

    Examples
    --------
    >>> switch = clgpu_delegate.litert_status()
    >>> switch.link_state in ("none", "ours", "gone", "other", "foreign")
    True
    """

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

    link_state: str = "none"
    """What is at the place of the link: ``"none"``, ``"ours"``, ``"gone"`` (ours, but its target is
    gone), ``"other"`` (of another installation of this package) or ``"foreign"`` (not ours)."""

    support: str = "absent"
    """Of LiteRT's version: ``"absent"`` (not installed), ``"unsupported"``, ``"untested"`` (newer
    than those that were tested), ``"tested"`` or ``"unknown"``."""

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

    Examples
    --------
    >>> print(clgpu_delegate.litert_status())  # doctest: +ELLIPSIS
    o...
    """
    ours = package.accelerator()
    try:
        link = package.folder() / package.LIBRARY
    except RuntimeNotFoundError as error:
        return LiteRtSwitch(False, "", "", str(ours), str(error))
    version = package.version()
    state, support = _link_state(link, ours), package.support(version)
    is_on = state == "ours" and support != "unsupported"
    problem = _problem(link, state, version)
    return LiteRtSwitch(is_on, version, str(link), str(ours), problem, state, support)


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

    Examples
    --------
    >>> clgpu_delegate.litert_on().is_on
    True
    >>> clgpu_delegate.litert_off().is_on
    False
    """
    ours = package.accelerator()
    link = package.folder() / package.LIBRARY
    obstacle = package.problem(package.version())
    if obstacle:
        raise RuntimeNotFoundError(obstacle)
    state = _link_state(link, ours)
    if state == "foreign":
        raise FileError(f"{link} does not belong to clgpu_delegate; it was not changed")
    if state == "ours":
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

    Examples
    --------
    >>> clgpu_delegate.litert_off().is_on
    False
    """
    link = package.folder() / package.LIBRARY
    state = _link_state(link, package.accelerator())
    if state == "foreign":
        raise FileError(f"{link} does not belong to clgpu_delegate; it was not changed")
    if state != "none":
        try:
            link.unlink()
        except OSError as error:
            raise FileError(f"cannot remove {link}: {error.strerror}") from None
    return litert_status()


def _link_state(link: Path, ours: Path) -> str:
    """As `LiteRtSwitch.link_state`."""
    if not os.path.lexists(link):
        return "none"
    if not link.is_symlink():
        return "foreign"
    if link.exists() and link.resolve() == ours:
        return "ours"
    if link.readlink().parts[-2:] != ("clgpu_delegate", package.LIBRARY):
        return "foreign"
    return "other" if link.exists() else "gone"


def _problem(link: Path, state: str, version: str) -> str:
    obstacle = package.problem(version)
    if obstacle:
        return obstacle
    return {
        "none": "",
        "ours": package.doubt(version),
        "gone": f"{link} names a file that is gone; run `clgpu litert on` or `clgpu litert off`",
        "other": f"{link} names another installation; run `clgpu litert on` to use this one",
        "foreign": f"{link} does not belong to clgpu_delegate",
    }[state]

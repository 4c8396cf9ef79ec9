"""Removes from texts what identifies a person or a machine."""

from __future__ import annotations

import functools
import getpass
import platform
import re
from pathlib import Path
from typing import Any

# Longest first, so a file's own folders go before what its name may contain.
_PATH = re.compile(r"(?<![\w.])(?:/[^\s/:;,'\"()\[\]<>|]+){2,}/?")
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\(?:[^\\\s:;,'\"<>|]+\\)*")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_STAMP = re.compile(r"^([IWEF])\d{4} \d\d:\d\d:\d\d[.\d]*\s+\d+ ", re.MULTILINE)
_LOG_STAMP = re.compile(r"^([IWEF])0000 00:00:[\d.]+\s+\d+ ", re.MULTILINE)
_TEMPORARY = re.compile(r"\btempfile[-_]\w+")
_COMMON = {"", "root", "user", "home", "localhost", "runner", "ubuntu", "admin", "test"}


def scrub(text: str) -> str:
    """A text without absolute paths, addresses, time stamps, user and host names."""
    text = _LOG_STAMP.sub(r"\1 ", _STAMP.sub(r"\1 ", text))
    text = _PATH.sub(_base_name, text)
    text = _WINDOWS_PATH.sub("", text)
    text = _TEMPORARY.sub("tempfile", _ADDRESS.sub("0x...", text))
    for name in _names():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "...", text)
    return text


def scrub_all(data: Any) -> Any:
    """The same for all texts in plain data; keys stay."""
    if isinstance(data, str):
        return scrub(data)
    if isinstance(data, dict):
        return {key: scrub_all(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [scrub_all(value) for value in data]
    return data


def _base_name(match: re.Match[str]) -> str:
    path = match[0].rstrip("/")
    # Names of tensors look like paths, too; the first folder of a path exists here.
    return path.rsplit("/", 1)[1] if _exists("/" + path.split("/")[1]) else match[0]


@functools.cache
def _exists(folder: str) -> bool:
    return Path(folder).is_dir()


@functools.cache
def _names() -> tuple[str, ...]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a process whose user has no name
        user = ""
    host = platform.node()
    found = {user, host, host.split(".", maxsplit=1)[0], Path.home().name}
    return tuple(sorted((n for n in found if len(n) > 2 and n not in _COMMON), key=len)[::-1])

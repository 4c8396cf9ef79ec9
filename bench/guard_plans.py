"""Compares the plans of the device of ``python -m bench guard`` with the stored ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.guard_items import Item
from bench.guard_report import Change
from bench.guard_session import Result
from bench.plans import models, snapshots
from clgpu_delegate import Device, Explanation

_SHOWN = 6  # lines of a difference; ``python -m bench plans`` has all of them


def snapshot_of(item: Item) -> tuple[str, str] | None:
    """The network and the title of the stored plan of an item; None if there is none."""
    kind, name, *rest = item.model.split()
    if kind == "network":
        return name, f"{item.options['precision']}, batch {rest[0]}"
    if kind == "int8":
        return name, f"int8, batch {rest[0]}"
    if item.name == "pynet 1488x1984 winograd fp16":
        return models.PYNET_12MP, "Winograd, fp16"
    return None


def profile_of(device: Device) -> tuple[str | None, str]:
    """The profile that describes a device, and a sentence about it."""
    try:
        name = snapshots.find_for(str(device.index))
    except (ValueError, RuntimeError) as failure:
        return None, f"plans are not compared: {failure}"
    if name is None:
        return None, "plans are not compared: no profile in bench/plans describes this device"
    return name, f"plans are compared with those of the profile {name}"


def compare(profile: str, items: Sequence[Item], results: Mapping[str, Result]) -> list[Change]:
    """Return the differences from the stored plans, one change for each item.

    Parameters
    ----------
    profile
        The name of the device's profile.
    items, results
        The measured items and their results; the facts of a result contain its ``plan``.
    """
    changes = []
    for item in items:
        where, data = snapshot_of(item), results[item.name].facts.get("plan")
        if where is None or data is None or snapshots.stored(profile, where[0]) is None:
            continue
        lines = snapshots.differences_to(profile, *where, Explanation(data))
        if lines:
            more = [f"and {len(lines) - _SHOWN} lines more"] if len(lines) > _SHOWN else []
            text = "; ".join(" ".join(line.split()) for line in [*lines[:_SHOWN], *more])
            changes.append(Change(item.name, None, None, problems=(f"another plan: {text}",)))
    return changes

"""The disk space of OpenCL implementations that pip installed, and whether they are needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from clgpu_delegate.doctor import advice
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import FoundDevice, Survey

# Implementations for the CPU, and the compiler libraries that Intel's loads.
_PACKAGES = ("intel-opencl-rt", "intel-cmplr-lib-rt", "pocl-binary-distribution")


def check(survey: Survey) -> Iterator[Finding]:
    """Tell what they take, and whether a GPU makes them unnecessary."""
    env = survey.env
    needs = {_plain(name): set(map(_plain, names)) for name, names in env.installed().items()}
    chosen = {_plain(name) for name in env.requested()}
    removable = _removable({name: its - chosen for name, its in needs.items()})
    if not removable:
        return
    sizes = {name: env.bytes_of(name) for name in removable}
    total = f"{sum(sizes.values()) / 1e6:.0f} MB"
    parts = [f"{name} {bytes_ / 1e6:.0f} MB" for name, bytes_ in sizes.items() if bytes_ >= 5e5]
    gpu = next((device for device in survey.devices if _replaces(survey, device)), None)
    if gpu is None:
        what, why = f"OpenCL for the CPU takes {total} on the disk", ""
    else:
        what = f"OpenCL for the CPU takes {total} on the disk and is not needed: {gpu} works"
        why = f"to remove it: {advice.pip_uninstall(env, ' '.join(sorted(removable)))}"
    yield Finding("disk space", "ok", what, why, details=(", ".join(parts),))


def _removable(needs: Mapping[str, set[str]]) -> list[str]:
    """The implementations that are installed, and what nothing else needs, once they are gone."""
    gone = [name for name in _PACKAGES if name in needs and not _needed(name, needs, _PACKAGES)]
    for name in gone:  # grows
        gone += [
            other
            for other in sorted(needs[name])
            if other in needs and other not in gone and not _needed(other, needs, gone)
        ]
    return gone


def _needed(name: str, needs: Mapping[str, set[str]], gone: Iterable[str]) -> bool:
    return any(name in names for other, names in needs.items() if other not in gone)


def _replaces(survey: Survey, device: FoundDevice) -> bool:
    if device.facts["type"] not in ("gpu", "accelerator"):
        return False
    outcome = survey.kernel(device)
    return outcome.ok and not outcome.answer["error"]


def _plain(name: str) -> str:
    """A distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()

"""``python -m bench plans``: compares the stored plans of all profiles with the current ones."""

from __future__ import annotations

import concurrent.futures
import difflib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from bench.plans import emulated, models, paper, profile, text
from bench.plans.making import Made
from bench.plans.profile import Profile, ProfileError
from clgpu_delegate.base.files import write_atomically

FOLDER = Path(__file__).parent / "snapshots"
_LARGE = 8 * 2**30  # bytes of a device that PyNET at full size is planned for


def profile_names() -> list[str]:
    """All profiles: recorded ones and emulated ones."""
    return sorted({*(path.stem for path in profile.FOLDER.glob("*.json")), *emulated.NAMES})


def find(name: str) -> Profile:
    """The profile of a name; a `ProfileError` if there is none."""
    if name in emulated.NAMES:
        return emulated.profile(name)
    path = profile.FOLDER / f"{name}.json"
    if name not in profile_names():
        known = ", ".join(profile_names())
        raise ProfileError(f"there is no device profile {name!r}; there are {known}")
    return profile.load(path)


def find_for(device: str) -> str | None:
    """The name of the profile whose facts match a real device; None if there is none.

    Parameters
    ----------
    device
        Index, or a part of its name, as in the option of `clgpu_delegate.load`.
    """
    for name in profile_names():
        if not profile.differences(find(name), device):
            return name
    return None


def networks_of(device: Profile) -> list[str]:
    """The networks whose plans are stored for a profile."""
    memory = device.device["CL_DEVICE_GLOBAL_MEM_SIZE"]
    assert isinstance(memory, int)
    large = device.device["CL_DEVICE_TYPE"] == emulated.GPU and memory >= _LARGE
    return [name for name in models.NAMES if large or name != models.PYNET_12MP]


def stale_sources(device: Profile) -> list[str]:
    """Kernel files that have changed since the facts of a profile were recorded."""
    now = profile.source_digests()
    return [path for path, digest in device.sources.items() if now.get(path) != digest]


def path_of(name: str, network: str) -> Path:
    """Path of a snapshot, by the names of the profile and the network."""
    return FOLDER / name / f"{network}.txt"


def stored(name: str, network: str) -> str | None:
    """The text of a snapshot; None if there is none."""
    path = path_of(name, network)
    return path.read_text() if path.is_file() else None


def digest(name: str, network: str) -> str | None:
    """The digest of a network's plans for a profile; None without a snapshot.

    It changes only when a plan changes.
    """
    snapshot = stored(name, network)
    return None if snapshot is None else text.digest_of(snapshot)


def differences_to(name: str, network: str, title: str, made: Made) -> list[str]:
    """The differences between a plan and its snapshot, as lines; empty if they agree.

    Parameters
    ----------
    name, network
        Of the profile and the network.
    title
        Of the plan: ``"fp16, batch 1"``.
    made
        The result of `Delegate.explain`, for example on a real device.
    """
    snapshot = stored(name, network)
    if snapshot is None:
        return [f"there is no snapshot of {network} for {name}"]
    return _changes(text.blocks_of(snapshot).get(title, []), text.plan_text(made))


def make(network: str, profiles: Sequence[Profile]) -> list[str]:
    """The current snapshots of a network, in the order of the profiles."""
    return [
        _snapshot(network, device, plans)
        for device, plans in zip(profiles, paper.make([network], profiles)[network])
    ]


def _snapshot(network: str, device: Profile, plans: paper.Plans) -> str:
    head = [
        f"{network} on {device.name}: {device.title}",
        f"kernels that the profile does not know: {len(plans.unknown)}",
    ]
    return text.snapshot_text(head, plans.blocks)


def differences(network: str, device: Profile, made: str) -> list[str]:
    """The differences between a result of `make` and the stored snapshot; empty if equal."""
    old = stored(device.name, network)
    if old == made:
        return []
    if old is None:
        return [f"there is no snapshot {path_of(device.name, network).name}"]
    lines = _changes(_head(old), _head(made))
    before, now = text.blocks_of(old), text.blocks_of(made)
    for title in dict.fromkeys([*before, *now]):
        if changes := _changes(before.get(title, []), now.get(title, [])):
            lines += [title, *changes]
    return lines or ["the order or the form of the text"]


def _head(snapshot: str) -> list[str]:
    return snapshot.split("\n\n", maxsplit=1)[0].splitlines()


def _changes(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Removed lines, marked with ``-``, and new ones, marked with ``+``."""
    compared = difflib.unified_diff(old, new, n=0, lineterm="")
    return [line for line in itertools.islice(compared, 2, None) if not line.startswith("@@")]


def run(names: Sequence[str] = (), *, profiles: Sequence[str] = (), write: bool = False) -> bool:
    """Compare, print the changes, and write them on request; returns whether nothing has changed.

    It writes only if all plans could be made.

    Raises
    ------
    ValueError
        If there is no such network.
    ClgpuError
        If there is no such profile, or plans cannot be made.
    """
    for name in names:
        if name not in models.NAMES:
            raise ValueError(f"{name!r} is no network; there are {', '.join(models.NAMES)}")
    devices = [find(name) for name in profiles or profile_names()]
    console = Console(width=None if Console().is_terminal else 200, highlight=False, markup=False)
    changed: dict[Path, str] = {}
    for network, device, made in _made(names or models.NAMES, devices):
        lines = differences(network, device, made)
        if lines:
            changed[path_of(device.name, network)] = made
            console.print(f"{device.name}, {network}:")
            console.print("\n".join(f"  {line}" for line in lines), soft_wrap=True)
    for device in devices:
        if stale := stale_sources(device):
            more = f" and {len(stale) - 3} more files" if len(stale) > 3 else ""
            console.print(
                f"{device.name}: since its facts were recorded, kernels have changed in "
                f"{', '.join(stale[:3])}{more}"
            )
    lost = [] if profiles else _lost()
    for path in lost:
        console.print(f"{path.relative_to(FOLDER)}: its profile or network is gone")
    if write:
        for path, made in changed.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, made.encode())
        for path in lost:
            path.unlink()
        console.print(f"{len(changed)} snapshots written, {len(lost)} removed")
        return True
    if changed or lost:
        console.print(
            f"{len(changed) + len(lost)} snapshots differ. If that is wanted, write them with "
            "python -m bench plans --write, and put the reason into the commit's message."
        )
    else:
        console.print("all plans are as kept")
    return not changed and not lost


def _made(names: Sequence[str], devices: Sequence[Profile]) -> Iterator[tuple[str, Profile, str]]:
    """Networks, profiles and snapshots; a process for each network, as many at a time as cores."""
    wanted = {
        network: [device for device in devices if network in networks_of(device)]
        for network in names
    }
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = {n: pool.submit(make, n, found) for n, found in wanted.items() if found}
        for network, future in futures.items():
            for device, made in zip(wanted[network], future.result()):
                yield network, device, made


def _lost() -> list[Path]:
    """Snapshots of no profile or no network."""
    known = {
        path_of(name, network) for name in profile_names() for network in networks_of(find(name))
    }
    return sorted(path for path in FOLDER.glob("*/*.txt") if path not in known)

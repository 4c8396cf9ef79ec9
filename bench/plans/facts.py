"""``python -m bench facts``: records the answers of a real device and its driver as a profile."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from rich.console import Console

import clgpu_delegate
from bench.plans import models
from bench.plans.making import Planner
from bench.plans.profile import (
    KernelFacts,
    Kernels,
    Profile,
    ProfileError,
    ask,
    save,
    source_digests,
)
from clgpu_delegate import Explanation, _core
from clgpu_delegate.base.files import check_writable

_MOST_WORKERS = 8  # each has a context on the device
_Task = tuple[str, int]  # a network and a batch size


def record(path: Path, *, names: Sequence[str] = (), device: str = "", workers: int = 0) -> Profile:
    """Load all networks on a device in all ways, and write the answers of its driver.

    Parameters
    ----------
    path
        Of the profile; an existing file is replaced at the end.
    names
        Networks; by default all, and PyNET at full size on GPUs.
    device
        Index, or a part of its name.
    workers
        Processes at a time; 0: as many as there are cores, at most 8.
    """
    check_writable(path)
    found = clgpu_delegate.load(device=device).device
    if not names:
        names = [n for n in models.NAMES if n != models.PYNET_12MP or found.type == "gpu"]
    tasks = _tasks(names)
    count = min(workers or os.cpu_count() or 1, _MOST_WORKERS, len(tasks))
    platform, answers = ask(str(found.index))
    probe = _core.probe_device(str(found.index))
    del probe["notes"]
    profile = Profile(path.stem, platform, answers, probe, sources=source_digests())
    console = Console(width=None if Console().is_terminal else 150)
    with tempfile.TemporaryDirectory() as folder:
        cache = str(Path(folder) / "programs.sqlite")
        with concurrent.futures.ProcessPoolExecutor(
            count, multiprocessing.get_context("spawn")
        ) as pool:
            futures = {pool.submit(_facts_of, t, str(found.index), cache): t for t in tasks}
            for done in concurrent.futures.as_completed(futures):
                name, batch = futures[done]
                try:
                    kernels, problems = done.result()
                except BrokenProcessPool:
                    message = f"a process ended before its time, perhaps that of {name}"
                    raise ProfileError(message) from None
                new = len(kernels.keys() - profile.kernels.keys())
                profile.kernels.update(kernels)
                console.print(f"{name}, batch {batch}: {new} more kernels", highlight=False)
                for problem in problems:
                    console.print(f"  {problem}", highlight=False)
    save(profile, path)
    console.print(
        f"{path}: {len(profile.kernels)} kernels, {path.stat().st_size // 1000} KB", highlight=False
    )
    return profile


def _tasks(names: Sequence[str]) -> list[_Task]:
    """The tasks of one process each; the longest come first."""
    long_ones = [models.PYNET_12MP, "pynet", "inception_v3", "alexnet"]
    order = sorted(names, key=lambda n: long_ones.index(n) if n in long_ones else len(long_ones))
    return [(n, b) for n in order for b in dict.fromkeys(w.batch for w in models.ways(n))]


def _facts_of(task: _Task, device: str, cache: str) -> tuple[Kernels, list[str]]:
    """Runs in a separate process: facts of the kernels that a network needs, and errors."""
    _core.record_kernels()
    name, batch = task
    found = clgpu_delegate.devices()[int(device)]
    # On CPUs launches are slow and give no facts: work-groups and memory have no hard limits.
    planner = Planner(models.Models(name), device, cache=cache, warm_up=found.type == "gpu")
    problems: dict[str, None] = {}
    for way in models.ways(name):
        if way.batch == batch:
            made = planner.plan(way)
            notes = made.notes if isinstance(made, Explanation) else [made]
            problems.update(dict.fromkeys(f"{way.title}: {note}" for note in notes))
    refused = {match[1] for note in problems for match in _REFUSED.finditer(note)}
    kernels = {
        (entry, options): KernelFacts(
            group if builds else 0, bytes_, bytes_ > found.local_bytes and entry in refused
        )
        for entry, options, builds, group, bytes_ in _core.kernel_facts()
        if not entry.startswith("device_")  # of probes
    }
    return kernels, list(problems)


# A failed launch in a note of the delegate.
_REFUSED = re.compile(r"clEnqueueNDRangeKernel: .* in [\w/]+\.cl:(\w+) ")

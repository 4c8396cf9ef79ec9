"""Planning for absent devices: an OpenCL library that answers from profiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.plans.profile import DEVICE_QUESTIONS, DOT8, PLATFORM_QUESTIONS, Profile, encoded
from clgpu_delegate import _core
from clgpu_delegate.errors import ClgpuError
from tests.limits.build import shared_library
from tests.runtimes import ENVIRONMENT_VARIABLE, RUNTIMES, available_runtimes

ROOT = Path(__file__).resolve().parents[2]
_DRIVER = Path(__file__).parent / "paper_driver.c"
_SCRIPT = "from bench.plans.worker import main; main()"


class Plans(NamedTuple):
    """The plans of a network for a profile."""

    blocks: dict[str, list[str]]
    """Lines by title."""

    unknown: list[str]
    """Kernels that the profile lacks: the name, a tab, build options."""


class PaperError(ClgpuError):
    """The process that makes plans failed."""


def driver() -> Path:
    """The library, compiled if necessary; raises `tests.limits.build.LayerError` if that fails."""
    return shared_library("paper", [_DRIVER], ROOT / "build" / "plans", "plans are made with")


def make(
    networks: Sequence[str], profiles: Sequence[Profile], *, real: bool = False
) -> dict[str, list[Plans]]:
    """Make the plans of networks; by network, in the order of the profiles.

    A separate process makes them; its only OpenCL library is the driver. Weights and ranges are
    simplified (`bench.plans.models`) unless ``real``.
    """
    task = {
        "real": real,
        "networks": list(networks),
        "profiles": [
            {
                "name": p.device["CL_DEVICE_NAME"],
                "platform": p.platform["CL_PLATFORM_NAME"],
                "probe": p.probe,
            }
            for p in profiles
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "facts"
        facts.write_text("".join(map(facts_text, profiles)))
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", _SCRIPT],
            input=json.dumps(task), env={**os.environ, **variables(facts)},
            cwd="/",  # the current folder is first in the path, and its package has no extension
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        message = f"the process that makes plans has failed ({done.returncode}):\n{done.stderr}"
        raise PaperError(message)
    made = json.loads(done.stdout[done.stdout.index("{") :])
    return {
        network: [Plans(entry["blocks"], entry["unknown"]) for entry in entries]
        for network, entries in made.items()
    }


def variables(facts: Path) -> dict[str, str]:
    """Those of a process whose devices are the profiles of a file in the driver's format."""
    return {
        "CLGPU_OPENCL_LIBRARY": str(driver()),
        "CLGPU_PAPER": str(facts),
        "CLGPU_CACHE": "off",
        "CLGPU_PROGRAMS": "",
        **_runtime(),
        "PYTHONPATH": os.pathsep.join([*(p for p in sys.path if p), str(ROOT)]),
    }


def indices(profiles: Sequence[Mapping[str, Any]]) -> list[int]:
    """In such a process: the delegate's index of each profile, with its probe's facts set.

    A profile is given by ``name`` and ``platform`` of its device and by ``probe``.
    """
    names = {(d["name"], d["platform"]): d["index"] for d in _core.devices()}
    found = [names[profile["name"], profile["platform"]] for profile in profiles]
    for index, profile in zip(found, profiles):
        probe = dict(profile["probe"])
        probe["dot8"] = DOT8.index(probe["dot8"])
        _core.pretend_probe(str(index), **probe)
    return found


def _runtime() -> dict[str, str]:
    """The newer runtime if it is installed.

    tflite_runtime allocates the whole network on the host after a delegate has refused it; PyNET
    at full size is too large for that.
    """
    newer = RUNTIMES[-1]
    return {ENVIRONMENT_VARIABLE: newer} if newer in available_runtimes() else {}


def facts_text(profile: Profile) -> str:
    """A profile in the driver's format."""
    lines = ["profile"]
    for head, answers, questions in (
        ("platform", profile.platform, PLATFORM_QUESTIONS),
        ("device", profile.device, DEVICE_QUESTIONS),
    ):
        for name, answer in answers.items():
            code, kind = questions[name]
            lines.append(f"{head}\t{code:x}\t{encoded(answer, kind).hex()}")
    for (name, options), facts in profile.kernels.items():
        lines.append(
            f"kernel\t{name}\t{options}\t{facts.work_group}\t{facts.local_bytes}\t"
            f"{int(facts.is_refused)}"
        )
    return "\n".join(lines) + "\n"

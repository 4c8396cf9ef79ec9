"""The drivers that are registered with the loader, by files or by variables."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from clgpu_delegate.doctor import paths
from clgpu_delegate.doctor.environment import Environment

FOLDER = "/etc/OpenCL/vendors"


@dataclasses.dataclass(frozen=True)
class Vendor:
    """A driver that is registered with the loader."""

    source: str
    """The .icd file, or the variable that names the library."""

    library: str
    """Its first line."""

    file: Path | None
    """The .icd file."""


def folder(env: Environment) -> Path | None:
    """Where the loader looks for .icd files; None if a variable names single libraries."""
    named = env.environ.get("OCL_ICD_VENDORS") or env.environ.get("OPENCL_VENDOR_PATH")
    if not named:
        return env.at(FOLDER)
    path = Path(named)
    if path.suffix == ".icd" or (paths.exists(path) and not paths.is_folder(path)):
        return None
    return path


def listed(env: Environment) -> list[Vendor]:
    """All drivers that are registered with the loader."""
    found = []
    place = folder(env)
    if place is None:
        path = Path(env.environ.get("OCL_ICD_VENDORS") or env.environ["OPENCL_VENDOR_PATH"])
        if path.suffix != ".icd":
            found.append(Vendor("OCL_ICD_VENDORS", str(path), None))
        else:
            # A name without a path is a file of the usual folder.
            found.append(_read(env, path if "/" in str(path) else env.at(FOLDER) / path))
    elif paths.is_folder(place):
        found += [_read(env, path) for path in paths.matching(place, "*.icd")]
    for name in filter(None, env.environ.get("OCL_ICD_FILENAMES", "").split(":")):
        found.append(Vendor("OCL_ICD_FILENAMES", name, None))
    return found


def _read(env: Environment, path: Path) -> Vendor:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    return Vendor(env.shown(path), (lines or [""])[0].strip(), path)

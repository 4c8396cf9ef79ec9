"""The vendor files (``.icd``), each of which names a driver's library."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from clgpu_delegate.doctor import advice, icd, libraries, paths
from clgpu_delegate.doctor.child import Outcome
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.icd import Vendor
from clgpu_delegate.doctor.survey import Survey

_CHECK = "vendor files"


def check(survey: Survey) -> Iterator[Finding]:
    """Open each driver as a loader would."""
    env = survey.env
    if env.environ.get("CLGPU_OPENCL_LIBRARY"):
        yield Finding(_CHECK, "skipped", "not used, since CLGPU_OPENCL_LIBRARY is set")
        return
    found = icd.listed(env)
    if not found:
        yield _none(survey)
    for vendor in found:
        yield _one(survey, vendor)


def _none(survey: Survey) -> Finding:
    env, place = survey.env, icd.folder(survey.env)
    shown = env.shown(place) if place is not None else icd.FOLDER
    state = "is empty" if place is not None and paths.is_folder(place) else "does not exist"
    what = f"no driver is registered: {shown} {state}"
    if survey.devices:
        return Finding(_CHECK, "ok", f"{what}; OpenCL runtimes installed by pip need none")
    if place != env.at(icd.FOLDER):
        return Finding(_CHECK, "skipped", f"{what}; see the variables below")
    return Finding(
        _CHECK, "problem", what, "the loader finds drivers by the .icd files there",
        advice.cpu_runtime(env),
    )  # fmt: skip


def _one(survey: Survey, vendor: Vendor) -> Finding:
    env = survey.env
    if not vendor.library:
        return Finding(
            _CHECK, survey.severity, f"{vendor.source} is empty or cannot be read",
            "its first line has to name a driver's library", _disable(env, vendor),
        )  # fmt: skip
    outcome = survey.vendor(vendor.library)
    name = f"{vendor.source} ({vendor.library})"
    if outcome.ok and not outcome.answer.get("error"):
        return _loaded(vendor, outcome)
    if outcome.died:
        return Finding(
            _CHECK, "problem", f"{name} {outcome.failure} while it was loaded",
            "every program that uses OpenCL loads it, and fails the same way",
            _disable(env, vendor), tuple(outcome.output.splitlines()[-5:]),
        )  # fmt: skip
    error = outcome.answer["error"] if outcome.ok else outcome.failure
    what, fix = _explain(env, vendor, error)
    return Finding(_CHECK, survey.severity, f"{name}: {what}", error, fix)


def _loaded(vendor: Vendor, outcome: Outcome) -> Finding:
    count = outcome.answer["platforms"]
    what = f"{vendor.source}: {vendor.library}, {count} platform{'' if count == 1 else 's'}"
    # Drivers of GPUs that are not in this machine are often installed.
    why = "" if count else f"it finds no device (code {outcome.answer['code']})"
    return Finding(_CHECK, "ok", what, why)


# Parts of the dynamic linker's error messages, and what they mean.
_COMPLAINTS = {
    "wrong ELF class": "the library is for another word size",
    "invalid ELF header": "the file is not a library",
    "file too short": "the file is not a library",
    "is not an OpenCL driver": "the library is not an OpenCL driver",
}


def _explain(env: Environment, vendor: Vendor, error: str) -> tuple[str, str]:
    """What an error of the dynamic linker means, and the command that fixes it."""
    package = advice.package_of(vendor.library)
    missing = re.match(r"(\S+): cannot open shared object file: No such file", error)
    what, fix = "cannot be loaded", _disable(env, vendor)
    if missing and missing[1] == vendor.library:
        what, fix = _not_there(env, vendor, package)
    elif missing:
        what = f"{missing[1]}, which it needs, is missing"
        fix = _provide(env, missing[1], package)
    elif "Permission denied" in error:
        what, fix = (
            "cannot be read: permission denied",
            f"{advice.sudo(env)}chmod a+rx {shlex.quote(vendor.library)}",
        )
    elif "version `" in error:
        what = "the driver is built for another system"
        fix = advice.install(env, package) if package else fix
    else:
        what = next((text for part, text in _COMPLAINTS.items() if part in error), what)
    return what, fix


def _not_there(env: Environment, vendor: Vendor, package: str) -> tuple[str, str]:
    path = Path(vendor.library)
    elsewhere = [file.path for file in libraries.find(env, path.name) if file.machine]
    # Intel's packages for pip have .icd files that name the folder they were built in.
    elsewhere += [file for file in env.pip_libraries() if file.name == path.name]
    if path.is_symlink():
        what = "is a link to a file that does not exist"
    elif elsewhere:
        what = f"the library is elsewhere, {elsewhere[0]}"
        return what, _rewrite(env, vendor, str(elsewhere[0]))
    else:
        what = "the library does not exist"
    return what, advice.install(env, package) if package else _disable(env, vendor)


def _provide(env: Environment, library: str, package: str) -> str:
    kind = advice.manager(env)
    if kind == "dnf":
        return f"{advice.sudo(env)}dnf install '{library}()(64bit)'"
    if kind == "apk":
        return f"{advice.sudo(env)}apk add so:{library}"
    if package:
        return advice.install(env, package)
    search = {"apt": "apt-file search", "pacman": "pacman -F"}.get(kind)
    hint = f" (found by: {search} {library})" if search else ""
    return f"install the package that has {library}{hint}"


def _disable(env: Environment, vendor: Vendor) -> str:
    if vendor.file is None:
        return f"unset {vendor.source}"
    sudo = "" if env.access(vendor.file.parent, os.W_OK) else advice.sudo(env)
    path = shlex.quote(vendor.source)
    return f"{sudo}mv {path} {path}.off"


def _rewrite(env: Environment, vendor: Vendor, library: str) -> str:
    if vendor.file is None:
        return f"unset {vendor.source}"
    sudo = "" if env.access(vendor.file, os.W_OK) else advice.sudo(env)
    return f"echo {shlex.quote(library)} | {sudo}tee {shlex.quote(vendor.source)}"


def pip_runtimes(survey: Survey) -> Iterator[Finding]:
    """Open the OpenCL runtimes that pip installed, which need neither loader nor .icd file."""
    env = survey.env
    found = env.pip_libraries()
    for path in found:
        outcome = survey.vendor(str(path))
        error = outcome.failure or outcome.answer.get("error")
        if not error:
            yield Finding("pip's OpenCL", "ok", str(path))
            continue
        yield Finding(
            "pip's OpenCL", "problem" if outcome.died else survey.severity,
            f"{path} cannot be used", error,
            advice.pip(env, "--force-reinstall 'clgpu_delegate[cpu]'"),
        )  # fmt: skip
    if not found and env.version("intel-opencl-rt"):
        yield Finding(
            "pip's OpenCL", survey.severity, "intel-opencl-rt is installed without its libraries",
            "pip install --target leaves them out",
            "python3 -m venv clgpu && clgpu/bin/pip install 'clgpu_delegate[cpu]'",
        )  # fmt: skip

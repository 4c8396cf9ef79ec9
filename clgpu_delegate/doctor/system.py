"""The machine, Python and the package itself."""

from __future__ import annotations

import platform
import re
import sysconfig
from collections.abc import Iterator

from clgpu_delegate.doctor import advice
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Survey


def machine(survey: Survey) -> Iterator[Finding]:
    """Describe the machine; 64-bit Linux with glibc is fully supported."""
    env = survey.env
    python = ".".join(map(str, env.python))
    system = env.distribution.get("PRETTY_NAME", platform.system())
    place = " in WSL" if env.is_wsl else ""
    place += f" in {env.container}" if env.container else ""
    libc = env.libc or "musl or another C library"
    what = f"Python {python}, {env.machine}, {libc}, {system}{place}"
    kernel = (f"{platform.system()} {platform.release()}",)
    if env.system != "linux":
        yield Finding(
            "system", "warning", what, "only Linux is tested",
            "use Linux, WSL or a container", kernel,
        )  # fmt: skip
    elif env.bits != 64:
        yield Finding(
            "system", "problem", what, f"this Python has {env.bits} bits, packages are for 64",
            "install a 64-bit Python (and system)", kernel,
        )  # fmt: skip
    elif not env.libc.startswith("glibc"):
        yield Finding(
            "system", "warning", what, "the TensorFlow Lite runtimes have no packages for it",
            "use a system with glibc: in containers, python:3-slim instead of python:3-alpine",
            kernel,
        )  # fmt: skip
    else:
        yield Finding("system", "ok", what, details=kernel)


def package(survey: Survey) -> Iterator[Finding]:
    """Import the compiled extension, or report why that fails."""
    env, outcome = survey.env, survey.extension
    version = env.version("clgpu_delegate")
    if outcome.ok:
        answer = outcome.answer
        name = f"clgpu_delegate {version or answer['version']}"
        if version and answer["version"] not in (version, ""):
            yield Finding(
                "package", "warning", f"{name}, with an extension of version {answer['version']}",
                f"{answer['file']} is a leftover of another version",
                advice.pip(env, "--force-reinstall clgpu_delegate"),
            )  # fmt: skip
        else:
            why = "" if version else "imported from a folder, not installed"
            yield Finding("package", "ok", f"{name}, {answer['file']}", why)
        return
    files = sorted(path.name for path in env.package.glob("_core*.so"))
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    if not files:
        is_source = (env.package.parent / "pyproject.toml").exists()
        where = f"{env.package} is a source folder" if is_source else f"none in {env.package}"
        installed = version is not None and is_source
        yield Finding(
            "package", "problem", "the compiled extension is missing", where,
            "cd /   # then the installed package is found, rather than the source folder"
            if installed
            else advice.pip(env, "." if is_source else "--force-reinstall clgpu_delegate"),
        )  # fmt: skip
    elif not any(name.endswith((suffix, ".abi3.so")) or name == "_core.so" for name in files):
        yield Finding(
            "package", "problem", "the compiled extension is for another Python",
            f"found {', '.join(files)}; this Python loads {suffix}",
            advice.pip(env, "--force-reinstall clgpu_delegate"),
        )  # fmt: skip
    else:
        yield Finding(
            "package", "problem", "the compiled extension cannot be loaded", outcome.failure,
            advice.pip(env, "--force-reinstall --no-binary clgpu_delegate clgpu_delegate"),
        )  # fmt: skip


def dependencies(survey: Survey) -> Iterator[Finding]:
    """Check that all required packages are installed; ``pip --no-deps`` leaves them out."""
    env = survey.env
    seen: set[str] = set()
    waiting, missing = list(env.requirements), []
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if env.version(name) is None:
            missing.append(name)
            continue
        # Conditions are for extras, other systems and old Pythons.
        needed = [line for line in env.requires(name) if ";" not in line]
        waiting += [found[0] for line in needed if (found := re.match(r"[\w.-]+", line))]
    if missing:
        names = " ".join(sorted(missing))
        yield Finding(
            "package", "problem", f"not installed, but needed: {names}",
            "commands or functions fail where they use it", advice.pip(env, names),
        )  # fmt: skip

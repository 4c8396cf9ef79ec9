"""The loader, ``libOpenCL.so.1``, through which drivers are found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clgpu_delegate.doctor import advice, icd, libraries, paths
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Survey

_CHECK = "loader"


def check(survey: Survey) -> Iterator[Finding]:
    """Open the loader and ask it for its platforms."""
    env = survey.env
    if env.environ.get("CLGPU_OPENCL_LIBRARY"):
        yield Finding(_CHECK, "skipped", "not used, since CLGPU_OPENCL_LIBRARY is set")
        return
    name = env.loader_names[0]
    outcome = survey.listing(name)
    if survey.fatal_vendors:
        yield Finding(_CHECK, "skipped", f"{name} {outcome.failure}")
    elif outcome.died:
        yield Finding(
            _CHECK, "problem", f"listing OpenCL's platforms {outcome.failure}",
            "each driver alone can be loaded, but not all of them together",
            "name one driver only: export CLGPU_OPENCL_LIBRARY=/path/to/its/library.so",
            tuple(outcome.output.splitlines()[-5:]),
        )  # fmt: skip
    elif not outcome.ok:
        yield Finding(
            _CHECK, survey.severity, f"{name} cannot be used", outcome.failure,
            advice.install(env, "loader"),
        )  # fmt: skip
    elif outcome.answer["error"]:
        yield _missing(survey, outcome.answer["error"])
    else:
        yield from _found(survey, outcome.answer)


def _missing(survey: Survey, error: str) -> Finding:
    env = survey.env
    files = libraries.find(env, "libOpenCL.so*")
    links = [file for file in files if file.broken_link]
    others = [file for file in files if file.machine not in ("", libraries.machine(env))]
    if links:
        what = f"{env.shown(links[0].path)} is a link to a file that does not exist"
    elif others:
        what = f"{env.shown(others[0].path)} is for {others[0].machine}, not {env.machine}"
    elif files:
        what = f"{env.shown(files[0].path)} is there, but cannot be loaded"
    else:
        what = "there is no OpenCL loader (libOpenCL.so.1)"
    if survey.devices and not survey.gpus and not icd.listed(env):
        return Finding(_CHECK, "ok", f"{what}; OpenCL runtimes installed by pip do not need it")
    if not survey.gpus and any(problem.check == "vendor files" for problem in survey.problems):
        return Finding(_CHECK, "skipped", f"{what}; only the missing drivers need it")
    named = env.environ.get("LD_LIBRARY_PATH", "").split(":")
    if files and not links and str(files[0].path.parent) in named:
        return Finding(
            _CHECK, survey.severity, f"{what}; it was found through LD_LIBRARY_PATH", error,
            "unset LD_LIBRARY_PATH",
        )  # fmt: skip
    why = "programs find GPU drivers through it" if survey.devices else ""
    return Finding(
        _CHECK, survey.severity, what, why or error, advice.install(env, "loader"), (error,)
    )


def _found(survey: Survey, answer: dict[str, object]) -> Iterator[Finding]:
    env = survey.env
    file, platforms = str(answer["file"]), answer["platforms"]
    assert isinstance(platforms, list)
    names = ", ".join(platform["name"] for platform in platforms) or "none"
    yield Finding(_CHECK, "ok", f"{file or env.loader_names[0]}; platforms: {names}")
    if not platforms:
        yield from list(_shadowed(survey, file)) or _ignored(survey, file)
    conda = env.environ.get("CONDA_PREFIX")
    if conda and file.startswith(conda) and not env.environ.get("OCL_ICD_VENDORS"):
        own = {path.name for path in paths.matching(Path(conda, "etc/OpenCL/vendors"), "*.icd")}
        unseen = [name for name in env.names(icd.FOLDER, "*.icd") if name not in own]
        if unseen and not (own & {"ocl-icd-system.icd"}):
            yield Finding(
                _CHECK, "warning", f"conda's loader does not see {', '.join(unseen)}",
                f"it looks into {conda}/etc/OpenCL/vendors, not into {icd.FOLDER}",
                f"export OCL_ICD_VENDORS={icd.FOLDER}",
            )  # fmt: skip


def _shadowed(survey: Survey, file: str) -> Iterator[Finding]:
    """A loader without platforms that LD_LIBRARY_PATH puts before one that has some."""
    env = survey.env
    if str(Path(file).parent) not in env.environ.get("LD_LIBRARY_PATH", "").split(":"):
        return
    for other in libraries.find(env, "libOpenCL.so.1"):
        if not other.machine or other.path.parent == Path(file).parent:
            continue
        outcome = survey.listing(str(other.path))
        if outcome.ok and outcome.answer["platforms"]:
            yield Finding(
                _CHECK, survey.severity, f"LD_LIBRARY_PATH puts {file} before {other.path}",
                "the first finds no platform, the second does",
                f"export CLGPU_OPENCL_LIBRARY={other.path}",
            )  # fmt: skip
            return


def _ignored(survey: Survey, file: str) -> Iterator[Finding]:
    """A loader that ignores the variable, such as CUDA's own."""
    variable = "OCL_ICD_VENDORS"
    folder = survey.env.environ.get(variable)
    offering = [
        vendor.source
        for vendor in icd.listed(survey.env)
        if vendor.library and (survey.vendor(vendor.library).answer or {}).get("platforms")
    ]
    if folder and offering:
        yield Finding(
            _CHECK, survey.severity, f"{file} finds none of {', '.join(offering)}",
            f"it ignores {variable}; CUDA's own loader does so, for example",
            f"{advice.sudo(survey.env)}cp {' '.join(offering)} {icd.FOLDER}/",
        )  # fmt: skip

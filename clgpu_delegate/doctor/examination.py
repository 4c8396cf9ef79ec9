"""Runs all checks, one after the other; an error in one does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from clgpu_delegate.doctor import (
    compiled,
    devices,
    loader,
    model_run,
    nodes,
    nvidia,
    space,
    stock,
    store,
    system,
    variables,
    vendors,
)
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Diagnosis, Finding
from clgpu_delegate.doctor.redact import redact, redactor
from clgpu_delegate.doctor.survey import Check, Survey

# Each check comes after those that it depends on.
CHECKS: tuple[tuple[str, Check], ...] = (
    ("system", system.machine),
    ("package", system.package),
    ("package", system.dependencies),
    ("device files", nodes.check),
    ("vendor files", vendors.check),
    ("pip's OpenCL", vendors.pip_runtimes),
    ("loader", loader.check),
    ("NVIDIA", nvidia.check),
    ("GPU driver", nodes.drivers),
    ("variables", variables.check),
    ("variables", nodes.rusticl),
    ("platforms", devices.platforms),
    ("devices", devices.check),
    ("test kernel", devices.kernels),
    ("disk space", space.check),
    ("cache", store.check),
    ("runtimes", stock.check),
    ("CompiledModel", compiled.check),
    ("test model", model_run.check),
)


def examine(env: Environment, progress: Callable[[str], None] | None = None) -> Diagnosis:
    """Run all checks on an environment."""
    survey, apply = Survey(env), redactor(env)
    found = []
    for name, check in CHECKS:
        if progress is not None:
            progress(name)
        findings = list(guarded(name, check, survey))
        survey.problems += [finding for finding in findings if finding.status == "problem"]
        found += [redact(finding, apply) for finding in findings]
    return Diagnosis(tuple(found))


def guarded(name: str, check: Check, survey: Survey) -> Iterator[Finding]:
    """Run a check; an exception becomes a finding."""
    try:
        yield from check(survey)
    except Exception as error:
        yield Finding(
            name, "warning", "this check itself failed", f"{type(error).__name__}: {error}",
            "report it, with the output of: clgpu doctor --json",
        )  # fmt: skip

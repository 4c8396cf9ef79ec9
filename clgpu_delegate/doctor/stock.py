"""The TensorFlow Lite runtimes, and NumPy, which they depend on."""

from __future__ import annotations

from collections.abc import Iterator

from clgpu_delegate.doctor import advice
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Survey

_CHECK = "runtimes"
# Name -> distributions that contain it, module with Interpreter; as in clgpu_delegate/runtimes.py.
RUNTIMES = {
    "ai_edge_litert": (("ai-edge-litert", "ai-edge-litert-nightly"), "ai_edge_litert.interpreter"),
    "tflite_runtime": (("tflite-runtime", "tflite-runtime-nightly"), "tflite_runtime.interpreter"),
    "tensorflow": (("tensorflow", "tensorflow-cpu", "tf-nightly"), "tensorflow.lite"),
}


def version(env: Environment, name: str) -> str | None:
    """Version of a runtime that is installed, or None."""
    found = (env.version(distribution) for distribution in RUNTIMES[name][0])
    return next((number for number in found if number), None)


def check(survey: Survey) -> Iterator[Finding]:
    """Import each runtime that is installed."""
    env = survey.env
    installed = {name: number for name in RUNTIMES if (number := version(env, name))}
    if not installed:
        yield Finding(
            _CHECK, "problem", "no TensorFlow Lite runtime is installed", "", _advice(env)
        )
        return
    findings = [_one(survey, name, number) for name, number in installed.items()]
    works = any(finding.status == "ok" for finding in findings)
    for finding in findings:
        if finding.status == "problem" and works:
            # Another runtime works.
            yield Finding(_CHECK, "warning", finding.what, finding.why, finding.fix)
        else:
            yield finding


def _one(survey: Survey, name: str, number: str) -> Finding:
    env = survey.env
    numpy = env.version("numpy")
    what = f"{name} {number}"
    if name == "tflite_runtime" and numpy and int(numpy.split(".", maxsplit=1)[0]) >= 2:
        return Finding(
            _CHECK, "problem", f"{what} does not work with NumPy {numpy}",
            "its extension is built for NumPy 1", advice.pip(env, "'numpy<2'"),
        )  # fmt: skip
    outcome = survey.runtime(name, RUNTIMES[name][1])
    if outcome.ok:
        return Finding(_CHECK, "ok", f"{what}, with NumPy {numpy}")
    fix = "--force-reinstall " + next(d for d in RUNTIMES[name][0] if env.version(d))
    return Finding(
        _CHECK, "problem", f"{what} cannot be imported", outcome.failure,
        advice.pip(env, fix), tuple(outcome.output.splitlines()[-3:]),
    )  # fmt: skip


def _advice(env: Environment) -> str:
    # As in clgpu_delegate.runtimes: for each Python, one of the two has wheels.
    return advice.pip(env, f"'clgpu_delegate[{'litert' if env.python >= (3, 10) else 'tflite'}]'")

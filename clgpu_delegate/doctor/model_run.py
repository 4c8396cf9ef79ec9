"""The check that runs a small model with a runtime alone and with the delegate."""

from __future__ import annotations

from collections.abc import Iterator

from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.stock import RUNTIMES, version
from clgpu_delegate.doctor.survey import FoundDevice, Survey

_CHECK = "test model"
_TOLERANCE = 1e-4  # outputs are probabilities


def check(survey: Survey) -> Iterator[Finding]:
    """Run the test model: the first runtime on every device, the others on the first device."""
    env = survey.env
    chosen = survey.chosen(env.device) if env.device else None
    devices = [chosen] if chosen else survey.devices
    devices = [device for device in devices if _computes(survey, device)]
    names = [name for name in RUNTIMES if version(env, name) and survey.works(name)]
    missing = [
        text
        for text, there in (
            ("the extension", survey.extension.ok), ("a runtime", names), ("a device", devices),
        )
        if not there
    ]  # fmt: skip
    if missing:
        yield Finding(_CHECK, "skipped", f"not run: it needs {' and '.join(missing)}")
        return
    if survey.fatal_vendors:
        what = f"not run: {survey.fatal_vendors[0]} crashes every process that lists the devices"
        yield Finding(_CHECK, "skipped", what)
        return
    for number, name in enumerate(names):
        for device in devices if number == 0 else devices[:1]:
            yield _run(survey, name, device)


def _computes(survey: Survey, device: FoundDevice) -> bool:
    outcome = survey.kernel(device)
    return outcome.ok and not outcome.answer["error"]


def _run(survey: Survey, name: str, device: FoundDevice) -> Finding:
    outcome = survey.env.call("runtime_probe.py", "run_model", name, str(device.index))
    what = f"{name} on {device}"
    report = "report it, with the output of: clgpu doctor --json"
    if not outcome.ok:
        return Finding(
            _CHECK, "problem", f"{what}: {outcome.failure}", "", report,
            tuple(outcome.output.splitlines()[-5:]),
        )  # fmt: skip
    answer = outcome.answer
    if answer["device"] != device.facts["name"]:
        what += f", which is {answer['device']} for the delegate"
    if not answer["error"] <= _TOLERANCE:  # NaN too
        return Finding(
            _CHECK, "problem", f"{what}: the outputs are off by {answer['error']:.2g}",
            "a kernel or the driver is wrong", report,
        )  # fmt: skip
    if answer["left"]:
        return Finding(
            _CHECK, "warning", f"{what}: {len(answer['left'])} of {answer['nodes']} nodes stay "
            "on the CPU", "; ".join(answer["left"]), report,
        )  # fmt: skip
    return Finding(
        _CHECK, "ok", f"{what}: all {answer['nodes']} nodes, error {answer['error']:.0e}, "
        f"loaded and run in {answer['seconds']:.2f} s", details=tuple(answer["notes"]),
    )  # fmt: skip

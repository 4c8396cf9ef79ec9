"""LiteRT's CompiledModel: whether this version can use the delegate, and the switch."""

from __future__ import annotations

from collections.abc import Iterator

from clgpu_delegate.doctor import advice
from clgpu_delegate.doctor.finding import Finding
from clgpu_delegate.doctor.survey import Survey

_CHECK = "CompiledModel"
_EVERY = "every CompiledModel that asks for the GPU"


def check(survey: Survey) -> Iterator[Finding]:
    """Check the link of ``clgpu litert on``, and LiteRT's version."""
    switch = survey.env.litert_switch()
    if switch is None or switch.support == "absent":
        return
    what = f"LiteRT {switch.litert or 'of an unknown version'}"
    if switch.support == "unsupported":
        if switch.link_state == "none":
            yield Finding(_CHECK, "ok", f"{what} cannot use the delegate", switch.problem)
        else:
            yield Finding(
                _CHECK, "warning", f"{what} cannot use the delegate, which {switch.link} names",
                switch.problem, advice.pip(survey.env, "-U ai-edge-litert"),
            )  # fmt: skip
    elif switch.link_state == "gone":
        yield Finding(
            _CHECK, "warning", f"{switch.link} names a file that is gone",
            "CompiledModel cannot use the delegate without a change of the program",
            "clgpu litert on",
        )  # fmt: skip
    elif switch.link_state == "other":
        yield Finding(
            _CHECK, "warning", f"{switch.link} names another installation of clgpu_delegate",
            f"{_EVERY} uses that one", "clgpu litert on",
        )  # fmt: skip
    elif switch.link_state == "foreign":
        yield Finding(
            _CHECK, "ok", f"{what}; the switch is off",
            f"{switch.link} does not belong to clgpu_delegate, so `clgpu litert on` would refuse",
        )  # fmt: skip
    elif switch.link_state == "none":
        new = " is newer than those that were tested" if switch.support == "untested" else ""
        yield Finding(_CHECK, "ok", f"{what}{new}; the switch is off (clgpu litert on)")
    elif switch.support == "untested":
        yield Finding(
            _CHECK, "warning", f"{what} was not tested with the delegate, and the switch is on",
            f"{_EVERY} uses it; if one fails, switch it off", "clgpu litert off",
        )  # fmt: skip
    else:
        yield Finding(_CHECK, "ok", f"{what}; the switch is on", f"{_EVERY} uses the delegate")

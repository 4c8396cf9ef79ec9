"""The result of one check, and the results of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text

if TYPE_CHECKING:
    import rich.console

STATUSES = ("ok", "warning", "problem", "skipped")

_MARKS = {
    "ok": ("ok     ", "green"),
    "warning": ("warning", "yellow"),
    "problem": ("PROBLEM", "bold red"),
    "skipped": ("skipped", "dim"),
}


@dataclasses.dataclass(frozen=True)
class Finding:
    """The answer of a check.

    Examples
    --------
    >>> finding = clgpu_delegate.Finding("loader", "problem", "it is missing", fix="install it")
    >>> finding.to_dict()["fix"]
    'install it'
    """

    check: str
    """The subject of the check: ``"loader"``, ``"vendor files"``, ``"test model"``, ..."""

    status: str
    """``"ok"``; ``"warning"``: works, but not as well as it could; ``"problem"``: does not work;
    ``"skipped"``: could not be checked, for a reason in another finding."""

    what: str
    """The finding, one sentence."""

    why: str = ""
    """Consequence or cause; empty if ``what`` is sufficient."""

    fix: str = ""
    """The command, or the step by hand, that fixes it; empty if there is nothing to fix."""

    details: tuple[str, ...] = ()
    """Lines for a bug report."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**dataclasses.asdict(self), "details": list(self.details)}


@dataclasses.dataclass(frozen=True)
class Diagnosis(Shown):
    """All findings of `clgpu_delegate.doctor`, in the order of the checks; print it to read them.

    Names of users and home folders are left out, so that it can be shown to anyone.

    Examples
    --------
    >>> good = clgpu_delegate.Finding("loader", "ok", "libOpenCL.so.1 works")
    >>> print(clgpu_delegate.Diagnosis((good,)))
    ok       loader: libOpenCL.so.1 works
    <BLANKLINE>
    Everything needed works.
    """

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether there is no problem; there may be warnings."""
        return not self.problems

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What does not work."""
        return self._of("problem")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What works, but not as well as it could."""
        return self._of("warning")

    def _of(self, status: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.status == status)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "healthy": self.healthy,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __rich__(self) -> Group:
        return Group(*self._lines())

    def print_to(self, console: rich.console.Console) -> None:
        """Print it; unlike what ``rich.print`` does, commands stay in one line to be copied."""
        for line in self._lines():
            console.print(line, soft_wrap=isinstance(line, Text))

    def _lines(self) -> Iterator[Table | Text]:
        for finding in self.findings:
            mark, style = _MARKS[finding.status]
            line = Table(head=False)
            line.add_column(width=len(mark))
            line.add_column(fold=True)
            line.add_row(
                Text(mark, style), Text(finding.check, "bold").append(": ").append(finding.what)
            )
            below = "\n".join(filter(None, [finding.why, *finding.details]))
            if below:
                line.add_row("", Text(below, "dim"))
            yield line
            if finding.fix:
                fix = Text(" " * (len(mark) + 2), wrap=False).append("fix:  ", "bold cyan")
                yield fix.append(finding.fix, "bold")
        yield Text(f"\n{self._summary()}", "bold")

    def _summary(self) -> str:
        problems, warnings = len(self.problems), len(self.warnings)
        if not problems:
            healthy = "Everything needed works"
            return f"{healthy}; {_count(warnings, 'warning')}." if warnings else f"{healthy}."
        return f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}."

    def __str__(self) -> str:
        return as_text(self)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"

"""Removes names of users from findings, because people paste them into bug reports."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.doctor.finding import Finding

# Account names that identify nobody and also occur as ordinary words.
_NOBODY = {"", "root", "user", "ubuntu", "debian", "pi", "nobody", "docker", "admin", "runner"}


def redactor(env: Environment) -> Callable[[str], str]:
    """Return a function that replaces home folders by ``~`` and the user's name by ``USER``."""
    home = env.environ.get("HOME", "").rstrip("/")
    rules: list[tuple[re.Pattern[str], str]] = []
    if len(home) > 1 and home != "/root":
        rules.append((re.compile(re.escape(home) + r"(?![\w.-])"), "~"))
    rules.append((re.compile(r"/(?:home|Users)/[^/\s:;'\",]+"), "~"))
    rules.append((re.compile(r"/root(?=[/\s:;'\",]|$)"), "~"))
    if env.user not in _NOBODY:
        rules.append((re.compile(rf"(?<![\w-]){re.escape(env.user)}(?![\w-])"), "USER"))

    def apply(text: str) -> str:
        for pattern, replacement in rules:
            text = pattern.sub(replacement, text)
        return text

    return apply


def redact(finding: Finding, apply: Callable[[str], str]) -> Finding:
    """Return a finding with all its texts rewritten."""
    return dataclasses.replace(
        finding,
        what=apply(finding.what),
        why=apply(finding.why),
        fix=apply(finding.fix),
        details=tuple(map(apply, finding.details)),
    )

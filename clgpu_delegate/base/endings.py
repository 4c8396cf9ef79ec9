"""How another process ended."""

from __future__ import annotations

import contextlib
import signal


def ending(code: int) -> str:
    """The name of the signal or the exit code of a return code of `subprocess`.

    Parameters
    ----------
    code
        As ``Popen.returncode``: negative where a signal ended the process.

    Returns
    -------
    str
        ``"SIGSEGV"``, ``"signal 65"`` (one without a name), ``"exit code 3"``.
    """
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"

"""Ctrl-C while a command starts or ends: one line and exit code 130, instead of a traceback.

This is the first module that the package imports, so it imports next to nothing itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130  # 128 + SIGINT, as in shells

_COMMAND = "clgpu"
_PACKAGE = "clgpu_delegate"
_TEXT = b"clgpu: interrupted\n"
_JSON = b'{"error": "interrupted", "kind": "KeyboardInterrupt", "exit_code": 130}\n'


def watch() -> None:
    """Let Ctrl-C end the process at once, if it runs a command of this package.

    An exception in the middle of an import may be reported as an error of the import. Where
    another handler than Python's own has been set, that one stays.
    """
    if not _is_command() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    try:
        signal.signal(signal.SIGINT, _end)
    except ValueError:  # not in the main thread
        return


def end_command() -> None:
    """End the process, if it runs a command of this package."""
    if _is_command():
        _end()


def is_watching() -> bool:
    """Whether Ctrl-C ends the process at once."""
    return signal.getsignal(signal.SIGINT) is _end


@contextmanager
def raised() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt meanwhile, where it would end the process at once."""
    if not is_watching():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _end)


def _is_command() -> bool:
    name = os.path.basename((sys.argv or [""])[0])  # noqa: PTH119  # pathlib takes too long
    if name != "-m":
        return name == _COMMAND
    words = list(getattr(sys, "orig_argv", ()))  # Python 3.9 has none
    modules = [after for before, after in zip(words, words[1:]) if before == "-m"]
    return any(module.split(".")[0] == _PACKAGE for module in modules[:1])


def _end(*_: object) -> None:
    os.write(2, _JSON if "--json" in sys.argv[1:] else _TEXT)
    os._exit(INTERRUPTED)

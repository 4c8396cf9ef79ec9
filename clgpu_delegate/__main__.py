"""The command ``clgpu``, which is also ``python -m clgpu_delegate``.

Its parser is no dependency of the library, but of the extra ``commands``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NoReturn

_COMMANDS = ("click", "rich", "typer")  # modules; of the extra, and of what it depends on
_USAGE, _INTERRUPTED = 2, 130  # as in `clgpu_delegate.cli.exits`, which may not be importable


def main() -> NoReturn:
    """Run the command of the process's arguments and end the process with its exit code."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _interrupted)
    try:
        from clgpu_delegate import cli  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _COMMANDS:
            raise
        _end(
            f"the commands need the package {error.name}; install what they need with: "
            "pip install 'clgpu_delegate[commands]' (python -m clgpu_delegate.doctor runs without)",
            "DependencyError",
            _USAGE,
        )
    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


def _interrupted(*_: object) -> None:
    # An exception in the middle of an import may be reported as an error of the import.
    _end("interrupted", "KeyboardInterrupt", _INTERRUPTED)


def _end(message: str, kind: str, code: int) -> NoReturn:
    if "--json" in sys.argv[1:]:
        line = json.dumps({"error": message, "kind": kind, "exit_code": code})
    else:
        line = f"clgpu: {message}"
    os.write(2, f"{line}\n".encode())
    os._exit(code)


if __name__ == "__main__":
    main()

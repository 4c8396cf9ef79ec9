"""The command ``clgpu``, which is also ``python -m clgpu_delegate``.

Its parser is no dependency of the library, but of the extra ``commands``.
"""

from __future__ import annotations

import sys
from typing import NoReturn

_COMMANDS = ("click", "rich", "typer")  # modules; of the extra, and of what it depends on
_USAGE = 2  # as in `clgpu_delegate.cli.exits`, which may not be importable


def main() -> NoReturn:
    """Run the command of the process's arguments and end the process with its exit code."""
    try:
        from clgpu_delegate import cli  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _COMMANDS:
            raise
        _refuse(
            f"the commands need the package {error.name}; install what they need with: "
            "pip install 'clgpu_delegate[commands]' (python -m clgpu_delegate.doctor runs without)"
        )
    cli.main()


def _refuse(message: str) -> NoReturn:
    if "--json" in sys.argv[1:]:
        import json  # noqa: PLC0415  # rarely needed

        fields = {"error": message, "kind": "DependencyError", "exit_code": _USAGE}
        print(json.dumps(fields), file=sys.stderr)
    else:
        print(f"clgpu: {message}", file=sys.stderr)
    raise SystemExit(_USAGE)


if __name__ == "__main__":
    main()

"""Commands: make the ARM system, build for it, run its Python."""

from __future__ import annotations

import argparse
import os
import sys

from tools.arm64.build import build_library, build_wheel
from tools.arm64.common import Failed, Missing
from tools.arm64.emulation import environment, python_command
from tools.arm64.sites import RUNTIMES, make_site
from tools.arm64.system import make_system


def main() -> None:
    """Run the command; exit with 1 and a sentence if it fails."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tools.arm64", description="64-bit ARM Linux under emulation."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("system", help="unpack the ARM system into build/arm64/root")
    commands.add_parser("build", help="build libclgpu_delegate.so for it, for tests")
    commands.add_parser("wheel", help="build a wheel for its Python")
    python = commands.add_parser(
        "python", help="run the ARM system's Python, which takes the other arguments"
    )
    python.add_argument(
        "--runtime", choices=RUNTIMES, default="tflite_runtime", help="the one to install"
    )
    options, rest = parser.parse_known_args()
    try:
        if options.command == "system":
            print(make_system())
        elif options.command == "build":
            print(build_library())
        elif options.command == "wheel":
            print(build_wheel())
        else:
            site = make_site(options.runtime, RUNTIMES[options.runtime])
            command = [*python_command(), *rest]
            sys.stdout.flush()
            os.execve(command[0], command, environment(make_system(), [site]))
    except (Missing, Failed) as error:
        print(f"arm64: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

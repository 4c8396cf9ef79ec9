"""``python -m tests.sanitized address|thread [ARGUMENTS of pytest]``: tests with a sanitizer.

The extension is compiled with the sanitizer into a folder of its own, `build/asan` or `build/tsan`,
and every process of the tests takes that one. Without arguments a sample runs. A report of the
sanitizer ends its process, so the test that started the process fails; reports of the process of
pytest itself are among the last lines.

``address`` looks for uses of memory that is freed, out of bounds or uninitialised in part, and for
undefined behaviour; ``thread`` for data that threads touch at the same time, and for locks that are
taken in different orders. Drivers are not compiled with sanitizers: `*.supp` list their reports and
why they are not our errors.

The first build takes 6 minutes of processor time with ``address``. CI runs that sample.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

from tests.swapped import environment as swapped

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent


class Sanitizer(NamedTuple):
    """How a sanitizer is built and run."""

    preset: str
    library: str  # it has to be loaded before all others
    variables: dict[str, str]
    sample: tuple[str, ...]  # what runs without arguments


SANITIZERS = {
    "address": Sanitizer(
        "asan",
        "libasan.so",
        {
            # Leaks: Python and drivers keep memory until the end; tests/load measures ours.
            # protect_shadow_gap: runtimes of GPUs reserve addresses that the sanitizer guards.
            # alloc_dealloc_mismatch: drivers link their own operator new and free by ours.
            "ASAN_OPTIONS": "detect_leaks=0:protect_shadow_gap=0:alloc_dealloc_mismatch=0:"
            "allocator_may_return_null=1:halt_on_error=1:abort_on_error=1:"
            "detect_stack_use_after_return=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        },
        (
            "tests/load/test_lending.py",
            "tests/python/test_lifetimes.py",
            "tests/python/test_runner.py",
            "tests/delegate/test_stream.py",
            "tests/delegate/test_operands.py",
            "tests/ops/test_softmax.py",
        ),
    ),
    "thread": Sanitizer(
        "tsan",
        "libtsan.so",
        {
            # Only our code is compiled with it: other code must synchronise its own accesses.
            "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66:"
            f"second_deadlock_stack=1:history_size=4:suppressions={FOLDER / 'thread.supp'}",
        },
        (
            "tests/load/test_load.py",
            "tests/python/test_lifetimes.py",
            "tests/python/test_runner.py",
            "tests/delegate/test_stream.py",
        ),
    ),
}


def build(sanitizer: Sanitizer) -> Path:
    """Return the path of the extension, compiled if necessary."""
    folders = [sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
    variables = {**os.environ, "PATH": os.pathsep.join(folders)}
    for command in (
        ["cmake", "--preset", sanitizer.preset, f"-DPython_EXECUTABLE={sys.executable}"],
        ["cmake", "--build", "--preset", sanitizer.preset],
    ):
        subprocess.run(command, cwd=ROOT, env=variables, check=True, stdout=sys.stderr)
    folder = ROOT / "build" / sanitizer.preset
    return next(folder.glob(f"_core*{sysconfig.get_config_var('EXT_SUFFIX')}"))


def environment(sanitizer: Sanitizer, extension: Path) -> dict[str, str]:
    """Return the variables with which a process and those it starts take this extension."""
    return {
        **sanitizer.variables,
        **swapped.environment(extension),
        "LD_PRELOAD": f"{_of_compiler(sanitizer.library)} {_of_compiler('libstdc++.so.6')}",
    }


def _of_compiler(library: str) -> str:
    """Path of a library that the compiler links."""
    asked = subprocess.run(
        ["c++", f"-print-file-name={library}"], capture_output=True, text=True, check=True
    )
    return str(Path(asked.stdout.strip()).resolve())


def main() -> int:
    """Build, and run pytest; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sanitized", description=__doc__)
    parser.add_argument("sanitizer", choices=sorted(SANITIZERS))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS of pytest")
    asked = parser.parse_args()
    sanitizer = SANITIZERS[asked.sanitizer]
    extension = build(sanitizer)
    variables = {**os.environ, **environment(sanitizer, extension)}
    arguments = asked.arguments or ["--quick", *sanitizer.sample]
    # pytest's own handler of crashes would hide where the sanitizer ends a process.
    command = [sys.executable, "-m", "pytest", "-p", "no:faulthandler", "-n", "0", *arguments]
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

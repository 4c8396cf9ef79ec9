"""Planted faults: each mistake of `planted.FAULTS`, and whether the tests meant to notice it do.

All happens in a copy of the tree in a temporary folder. Kernels and Python modules are taken from
there as they are; for a mistake in C++ the copy is compiled, the first time whole. A mistake that
quick tests let pass is shown to all cases of the same tests, on one OpenCL device, before it counts
as a survivor. `KEEP_COPY` names a folder to use, and to leave, instead of a temporary one: then
only what has changed is compiled.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from clgpu_delegate.embedded import libraries
from tests.campaign.planted import FAULTS, Fault
from tests.campaign.table import Row
from tests.swapped.environment import environment

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 1200  # of a run of tests; one without an end is noticed
_FAILED = 1  # pytest: tests have failed
_BROKEN = 2  # pytest: modules of tests could not be imported
AREAS = {
    "kernels": "mistakes in kernels",
    "clgpu_delegate": "mistakes in the Python package",
    "src_cpp": "mistakes in C++",
}


class Mutants:
    """A copy of the tree that mistakes are planted in, one at a time."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._build = tree / "build" / "mutants"
        self._passes: dict[tuple[tuple[str, ...], bool, bool], bool] = {}
        _copy(tree)

    def outcome(self, fault: Fault) -> str:
        """Return the column that the mistake counts in."""
        compiled = fault.file.startswith("src_cpp/")
        for quick in (True, False):
            if compiled:
                self._compile()
            key = fault.tests, quick, compiled
            if key not in self._passes:
                self._passes[key] = self._run(fault.tests, quick, compiled) == 0
            if not self._passes[key]:
                print(f"these fail without any mistake: {' '.join(fault.tests)}", file=sys.stderr)
                return "stuck"
            with self._planted(fault):
                if compiled and not self._compile():
                    print(f"{fault.file}: {fault.new!r} does not compile", file=sys.stderr)
                    return "stuck"
                code = self._run(fault.tests, quick, compiled)
            if code in (_FAILED, _BROKEN) or code < 0:
                return "right"
            if code != 0:
                print(f"pytest {' '.join(fault.tests)}: exit {code}", file=sys.stderr)
                return "stuck"
        return "wrong"

    @contextlib.contextmanager
    def _planted(self, fault: Fault) -> Iterator[None]:
        path = self._tree / fault.file
        text = path.read_text(encoding="utf-8")
        path.write_text(planted(text, fault), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")

    def _compile(self) -> bool:
        scripts = sysconfig.get_path("scripts")
        variables = {
            **os.environ,
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")]),
        }
        if not (self._build / "build.ninja").exists():
            subprocess.run(
                [
                    "cmake", "-G", "Ninja", "-S", self._tree, "-B", self._build,
                    "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
                    "-DCLGPU_PRECOMPILE=ON", f"-DPython_EXECUTABLE={sys.executable}",
                ],
                env=variables, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        command = ["cmake", "--build", self._build]
        done = subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def _run(self, tests: Iterable[str], quick: bool, compiled: bool) -> int:
        variables = {
            **os.environ,
            **environment(self._extension(compiled), self._tree / "clgpu_delegate", self._kernels),
        }
        if device := next(iter(libraries()), None):
            variables["CLGPU_OPENCL_LIBRARY"] = str(device)
        command = [
            sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider",
            *(["--quick"] if quick else []), *tests,
        ]  # fmt: skip
        try:
            return subprocess.run(
                command, cwd=self._tree, env=variables, timeout=PATIENCE_S, check=False,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return _FAILED

    @property
    def _kernels(self) -> Path:
        return self._tree / "kernels"

    def _extension(self, compiled: bool) -> Path:
        if compiled:
            return next(self._build.glob(f"_core*{sysconfig.get_config_var('EXT_SUFFIX')}"))
        from clgpu_delegate import _core  # noqa: PLC0415

        return Path(str(_core.__file__))


def planted(text: str, fault: Fault) -> str:
    """Return the text of a file with the mistake; ValueError unless the line is there once."""
    count = text.count(fault.old)
    if count != 1:
        raise ValueError(
            f"{fault.file} has the line {fault.old!r} {count} times instead of once: correct or "
            "remove the mistake in tests/campaign/planted.py"
        )
    return text.replace(fault.old, fault.new)


def _copy(tree: Path) -> None:
    """Copy what git knows and what is new; files that are the same keep their times."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        source, target = ROOT / name, tree / name
        if not source.is_file():  # deleted, and not committed yet
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def run(share: int, seed: int) -> list[Row]:
    """Plant one mistake in `share`, drawn by the seed; a survivor counts as wrong."""
    drawn = random.Random(seed).sample(FAULTS, -(-len(FAULTS) // share))
    return run_some(drawn)


def run_some(faults: Iterable[Fault]) -> list[Row]:
    """Plant these; say what survives."""
    rows = {area: Row(what) for area, what in AREAS.items()}
    with contextlib.ExitStack() as stack:
        kept = os.environ.get("KEEP_COPY")
        folder = kept or stack.enter_context(tempfile.TemporaryDirectory(prefix="clgpu_mutants_"))
        mutants = Mutants(Path(folder))
        for fault in faults:
            outcome = mutants.outcome(fault)
            rows[fault.file.partition("/")[0]].count(outcome)
            said = {"right": "noticed", "wrong": "SURVIVES"}.get(outcome, outcome)
            print(f"{said}: {fault.file}: {fault.why}", file=sys.stderr, flush=True)
    return [row for row in rows.values() if row.tried]


def main() -> int:
    """``python -m tests.campaign.mutants [WORD]``: plant those whose file has this in its path."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    rows = run_some(fault for fault in FAULTS if word in fault.file)
    return 0 if all(row.is_clean() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

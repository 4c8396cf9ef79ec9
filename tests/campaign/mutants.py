"""Planted faults: each mistake of `planted.FAULTS`, and whether its tests notice it.

It works on a copy of the tree in a temporary folder. Kernels and Python modules are used from
there; for a mistake in C++ the copy is compiled: the first time completely, then only the changes,
with ccache if it is installed. If quick tests miss a mistake, all cases of the same tests run on
one OpenCL device before it counts as a survivor. `KEEP_COPY` names a permanent folder instead of
the temporary one: then only changes are compiled.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from clgpu_delegate.base.embedded import libraries
from clgpu_delegate.base.endings import ending
from tests.campaign.planted import FAULTS, Fault
from tests.campaign.table import Row
from tests.swapped.environment import environment

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 1800  # of a test run without a mistake
_PASSED = 0  # pytest: all tests have passed
_FAILED = 1  # pytest: tests have failed
_BROKEN = 2  # pytest: modules of tests could not be imported
AREAS = {
    "kernels": "mistakes in kernels",
    "clgpu_delegate": "mistakes in the Python package",
    "src_cpp": "mistakes in C++",
}


class Run(NamedTuple):
    """The result of a test run."""

    code: int | None  #: of pytest, negative: a signal; None: it did not end
    seconds: float
    failed: str  #: the first test that failed; empty where none is known

    @property
    def notices(self) -> bool:
        """Whether the planted mistake made tests fail, or the process crash or hang."""
        return self.code is None or self.code < 0 or self.code in (_FAILED, _BROKEN)

    def __str__(self) -> str:
        if self.code is None:
            return f"no end within {self.seconds:.0f} s"
        return self.failed or ending(self.code)


class Mutants:
    """A copy of the tree; mistakes are planted in it one at a time."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._build = tree / "build" / "mutants"
        self._output = self._build / "clgpu_delegate"  # tests/faults know the extension by that
        # Runs without a mistake; the key: tests, whether these are quick, whether C++ is compiled.
        self._clean: dict[tuple[tuple[str, ...], bool, bool], Run] = {}
        _copy(tree)

    def outcome(self, fault: Fault) -> tuple[str, str]:
        """Return the table column of the mistake, and the test that noticed it or the error."""
        compiled = fault.file.startswith("src_cpp/")
        for quick in (True, False):
            clean = self._without_mistake(fault.tests, quick, compiled)
            if clean.code != _PASSED:
                return "stuck", f"without any mistake: {clean}"
            with self._planted(fault):
                if compiled and not self._compile():
                    return "stuck", f"{fault.new!r} does not compile"
                # Some mistakes make tests wait forever.
                patience = min(60 + 5 * clean.seconds, PATIENCE_S)
                found = self._run(fault.tests, quick, compiled, patience)
            if found.notices:
                return "right", str(found)
            if found.code != _PASSED:
                return "stuck", str(found)
        return "wrong", f"none of {' '.join(fault.tests)} fails"

    def _without_mistake(self, tests: tuple[str, ...], quick: bool, compiled: bool) -> Run:
        key = tests, quick, compiled
        if key not in self._clean:
            if compiled and not self._compile():
                raise RuntimeError("src_cpp does not compile as it is: correct what is told above")
            self._clean[key] = self._run(tests, quick, compiled, PATIENCE_S)
        return self._clean[key]

    @contextlib.contextmanager
    def _planted(self, fault: Fault) -> Iterator[None]:
        path = self._tree / fault.file
        text = path.read_text(encoding="utf-8")
        path.write_text(planted(text, fault), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")  # now: what is compiled is older

    def _compile(self) -> bool:
        """Compile the changes; returns False if that fails."""
        scripts = sysconfig.get_path("scripts")
        variables = {
            **os.environ,
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", "")]),
            # For ccache: copies in different folders must be equal.
            "CCACHE_BASEDIR": str(self._tree),
            "CCACHE_NOHASHDIR": "1",
        }
        if not (self._build / "build.ninja").exists():
            # Precompiled headers shorten the first build, but ccache handles them badly.
            cached = shutil.which("ccache") is not None
            speed = (
                ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCLGPU_PRECOMPILE=OFF"]
                if cached
                else ["-DCLGPU_PRECOMPILE=ON"]
            )
            subprocess.run(
                [
                    "cmake", "-G", "Ninja", "-S", self._tree, "-B", self._build, *speed,
                    "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O1",
                    f"-DPython_EXECUTABLE={sys.executable}",
                    f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={self._output}",
                ],
                env=variables, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        command = ["cmake", "--build", self._build]
        done = subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def _run(self, tests: Iterable[str], quick: bool, compiled: bool, patience: float) -> Run:
        variables = {
            **os.environ,
            **environment(self._extension(compiled), self._tree / "clgpu_delegate", self._kernels),
        }
        if device := next(iter(libraries()), None):
            variables["CLGPU_OPENCL_LIBRARY"] = str(device)
        report = self._tree / "build" / "mutants.xml"
        report.parent.mkdir(exist_ok=True)
        report.unlink(missing_ok=True)
        command = [
            sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider",
            f"--junit-xml={report}", *(["--quick"] if quick else []), *tests,
        ]  # fmt: skip
        start = time.monotonic()
        process = subprocess.Popen(
            command, cwd=self._tree, env=variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            code = None
        finally:  # also processes that tests have left running
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Run(code, time.monotonic() - start, _first_failure(report))

    @property
    def _kernels(self) -> Path:
        return self._tree / "kernels"

    def _extension(self, compiled: bool) -> Path:
        if compiled:
            return next(self._output.glob(f"_core*{sysconfig.get_config_var('EXT_SUFFIX')}"))
        from clgpu_delegate import _core  # noqa: PLC0415

        return Path(str(_core.__file__))


def _first_failure(report: Path) -> str:
    """Return the failed test of a JUnit report; empty if there is none."""
    if not report.exists():  # the process died
        return ""
    for case in ET.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            return f"{case.get('classname')}::{case.get('name')}"
    return ""


def planted(text: str, fault: Fault) -> str:
    """Return the text of a file with the mistake; ValueError unless the line occurs once."""
    count = text.count(fault.old)
    if count != 1:
        raise ValueError(
            f"{fault.file} has the line {fault.old!r} {count} times instead of once: correct or "
            "remove the mistake in tests/campaign/planted.py"
        )
    return text.replace(fault.old, fault.new)


def _copy(tree: Path) -> None:
    """Copy tracked and new files; unchanged files keep their times."""
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
    """Plant these; report the survivors."""
    rows = {area: Row(what) for area, what in AREAS.items()}
    with contextlib.ExitStack() as stack:
        kept = os.environ.get("KEEP_COPY")
        folder = kept or stack.enter_context(tempfile.TemporaryDirectory(prefix="clgpu_mutants_"))
        mutants = Mutants(Path(folder))
        for fault in faults:
            outcome, text = mutants.outcome(fault)
            rows[fault.file.partition("/")[0]].count(outcome)
            said = {"right": "noticed", "wrong": "SURVIVES"}.get(outcome, outcome)
            print(f"{said}: {fault.file}: {fault.why}: {text}", file=sys.stderr, flush=True)
    return [row for row in rows.values() if row.tried]


def main() -> int:
    """``python -m tests.campaign.mutants [WORD ...]``: plant those with such paths or reasons."""
    words = sys.argv[1:] or [""]
    texts = [f"{fault.file}: {fault.why}" for fault in FAULTS]
    rows = run_some(
        fault for fault, text in zip(FAULTS, texts) if any(word in text for word in words)
    )
    return 0 if all(row.is_clean() for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

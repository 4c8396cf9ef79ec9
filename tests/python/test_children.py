"""Processes that the package starts run no code of the current folder."""

from __future__ import annotations

import importlib.machinery
import os
import subprocess
import sys
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate import _core, cache
from clgpu_delegate.base import children, embedded
from tests.python import models
from tests.python.subprocesses import assert_succeeds

# Modules that a process imports at its start, under names of Python's own.
NAMES = ("json", "importlib", "sys", "site", "struct", "typing", "numpy", "clgpu_delegate")

# Starts a process of each kind.
STARTER = """
import os, sys
import numpy as np
from clgpu_delegate.measure import job
from clgpu_delegate.capsule.trials import Bench
from clgpu_delegate.doctor import child, store_probe
from clgpu_delegate.runtimes import find_runtime

model, cache = sys.argv[1:]
outcome = child.call(
    store_probe.__file__, "examine", cache, environ=dict(os.environ), timeout=60
)
assert outcome.failure == "", outcome
runtime = find_runtime().name
with Bench(runtime, reference=False, tolerance=0.1, timeout=60) as bench:
    trial = bench.run(open(model, "rb").read(), [np.ones((2, 5), np.float32)], {"cache": "off"})
assert trial.outcome.kind == "agrees", trial
numbers, outputs = job.measure(job.Job(model, runtime, 1, 1))
assert min(numbers["times_ms"]) > 0 and outputs
print("all three have answered")
"""


@pytest.fixture
def hostile(tmp_path):
    """A folder of modules that leave a trace."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'trace')!r}, 'a').write('{name}\\n')\nraise SystemExit(9)\n"
        )
    return folder


@pytest.fixture
def started(tmp_path, hostile):
    """Run code as a program that lies elsewhere, with the hostile folder as current folder."""

    def start(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        program = tmp_path / "program"
        program.mkdir(exist_ok=True)
        (program / "main.py").write_text(code)
        ours = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONSAFEPATH")}
        return subprocess.run(
            [sys.executable, str(program / "main.py"), *arguments], cwd=hostile,
            env={**ours, **environment}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return start


def test_no_process_imports_from_the_current_folder(tmp_path, started):
    model = tmp_path / "model.tflite"
    model.write_bytes(models.chain())
    result = started(STARTER, str(model), str(tmp_path / "cache.sqlite"))
    assert_succeeds(result)
    assert result.stdout.endswith("all three have answered\n")
    assert not (tmp_path / "trace").exists()


def test_process_imports_what_its_starter_imports(tmp_path, started):
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "only_there.py").write_text("WORD = 'found'\n")
    code = """
import subprocess, sys
from clgpu_delegate.base import children
command = children.command("import sys, only_there; print(only_there.WORD, sys.argv[1:])", "a", "b")
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
"""
    result = started(code, PYTHONPATH=str(tmp_path / "library"))
    assert_succeeds(result)
    assert result.stdout.strip() == "found ['a', 'b']"


def test_only_one_place_starts_python():
    package = Path(children.__file__).parent
    starters = [p.name for p in package.rglob("*.py") if "sys.executable" in p.read_text()]
    assert starters == ["children.py"]


def test_no_library_of_the_current_folder_is_loaded(hostile, monkeypatch):
    packed = hostile / "intel_opencl_rt-1.dist-info"
    packed.mkdir()
    (packed / "METADATA").write_text("Name: intel-opencl-rt\nVersion: 1\n")
    (packed / "RECORD").write_text("libintelocl.so,,\n")
    (hostile / "libintelocl.so").write_text("not loaded")
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (hostile / f"_sqlite3{suffix}").write_text("not loaded")
    registered = []
    monkeypatch.setattr(_core, "add_sqlite_library", registered.append)
    monkeypatch.chdir(hostile)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert not [path for path in embedded.libraries() if path.is_relative_to(hostile)]
    cache._tell_core_of_sqlite()
    assert not [path for path in registered if Path(path).is_relative_to(hostile)]


def path_in(folder: Path, monkeypatch, path: list[str]) -> list[str]:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", path)
    return children.import_path()


def test_path_that_is_handed_over_has_no_current_folder(hostile, tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    link = tmp_path / "link"
    link.symlink_to(hostile)
    (hostile / "lib").mkdir()
    hook = "__editable__.other-1.0.finder.__path_hook__"
    round_about = f"{hostile}/lib/.."
    given = ["", ".", str(hostile), str(link), "/usr/lib/x", "lib", round_about, hook]
    assert path_in(hostile, monkeypatch, given) == ["/usr/lib/x", str(hostile / "lib"), hook]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "."]))
    assert path_in(hostile, monkeypatch, ["", str(hostile)]) == []
    monkeypatch.setenv("PYTHONPATH", str(hostile))
    assert path_in(hostile, monkeypatch, [str(hostile), "/x"]) == [str(hostile), "/x"]


def test_package_that_lies_in_the_current_folder_is_found_there_at_last(monkeypatch):
    own = Path(clgpu_delegate.__file__).resolve().parents[1]
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert path_in(own, monkeypatch, ["", "/usr/lib/x"]) == ["/usr/lib/x", str(own)]


def test_folder_that_was_deleted_is_no_obstacle(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(sys, "path", ["", "lib", "/usr/lib/x"])
    assert children.import_path() == ["/usr/lib/x"]

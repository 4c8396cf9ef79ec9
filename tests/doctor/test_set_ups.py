"""Variables, cache, runtimes and the package itself, each broken in several ways."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate import cache
from clgpu_delegate.doctor import (
    compiled,
    model_run,
    space,
    stock,
    store,
    system,
    variables,
    vendors,
)
from clgpu_delegate.doctor.child import Outcome
from clgpu_delegate.doctor.environment import Environment
from clgpu_delegate.litert import LiteRtSwitch
from tests.doctor.machine import NO_LOADER, device
from tests.python.subprocesses import run_python


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OCL_ICD_VENDORS", "/nowhere", "which does not exist"),
        ("OPENCL_VENDOR_PATH", "/nowhere", "which does not exist"),
        ("OCL_ICD_VENDORS", "{folder}", "which has no .icd file"),
        ("CLGPU_OPENCL_LIBRARY", "/nowhere/lib.so", "which cannot be used"),
        ("CLGPU_OPENCL_LIBRARY", "./lib.so", "which cannot be used"),
    ],
)
def test_variable_that_leads_to_nowhere(machine, tmp_path, name, value, words):
    machine.real, machine.env.loader_names = ("list_platforms",), NO_LOADER
    machine.set(**{name: value.format(folder=tmp_path)})
    (found,) = machine.find(variables.check, "problem")
    assert words in found.what
    assert found.fix == f"unset {name}"


def test_runtime_of_pip_that_is_broken(machine):
    machine.real = ("load_vendor",)
    path = machine.write("libintelocl.so", "no library")
    machine.env.pip_libraries = lambda: [path]
    (found,) = machine.find(vendors.pip_runtimes, "problem")
    assert found.fix == "pip install --force-reinstall 'clgpu_delegate[cpu]'"
    machine.env.pip_libraries = list
    assert machine.find(vendors.pip_runtimes) == []
    installed(machine, intel_opencl_rt="2026.0")
    assert "without its libraries" in machine.find(vendors.pip_runtimes, "problem")[0].what


def test_disk_space_of_opencl_for_the_cpu(machine):
    needs = {
        "Intel_OpenCL.rt": ["tbb"], "intel-cmplr-lib-rt": [], "tbb": ["tcmlib"], "tcmlib": [],
        "mkl": ["tbb"],
    }  # fmt: skip
    machine.env.bytes_of = {
        "intel-opencl-rt": 700_000_000, "intel-cmplr-lib-rt": 130_000_000, "tbb": 20_000_000,
        "tcmlib": 4_000_000,
    }.get  # fmt: skip
    assert machine.find(space.check) == [], "none is installed"
    machine.env.installed = lambda: needs
    machine.devices = [device()]
    (found,) = machine.find(space.check, "ok")
    assert (found.what, found.why) == ("OpenCL for the CPU takes 830 MB on the disk", "")
    assert found.details == ("intel-opencl-rt 700 MB, intel-cmplr-lib-rt 130 MB",)
    machine.devices = [device(), device("Some GPU", "gpu")]
    machine.answers["run_kernel"] = Outcome({"error": "no"})
    assert machine.find(space.check)[0].why == "", "the GPU does not work"
    machine.answers["run_kernel"] = Outcome({"error": ""})
    (found,) = machine.find(space.check)
    assert found.what.endswith("is not needed: 0 = Some GPU (P) works")
    assert found.why == "to remove it: pip uninstall intel-cmplr-lib-rt intel-opencl-rt"
    del needs["mkl"]
    (found,) = machine.find(space.check)
    assert "takes 854 MB" in found.what, "with what nothing else needs"
    assert found.why.endswith(" tbb tcmlib")
    machine.env.requested = lambda: {"TBB", "intel-opencl-rt"}
    (found,) = machine.find(space.check)
    assert "takes 830 MB" in found.what, "without what a user has asked for by its name"
    assert found.why == "to remove it: pip uninstall intel-cmplr-lib-rt intel-opencl-rt"


def test_sizes_of_distributions_are_those_of_their_files():
    env = Environment()
    installed = env.installed()
    assert "mdurl" in installed["markdown-it-py"], "without extras"
    assert 100_000 < env.bytes_of("typer") < 10_000_000


def test_distributions_that_a_user_has_named(tmp_path, monkeypatch):
    for name in ("asked", "needed"):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (tmp_path / "asked-1.0.dist-info" / "REQUESTED").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert {"asked", "needed"} & Environment().requested() == {"asked"}


def test_dependency_of_a_dependency_that_is_missing(machine):
    machine.env.requirements = ("numpy",)
    machine.env.requires = lambda _: ["pip>=1", "deep-er[x]>=2", 'other; extra == "x"']
    (found,) = machine.find(system.dependencies)
    assert (found.status, found.fix) == ("problem", "pip install deep-er")


def test_commands_are_those_of_the_environment(machine):
    machine.env.externally_managed = True
    assert "pip install --break-system-packages 'clgpu" in machine.find(stock.check)[0].fix
    machine.env.externally_managed, machine.env.version = False, {}.get
    assert machine.find(stock.check)[0].fix.startswith("uv pip install 'clgpu")


def test_variable_that_names_no_device(machine):
    machine.devices = [device("Some CPU"), device("Some GPU", "gpu")]
    machine.set(CLGPU_DEVICE="radeon")
    (found,) = machine.find(variables.check, "problem")
    assert "0 = Some GPU (P); 1 = Some CPU (P)" in found.why
    for good in ("1", "some cpu", "P"):
        machine.set(CLGPU_DEVICE=good)
        assert machine.find(variables.check)[0].status == "ok"


def test_variables_of_pocl(machine, tmp_path):
    machine.write("/etc/OpenCL/vendors/pocl.icd", "libpocl.so.2\n")
    machine.set(POCL_CACHE_DIR=str(tmp_path / "none"), POCL_DEVICES="cuda")
    fixes = [found.fix for found in machine.find(variables.check)]
    assert fixes == ["unset POCL_CACHE_DIR", "unset POCL_DEVICES"]


def test_cache_is_where_the_package_keeps_it(monkeypatch, tmp_path):
    for environ in (
        {"CLGPU_CACHE": str(tmp_path / "c")},
        {"CLGPU_CACHE": "~/c"},
        {"CLGPU_CACHE": "", "XDG_CACHE_HOME": str(tmp_path)},
        {"CLGPU_CACHE": "", "XDG_CACHE_HOME": ""},
    ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        assert store.path(Environment()) == cache.resolve()


def test_cache_that_cannot_be_written(machine, tmp_path):
    file = tmp_path / "cache.sqlite"
    machine.set(CLGPU_CACHE=str(file))
    machine.env.access = lambda *_: False
    (found,) = machine.find(store.check)
    assert (found.status, found.fix) == ("warning", "unset CLGPU_CACHE")
    machine.set(CLGPU_CACHE=str(machine.write("file") / "cache.sqlite"))
    assert "is a file, not a folder" in machine.find(store.check)[0].what


def test_cache_that_is_damaged(machine, tmp_path):
    machine.real = ("examine",)
    file = tmp_path / "cache.sqlite"
    machine.set(CLGPU_CACHE=str(file))
    kept = clgpu_delegate._core.Store(str(file))
    kept.put("probe", "key", b"value")
    del kept
    (found,) = machine.find(store.check)
    assert found.status == "ok"
    assert ": 1 row, " in found.what
    content = file.read_bytes()
    assert content.count(b"value") >= 1
    end = content.rindex(b"value")  # the last is the row's, the others are the table's text
    file.write_bytes(content[:end] + b"VALUE" + content[end + 5 :])
    (found,) = machine.find(store.check, "warning")
    assert "of which 1 are damaged" in found.what
    file.write_bytes(b"no database, though it has a name of one" * 100)
    (found,) = machine.find(store.check, "warning")
    assert (found.what.endswith("is damaged"), found.fix) == (True, "clgpu cache clear")


def test_cache_that_others_can_write(machine, tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir(mode=0o700)
    file = folder / "cache.sqlite"
    file.touch()
    file.chmod(0o666)
    machine.set(CLGPU_CACHE=str(file))
    (found,) = machine.find(store.check, "warning")
    assert found.what == f"the cache {file} is not used"
    assert f"other users can write to {file}" in found.why
    subprocess.run(["sh", "-c", found.fix], check=True)
    (found,) = machine.find(store.check)
    assert found.status == "ok"
    folder.chmod(0o1777)
    (found,) = machine.find(store.check, "warning")
    assert found.fix.startswith("export CLGPU_CACHE=")


def test_cache_whose_schema_is_not_ours(machine, tmp_path):
    machine.real = ("examine",)
    file = tmp_path / "cache.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute(f"PRAGMA application_id={cache.APPLICATION_ID}")
        database.execute(f"PRAGMA user_version={cache.FORMAT}")
        database.execute(
            "CREATE VIEW rows AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM r) "
            "SELECT '' AS kind, x AS key, x'' AS checksum, x'' AS value FROM r"
        )
    machine.set(CLGPU_CACHE=str(file))
    (found,) = machine.find(store.check, "warning")
    assert found.what.endswith("is damaged")
    assert "the view 'rows' does not belong to a cache" in found.why


def test_cache_on_a_network(machine, tmp_path):
    machine.set(CLGPU_CACHE=str(tmp_path / "cache.sqlite"))
    machine.write("/proc/mounts", f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    assert "network file system (nfs4)" in machine.find(store.check, "warning")[0].what


def installed(machine, **versions: str):
    names = {name.replace("_", "-"): version for name, version in versions.items()}
    machine.env.version = {"numpy": "1.26.4", "pip": "24.0", **names}.get
    return machine


def test_no_runtime(machine):
    machine.env.python = (3, 12, 0)
    assert machine.find(stock.check, "problem")[0].fix == "pip install 'clgpu_delegate[litert]'"
    machine.env.python = (3, 9, 0)
    assert machine.find(stock.check, "problem")[0].fix == "pip install 'clgpu_delegate[tflite]'"


def test_runtime_that_numpy_is_too_new_for(machine):
    installed(machine, tflite_runtime="2.14.0", numpy="2.1.0")
    assert machine.find(stock.check, "problem")[0].fix == "pip install 'numpy<2'"
    installed(machine, tflite_runtime="2.14.0", ai_edge_litert="2.3.0", numpy="2.1.0")
    assert [f.status for f in machine.find(stock.check)] == ["ok", "warning"]


def test_runtime_that_dies(machine):
    installed(machine, ai_edge_litert="2.3.0")
    machine.answers["import_runtime"] = Outcome(None, "crashed (SIGILL)", "Illegal instruction")
    (found,) = machine.find(stock.check, "problem")
    assert found.why == "crashed (SIGILL)"
    assert found.fix == "pip install --force-reinstall ai-edge-litert"


@pytest.mark.parametrize(
    ("link_state", "support", "status", "words"),
    [
        ("none", "tested", "ok", "LiteRT 2.3.0; the switch is off"),
        ("none", "untested", "ok", "newer than those that were tested; the switch is off"),
        ("none", "unsupported", "ok", "LiteRT 2.3.0 cannot use the delegate"),
        ("none", "unknown", "ok", "the switch is off"),
        ("ours", "tested", "ok", "LiteRT 2.3.0; the switch is on"),
        ("ours", "untested", "warning", "LiteRT 2.3.0 was not tested"),
        ("ours", "unsupported", "warning", "cannot use the delegate, which /site/lib.so names"),
        ("gone", "tested", "warning", "/site/lib.so names a file that is gone"),
        ("other", "tested", "warning", "names another installation"),
        ("foreign", "tested", "ok", "the switch is off"),
    ],
)
def test_switch_of_litert(machine, link_state, support, status, words):
    is_on = link_state == "ours" and support != "unsupported"
    made = LiteRtSwitch(is_on, "2.3.0", "/site/lib.so", "/ours.so", "", link_state, support)
    machine.env.litert_switch = lambda: made
    (found,) = machine.find(compiled.check, status)
    assert words in found.what


def test_no_switch_where_there_is_no_litert(machine):
    assert machine.find(compiled.check) == []
    machine.env.litert_switch = lambda: LiteRtSwitch(False, "", "", "/ours.so", "not installed")
    assert machine.find(compiled.check) == []


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("libc", "", "warning"),
        ("libc", "glibc 2.31", "ok"),
        ("bits", 32, "problem"),
        ("system", "darwin", "warning"),
    ],
)
def test_system_that_lacks_packages(machine, field, value, status):
    machine.env.libc = "glibc 2.36"
    setattr(machine.env, field, value)
    assert [found.status for found in machine.find(system.machine)] == [status]


def test_extension_that_is_missing_or_for_another_python(machine, tmp_path):
    machine.answers["import_extension"] = Outcome(None, "ImportError: no")
    machine.env.package = tmp_path / "clgpu_delegate"
    machine.env.package.mkdir()
    (found,) = machine.find(system.package, "problem")
    assert found.fix == "pip install --force-reinstall clgpu_delegate"
    (tmp_path / "pyproject.toml").touch()
    assert machine.find(system.package, "problem")[0].fix == "pip install ."
    installed(machine).env.version = {"clgpu_delegate": "0.1.0", "pip": "24.0"}.get
    assert machine.find(system.package, "problem")[0].fix.startswith("cd /")
    (machine.env.package / "_core.cpython-27-x86_64-linux-gnu.so").touch()
    assert "for another Python" in machine.find(system.package, "problem")[0].what


def test_doctor_runs_in_a_package_without_extension(tmp_path):
    package = Path(clgpu_delegate.__file__).parent
    shutil.copytree(
        package, tmp_path / "clgpu_delegate", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    # Without site, because the hook of a development install would find the extension elsewhere.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    script = f"""
import sys
from pathlib import Path
# Nor is one to be found that is installed.
sys.path[:] = [p for p in sys.path if not Path(p, "clgpu_delegate", "__init__.py").exists()]
sys.path.insert(0, {str(tmp_path)!r})
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.executable = {str(python)!r}  # of other processes
import clgpu_delegate
from clgpu_delegate.cli import app, exits
from clgpu_delegate.doctor import examination
examination.CHECKS = examination.CHECKS[:2]  # others have nothing to do with it
code = exits.answer(app, ["doctor", "--json", "--device", "no such device"])
try:
    clgpu_delegate.devices()
except ImportError as error:
    print(str(error).splitlines()[0], code, exits.answer(app, ["devices"]), file=sys.stderr)
"""
    result = run_python(script, CLGPU_OPENCL_LIBRARY="/nonexistent.so")
    said = json.loads(result.stdout)
    (found,) = [f for f in said["findings"] if f["check"] == "package"]
    assert (found["status"], found["what"]) == ("problem", "the compiled extension is missing")
    first, second = result.stderr.splitlines()
    assert first == second.removeprefix("clgpu: ") or "5 1" in result.stderr
    assert "the compiled extension of clgpu_delegate is missing" in result.stderr


def test_model_that_gives_wrong_numbers_or_dies(machine):
    installed(machine, ai_edge_litert="2.3.0").devices = [device()]
    machine.answers["run_kernel"] = Outcome(
        {"error": "", "compile_seconds": 0.1, "run_seconds": 0.1}
    )

    def check(survey):
        list(stock.check(survey))
        return model_run.check(survey)

    answer = {"error": 0.5, "seconds": 1.0, "device": "Some CPU", "left": [], "nodes": 4}
    for answered, words in (
        (Outcome(answer), "off by 0.5"),
        (Outcome({**answer, "error": float("nan")}), "off by nan"),
        (Outcome(None, "crashed (SIGSEGV)"), "crashed (SIGSEGV)"),
    ):
        machine.answers["run_model"] = answered
        (found,) = machine.find(check, "problem")
        assert words in found.what
    machine.answers["run_model"] = Outcome({**answer, "error": 0.0, "left": ["SOFTMAX: no"]})
    assert machine.find(check, "warning")[0].why == "SOFTMAX: no"

"""``clgpu litert on``, ``off`` and ``status``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import clgpu_delegate
from clgpu_delegate import FileError, RuntimeNotFoundError
from clgpu_delegate.base import embedded
from clgpu_delegate.cli import app, exits
from clgpu_delegate.litert import package
from tests.litert.compiled import chain, needs_litert
from tests.python.subprocesses import assert_succeeds, run_python


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Replaces LiteRT's."""
    monkeypatch.setattr(package, "folder", lambda: tmp_path)
    monkeypatch.setattr(package, "version", lambda: "2.3.0")
    return tmp_path


def test_on_and_off_leave_no_trace(folder):
    (folder / "libLiteRt.so").write_bytes(b"LiteRT")
    assert not clgpu_delegate.litert_status().is_on
    for _ in range(2):
        assert clgpu_delegate.litert_on().is_on
        assert sorted(path.name for path in folder.iterdir()) == ["libLiteRt.so", package.LIBRARY]
    assert (folder / package.LIBRARY).resolve() == package.accelerator()
    for _ in range(2):
        assert not clgpu_delegate.litert_off().is_on
        assert [path.name for path in folder.iterdir()] == ["libLiteRt.so"]


@pytest.mark.parametrize("kind", ["file", "link", "dead link"])
def test_what_is_of_others_stays(folder, kind):
    path, other = folder / package.LIBRARY, folder / "other.so"
    other.write_bytes(b"theirs")
    if kind == "file":
        path.write_bytes(b"theirs")
    else:
        path.symlink_to(other if kind == "link" else folder / "gone.so")
    for change in (clgpu_delegate.litert_on, clgpu_delegate.litert_off):
        with pytest.raises(
            FileError, match="does not belong to clgpu_delegate; it was not changed"
        ):
            change()
    status = clgpu_delegate.litert_status()
    assert status.link_state == "foreign"
    assert "does not belong to clgpu_delegate" in status.problem
    assert os.path.lexists(path)
    assert other.read_bytes() == b"theirs"
    assert kind == "file" or path.is_symlink()


@pytest.mark.parametrize("exists", [True, False])
def test_link_to_another_installation_is_told_and_replaced(folder, tmp_path, exists):
    other = tmp_path / "old" / "clgpu_delegate" / package.LIBRARY
    if exists:
        other.parent.mkdir(parents=True)
        other.write_bytes(b"old")
    (folder / package.LIBRARY).symlink_to(other)
    status = clgpu_delegate.litert_status()
    assert not status.is_on
    assert status.link_state == ("other" if exists else "gone")
    assert ("another installation" if exists else "a file that is gone") in status.problem
    assert clgpu_delegate.litert_on().is_on
    assert clgpu_delegate.litert_status().problem == ""


@pytest.mark.usefixtures("folder")
def test_versions_of_litert(monkeypatch):
    clgpu_delegate.litert_on()
    monkeypatch.setattr(package, "version", lambda: "2.9.1")
    assert "LiteRT 2.9.1 is newer than those that were tested" in str(
        clgpu_delegate.litert_status()
    )
    assert clgpu_delegate.litert_status().support == "untested"
    monkeypatch.setattr(package, "version", lambda: "2.1.0")
    status = clgpu_delegate.litert_status()
    assert "supported: 2.2 and later" in status.problem
    assert (status.is_on, status.link_state, status.support) == (False, "ours", "unsupported")
    with pytest.raises(RuntimeNotFoundError, match=r"supported: 2.2 and later"):
        clgpu_delegate.litert_on()
    assert not clgpu_delegate.litert_off().is_on


@pytest.mark.usefixtures("folder")
def test_folder_without_the_right_to_write_is_told(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    with pytest.raises(FileError, match=f"cannot write .*{package.LIBRARY}: Permission denied"):
        clgpu_delegate.litert_on()


def test_status_without_litert(monkeypatch):
    monkeypatch.setattr(package.importlib.util, "find_spec", lambda _: None)
    status = clgpu_delegate.litert_status()
    assert not status.is_on
    assert str(status).startswith("off; ai_edge_litert is not installed")
    with pytest.raises(RuntimeNotFoundError, match="is not installed"):
        clgpu_delegate.litert_on()


@pytest.mark.usefixtures("folder")
def test_commands_print_what_the_functions_return(capsys):
    for words, is_on in (("on", True), ("status", True), ("off", False), ("status", False)):
        assert exits.answer(app, ["litert", words, "--json"]) == exits.DONE
        found = json.loads(capsys.readouterr().out)
        assert found == clgpu_delegate.litert_status().to_dict()
        assert found["is_on"] == is_on
    assert exits.answer(app, ["litert", "on"]) == exits.DONE
    assert capsys.readouterr().out.startswith("on: ")


@needs_litert
def test_program_that_knows_nothing_of_us_runs_on_the_device(tmp_path):
    """Uses a copy of LiteRT's folder with links to its files: the real one must not change."""
    copy = tmp_path / "ai_edge_litert"
    copy.mkdir()
    for path in package.folder().iterdir():
        if path.name != package.LIBRARY:
            (copy / path.name).symlink_to(path)
    model = tmp_path / "m.tflite"
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
assert "clgpu_delegate" not in sys.modules
on_the_cpu = CompiledModel.from_file({str(model)!r})
import clgpu_delegate
assert clgpu_delegate.litert_delegates() == []
model = CompiledModel.from_file({str(model)!r}, HardwareAccelerator.GPU)
print("delegates", len(clgpu_delegate.litert_delegates()), model.is_fully_accelerated())
"""
    switch = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from clgpu_delegate.cli import app, exits
raise SystemExit(exits.answer(app, ["litert", sys.argv[1]]))
"""
    model.write_bytes(chain())
    opencl = {}
    if (libraries := _embedded()) is not None:
        opencl["CLGPU_OPENCL_LIBRARY"] = libraries
    assert_succeeds(run_python(switch, "on"))
    assert (copy / package.LIBRARY).readlink() == package.accelerator()
    result = run_python(script, **opencl)
    assert_succeeds(result)
    assert "delegates 1 True" in result.stdout
    assert_succeeds(run_python(switch, "off"))
    assert not os.path.lexists(copy / package.LIBRARY)


def _embedded() -> str | None:
    """An OpenCL runtime from PyPI, which programs that do not import this package do not find."""
    return next((str(path) for path in embedded.libraries()), None)

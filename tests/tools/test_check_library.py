"""tools/check_library.py finds the errors of a library, and none in a correct one."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("elftools")

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_library.py"
SOURCE = """
#include <math.h>
#include <string.h>
void door(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }
double other(double x) { return pow(x, x); }
"""
MAP = "{\n  global:\n    door;\n    /* by any */ other*;\n  local: *;\n};\n"
PAGES = "-Wl,-z,max-page-size=16384"


@pytest.fixture
def library(tmp_path: Path):
    """Compile SOURCE with the given options; the path of the library."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler for ELF")

    def build(*options: str) -> Path:
        (tmp_path / "source.c").write_text(SOURCE)
        (tmp_path / "exports.map").write_text(MAP)
        path = tmp_path / "libdoor.so"
        command = [compiler, "-shared", "-fPIC", "-fno-builtin", "source.c", "-o", path, *options]
        subprocess.run(command, cwd=tmp_path, check=True)
        return path

    return build


def findings(*arguments: object) -> list[str]:
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    assert result.returncode == (1 if result.stdout else 0)
    return [line.removeprefix(f"{arguments[0]} ") for line in result.stdout.splitlines()]


def test_nothing_is_found_in_a_good_library(library):
    path = library(PAGES, "-lm", "-Wl,--version-script=exports.map")
    exports = path.with_name("exports.map")
    gates = ("--machine", platform.machine(), "--needed", "libc.so.6,libm.so.6")
    assert findings(path, *gates, "--exports", exports, "--glibc", "2.99") == []


def test_machine(library):
    other = "x86_64" if platform.machine() == "aarch64" else "aarch64"
    (finding,) = findings(library(PAGES), "--machine", other)
    assert finding.endswith(f"not for {other}.")


def test_needed_libraries(library):
    (finding,) = findings(library(PAGES, "-lm"), "--needed", "libc.so.6")
    assert finding == "needs libm.so.6; it may need libc.so.6 only."


def test_exports(library):
    path = library(PAGES)
    exports = path.with_name("exports.map")
    exports.write_text("{ global: door; missing; local: *; };")
    assert findings(path, "--exports", exports) == [
        f"exports other, which {exports} does not list.",
        f"does not export missing, which {exports} lists.",
    ]


def test_alignment(library):
    found = findings(library("-Wl,-z,max-page-size=4096"))
    assert found
    assert all("aligned to 0x1000, less than 0x4000" in finding for finding in found)


def test_glibc(library):
    path = library(PAGES)  # memcpy: 2.14 on x86-64; nothing is older than 2.17 on 64-bit ARM
    found = findings(path, "--glibc", "2.13")
    assert any(f.startswith("needs GLIBC_2.1") and "memcpy" in f for f in found)
    assert all(f.endswith(", newer than glibc 2.13.") for f in found)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no library"])
def test_what_is_no_library_is_said(tmp_path, content):
    path = tmp_path / "lib.so"
    path.write_bytes(content)
    (finding,) = findings(path)
    assert finding.startswith("cannot be read as a shared library: ")


def test_object_file_is_no_library(library):
    path = library("-c")  # -shared is then ignored
    assert findings(path, "--needed", "libc.so.6", "--glibc", "2.27") == ["is no shared library."]


def test_a_missing_library_is_said(tmp_path):
    (finding,) = findings(tmp_path / "missing.so")
    assert "No such file" in finding

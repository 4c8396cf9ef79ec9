"""src_cpp/cmake/Strip.cmake moves a library's symbols into a second file and prints the sizes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "src_cpp" / "cmake" / "Strip.cmake"
CMAKE = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
TOOLS = [shutil.which(tool) for tool in ("cc", "strip", "objcopy")]


@pytest.mark.skipif(CMAKE is None or None in TOOLS, reason="no CMake, compiler or binutils")
def test_symbols_move_and_sizes_are_told(tmp_path):
    compiler, strip, objcopy = TOOLS
    library = tmp_path / "libdoor.so"
    source = tmp_path / "door.c"
    source.write_text("static int room(int x) { return x; }\nint door(int x) { return room(x); }\n")
    subprocess.run([compiler, "-g3", "-shared", "-fPIC", "-o", library, source], check=True)
    before = library.stat().st_size
    result = subprocess.run(
        [CMAKE, f"-DLIBRARY={library}", f"-DSTRIP={strip}", f"-DOBJCOPY={objcopy}", "-P", SCRIPT],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    after = library.stat().st_size
    assert after < before
    assert (tmp_path / "libdoor.so.debug").stat().st_size > 0
    told = re.search(r"libdoor.so: (\d+) KiB, (\d+) KiB before", result.stdout)
    assert told, result
    assert [int(told[1]), int(told[2])] == [-(-after // 1024), -(-before // 1024)]
    assert b".debug_info" not in library.read_bytes()
    assert b"libdoor.so.debug" in library.read_bytes()  # where debuggers look

"""Headers of Debian's Pythons, which lie in two folders, are found by a compiler for any system."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tools import build_wheel

HERE = platform.machine()
SIZES = "#define SIZEOF_VOID_P 8\n#define SIZEOF_LONG 8\n"


@pytest.fixture
def debian(tmp_path):
    """The path of a pyconfig.h as Debian has it, with the one of this machine that it includes."""
    path = tmp_path / "include/python3.13/pyconfig.h"
    own = tmp_path / f"include/{HERE}-linux-gnu/python3.13/pyconfig.h"
    for file in (path, own):
        file.parent.mkdir(parents=True)
    path.write_text(
        "#if defined(__linux__)\n"
        "# if defined(__x86_64__) && defined(__LP64__)\n"
        "#  include <x86_64-linux-gnu/python3.13/pyconfig.h>\n"
        "# elif defined(__aarch64__) && defined(__AARCH64EL__)\n"
        "#  include <aarch64-linux-gnu/python3.13/pyconfig.h>\n"
        "# endif\n#endif\n"
    )
    own.write_text(SIZES)
    return path


@pytest.mark.parametrize("arch", build_wheel.ARCHITECTURES)
def test_the_included_file_is_copied_for_the_architecture(debian, arch, tmp_path):
    if HERE not in build_wheel.ARCHITECTURES:
        pytest.skip("wheels are built on x86-64 and ARM64")
    flags = build_wheel.debian_headers(str(debian), arch, tmp_path / "headers")
    assert flags == f"-isystem {tmp_path / 'headers'}"
    copy = tmp_path / f"headers/{arch}-linux-gnu/python3.13/pyconfig.h"
    assert copy.read_text() == SIZES


def test_other_pythons_have_one_file(tmp_path):
    path = tmp_path / "pyconfig.h"
    path.write_text(SIZES)
    assert build_wheel.real_pyconfig(str(path)) == path
    assert build_wheel.debian_headers(str(path), "aarch64", tmp_path / "headers") == ""


def test_headers_without_sizes_are_an_error(tmp_path):
    path = tmp_path / "pyconfig.h"
    path.write_text("#include <elsewhere.h>\n")
    target = build_wheel.Target("aarch64", "2.17")
    with pytest.raises(SystemExit, match="does not have the sizes of types"):
        build_wheel.check_sizes(str(path), target, Path(tmp_path))

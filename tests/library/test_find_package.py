"""find_package(clgpu_delegate) as the docs show it, also under a toolchain like the NDK's."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from tests.library.conftest import ROOT, run, tool

# As the NDK's file does it: packages are looked for in the NDK's own folders only.
TOOLCHAIN = """
set(CMAKE_SYSTEM_NAME {system})
set(CMAKE_SYSTEM_VERSION 1)
set(CMAKE_SYSTEM_PROCESSOR {machine})
list(APPEND CMAKE_FIND_ROOT_PATH "${{CMAKE_CURRENT_LIST_DIR}}/ndk")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
if(NOT CMAKE_FIND_ROOT_PATH_MODE_PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endif()
"""
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES NONE)
{line}
get_target_property(includes clgpu::clgpu_delegate INTERFACE_INCLUDE_DIRECTORIES)
message(STATUS "includes: ${{includes}}")
"""


@pytest.fixture
def configure(installed: Path, tmp_path: Path):
    """Return a function that configures a project with a toolchain file for a system."""

    def with_toolchain(
        line: str, system: str, machine: str, *options: str, prefix: Path = installed
    ):
        (tmp_path / "toolchain.cmake").write_text(TOOLCHAIN.format(system=system, machine=machine))
        (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(line=line))
        (tmp_path / "ndk").mkdir(exist_ok=True)
        return run(
            tool("cmake"), "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja", *options,
            f"-DCMAKE_TOOLCHAIN_FILE={tmp_path / 'toolchain.cmake'}",
            f"-DCMAKE_PREFIX_PATH={prefix}",
        )  # fmt: skip

    return with_toolchain


def documented_line() -> str:
    (line,) = {
        line.split("#")[0].strip()
        for page in ("cpp.md", "android.md")
        for line in (ROOT / "docs" / page).read_text().splitlines()
        if line.startswith("find_package(")
    }
    return line


def test_documented_line_finds_it_in_the_prefix(configure, installed):
    result = configure(documented_line(), "Linux", platform.machine())
    assert result.returncode == 0
    assert f"includes: {installed / 'include'}" in result.stdout


def test_plain_line_needs_the_documented_setting(configure, installed):
    line = "find_package(clgpu_delegate REQUIRED)"
    assert configure(line, "Linux", platform.machine()).returncode != 0
    setting = "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH"
    assert setting in (ROOT / "docs" / "android.md").read_text()
    result = configure(line, "Linux", platform.machine(), setting)
    assert result.returncode == 0
    assert f"includes: {installed / 'include'}" in result.stdout


@pytest.mark.parametrize(
    ("system", "machine"), [("Android", platform.machine()), ("Linux", "riscv64")]
)
def test_library_of_another_system_is_not_found(configure, system, machine):
    result = configure(documented_line(), system, machine)
    assert result.returncode != 0
    assert f"for Linux {platform.machine()}" in " ".join(result.stderr.split())


def test_machine_has_two_names(configure):
    other = {"x86_64": "AMD64", "aarch64": "arm64"}.get(platform.machine())
    if other is None:
        pytest.skip("a machine with one name")
    assert configure(documented_line(), "Linux", other).returncode == 0


@pytest.mark.parametrize("machine", ["", platform.machine()])
@pytest.mark.parametrize("named", [True, False])
def test_toolchain_may_name_no_machine(configure, installed, tmp_path, machine, named):
    prefix = installed
    if not named:  # as if such a toolchain had built the library
        prefix = tmp_path / "prefix"
        shutil.copytree(installed, prefix, symlinks=True)
        (file,) = prefix.glob("lib*/**/clgpu_delegate-config-version.cmake")
        text = file.read_text()
        assert f'"{platform.machine()}"' in text
        file.write_text(text.replace(f'"{platform.machine()}"', '""'))
    result = configure(documented_line(), "Linux", machine, prefix=prefix)
    assert result.returncode == 0
    assert f"includes: {prefix / 'include'}" in result.stdout
    assert "CMake Warning" not in result.stderr

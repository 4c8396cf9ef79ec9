"""The Java classes of the AAR and their native library, in a JVM, with the library installed."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.jdk import COMPILE, headers
from tests.library.conftest import ROOT, run, skip_without_opencl, tool

HERE = Path(__file__).parent
MODULE = ROOT / "android" / "src" / "main"
STUBS = ROOT / "tests" / "android" / "stubs"


def test_native_methods_are_those_of_the_class_and_of_the_map():
    java = (MODULE / "java" / "clgpu" / "delegate" / "ClgpuDelegate.java").read_text()
    package = re.search(r"^package (.*);$", java, re.MULTILINE)[1].replace(".", "_")
    names = re.findall(r"static native \S+ (\w+)\(", java)
    wanted = sorted(f"Java_{package}_ClgpuDelegate_{name}" for name in names)
    assert len(wanted) == 5
    for file in ("clgpu_jni.cpp", "exports.map"):
        assert sorted(re.findall(r"Java_\w+", (MODULE / "cpp" / file).read_text())) == wanted


@pytest.fixture(scope="module")
def wrapper(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libclgpu_jni.so for this machine, built by its CMake project from the installed library."""
    include = headers()
    if include is None:
        pytest.skip("no javac with jni.h beside it")
    build = tmp_path_factory.mktemp("jni")
    flags = f"-Werror -I{include} -I{include / 'linux'}"
    options = [f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_PREFIX_PATH={installed}", "-G", "Ninja"]
    assert run(tool("cmake"), "-S", MODULE / "cpp", "-B", build, *options).returncode == 0
    assert run(tool("cmake"), "--build", build).returncode == 0
    return build / "libclgpu_jni.so"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of our classes, of what stands for Android and LiteRT, and of the program."""
    folder = tmp_path_factory.mktemp("classes")
    sources = [*(MODULE / "java").rglob("*.java"), *STUBS.rglob("*.java")]
    tool("javac")
    assert run(*COMPILE, "-d", folder, *sources, HERE / "java" / "Use.java").returncode == 0
    return folder


def test_only_the_native_methods_are_exported(wrapper):
    pytest.importorskip("elftools")
    exports = MODULE / "cpp" / "exports.map"
    check = [ROOT / "tools" / "check_library.py", wrapper, "--exports", exports]
    assert run(sys.executable, *check).returncode == 0


# None: SQLite if the machine has it. The other is the case of Android's apps.
@pytest.mark.parametrize("sqlite", [None, "/nowhere"])
def test_classes_work_in_java(wrapper, classes, tmp_path, sqlite):
    java = [tool("java"), "-Xcheck:jni", f"-Djava.library.path={wrapper.parent}", "-cp", classes]
    variables = {} if sqlite is None else {"CLGPU_SQLITE_LIBRARY": sqlite}
    result = run(*java, "Use", "all", tmp_path, **variables)
    skip_without_opencl(result.returncode)
    assert result.returncode == 0
    assert "in native method" not in result.stdout  # what -Xcheck:jni finds does not end the JVM
    database, rows = tmp_path / "clgpu.sqlite", tmp_path / "clgpu.sqlite.rows"
    assert database.exists() != rows.exists()
    assert rows.is_dir() or (database.is_file() and sqlite is None)


def test_lack_of_memory_is_the_exception_of_java(wrapper, classes, tmp_path):
    source, library = HERE / "java" / "no_memory.cpp", tmp_path / "no_memory.so"
    command = [tool("c++", "g++", "clang++"), "-std=c++17", "-shared", "-fPIC", "-o", library]
    assert run(*command, source).returncode == 0
    java = [tool("java"), "-Xcheck:jni", f"-Djava.library.path={wrapper.parent}", "-cp", classes]
    result = run(*java, "Use", "memory", tmp_path, LD_PRELOAD=os.fspath(library))
    assert result.returncode == 0
    assert "in native method" not in result.stdout


def test_library_that_cannot_be_loaded_is_the_documented_exception(classes, tmp_path):
    java = [tool("java"), f"-Djava.library.path={tmp_path}", "-cp", classes]
    result = run(*java, "Use", "refused", tmp_path)
    assert result.returncode == 0
    first, second = result.stdout.splitlines()
    assert first == second
    assert "64-bit processes on arm64-v8a and x86_64, cannot be loaded: no clgpu_jni in" in first


def test_device_without_opencl_is_the_documented_exception(wrapper, classes, tmp_path):
    java = [tool("java"), f"-Djava.library.path={wrapper.parent}", "-cp", classes]
    missing = os.fspath(tmp_path / "none.so")
    result = run(*java, "Use", "refused", tmp_path, CLGPU_OPENCL_LIBRARY=missing)
    assert result.returncode == 0
    assert result.stdout.count(missing) == 2

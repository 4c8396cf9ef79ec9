"""The examples in C++ and Kotlin fit the library that is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.library.conftest import ROOT, run, skip_without_opencl, tool

HERE = Path(__file__).parent
CPP = ROOT / "examples" / "cpp"
ANDROID = ROOT / "examples" / "android"


def test_cpp_examples_are_built_by_find_package(installed, tmp_path):
    # TensorFlow Lite's functions are declared in tflite/ and defined here: they know no model.
    header = (HERE / "tflite" / "tensorflow" / "lite" / "c" / "c_api.h").read_text()
    names = set(re.findall(r"(TfLite\w+)\(", header))
    names |= {f"TfLiteExternalDelegate{end}" for end in ("OptionsDefault", "Create", "Delete")}
    source, library = tmp_path / "none.c", tmp_path / "libtensorflowlite_c.so"
    source.write_text("".join(f"void* {name}(void) {{ return 0; }}\n" for name in sorted(names)))
    assert (
        run(tool("cc", "gcc", "clang"), "-shared", "-fPIC", source, "-o", library).returncode == 0
    )
    build = tmp_path / "build"
    paths = [
        f"-DCMAKE_PREFIX_PATH={installed}", f"-DTFLITE_INCLUDE_DIR={HERE / 'tflite'}",
        f"-DTFLITE_LIBRARY={library}",
    ]  # fmt: skip
    ninja = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    strict = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion -Werror"
    assert run(tool("cmake"), "-S", CPP, "-B", build, *ninja, strict, *paths).returncode == 0
    assert run(tool("cmake"), "--build", build).returncode == 0
    refused = run(build / "run_model", "none.tflite", "precision=fp64")
    assert (refused.returncode, "allowed: fp32, fp16, tf32" in refused.stderr) == (1, True)
    assert "this is no model" in run(build / "run_model", "none.tflite", "cache=off").stderr


def test_native_methods_are_those_of_the_kotlin_class():
    kotlin = (ANDROID / "ClgpuDelegate.kt").read_text()
    package = re.search(r"^package (.*)$", kotlin, re.MULTILINE)[1].replace(".", "_")
    wanted = {
        f"Java_{package}_ClgpuDelegate_{name}" for name in re.findall(r"external fun (\w+)", kotlin)
    }
    assert wanted == set(re.findall(r"Java_\w+", (ANDROID / "clgpu_jni.cpp").read_text()))


def test_jni_wrapper_runs_in_java(installed, library, tmp_path):
    javac = Path(tool("javac"))
    include = javac.resolve().parents[1] / "include"
    if not (include / "jni.h").is_file():
        pytest.skip("no jni.h beside javac")
    wrapper = tmp_path / "libclgpu_jni.so"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    includes = [include, include / "linux", installed / "include"]
    command = [tool("c++", "g++", "clang++"), *flags, *(f"-I{path}" for path in includes)]
    linked = [library, f"-Wl,-rpath,{library.parent}", "-Wl,--no-undefined"]
    assert run(*command, ANDROID / "clgpu_jni.cpp", *linked, "-o", wrapper).returncode == 0
    assert run(javac, "-d", tmp_path, HERE / "jni" / "ClgpuDelegate.java").returncode == 0
    java = [tool("java"), "-Xcheck:jni", "-cp", tmp_path, "com.example.clgpu.ClgpuDelegate"]
    result = run(*java, wrapper)
    skip_without_opencl(result.returncode)
    assert result.returncode == 0

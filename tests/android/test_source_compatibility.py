"""Android source compatibility: all sources compile and link for aarch64, API level 26.

If ANDROID_NDK_HOME is set, the NDK builds the library, as for a release. Otherwise a substitute
does (zig.cmake, sysroot.py). It only proves that Android has all headers and functions that are
used: its compiler, C++ library and linker are not the NDK's.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.android import sysroot

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "android-compatibility"  # kept: the next run compiles what has changed
BIN = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
NDK = os.environ.get("ANDROID_NDK_HOME")


pytestmark = pytest.mark.slow


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    env = {**os.environ, "PATH": BIN, **environment}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def succeed(*command: object, **environment: str) -> None:
    result = run(*command, **environment)
    assert result.returncode == 0, f"{result.stdout[-6000:]}\n{result.stderr[-6000:]}"


@pytest.fixture(scope="module")
def zig() -> dict[str, str]:
    """The environment in which zig.cmake and ziglang find the stand-in for Android's C library."""
    if NDK:
        pytest.skip("ANDROID_NDK_HOME is set: the NDK builds")
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        pytest.skip("neither ANDROID_NDK_HOME is set nor ziglang installed")
    compiler = Path(spec.origin).with_name("zig")
    folder = FOLDER / sysroot.key(compiler)
    if not folder.exists():
        shutil.rmtree(FOLDER, ignore_errors=True)
    description = sysroot.make(compiler, folder)
    cache = str(FOLDER / "cache")
    return {
        "CLGPU_ZIG": str(compiler),
        "CLGPU_ZIG_TARGET": sysroot.TARGET,
        "ZIG_LIBC": str(description),
        "ZIG_GLOBAL_CACHE_DIR": cache,
        "ZIG_LOCAL_CACHE_DIR": cache,
    }


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> Path:
    """libclgpu_delegate.so for Android."""
    for tool in ("cmake", "ninja"):
        if shutil.which(tool, path=BIN) is None:
            pytest.skip(f"no {tool}")
    if NDK:
        build = ROOT / "build" / "android-arm64"
        succeed("cmake", "--workflow", "--preset", "android-arm64")
        return build / "libclgpu_delegate.so"
    environment = request.getfixturevalue("zig")
    here = Path(__file__).parent
    build = Path(environment["ZIG_LIBC"]).with_name("build")
    # No optimisation: it takes most of the time, and without it more calls remain to be linked.
    succeed(
        "cmake", "-G", "Ninja", "-S", ROOT, "-B", build,
        f"-DCMAKE_TOOLCHAIN_FILE={here / 'zig.cmake'}",
        f"-DCMAKE_PROJECT_INCLUDE={here / 'after_project.cmake'}",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
        "-DCLGPU_BUILD_PYTHON=OFF", "-DCLGPU_BUILD_LIBRARY=ON",
        **environment,
    )  # fmt: skip
    made = build / "libclgpu_delegate.so"
    made.unlink(missing_ok=True)  # the lists of names may have changed, which ninja does not notice
    succeed("cmake", "--build", build, "-j", "2", **environment)
    return made


def test_all_sources_compile_and_link(library):
    result = run(
        sys.executable, ROOT / "tools" / "check_library.py", library, "--machine", "aarch64",
        "--needed", "libc.so,libm.so,libdl.so,liblog.so",
        "--exports", ROOT / "src_cpp" / "cmake" / "exports.map",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("call", "links"),
    [
        ("strchr", True),
        ("strchrnul", False),  # declared by the headers, but glibc has it
        ("memfd_create", False),  # Android has it from API level 30 on
    ],
)
def test_function_that_android_lacks_does_not_link(zig, tmp_path, call, links):
    compiler, part = zig["CLGPU_ZIG"], tmp_path / "call.o"
    (tmp_path / "call.c").write_text(f"void {call}(void);\nvoid door(void) {{ {call}(); }}\n")
    options = ("-target", zig["CLGPU_ZIG_TARGET"], "-fno-builtin", "-fPIC")
    succeed(compiler, "cc", *options, "-c", tmp_path / "call.c", "-o", part, **zig)
    libc = Path(zig["ZIG_LIBC"]).with_name("lib") / "libc.so"
    library = tmp_path / "libcall.so"
    result = run(compiler, "ld.lld", "-shared", "--no-undefined", part, libc, "-o", library)
    assert (result.returncode == 0) == links, result.stderr
    assert links or f"undefined symbol: {call}" in result.stderr

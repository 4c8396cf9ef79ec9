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
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("elftools")

from tests.android import aar, sysroot
from tests.jdk import headers

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
def tree(request: pytest.FixtureRequest) -> Path:
    """The folder of a build for Android."""
    for tool in ("cmake", "ninja"):
        if shutil.which(tool, path=BIN) is None:
            pytest.skip(f"no {tool}")
    if NDK:
        build = ROOT / "build" / "android-arm64"
        succeed("cmake", "--workflow", "--preset", "android-arm64")
        return build
    environment = dict(request.getfixturevalue("zig"))
    here = Path(__file__).parent
    build = Path(environment["ZIG_LIBC"]).with_name("build")
    if headers() is not None:
        environment["CLGPU_JNI_HEADERS"] = str(copy_headers(build / "jni_headers"))
    # No optimisation: it takes most of the time, and without it more calls remain to be linked.
    succeed(
        "cmake", "-G", "Ninja", "-S", ROOT, "-B", build,
        f"-DCMAKE_TOOLCHAIN_FILE={here / 'zig.cmake'}",
        f"-DCMAKE_PROJECT_INCLUDE={here / 'after_project.cmake'}",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
        f"-DCLGPU_BUILD_JNI={'OFF' if headers() is None else 'ON'}",
        **environment,
    )  # fmt: skip
    for made in build.glob("*.so"):
        made.unlink()  # the lists of names may have changed, which ninja does not notice
    succeed("cmake", "--build", build, "-j", "2", **environment)
    return build


def copy_headers(folder: Path) -> Path:
    """Copy the JDK's jni.h, which declares what the NDK's does, with the part for its machine."""
    include = headers()
    assert include is not None
    folder.mkdir(parents=True, exist_ok=True)
    for header in (include / "jni.h", include / "linux" / "jni_md.h"):
        shutil.copyfile(header, folder / header.name)
    return folder


def test_all_sources_compile_and_link(tree):
    """Machine, needed libraries, exports and alignment of each library are those of a release."""
    wanted = set(aar.LIBRARIES)
    if not NDK and headers() is None:
        wanted.remove("libclgpu_jni.so")
    built = {library.name: library for library in tree.glob("lib*.so")}
    assert set(built) == wanted
    aar.check_natives({f"jni/arm64-v8a/{name}": library for name, library in built.items()})


def test_libraries_fit_in_an_aar(tree, tmp_path, litert_api):
    if not NDK and headers() is None:
        pytest.skip("no jni.h beside javac, so no libclgpu_jni.so")
    (tmp_path / "arm64-v8a").symlink_to(tree)
    succeed(
        sys.executable, ROOT / "tools" / "build_aar.py", "--abi", "arm64-v8a",
        "--libraries", tmp_path, "--output", tmp_path,
        "--litert-api", litert_api, "--android-jar", litert_api,
    )  # fmt: skip
    (made,) = tmp_path.glob("*.aar")
    packed = [name for name in zipfile.ZipFile(made).namelist() if name.endswith(".so")]
    assert packed == sorted(f"jni/arm64-v8a/{library.name}" for library in tree.glob("lib*.so"))


def test_camera_example_compiles(zig, tmp_path):
    library = ROOT / "tests" / "library"
    includes = [ROOT / "include", library / "ndk", library / "tflite"]
    succeed(
        zig["CLGPU_ZIG"], "c++", "-target", zig["CLGPU_ZIG_TARGET"], "-std=c++17", "-fPIC", "-Wall",
        "-Wextra", "-Werror", *(f"-I{folder}" for folder in includes),
        "-c", ROOT / "examples" / "cpp" / "camera_buffers.cpp", "-o", tmp_path / "camera.o", **zig,
    )  # fmt: skip


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

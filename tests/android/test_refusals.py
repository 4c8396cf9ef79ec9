"""CMake refuses builds that cannot work with one sentence that says what to set."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
CMAKE = shutil.which("cmake", path=TOOLS)

# Replaces the NDK's file: prints its settings and builds for this machine.
TOOLCHAIN = """
set(ANDROID TRUE)
message(STATUS "given: ${ANDROID_ABI} ${ANDROID_PLATFORM} ${ANDROID_STL} \
${ANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES}")
"""


def cmake_version() -> tuple[int, ...]:
    if CMAKE is None:
        return ()
    text = subprocess.run([CMAKE, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


pytestmark = pytest.mark.skipif(cmake_version() < (3, 25), reason="no CMake 3.25")


def make_ndk(folder: Path, revision: str = "27.2.12479018") -> Path:
    """A folder that looks like an NDK."""
    toolchain = folder / "build" / "cmake" / "android.toolchain.cmake"
    toolchain.parent.mkdir(parents=True)
    toolchain.write_text(TOOLCHAIN)
    properties = f"Pkg.Desc = Android NDK\nPkg.Revision = {revision}\n"
    (folder / "source.properties").write_text(properties)
    return folder


def configure(build: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, output and error messages of CMake, words divided by single spaces."""
    env = {k: v for k, v in os.environ.items() if k != "ANDROID_NDK_HOME"}
    assert CMAKE is not None
    result = subprocess.run(
        [CMAKE, "-S", ROOT, "-B", build, *arguments],
        cwd=ROOT, env={**env, "PATH": TOOLS, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return result.returncode, " ".join(result.stdout.split()), " ".join(result.stderr.split())


def refusal(build: Path, *arguments: str, **environment: str) -> str:
    """The only sentence that CMake ends with."""
    code, _, errors = configure(build, *arguments, **environment)
    assert code != 0
    assert errors.count("CMake Error") == 1, errors
    match = re.fullmatch(r"CMake Error at \S+ \(message\): (.*?)( Call Stack .*)?", errors)
    assert match, errors
    assert not re.search(r"[.!] [A-Z]", match[1]), "more than one sentence"
    return match[1]


def preset(build: Path, ndk: Path, *arguments: str) -> str:
    return refusal(build, "--preset", "android-arm64", *arguments, ANDROID_NDK_HOME=str(ndk))


SET_NDK = "set it to the folder of an Android NDK r27 or newer"


@pytest.mark.parametrize("name", ["android-arm64", "android-x86_64"])
def test_ndk_has_to_be_named(tmp_path, name):
    assert f"ANDROID_NDK_HOME is not set: {SET_NDK}" in refusal(tmp_path, "--preset", name)


@pytest.mark.parametrize("lost", [".", "source.properties", "build"])
def test_folder_without_an_ndk(tmp_path, lost):
    ndk = make_ndk(tmp_path / "ndk")
    path = ndk / lost
    (path.unlink if path.is_file() else lambda: shutil.rmtree(path))()
    text = preset(tmp_path / "build", ndk)
    assert f"ANDROID_NDK_HOME names no NDK, for {ndk} lacks" in text
    assert SET_NDK in text


@pytest.mark.parametrize("revision", ["", "soon", "-1"])
def test_folder_that_does_not_tell_its_revision(tmp_path, revision):
    text = preset(tmp_path / "build", make_ndk(tmp_path / "ndk", revision))
    assert "names no NDK" in text


@pytest.mark.parametrize("revision", ["26.3.11579264", "9.0.1"])
def test_ndk_too_old(tmp_path, revision):
    text = preset(tmp_path / "build", make_ndk(tmp_path / "ndk", revision))
    assert f"The NDK {revision} in " in text
    assert "r27 is the first that supports pages of 16 KB: set ANDROID_NDK_HOME" in text


@pytest.mark.parametrize("abi", ["armeabi-v7a", "x86", "arm64", ""])
def test_abi(tmp_path, abi):
    text = preset(tmp_path / "build", make_ndk(tmp_path / "ndk"), f"-DANDROID_ABI={abi}")
    assert f"ANDROID_ABI is '{abi}': set it to arm64-v8a or x86_64, since" in text


@pytest.mark.parametrize("level", ["android-25", "21", ""])
def test_api_level(tmp_path, level):
    text = preset(tmp_path / "build", make_ndk(tmp_path / "ndk"), f"-DANDROID_PLATFORM={level}")
    assert f"ANDROID_PLATFORM is '{level}': set it to android-26 (Android 8.0) or newer" in text


def test_toolchain_file_of_the_ndk_itself_is_held_to_the_same(tmp_path):
    ndk = make_ndk(tmp_path / "ndk", "25.1.8937393")
    file = ndk / "build" / "cmake" / "android.toolchain.cmake"
    text = refusal(tmp_path / "build", f"-DCMAKE_TOOLCHAIN_FILE={file}", "-DANDROID_ABI=x86_64")
    assert f"The NDK 25.1.8937393 in {ndk} is too old" in text


@pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler")
@pytest.mark.parametrize("revision", ["27.0.11718014", "28.0.12433566-beta1"])
def test_good_ndk_gets_the_settings_of_the_preset_and_is_remembered(tmp_path, revision):
    ndk, build = make_ndk(tmp_path / "ndk", revision), tmp_path / "build"
    arguments = ("--preset", "android-x86_64", "-DCMAKE_CXX_COMPILER=c++")
    code, output, errors = configure(build, *arguments, ANDROID_NDK_HOME=str(ndk))
    assert code == 0, errors
    assert "given: x86_64 android-26 c++_static ON" in output
    code, _, errors = configure(build)  # as a generator does when a file has changed
    assert code == 0, errors
    other = make_ndk(tmp_path / "other")
    text = preset(build, other)
    assert f"was made with the NDK {ndk}: remove the folder" in text


@pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler")
def test_app_needs_no_setting_but_those_of_the_ndk(tmp_path):
    file = make_ndk(tmp_path / "ndk") / "build" / "cmake" / "android.toolchain.cmake"
    given = ("-DANDROID_ABI=arm64-v8a", "-DANDROID_PLATFORM=android-30", "-DCMAKE_CXX_COMPILER=c++")
    build = tmp_path / "build"
    code, _, errors = configure(build, f"-DCMAKE_TOOLCHAIN_FILE={file}", *given)
    assert code == 0, errors
    cache = (build / "CMakeCache.txt").read_text()
    assert "CLGPU_BUILD_PYTHON:BOOL=OFF" in cache
    assert "CLGPU_BUILD_LIBRARY:BOOL=ON" in cache


def test_python_has_to_be_there(tmp_path):
    text = refusal(tmp_path / "build", "--preset", "default", "-DPython_EXECUTABLE=/no/python")
    assert "There is no Python /no/python: run make test" in text


def test_cross_compiler_has_to_be_there(tmp_path):
    text = refusal(tmp_path / "build", "--preset", "linux-aarch64", PATH=str(tmp_path))
    assert "aarch64-linux-gnu-g++ is not on the PATH: install it" in text
    assert "g++-aarch64-linux-gnu" in text


@pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="32 bits by -m32")
def test_32_bit_platform(tmp_path):
    text = refusal(
        tmp_path, "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=armv7l",
        "-DCMAKE_CXX_FLAGS=-m32", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
    )  # fmt: skip
    assert "The compiler's target (armv7l) is a 32-bit platform" in text
    assert "layout of TensorFlow Lite's C structures is known for 64-bit platforms only" in text
    assert "--preset linux-aarch64" in text

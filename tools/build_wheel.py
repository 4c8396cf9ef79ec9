"""Build a wheel that runs with old glibc, on any Linux: ``python tools/build_wheel.py``.

zig compiles and links (src_cpp/cmake/linux-zig.cmake), auditwheel finds the oldest platform that
the wheel supports, and tools/check_library.py reads the extension inside. ``--arch`` builds for
another architecture with the headers of this one's Python; ``--python`` names the Python that the
wheel is for. Needs the extra `cross`. The last line on standard output is the path of the wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURES = ("x86_64", "aarch64")
# Libraries that every system with glibc has, of those that PEP 600 lets a wheel need.
NEEDED = ("libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0")
EXPORTS = {"_core": "exports_python.map", "libLiteRtGpuAccelerator": "exports_litert.map"}
PROGRAM = "clgpu_delegate/clgpu_compile"
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}


# Run by the Python that the wheel is for.
FACTS = """
import json, struct, sys, sysconfig
v = sysconfig.get_config_vars()
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": sys.version_info[:2],
    "bits": 8 * struct.calcsize("P"),
    "soabi": v["SOABI"],
    "pyconfig": sysconfig.get_config_h_filename(),
}))
"""
BUILD = """
import json, sys
from scikit_build_core.build import build_wheel
build_wheel(*json.load(sys.stdin))
"""


class Target(NamedTuple):
    """What is compiled for."""

    arch: str
    glibc: str


def main() -> None:
    arguments = parse()
    wheel = make(arguments.python or sys.executable, arguments.arch, arguments.glibc, arguments.out)
    with zipfile.ZipFile(wheel) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    print(f"{wheel.stat().st_size / 1e6:.2f} MB, unpacked {unpacked / 1e6:.2f} MB")
    print(wheel)


def make(python, arch, glibc, out):
    """Build and check a wheel; return its path in the folder ``out``."""
    target = Target(arch, glibc)
    work = ROOT / "build" / "wheel"
    work.mkdir(parents=True, exist_ok=True)
    if python != sys.executable:
        python = prepare(python, work)
    facts = json.loads(run([python, "-c", FACTS]))
    if facts["implementation"] != "cpython" or facts["bits"] != 64:
        fail(f"{python} is not a 64-bit CPython, and there are wheels for no other.")
    with tempfile.TemporaryDirectory(dir=work) as folder:
        raw = build(python, facts, build_core(target), target, Path(folder))
        if arch != platform.machine():
            check_sizes(facts["pyconfig"], target, Path(folder))
        wheel = repair(raw, out)
    check(wheel, target)
    return wheel


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", choices=ARCHITECTURES, default=platform.machine())
    parser.add_argument("--python", help="the Python that the wheel is for; the one that runs this")
    parser.add_argument("--glibc", default="2.17", help="oldest glibc to run with; 2.17")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder; dist")
    arguments = parser.parse_args()
    if arguments.arch not in ARCHITECTURES:
        fail(f"{arguments.arch} is an architecture without wheels: use --arch.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments


def prepare(python, work):
    """Make an environment of another Python with the build requirements; return its Python."""
    name = run([python, "-c", "import sys; print('env-%d.%d' % sys.version_info[:2])"]).strip()
    if not (work / name / "ready").exists():
        run([python, "-m", "venv", "--clear", work / name])
        tools = ["scikit-build-core>=0.11", "pybind11>=3.0.1", "cmake>=3.20", "ninja"]
        run([work / name / "bin" / "pip", "install", "-q", *tools])
        (work / name / "ready").touch()
    return str(work / name / "bin" / "python")


def build_core(target):
    """Build folder of what is the same for each Python of an architecture: compiled once."""
    folder = ROOT / f"build/wheel/core-{target.arch}-glibc{target.glibc}"
    defines = {**toolchain(target), "CMAKE_BUILD_TYPE": "Release", "CLGPU_BUILD_PYTHON": "OFF"}
    settings = [f"-D{name}={value}" for name, value in defines.items()]
    tools = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    drop_unfinished(folder)
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *settings], tools, show=True)
    run(["cmake", "--build", folder, "--target", "clgpu_objects"], tools, show=True)
    return folder


def drop_unfinished(folder):
    """Delete a build folder that CMake has not finished: it keeps answers of interrupted tests."""
    if (folder / "CMakeCache.txt").exists() and not (folder / "build.ninja").exists():
        shutil.rmtree(folder)


def toolchain(target):
    return {
        "CMAKE_TOOLCHAIN_FILE": ROOT / "src_cpp/cmake/linux-zig.cmake",
        "CLGPU_ZIG": zig(),
        "CLGPU_ARCH": target.arch,
        "CLGPU_GLIBC": target.glibc,
        "CLGPU_PRECOMPILE": "ON",
    }


def build(python, facts, core, target, folder):
    """Path of a wheel for any Linux of the architecture."""
    soabi = re.sub(r"-(x86_64|aarch64)-", f"-{target.arch}-", facts["soabi"])
    # One folder for each Python: scikit-build-core empties a folder that another Python has used.
    work = ROOT / f"build/wheel/{soabi}-glibc{target.glibc}"
    defines = {
        **toolchain(target),
        "CLGPU_COMPILED": core,
        "PYBIND11_USE_CROSSCOMPILING": "ON",
    }
    if flags := debian_headers(facts["pyconfig"], target.arch, f"{work}-headers"):
        defines["CMAKE_CXX_FLAGS"] = flags
    settings = {f"cmake.define.{name}": str(value) for name, value in defines.items()}
    settings["build-dir"] = str(work)
    drop_unfinished(work)
    environment = {
        "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}",  # has cmake and ninja
        "_PYTHON_HOST_PLATFORM": f"linux-{target.arch}",
        "SETUPTOOLS_EXT_SUFFIX": f".{soabi}.so",
    }
    run([python, "-c", BUILD], environment, text=json.dumps([str(folder), settings]), show=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def debian_headers(pyconfig, arch, folder):
    """Flags for the compiler where Debian's pyconfig.h includes another of the architecture.

    That one lies in /usr/include, which is not searched, as the C library's headers of this system
    are there, too. Of another architecture there is none: see check_sizes.
    """
    real = real_pyconfig(pyconfig)
    if real == Path(pyconfig):
        return ""
    copy = Path(folder, f"{arch}-linux-gnu", real.parent.name, real.name)
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(real, copy)  # with its time, so that nothing is compiled again
    return f"-isystem {folder}"


def real_pyconfig(pyconfig):
    """The file that has the facts: Debian's pyconfig.h includes one for each architecture."""
    path = Path(pyconfig)
    included = rf"^\s*#\s*include <({platform.machine()}-linux-gnu/\S+/pyconfig\.h)>"
    found = re.search(included, path.read_text(encoding="utf-8"), re.MULTILINE)
    return path.parent.parent / found[1] if found else path


def check_sizes(pyconfig, target, folder):
    """Stop unless the types of the architecture have the sizes in the headers of this Python.

    Python's public headers take these from pyconfig.h, and nothing else that may differ between
    systems with the same C library.
    """
    text = real_pyconfig(pyconfig).read_text(encoding="utf-8")
    names = {"size_t": "size_t", "void_p": "void*", "wchar_t": "wchar_t", "pid_t": "pid_t"}
    names.update({"off_t": "off_t", "time_t": "time_t", "uintptr_t": "uintptr_t", "short": "short"})
    names.update({n.replace(" ", "_"): n for n in ("int", "long", "long long", "float", "double")})
    names.update({"long_double": "long double", "_Bool": "bool"})
    lines = ["#include <cstdint>", "#include <ctime>", "#include <sys/types.h>"]
    for what, name, value in re.findall(r"#define (SIZEOF|ALIGNOF)_(\w+) (\d+)", text):
        kind = names.get(name if name in names else name.lower())
        if kind:
            lines.append(f'static_assert({what.lower()}({kind}) == {value}, "{kind}");')
    if not any("sizeof(void*)" in line for line in lines):
        fail(f"{pyconfig} does not have the sizes of types, which are compared.")
    source = folder / "sizes.cpp"
    source.write_text("\n".join(lines) + "\n")
    target = f"{target.arch}-linux-gnu.{target.glibc}"
    run([zig(), "c++", "-target", target, "-std=c++17", "-c", source, "-o", folder / "sizes.o"])


def repair(raw, out):
    """Tag the wheel with the oldest platform that it supports; return its path."""
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    fixed = raw.parent / "repaired"
    # No library is bundled: the wheel needs none that a system may lack.
    run([sys.executable, "-m", "auditwheel", "repair", "-w", fixed, raw], environment)
    (wheel,) = fixed.glob("*.whl")
    return Path(shutil.move(wheel, out / wheel.name))  # also works across disks


def check(wheel, target):
    """Stop unless libraries and program are those of the package, as the wheel's name says."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        found = [name for name in archive.namelist() if ".so" in Path(name).suffixes]
        libraries = {Path(name).name.split(".")[0]: name for name in found}
        if len(found) != len(EXPORTS) or set(libraries) != set(EXPORTS):
            fail(f"{wheel} has the libraries {', '.join(found)}; expected: {', '.join(EXPORTS)}.")
        needed = ",".join((*NEEDED, LOADERS[target.arch]))
        gates = ["--machine", target.arch, "--needed", needed, "--glibc", target.glibc]
        for name, exports in EXPORTS.items():
            path = archive.extract(libraries[name], folder)
            symbols = ["--exports", ROOT / "src_cpp/cmake" / exports]
            run([sys.executable, ROOT / "tools/check_library.py", path, *gates, *symbols])
        program = archive.extract(PROGRAM, folder)
        run([sys.executable, ROOT / "tools/check_library.py", program, *gates])


def zig():
    try:
        import ziglang  # noqa: PLC0415
    except ImportError:
        fail("zig is not installed: pip install ziglang==0.15.2, or the extra `cross`.")
    return str(Path(ziglang.__file__).parent / "zig")


def run(command, environment=None, text=None, show=False, cwd=ROOT):
    """Run a command and return its output; on failure show the output."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        input=text,
        stdout=None if show else subprocess.PIPE,
        stderr=None if show else subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if result.returncode != 0:
        fail(f"{result.stdout or ''}This command failed: {' '.join(map(str, command))}")
    return result.stdout or ""


def fail(message):
    raise SystemExit(message)


if __name__ == "__main__":
    main()

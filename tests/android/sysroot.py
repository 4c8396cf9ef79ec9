"""A stand-in for Android's C library that ziglang takes: headers, and libraries of names only.

The headers are musl's from ziglang, overridden by those in include/; the libraries have the
functions listed in names/, but no code. Builds with it show that the sources fit Android, but they
cannot run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
API = 26
TARGET = f"aarch64-linux-android.{API}"
LIBRARIES = ("c", "m", "dl", "log")

# Only crtbegin_so.o has content: the handle by which destructors are registered.
START_FILES = {
    "crtbegin_so": ".hidden __dso_handle\n.globl __dso_handle\n.data\n.balign 8\n"
    "__dso_handle: .quad __dso_handle\n",
    "crtend_so": "",
    "crtbegin_dynamic": "",
    "crtend_android": "",
}

DESCRIPTION = """include_dir={0}/include
sys_include_dir={0}/include
crt_dir={0}/lib
msvc_lib_dir=
kernel32_lib_dir=
gcc_dir=
"""


def names(library: str) -> list[str]:
    """Return the functions and variables that lib<library>.so has at API level 26."""
    lines = (HERE / "names" / f"lib{library}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def key(zig: Path) -> str:
    """Return a digest of everything that affects compiled objects."""
    digest = hashlib.sha256(str((zig, zig.stat().st_mtime_ns)).encode())
    for path in (Path(__file__), *sorted((HERE / "include").rglob("*.h")), HERE / "zig.cmake"):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def make(zig: Path, folder: Path) -> Path:
    """Write the stand-in into a folder; returns the description that ``ZIG_LIBC`` names."""
    if not (folder / "libc.txt").exists():
        make_headers(zig.parent / "lib" / "libc" / "include", folder / "include")
        (folder / "libc.txt").write_text(DESCRIPTION.format(folder), encoding="utf-8")
    lib = folder / "lib"
    lib.mkdir(exist_ok=True)
    for name, text in START_FILES.items():
        assemble(zig, text, lib / f"{name}.o")
    for library in LIBRARIES:
        make_library(zig, lib / f"lib{library}.so", names(library))
    return folder / "libc.txt"


def make_library(
    zig: Path, path: Path, functions: list[str], needed: tuple[Path, ...] = (), target: str = TARGET
) -> None:
    """Make a library that exports these names, and needs these libraries, but has no code."""
    part = path.with_suffix(".o")
    text = "".join(f".globl {name}\n{name}:\n" for name in functions)
    assemble(zig, f"{text}nop\n", part, target)
    options = ("-z", "max-page-size=16384", "-soname", path.name)
    command = [zig, "ld.lld", "-shared", *options, "-o", path, part, *needed]
    subprocess.run(command, check=True)


def make_headers(theirs: Path, folder: Path) -> None:
    """Put our headers over ziglang's; those that ours include go into musl/."""
    for part in ("any-linux-any", "aarch64-linux-any", "generic-musl", "aarch64-linux-musl"):
        shutil.copytree(theirs / part, folder, dirs_exist_ok=True)
    (folder / "musl").mkdir(exist_ok=True)
    for ours in (HERE / "include").iterdir():
        if (folder / ours.name).is_file():
            (folder / ours.name).rename(folder / "musl" / ours.name)
    shutil.copytree(HERE / "include", folder, dirs_exist_ok=True)


def assemble(zig: Path, text: str, path: Path, target: str = TARGET) -> None:
    source = path.with_suffix(".s")
    source.write_text(text, encoding="utf-8")
    subprocess.run([zig, "cc", "-target", target, "-c", source, "-o", path], check=True)

"""Shared libraries as files: their paths and the machines they are for."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from clgpu_delegate.doctor import paths

if TYPE_CHECKING:
    from clgpu_delegate.doctor.environment import Environment

_MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 22: "s390x"}
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64", "i686": "i386", "armv7l": "arm", "armv6l": "arm"}


@dataclasses.dataclass(frozen=True)
class Library:
    """A file that has the name of a library."""

    path: Path
    machine: str
    """``"x86_64"``, ``"aarch64"``, ...; empty if it is not a library."""

    broken_link: bool = False


def inspect(path: Path) -> Library:
    """Read the first bytes of a file."""
    if path.is_symlink() and not paths.exists(path):
        return Library(path, "", broken_link=True)
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        head = b""
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return Library(path, "")
    (number,) = struct.unpack("<H" if head[5] == 1 else ">H", head[18:20])
    return Library(path, _MACHINES.get(number, f"machine {number}"))


def folders(env: Environment) -> list[Path]:
    """Where the dynamic linker looks: LD_LIBRARY_PATH, then the system's folders."""
    named = [part for part in env.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    triple = f"{machine(env)}-linux-gnu"
    system = [
        f"/usr/lib/{triple}", f"/lib/{triple}", "/usr/lib64", "/lib64", "/usr/lib", "/lib",
        "/usr/local/lib", "/usr/lib/i386-linux-gnu", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib",
    ]  # fmt: skip
    found = [Path(part) for part in named] + [env.at(part) for part in system]
    return [path for path in dict.fromkeys(found) if paths.is_folder(path)]


def find(env: Environment, pattern: str) -> list[Library]:
    """Files of a name (a pattern) on the linker's search path, in its order."""
    found: dict[Path, Library] = {}
    for folder in folders(env):
        for path in paths.matching(folder, pattern):
            found.setdefault(path.resolve() if paths.exists(path) else path, inspect(path))
    return list(found.values())


def machine(env: Environment) -> str:
    """The machine's name, spelt as in ``Library.machine``."""
    return _ALIASES.get(env.machine.lower(), env.machine)

"""The machine as the checks see it; tests simulate another one in a folder."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import grp
import importlib.metadata
import os
import platform
import pwd
import re
import struct
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from clgpu_delegate.doctor import child, paths

if TYPE_CHECKING:
    from clgpu_delegate.litert import LiteRtSwitch


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # in containers a user may have no name
        return ""


def _groups() -> frozenset[str]:
    names = set()
    for group in {*os.getgroups(), os.getegid()}:
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(group).gr_name)
    return frozenset(names)


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _pip_libraries() -> list[Path]:
    # Imported here because it needs the compiled extension, which may be broken.
    from clgpu_delegate.base import embedded  # noqa: PLC0415

    return embedded.libraries()


def _why_untrusted(path: str) -> str:
    from clgpu_delegate import _core  # noqa: PLC0415  # as above
    from clgpu_delegate.errors import ClgpuError  # noqa: PLC0415

    try:
        return _core.why_untrusted(path)
    except ClgpuError:  # the extension is missing, which another check reports
        return ""


def _litert_switch() -> LiteRtSwitch | None:
    from clgpu_delegate.errors import ClgpuError  # noqa: PLC0415  # as above
    from clgpu_delegate.litert import litert_status  # noqa: PLC0415

    try:
        return litert_status()
    except ClgpuError:  # this build has no accelerator, or no extension, as another check reports
        return None


def _requires(distribution: str) -> list[str]:
    try:
        return importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _installed() -> dict[str, list[str]]:
    found = {}
    for distribution in importlib.metadata.distributions():
        # Conditions are for extras, other systems and old Pythons.
        lines = [line for line in distribution.requires or () if "extra ==" not in line]
        named = [re.match(r"[\w.-]+", line) for line in lines]
        name = distribution.metadata["Name"]
        if name:  # folders of packages that pip failed to remove have none
            found[name] = [match[0] for match in named if match]
    return found


def _requested() -> set[str]:
    # As PEP 376 has it: the file that installers write where a user has named the distribution.
    found = importlib.metadata.distributions()
    return {each.metadata["Name"] for each in found if each.read_text("REQUESTED") is not None}


def _bytes_of(distribution: str) -> int:
    total = 0
    for file in importlib.metadata.files(distribution) or ():
        with contextlib.suppress(OSError):
            total += Path(str(file.locate())).stat().st_size
    return total


def _externally_managed() -> bool:
    mark = Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return sys.prefix == sys.base_prefix and mark.exists()


@dataclasses.dataclass
class Environment:
    """The machine and the user to check; the defaults are those of this process."""

    root: Path = Path("/")
    environ: Mapping[str, str] = dataclasses.field(default_factory=lambda: dict(os.environ))
    uid: int = dataclasses.field(default_factory=os.getuid)
    user: str = dataclasses.field(default_factory=_user_name)
    groups: frozenset[str] = dataclasses.field(default_factory=_groups)
    access: Callable[[Path, int], bool] = os.access
    version: Callable[[str], str | None] = _version
    """Version of an installed distribution, or None."""

    requires: Callable[[str], list[str]] = _requires
    """Lines of what a distribution needs."""

    installed: Callable[[], Mapping[str, Sequence[str]]] = _installed
    """Names of all distributions, each with the names of those that it needs."""

    requested: Callable[[], set[str]] = _requested
    """Names of the distributions that a user has named to an installer."""

    bytes_of: Callable[[str], int] = _bytes_of
    """Size of the files of a distribution."""

    requirements: tuple[str, ...] = ("numpy", "platformdirs")
    """Distributions that this package needs, without those that they need in turn."""

    machine: str = dataclasses.field(default_factory=platform.machine)
    libc: str = " ".join(platform.libc_ver()).strip()
    """``"glibc 2.36"``; empty for another C library."""

    system: str = sys.platform
    bits: int = struct.calcsize("P") * 8
    python: tuple[int, ...] = tuple(sys.version_info[:3])
    loader_names: tuple[str, ...] = ("libOpenCL.so.1", "libOpenCL.so")
    pip_libraries: Callable[[], list[Path]] = _pip_libraries
    """OpenCL runtimes that pip installed."""

    why_untrusted: Callable[[str], str] = _why_untrusted
    """Why a file is not used as a cache, or empty."""

    litert_switch: Callable[[], LiteRtSwitch | None] = _litert_switch
    """Whether LiteRT's CompiledModel uses this delegate; None if this build has no accelerator."""

    externally_managed: bool = dataclasses.field(default_factory=_externally_managed)
    """Whether the distribution forbids pip to install into this Python."""

    package: Path = Path(__file__).resolve().parents[1]
    """The folder of this package."""

    device: str = ""
    """Index or name of the device to try; empty: all."""

    timeout: float = 60.0
    """Seconds that a process of a check may take."""

    call_process: Callable[..., child.Outcome] = child.call

    def at(self, path: str | os.PathLike[str]) -> Path:
        """A path of the simulated machine."""
        return self.root / os.fspath(path).lstrip("/")

    def shown(self, path: Path) -> str:
        """A path as its user knows it."""
        with contextlib.suppress(ValueError):
            return "/" + str(path.relative_to(self.root))
        return str(path)

    def read(self, path: str | os.PathLike[str]) -> str:
        """Text of a file; empty if it cannot be read."""
        try:
            return self.at(path).read_text(errors="replace")
        except OSError:
            return ""

    def names(self, folder: str, pattern: str = "*") -> list[str]:
        """Sorted names in a folder; none where there is none."""
        return [path.name for path in paths.matching(self.at(folder), pattern)]

    def call(self, file: str, function: str, *arguments: Any) -> child.Outcome:
        """Call a function of a file of this folder in another process."""
        path = str(Path(__file__).with_name(file))
        return self.call_process(
            path, function, *arguments, environ=self.environ, timeout=self.timeout
        )

    @functools.cached_property
    def distribution(self) -> Mapping[str, str]:
        """The fields of /etc/os-release."""
        fields = re.findall(r'^(\w+)="?(.*?)"?$', self.read("/etc/os-release"), re.MULTILINE)
        return dict(fields)

    @functools.cached_property
    def container(self) -> str:
        """``"docker"``, ``"podman"``, ``"lxc"``, ... or empty."""
        environ = self.environ
        signs = {
            "podman": self.at("/run/.containerenv").exists(),
            "kubernetes": "KUBERNETES_SERVICE_HOST" in environ,
            "docker": self.at("/.dockerenv").exists(),
            "flatpak": self.at("/.flatpak-info").exists(),
            "snap": bool(environ.get("SNAP")),
            "apptainer": "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ,
        }
        for name, found in signs.items():
            if found:
                return name
        named = self.read("/run/systemd/container").strip() or environ.get("container", "")
        if named:
            return named
        words = self.read("/proc/1/cgroup") + self.read("/proc/self/cgroup")
        word = re.search(r"\b(docker|kubepods|lxc|containerd|libpod)\b", words)
        kinds = {"kubepods": "kubernetes", "libpod": "podman"}
        return kinds.get(word[1], word[1]) if word else ""

    @functools.cached_property
    def is_wsl(self) -> bool:
        """Whether this is WSL, Linux under Windows."""
        return "microsoft" in self.read("/proc/sys/kernel/osrelease").lower()

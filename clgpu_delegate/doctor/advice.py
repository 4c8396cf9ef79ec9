"""Commands that fix problems, for this machine's distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clgpu_delegate.doctor.environment import Environment

# Distribution (ID or ID_LIKE of os-release) -> its package manager.
_MANAGERS = {
    "debian": "apt", "ubuntu": "apt", "raspbian": "apt", "fedora": "dnf", "rhel": "dnf",
    "centos": "dnf", "arch": "pacman", "alpine": "apk", "suse": "zypper", "opensuse": "zypper",
}  # fmt: skip
_COMMANDS = {
    "apt": "apt install", "dnf": "dnf install", "pacman": "pacman -S", "apk": "apk add",
    "zypper": "zypper install",
}  # fmt: skip
_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "loader": {
        "apt": "ocl-icd-libopencl1",
        "dnf": "'libOpenCL.so.1()(64bit)'",  # the package's name has changed
        "pacman": "ocl-icd",
        "apk": "opencl-icd-loader",
        "zypper": "libOpenCL1",
    },
    "pocl": {
        "apt": "pocl-opencl-icd", "dnf": "pocl", "pacman": "pocl", "apk": "pocl", "zypper": "pocl",
    },
    "intel": {
        "apt": "intel-opencl-icd",
        "dnf": "intel-compute-runtime",
        "pacman": "intel-compute-runtime",
        "zypper": "intel-opencl",
    },
    "mesa": {
        "apt": "mesa-opencl-icd",
        "dnf": "mesa-libOpenCL",
        "pacman": "opencl-mesa",
        "apk": "mesa-rusticl",
        "zypper": "Mesa-libRusticlOpenCL",
    },
    "rocm": {"dnf": "rocm-opencl", "pacman": "rocm-opencl-runtime"},
    "nvidia": {
        "apt": "nvidia-opencl-icd",
        "dnf": "xorg-x11-drv-nvidia-cuda",
        "pacman": "opencl-nvidia",
    },
}  # fmt: skip
_NAMES = {
    "loader": "an OpenCL loader (libOpenCL.so.1)",
    "pocl": "PoCL",
    "intel": "Intel's compute runtime",
    "mesa": "Mesa's OpenCL (Rusticl)",
    "rocm": "ROCm's OpenCL",
    "nvidia": "the OpenCL part of NVIDIA's driver",
}
# Part of the name of a driver's library -> key of _PACKAGES.
_DRIVERS = {
    "nvidia": "nvidia", "igdrcl": "intel", "pocl": "pocl", "Mesa": "mesa", "Rusticl": "mesa",
    "amdocl": "rocm",
}  # fmt: skip


def manager(env: Environment) -> str:
    """``"apt"``, ``"dnf"``, ``"pacman"``, ``"apk"``, ``"zypper"``, or empty if unknown."""
    fields = env.distribution
    for word in f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".split():
        if word.split("-", maxsplit=1)[0] in _MANAGERS:
            return _MANAGERS[word.split("-", maxsplit=1)[0]]
    return ""


def sudo(env: Environment) -> str:
    """The prefix of commands for administrators."""
    return "sudo " if env.uid else ""


def install(env: Environment, what: str) -> str:
    """How to install a part: ``"loader"``, ``"pocl"``, ``"intel"``, ``"mesa"``, ..."""
    kind = manager(env)
    package = _PACKAGES[what].get(kind)
    if what == "nvidia" and env.distribution.get("ID") == "ubuntu":
        version = nvidia_version(env).split(".", maxsplit=1)[0]
        package = f"libnvidia-compute-{version}" if version else "nvidia-driver"
    if package is None:
        return f"install {_NAMES[what]} by this system's package manager"
    return f"{sudo(env)}{_COMMANDS[kind]} {package}"


def cpu_runtime(env: Environment) -> str:
    """How to use the CPU as an OpenCL device."""
    if env.machine in ("x86_64", "AMD64") and manager(env) != "apk":  # no wheels for musl
        return pip(env, "'clgpu_delegate[cpu]'")
    return install(env, "pocl")


def pip(env: Environment, what: str) -> str:
    """How to install a Python package into this environment."""
    command = "pip install" if env.version("pip") else "uv pip install"
    if env.externally_managed:  # the distribution's Python, as for this package
        command += " --break-system-packages"
    return f"{command} {what}"


def pip_uninstall(env: Environment, what: str) -> str:
    """How to remove Python packages from this environment."""
    return pip(env, what).replace(" install", " uninstall", 1)


def package_of(library: str) -> str:
    """Key of the package that a driver's library belongs to; empty if unknown."""
    return next((key for part, key in _DRIVERS.items() if part in library), "")


def nvidia_version(env: Environment) -> str:
    """Version of NVIDIA's kernel module, as "535.104.05"; empty if it is not loaded."""
    for word in env.read("/proc/driver/nvidia/version").split():
        if word[0].isdigit() and "." in word:
            return word
    return ""


def container_flags(env: Environment, docker: str, *, nvidia: bool = False) -> str:
    """How to start the container; ``docker`` are the flags of Docker and Podman."""
    return {
        "snap": f"{sudo(env)}snap connect {env.environ.get('SNAP_NAME', 'NAME')}:opengl",
        "flatpak": "flatpak override --user --device=all "
        + env.environ.get("FLATPAK_ID", "APPLICATION"),
        "lxc": "lxc config device add CONTAINER gpu gpu   # on the host",
        "apptainer": f"apptainer exec {'--nv' if nvidia else '--rocm'} IMAGE COMMAND",
        "kubernetes": "request a GPU of the cluster's device plugin under resources.limits "
        f"({'nvidia.com/gpu: 1' if nvidia else 'such as amd.com/gpu: 1'})",
        "podman": "podman run "
        + ("--device nvidia.com/gpu=all ..." if nvidia and "--gpus" in docker else f"{docker} ..."),
    }.get(env.container, f"docker run {docker} ...")

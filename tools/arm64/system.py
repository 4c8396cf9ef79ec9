"""The ARM system: packages of Debian, unpacked into a folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.arm64.common import FOLDER, Failed, Missing, made_once, require, run

SUITE = "bookworm"
PYTHON = (3, 11)  # the suite's version, and the newest with a wheel of tflite-runtime
PYTHON_NAME = "python{}.{}".format(*PYTHON)
PACKAGES = (
    "ocl-icd-libopencl1",
    "pocl-opencl-icd",
    "python3-minimal",
    f"lib{PYTHON_NAME}-stdlib",
)
MIRROR_VARIABLE = "CLGPU_DEBIAN_MIRROR"
LIBRARIES = Path("usr/lib/aarch64-linux-gnu")

# The processor of qemu and of /proc/cpuinfo. With all extensions of qemu 7.2, the newer runtime's
# XNNPACK computes wrong 8-bit convolutions; and qemu would show the cpuinfo of this machine, which
# makes that runtime fail.
PROCESSOR = "cortex-a72"
_CORE = """processor\t: {index}
BogoMIPS\t: 108.00
Features\t: fp asimd evtstrm crc32 cpuid
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd08
CPU revision\t: 3

"""
CPUINFO = "".join(_CORE.format(index=index) for index in range(2))  # two cores


def mirror() -> str:
    """Address of a mirror of Debian: the one in the environment, or that of this machine's apt."""
    if os.environ.get(MIRROR_VARIABLE):
        return os.environ[MIRROR_VARIABLE]
    if shutil.which("apt-get"):
        lines = run(
            ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
        ).splitlines()
        for origin, _, address in (line.partition(" ") for line in lines):
            if origin == "Debian" and "security" not in address:
                return address
    raise Missing(
        f"apt of this machine knows no mirror of Debian: run apt-get update, or set "
        f"{MIRROR_VARIABLE} to the address of one"
    )


def make_system() -> Path:
    """Unpack the system unless it is unpacked; return its folder."""
    root = FOLDER / "root"
    recipe = f"{SUITE} {' '.join(PACKAGES)}\n{CPUINFO}"
    with made_once(root, recipe, f"unpacking Debian {SUITE} for arm64") as part:
        if part is not None:
            mmdebstrap = require("mmdebstrap", "mmdebstrap")
            # Other modes need root or namespaces; no mode runs anything of the packages.
            mode = "auto" if os.geteuid() == 0 else "chrootless"
            command = [
                mmdebstrap, "--quiet", f"--mode={mode}",
                "--variant=extract", "--architectures=arm64",
                f"--include={','.join(PACKAGES)}", "--aptopt=Apt::Install-Recommends false",
                SUITE, str(part), mirror(),
            ]  # fmt: skip
            try:
                run(command)
            except Failed as error:
                raise Missing(f"Debian's packages for arm64 cannot be had: {error}") from None
            (part / "proc").mkdir(exist_ok=True)
            (part / "proc" / "cpuinfo").write_text(CPUINFO)
    return root

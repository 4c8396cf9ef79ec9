"""Folders of Python packages for the ARM system: what pip would install there."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from tools.arm64.common import FOLDER, Failed, Missing, made_once, run
from tools.arm64.system import PYTHON

# The runtimes, by the names of their modules.
RUNTIMES = {
    "tflite_runtime": ("tflite-runtime==2.14.0", "numpy==1.26.4"),
    "ai_edge_litert": ("ai-edge-litert==2.3.0",),
}
# The glibc of bookworm is 2.36. pip takes these as they are: the oldest does not imply the newer.
_PLATFORMS = (
    *(f"manylinux_2_{minor}_aarch64" for minor in range(36, 16, -1)),
    "manylinux2014_aarch64",
)


def make_site(name: str, requirements: tuple[str, ...]) -> Path:
    """Install packages, which may be paths of wheels, into the folder of a name."""
    site = FOLDER / "sites" / name
    with made_once(site, "\n".join(map(_identity, requirements)), f"installing {name}") as part:
        if part is not None:
            command = [
                sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                "--target", str(part), "--only-binary=:all:", "--implementation", "cp",
                "--python-version", "{}.{}".format(*PYTHON),
                *(word for platform in _PLATFORMS for word in ("--platform", platform)),
                *requirements,
            ]  # fmt: skip
            try:
                run(command)
            except Failed as error:
                raise Missing(f"packages for ARM cannot be had: {error}") from None
    return site


def _identity(requirement: str) -> str:
    """What changes when the requirement does."""
    path = Path(requirement.partition("[")[0])
    if path.suffix != ".whl":
        return requirement
    return f"{requirement} {hashlib.sha256(path.read_bytes()).hexdigest()}"

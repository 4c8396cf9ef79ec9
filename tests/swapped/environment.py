"""Environment variables that replace parts of the package in processes."""

from __future__ import annotations

import os
from pathlib import Path

SITE = Path(__file__).parent / "site"


def environment(
    extension: Path | None = None, package: Path | None = None, kernels: Path | None = None
) -> dict[str, str]:
    """Return the variables; None keeps the installed part.

    Parameters
    ----------
    extension
        A compiled `_core`.
    package
        A folder with the modules of the package.
    kernels
        A folder like `kernels`; needs an `extension`, which is given its texts.
    """
    paths = {"EXTENSION": extension, "PACKAGE": package, "KERNELS": kernels}
    search = [str(SITE), os.environ.get("PYTHONPATH", "")]
    return {
        **{f"CLGPU_SWAPPED_{name}": str(path) for name, path in paths.items() if path is not None},
        "PYTHONPATH": os.pathsep.join(filter(None, search)),
    }

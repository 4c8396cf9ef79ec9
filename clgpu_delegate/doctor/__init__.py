"""Find problems of this machine's OpenCL and tell how to fix them; ``clgpu doctor``."""

from __future__ import annotations

from typing import Callable

from clgpu_delegate.doctor.finding import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "doctor"]


def doctor(
    *, device: str = "", timeout: float = 60.0, progress: Callable[[str], None] | None = None
) -> Diagnosis:
    """Look for what keeps models from running on this machine's devices.

    Looked at are the loader and the drivers it is told of, device files and who may open them,
    environment variables, containers, the cache, the TensorFlow Lite runtimes; then a kernel is run
    on each device, and a model by each runtime. All that may crash or hang is done by other
    processes.

    Parameters
    ----------
    device
        Index of an OpenCL device, or part of its name; empty: all.
    timeout
        Seconds that each of these processes may take.
    progress
        Called with the name of each check before it begins.

    Returns
    -------
    Diagnosis
        It is never an error that something is wrong.
    """
    # Nobody else needs it.
    from clgpu_delegate.doctor.environment import Environment  # noqa: PLC0415
    from clgpu_delegate.doctor.examination import examine  # noqa: PLC0415

    return examine(Environment(device=str(device), timeout=timeout), progress)

"""Find problems of this machine's OpenCL and how to fix them; ``clgpu doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from clgpu_delegate.doctor.finding import Diagnosis

__all__ = ["doctor"]


def doctor(
    *, device: str = "", timeout: float = 60.0, progress: Callable[[str], None] | None = None
) -> Diagnosis:
    """Look for what keeps models from running on this machine's devices.

    It checks the loader and its drivers, device files and their permissions, environment variables,
    containers, the cache, and the TensorFlow Lite runtimes. Then it runs a kernel on each device
    and a model with each runtime. Other processes do everything that may crash or hang.

    Parameters
    ----------
    device
        Index of an OpenCL device, or part of its name; empty: all.
    timeout
        Time limit of each of these processes, in seconds.
    progress
        Called with the name of each check before it begins.

    Returns
    -------
    Diagnosis
        Problems of the machine are findings, and never an exception.

    Examples
    --------
    >>> diagnosis = clgpu_delegate.doctor(device=0)
    >>> [finding.fix for finding in diagnosis.problems]  # doctest: +ELLIPSIS
    [...]
    """
    # Imported here because only this function needs it: every program imports this module.
    from clgpu_delegate.doctor.environment import Environment  # noqa: PLC0415
    from clgpu_delegate.doctor.examination import examine  # noqa: PLC0415

    return examine(Environment(device=str(device), timeout=timeout), progress)

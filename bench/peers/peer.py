"""The interface of a peer: a library, or a way to use one."""

from __future__ import annotations

import abc
import dataclasses
import importlib.metadata
import importlib.util
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.peers.work import Made, Work


@dataclasses.dataclass(frozen=True)
class Means:
    """What peers may use.

    Attributes
    ----------
    device
        OpenCL device of ours, as in `clgpu_delegate.load`.
    kind
        Its type: ``"gpu"``, ``"cpu"`` or another one.
    platform
        Its platform's name, for other users of OpenCL.
    library
        The OpenCL library that has it.
    threads
        Of libraries that compute on the CPU.
    """

    device: str
    kind: str
    platform: str
    library: str
    threads: int

    @property
    def opencl_environment(self) -> dict[str, str]:
        """Variables with which the system's OpenCL loader finds the platform."""
        if Path(self.library).name.startswith("libOpenCL.so"):
            return {}
        # One for ocl-icd, one for Khronos' loader.
        return {"OCL_ICD_VENDORS": self.library, "OCL_ICD_FILENAMES": self.library}


class Loaded(abc.ABC):
    """A model that a peer has loaded, with its inputs."""

    @abc.abstractmethod
    def run(self) -> None:
        """One inference, from arrays of the host to arrays of the host."""

    @abc.abstractmethod
    def outputs(self) -> list[np.ndarray]:
        """The results of the last run, in the model's order and layout (NHWC)."""

    def many_seconds(self, runs: int) -> float:
        """Seconds of each of several inferences, as many in flight as the peer allows.

        Inputs and outputs are copied as in `run`.
        """
        start = time.perf_counter()
        for _ in range(runs):
            self.run()
        return (time.perf_counter() - start) / runs

    def device_seconds(self, runs: int) -> float | None:  # noqa: ARG002  # of other peers
        """Seconds of each of several inferences without copies; None if it does not tell."""
        return None

    def facts(self) -> dict[str, Any]:
        """Facts about the loaded model.

        Returns
        -------
        dict
            ``where``, the device in words; ``device_bytes``, the peak of its memory or None;
            ``note``, a remark.
        """
        return {}


class Peer(abc.ABC):
    """A library that may be installed, or a way to use it.

    Attributes
    ----------
    name
        Unique; as in tables.
    package
        The distribution that ships it.
    module
        The module to import.
    precisions
        Those that it has.
    is_ours
        Whether it is this project.
    """

    name: ClassVar[str]
    package: ClassVar[str]
    module: ClassVar[str]
    precisions: ClassVar[tuple[str, ...]] = ("fp32",)
    is_ours: ClassVar[bool] = False

    @property
    def install(self) -> str:
        """The line that installs it."""
        return f"pip install {self.package}"

    def missing(self) -> str:
        """Why it cannot be used here, with what to do; empty if it can."""
        return self.install if importlib.util.find_spec(self.module) is None else ""

    def version(self) -> str:
        """Of the package."""
        try:
            return importlib.metadata.version(self.package.partition("<")[0].partition("=")[0])
        except importlib.metadata.PackageNotFoundError:
            return ""

    def unsuited(self, work: Work) -> str:
        """Why it does not do this work; empty if it does."""
        if work.precision not in self.precisions:
            return f"no {work.precision}"
        return ""

    def environment(self, means: Means) -> Mapping[str, str]:  # noqa: ARG002  # of other peers
        """Environment variables of its process."""
        return {}

    @abc.abstractmethod
    def load(self, made: Made, means: Means) -> Loaded:
        """Load the model of a work, and set its inputs.

        Raises
        ------
        Exception
            Of the library.
        """


def nchw(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Images as NCHW; other arrays as they are."""
    return [np.ascontiguousarray(a.transpose(0, 3, 1, 2)) if a.ndim == 4 else a for a in arrays]


def nhwc(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Images of NCHW as NHWC; other arrays as they are."""
    return [a.transpose(0, 2, 3, 1) if a.ndim == 4 else a for a in arrays]

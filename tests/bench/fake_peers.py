"""Peers for tests: they double their input, crash, hang, are missing, or compute something else."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

from bench.peers.peer import Loaded, Means, Peer
from bench.peers.stock import Interpreted
from bench.peers.work import INT8, Made, Work
from tests.runtimes import make_interpreter


class Good(Peer):
    """The stock runtime."""

    name, package, module = "good", "numpy", "numpy"
    precisions = ("fp32", INT8)

    def load(self, made: Made, means: Means) -> Loaded:
        model = made.model.read_bytes()
        return Interpreted(make_interpreter("auto", model, threads=means.threads), made)


class Wrong(Good):
    """The same with another result."""

    name = "wrong"

    def load(self, made: Made, means: Means) -> Loaded:
        loaded = super().load(made, means)
        outputs = loaded.outputs
        loaded.outputs = lambda: [2 * value for value in outputs()]  # type: ignore[method-assign]
        return loaded


class Crashing(Good):
    """Ends its process while it loads."""

    name = "crashing"

    def load(self, made: Made, means: Means) -> Loaded:  # noqa: ARG002
        print("these are my last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class _Twice(Loaded):
    """Works in its first turn."""

    def __init__(self, made: Made) -> None:
        self._made, self._left = made, 1

    def run(self) -> None:
        pass

    def outputs(self) -> list[np.ndarray]:
        expected, results, start = self._made.expected(), [], 0
        for output in self._made.outputs:
            size = int(np.prod(output.shape))
            results.append(expected[start : start + size])
            start += size
        return results

    def many_seconds(self, runs: int) -> float:  # noqa: ARG002
        if self._left <= 0:
            print("one moment", file=sys.stderr, flush=True)
            time.sleep(600)
        self._left -= 0.2  # five parts
        return 1e-3


class Hanging(Good):
    """Does not answer in its second turn."""

    name = "hanging"

    def load(self, made: Made, means: Means) -> Loaded:  # noqa: ARG002
        return _Twice(made)


class Refusing(Good):
    """Raises an error."""

    name = "refusing"

    def load(self, made: Made, means: Means) -> Loaded:  # noqa: ARG002
        raise RuntimeError("unsupported operator SOFTMAX")


class Missing(Good):
    """Is not installed."""

    name, package, module = "missing", "no-such-package", "no_such_package"


class Unsuited(Good):
    """Does not read the file."""

    name = "unsuited"

    def unsuited(self, work: Work) -> str:  # noqa: ARG002
        return "it does not read .tflite files"


PEERS = (Good(), Wrong(), Crashing(), Hanging(), Refusing(), Missing(), Unsuited())

"""The process of a peer: it loads one model, runs it, and times it."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import relative_error
from bench.peers import registry
from bench.peers.peer import Loaded, Means
from bench.peers.work import Made
from bench.process import serve

_MOST_RUNS = 1000  # in a turn


class Server:
    """Answers the requests; see `bench.process.serve`.

    Parameters
    ----------
    peer
        Its name.
    folder
        Of the work's files.
    """

    def __init__(self, peer: str, folder: str) -> None:
        self._peer, self._folder = registry.find(peer), Path(folder)
        self._loaded: Loaded | None = None

    def load(self, means: dict[str, Any]) -> dict[str, Any]:
        """Load the model, run it once, and compare the result with the reference."""
        made = Made.read(self._folder)
        before = _peak_bytes()
        start = time.monotonic()
        loaded = self._loaded = self._peer.load(made, Means(**means))
        loaded_at = time.monotonic()
        loaded.run()
        first_at = time.monotonic()
        found, expected = made.real(loaded.outputs()), made.expected()
        is_finite = bool(np.isfinite(found).all())
        return {
            "start": start,
            "loaded": loaded_at,
            "first": first_at,
            "before_bytes": before,
            "relative_error": relative_error(found, expected) if is_finite else None,
            "largest": float(np.abs(found - expected).max()) if is_finite else None,
            "version": self._peer.version(),
            **loaded.facts(),
        }

    def time(self, seconds: float) -> dict[str, Any]:
        """Take a turn.

        Returns
        -------
        dict
            Seconds: ``samples``, inferences one at a time; ``many``, of each of several in flight;
            ``device``, without copies, or None.
        """
        assert self._loaded is not None
        self._loaded.run()  # threads and clocks have to wake up
        samples: list[float] = []
        deadline = time.perf_counter() + seconds
        while len(samples) < _MOST_RUNS and (not samples or time.perf_counter() < deadline):
            start = time.perf_counter()
            self._loaded.run()
            samples.append(time.perf_counter() - start)
        return {"samples": samples}

    def many(self, runs: int) -> dict[str, Any]:
        """Time inferences that may overlap, and those without copies."""
        assert self._loaded is not None
        many, device = self._loaded.many_seconds(runs), self._loaded.device_seconds(runs)
        return {"many": many, "device": device}

    def memory(self) -> dict[str, Any]:
        """Peak of the process's memory, and of the device's where the peer tells."""
        assert self._loaded is not None
        return {
            "host_bytes": _peak_bytes(),
            "device_bytes": self._loaded.facts().get("device_bytes"),
        }


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(peer: str, folder: str) -> None:
    """Serve until the input ends."""
    serve(lambda: Server(peer, folder))

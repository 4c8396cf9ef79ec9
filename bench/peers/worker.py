"""The process of a peer: it loads one model, runs it, and times it."""

from __future__ import annotations

import re
import statistics
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import relative_error
from bench.peers.peer import Loaded, Means, Peer
from bench.peers.work import Made
from bench.process import serve

_MOST_RUNS = 1000  # in a turn
_PARTS = 5  # of the runs in flight; their median counts


class Server:
    """Answers the requests; see `bench.process.serve`.

    Parameters
    ----------
    peer
        The peer.
    folder
        Of the work's files.
    """

    def __init__(self, peer: Peer, folder: Path) -> None:
        self._peer, self._folder = peer, folder
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
            ``samples``, seconds of inferences one at a time.
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
        """Time inferences that may overlap.

        Returns
        -------
        dict
            Seconds of each: ``many`` with copies; ``device`` without them, or None.
        """
        assert self._loaded is not None
        part = max(1, runs // _PARTS)
        many = [self._loaded.many_seconds(part) for _ in range(_PARTS)]
        device = [self._loaded.device_seconds(part) for _ in range(_PARTS)]
        told = [seconds for seconds in device if seconds is not None]
        return {
            "many": statistics.median(many),
            "device": statistics.median(told) if told else None,
        }

    def memory(self) -> dict[str, Any]:
        """Peak of the process's memory, and of the device's where the peer tells."""
        assert self._loaded is not None
        return {
            "host_bytes": _peak_bytes(),
            "device_bytes": self._loaded.facts().get("device_bytes"),
        }


def _peak_bytes() -> int:
    # Not of getrusage, which counts the parent's memory before the program was executed.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def main(module: str, kind: str, folder: str) -> None:
    """Serve until the input ends.

    Parameters
    ----------
    module, kind
        Where the class of the peer is.
    folder
        As in `Server`.
    """
    serve(lambda: Server(getattr(import_module(module), kind)(), Path(folder)))

"""A process of ``python -m bench guard`` that loads and times items with one build of the package.

It reads requests from its standard input and writes answers, each a line of JSON. Only
`build_model` needs the present package: the rest uses nothing that older commits lack.
"""

from __future__ import annotations

import gc
import importlib.abc
import importlib.machinery
import statistics
import sys
import time
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.guard_clock import Clock, Work
from bench.measure import runs_in_batch
from bench.process import serve

if TYPE_CHECKING:
    from types import ModuleType

PACKAGE = "clgpu_delegate"
SKETCH = 16

_SHORT_S = 20e-3  # shorter inferences are timed three times in a round


class _OtherPackage(importlib.abc.MetaPathFinder):
    """Takes the package from one folder, ahead of the hooks of an editable installation."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the package and its modules; the usual finders handle other modules."""
        if name == PACKAGE:
            return PathFinder.find_spec(name, [self._folder], target)
        if name.startswith(f"{PACKAGE}."):
            return PathFinder.find_spec(name, path, target)
        return None


def file_of(folder: Path, model: str) -> Path:
    """Path of a model; its inputs are in the same folder, with the suffix ``.npz``."""
    return folder / f"{model.replace(' ', '-')}.tflite"


def sketch(values: np.ndarray) -> list[float]:
    """Return a few numbers whose distance to those of another array estimates that of the arrays.

    Each is the sum of every 16th element, with signs that depend on the place alone: the count
    sketch of Charikar, Chen and Farach-Colton, "Finding frequent items in data streams" (2002).

    Parameters
    ----------
    values
        Numbers of any shape.

    Returns
    -------
    list[float]
        `SKETCH` numbers; their Euclidean norm is about that of the array.
    """
    signs = np.random.default_rng(values.size).integers(0, 2, values.size, np.int8) * 2 - 1
    signed = np.zeros(-(-values.size // SKETCH) * SKETCH)
    np.multiply(values.ravel(), signs, out=signed[: values.size], dtype=np.float64)
    return [float(total) for total in signed.reshape(-1, SKETCH).sum(axis=0)]


_Made = tuple[bytes, list[Any]]  # a model, and its inputs


class _Held:
    """An item that is loaded and has run once."""

    def __init__(self, item: dict[str, Any], options: dict[str, Any], made: _Made) -> None:
        model, inputs = made
        self.delegate, self._interpreter = _load(item, options, model)
        for detail, value in zip(self._interpreter.get_input_details(), inputs):
            self._interpreter.set_tensor(detail["index"], value)
        self._interpreter.invoke()
        self._sketch: list[float] = []  # of all outputs
        for value in self._outputs(item["options"].get("carry", "")):
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise RuntimeError("an output has numbers that are not finite")
            self._sketch += sketch(value)
        self._node = item["node"]
        self._runs = 0

    def _outputs(self, carry: str) -> list[Any]:
        """The results; of those that stay on the device the last, which depends on all layers."""
        carried = {int(text.split("/")[2]): text.split("=")[0] for text in carry.split(",") if text}
        details = self._interpreter.get_output_details()
        values = [
            self._interpreter.get_tensor(detail["index"])
            for detail in details
            if detail["index"] not in carried
        ]
        if carried:
            last = [detail["index"] for detail in details if detail["index"] in carried][-1]
            values.append(self.delegate.read_carried(carried[last]))
        return values

    def seconds(self) -> float:
        """Time an inference, with many in flight; the first call also determines how many."""
        if not self._runs:
            self._runs = runs_in_batch(self._time(1))
        first = self._time(self._runs)
        if first > _SHORT_S:
            return first
        return statistics.median(self._time(self._runs) for _ in range(3))

    def _time(self, runs: int) -> float:
        return float(self.delegate.device_time(runs, self._node))

    def facts(self) -> dict[str, Any]:
        """Return the facts that are compared besides the time, and what became of chains."""
        plan = self.delegate.explain()
        stats = self.delegate.stats()
        return {
            "launches": sum(partition.launches for partition in plan.partitions),
            "claimed": plan.claimed,
            "nodes": plan.total,
            "left": sorted({f"{n.op}: {n.reason}" for n in plan.nodes if not n.claimed}),
            "notes": list(plan.notes),
            "device_bytes": stats["device_bytes"],
            "chains": stats.get("chains", []),
            "sketch": self._sketch,
        }


class Server:
    """Answers the requests; each request is a method of the same name.

    Parameters
    ----------
    device, cache, folder
        As in `clgpu_delegate.load`, and the folder of the models.
    """

    def __init__(self, device: str, cache: str, folder: str) -> None:
        self._folder = Path(folder)
        self._options: dict[str, Any] = {"device": device, "cache": cache, "tuning": "off"}
        self._held: dict[str, _Held] = {}
        self._made: dict[str, _Made] = {}  # items share them
        self._clock: Clock | None = None

    def where(self) -> dict[str, Any]:
        """Return the package and the device that are used."""
        import clgpu_delegate  # noqa: PLC0415  # main() has set the folder
        from clgpu_delegate import _core  # noqa: PLC0415

        device = clgpu_delegate.load(**self._options).device
        names = ("name", "platform", "driver_version", "type", "global_bytes")
        facts = {name: getattr(device, name) for name in names}
        return {"package": str(Path(_core.__file__).parent), "device": facts}

    def build(self, model: str) -> dict[str, Any]:
        """Make a model and write it to its file."""
        from bench import guard_items  # noqa: PLC0415  # of the present package

        guard_items.save_model(model, self._folder)
        return {}

    def clock(
        self, library: str, platform: str, device: str, position: int, work: list[int] | None
    ) -> dict[str, Any]:
        """Prepare the calibration kernel."""
        wanted = Work(*work) if work else None
        self._clock = Clock(library, platform, device, position, wanted)
        self._clock.seconds(8)  # raises the clock rates
        return {
            "work": [self._clock.work.items, self._clock.work.steps],
            "seconds": statistics.median(self._clock.seconds() for _ in range(5)),
            "launch_seconds": self._clock.launch_seconds(),
        }

    def prepare(self, item: dict[str, Any]) -> dict[str, Any]:
        """Load an item and release it, so that its programs are in the cache."""
        _load(item, self._options, file_of(self._folder, item["model"]).read_bytes())
        gc.collect()
        return {}

    def hold(self, item: dict[str, Any]) -> dict[str, Any]:
        """Load an item and keep it loaded."""
        start = time.perf_counter()
        model = item["model"]
        if model not in self._made:
            path = file_of(self._folder, model)
            with np.load(path.with_suffix(".npz")) as arrays:
                inputs = [arrays[name] for name in arrays.files]
            self._made[model] = path.read_bytes(), inputs
        self._held[item["name"]] = held = _Held(item, self._options, self._made[model])
        return {**held.facts(), "load_s": time.perf_counter() - start}

    def plan(self, name: str) -> dict[str, Any]:
        """Return the plan of a loaded item; works with the present package only."""
        return {"plan": self._held[name].delegate._native.explain()}

    def drop(self, name: str) -> dict[str, Any]:
        """Release an item."""
        self._held.pop(name, None)
        gc.collect()
        return {}

    def time(self, name: str) -> dict[str, Any]:
        """Time a loaded item, between two calibrations if there is a clock."""
        before = self._clock.seconds() if self._clock else 0.0
        seconds = self._held[name].seconds()
        after = self._clock.seconds() if self._clock else 0.0
        return {"seconds": seconds, "calibration": (before + after) / 2}


def _load(item: dict[str, Any], options: dict[str, Any], model: bytes) -> tuple[Any, Any]:
    import clgpu_delegate  # noqa: PLC0415
    from tests.runtimes import make_interpreter  # noqa: PLC0415

    delegate = clgpu_delegate.load(**options, **item["options"])
    interpreter = make_interpreter("auto", model, [delegate])
    interpreter.allocate_tensors()
    return delegate, interpreter


def main(package: str, device: str, cache: str, folder: str) -> None:
    """Serve until the input ends.

    Parameters
    ----------
    package
        The folder to take `clgpu_delegate` from; empty: the one that is installed.
    device, cache, folder
        See `Server`.
    """
    if package:
        sys.meta_path.insert(0, _OtherPackage(package))
    serve(lambda: Server(device, cache, folder))

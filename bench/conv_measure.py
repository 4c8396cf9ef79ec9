"""Times of convolution layers, by every engine that the device offers."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import clgpu_delegate
from bench.conv_layers import CONV_NODE, Case, Layer
from bench.measure import device_median_s
from tests.runtimes import make_interpreter

PRECISIONS = ("fp32", "tf32", "fp16")

# An engine is skipped that would take so many seconds, and so many times what the best one takes.
_SLOW_S, _SLOW_RATIO = 0.3, 8.0


@dataclasses.dataclass(frozen=True)
class Row:
    """One layer by one engine.

    Attributes
    ----------
    precision, layer, engine
        What was measured; the engine is a candidate of conv2d, or a peer in parentheses.
    default
        Whether the delegate chooses this engine by itself, untuned.
    ms
        Device time, many in flight: median; None where it was not measured.
    error
        Largest deviation relative to the root mean square of the right result, or None.
    note
        Why it was not measured.
    """

    precision: str
    layer: Layer
    engine: str
    default: bool = False
    ms: float | None = None
    error: float | None = None
    note: str = ""

    @property
    def is_peer(self) -> bool:
        """Whether this is another library's time."""
        return self.engine.startswith("(")


def roots_of(names: Iterable[str]) -> dict[str, str]:
    """The engine that each candidate is a variant of.

    That is its name up to the first part with a digit; or less, where this is the name or the
    engine of another.

    >>> roots = roots_of(["direct", "direct_wide", "implicit_gemm_128x64", "implicit_gemm_split"])
    >>> list(roots.values())
    ['direct', 'direct', 'implicit_gemm', 'implicit_gemm']
    """
    names = list(dict.fromkeys(names))
    fronts = sorted({re.split(r"_(?=[a-z]*\d)", name)[0] for name in names}, key=len)
    return {name: next(front for front in fronts if wanted(name, [front])) for name in names}


def wanted(engine: str, engines: Sequence[str]) -> bool:
    """Whether a candidate is asked for by its name, or by the front of it."""
    return not engines or any(engine == e or engine.startswith(f"{e}_") for e in engines)


class _Session:
    """A layer's model on the device by one engine."""

    def __init__(self, case: Case, model: bytes, runtime: str, **options: Any) -> None:
        self._case = case
        self.delegate = clgpu_delegate.load(**options)
        self._interpreter = make_interpreter(runtime, model, [self.delegate])
        self._interpreter.allocate_tensors()
        plan = self.delegate.explain()
        if plan.claimed != plan.total:
            raise RuntimeError(next(node.reason for node in plan.nodes if not node.claimed))
        self.node = plan.nodes[CONV_NODE]

    def error(self) -> float:
        """Run once, and compare."""
        interpreter = self._interpreter
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], self._case.tile)
        interpreter.invoke()
        (output,) = interpreter.get_output_details()
        return self._case.error(interpreter.get_tensor(output["index"]))


class Bench:
    """Measures layers; it learns which engines are hopeless on the way.

    Parameters
    ----------
    runtime, device
        As elsewhere.
    engines
        Candidates to measure, or fronts of their names; ``"default"`` stands for the chosen one;
        all if empty.
    rounds, budget_s
        Timings of a layer by an engine, and the seconds that they may take.
    """

    def __init__(
        self,
        *,
        runtime: str = "auto",
        device: str = "",
        engines: Sequence[str] = (),
        rounds: int = 7,
        budget_s: float = 0.15,
    ) -> None:
        self._runtime = runtime
        self._options = {"device": device, "warm_up": False, "tuning": "off"}
        self._engines = engines
        self._rounds = rounds
        self._budget_s = budget_s
        # Operations per second by engine and precision, the best so far.
        self._rates: dict[tuple[str, str], float] = {}
        self.seen: set[str] = set()
        """Candidates that any layer offered or refused."""

    def measure(self, layer: Layer, precision: str) -> Iterator[Row]:
        """Yield a row for each candidate of a layer, the default one first."""
        case = Case.of(layer)
        model = case.model()
        options = {"precision": precision, **self._options}
        session: _Session | None
        try:
            session = _Session(case, model, self._runtime, **options)
        except clgpu_delegate.ClgpuError:
            raise  # no such option
        except (RuntimeError, ValueError) as failure:
            yield Row(precision, layer, "default", note=_sentence(failure))
            return
        node = session.node
        self.seen |= {*node.candidates, *node.refused}
        for engine, why in node.refused.items():
            if wanted(engine, self._engines):
                yield Row(precision, layer, engine, note=why)
        best = math.inf
        for engine in dict.fromkeys([node.candidate, *node.candidates]):
            default = engine == node.candidate
            if not (wanted(engine, self._engines) or (default and "default" in self._engines)):
                continue
            rate = self._rates.get((engine, precision), math.inf)
            expected = layer.flops / rate
            if expected > _SLOW_S and expected > _SLOW_RATIO * best:
                note = f"skipped: slow, and {_SLOW_RATIO:.0f} times slower than another"
                yield Row(precision, layer, engine, default, note=note)
                continue
            try:
                if session is None or not default:
                    session = None  # its device memory first
                    forced = {"conv2d": engine}
                    session = _Session(case, model, self._runtime, engines=forced, **options)
                error = session.error()
                seconds = device_median_s(
                    session.delegate, CONV_NODE, rounds=self._rounds, budget_s=self._budget_s
                )
            except (RuntimeError, ValueError) as failure:
                session = None
                yield Row(precision, layer, engine, default, note=_sentence(failure))
                continue
            best = min(best, seconds)
            if rate == math.inf or layer.flops / seconds > rate:
                self._rates[engine, precision] = layer.flops / seconds
            yield Row(precision, layer, engine, default, seconds * 1e3, error)


def _sentence(failure: Exception) -> str:
    """What a runtime says of a failure, without the lines it adds."""
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return lines[0].removeprefix("clgpu_delegate: ") if lines else type(failure).__name__

"""Times of convolution layers with every engine that the device offers."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import clgpu_delegate
from bench.conv_layers import CONV_NODE, Case, Layer
from bench.measure import device_median_s, sentence_of
from bench.session import Session
from bench.setting import Setting

# An engine is skipped if its expected time exceeds the first number (seconds) and the best engine's
# time by more than the factor.
_SLOW_S, _SLOW_RATIO = 0.3, 8.0


@dataclasses.dataclass(frozen=True)
class Row:
    """The time of one layer with one engine.

    Attributes
    ----------
    precision, layer, engine
        What was measured; the engine is a candidate of conv2d, or a peer in parentheses.
    default
        Whether the delegate chooses this engine by itself, untuned.
    ms
        Device time, many in flight: median; None where it was not measured.
    error
        Largest deviation relative to the root mean square of the correct result, or None.
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
    def rate(self) -> float | None:
        """Operations per second."""
        return None if self.ms is None else self.layer.flops / self.ms * 1e3

    @property
    def is_peer(self) -> bool:
        """Whether this is the time of another library."""
        return self.engine.startswith("(")


def roots_of(names: Iterable[str]) -> dict[str, str]:
    """The engine that each candidate is a variant of.

    That is its name up to the first part with a digit, or a shorter prefix if that is the name or
    the engine of another candidate.

    >>> roots = roots_of(["direct", "direct_wide", "implicit_gemm_128x64", "implicit_gemm_split"])
    >>> list(roots.values())
    ['direct', 'direct', 'implicit_gemm', 'implicit_gemm']
    """
    names = list(dict.fromkeys(names))
    fronts = sorted({re.split(r"_(?=[a-z]*\d)", name)[0] for name in names}, key=len)
    return {name: next(front for front in fronts if wanted(name, [front])) for name in names}


def wanted(engine: str, engines: Sequence[str]) -> bool:
    """Whether a candidate is requested by its name or a prefix of it."""
    return not engines or any(engine == e or engine.startswith(f"{e}_") for e in engines)


class Bench:
    """Measures layers, and skips engines that were too slow on earlier layers.

    Parameters
    ----------
    setting
        Its rounds and seconds apply to each layer with each engine.
    engines
        Candidates to measure, or prefixes of their names; ``"default"`` stands for the delegate's
        choice; empty: all.
    """

    def __init__(self, setting: Setting, engines: Sequence[str] = ()) -> None:
        self._setting = setting
        self._engines = engines
        # Operations per second by engine and precision, the best so far.
        self._rates: dict[tuple[str, str], float] = {}
        self.seen: set[str] = set()
        """Candidates that any layer offered or refused."""

    def measure(self, layer: Layer, precision: str) -> Iterator[Row]:
        """Yield a row for each candidate of a layer, the default one first."""
        case = Case.of(layer)
        model = case.model()
        session: Session | None
        try:
            session, node = self._load(model, case, precision)
        except clgpu_delegate.ClgpuError:
            raise  # an option does not exist
        except (RuntimeError, ValueError) as failure:
            yield Row(precision, layer, "default", note=sentence_of(failure))
            return
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
                    session = None  # frees its device memory first
                    session, _ = self._load(model, case, precision, engines={"conv2d": engine})
                session()
                error = case.error(session.output())
                seconds = device_median_s(session.delegate, CONV_NODE, **self._setting.timing())
            except (RuntimeError, ValueError) as failure:
                session = None
                yield Row(precision, layer, engine, default, note=sentence_of(failure))
                continue
            best = min(best, seconds)
            if rate == math.inf or layer.flops / seconds > rate:
                self._rates[engine, precision] = layer.flops / seconds
            yield Row(precision, layer, engine, default, seconds * 1e3, error)

    def _load(
        self, model: bytes, case: Case, precision: str, **options: Any
    ) -> tuple[Session, clgpu_delegate.Node]:
        """A layer's model on the device, and the report on its convolution."""
        delegate = clgpu_delegate.load(
            device=self._setting.device, warm_up=False, tuning="off", precision=precision, **options
        )
        session = Session(model, delegate, runtime=self._setting.runtime).feed([case.tile])
        plan = delegate.explain()
        if plan.claimed != plan.total:
            raise RuntimeError(next(node.reason for node in plan.nodes if not node.claimed))
        return session, plan.nodes[CONV_NODE]

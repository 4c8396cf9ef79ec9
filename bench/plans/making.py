"""Makes the plans of networks: the delegate loads a model and reports its plan."""

from __future__ import annotations

import re
from typing import Any, Union

import clgpu_delegate
from bench.plans.models import Models, Way
from clgpu_delegate import Explanation
from tests.runtimes import make_interpreter

Made = Union[Explanation, str]  # a sentence if there is no plan


class Planner:
    """Makes the plans of one network for one device.

    Parameters
    ----------
    models
        Of the network.
    device
        Index, or a part of its name.
    **options
        Of the delegate, for all ways.
    """

    def __init__(self, models: Models, device: str, **options: Any) -> None:
        self._models = models
        self._options = {
            "device": device, "tuning": "off", "chain": "off", "isolate_builds": "off", **options,
        }  # fmt: skip
        self._peaks: dict[str, int] = {}  # by precision, without a budget

    def plan(self, way: Way) -> Made:
        """The delegate's plan for the model of a way; call it in the order of `ways`."""
        options = dict(way.options)
        precision = options.get("precision", "fp32")
        if way.share is not None:
            if precision not in self._peaks:
                return "there is no plan without a budget, of which this one is a share"
            options["memory_budget"] = round(way.share * self._peaks[precision])
        made = self._load(way, options)
        if isinstance(made, Explanation) and options == {"precision": precision}:
            self._peaks[precision] = made.peak_bytes
        return made

    def _load(self, way: Way, options: dict[str, Any]) -> Made:
        delegate = clgpu_delegate.load(**self._options, **options)
        model = self._models.model(way)
        try:
            # XNNPACK would pack the weights of nodes that stay on the CPU.
            interpreter = make_interpreter("auto", model, [delegate], resolver="no_delegate")
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError, MemoryError) as error:
            return _sentence(error)
        return delegate.explain()


def _sentence(error: Exception) -> str:
    """The delegate's error message, without the runtime's additions, even in the same line."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    sentence = lines[0].removeprefix("clgpu_delegate: ")
    budget = re.match(r".*smallest feasible budget is .*?\(\d+ bytes\)", sentence)
    return budget[0] if budget else sentence

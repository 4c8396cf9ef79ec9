"""Our delegate: through an interpreter, through CompiledModel, and as a `Runner`."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from bench.peers.peer import Loaded, Means, Peer
from bench.peers.stock import Interpreted
from bench.peers.work import INT8, Made
from tests.runtimes import make_interpreter, resolve_runtime


def _options(made: Made, means: Means) -> dict[str, Any]:
    precision = made.work.precision
    return {"device": means.device, "precision": "fp32" if precision == INT8 else precision}


class _Delegated(Interpreted):
    """An interpreter with our delegate."""

    def __init__(self, interpreter: Any, made: Made, delegate: Any) -> None:
        super().__init__(interpreter, made)
        self._delegate = delegate

    def device_seconds(self, runs: int) -> float | None:
        is_whole = self._delegate.explain().claimed == self._delegate.explain().total
        return float(self._delegate.device_time(runs)) if is_whole else None

    def facts(self) -> dict[str, Any]:
        return _facts(self._delegate.explain())


def _facts(plan: Any) -> dict[str, Any]:
    left = plan.total - plan.claimed
    return {
        "where": plan.device,
        "device_bytes": plan.peak_bytes,
        "note": f"{left} of {plan.total} nodes on the CPU" if left else "",
    }


class _Ours(Peer):
    package, module = "clgpu_delegate", "clgpu_delegate"
    precisions = ("fp32", "tf32", "fp16", INT8)
    is_ours = True


class Ours(_Ours):
    """The delegate in an interpreter."""

    name = "clgpu_delegate (Interpreter)"

    def load(self, made: Made, means: Means) -> Loaded:
        import clgpu_delegate  # noqa: PLC0415  # see `work`

        delegate = clgpu_delegate.load(**_options(made, means))
        model = made.model.read_bytes()
        interpreter = make_interpreter("auto", model, [delegate], threads=means.threads)
        return _Delegated(interpreter, made, delegate)


class OursCompiled(_Ours):
    """LiteRT's CompiledModel on our accelerator."""

    name = "clgpu_delegate (CompiledModel)"
    module = "ai_edge_litert"

    @property
    def install(self) -> str:
        return "pip install 'clgpu_delegate[litert]'"

    def load(self, made: Made, means: Means) -> Loaded:
        from clgpu_delegate.litert import compiled  # noqa: PLC0415  # see `work`
        from clgpu_delegate.runtimes import find_runtime  # noqa: PLC0415

        model, delegate = compiled.open_delegated(
            "compiled", find_runtime(self.module), made.model.read_bytes(), means.threads,
            _options(made, means),
        )  # fmt: skip
        return _Delegated(model, made, delegate)


class _Running(Loaded):
    def __init__(self, runner: Any, made: Made) -> None:
        self._runner = runner
        self._inputs = made.inputs()
        self._outputs: list[np.ndarray] = []

    def run(self) -> None:
        found = self._runner.run(self._inputs)
        self._outputs = [found] if isinstance(found, np.ndarray) else list(found)

    def outputs(self) -> list[np.ndarray]:
        return self._outputs

    def many_seconds(self, runs: int) -> float:
        start = time.perf_counter()
        deque(self._runner.run_many(self._inputs for _ in range(runs)), maxlen=0)
        return (time.perf_counter() - start) / runs

    def facts(self) -> dict[str, Any]:
        return _facts(self._runner.explain())


class OursRunner(_Ours):
    """`clgpu_delegate.Runner`, with several inferences in flight."""

    name = "clgpu_delegate (Runner)"

    def load(self, made: Made, means: Means) -> Loaded:
        import clgpu_delegate  # noqa: PLC0415  # see `work`

        options = {"runtime": resolve_runtime(), "threads": means.threads}
        runner = clgpu_delegate.Runner(made.model, **options, **_options(made, means))
        return _Running(runner, made)

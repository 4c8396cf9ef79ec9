"""Runs the first inference with an interpreter, whose delegate verifies it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Callable

from clgpu_delegate.runner.engines import Engine, Form, Interpreters, Out, Pending
from clgpu_delegate.runner.tensors import Array, TensorSpec


class _Ready:
    def __init__(self, results: list[Array]) -> None:
        self._results = results

    def result(self) -> list[Array]:
        return self._results


class Verified:
    """An engine that becomes another one after an inference."""

    def __init__(self, first: Interpreters, following: Callable[[], Engine]) -> None:
        self._now: Engine = first
        self._following: Callable[[], Engine] | None = following
        self._lock = threading.Lock()

    @property
    def mode(self) -> str:
        return self._now.mode

    @property
    def reason(self) -> str:
        return self._now.reason

    @property
    def depth(self) -> int:
        return self._now.depth

    @property
    def ahead(self) -> int:
        return self._now.ahead

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self._now.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self._now.outputs

    def empty(self, tensor: TensorSpec) -> Array:
        return self._now.empty(tensor)

    def run(self, inputs: Sequence[Array], outs: Sequence[Out]) -> list[Array]:
        first = self._first(inputs, outs)
        return self._now.run(inputs, outs) if first is None else first

    def start(self, inputs: Sequence[Array], outs: Sequence[Out]) -> Pending:
        first = self._first(inputs, outs)
        return self._now.start(inputs, outs) if first is None else _Ready(first)

    def start_future(self, inputs: Sequence[Array], outs: Sequence[Out], form: Form) -> Future[Any]:
        first = self._first(inputs, outs)
        if first is None:
            return self._now.start_future(inputs, outs, form)
        future: Future[Any] = Future()
        future.set_result(form(first))
        return future

    def close(self) -> None:
        with self._lock:
            self._now.close()

    def _first(self, inputs: Sequence[Array], outs: Sequence[Out]) -> list[Array] | None:
        if self._following is None:
            return None
        with self._lock:
            if self._following is None:
                return None
            results = self._now.run(inputs, outs)
            # Should it fail, the first engine is still there, and the next inference tries again.
            following = self._following()
            first, self._now, self._following = self._now, following, None
            first.close()
            return results

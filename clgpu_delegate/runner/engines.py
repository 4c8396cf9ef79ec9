"""Ways to run a model: native lanes in flight, or interpreters, one or some at a time."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Optional, Protocol

import numpy as np

from clgpu_delegate import _core
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.runner.tensors import Array, TensorSpec

_SMALL = 1 << 16  # bytes that are copied, not lent
Out = Optional[Array]
Form = Callable[["list[Array]"], Any]
_Pool = queue.SimpleQueue["Optional[_core.Lent]"]
_CLOSED = "the runner was closed or resized before this inference could begin"


class Pending(Protocol):
    """An inference under way."""

    def result(self) -> list[Array]:
        """Wait for its outputs."""


class Engine(Protocol):
    """Runs a model; thread-safe. Arrays are checked."""

    @property
    def mode(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def depth(self) -> int: ...
    @property
    def ahead(self) -> int: ...  # inferences that are worth starting before the first result
    @property
    def inputs(self) -> tuple[TensorSpec, ...]: ...
    @property
    def outputs(self) -> tuple[TensorSpec, ...]: ...

    def empty(self, tensor: TensorSpec) -> Array:
        """An array in the memory that needs the fewest copies."""

    def run(self, inputs: Sequence[Array], outs: Sequence[Out]) -> list[Array]:
        """One inference."""

    def start(self, inputs: Sequence[Array], outs: Sequence[Out]) -> Pending:
        """Begin one: the inputs may change afterwards, unless they are from `empty`."""

    def start_future(self, inputs: Sequence[Array], outs: Sequence[Out], form: Form) -> Future[Any]:
        """As `start`, with a thread that waits and forms the result."""

    def close(self) -> None:
        """Wait for inferences in flight; release the device. May be called again."""


class _Flight:
    def __init__(self, engine: Streaming, flight: Any, outs: Sequence[Out]) -> None:
        self._engine, self._flight, self._outs = engine, flight, outs

    def result(self) -> list[Array]:
        self._flight.wait()
        results = []
        for position, tensor, out in zip(self._engine.positions, self._engine.outputs, self._outs):
            block = None
            if out is None and tensor.nbytes >= _SMALL:
                block = self._flight.block(position)
            if block is not None:
                result = _array(block, tensor)
            else:
                result = np.empty(tensor.shape, tensor.dtype) if out is None else out
                self._flight.read(position, result)
            results.append(result)
        return results


class Streaming:
    """Inferences in flight on one executor, without the runtime.

    Large results are arrays over memory that the device has written to, which is reused after the
    array is deleted. If the caller keeps many of them, later results are copies.
    """

    reason = ""

    def __init__(
        self,
        native: Any,
        inputs: tuple[TensorSpec, ...],
        outputs: tuple[TensorSpec, ...],
        depth: int,
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.mode = "direct" if native.is_direct else "stream"
        self.depth = 1 if native.is_direct else native.lanes
        self.ahead = 1 if native.is_direct else native.lanes + 1
        by_index = {t.index: i for i, t in enumerate(inputs)}
        self._order = [by_index[index] for index in native.inputs]
        self.positions = [native.outputs.index(t.index) for t in outputs]
        self._native: Any = native  # None: closed
        self._waiter = ThreadPoolExecutor(1, thread_name_prefix="clgpu-runner")
        self._slots = _pool([None] * depth)  # of work handed to the waiter, if direct

    def empty(self, tensor: TensorSpec) -> Array:
        return _array(self._use().block(tensor.nbytes), tensor)

    def run(self, inputs: Sequence[Array], outs: Sequence[Out]) -> list[Array]:
        return self._launch(inputs, outs, now=True).result()

    def start(self, inputs: Sequence[Array], outs: Sequence[Out]) -> Pending:
        return self._launch(inputs, outs)

    def start_future(self, inputs: Sequence[Array], outs: Sequence[Out], form: Form) -> Future[Any]:
        if self.mode == "stream":
            flight = self._launch(inputs, outs)
            return _hand_over(self._waiter, lambda: form(flight.result()))
        kept = [self._keep(t, x) for t, x in zip(self.inputs, inputs)]
        return _submit(self._waiter, self._slots, lambda: form(self.run(kept, outs)))

    def close(self) -> None:
        self._waiter.shutdown(wait=True)
        # Running inferences and lent memory keep what they need; the rest is freed on the device.
        self._native = None

    def _use(self) -> Any:
        native = self._native
        if native is None:
            raise ClgpuError(_CLOSED)
        return native

    def _launch(
        self, inputs: Sequence[Array], outs: Sequence[Out], *, now: bool = False
    ) -> _Flight:
        native = self._use()
        sources = [self._plain(self.inputs[i], inputs[i]) for i in self._order]
        targets: list[Out] = [None] * len(native.outputs)
        for position, out in zip(self.positions, outs):
            targets[position] = out
        return _Flight(self, native.start(sources, targets, now), outs)

    def _plain(self, tensor: TensorSpec, x: Array) -> Array:
        return x if x.flags.c_contiguous else self._keep(tensor, x)

    def _keep(self, tensor: TensorSpec, x: Array) -> Array:
        if x.flags.c_contiguous and self._use().has(x):  # its transposed view has the same address
            return x
        kept = self.empty(tensor)
        np.copyto(kept, x)
        return kept


class Interpreters:
    """Interpreters that share a delegate; each inference takes one that is free."""

    def __init__(
        self,
        interpreters: Sequence[Any],
        inputs: tuple[TensorSpec, ...],
        outputs: tuple[TensorSpec, ...],
        reason: str,
    ) -> None:
        self.inputs, self.outputs, self.reason = inputs, outputs, reason
        self.depth = len(interpreters)
        self.ahead = self.depth + 1
        self.mode = "interpreters" if self.depth > 1 else "invoke"
        self._free = _pool(interpreters)  # None: closed
        self._pool = ThreadPoolExecutor(self.depth, thread_name_prefix="clgpu-runner")

    def empty(self, tensor: TensorSpec) -> Array:
        return np.empty(tensor.shape, tensor.dtype)

    def run(self, inputs: Sequence[Array], outs: Sequence[Out]) -> list[Array]:
        lent = self._take()
        try:
            self._set(lent.thing, inputs)
            return self._invoke(lent.thing, outs)
        finally:
            lent.give_back()

    def start(self, inputs: Sequence[Array], outs: Sequence[Out]) -> Pending:
        return self.start_future(inputs, outs, list)

    def start_future(self, inputs: Sequence[Array], outs: Sequence[Out], form: Form) -> Future[Any]:
        lent = self._take()

        def work() -> Any:
            mine = lent.move()
            if mine is None:  # no caller has the future
                raise ClgpuError("the call was interrupted before this inference could begin")
            try:
                return form(self._invoke(mine.thing, outs))
            finally:
                mine.give_back()

        try:
            self._set(lent.thing, inputs)
            return _hand_over(self._pool, work)
        except BaseException:
            lent.give_back()  # unless `work` runs all the same
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        # No interpreter is used from now on, not even by late callers: the runtime may resize them.
        for _ in range(self.depth):
            lent = self._free.get()
            if lent is None:  # closed before
                break
            lent.keep()
        self._free.put(None)

    def _take(self) -> _core.Lent:
        lent = self._free.get()
        if lent is None:
            self._free.put(None)  # for the next one
            raise ClgpuError(_CLOSED)
        return lent

    def _set(self, interpreter: Any, inputs: Sequence[Array]) -> None:
        for tensor, x in zip(self.inputs, inputs):
            interpreter.set_tensor(tensor.index, x)

    def _invoke(self, interpreter: Any, outs: Sequence[Out]) -> list[Array]:
        try:
            interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise ClgpuError(f"inference failed: {one_line(error)}") from None
        results = []
        for tensor, out in zip(self.outputs, outs):
            if out is None:
                results.append(interpreter.get_tensor(tensor.index))
            else:
                np.copyto(out, interpreter.tensor(tensor.index)())
                results.append(out)
        return results


def _array(block: Any, tensor: TensorSpec) -> Array:
    if tensor.nbytes == 0:
        return np.empty(tensor.shape, tensor.dtype)
    return np.frombuffer(block, tensor.dtype).reshape(tensor.shape)


def _hand_over(pool: ThreadPoolExecutor, work: Callable[[], Any]) -> Future[Any]:
    try:
        return pool.submit(work)
    except RuntimeError:  # it was shut down
        raise ClgpuError(_CLOSED) from None


def _submit(pool: ThreadPoolExecutor, slots: _Pool, work: Callable[[], Any]) -> Future[Any]:
    lent = slots.get()
    assert lent is not None  # this pool is never closed

    def then_leave() -> Any:
        mine = lent.move()
        try:
            return work()
        finally:
            if mine is not None:
                mine.give_back()

    try:
        return _hand_over(pool, then_leave)
    except BaseException:
        lent.give_back()
        raise


def _pool(things: Sequence[Any]) -> _Pool:
    pool: _Pool = queue.SimpleQueue()
    for thing in things:
        pool.put(_core.lend(pool, thing))
    return pool


def open_stream(
    delegate: Any,
    depth: int,
    verified: bool,
    report: int,
    inputs: tuple[TensorSpec, ...],
    outputs: tuple[TensorSpec, ...],
) -> Streaming | str:
    """A stream of the model that the delegate has given this number, or why there is none."""
    try:
        native = _core.make_stream(delegate, depth, verified, report)
    except ClgpuError as error:
        return str(error)
    if not {t.index for t in outputs} <= set(native.outputs):
        return "the CPU computes an output"
    if not set(native.inputs) <= {t.index for t in inputs}:
        return "the CPU computes what the device takes"
    return Streaming(native, inputs, outputs, depth)

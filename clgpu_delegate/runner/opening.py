"""From a model to the fastest engine that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clgpu_delegate import _core
from clgpu_delegate.base.files import Source, read_content
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import ClgpuError, ModelError
from clgpu_delegate.runner.engines import Engine, Interpreters, open_stream
from clgpu_delegate.runner.tensors import TensorSpec, tensor
from clgpu_delegate.runner.verified import Verified
from clgpu_delegate.runtimes import find_runtime


class Model:
    """A model in an interpreter with the delegate; its tensors are allocated.

    Raises FileError, ModelError and RuntimeNotFoundError.
    """

    def __init__(
        self, model: Source, runtime: str | None, threads: int | None, delegate: Delegate
    ) -> None:
        self._content = read_content(model)
        self._runtime = find_runtime(runtime)
        self._threads, self._delegate = threads, delegate
        self._interpreter = self._make()
        self._report = _core.last_report()  # others may get the delegate, too

    def open(self, depth: int) -> Engine:
        """The engine for the current shapes, with at most so many inferences in flight."""
        if self._delegate.options.verify != "first" or not any(self._kernels()):
            return self._open(depth, verified=False)
        inputs, outputs = self._tensors()
        reason = "the option 'verify' compares the first inference"
        first = Interpreters([self._interpreter], inputs, outputs, reason)
        return Verified(first, lambda: self._open(depth, verified=True))

    def _open(self, depth: int, *, verified: bool) -> Engine:
        inputs, outputs = self._tensors()
        native = self._delegate._native
        found = open_stream(native, depth, verified, self._report, inputs, outputs)
        if not isinstance(found, str):
            return found
        interpreters, reason = self._interpreters(depth, [t.shape for t in inputs], found)
        return Interpreters(interpreters, inputs, outputs, reason)

    def _tensors(self) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
        inputs = tuple(map(tensor, self._interpreter.get_input_details()))
        return inputs, tuple(map(tensor, self._interpreter.get_output_details()))

    def resize(self, shapes: Sequence[Sequence[int]]) -> None:
        """Give the inputs these shapes, or raise the runtime's error. No engine may be open."""
        before = [tuple(d["shape"]) for d in self._interpreter.get_input_details()]
        try:
            _resize(self._interpreter, shapes)
        except (RuntimeError, ValueError):
            # Runtimes may have undone the delegation.
            self._interpreter = self._make()
            self._report = _core.last_report()
            _resize(self._interpreter, before)
            raise

    def _interpreters(
        self, depth: int, shapes: list[tuple[int, ...]], reason: str
    ) -> tuple[list[Any], str]:
        """The interpreters that may run at once, and why there are no more, or no stream."""
        options = self._delegate.options
        plan = self._kernels()
        made = [self._interpreter]
        if not any(plan) or self._delegate.explain().has_state:
            return made, reason  # another interpreter has states of its own
        if options.memory_budget:
            return made, f"{reason}; further interpreters would not stay within the memory budget"
        if options.profile or options.verify != "off":
            return made, reason
        while len(made) < depth:
            try:
                another = self._make()
                _resize(another, shapes)
            except (RuntimeError, ValueError) as error:
                return made, f"{reason}; no further interpreter: {one_line(error)}"
            if self._kernels() != plan:
                return made, f"{reason}; the device has no memory for a further interpreter"
            made.append(another)
        return made, reason

    def _kernels(self) -> list[str]:
        """The kernel of each node; empty for the CPU."""
        return [node.candidate if node.claimed else "" for node in self._delegate.explain().nodes]

    def _make(self) -> Any:
        try:
            interpreter = self._runtime.module.Interpreter(
                model_content=self._content,
                num_threads=self._threads,
                experimental_delegates=[self._delegate],
            )
            interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            if isinstance(error, ClgpuError):
                raise
            why = one_line(error)
            raise ModelError(f"{self._runtime} cannot load the model: {why}") from None
        return interpreter


def _resize(interpreter: Any, shapes: Sequence[Sequence[int]]) -> None:
    changed = False
    for detail, shape in zip(interpreter.get_input_details(), shapes):
        if tuple(detail["shape"]) != tuple(shape):
            interpreter.resize_tensor_input(detail["index"], list(shape))
            changed = True
    if changed:
        interpreter.allocate_tensors()

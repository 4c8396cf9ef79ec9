"""What runs the signatures of a generator's model: an interpreter, or a compiled model."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import ClgpuError
from clgpu_delegate.generation.signatures import Step
from clgpu_delegate.litert.compiled import RUNTIME, layout
from clgpu_delegate.litert.delegates import litert_delegates
from clgpu_delegate.litert.environment import litert_environment
from clgpu_delegate.options import Options
from clgpu_delegate.runtimes import Runtime
from clgpu_delegate.tflite.inference import as_our_error, make_interpreter

Array = np.ndarray[Any, Any]

_COMPILING = threading.Lock()  # by which a compiled model finds its own delegate


class Engine(Protocol):
    """Runs steps."""

    delegate: Delegate

    def set(self, step: Step, name: str, value: Array) -> None:
        """Copy an array into an input."""

    def run(self, step: Step) -> None:
        """Run once."""

    def get(self, step: Step, name: str) -> Array:
        """A copy of an output."""


class InterpreterEngine:
    """An interpreter with a delegate."""

    def __init__(
        self, runtime: Runtime, source: bytes | Path, threads: int, options: Options,
        steps: list[Step],
    ) -> None:  # fmt: skip
        self.delegate = Delegate(options)
        self._runtime = runtime
        self._interpreter = make_interpreter(runtime, source, threads, self.delegate)
        # Signature runners would copy all inputs and outputs, the caches included.
        self._graphs = self._interpreter._interpreter
        for step in steps:
            with as_our_error(f"{runtime} cannot prepare the signature {step.key!r}"):
                self._graphs.AllocateTensors(step.graph)

    def set(self, step: Step, name: str, value: Array) -> None:
        self._graphs.SetTensor(step.inputs[name].index, value, step.graph)

    def run(self, step: Step) -> None:
        with as_our_error(f"{self._runtime} cannot run the signature {step.key!r}"):
            self._graphs.Invoke(step.graph)

    def get(self, step: Step, name: str) -> Array:
        value: Array = self._graphs.GetTensor(step.outputs[name].index, step.graph)
        return value


class CompiledEngine:
    """A compiled model of LiteRT's."""

    def __init__(
        self, source: bytes | Path, threads: int, options: Options, steps: list[Step]
    ) -> None:
        parts = ("compiled_model", "hardware_accelerator", "options")
        models, hardware, settings = (
            importlib.import_module(f"{RUNTIME}.{part}") for part in parts
        )
        device = hardware.HardwareAccelerator
        wanted = settings.Options(
            hardware_accelerators=device(int(device.GPU) | int(device.CPU)),
            cpu_options=settings.CpuOptions(num_threads=threads),
        )
        with _COMPILING:
            self._environment = litert_environment(**vars(options))
            known = {d._native.pointer for d in litert_delegates()}
            with as_our_error("LiteRT cannot compile the model"):
                make = models.CompiledModel
                if isinstance(source, Path):
                    self._model = make.from_file(
                        str(source), environment=self._environment, options=wanted
                    )
                else:
                    self._model = make.from_buffer(
                        source, environment=self._environment, options=wanted
                    )
            made = [d for d in litert_delegates() if d._native.pointer not in known]
            if not made:
                raise ClgpuError("LiteRT has not given the model to the delegate")
            self.delegate = made[-1]
        self._buffers = {}
        for step in steps:
            inputs = {
                name: self._model.create_input_buffer_by_name(step.key, name)
                for name in step.inputs
            }
            outputs = {
                name: self._model.create_output_buffer_by_name(step.key, name)
                for name in step.outputs
            }
            self._buffers[step.key] = (inputs, outputs)

    def set(self, step: Step, name: str, value: Array) -> None:
        if np.dtype(layout(value.shape, value.dtype)[1]) != value.dtype:
            value = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self._buffers[step.key][0][name].write(value)

    def run(self, step: Step) -> None:
        with as_our_error(f"LiteRT cannot run the signature {step.key!r}"):
            self._model.run_by_name(step.key, *self._buffers[step.key])

    def get(self, step: Step, name: str) -> Array:
        tensor = step.outputs[name]
        count, read_as = layout(tensor.shape, tensor.dtype)
        values: Array = self._buffers[step.key][1][name].read(count, read_as)
        return values.view(tensor.dtype).reshape(tensor.shape)

"""LiteRT's CompiledModel behind the methods of an interpreter that this package uses."""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from clgpu_delegate.delegate import Delegate
from clgpu_delegate.errors import ClgpuError, ModelError, OptionError
from clgpu_delegate.litert import package
from clgpu_delegate.litert.delegates import litert_delegates
from clgpu_delegate.litert.environment import litert_environment
from clgpu_delegate.litert.switch import litert_status
from clgpu_delegate.options import Options
from clgpu_delegate.runtimes import Runtime, RuntimeName, find_runtime
from clgpu_delegate.tflite import reader
from clgpu_delegate.tflite.inference import make_interpreter

if TYPE_CHECKING:
    from clgpu_delegate.options import Settings

Api = Literal["interpreter", "compiled"]

APIS: tuple[Api, ...] = ("interpreter", "compiled")
RUNTIME: RuntimeName = "ai_edge_litert"

# LiteRT's Python package has no names for other types, such as int16: they pass as bytes.
_NAMED = {np.dtype(name) for name in ("float32", "float16", "int32", "int8", "uint8", "bool")}

_Array = np.ndarray[Any, Any]


def check_api(api: str, runtime: str | None) -> None:
    """Check a name of `APIS`, and that the runtime has it.

    Raises
    ------
    OptionError
        If it is another, or the runtime is none that has CompiledModel.
    """
    if api not in APIS:
        raise OptionError(f"api is {api!r}; allowed: {', '.join(APIS)}")
    if api == "compiled" and runtime not in (None, RUNTIME):
        raise OptionError(f"runtime is {runtime!r}; only {RUNTIME} has CompiledModel")


def runtime_for(api: str, runtime: str | None) -> Runtime:
    """The runtime of `clgpu_delegate.runtimes.find_runtime` that has this interface.

    Raises
    ------
    OptionError
        As `check_api`.
    RuntimeNotFoundError
        If there is none, or it is too old for CompiledModel.
    """
    check_api(api, runtime)
    if api == "interpreter":
        return find_runtime(runtime)
    package.environment_class()
    return find_runtime(RUNTIME)


class Compiled:
    """The main graph of a compiled model; indices of tensors are those of an interpreter."""

    def __init__(
        self, content: bytes, *, gpu: bool, cpu: bool, threads: int = 1, environment: Any = None
    ) -> None:
        """Compile a model for the GPU of an environment, for the CPU, or both.

        Raises
        ------
        ModelError
            If LiteRT does not compile it, or no signature has its main graph.
        """
        parts = ("compiled_model", "hardware_accelerator", "options")
        models, hardware, options = (importlib.import_module(f"{RUNTIME}.{part}") for part in parts)
        device = hardware.HardwareAccelerator
        wanted = options.Options(
            hardware_accelerators=device(gpu * int(device.GPU) | cpu * int(device.CPU)),
            cpu_options=options.CpuOptions(num_threads=threads),
        )
        with _as_our_error("compile"):
            self._model = models.CompiledModel.from_buffer(
                content, environment=environment, options=wanted
            )
            # Never allocated: it only tells of the tensors, in the same order.
            told = find_runtime(RUNTIME).module.Interpreter(model_content=content)
            self._inputs: list[dict[str, Any]] = told.get_input_details()
            self._outputs: list[dict[str, Any]] = told.get_output_details()
            self._signature = _signature_of_main(content, self._model)
            self._sources = self._model.create_input_buffers(self._signature)
            self._results = self._model.create_output_buffers(self._signature)
        self._by_index = {
            detail["index"]: (buffer, *_layout(detail))
            for details, buffers in ((self._outputs, self._results), (self._inputs, self._sources))
            for detail, buffer in zip(details, buffers)
        }

    def get_input_details(self) -> list[dict[str, Any]]:
        """As those of an interpreter."""
        return self._inputs

    def get_output_details(self) -> list[dict[str, Any]]:
        """As those of an interpreter."""
        return self._outputs

    def allocate_tensors(self) -> None:
        """Nothing is left to do."""

    def set_tensor(self, index: int, value: _Array) -> None:
        """Copy an array into an input."""
        if value.dtype not in _NAMED:
            value = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self._by_index[index][0].write(value)

    def invoke(self) -> None:
        """Run once."""
        self._model.run_by_index(self._signature, self._sources, self._results)

    def get_tensor(self, index: int) -> _Array:
        """A copy of an input or output."""
        buffer, count, read_as, dtype, shape = self._by_index[index]
        values: _Array = buffer.read(count, read_as)
        return values.view(dtype).reshape(shape)


def _layout(
    detail: dict[str, Any],
) -> tuple[int, np.dtype[Any], np.dtype[Any], tuple[int, ...]]:
    """How many elements of which type to read; type and shape of the array."""
    shape, dtype = tuple(int(n) for n in detail["shape"]), np.dtype(detail["dtype"])
    return (*layout(shape, dtype), dtype, shape)


def layout(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, np.dtype[Any]]:
    """How many elements of which type to read from a buffer."""
    count = math.prod(shape)
    return (count, dtype) if dtype in _NAMED else (count * dtype.itemsize, np.dtype(np.uint8))


def _signature_of_main(content: bytes, model: Any) -> int:
    keys = {s.key for s in reader.parse(content).signatures if s.subgraph == 0}
    count = model.get_num_signatures()
    for i in range(count):
        if not keys or model.get_signature_by_index(i)["key"] in keys:
            return i
    raise ModelError(f"none of the model's {count} signatures has its main graph")


def by_arrays(runner: Any, inputs: Sequence[_Array]) -> Callable[[], list[_Array]]:
    """A function that runs an interpreter, or a `Compiled`, from arrays to arrays."""
    sources = [detail["index"] for detail in runner.get_input_details()]
    results = [detail["index"] for detail in runner.get_output_details()]

    def run() -> list[_Array]:
        for index, value in zip(sources, inputs):
            runner.set_tensor(index, value)
        runner.invoke()
        return [runner.get_tensor(index) for index in results]

    return run


def open_stock(api: str, runtime: Runtime, content: bytes, threads: int) -> Any:
    """Load a model for the CPU; returns an interpreter, or what behaves as one.

    Parameters
    ----------
    api
        Of `APIS`.
    runtime
        From `runtime_for`.
    content
        Bytes of the model.
    threads
        Of the CPU.

    Raises
    ------
    ModelError
        If the runtime rejects the model.
    """
    if api == "interpreter":
        return make_interpreter(runtime, content, threads)
    return Compiled(content, gpu=False, cpu=True, threads=threads)


def open_delegated(
    api: str, runtime: Runtime, content: bytes, threads: int, settings: Settings
) -> tuple[Any, Delegate]:
    """As `open_stock`, with a delegate, which leaves nodes without a kernel to the CPU.

    Parameters
    ----------
    settings
        Fields of `Options`.

    Raises
    ------
    ModelError
        If the runtime rejects the model.
    ClgpuError
        As `load` and `litert_environment`, or if LiteRT has not asked for the delegate.
    """
    if api == "compiled":
        return _on_delegate(content, threads, settings)
    delegate = Delegate(Options.from_settings(**settings))
    return make_interpreter(runtime, content, threads, delegate), delegate


def _on_delegate(content: bytes, threads: int, settings: Settings) -> tuple[Compiled, Delegate]:
    environment = litert_environment(**settings)
    before = len(litert_delegates())
    compiled = Compiled(content, gpu=True, cpu=True, threads=threads, environment=environment)
    delegates = litert_delegates()
    if len(delegates) <= before:
        raise ClgpuError("LiteRT has compiled the model without the delegate; its log says why")
    return compiled, delegates[-1]


def on_own_gpu(content: bytes) -> Compiled:
    """Compile a model for LiteRT's own GPU, which must take all of it.

    Raises
    ------
    ModelError
        If it does not; ``clgpu litert on`` has replaced it; or LiteRT has found no GPU.
    """
    if litert_status().is_on:
        raise ModelError("LiteRT's GPU is this delegate: run `clgpu litert off` first")
    try:
        return Compiled(content, gpu=True, cpu=False)
    except ModelError as error:
        raise ModelError(f"{error} (on Linux, LiteRT's GPU needs a Vulkan driver)") from None


@contextlib.contextmanager
def _as_our_error(what: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if isinstance(error, ClgpuError):
            raise
        # Several lines, most of which only name a place in LiteRT's sources.
        lines = [line.lstrip("└ ") for line in str(error).strip().split("\n")]
        told = [line for line in lines if not line.startswith("ERROR: [")]
        reason = f": {told[-1]}" if told else ", and gives no reason"
        raise ModelError(f"LiteRT does not {what} the model{reason}") from None

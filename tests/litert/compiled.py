"""Running models with LiteRT's CompiledModel."""

from __future__ import annotations

import functools
import math
import os
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests import quick
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter

try:
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator
    from ai_edge_litert.options import CpuOptions, GpuOptions, Options
except ImportError:
    CompiledModel = None

Array = np.ndarray

needs_litert = pytest.mark.skipif(
    CompiledModel is None,
    reason="LiteRT is not installed: pip install '.[litert]'",
)


def chain(size: int = 8) -> bytes:
    """``tanh(abs(x))``."""
    m = ModelMaker()
    m.output(m.op("TANH", [m.op("ABS", [m.input("x", (1, size))], (1, size))], (1, size)))
    return m.build()


@functools.lru_cache(maxsize=1)
def preferred_device() -> str:
    """The one that CLGPU_TEST_DEVICE names, else that of quick tests: for tests that take one."""
    named = os.environ.get("CLGPU_TEST_DEVICE")
    if named:
        return named
    found = clgpu_delegate.devices()
    preferred = [device for device in found if quick.PREFERRED in device.platform.lower()]
    return str((preferred or found)[0].index)


def hardware(name: str) -> Any:
    """``"CPU"``, ``"GPU"``, or ``"GPU|CPU"``: nodes that the GPU leaves run on the CPU."""
    flags = [HardwareAccelerator[part] for part in name.split("|")]
    return flags[0] if len(flags) == 1 else flags[0] | flags[1]


class Compiled:
    """A compiled model and the buffers of one of its signatures."""

    def __init__(
        self, content: bytes, where: str, environment: Any = None, *, signature: int = 0, **gpu: Any
    ) -> None:
        options = Options(
            hardware_accelerators=hardware(where),
            cpu_options=CpuOptions(num_threads=1),
            gpu_options=GpuOptions(**gpu),
        )
        self.model = CompiledModel.from_buffer(content, environment=environment, options=options)
        self.content = content
        self.choose(signature)

    def choose(self, signature: int) -> None:
        """Use another signature from now on."""
        self.signature = signature
        self.sources = self.model.create_input_buffers(signature)
        self.results = self.model.create_output_buffers(signature)

    def run(self, inputs: list[Array], like: list[Any] | None = None) -> list[Array]:
        """The outputs, in the order of the signature.

        Parameters
        ----------
        inputs
            One array per input.
        like
            Arrays of the types and shapes of the outputs, or only the shapes, after a resize. By
            default these are the model's.
        """
        for buffer, array in zip(self.sources, inputs):
            # As bytes: LiteRT's Python package has no name for some types, such as int16.
            buffer.write(np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8))
        self.model.run_by_index(self.signature, self.sources, self.results)
        wanted = self._described(like)
        return [
            buffer.read(math.prod(shape) * dtype.itemsize, np.uint8).view(dtype).reshape(shape)
            for buffer, (dtype, shape) in zip(self.results, wanted)
        ]

    def _described(self, like: list[Any] | None) -> list[tuple[np.dtype, tuple[int, ...]]]:
        if like is not None and all(isinstance(array, np.ndarray) for array in like):
            return [(array.dtype, array.shape) for array in like]
        # LiteRT has its own names of types; the runtime's interpreter has the same order.
        details = make_interpreter("ai_edge_litert", self.content).get_output_details()
        shapes = like or [tuple(int(n) for n in detail["shape"]) for detail in details]
        return [(np.dtype(detail["dtype"]), shape) for detail, shape in zip(details, shapes)]

    def resize(self, index: int, shape: tuple[int, ...], *, strict: bool = True) -> None:
        """Change the shape of an input; its buffers and those of the outputs are new ones."""
        self.model.resize_input_tensor(index, list(shape), self.signature, strict)
        self.choose(self.signature)

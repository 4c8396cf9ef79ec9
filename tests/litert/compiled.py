"""Running models with LiteRT's CompiledModel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def hardware(name: str) -> Any:
    """``"CPU"``, ``"GPU"``, or ``"GPU|CPU"``: nodes that the GPU leaves run on the CPU."""
    flags = [HardwareAccelerator[part] for part in name.split("|")]
    return flags[0] if len(flags) == 1 else flags[0] | flags[1]


class Compiled:
    """A compiled model and the buffers of its only signature."""

    def __init__(self, content: bytes, where: str, environment: Any = None, **gpu: Any) -> None:
        options = Options(
            hardware_accelerators=hardware(where),
            cpu_options=CpuOptions(num_threads=1),
            gpu_options=GpuOptions(**gpu),
        )
        self.model = CompiledModel.from_buffer(content, environment=environment, options=options)
        self.sources = self.model.create_input_buffers(0)
        self.results = self.model.create_output_buffers(0)
        # LiteRT has its own names of types; the runtime's interpreter has the same order.
        interpreter = make_interpreter("ai_edge_litert", content)
        self.outputs = interpreter.get_output_details()

    def run(self, inputs: list[Array], shapes: list[tuple[int, ...]] | None = None) -> list[Array]:
        """The outputs, in the order of the model; ``shapes`` are theirs after a resize."""
        for buffer, array in zip(self.sources, inputs):
            buffer.write(np.ascontiguousarray(array))
        self.model.run_by_index(0, self.sources, self.results)
        found = []
        for i, (buffer, detail) in enumerate(zip(self.results, self.outputs)):
            shape = shapes[i] if shapes else tuple(int(n) for n in detail["shape"])
            found.append(buffer.read(int(np.prod(shape)), np.dtype(detail["dtype"])).reshape(shape))
        return found

    def resize(self, index: int, shape: tuple[int, ...]) -> None:
        """Change the shape of an input; its buffers and those of the outputs are new ones."""
        self.model.resize_input_tensor(index, list(shape))
        self.sources = self.model.create_input_buffers(0)
        self.results = self.model.create_output_buffers(0)

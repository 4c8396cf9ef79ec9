"""``python -m bench frames``: a frame of 1080 x 1920 pixels through LiteRT's CompiledModel.

From array to array, with tensor buffers of host memory and with OpenCL buffers; and with a frame
that is on the device already, as one of a camera or of another model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import clgpu_delegate
from bench.measure import medians, relative_error
from bench.networks.layers import Net
from bench.report import Column, Report, TextTable, name_column
from bench.session import Session
from bench.setting import Precision, Setting, split
from clgpu_delegate import ClgpuError, Options, _core, native
from clgpu_delegate.litert.compiled import by_arrays
from tests.litert import host

_LEAST = 5  # timings of each way
HEIGHT, WIDTH = 1080, 1920


@dataclasses.dataclass(frozen=True)
class Row:
    """One precision; times are milliseconds per frame.

    Attributes
    ----------
    interpreter_ms
        The delegate with Interpreter, from array to array.
    host_ms, opencl_ms
        With CompiledModel, from array to array: buffers of host memory, and OpenCL buffers.
    on_device_ms
        With OpenCL buffers, from a frame on the device to an array.
    error
        Relative L2 error of the result with OpenCL buffers, against that with host memory.
    """

    precision: str
    interpreter_ms: float
    host_ms: float
    opencl_ms: float
    on_device_ms: float
    error: float

    @property
    def gain(self) -> float:
        """Time with host memory divided by the time with OpenCL buffers."""
        return self.host_ms / self.opencl_ms


def network(height: int = HEIGHT, width: int = WIDTH) -> bytes:
    """A network that filters an image: three convolutions."""
    net = Net()
    x = net.input("frame", (1, height, width, 3))
    x = net.conv(net.conv(x, 16, 3), 16, 3)
    net.output(net.conv(x, 3, 3, activation=None))
    return net.build()


@contextlib.contextmanager
def compiled(
    model: bytes, options: dict[str, Any], shape: tuple[int, ...], kind: int
) -> Iterator[tuple[host.Model, host.Buffer, host.Buffer]]:
    """A compiled model, its input and its output, of one kind of buffers."""
    with tempfile.TemporaryDirectory() as folder:
        _core.litert_offer(folder, native.texts_of(Options.from_settings(**options)))
        environment = host.Environment(Path(folder))
        made: list[Any] = []
        try:
            made.append(host.Model(environment, model))
            made += [host.Buffer(environment, shape, kind) for _ in range(2)]
            yield made[0], made[1], made[2]
        finally:
            for one in reversed(made):
                one.destroy()
            environment.destroy()
            _core.litert_withdraw(folder)


def _way(parts: tuple[host.Model, host.Buffer, host.Buffer], frame: Any) -> Callable[[], Any]:
    model, x, y = parts

    def run() -> Any:
        if frame is not None:
            x.write(frame)
        model.run([x], [y])
        return y.read()

    return run


def measure(setting: Setting, precision: str, height: int, width: int) -> Row:
    """Time all ways in turns."""
    options: dict[str, Any] = {"device": setting.device, "precision": precision}
    model = network(height, width)
    shape = (1, height, width, 3)
    frame = np.random.default_rng(1).random(shape, np.float32)
    delegate = clgpu_delegate.load(**options)
    session = Session(model, delegate, runtime="ai_edge_litert", threads=1).feed([frame])
    make = functools.partial(compiled, model, options, shape)
    with make(host.HOST) as on_host, make(host.OPENCL) as on_device:
        ways = {
            "interpreter": by_arrays(session._interpreter, [frame]),
            "host": _way(on_host, frame),
            "opencl": _way(on_device, frame),
            "on_device": _way(on_device, None),
        }
        error = relative_error(ways["opencl"](), ways["host"]())
        times = medians(ways, rounds=setting.rounds, budget_s=setting.budget, least=_LEAST)
    milliseconds = {f"{name}_ms": seconds * 1e3 for name, seconds in times.items()}
    return Row(precision=precision, error=error, **milliseconds)


COLUMNS = (
    name_column("precision", "precision"),
    Column("Interpreter ms", "interpreter_ms", ".3f"),
    Column("host memory ms", "host_ms", ".3f"),
    Column("OpenCL buffers ms", "opencl_ms", ".3f"),
    Column("gain", "gain", ".2f"),
    Column("frame on the device ms", "on_device_ms", ".3f"),
    Column("error", "error", ".0e"),
)


def run(
    setting: Setting, height: int = HEIGHT, width: int = WIDTH, precision: Precision = "fp32,fp16"
) -> list[Row]:
    """Measure a frame through CompiledModel in host memory and in OpenCL buffers."""
    if host.litert() is None:
        raise ClgpuError("LiteRT's library for C is missing: pip install ai-edge-litert")
    report = Report[Row](setting, runtime="ai_edge_litert", threads=1)
    for word in split(precision):
        row = measure(setting, word, height, width)
        report.add([row], network=f"{height}x{width}")
        report.say(
            f"{word}: {row.host_ms:.3f} ms in host memory, {row.opencl_ms:.3f} ms in buffers"
        )
    title = f"{setting.title}, frames of {height} x {width}"
    return report.finish(TextTable.of(title, report.rows, COLUMNS))

"""One trained network in four number formats, side by side."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import clgpu_delegate
from tests.runtimes import make_interpreter

# Format: the scheme of quantize() (None: the model as it is), and the delegate's precision.
FORMATS = {
    "fp32": (None, "fp32"),
    "fp16": ("fp16", "fp16"),
    "int16": ("int16x8", "fp32"),
    "int8": ("int8", "fp32"),
}


@dataclasses.dataclass(frozen=True)
class Task:
    """A trained network and how it is judged.

    Attributes
    ----------
    model
        Bytes of a float .tflite file with one input and one output, of batch 1.
    calibration
        Samples to observe value ranges with.
    samples
        Samples to judge by.
    score
        A number for the results of all of `samples`.
    """

    model: bytes
    calibration: np.ndarray
    samples: np.ndarray
    score: Callable[[np.ndarray], float]


@dataclasses.dataclass(frozen=True)
class Row:
    """A format's results.

    Attributes
    ----------
    name
        Key of `FORMATS`.
    file_bytes
        Of the model.
    claimed, nodes
        On the device, and of the model.
    score
        Of the delegate's results, by `Task.score`.
    stock_score
        The same of the stock CPU runtime's.
    """

    name: str
    file_bytes: int
    claimed: int
    nodes: int
    score: float
    stock_score: float


def predict(model: bytes, samples: np.ndarray, delegates: Sequence[Any] = ()) -> np.ndarray:
    """Run a model on each sample; integers at its ends are converted as their scales say."""
    interpreter = make_interpreter("auto", model, delegates)
    interpreter.allocate_tensors()
    (source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
    outputs = []
    for sample in samples:
        interpreter.set_tensor(source["index"], _stored(sample[np.newaxis], source))
        interpreter.invoke()
        outputs.append(_real(interpreter.get_tensor(result["index"])[0], result))
    return np.stack(outputs)


def compare(task: Task, **options: Any) -> list[Row]:
    """Run a network in every format; options of `clgpu_delegate.load`."""
    rows = []
    for name, (scheme, precision) in FORMATS.items():
        model = task.model if scheme is None else _quantize(task.model, task.calibration, scheme)
        delegate = clgpu_delegate.load(precision=precision, **options)
        result = task.score(predict(model, task.samples, [delegate]))
        plan = delegate.explain()
        stock = task.score(predict(model, task.samples))
        rows.append(Row(name, len(model), plan.claimed, plan.total, result, stock))
    return rows


def show(rows: Sequence[Row], title: str, unit: str) -> None:
    """Print a table; `unit` names the score."""
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column("format")
    for heading in ("file bytes", "nodes on the device", unit, "stock CPU"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            row.name,
            str(row.file_bytes),
            f"{row.claimed} of {row.nodes}",
            f"{row.score:.2f}",
            f"{row.stock_score:.2f}",
        )
    Console().print(table)


def _quantize(model: bytes, calibration: Sequence[np.ndarray], scheme: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        batches = [sample[np.newaxis] for sample in calibration]
        clgpu_delegate.quantize(model, batches, path, scheme=scheme)
        return path.read_bytes()


def _stored(real: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    dtype = detail["dtype"]
    if dtype == np.float32:
        return real.astype(np.float32)
    scale, zero_point = detail["quantization"]
    info = np.iinfo(dtype)
    return np.clip(np.round(real / scale) + zero_point, info.min, info.max).astype(dtype)


def _real(stored: np.ndarray, detail: dict[str, Any]) -> np.ndarray:
    if stored.dtype == np.float32:
        return stored
    scale, zero_point = detail["quantization"]
    return (stored.astype(np.float32) - zero_point) * np.float32(scale)

"""What quantisation did to each layer."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from clgpu_delegate.base.rendering import Group, Shown, Table, Text, as_text

_WIDTH = 120  # columns of str()
_SHOWN = 10  # layers in the table


@dataclasses.dataclass(frozen=True)
class QuantizedLayer:
    """A node of the model, and how its first output was quantised.

    Examples
    --------
    >>> report = clgpu_delegate.quantize("model.tflite", [x], "int8.tflite")
    >>> worst = report.layers[0]
    >>> worst.dtype
    'int8'
    """

    node: int
    """Index in the float model, once nodes that compute constants are folded away."""

    op: str
    output: str
    """Name of the output tensor."""

    dtype: str
    """Element type of the output in the new model: ``"int8"``, ``"int16"`` or ``"float32"``."""

    low: float | None
    """The smallest value observed; None where none was."""

    high: float | None
    """The largest value observed; None where none was."""

    scale: float | None
    """Of the output where it is stored as integers, else None."""

    zero_point: int | None
    """As the scale."""

    sqnr_db: float | None
    """Ratio of signal to quantisation noise: of the float model's values to the differences of the
    new model's from them. Infinite where there is none, None where it could not be measured."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; no infinities."""
        data = dataclasses.asdict(self)
        if self.sqnr_db is not None and math.isinf(self.sqnr_db):
            data["sqnr_db"] = None
        return data


@dataclasses.dataclass(frozen=True)
class Quantization(Shown):
    """What `quantize` did.

    Examples
    --------
    >>> report = clgpu_delegate.quantize("model.tflite", [x], "int8.tflite")
    >>> report.scheme, report.samples
    ('int8', 1)
    """

    path: str
    """The file written."""

    scheme: str
    mode: str
    observer: str
    per_channel: bool
    samples: int
    """Calibration samples."""

    float_bytes: int
    """Size of the model that was read."""

    bytes: int
    """Size of the model that was written."""

    layers: tuple[QuantizedLayer, ...]
    """The worst SQNR first."""

    outputs: tuple[QuantizedLayer, ...]
    """Those that compute outputs of the model."""

    @property
    def quantized(self) -> int:
        """Number of layers that compute with integers or with converted weights."""
        return sum(layer.dtype != "float32" for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        layers = [layer.to_dict() for layer in self.layers]
        outputs = [layer.to_dict() for layer in self.outputs]
        return {**data, "quantized": self.quantized, "layers": layers, "outputs": outputs}

    def __rich__(self) -> Group:
        table = Table()
        for heading in ("node", "op", "output", "type", "range", "scale", "zero point", "SQNR"):
            right = heading in ("node", "scale", "zero point", "SQNR")
            table.add_column(heading, right=right, fold=True)
        for layer in self.layers[:_SHOWN]:
            table.add_row(*_cells(layer))
        head = (
            f"{self.path}: {self.bytes / 2**20:.2f} MiB "
            f"({self.bytes / max(self.float_bytes, 1):.2f} of the float model), "
            f"{self.quantized} of {len(self.layers)} layers quantised ({self.scheme}"
            f"{', ' + self.mode if self.mode != 'integer' else ''}), {self.samples} samples"
        )
        ends = ", ".join(f"{layer.output} {_decibels(layer.sqnr_db)}" for layer in self.outputs)
        return Group(Text(head), Text(f"outputs: {ends}"), Text("\nworst layers", "italic"), table)

    def __str__(self) -> str:
        return as_text(self)


def worst_first(layers: list[QuantizedLayer]) -> tuple[QuantizedLayer, ...]:
    """Sort by SQNR; layers without one come last."""
    return tuple(sorted(layers, key=lambda r: (r.sqnr_db is None, r.sqnr_db or 0.0, r.node)))


def _cells(layer: QuantizedLayer) -> list[str]:
    span = "" if layer.low is None else f"{layer.low:.4g} .. {layer.high:.4g}"
    scale = "" if layer.scale is None else f"{layer.scale:.4g}"
    zero_point = "" if layer.zero_point is None else str(layer.zero_point)
    return [
        str(layer.node), layer.op, layer.output, layer.dtype, span, scale, zero_point,
        _decibels(layer.sqnr_db),
    ]  # fmt: skip


def _decibels(value: float | None) -> str:
    return (
        "" if value is None else "exact" if math.isinf(value) and value > 0 else f"{value:.1f} dB"
    )

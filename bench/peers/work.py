"""What peers run: a model, its inputs and the reference result, as files of a folder.

No module that a peer's process imports before its library may import the package or a runtime: the
time and the memory of a start are measured.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

INT8 = "int8"
BUILDERS = (
    "alexnet", "inception_v1", "inception_v3", "lenet5", "mobilenet_v1", "mobilenet_v2", "resnet50",
)  # fmt: skip
"""Networks whose layers are those of `bench.peers.onnx_net` and `bench.peers_torch`."""


@dataclasses.dataclass(frozen=True)
class Work:
    """A model with a batch size and a precision.

    Attributes
    ----------
    name
        Of a network of the bench, a file or a layer.
    batch
        Of the inputs; 0: as a file stores them.
    precision
        ``"fp32"``, ``"tf32"``, ``"fp16"`` or ``"int8"``. The last one is a quantised model; the
        others say how the same float model is computed.
    network
        The network of `bench.networks`; empty for files and layers.
    file
        The .tflite file; empty for networks and layers.
    layer
        A number of `bench.conv_layers.LAYERS`; 0 for networks and files.
    scale
        Factor for the height and width of a layer.
    """

    name: str
    batch: int
    precision: str
    network: str = ""
    file: str = ""
    layer: int = 0
    scale: float = 1.0

    @property
    def has_builder(self) -> bool:
        """Whether libraries that do not read .tflite files can have the network."""
        return self.network in BUILDERS and self.precision != INT8

    @property
    def label(self) -> str:
        """Name, batch and precision."""
        batch = f", batch {self.batch}" if self.batch > 1 else ""
        return f"{self.name}{batch}, {self.precision}"


@dataclasses.dataclass(frozen=True)
class Output:
    """An output of the model: its shape, and what its integers stand for (scale 0: floats)."""

    shape: tuple[int, ...]
    scale: float = 0.0
    zero_point: int = 0

    def real(self, stored: np.ndarray) -> np.ndarray:
        """Values as the model stores them, as one vector of real numbers."""
        values = np.asarray(stored, np.float64).ravel()
        return (values - self.zero_point) * self.scale if self.scale else values


@dataclasses.dataclass(frozen=True)
class Made:
    """A work whose files have been made.

    Attributes
    ----------
    folder
        Of the files.
    images
        Samples in a batch, for rates.
    outputs
        Of the model.
    reference
        What `expected` was computed with.
    """

    work: Work
    folder: Path
    images: int
    outputs: tuple[Output, ...]
    reference: str

    @property
    def model(self) -> Path:
        """The .tflite file."""
        return self.folder / "model.tflite"

    @property
    def onnx(self) -> Path:
        """The same network for others, if it has a builder and the package onnx is installed."""
        return self.folder / "model.onnx"

    def inputs(self) -> list[np.ndarray]:
        """Inputs as the model stores them, NHWC."""
        with np.load(self.folder / "inputs.npz") as arrays:
            return [arrays[name] for name in arrays.files]

    def expected(self) -> np.ndarray:
        """All outputs as one vector of real numbers."""
        result: np.ndarray = np.load(self.folder / "expected.npy")
        return result

    def real(self, stored: Sequence[np.ndarray]) -> np.ndarray:
        """All outputs as a peer gives them, as one vector of real numbers.

        Raises
        ------
        ValueError
            If their number or sizes are others than those of the model.
        """
        sizes = [np.size(value) for value in stored]
        wanted = [int(np.prod(output.shape)) for output in self.outputs]
        if sizes != wanted:
            raise ValueError(f"outputs of {sizes} elements instead of {wanted}")
        return np.concatenate([o.real(value) for o, value in zip(self.outputs, stored)])

    def write(self, inputs: Sequence[np.ndarray], expected: np.ndarray) -> None:
        """Write the files besides the model."""
        np.savez(self.folder / "inputs.npz", *inputs)
        np.save(self.folder / "expected.npy", expected)
        fields = dataclasses.asdict(self)
        fields.pop("folder")
        (self.folder / "work.json").write_text(json.dumps(fields))

    @classmethod
    def read(cls, folder: Path) -> Made:
        """Read what `write` has written."""
        fields: dict[str, Any] = json.loads((folder / "work.json").read_text())
        return cls(
            work=Work(**fields["work"]),
            folder=folder,
            images=fields["images"],
            outputs=tuple(
                Output(tuple(o["shape"]), o["scale"], o["zero_point"]) for o in fields["outputs"]
            ),
            reference=fields["reference"],
        )

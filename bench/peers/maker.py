"""The process that makes models, inputs and reference results for `bench peers`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from bench import networks
from bench.conv_layers import LAYERS
from bench.nets import quantized
from bench.peers import onnx_net
from bench.peers.work import INT8, Made, Output, Work
from bench.process import serve
from bench.session import as_stored
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter, run_interpreter


class Server:
    """Answers the requests; see `bench.process.serve`."""

    def make(self, work: dict[str, Any], folder: str, threads: int, exact: bool) -> dict[str, Any]:
        """Write the files of a work, and return those facts of it that the rows need.

        Parameters
        ----------
        work
            The fields of a `Work`.
        folder
            To write into.
        threads
            Of the reference.
        exact
            Whether the reference are the plain loops of the runtime, which can take long, or its
            optimised kernels without XNNPACK.
        """
        what = Work(**work)
        model = build(what)
        Path(folder, "model.tflite").write_bytes(model)
        if what.has_builder and importlib.util.find_spec("onnx") is not None:
            onnx_net.write(what.network, what.batch, Path(folder, "model.onnx"))
        resolver = "ref" if exact else "no_delegate"
        interpreter = make_interpreter("auto", model, resolver=resolver, threads=threads)
        details = interpreter.get_input_details()
        inputs = [
            as_stored(detail, value)
            for detail, value in zip(details, networks.sample_inputs(model, seed=1))
        ]
        stored = run_interpreter(interpreter, inputs)
        outputs = tuple(
            Output(value.shape, float(scale), int(zero_point))
            for value, (scale, zero_point) in zip(
                stored, (detail["quantization"] for detail in interpreter.get_output_details())
            )
        )
        made = Made(
            work=what,
            folder=Path(folder),
            images=int(inputs[0].shape[0]) if inputs and inputs[0].ndim else 1,
            outputs=outputs,
            reference="plain loops" if exact else "optimised kernels without XNNPACK",
        )
        made.write(inputs, made.real(stored))
        return {"images": made.images, "reference": made.reference}


def build(work: Work) -> bytes:
    """The model of a work."""
    if work.file:
        return Path(work.file).read_bytes()
    if work.layer:
        return _layer(work)
    model = networks.build(work.network, work.batch)
    return quantized(model) if work.precision == INT8 else model


def _layer(work: Work) -> bytes:
    layer = LAYERS[work.layer - 1].scaled(work.scale)
    random = np.random.default_rng(layer.number)
    maker = ModelMaker()
    x = maker.input("x", (work.batch, layer.height, layer.width, layer.channels))
    shape = (layer.filters, layer.filter, layer.filter, layer.channels)
    weights = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    constants = [maker.constant(np.float32(v)) for v in (weights, np.zeros(layer.filters))]
    shape = (work.batch, layer.height, layer.width, layer.filters)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    maker.output(maker.op("CONV_2D", [x, *constants], shape, **options))
    model: bytes = maker.build()
    return quantized(model) if work.precision == INT8 else model


def main() -> None:
    """Serve until the input ends."""
    serve(Server)

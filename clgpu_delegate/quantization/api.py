"""The entry points: `quantize` and `pseudo_quantize`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from clgpu_delegate.base.files import (
    Source,
    check_writable,
    read_content,
    write_atomically,
)
from clgpu_delegate.base.progress import Bar, Option
from clgpu_delegate.errors import OptionError, QuantizationError
from clgpu_delegate.quantization import calibration as calibrating
from clgpu_delegate.quantization import samples
from clgpu_delegate.quantization.folding import fold
from clgpu_delegate.quantization.observers import NAMES, Observer, make
from clgpu_delegate.quantization.report import Quantization, QuantizedLayer, worst_first
from clgpu_delegate.quantization.schemes import SCHEMES, Conversion, check_together, convert
from clgpu_delegate.quantization.skipping import skipped_nodes
from clgpu_delegate.runtimes import RuntimeName, find_runtime
from clgpu_delegate.tflite.graph import Affine, Array, Model
from clgpu_delegate.tflite.reader import parse
from clgpu_delegate.tflite.runs import Run
from clgpu_delegate.tflite.writer import serialize

_MODES = ("integer", "pseudo")
_MEASURED = 16  # samples that the noise is measured on


def quantize(
    model: Source,
    calibration: Any,
    out: str | os.PathLike[str],
    *,
    scheme: Literal["int8", "int16x8", "dynamic", "fp16"] = "int8",
    per_channel: bool = True,
    observer: Literal["minmax", "moving_average", "percentile", "mse"]
    | Callable[[], Observer] = "minmax",
    skip: Iterable[int | str] = (),
    io: Literal["float", "int8", "uint8", "int16"] = "float",
    mode: Literal["integer", "pseudo"] = "integer",
    runtime: RuntimeName | None = None,
    progress: Option = None,
) -> Quantization:
    """Quantise a float model and write it.

    Parameters
    ----------
    model
        Path or bytes of a .tflite file with float32 activations; its weights may be float16.
    calibration
        Samples of what the model will see: an iterable of arrays (for a model with one input), of
        tuples of one array per input, or of mappings from the inputs' names. Or a mapping from the
        inputs' names to arrays whose first axis counts the samples; or the path of a .npz file of
        these, or of a .npy file for a model with one input. Samples have the shape and type of the
        input; a batch axis of 1 may be missing. None will do for ``"fp16"`` and ``"dynamic"``,
        which need no ranges.
    out
        Path of the file to write. It appears when all is done; a file there is replaced.
    scheme
        ``"int8"``: int8 activations and weights; ``"int16x8"``: int16 activations, int8 weights;
        ``"dynamic"``: int8 weights, float activations; ``"fp16"``: float16 weights.
    per_channel
        Whether weights have one scale per output channel rather than one.
    observer
        What settles ranges: ``"minmax"``, ``"moving_average"``, ``"percentile"``, ``"mse"``, or a
        function that makes an `Observer`.
    skip
        Layers that stay in float: indices of nodes in the file, names of operations, or names of
        output tensors.
    io
        Type of inputs and outputs: ``"float"`` as before, or integers: ``"int8"``, ``"uint8"``
        (scheme ``"int8"``) or ``"int16"`` (scheme ``"int16x8"``).
    mode
        ``"integer"``, or ``"pseudo"`` for float arithmetic on values that are snapped to the grid
        of the integers; see `pseudo_quantize`.
    runtime
        As in `clgpu_delegate.runtimes.find_runtime`; it runs the model.
    progress
        True or False for a progress bar on standard error or none, None for one on terminals, or a
        function of the stage, the samples done and their number (None if unknown).

    Returns
    -------
    Quantization
        What was written, and how well each layer does on the first 16 samples.

    Raises
    ------
    OptionError
        If an option is unknown or does not fit the others, or the model has no such layer to skip.
    QuantizationError
        If the model is no float model, or the samples do not fit it.
    DependencyError
        If ``pip install 'clgpu_delegate[quantize]'`` is missing.
    ClgpuError
        If the model cannot be read or the file cannot be written, or there is no runtime.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((8, 4, 4, 2), np.float32)
    >>> report = clgpu_delegate.quantize("model.tflite", images, "int8.tflite")
    >>> report.samples
    8
    """
    _check_choice("scheme", scheme, SCHEMES)
    _check_choice("mode", mode, _MODES)
    if not callable(observer):
        _check_choice("observer", observer, NAMES)
    check_together(io, scheme, mode)
    path = check_writable(out)
    content = read_content(model)
    with Bar(progress) as bar:
        parsed = parse(content)
        _check_float(parsed)
        left = skipped_nodes(parsed, skip)
        tool = find_runtime(runtime)
        before = Run(content, tool)
        fold(parsed, before)
        task = _Calibration(before, parsed, calibration, bar)

        def ranges(tensors: Iterable[int]) -> dict[int, tuple[float, float]]:
            name = "" if callable(observer) else observer
            levels = 65536 if scheme == "int16x8" else 256
            factory = observer if callable(observer) else lambda: make(name, levels)
            return task.observe(tensors, factory)

        result = convert(
            parsed, scheme, mode, per_channel=per_channel, skip=left, io=io, ranges=ranges
        )
        written = serialize(result.model)
        noise = task.measure(Run(written, tool), result)
        write_atomically(path, written)
    layers = _layers(result, noise, task.ranges)
    ends = set(result.float_model.main.outputs)
    return Quantization(
        path=str(path),
        scheme=scheme,
        mode=mode,
        observer=getattr(observer, "__name__", str(observer)),
        per_channel=per_channel,
        samples=task.count,
        float_bytes=len(content),
        bytes=len(written),
        layers=worst_first([layer for layer, _ in layers]),
        outputs=tuple(layer for layer, tensor in layers if tensor in ends),
    )


def pseudo_quantize(
    model: Source, calibration: Any, out: str | os.PathLike[str], **options: Any
) -> Quantization:
    """Write a float model whose values are rounded as those of the integer model.

    Weights and biases are rounded to their grids, and a pair of QUANTIZE and DEQUANTIZE follows
    every activation that `quantize` would store as integers. The model shows the error of rounding
    without that of integer arithmetic; both runtimes can run it.

    Parameters
    ----------
    model, calibration, out, **options
        As in `quantize`; ``scheme`` is ``"int8"`` or ``"int16x8"``.

    Examples
    --------
    >>> report = clgpu_delegate.pseudo_quantize("model.tflite", [x], "rounded.tflite")
    >>> report.mode
    'pseudo'
    """
    return quantize(model, calibration, out, mode="pseudo", **options)


class _Calibration:
    """The samples, and what is done with them."""

    def __init__(self, run: Run, model: Model, calibration: Any, bar: Bar) -> None:
        self._run, self._model, self._bar = run, model, bar
        graph = model.main
        inputs = [graph.tensors[t] for t in graph.inputs]
        self.ranges: dict[int, tuple[float, float]] = {}
        self.count = 0
        self._kept: list[list[Array]] = []
        if isinstance(calibration, (str, os.PathLike)):
            calibration = samples.load_file(calibration, inputs)
        elif isinstance(calibration, Mapping):
            calibration = samples.split(calibration, inputs, "the calibration data")
        elif calibration is not None and not isinstance(calibration, Iterable):
            kind = type(calibration).__name__
            raise QuantizationError(f"calibration is a {kind}, not an iterable of samples")
        self._total = len(calibration) if hasattr(calibration, "__len__") else None
        self._samples = None if calibration is None else samples.checked(calibration, inputs)

    def observe(
        self, tensors: Iterable[int], factory: Callable[[], Observer]
    ) -> dict[int, tuple[float, float]]:
        if self._samples is None:
            raise QuantizationError("this scheme needs calibration samples, and there are none")
        self._bar.stage("observing ranges", self._total)
        watched = {t: self._model.main.tensors[t] for t in tensors}
        self.ranges = calibrating.observe(
            self._run, self._counted(), watched, factory, self._bar.step
        )
        return self.ranges

    def _counted(self) -> Iterator[list[Array]]:
        assert self._samples is not None
        for sample in self._samples:
            self.count += 1
            if len(self._kept) < _MEASURED:
                self._kept.append([a.copy() for a in sample])
            yield sample
        if not self.count:
            raise QuantizationError("the set of calibration samples is empty")

    def measure(self, after: Run, result: Conversion) -> dict[int, float]:
        if self._samples is not None and not self.count:  # no ranges were needed
            for _ in itertools.islice(self._counted(), _MEASURED):
                pass
        if not self._kept:
            after.check()
        self._bar.stage("comparing layers", len(self._kept))
        pairs = [(sample, result.stored_inputs(sample)) for sample in self._kept]
        return calibrating.measure(self._run, after, pairs, result.pairs, self._bar.step)


def _layers(
    result: Conversion,
    noise: dict[int, float],
    ranges: dict[int, tuple[float, float]],
) -> list[tuple[QuantizedLayer, int]]:
    layers = []
    for op in result.float_model.main.operators:
        if not op.outputs:
            continue
        tensor = op.outputs[0]
        affine: Affine | None = result.pairs[tensor][1] if tensor in result.pairs else None
        low, high = ranges.get(tensor, (None, None))
        layer = QuantizedLayer(
            node=op.node,
            op=op.name,
            output=result.float_model.main.tensors[tensor].name,
            dtype=result.dtypes.get(op.node, "float32"),
            low=low,
            high=high,
            scale=affine.scale if affine else None,
            zero_point=affine.zero_point if affine else None,
            sqnr_db=noise.get(tensor),
        )
        layers.append((layer, tensor))
    return layers


def _check_choice(option: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise OptionError(f"{option} is {value!r}; allowed: {', '.join(allowed)}")


def _check_float(model: Model) -> None:
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if tensor.affine is not None:
                raise QuantizationError(
                    f"the model is quantised already: tensor {tensor.name!r} is {tensor.dtype}"
                )
    if not any(t.dtype == "float32" for t in model.main.tensors):
        raise QuantizationError("the model computes no float32 tensors: nothing to quantise")

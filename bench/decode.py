"""``python -m bench decode``: decoders of language models, a prompt at once and token by token."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
import typer

import clgpu_delegate
from bench.decode_torch import KINDS, TorchDecoder
from bench.networks.decoder import DECODERS, FORMS, Decoder, save_decoder
from bench.report import Column, Report, TextTable, name_column
from bench.setting import File, Names, Precision, Setting, check_known, split
from clgpu_delegate.generation.signatures import Names as SignatureNames
from clgpu_delegate.generation.signatures import find_steps
from tests.runtimes import make_interpreter

_READ = "embedding"  # the weights of which a token reads one row


class Way(Protocol):
    """Computes a decoder."""

    def reset(self) -> None:
        """Begin a new conversation; not timed."""

    def read(self) -> object:
        """Read the prompt and then a token, and give the next one."""

    def step(self) -> object:
        """Read the last token, and give the next one."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A decoder in one form, computed in one way. Times are medians over rounds, in milliseconds.

    Attributes
    ----------
    form
        How the matrices are stored, one of `bench.networks.decoder.FORMS`.
    way
        ``"delegate"``, ``"stock CPU"``, or one of `bench.decode_torch.KINDS` of PyTorch.
    precision
        Of the delegate and of PyTorch; empty for the stock CPU.
    step_ms
        From a token on the host to the next one there.
    prompt
        Tokens that are read at once.
    prefill_ms
        Of reading them.
    weight_bytes
        That a token reads: of all matrices except the embedding.
    memory_share
        Rate at which these bytes were read, as a share of the device's rate of copying; 0 where
        that is unknown.
    bus_bytes
        That a token moves between the host and the device, in both directions; 0 but for the
        delegate.
    device_bytes
        Device memory of the model once it is loaded; 0 but for the delegate.
    """

    decoder: str
    form: str
    way: str
    precision: str
    step_ms: float
    prompt: int
    prefill_ms: float
    weight_bytes: int
    memory_share: float = 0.0
    bus_bytes: int = 0
    device_bytes: int = 0

    @property
    def tokens_s(self) -> float:
        """Tokens per second, one after the other."""
        return 1e3 / self.step_ms

    @property
    def prefill_tokens_s(self) -> float:
        """Tokens of the prompt per second."""
        return self.prompt * 1e3 / self.prefill_ms

    @property
    def rate(self) -> float:
        """Bytes of weights per second while tokens are computed one after the other."""
        return self.weight_bytes * self.tokens_s


class Delegated:
    """A `clgpu_delegate.Generator`, which takes each token back to the host."""

    def __init__(self, path: Path, prompt: list[int], setting: Setting, precision: str) -> None:
        before = clgpu_delegate.load(device=setting.device).stats()["device_bytes"]
        options: dict[str, Any] = {"device": setting.device, "precision": precision}
        self.generator = clgpu_delegate.Generator(path, threads=setting.cpu_threads, **options)
        #: Of device memory, its weights, caches and intermediate results.
        self.device_bytes = self.generator.delegate.stats()["device_bytes"] - before
        self._prompt = prompt
        self._generation: Iterator[int] = iter(())

    def reset(self) -> None:
        self.generator.reset()

    def read(self) -> int:
        self._generation = self.generator.stream(self._prompt)
        return next(self._generation)

    def step(self) -> int:
        return next(self._generation)


class Stock:
    """The runtime's own kernels: its invocations alone, without handing on the caches."""

    def __init__(self, path: Path, setting: Setting, position: int) -> None:
        interpreter = make_interpreter(
            setting.runtime, path.read_bytes(), threads=setting.cpu_threads
        )
        self._decode, self._prefill = find_steps(interpreter, SignatureNames())
        self._kept = interpreter  # and with it the bytes of the model
        self._graphs = interpreter._interpreter
        for step in (self._decode, *self._prefill):
            self._graphs.AllocateTensors(step.graph)
            for name, tensor in step.inputs.items():
                value = np.zeros(tensor.shape, tensor.dtype)
                if name == step.positions:
                    value += position if step is self._decode else np.arange(step.count)
                self._graphs.SetTensor(tensor.index, value.astype(tensor.dtype), step.graph)

    def reset(self) -> None:
        pass  # what the caches hold makes no difference

    def read(self) -> None:
        for step in self._prefill:
            self._graphs.Invoke(step.graph)
        self.step()

    def step(self) -> None:
        self._graphs.Invoke(self._decode.graph)


def weight_bytes(decoder: Decoder, form: str) -> int:
    """Bytes of the matrices and factors that a token reads, without the embedding."""
    total = 0.0
    for name, weights in decoder.weights(form).items():
        if name != _READ:
            size = {"float32": 4, "float16": 2, "int8": 1}.get(weights.form, 0.5)
            total += size * math.prod(weights.shape)
            if weights.form.startswith("int"):
                total += weights.scales().nbytes
    return int(total)


def times(ways: Mapping[Any, Way], setting: Setting, tokens: int) -> dict[Any, tuple[float, float]]:
    """Median seconds of a step and of reading the prompt, by way; the ways take turns."""
    found: dict[Any, list[tuple[float, float]]] = {key: [] for key in ways}
    for way in ways.values():  # compiles, and raises clock rates
        way.reset()
        way.read()
        way.step()
    deadline = time.perf_counter() + setting.budget
    for done in range(setting.rounds):
        if done and time.perf_counter() > deadline:
            break
        for key, way in ways.items():
            way.reset()
            start = time.perf_counter()
            way.read()
            read = time.perf_counter()
            for _ in range(tokens):
                way.step()
            step = (time.perf_counter() - read) / tokens
            # The call that reads the prompt has also computed one token.
            found[key].append((step, read - start - step))
    return {
        key: (statistics.median(s for s, _ in each), statistics.median(p for _, p in each))
        for key, each in found.items()
    }


def measure(
    name: str, form: str, path: Path, setting: Setting, *, precisions: list[str], tokens: int,
    prompt: int, cache: int, stock: bool, compiled: bool, copy_bytes: float = 0.0,
) -> list[Row]:  # fmt: skip
    """Measure a decoder in one form.

    Parameters
    ----------
    name, form
        Of `DECODERS` and of `FORMS`.
    path
        Its file; it is written if it does not exist.
    setting
        As for all commands.
    precisions
        Of the delegate.
    tokens, prompt, cache
        Tokens of a round, of the prompt, and positions of the caches.
    stock, compiled
        Whether to measure the stock CPU kernels, and PyTorch's compiler.
    copy_bytes
        Bytes per second that the device copies; 0 if that is not known.
    """
    decoder = DECODERS[name]
    if not path.exists():
        save_decoder(path, decoder, form=form, prefill=(prompt,), cache=cache)
    given = [int(t) for t in np.random.default_rng(1).integers(decoder.vocabulary, size=prompt + 1)]
    ways: dict[tuple[str, str], Way] = {}
    for precision in precisions:
        ways["delegate", precision] = Delegated(path, given, setting, precision)
    if stock:
        ways["stock CPU", ""] = Stock(path, setting, prompt)
    torch = setting.peer
    if torch is not None and form in ("float32", "float16"):
        for kind in KINDS if compiled else [k for k in KINDS if "compile" not in k]:
            for precision in precisions:
                ways[kind, precision] = TorchDecoder(
                    torch, decoder, prompt, cache, precision=precision, kind=kind
                )
    size = weight_bytes(decoder, form)
    rows = []
    for (way, precision), (step, prefill) in times(ways, setting, tokens).items():
        row = Row(name, form, way, precision, step * 1e3, prompt, prefill * 1e3, size)
        runner = ways[way, precision]
        if isinstance(runner, Delegated):
            last = runner.generator.delegate.stats()["last_invoke"]
            row = dataclasses.replace(
                row,
                memory_share=row.rate / copy_bytes if copy_bytes else 0.0,
                bus_bytes=last["bytes_up"] + last["bytes_down"],
                device_bytes=runner.device_bytes,
            )
        rows.append(row)
    return rows


@contextlib.contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    """The folder, or one that is removed afterwards."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


COLUMNS = (
    name_column("decoder", "decoder"),
    Column("weights", "form", is_text=True),
    Column("way", "way", is_text=True),
    Column("", "precision", is_text=True),
    Column("ms a token", "step_ms", ".2f"),
    Column("tokens/s", "tokens_s", ".1f"),
    Column("GB/s", "rate", ".0f", scale=1e-9),
    Column("of copying", lambda row: f"{row.memory_share:.0%}" if row.memory_share else ""),
    Column("prompt ms", "prefill_ms", ".1f"),
    Column("prompt tokens/s", "prefill_tokens_s", ".0f"),
    Column("bus bytes", lambda row: str(row.bus_bytes) if row.bus_bytes else ""),
    Column("device GB", lambda row: f"{row.device_bytes / 1e9:.2f}" if row.device_bytes else ""),
)


def run(
    setting: Setting,
    names: Names = None,
    form: Annotated[
        str, typer.Option(help=f"Of the weights, separated by commas: {', '.join(FORMS)}.")
    ] = "float16,int8,int4",
    precision: Precision = "fp16",
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of a round.")] = 32,
    prompt: Annotated[int, typer.Option(min=1, help="Tokens of the prompt, read at once.")] = 128,
    cache: Annotated[int, typer.Option(min=3, help="Positions of the caches.")] = 1280,
    stock: Annotated[bool, typer.Option(help="Also measure the stock CPU kernels.")] = False,
    compiled: Annotated[
        bool, typer.Option("--compile", help="With PyTorch, measure its compiler, too.")
    ] = False,
    folder: Annotated[
        File, typer.Option(help="Where the models are kept for the next run; else they are not.")
    ] = None,
) -> list[Row]:
    """Measure decoders of language models: tokens a second, and a prompt that is read at once.

    Raises
    ------
    ValueError
        If a decoder or a form does not exist, the caches are too short, or there is no such folder.
    """
    names = names or ["0.1b"]
    check_known("decoder", names, tuple(DECODERS))
    forms = split(form)
    check_known("form of weights", forms, FORMS)
    if prompt + 1 + tokens > cache:
        raise ValueError(
            f"{prompt + 1} tokens to read and {tokens} to generate need {prompt + 1 + tokens} "
            f"positions; the caches have {cache}"
        )
    if folder is not None and not folder.is_dir():
        raise ValueError(f"{folder} is not a folder")
    (ceiling,) = clgpu_delegate.ceilings(setting.found.index, seconds=0.5, progress=False).devices
    report = Report[Row](setting, runtime=setting.runtime, threads=setting.cpu_threads)
    for name in names:
        for each in forms:
            start = time.perf_counter()
            with _place(folder) as place:
                path = place / f"decoder-{name}-{each}-{prompt}-{cache}.tflite"
                rows = measure(
                    name, each, path, setting, precisions=split(precision), tokens=tokens,
                    prompt=prompt, cache=cache, stock=stock, compiled=compiled,
                    copy_bytes=ceiling.copy_bytes,
                )  # fmt: skip
            report.add(rows, f"{name}, {each}: {time.perf_counter() - start:.1f} s")
    return report.finish(TextTable.of(setting.title, report.rows, COLUMNS), on=setting.title)

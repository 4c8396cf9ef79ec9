"""What ``python -m bench guard`` measures: models, and the ways in which they are run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import nets, networks, pynet
from bench.conv_layers import CONV_NODE, LAYERS, Case
from bench.guard_worker import file_of
from bench.networks.decoder import DECODERS, Decoder, make_decoder
from bench.networks.samples import Input, sample
from bench.setting import PRECISIONS
from tests.model_maker import ModelMaker

BATCHES = (1, 16)

# Networks of different kinds that are quantised within two seconds each.
INT8_NETWORKS = ("lenet5", "mobilenet_v1", "mobilenet_v2", "resnet50")

# A dozen of the 35: 4, 16 and up to 512 inputs; 3, 16 and up to 512 filters of 3x3 to 9x9.
GUARDED_LAYERS = (1, 2, 4, 8, 10, 12, 15, 17, 24, 32, 33, 35)

# For a quick run: each kind of item once.
_QUICK = (
    "lenet5 b1 fp32", "resnet50 b16 fp16", "resnet50 b1 fp32", "mobilenet_v1 b1 fp16",
    "mobilenet_v1 b1 int8", "inception_v3 b16 tf32", "transformer b1 fp16", "layer-8 fp16",
    "layer-24 fp32", "layer-32 fp16", "decoder-0.1b token int4", "decoder_moe gathered fp16",
)  # fmt: skip

# Of the decoder: words of an item's name, the form of its weights, tokens of a step. Arithmetic is
# in half.
_STEPS = (("token fp16", "float16", 1), ("token int8", "int8", 1), ("token int4", "int4", 1),
          ("prompt fp16", "float16", 64))  # fmt: skip
_CACHE = 256  # positions
_MIXTURES = ("gathered", "dense")  # forms of a file


@dataclasses.dataclass(frozen=True)
class Item:
    """One thing that is measured.

    Attributes
    ----------
    name
        Name of its rows: words by which items are chosen.
    model
        Argument of `build_model`.
    options
        Of the delegate, besides the device and the cache.
    node
        The only node to time, or None.
    """

    name: str
    model: str
    options: dict[str, Any]
    node: int | None = None


def all_items(*, gpu: bool, tensor_cores: bool, scale: float | None = None) -> list[Item]:
    """List the items of a device, those that take the longest to load first.

    Parameters
    ----------
    gpu
        Whether it is a GPU; other devices get PyNET, the language model and the layers in smaller
        sizes.
    tensor_cores
        Whether tf32 differs from fp32.
    scale
        Of the layers' height and width; None: 1 on GPUs, else an eighth.
    """
    precisions = [p for p in PRECISIONS if tensor_cores or p != "tf32"]
    scale = scale or (1.0 if gpu else 0.125)
    items = [_pynet(pynet.FULL_SIZE if gpu else pynet.SMALL_SIZE)]
    items += _language(1.0 if gpu else 0.25)
    for name in sorted(networks.NETWORKS, key=_loads_slowly):
        for batch in BATCHES:
            model = f"network {name} {batch}"
            items += [Item(f"{name} b{batch} {p}", model, {"precision": p}) for p in precisions]
        if name in INT8_NETWORKS:
            items.append(Item(f"{name} b1 int8", f"int8 {name} 1", {}))
    at = "" if scale == 1 else f" x{scale:g}"
    for number in GUARDED_LAYERS:
        model = f"layer {number} {scale:g}"
        for p in precisions:
            items.append(Item(f"layer-{number}{at} {p}", model, {"precision": p}, CONV_NODE))
    return items


def _pynet(size: tuple[int, int]) -> Item:
    """PyNET in little memory, with Winograd's convolution."""
    area = size[0] * size[1] / (pynet.FULL_SIZE[0] * pynet.FULL_SIZE[1])
    way = next(way for way in pynet.published(area) if way.name == "Winograd")
    options = {
        "precision": way.precision, "engines": way.engines, "memory_budget": way.budget,
        "max_object": way.max_object,
    }  # fmt: skip
    extents = f"{size[0]}x{size[1]}"
    return Item(f"pynet {extents} winograd {way.precision}", f"pynet {extents}", options)


def _language(scale: float) -> list[Item]:
    """A decoder's steps, and the feed-forward part of one that is a mixture of experts."""
    at = "" if scale == 1 else f" x{scale:g}"
    items = []
    for words, form, tokens in _STEPS:
        options = {"precision": "fp16", "carry": _caches(scale, form, tokens)}
        name = f"decoder-0.1b{at} {words}"
        items.append(Item(name, f"decoder {form} {tokens} {scale:g}", options))
    for form in _MIXTURES:
        model = f"mixture {form} {scale:g}"
        items.append(Item(f"decoder_moe{at} {form} fp16", model, {"precision": "fp16"}))
    return items


def _decoder(scale: float) -> Decoder:
    """The sizes of 0.1 billion parameters, with a share of the layers and of the vocabulary."""
    whole = DECODERS["0.1b"]
    layers, vocabulary = int(whole.layers * scale), int(whole.vocabulary * scale)
    return dataclasses.replace(whole, layers=layers, vocabulary=vocabulary)


def _signature(scale: float, form: str, tokens: int) -> ModelMaker:
    """A file with one signature, so that it is the main graph."""
    chunks = () if tokens == 1 else (tokens,)
    return make_decoder(
        _decoder(scale), form=form, prefill=chunks, decode=tokens == 1, cache=_CACHE
    )


def _caches(scale: float, form: str, tokens: int) -> str:
    """The option ``carry``: as in a generator, caches stay on the device."""
    ((inputs, outputs),) = _signature(scale, form, tokens).signatures().values()
    return ",".join(
        f"{name}=0/{tensor}/{outputs[name]}" for name, tensor in inputs.items() if name in outputs
    )


def _loads_slowly(name: str) -> tuple[int, str]:
    slow = ("inception_v3", "alexnet", "resnet50", "pynet", "inception_v1")
    return slow.index(name) if name in slow else len(slow), name


def chosen(names: Iterable[str], only: Sequence[str] = (), *, quick: bool = False) -> list[str]:
    """Return the requested names.

    Parameters
    ----------
    names
        Of items or rows.
    only
        Each some words of a name: ``"resnet50 fp16"`` stands for two batches. Empty: all.
    quick
        Only a few of these.

    Raises
    ------
    ValueError
        If one of ``only`` matches no name.
    """
    names = list(names)
    if quick:
        plain = {name: " ".join(w for w in name.split() if not _is_scale(w)) for name in names}
        names = [name for name in names if plain[name] in _QUICK]
    if not only:
        return names
    for wanted in only:
        if not any(_has(name, wanted) for name in names):
            fronts = ", ".join(dict.fromkeys(name.split()[0] for name in names))
            raise ValueError(f"nothing that is guarded is called {wanted!r}; there are {fronts}")
    return [name for name in names if any(_has(name, wanted) for wanted in only)]


def _has(name: str, wanted: str) -> bool:
    words = name.split()
    words += ["layer"] if words[0].startswith("layer-") else []
    return set(wanted.split()) <= set(words)


def _is_scale(word: str) -> bool:
    return word.startswith("x") and word[1:2].isdigit()


def build_model(model: str, folder: Path) -> tuple[bytes, list[npt.NDArray[Any]]]:
    """Make a model with random weights, and its inputs.

    Parameters
    ----------
    model
        ``"network NAME BATCH"``, ``"int8 NAME BATCH"``, ``"layer NUMBER SCALE"``,
        ``"decoder FORM TOKENS SCALE"``, ``"mixture FORM SCALE"`` or ``"pynet HEIGHTxWIDTH"``.
    folder
        The folder where `save_model` has written the float network to quantise.
    """
    kind, *words = model.split()
    if kind == "network":
        made = networks.build(words[0], int(words[1]))
        return made, networks.sample_inputs(made, seed=1)
    if kind == "int8":
        made = nets.quantized(file_of(folder, f"network {words[0]} {words[1]}").read_bytes())
        return made, networks.sample_inputs(made, seed=1)
    if kind == "layer":
        case = Case.of(LAYERS[int(words[0]) - 1].scaled(float(words[1])))
        return case.model(), [case.tile]
    if kind == "pynet":
        height, _, width = words[0].partition("x")
        size = (int(height), int(width))
        return pynet.make_net(size).build(), sample([Input("raw", (1, *size, 4))], seed=1)
    if kind == "decoder":
        tokens = int(words[1])
        maker = _signature(float(words[2]), words[0], tokens)
        return maker.build(), _step_inputs(maker, tokens)
    if kind == "mixture":
        scale = float(words[1])
        made = networks.build(
            "decoder_moe", 1, form=words[0], experts=16, chosen=4, width=int(1024 * scale),
            hidden=int(1024 * scale),
        )  # fmt: skip
        return made, networks.sample_inputs(made, seed=1)
    raise ValueError(f"no model {model!r}")


def _step_inputs(maker: ModelMaker, tokens: int) -> list[npt.NDArray[Any]]:
    """Tokens in the middle of empty caches."""
    positions = np.arange(_CACHE // 2, _CACHE // 2 + tokens, dtype=np.int32)
    ((tensors, _),) = maker.signatures().values()
    _, _, *caches = (maker.shape(tensor) for tensor in tensors.values())
    return [positions[None] % 100, positions, *(np.zeros(shape, np.float32) for shape in caches)]


def needed_first(model: str) -> str | None:
    """The model that another is made from."""
    kind, *words = model.split()
    return f"network {' '.join(words)}" if kind == "int8" else None


def save_model(model: str, folder: Path) -> None:
    """Make a model and its inputs, and write both."""
    made, inputs = build_model(model, folder)
    path = file_of(folder, model)
    np.savez(path.with_suffix(".npz"), *inputs)
    path.write_bytes(made)

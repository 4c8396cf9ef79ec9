"""Decoders of language models (Llama: Touvron et al. 2023) with seeded random weights.

A file has the signatures that litert-torch exports: ``prefill_N`` reads N tokens at once,
``decode`` one. All graphs share the weights. Inputs are

====================================  ==========================================
``tokens``                            int32 ``(1, n)``
``input_pos``                         int32 ``(n,)``, the positions of the tokens
``kv_cache_k_I``, ``kv_cache_v_I``    float32 ``(1, cache, key_heads, depth)``
====================================  ==========================================

Outputs are the caches under the same names, with n new rows, and for ``decode`` also ``logits``,
float32 ``(1, 1, vocabulary)``. Positions are consecutive; later ones than a token's are masked, so
what a cache holds there does not matter.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Sequence

import numpy as np

from tests.model_maker import Blocks, ModelMaker, Quantization

#: How matrices are stored. The embedding and what is small are floats in each of them.
FORMS = ("float32", "float16", "int8", "int4", "int4_blocks", "int4_blocks64", "int4_blocks128")

BLOCKS = {"int4_blocks": 32, "int4_blocks64": 64, "int4_blocks128": 128}
"""Neighbours of a row that share a scale, by form."""

_EPSILON = 1e-5  # of the normalisations
_THETA = 10000.0  # wavelengths of the rotations are up to this, times 2 pi
_MASKED = -np.inf  # added to the scores of later positions
_PIECE = 1 << 22  # elements that are drawn at once
_LEVELS = {"int8": 127, "int4": 7, **dict.fromkeys(BLOCKS, 7)}  # the largest stored number


@dataclasses.dataclass(frozen=True)
class Decoder:
    """Sizes of a decoder.

    Attributes
    ----------
    width
        Channels of a token.
    layers
        Pairs of attention and feed-forward parts.
    heads, key_heads
        Of queries, and of keys and values; the second divides the first.
    depth
        Elements of a head, an even number.
    hidden
        Channels within the feed-forward part.
    vocabulary
        Different tokens.
    """

    width: int
    layers: int
    heads: int
    key_heads: int
    depth: int
    hidden: int
    vocabulary: int

    @property
    def parameters(self) -> int:
        """Weights, all in all."""
        return sum(math.prod(weights.shape) for weights in self.weights().values())

    def weights(self, form: str = "float32", seed: int = 0) -> dict[str, Weights]:
        """Return the weights by name, in one of `FORMS`; the embedding is of floats in all."""
        own = form if form in ("float32", "float16") else "float16"
        table: dict[str, Weights] = {}

        def add(name: str, shape: tuple[int, ...], deviation: float, stored: str) -> None:
            table[name] = Weights(shape, deviation, stored, (seed, len(table)))

        def matrix(name: str, rows: int, cols: int, gain: float = 1.0) -> None:
            add(name, (rows, cols), gain * cols**-0.5, form)

        add("embedding", (self.vocabulary, self.width), 1.0, own)
        for i in range(self.layers):
            # The sum of all layers is then as large as the embedding.
            share = (2 * self.layers) ** -0.5
            add(f"attention_norm_{i}", (self.width,), 0.0, "float32")
            matrix(f"query_{i}", self.heads * self.depth, self.width, 2.0)
            matrix(f"key_{i}", self.key_heads * self.depth, self.width)
            matrix(f"value_{i}", self.key_heads * self.depth, self.width)
            matrix(f"mix_{i}", self.width, self.heads * self.depth, 2 * share)
            add(f"hidden_norm_{i}", (self.width,), 0.0, "float32")
            matrix(f"gate_{i}", self.hidden, self.width)
            matrix(f"up_{i}", self.hidden, self.width)
            matrix(f"down_{i}", self.width, self.hidden, 2 * share)
        add("norm", (self.width,), 0.0, "float32")
        matrix("head", self.vocabulary, self.width, 4.0)
        return table


#: Sizes by name: for tests, and of about 0.1, 0.5 and 3 billion parameters.
DECODERS = {
    "tiny": Decoder(32, 2, 4, 2, 8, 64, 96),
    "0.1b": Decoder(768, 12, 12, 4, 64, 2048, 32000),
    "0.5b": Decoder(1280, 24, 20, 4, 64, 3456, 32000),
    "3b": Decoder(3072, 28, 24, 8, 128, 8192, 32000),
}


@dataclasses.dataclass(frozen=True)
class Weights:
    """Weights that are drawn each time they are asked for, so that memory holds a part of them.

    Attributes
    ----------
    shape
        Outputs first.
    deviation
        Their standard deviation; 0 for factors around 1.
    form
        How they are stored, one of `FORMS`.
    seed
        Of what is drawn.
    """

    shape: tuple[int, ...]
    deviation: float
    form: str
    seed: tuple[int, int]

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield the bytes of a file, some rows at a time."""
        for drawn in self._drawn():
            if self.form.startswith("int4"):
                pairs = np.append(drawn, np.zeros(drawn.size % 2, np.int8)).reshape(-1, 2)
                yield ((pairs[:, 0] & 15) | (pairs[:, 1] << 4)).view(np.uint8)
            else:
                yield drawn

    def scales(self) -> np.ndarray:
        """Return the scales of integers, ``(rows,)``, with blocks ``(rows, blocks)`` as float16."""
        level, rows = _LEVELS[self.form], self.shape[0]
        unit = self.deviation / math.sqrt(((2 * level + 1) ** 2 - 1) / 12)
        random = np.random.default_rng((*self.seed, 0))
        if self.form in BLOCKS:
            around = random.uniform(0.8, 1.2, (rows, self.shape[1] // BLOCKS[self.form]))
            return (unit * around).astype(np.float16)
        return (unit * random.uniform(0.8, 1.2, rows)).astype(np.float32)

    def real(self) -> np.ndarray:
        """Return what they stand for, as float64."""
        stored = np.concatenate(list(self._drawn())).astype(np.float64)
        if self.form not in _LEVELS:
            return stored
        scales = self.scales().astype(np.float64).reshape(self.shape[0], -1)
        return stored * np.repeat(scales, self.shape[1] // scales.shape[1], axis=1)

    def _drawn(self) -> Iterator[np.ndarray]:
        # Of an even number, so that no byte has integers of two pieces.
        rows = max(2, _PIECE // math.prod(self.shape[1:]) // 2 * 2)
        for piece, first in enumerate(range(0, self.shape[0], rows), 1):
            random = np.random.default_rng((*self.seed, piece))
            shape = (min(rows, self.shape[0] - first), *self.shape[1:])
            if self.form in _LEVELS:
                level = _LEVELS[self.form]
                yield random.integers(-level, level, shape, np.int8, endpoint=True)
                continue
            uniform = 2 * random.random(shape, np.float32) - 1
            if self.deviation == 0:
                yield (1 + uniform / 4).astype(self.form)
            else:
                yield (np.float32(self.deviation * 3**0.5) * uniform).astype(self.form)


def save_decoder(
    path: str | os.PathLike[str],
    decoder: Decoder,
    *,
    form: str = "float32",
    prefill: Sequence[int] = (128,),
    decode: bool = True,
    cache: int = 1280,
    seed: int = 0,
    outside: bool | None = None,
) -> int:
    """Write a decoder as a .tflite file.

    Parameters
    ----------
    path
        Of the file.
    decoder
        Its sizes, such as a value of `DECODERS`.
    form
        How matrices are stored, one of `FORMS`; integers have a scale per row, or one for each
        so many neighbours of a row as `BLOCKS` says.
    prefill
        For each number of tokens a signature ``prefill_N``; may be empty.
    decode
        Whether there is a signature ``decode``. An interpreter without signatures runs it, or
        else the first of the others.
    cache
        Positions of the caches.
    seed
        Of the weights.
    outside
        As in `tests.model_maker.ModelMaker.save`.

    Returns
    -------
    int
        Bytes of the file.

    Raises
    ------
    ValueError
        If there is no such form, the sizes do not fit it, or there is no signature.
    """
    maker = make_decoder(decoder, form=form, prefill=prefill, decode=decode, cache=cache, seed=seed)
    return maker.save(path, outside=outside)


def make_decoder(
    decoder: Decoder,
    *,
    form: str = "float32",
    prefill: Sequence[int] = (128,),
    decode: bool = True,
    cache: int = 1280,
    seed: int = 0,
) -> ModelMaker:
    """Describe the file that `save_decoder` writes, with the same parameters."""
    if form not in FORMS:
        raise ValueError(f"no form {form!r}; there are {', '.join(FORMS)}")
    weights = decoder.weights(form, seed)
    if block := BLOCKS.get(form):
        for name, matrix in weights.items():
            if matrix.form == form and matrix.shape[1] % block:
                raise ValueError(
                    f"rows of {name} have {matrix.shape[1]} elements; with {form} they are "
                    f"multiples of {block}"
                )
    signatures = [("decode", 1)] if decode else []
    signatures += [(f"prefill_{tokens}", tokens) for tokens in prefill]
    if not signatures:
        raise ValueError("a file needs a signature: decode, or at least one prefill")
    maker = ModelMaker()
    owner: _Graph | None = None
    for key, tokens in signatures:
        place = maker.subgraph() if owner else maker
        graph = _Graph(place, decoder, weights, cache, owner)
        graph.describe(key, tokens, logits=key == "decode")
        owner = owner or graph
    return maker


class _Graph:
    """A signature's graph under construction."""

    def __init__(
        self,
        maker: ModelMaker,
        decoder: Decoder,
        weights: dict[str, Weights],
        cache: int,
        owner: _Graph | None = None,
    ) -> None:
        self._maker = maker
        self._decoder = decoder
        self._weights = weights
        self._cache = cache
        self._owner = owner
        self._stored: dict[str, int] = {}  # constants by name
        self._read: dict[str, int] = {}  # the same as floats, where halves are stored

    def describe(self, key: str, tokens: int, *, logits: bool) -> None:
        """Add all layers and the signature; without ``logits`` only what the caches need."""
        maker, size = self._maker, self._decoder
        rows = (1, self._cache, size.key_heads, size.depth)
        inputs = {
            "tokens": maker.input(f"{key}_tokens", (1, tokens), np.int32),
            "input_pos": maker.input(f"{key}_input_pos", (tokens,), np.int32),
        }
        for i in range(size.layers):
            for kind in "kv":
                name = f"kv_cache_{kind}_{i}"
                inputs[name] = maker.input(f"{key}_{name}", rows)
        outputs: dict[str, int] = {}
        self._tokens = tokens
        self._place(inputs["input_pos"])
        x = self._embed(inputs["tokens"])
        for i in range(size.layers):
            normal = self._normalize(x, f"attention_norm_{i}")
            k_name, v_name = f"kv_cache_k_{i}", f"kv_cache_v_{i}"
            outputs[k_name] = k = self._keep(
                inputs[k_name], self._rotate(self._split(normal, f"key_{i}", size.key_heads))
            )
            outputs[v_name] = v = self._keep(
                inputs[v_name], self._split(normal, f"value_{i}", size.key_heads)
            )
            if not logits and i == size.layers - 1:
                break
            q = self._rotate(self._split(normal, f"query_{i}", size.heads))
            x = self._add(x, self._dense(self._attend(q, k, v), f"mix_{i}"))
            normal = self._normalize(x, f"hidden_norm_{i}")
            gate = self._dense(normal, f"gate_{i}")
            gate = self._op("MUL", gate, self._op("LOGISTIC", gate))
            hidden = self._op("MUL", gate, self._dense(normal, f"up_{i}"))
            x = self._add(x, self._dense(hidden, f"down_{i}"))
        if logits:
            outputs["logits"] = self._dense(self._normalize(x, "norm"), "head")
        maker.output(*outputs.values())
        maker.signature(key, inputs, outputs)

    # ------------------------------------------------------------------ positions

    def _place(self, positions: int) -> None:
        """Compute all that depends on the positions alone: rotations, the mask, where to write."""
        maker, tokens, half = self._maker, self._tokens, self._decoder.depth // 2
        angles = np.arange(self._cache)[:, None] * _THETA ** (-np.arange(half) / half)
        self._turns = []
        for name, values in (("cosines", np.cos(angles)), ("sines", np.sin(angles))):
            table = self._constant(name, values.astype(np.float32))
            rows = maker.op("GATHER", [table, positions], (tokens, half), dtype=np.float32, axis=0)
            self._turns.append(self._reshape(rows, (1, tokens, 1, half)))
        every = self._constant("positions", np.arange(self._cache, dtype=np.int32)[None])
        shape = (tokens, self._cache)
        later = maker.op(
            "GREATER", [every, self._reshape(positions, (tokens, 1))], shape, dtype=np.bool_
        )
        masked = self._constant("masked", np.array([[_MASKED]], np.float32))
        kept = self._constant("kept", np.zeros((1, 1), np.float32))
        mask = maker.op("SELECT_V2", [later, masked, kept], shape, dtype=np.float32)
        self._mask = self._reshape(mask, (1, 1, *shape))
        first = maker.op(
            "SLICE", [positions, self._ints("zero", [0]), self._ints("one", [1])], (1,)
        )
        zero = self._ints("zero", [0])
        self._start = maker.op(
            "CONCATENATION", [zero, first, zero, zero], (4,), dtype=np.int32, axis=0
        )

    def _rotate(self, x: int) -> int:
        """Turn the halves of each head by angles that grow with the position (Su et al. 2021)."""
        n, tokens, heads, depth = self._maker.shape(x)
        shape = (n, tokens, heads, depth // 2)
        size = self._ints(f"half_{heads}", shape)
        a, b = (
            self._maker.op("SLICE", [x, self._ints(f"from_{at}", [0, 0, 0, at]), size], shape)
            for at in (0, depth // 2)
        )
        cosine, sine = self._turns
        low = self._op("SUB", self._op("MUL", a, cosine), self._op("MUL", b, sine))
        high = self._op("ADD", self._op("MUL", b, cosine), self._op("MUL", a, sine))
        return self._maker.op("CONCATENATION", [low, high], (n, tokens, heads, depth), axis=3)

    def _keep(self, cache: int, rows: int) -> int:
        inputs = [cache, rows, self._start]
        return self._maker.op("DYNAMIC_UPDATE_SLICE", inputs, self._maker.shape(cache))

    # ------------------------------------------------------------------ layers

    def _embed(self, tokens: int) -> int:
        shape = (1, self._tokens, self._decoder.width)
        operands = [self._floats("embedding"), tokens]
        return self._maker.op("GATHER", operands, shape, dtype=np.float32, axis=0)

    def _normalize(self, x: int, name: str) -> int:
        """Divide by the root of the mean square (Zhang and Sennrich 2019)."""
        kept = (1, self._tokens, 1)
        squares = self._op("MUL", x, x)
        axis = self._ints("last_axis", [-1])
        mean = self._maker.op("MEAN", [squares, axis], kept, keep_dims=True)
        mean = self._op("ADD", mean, self._constant("epsilon", np.array([_EPSILON], np.float32)))
        unit = self._op("MUL", x, self._op("RSQRT", mean))
        return self._op("MUL", unit, self._floats(name))

    def _split(self, x: int, name: str, heads: int) -> int:
        return self._reshape(self._dense(x, name), (1, self._tokens, heads, self._decoder.depth))

    def _attend(self, q: int, k: int, v: int) -> int:
        """Mix the values of ``(1, cache, key_heads, depth)`` for each query."""
        maker, size, n = self._maker, self._decoder, self._tokens
        group = size.heads // size.key_heads
        rows = (1, size.key_heads, group * n, size.depth)
        if n > 1:  # the queries that share a head of keys become one matrix
            split = (n, size.key_heads, group, size.depth)
            q = self._transpose(self._reshape(q, split), (1, 2, 0, 3))
        q = self._reshape(q, rows)
        k, v = (self._transpose(x, (0, 2, 1, 3)) for x in (k, v))
        shape = (1, size.key_heads, group * n, self._cache)
        scores = maker.op("BATCH_MATMUL", [q, k], shape, adj_y=True)
        scale = self._constant("scale", np.array([size.depth**-0.5], np.float32))
        scores = self._op("MUL", scores, scale)
        scores = self._reshape(scores, (1, size.heads, n, self._cache))
        scores = maker.op("SOFTMAX", [self._op("ADD", scores, self._mask)],
                          (1, size.heads, n, self._cache), beta=1.0)  # fmt: skip
        mixed = maker.op("BATCH_MATMUL", [self._reshape(scores, shape), v], rows)
        if n > 1:
            mixed = self._reshape(mixed, (1, size.heads, n, size.depth))
            mixed = self._transpose(mixed, (0, 2, 1, 3))
        return self._reshape(mixed, (1, n, size.heads * size.depth))

    def _dense(self, x: int, name: str) -> int:
        form, units = self._weights[name].form, self._weights[name].shape[0]
        integers = form in _LEVELS
        return self._maker.op(
            "FULLY_CONNECTED", [x, self._floats(name)], (*self._maker.shape(x)[:-1], units),
            keep_num_dims=True, asymmetric_quantize_inputs=integers, version=9 if integers else 5,
        )  # fmt: skip

    def _add(self, x: int, y: int) -> int:
        return self._op("ADD", x, y)

    # ------------------------------------------------------------------ plumbing

    def _op(self, name: str, *inputs: int) -> int:
        """Add an element-wise op; its first input has the shape of the result."""
        return self._maker.op(name, inputs, self._maker.shape(inputs[0]))

    def _reshape(self, x: int, shape: tuple[int, ...]) -> int:
        wanted = self._ints("shape_" + "_".join(map(str, shape)), shape)
        return self._maker.op("RESHAPE", [x, wanted], shape, new_shape=shape)

    def _transpose(self, x: int, order: tuple[int, ...]) -> int:
        shape = tuple(self._maker.shape(x)[axis] for axis in order)
        wanted = self._ints("order_" + "_".join(map(str, order)), order)
        return self._maker.op("TRANSPOSE", [x, wanted], shape)

    def _ints(self, name: str, values: Sequence[int]) -> int:
        return self._constant(name, np.array(values, np.int32))

    def _constant(self, name: str, values: np.ndarray) -> int:
        if name not in self._stored:
            self._stored[name] = self._maker.constant(values, name)
        return self._stored[name]

    def _floats(self, name: str) -> int:
        """Return weights as an op reads them: halves as floats."""
        stored, weights = self._matrix(name), self._weights[name]
        if weights.form != "float16":
            return stored
        if name not in self._read:
            self._read[name] = self._maker.op(
                "DEQUANTIZE", [stored], weights.shape, dtype=np.float32, version=3
            )
        return self._read[name]

    def _matrix(self, name: str) -> int:
        if name in self._stored:
            return self._stored[name]
        weights = self._weights[name]
        if self._owner is not None:
            stored = self._maker.shared_constant(self._owner._maker, self._owner._matrix(name))
        else:
            quantization: Quantization | Blocks | None = None
            if block := BLOCKS.get(weights.form):
                scales = self._maker.constant(weights.scales(), f"{name}_scales")
                quantization = Blocks(scales, block)
            elif weights.form in _LEVELS:
                quantization = Quantization(weights.scales())  # type: ignore[arg-type]
            dtype = "INT4" if weights.form.startswith("int4") else weights.form
            stored = self._maker.late_constant(
                weights.shape, dtype, weights.pieces, name, quantization=quantization
            )
        self._stored[name] = stored
        return stored

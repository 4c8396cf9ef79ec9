"""Decoders of language models by their signatures, against float64 and the stock runtime."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from bench.networks.decoder import BLOCKS, DECODERS, FORMS, Decoder, make_decoder
from tests.models.comparison import assert_close, relative_l2
from tests.runtimes import make_interpreter
from tests.tolerance import MODEL_L2

MORE = os.environ.get("CLGPU_MORE_MODELS", Path(__file__).parents[3] / "shared/models/more")
TOY = Path(MORE) / "aieq_tests/toy_model_with_kv_cache_multi_signature.tflite"
CACHE = 45
PROMPT, STEPS = 7, 3  # tokens
# Odd sizes; heads that share no key, pairs, and four that share one.
ODD = {
    1: Decoder(37, 2, 3, 3, 10, 51, 53),
    2: Decoder(29, 2, 6, 3, 6, 41, 67),
    4: Decoder(45, 3, 4, 1, 14, 33, 71),
}
# Of an odd number of blocks in each row, and of an odd number of rows.
IN_BLOCKS = {
    form: Decoder(3 * block, 2, 3, 1, block, 5 * block, 67) for form, block in BLOCKS.items()
}


class Reference:
    """A decoder in float64, with the numbers that its file stands for."""

    def __init__(self, decoder: Decoder, form: str) -> None:
        self.size = decoder
        self.weights = {n: w.real() for n, w in decoder.weights(form).items()}
        self.keys = [np.empty((0, decoder.key_heads, decoder.depth)) for _ in range(decoder.layers)]
        self.values = list(self.keys)

    def step(self, token: int) -> np.ndarray:
        size, w = self.size, self.weights
        position = len(self.keys[0])
        x = w["embedding"][token]
        for i in range(size.layers):
            y = self._normalize(x, f"attention_norm_{i}")
            q, k, v = (
                (w[f"{n}_{i}"] @ y).reshape(-1, size.depth) for n in ("query", "key", "value")
            )
            q, k = self._rotate(q, position), self._rotate(k, position)
            self.keys[i] = np.concatenate([self.keys[i], k[None]])
            self.values[i] = np.concatenate([self.values[i], v[None]])
            share = np.arange(size.heads) // (size.heads // size.key_heads)
            keys, values = self.keys[i][:, share], self.values[i][:, share]
            scores = np.einsum("hd,shd->hs", q, keys) / np.sqrt(size.depth)
            scores = np.exp(scores - scores.max(1, keepdims=True))
            scores /= scores.sum(1, keepdims=True)
            x = x + w[f"mix_{i}"] @ np.einsum("hs,shd->hd", scores, values).reshape(-1)
            y = self._normalize(x, f"hidden_norm_{i}")
            gate = w[f"gate_{i}"] @ y
            x = x + w[f"down_{i}"] @ (gate / (1 + np.exp(-gate)) * (w[f"up_{i}"] @ y))
        return w["head"] @ self._normalize(x, "norm")

    def _normalize(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt(np.mean(x * x) + 1e-5) * self.weights[name]

    def _rotate(self, x: np.ndarray, position: int) -> np.ndarray:
        half = self.size.depth // 2
        turns = np.exp(1j * position * 10000.0 ** (-np.arange(half) / half))
        turned = (x[:, :half] + 1j * x[:, half:]) * turns
        return np.concatenate([turned.real, turned.imag], 1)


class Runners:
    """The signatures of an interpreter, and the caches that pass between them."""

    def __init__(self, runtime: str, model: bytes, delegates=(), threads: int = 1) -> None:
        self._interpreter = make_interpreter(runtime, model, delegates, threads=threads)
        self._runners = {
            key: self._interpreter.get_signature_runner(key)
            for key in self._interpreter.get_signature_list()
        }
        details = next(iter(self._runners.values())).get_input_details()
        self._caches = {
            name: np.zeros(detail["shape"], np.float32)
            for name, detail in details.items()
            if name.startswith("kv_cache")
        }
        self._position = 0

    def feed(self, tokens: list[int]) -> np.ndarray | None:
        """Run the signature for this number of tokens, and return its logits if it has them."""
        count = len(tokens)
        key = "decode" if count == 1 else f"prefill_{count}"
        positions = np.arange(self._position, self._position + count, dtype=np.int32)
        outputs = self._runners[key](
            tokens=np.array([tokens], np.int32), input_pos=positions, **self._caches
        )
        logits = outputs.pop("logits", None)
        self._caches.update(outputs)
        self._position += count
        return None if logits is None else logits[0, 0]


def assert_logits(decoder: Decoder, form: str, delegate: clgpu_delegate.Delegate, limit: float):
    model = make_decoder(decoder, form=form, prefill=(PROMPT,), cache=CACHE).build()
    tokens = [int(t) for t in np.random.default_rng(1).integers(decoder.vocabulary, size=10)]
    reference = Reference(decoder, form)
    expected = [reference.step(token) for token in tokens]
    runners = Runners("ai_edge_litert", model, [delegate])
    assert runners.feed(tokens[:PROMPT]) is None
    for i in range(PROMPT, PROMPT + STEPS):
        error = relative_l2(runners.feed([tokens[i]]), expected[i])
        assert error <= limit, (form, i)


@pytest.mark.parametrize("group", sorted(ODD))
def test_logits_of_odd_sizes_and_shared_heads(group, device, precision):
    delegate = clgpu_delegate.load(device=device, precision=precision)
    assert_logits(ODD[group], "float32", delegate, MODEL_L2[precision])


@pytest.mark.parametrize("form", FORMS)
def test_logits_of_all_forms_of_weights(form, device, precision):
    """Integers are read as floats; stock kernels round what they multiply to int8, too."""
    delegate = clgpu_delegate.load(device=device, precision=precision)
    assert_logits(IN_BLOCKS.get(form, DECODERS["tiny"]), form, delegate, MODEL_L2[precision])


# Depths that NVIDIA's tensor cores take: products end in rotations and updates of caches there.
# All rows are whole blocks, too.
WHOLE = Decoder(128, 2, 4, 2, 64, 256, 96)


@pytest.mark.parametrize("form", FORMS)
def test_logits_of_rows_for_tensor_cores(form, device, precision):
    """The caches are inputs and outputs: new rows, and a copy of all others."""
    delegate = clgpu_delegate.load(device=device, precision=precision)
    assert_logits(WHOLE, form, delegate, MODEL_L2[precision])


@pytest.mark.parametrize("form", ["float16", "int8", "int4", "int4_blocks"])
def test_logits_with_caches_that_stay_on_the_device(form, device, precision):
    """New rows are written into them."""
    got: list[np.ndarray] = []

    def keep(logits: np.ndarray) -> int:
        got.append(logits.copy())
        return int(np.argmax(logits))

    model = make_decoder(WHOLE, form=form, prefill=(PROMPT,), cache=CACHE).build()
    generator = clgpu_delegate.Generator(model, sampler=keep, device=device, precision=precision)
    prompt = [int(t) for t in np.random.default_rng(1).integers(WHOLE.vocabulary, size=10)]
    generated = generator.generate(prompt, max_tokens=STEPS)
    reference = Reference(WHOLE, form)
    expected = [reference.step(token) for token in [*prompt, *generated[:-1]]][-STEPS:]
    for i in range(STEPS):
        assert relative_l2(got[i], expected[i]) <= MODEL_L2[precision], (form, i)


@pytest.mark.parametrize("form", FORMS)
def test_each_signature_is_one_partition(form):
    for decode, prefill in ((True, ()), (False, (5,))):
        decoder = IN_BLOCKS.get(form, DECODERS["tiny"])
        model = make_decoder(
            decoder, form=form, prefill=prefill, decode=decode, cache=CACHE
        ).build()
        delegate = clgpu_delegate.load()
        make_interpreter("ai_edge_litert", model, [delegate]).allocate_tensors()
        report = delegate.explain()
        assert not [f"{n.op}: {n.reason}" for n in report.nodes if not n.claimed]
        assert len(report.partitions) == 1


def test_greedy_tokens_are_those_of_the_stock_runtime(runtime, device):
    prompt, count = [3, 1, 4, 1, 5, 9, 2], 256
    model = make_decoder(DECODERS["tiny"], prefill=(len(prompt) - 1,), cache=300).build()

    def greedy(delegates) -> list[int]:
        runners = Runners(runtime, model, delegates)
        runners.feed(prompt[:-1])
        tokens = prompt[-1:]
        while len(tokens) <= count:
            tokens.append(int(np.argmax(runners.feed(tokens[-1:]))))
        return tokens

    expected = greedy(())
    assert len(set(expected)) > 20, "the tokens go round in a short circle"
    assert greedy([clgpu_delegate.load(device=device)]) == expected


@pytest.mark.skipif(not TOY.exists(), reason=f"{TOY} is missing")
def test_toy_model_with_two_signatures_equals_the_stock_runtime(runtime, device, rng):
    model = TOY.read_bytes()
    delegate = clgpu_delegate.load(device=device)
    stock, ours = (make_interpreter(runtime, model, d) for d in ((), [delegate]))
    for key in stock.get_signature_list():
        runners = [i.get_signature_runner(key) for i in (stock, ours)]
        inputs = {}
        for name, detail in runners[0].get_input_details().items():
            if detail["dtype"] == np.float32:
                inputs[name] = rng.standard_normal(detail["shape"]).astype(np.float32)
            else:
                inputs[name] = rng.integers(1, 90, detail["shape"]).astype(detail["dtype"])
        want, got = (runner(**inputs) for runner in runners)
        assert want.keys() == got.keys()
        assert_close(list(got.values()), list(want.values()), MODEL_L2["fp32"])
    assert all(node.claimed for node in delegate.explain().nodes)

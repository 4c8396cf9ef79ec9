"""Generator: tokens as the stock runtime's, few bytes per step, and all ways to end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from bench.networks.decoder import DECODERS, make_decoder
from clgpu_delegate import (
    ClgpuError,
    Generator,
    InputError,
    ModelError,
    OptionError,
)
from tests.generation.stock import TINY_PROMPT, Stock
from tests.litert.compiled import CompiledModel
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter

MORE = os.environ.get("CLGPU_MORE_MODELS", Path(__file__).parents[3] / "shared/models/more")
TOY = Path(MORE) / "aieq_tests/toy_model_with_kv_cache_multi_signature.tflite"
CACHE = 64
PREFILL = (6, 16)


def decoder(prefill=PREFILL, cache: int = CACHE, **options) -> bytes:
    return make_decoder(DECODERS["tiny"], prefill=prefill, cache=cache, **options).build()


def first(_values: np.ndarray, indices: np.ndarray) -> int:
    """A sampler of the largest."""
    return indices[0]


@pytest.fixture(scope="module")
def model() -> bytes:
    return decoder()


@pytest.fixture(scope="module")
def greedy(model) -> list[int]:
    """What the stock runtime gives after TINY_PROMPT, until the cache is full."""
    return Stock(model).greedy(TINY_PROMPT, CACHE - len(TINY_PROMPT) + 1)


# ---------------------------------------------------------------------- tokens


def test_greedy_tokens_are_those_of_the_stock_runtime(runtime, device):
    model = decoder(cache=300)
    generator = Generator(model, runtime=runtime, device=device)
    assert generator.notes == ()
    assert generator.generate(TINY_PROMPT, max_tokens=256) == Stock(model, runtime).greedy(
        TINY_PROMPT, 256
    )


@pytest.mark.skipif(CompiledModel is None, reason="this LiteRT has no CompiledModel")
def test_compiled_models_give_the_same_tokens(model, greedy):
    generator = Generator(model, api="compiled", zero_copy="off")
    assert generator.generate(TINY_PROMPT, max_tokens=20) == greedy[:20]
    assert generator.notes == ()
    last = generator.delegate.stats()["last_invoke"]
    assert (last["bytes_up"], last["bytes_down"]) == (8, 8)
    generator.reset()
    assert generator.generate(TINY_PROMPT, max_tokens=5) == greedy[:5]


@pytest.mark.skipif(CompiledModel is None, reason="this LiteRT has no CompiledModel")
@pytest.mark.parametrize("options", [
    {"exclude": "DYNAMIC_UPDATE_SLICE"}, {"sampler": first, "top_k": 4}, {"verify": 1},
], ids=["caches on the host", "top_k", "verify"])  # fmt: skip
def test_compiled_models_with_options(options, model, greedy):
    generator = Generator(model, api="compiled", **options)
    assert generator.generate(TINY_PROMPT, max_tokens=4) == greedy[:4]
    assert generator.generate((), max_tokens=4) == greedy[4:8]


@pytest.mark.parametrize("prefill", [(), (1,), (3,), (6,), (16,), (2, 6), (40,), (64,)])
def test_prompts_of_any_length_and_any_chunks(prefill, greedy):
    model = decoder(prefill)
    generator = Generator(model)
    prompts = [TINY_PROMPT[:1], TINY_PROMPT, [*TINY_PROMPT, *greedy[:30]]]
    for prompt in prompts:
        generator.reset()
        assert generator.generate(prompt, max_tokens=4) == Stock(model).greedy(prompt, 4)


def test_a_padded_chunk_does_not_reach_beyond_the_cache(model, greedy):
    generator = Generator(model)
    prompt = [*TINY_PROMPT, *greedy[: CACHE - len(TINY_PROMPT)]]
    assert len(prompt) == CACHE
    assert generator.generate(prompt) == greedy[-1:]


@pytest.mark.parametrize("form", ["int8", "int4_blocks", "float16"])
def test_forms_of_weights(form):
    model = decoder(form=form)
    generator = Generator(model)
    sampled = Generator(model, sampler=lambda logits: int(np.argmax(logits)))
    tokens = generator.generate(TINY_PROMPT, max_tokens=8)
    assert tokens == sampled.generate(TINY_PROMPT, max_tokens=8)
    assert generator.notes == ()


def test_half_precision_keeps_halves(greedy):
    model = decoder(cache=300)
    generator = Generator(model, precision="fp16")
    assert generator.generate(TINY_PROMPT, max_tokens=2) == greedy[:2]
    for entry in generator.delegate.carried():
        assert entry["bytes"] == 2 * np.prod(entry["shape"])
    cache = generator.delegate.read_carried("kv_cache_k_0")
    assert cache.dtype == np.float32
    rows = len(TINY_PROMPT) + 1
    assert np.abs(cache[0, :rows]).min(axis=(1, 2)).all()
    assert (cache == cache.astype(np.float16)).all()


# ---------------------------------------------------------------------- bytes


def test_a_step_moves_tokens_and_positions_only(model, greedy):
    generator = Generator(model, zero_copy="off")
    assert generator.generate(TINY_PROMPT, max_tokens=10) == greedy[:10]
    last = generator.delegate.stats()["last_invoke"]
    assert last["bytes_up"] == 8, "the token and its position"
    assert last["bytes_down"] == 8, "the next token, and the sum that tells of NaN"
    assert last["objects_created"] == 0


def test_a_step_moves_logits_for_a_sampler(model):
    generator = Generator(model, sampler=lambda logits: int(np.argmax(logits)), zero_copy="off")
    generator.generate(TINY_PROMPT, max_tokens=3)
    assert generator.delegate.stats()["last_invoke"]["bytes_down"] == 4 * generator.vocabulary
    assert generator.logits is not None
    assert generator.logits.shape == (generator.vocabulary,)
    top = Generator(model, sampler=first, top_k=3, zero_copy="off")
    top.generate(TINY_PROMPT, max_tokens=3)
    assert top.delegate.stats()["last_invoke"]["bytes_down"] == 24
    assert top.logits is None


def test_a_chunk_moves_tokens_and_positions_only(model):
    generator = Generator(model, zero_copy="off")
    before = generator.delegate.stats()
    generator.generate(list(range(6)), max_tokens=1)  # a padded chunk of 6, and a step
    after = generator.delegate.stats()
    assert after["bytes_up"] - before["bytes_up"] == 6 * 8 + 8
    assert after["bytes_down"] - before["bytes_down"] == 8


@pytest.fixture(scope="module", params=["mapped", "outside"])
def large_file(request, tmp_path_factory) -> Iterator[Path]:
    """A file that a generator cannot rewrite: of 1 GiB and more, or with constants at its end."""
    path = tmp_path_factory.mktemp(request.param) / "model.tflite"
    made = make_decoder(DECODERS["tiny"], prefill=PREFILL, cache=CACHE)
    made.save(path, outside=request.param == "outside")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "mapped":
            patch.setattr("clgpu_delegate.generation.generator._LARGE", 1)
        yield path


APIS = ["interpreter"] + ["compiled"] * (CompiledModel is not None)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("options", "down"), [({}, 8), ({"sampler": first, "top_k": 4}, 32)], ids=["greedy", "top_k"]
)
def test_logits_of_large_files_stay_on_the_device(options, down, api, large_file, greedy):
    generator = Generator(large_file, api=api, zero_copy="off", **options)
    assert generator.generate(TINY_PROMPT, max_tokens=10) == greedy[:10]
    assert generator.notes == ()
    last = generator.delegate.stats()["last_invoke"]
    assert (last["bytes_up"], last["bytes_down"], last["objects_created"]) == (8, down, 0)
    assert generator.logits is None
    generator.reset()
    assert generator.generate(TINY_PROMPT, max_tokens=3) == greedy[:3]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("options", [
    {"precision": "fp16"}, {"verify": 1}, {"exclude": "DYNAMIC_UPDATE_SLICE"},
    {"memory_budget": "60 kB"}, {"sampler": lambda logits: int(np.argmax(logits))},
], ids=["fp16", "verify", "caches on the host", "budget", "sampler"])  # fmt: skip
def test_large_files_with_options(options, api, large_file, greedy):
    generator = Generator(large_file, api=api, **options)
    count = 2 if "precision" in options else 8
    assert generator.generate(TINY_PROMPT, max_tokens=count) == greedy[:count]


def test_logits_of_large_files_that_do_not_stay(large_file, greedy, monkeypatch):
    """They are computed on the CPU, or the device cannot find the largest: a note tells it."""
    sampled = {"sampler": first, "top_k": 4}
    for options in ({}, sampled):
        generator = Generator(large_file, exclude="FULLY_CONNECTED", **options)
        assert generator.notes[-1] == (
            "logits in 'decode': no partition on the device computes its output"
        )
        assert generator.generate(TINY_PROMPT, max_tokens=4) == greedy[:4]

    def fails(*_: object) -> None:
        raise ClgpuError("no kernel of topk works")

    monkeypatch.setattr("clgpu_delegate.Delegate._largest_carried", fails)
    for options in ({}, sampled):
        generator = Generator(large_file, zero_copy="off", **options)
        assert generator.notes == (
            "logits: the device cannot find the largest: no kernel of topk works",
        )
        assert generator.generate(TINY_PROMPT, max_tokens=4) == greedy[:4]


def test_large_files_whose_decoder_takes_many_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr("clgpu_delegate.generation.generator._LARGE", 1)
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_model(count=4))
    generator = Generator(path, sampler=first, top_k=2)
    wanted = Generator(path.read_bytes(), sampler=first, top_k=2)
    assert generator.generate([1, 1, 2]) == wanted.generate([1, 1, 2])
    path.write_bytes(tiny_model(factor=float("nan")))
    for options in ({}, {"sampler": first, "top_k": 2}):
        generator = Generator(path, **options)
        with pytest.raises(ClgpuError, match=r"the logits after 0 tokens are not numbers \(NaN\)"):
            generator.generate([1], max_tokens=1)


def test_caches_are_written_in_place(model):
    generator = Generator(model)
    generator.generate(TINY_PROMPT, max_tokens=3)
    kernels = {launch.kernel for launch in generator.delegate.launch_times(1)}
    assert "dynamic_update_slice_write" in kernels
    assert "dynamic_update_slice_select" not in kernels


def test_signatures_share_their_weights(device):
    model = decoder((), cache=16)
    more = decoder((4, 8), cache=16)

    def device_bytes(content: bytes) -> int:
        before = clgpu_delegate.load(device=device).stats()["device_bytes"]
        generator = Generator(content, device=device)
        generator.generate(range(12), max_tokens=1)
        used = generator.delegate.stats()["device_bytes"] - before
        del generator
        assert clgpu_delegate.load(device=device).stats()["device_bytes"] == before
        return used

    alone = device_bytes(model)
    assert alone > len(model) * 3 // 4
    assert device_bytes(more) < 2 * alone


# ---------------------------------------------------------------------- conversations


def test_conversations_continue(model):
    generator, stock = Generator(model), Stock(model)
    said: list[int] = []
    for words, count in (TINY_PROMPT, 5), ([7], 1), ([8, 9, 10, 11, 12, 13, 14, 15], 4), ((), 3):
        got = generator.generate(words, max_tokens=count)
        assert got == stock.greedy([*said[-1:], *words], count)
        said = got
    assert generator.position == 7 + 1 + 8 + 5 + 1 + 4 + 3 - 1


def test_reset_begins_anew(model, greedy):
    generator = Generator(model)
    generator.generate([5, 6], max_tokens=7)
    generator.reset()
    assert generator.position == 0
    for entry in generator.delegate.carried():
        assert not generator.delegate.read_carried(entry["name"]).any()
    assert generator.generate(TINY_PROMPT, max_tokens=9) == greedy[:9]


def test_stop_tokens_belong_to_the_conversation(model, greedy):
    end = greedy[4]
    at = greedy.index(end)
    generator = Generator(model)
    with generator.stream(TINY_PROMPT, stop=[end]) as generation:
        assert list(generation) == greedy[:at]
    assert generation.finish_reason == "stop"
    assert generator.generate((), max_tokens=2) == greedy[at + 1 : at + 3]


def test_it_ends_when_the_caches_are_full(model, greedy):
    generator = Generator(model)
    generation = generator.stream(TINY_PROMPT)
    assert list(generation) == greedy == generation.tokens
    assert generation.finish_reason == "cache"
    assert generator.position == generator.length == CACHE
    with pytest.raises(
        InputError,
        match="1 tokens to read and 1 to generate need 1 positions; "
        "the caches have 64, of which 64 are taken",
    ):
        generator.generate(())


def test_tokens_come_as_they_are_computed(model, greedy):
    generator = Generator(model)
    generation = generator.stream(TINY_PROMPT, max_tokens=3)
    assert generation.finish_reason == ""
    assert generator.position == 0
    assert next(generation) == greedy[0]
    assert generator.position == len(TINY_PROMPT)
    assert list(generation) == greedy[1:3]
    assert generation.finish_reason == "length"
    with pytest.raises(StopIteration):
        next(generation)


def test_closing_and_cancelling(model, greedy):
    generator = Generator(model)
    with generator.stream(TINY_PROMPT) as generation:
        assert next(generation) == greedy[0]
    assert generation.finish_reason == "cancelled"
    assert list(generation) == []
    assert generator.generate((), max_tokens=2) == greedy[1:3]

    generation = generator.stream(())
    next(generation)
    thread = threading.Thread(target=generation.cancel)
    thread.start()
    thread.join()
    assert list(generation) == []
    assert generation.finish_reason == "cancelled"
    assert generator.generate((), max_tokens=1) == greedy[4:5]


def test_an_interrupt_loses_nothing(model, greedy):
    class Interrupting:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, logits: np.ndarray) -> int:
            self.calls += 1
            if self.calls == 3:
                raise KeyboardInterrupt
            return int(np.argmax(logits))

    generator = Generator(model, sampler=Interrupting())
    generation = generator.stream(TINY_PROMPT)
    with pytest.raises(KeyboardInterrupt):
        list(generation)
    assert generation.tokens == greedy[:2]
    # The sampler has not chosen, so the user does.
    assert generator.generate([greedy[2]], max_tokens=3) == greedy[3:6]


def test_an_older_generation_ends(model):
    generator = Generator(model)
    old = generator.stream(TINY_PROMPT)
    next(old)
    generator.stream(())
    with pytest.raises(ClgpuError, match="another generation, or a new conversation, has begun"):
        next(old)
    new = generator.stream(())
    generator.reset()
    with pytest.raises(ClgpuError, match="another generation, or a new conversation, has begun"):
        next(new)


def test_two_generators_in_two_threads(model, greedy, device):
    results: dict[int, list[list[int]]] = {0: [], 1: []}
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            generator = Generator(model, device=device)
            for _ in range(3):
                generator.reset()
                results[number].append(generator.generate(TINY_PROMPT[number:], max_tokens=20))
        except BaseException as error:  # told below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert results[0] == [greedy[:20]] * 3
    assert results[1] == [Stock(model).greedy(TINY_PROMPT[1:], 20)] * 3


# ---------------------------------------------------------------------- samplers


def test_a_sampler_gets_logits_or_the_largest(model):
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    def third(values: np.ndarray, indices: np.ndarray) -> int:
        seen.append((values.copy(), indices.copy()))
        return indices[2]

    tokens = Generator(model, sampler=third, top_k=5).generate(TINY_PROMPT, max_tokens=6)
    stock = Stock(model)
    logits = [stock.logits(token) for token in TINY_PROMPT][-1]
    for token, (values, indices) in zip(tokens, seen):
        order = np.argsort(-logits, kind="stable")[:5]
        assert indices.tolist() == order.tolist()
        np.testing.assert_allclose(values, logits[order], rtol=1e-4, atol=1e-5)
        assert token == order[2]
        logits = stock.logits(token)


def test_what_a_sampler_may_not_give(model):
    for chosen, message in (
        (96, "token 96, outside of the vocabulary, 0 to 95"),
        (0.5, "what the sampler gives is 0.5; allowed: integers"),
    ):
        generator = Generator(model, sampler=lambda _, chosen=chosen: chosen)
        with pytest.raises(InputError, match=message):
            generator.generate(TINY_PROMPT, max_tokens=1)


# ---------------------------------------------------------------------- other devices than one


@pytest.mark.parametrize("options", [
    {"exclude": "DYNAMIC_UPDATE_SLICE"},  # no cache stays on the device
    {"exclude": "SOFTMAX"},  # several partitions
    {"exclude": "TRANSPOSE"},  # other nodes read what was written
    {"verify": 1},
    {"chain": "on"},
    {"command_list": "on"},
    {"share_memory": False},
    {"memory_pool": "process", "warm_up": False},
], ids=str)  # fmt: skip
def test_options_that_change_where_caches_go(options, model, greedy):
    generator = Generator(model, **options)
    tokens = generator.generate(TINY_PROMPT, max_tokens=5)
    tokens += generator.generate((), max_tokens=15)
    assert tokens == greedy[:20]


def test_notes_tell_which_caches_cross_the_bus(model):
    generator = Generator(model, exclude="DYNAMIC_UPDATE_SLICE")
    assert len(generator.notes) == 4 * 3
    assert generator.notes[0] == (
        "kv_cache_k_0 in 'decode': no partition on the device computes its output"
    )
    generator = Generator(model, exclude="TRANSPOSE")
    assert "kv_cache_k_0 in 'decode': other nodes read its output" in generator.notes


# ---------------------------------------------------------------------- other models


@pytest.mark.skipif(not TOY.exists(), reason=f"{TOY} is missing")
def test_other_names(runtime):
    """Its signatures take 100 tokens and compute their caches anew each time."""
    generator = Generator(
        TOY, prefill=["signature_1"], decode="signature_2", positions="positions",
        caches={"cache_0": "output_1_0", "cache_1": "output_1_1"}, logits="output_0",
        runtime=runtime,
    )  # fmt: skip
    assert (generator.length, generator.vocabulary) == (100, 400)
    tokens = [generator.generate(words, max_tokens=1)[0] for words in ([5, 6, 7], [], [9])]
    runner = make_interpreter(runtime, TOY.read_bytes(), ()).get_signature_runner("signature_2")
    position, feed = 0, [5, 6, 7]
    for words, token in zip(([], [], [9]), tokens):
        feed = [*feed, *words]
        given = np.zeros((1, 100), np.int32)
        given[0, : len(feed)] = feed
        places = np.minimum(np.arange(position, position + 100), 99).astype(np.int32)
        caches = np.zeros((1, 100, 4, 4), np.float32)
        outputs = runner(tokens=given, positions=places[None], cache_0=caches, cache_1=caches)
        position += len(feed)
        assert int(np.argmax(outputs["output_0"][0, len(feed) - 1])) == token
        feed = [token]


def tiny_model(*, prefill: tuple[int, ...] = (), count: int = 1, **options) -> bytes:
    """Logits are the sum of caches of one-hot rows, times a factor: the most frequent token."""
    m = ModelMaker()
    tiny_graph(m, "decode", count, **options)
    for chunk in prefill:
        tiny_graph(m.subgraph(), f"prefill_{chunk}", chunk, **options)
    return m.build()


def tiny_graph(
    m: ModelMaker, key: str, n: int, *, update: str = "rows", names: tuple[str, ...] = ("seen",),
    factor: float = 1.0, extra: bool = False, mask: bool = False, batch: int = 1, places: int = 0,
    int8: bool = False, few: bool = False,
) -> None:  # fmt: skip
    """A signature that takes n tokens; the next cache counts ten times the one before."""
    tokens = m.input("tokens", (batch, n), np.int32)
    inputs = {"tokens": tokens, "input_pos": m.input("input_pos", (places or n,), np.int32)}
    on, off, zero = m.constant(np.float32(1)), m.constant(np.float32(0)), ints(m, 0)
    at = m.op("SLICE", [inputs["input_pos"], zero, ints(m, 1)], (1,), dtype=np.int32)
    hot = [tokens, m.constant(np.int32(5)), on, off]
    row = m.op("ONE_HOT", hot, (batch, n, 5), dtype=np.float32, axis=-1)
    outputs: dict[str, int] = {}
    logits = 0
    for name in names:
        if outputs:
            row = m.op("MUL", [row, m.constant(np.float32(10))], (batch, n, 5))
        shape = (1, 2, 8, 5) if update == "columns" else (batch, 8, 5)
        cache = inputs[name] = m.input(f"cache {len(outputs)}", shape)
        if update == "rows":
            start = m.op("CONCATENATION", [zero, at, zero], (3,), dtype=np.int32, axis=0)
            after = seen = m.op("DYNAMIC_UPDATE_SLICE", [cache, row, start], (batch, 8, 5))
        elif update == "columns":
            start = m.op("CONCATENATION", [zero, zero, at, zero], (4,), dtype=np.int32, axis=0)
            head = m.op("RESHAPE", [row, ints(m, 1, 1, n, 5)], (1, 1, n, 5))
            heads = m.op("CONCATENATION", [head, head], (1, 2, n, 5), axis=1)
            after = m.op("DYNAMIC_UPDATE_SLICE", [cache, heads, start], (1, 2, 8, 5))
            seen = m.op("RESHAPE", [after, ints(m, 1, 16, 5)], (1, 16, 5))
        elif update == "window":
            both = m.op("CONCATENATION", [cache, row], (1, 8 + n, 5), axis=1)
            after = seen = m.op("SLICE", [both, ints(m, 0, n, 0), ints(m, 1, 8, 5)], (1, 8, 5))
        else:
            total = m.op("SUM", [row, ints(m, 1)], (1, 1, 5), keep_dims=True)
            share = m.op("MUL", [total, m.constant(np.float32(1 / 8))], (1, 1, 5))
            after = seen = m.op("ADD", [cache, share], (1, 8, 5))
        if mask:
            inputs["mask"] = m.input("mask", (1, 8), np.float32)
            open_ = m.op("EXP", [inputs["mask"]], (1, 8))
            open_ = m.op("RESHAPE", [open_, ints(m, 1, 8, 1)], (1, 8, 1))
            seen = m.op("MUL", [seen, open_], (1, 8, 5))
        summed = m.op("SUM", [seen, ints(m, 1)], (batch, 5))
        logits = m.op("ADD", [logits, summed], (batch, 5)) if outputs else summed
        outputs[name] = after
    logits = m.op("MUL", [logits, m.constant(np.float32(factor))], (batch, 5))
    if extra:
        inputs["style"] = m.input("style", (1,), np.float32)
        logits = m.op("ADD", [logits, inputs["style"]], (1, 5))
    if not few and n > 1:
        logits = m.op("RESHAPE", [logits, ints(m, 1, 1, 5)], (1, 1, 5))
        logits = m.op("ADD", [logits, m.constant(np.zeros((1, n, 5), np.float32))], (1, n, 5))
    if int8:
        logits = m.op("QUANTIZE", [logits], (1, 5), dtype=np.int8, quantization=(0.5, 0))
    if key == "decode":
        outputs["logits"] = logits
    m.output(*outputs.values())
    m.signature(key, inputs, outputs)


def ints(m: ModelMaker, *values: int) -> int:
    return m.constant(np.array(values, np.int32))


def likeliest(logits: np.ndarray) -> int:
    return int(np.argmax(logits))


def test_a_mask_opens_what_was_written():
    for mask in (False, True):
        generator = Generator(tiny_model(mask=mask))
        assert generator.generate([2, 3, 3], max_tokens=4) == [3, 3, 3, 3]


@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("update", ["sum", "window"])
def test_chunks_are_padded_for_caches_that_are_written_by_position_only(
    update, mapped, tmp_path, monkeypatch
):
    """Padding would count as tokens; a file of 1 GiB and more is mapped."""
    if mapped:
        monkeypatch.setattr("clgpu_delegate.generation.generator._LARGE", 1)
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_model(update=update, prefill=(2, 6)))
    generator = Generator(path, length=64, sampler=likeliest)
    generator.generate([1, 2, 1, 3, 3, 2], max_tokens=1)
    assert generator.logits is not None
    np.testing.assert_allclose(generator.logits, [0, 2, 2, 2, 0], rtol=1e-5)
    with pytest.raises(
        ModelError,
        match="'decode' takes 4 tokens, and its cache 'seen' is not written by position",
    ):
        Generator(tiny_model(update=update, count=4))


def test_names_of_caches_that_no_option_can_have():
    generator = Generator(tiny_model(names=("k_0", "k:0", "k=0")), sampler=likeliest)
    generator.generate([1, 2, 2], max_tokens=1)
    assert generator.logits is not None
    assert generator.logits.tolist() == [0, 111, 222, 0, 0]
    found = {entry["name"] for entry in generator.delegate.carried()}
    assert found == {"k_0", "k_0_2", "k_0_3"}


def test_a_chunk_as_long_as_the_caches_does_not_hide_their_axis():
    for update in "rows", "columns":
        assert Generator(tiny_model(update=update, prefill=(8,))).length == 8


def test_a_decoder_of_many_tokens_ends_when_it_has_no_room():
    # Padding is token 0, and the model has no mask.
    generator = Generator(tiny_model(count=4), sampler=lambda logits: 1 + likeliest(logits[1:]))
    generation = generator.stream([1, 1, 2])
    assert list(generation) == [1, 1, 1]
    assert (generation.finish_reason, generator.position) == ("cache", 5)
    with pytest.raises(
        InputError, match="need 4 positions; the caches have 8, of which 5 are taken; 'decode' "
        "writes 4 at a time"
    ):  # fmt: skip
        generator.stream([])
    generator.reset()
    with pytest.raises(InputError, match="3 tokens to read and 4 to generate need 9 positions"):
        generator.stream([1, 1, 2], max_tokens=4)
    # The last ones fill a step.
    assert generator.generate([3, 1, 1, 2, 2, 2, 2, 2], max_tokens=1) == [2]
    assert generator.position == 8


# ---------------------------------------------------------------------- interrupts and threads


def interrupted(generator: Generator, when: str) -> None:
    """Let its next step be interrupted, before or after it has run."""
    run = generator._engine.run

    def once(step) -> None:
        generator._engine.run = run
        if when == "after":
            run(step)
        raise KeyboardInterrupt

    generator._engine.run = once


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_step(when, model, greedy):
    generator = Generator(model)
    assert generator.generate(TINY_PROMPT, max_tokens=3) == greedy[:3]
    interrupted(generator, when)
    with pytest.raises(KeyboardInterrupt):
        generator.generate((), max_tokens=1)
    assert generator.generate((), max_tokens=3) == greedy[3:6]

    generator = Generator(tiny_model(update="sum"), length=64, sampler=likeliest)
    generation = generator.stream([1, 2, 2])
    interrupted(generator, when)
    with pytest.raises(KeyboardInterrupt):
        next(generation)
    for again in generation.__next__, lambda: generator.stream([1]):
        with pytest.raises(
            ClgpuError, match=r"the cache 'seen', .* may have its tokens or not; call reset\(\)"
        ):
            again()
    generator.reset()
    assert generator.generate([1, 2, 2], max_tokens=1) == [2]
    np.testing.assert_allclose(generator.logits, [0, 1, 2, 0, 0], rtol=1e-5)


def test_a_reset_that_fails(model, greedy, monkeypatch):
    generator = Generator(model)
    generator.generate(TINY_PROMPT, max_tokens=1)

    def interrupt(_self) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(clgpu_delegate.Delegate, "clear_carried", interrupt)
        with pytest.raises(KeyboardInterrupt):
            generator.reset()
    with pytest.raises(ClgpuError, match=r"the last reset\(\) has failed or was interrupted"):
        generator.generate([1])
    generator.reset()
    assert generator.generate(TINY_PROMPT, max_tokens=2) == greedy[:2]


def test_a_sampler_cannot_use_its_own_generator():
    uses: list[Callable[[], object]] = []
    generator = Generator(tiny_model(), sampler=lambda _: uses.pop()())
    for use in generator.reset, lambda: generator.stream([1]), lambda: generator.generate([1]):
        uses.append(use)
        with pytest.raises(ClgpuError, match="a sampler cannot use its own generator"):
            generator.generate([1], max_tokens=1)
    assert generator.position == 3
    generator.reset()
    assert generator.position == 0


@pytest.mark.parametrize("stop", [(), (3,)])
def test_closing_while_a_token_is_computed(stop):
    def sampler(_logits: np.ndarray) -> int:
        thread = threading.Thread(target=generation.close)
        thread.start()
        thread.join()
        return 3

    generator = Generator(tiny_model(), sampler=sampler)
    generation = generator.stream([1, 2], stop=stop)
    assert list(generation) == generation.tokens == []
    assert generation.finish_reason == "cancelled"
    assert generator.position == 2


@pytest.mark.skipif(CompiledModel is None, reason="this LiteRT has no CompiledModel")
def test_compiled_models_of_two_threads_have_delegates_of_their_own():
    generators: list[Generator] = []

    def work(name: str) -> None:
        generators.append(Generator(tiny_model(names=(name,)), api="compiled"))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [generator.delegate.carried()[0]["name"] for generator in generators]
    assert sorted(found) == list("abcd")
    assert [generator._option_names for generator in generators] == [{n: n} for n in found]


# ---------------------------------------------------------------------- bad input


def test_bad_prompts(model):
    generator = Generator(model)
    for prompt, options, message in (
        ([], {}, "the prompt is empty; give at least one token"),
        ([1, 96], {}, "token 96 at place 1 of the prompt is outside of the vocabulary, 0 to 95"),
        ([-1], {}, "token -1 at place 0 of the prompt is outside of the vocabulary"),
        ([1.5], {}, "a token of the prompt is 1.5; allowed: integers"),
        ([1], {"max_tokens": 0}, "max_tokens is 0; allowed: 1 and more"),
        ([1], {"max_tokens": 2.0}, "max_tokens is 2.0; allowed: integers"),
        ([1], {"stop": ["."]}, "a stop token is '.'; allowed: integers"),
        ([1] * 65, {}, "65 tokens to read and 1 to generate need 65 positions; the caches have 64"),
        ([1] * 60, {"max_tokens": 6}, "60 tokens to read and 6 to generate need 65 positions"),
    ):
        with pytest.raises(InputError, match=message):
            generator.generate(prompt, **options)
    assert generator.position == 0
    assert len(generator.generate([1] * 60, max_tokens=5)) == 5


def test_bad_names_and_models(model):
    for options, message in (
        ({"decode": "encode"}, "the model has no signature 'encode'; it has 'decode', 'prefill_6'"),
        ({"prefill": ["x"]}, "the model has no signature 'x'"),
        ({"tokens": "words"}, "the signature 'decode' has no input 'words'; it has 'input_pos'"),
        ({"caches": {"a": "b"}}, "the signature 'decode' has no input 'a'"),
        ({"caches": {"tokens": "b"}}, "the signature 'decode' has no output 'b'"),
        (
            {"caches": {"kv_cache_k_0": "kv_cache_k_0", "kv_cache_v_0": "kv_cache_k_0"}},
            "caches has the output 'kv_cache_k_0' for the inputs 'kv_cache_k_0' and 'kv_cache_v_0'",
        ),
        ({"length": 0}, "length is 0; allowed: 1 and more"),
        ({"length": 65}, "length is 65; the caches have 64 positions"),
        ({"top_k": 3}, "top_k needs a sampler"),
        ({"top_k": 97, "sampler": max}, "top_k is 97; allowed: 1 to 96"),
        ({"carry": "a=0/1/2"}, "the option 'carry' is set by the generator"),
        ({"api": "c"}, "api is 'c'; allowed: interpreter, compiled"),
    ):
        with pytest.raises(OptionError, match=message):
            Generator(model, **options)
    for options, message in (
        ({"caches": {"tokens": "logits"}}, "the cache 'tokens' of the signature 'decode' is int32"),
        ({"decode": "prefill_6", "prefill": []}, "has no output for the logits; name it with "),
        ({"caches": {"kv_cache_k_0": "kv_cache_k_0"}}, "has an input 'kv_cache_"),
    ):
        with pytest.raises(ModelError, match=message):
            Generator(model, **options)
    for options, message in (
        ({"extra": True}, "has an input 'style' that is no token, position, mask"),
        ({"int8": True}, "the output 'logits' of the signature 'decode' is int8; logits are float"),
        ({"count": 4, "few": True}, r"'logits' of the signature 'decode' has the shape \[1, 5\]"),
        ({"batch": 2}, r"the input 'tokens' of the signature 'decode' has the shape \[2, 1\]"),
        ({"count": 2, "places": 3}, r"'input_pos' .* shape \[3\]; .* one position, or 2"),
    ):
        with pytest.raises(ModelError, match=message):
            Generator(tiny_model(**options))
    m = ModelMaker()
    m.output(m.op("TANH", [m.input("x", (1, 4))], (1, 4)))
    with pytest.raises(
        ModelError, match="no signature is called 'decode'; name it with decode=, one of none"
    ):
        Generator(m.build())


def test_bad_values_and_options_of_carried_tensors():
    generator = Generator(tiny_model())
    with pytest.raises(OptionError, match=r"'seen' is float32.*; the value is int64"):
        generator.delegate.write_carried("seen", [1, 2])
    for graphs in {0: 5}, {0: (1,)}, {0: "ab"}, {None: (1, 2)}, {0: (True, 2)}:
        with pytest.raises(OptionError, match=r"allowed: a dict of name: \{graph"):
            clgpu_delegate.load(carry={"a": graphs})


def test_logits_that_are_not_numbers():
    for options in ({}, {"sampler": lambda logits: int(np.argmax(logits))},
                    {"sampler": first, "top_k": 2}):  # fmt: skip
        generator = Generator(tiny_model(factor=float("nan")), **options)
        with pytest.raises(ClgpuError, match=r"the logits after 0 tokens are not numbers \(NaN\)"):
            generator.generate([1], max_tokens=1)


def test_what_it_tells(model):
    generator = Generator(model)
    assert (generator.length, generator.vocabulary, generator.position) == (CACHE, 96, 0)
    assert generator.logits is None
    assert isinstance(generator.delegate, clgpu_delegate.Delegate)

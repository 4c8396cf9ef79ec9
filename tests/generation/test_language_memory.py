"""Memory of language models: on the device within a budget, and on the host while they load."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clgpu_delegate
from bench.networks.decoder import FORMS, Decoder, make_decoder
from clgpu_delegate import ClgpuError, Generator
from tests.generation.stock import TINY_PROMPT, Stock
from tests.runtimes import make_interpreter

# Weights are most of its memory, and none of them is most of the weights.
LARGE = Decoder(256, 4, 4, 2, 64, 640, 1024)
LONG_PROMPT = TINY_PROMPT * 4
QUANTIZED = [form for form in FORMS if form not in ("float32", "float16")]


def model_of(decoder: Decoder, form: str, prefill: tuple[int, ...]) -> bytes:
    return make_decoder(decoder, form=form, prefill=prefill, cache=40).build()


@pytest.mark.parametrize("prefill", [(), (6,)])
@pytest.mark.parametrize("form", FORMS)
def test_a_quarter_of_the_weights_suffices(form, prefill, device):
    """Weights wait on the host; tokens are those without a budget."""
    model = model_of(LARGE, form, prefill)
    generator = Generator(model, device=device)
    budget = generator.delegate.explain().partitions[0].weights_bytes // 4
    wanted = generator.generate(TINY_PROMPT, max_tokens=6)
    if form == "float32":
        assert wanted == Stock(model).greedy(TINY_PROMPT, 6)
    del generator
    before = _device_bytes(device)
    generator = Generator(model, device=device, memory_budget=budget)
    assert generator.generate(TINY_PROMPT, max_tokens=6) == wanted
    assert generator.delegate.explain().peak_bytes <= budget
    assert generator.delegate.stats()["device_bytes"] - before <= budget


def _device_bytes(device: str) -> int:
    return int(clgpu_delegate.load(device=device).stats()["device_bytes"])


class Counted:
    """What a generator takes of the device, by the count and by its report."""

    def __init__(self, model: bytes, device: str, **options) -> None:
        # In the interpreter's memory, inputs and outputs would not be in the arena.
        options = {"device": device, "zero_copy": "off", **options}
        delegate = clgpu_delegate.load(device=device)
        gc.collect()
        delegate._native.reset_peak()
        before = _device_bytes(device)
        generator = Generator(model, **options)
        self.tokens = generator.generate(LONG_PROMPT, max_tokens=3)
        self.notes = generator.notes
        self.told = generator.delegate.explain()
        stats = generator.delegate.stats()
        self.now = stats["device_bytes"] - before
        self.peak = stats["peak_device_bytes"] - before


@pytest.mark.parametrize("budget", [None, 0.9, 0.25], ids=["all", "most", "quarter"])
@pytest.mark.parametrize("prefill", [(), (16,), (16, 32)])
@pytest.mark.parametrize("form", ["float32", "int8", "int4", "int4_blocks"])
def test_the_predicted_peak_is_the_counted_one(form, prefill, budget, device, precision):
    """With caches, and with graphs that share some of their weights."""
    model = model_of(LARGE, form, prefill)
    options = {"precision": precision}
    counted = Counted(model, device, **options)
    if budget is not None:
        weights = counted.told.partitions[0].weights_bytes
        options["memory_budget"] = int(weights * budget)
        counted = Counted(model, device, **options)
        assert counted.peak <= options["memory_budget"]
    told = counted.told
    assert counted.peak == told.peak_bytes
    if budget is None:
        assert counted.now == told.arena_bytes + told.weights_bytes + told.carried_bytes
    caches = 2 * LARGE.layers * 40 * LARGE.key_heads * LARGE.depth
    assert told.carried_bytes == caches * (2 if precision == "fp16" else 4)


@pytest.mark.parametrize("api", ["interpreter", "compiled"])
@pytest.mark.parametrize("form", ["float32", "int8", "int4"])
def test_all_graphs_together_keep_to_the_budget(form, api, device):
    """The one that is planned first leaves room for the others."""
    if api == "compiled":
        pytest.importorskip("ai_edge_litert")
    model = model_of(LARGE, form, (16,))
    free = Counted(model, device)
    weights = free.told.partitions[0].weights_bytes
    for share in (1.2, 1.0, 0.9, 0.75, 0.5):
        budget = int(weights * share)
        counted = Counted(model, device, memory_budget=budget, api=api)
        assert counted.peak <= budget, share
        assert counted.tokens == free.tokens
        assert not counted.notes


def test_graphs_that_carry_nothing_keep_to_the_budget_together(device, runtime):
    """They share neither weights nor the arena; each counts as a whole."""
    model = model_of(LARGE, "int8", (16,))

    def peak_of(**options) -> int:
        delegate = clgpu_delegate.load(device=device, zero_copy="off", **options)
        gc.collect()
        delegate._native.reset_peak()
        before = delegate.stats()["device_bytes"]
        interpreter = make_interpreter(runtime, model, [delegate])
        for key in interpreter.get_signature_list():
            interpreter.get_signature_runner(key)
        peak = delegate.stats()["peak_device_bytes"] - before
        assert delegate.explain().peak_bytes == peak
        return int(peak)

    free = peak_of()
    for share in (0.9, 0.5, 0.25):
        assert peak_of(memory_budget=int(free * share)) <= free * share


def test_a_budget_that_is_too_small_for_all_graphs_is_an_error(device):
    """It names the smallest that suffices, which is more than one graph needs."""
    model = model_of(LARGE, "float32", (16, 32))
    with pytest.raises(ClgpuError, match="fit") as error:
        Generator(model, device=device, memory_budget=100_000)
    least = int(re.findall(r"\((\d+) bytes\)", str(error.value))[-1])
    with pytest.raises(ClgpuError, match=r"graphs, such as its signatures") as error:
        Generator(model, device=device, memory_budget=least)
    of_all = int(re.findall(r"\((\d+) bytes\)", str(error.value))[-1])
    assert of_all > least
    counted = Counted(model, device, memory_budget=of_all)
    assert counted.peak <= of_all


def test_graphs_share_arena_and_weights(device):
    """Beside the decoder's, a signature for prompts has only weights that it stores otherwise.

    Of one token it computes as the decoder does. Of 32 it does so on the processor, but for
    integers of 4 bits, of which it then has a second form; GPUs have one for others, too.
    """
    is_cpu = clgpu_delegate.devices()[int(device)].type == "cpu"
    for form in ("float32", *QUANTIZED):
        model = model_of(LARGE, form, ())
        alone = Counted(model, device).told
        for count in (1, 32):
            both = Counted(model_of(LARGE, form, (count,)), device).told
            assert both.carried_bytes == alone.carried_bytes
            factor = both.weights_bytes / alone.weights_bytes
            if count == 1 or (is_cpu and form in ("float32", "int8")):
                assert factor < 1.01, (form, count)
            elif is_cpu:
                assert 1.4 < factor < 2.1, (form, count)


CHILD = """
import json, re, sys
from clgpu_delegate import Generator, ClgpuError
generator = Generator(sys.argv[1], device=sys.argv[2], warm_up=False)
generator.generate([3, 1, 4], max_tokens=2)
with open("/proc/self/status") as file:
    peak = int(re.search(r"^VmHWM:\\s+(\\d+) kB$", file.read(), re.M)[1]) * 1024
print(json.dumps([peak, generator.delegate.stats()["peak_device_bytes"]]))
"""


def host_and_device(path: Path, device: str) -> tuple[int, int]:
    """Peaks of a process that loads a decoder and runs it."""
    command = [sys.executable, "-c", CHILD, str(path), device]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    host, on_device = json.loads(done.stdout.splitlines()[-1])
    return host, on_device


@pytest.mark.slow
@pytest.mark.parametrize("form", ["float32", "int8", "int4", "int4_blocks"])
def test_the_host_has_no_second_copy_of_the_weights(form, device, tmp_path):
    """On a CPU the device's memory is the host's: with the weights grow it and the file."""
    info = clgpu_delegate.devices()[int(device)]
    if info.type != "cpu":
        pytest.skip("measures devices that share the host's memory")
    sizes = []
    for vocabulary in (1024, 24 * 1024):
        path = tmp_path / f"{vocabulary}.tflite"
        decoder = Decoder(1024, 1, 4, 2, 64, 1024, vocabulary)
        path.write_bytes(model_of(decoder, form, (4,)))
        sizes.append((*host_and_device(path, device), path.stat().st_size))
    host, on_device, file = (large - small for small, large in zip(*sizes))
    assert file > 40 << 20
    assert host <= on_device + file + (8 << 20), (host >> 20, on_device >> 20, file >> 20)

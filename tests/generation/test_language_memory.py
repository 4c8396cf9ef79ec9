"""Memory of language models: on the device within a budget, and on the host while they load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import clgpu_delegate
from bench.networks.decoder import BLOCKS, DECODERS, FORMS, Decoder, make_decoder
from clgpu_delegate import Generator
from tests.generation.stock import TINY_PROMPT, Stock

# Weights are most of its memory, and none of them is most of the weights.
LARGE = Decoder(256, 4, 4, 2, 64, 640, 1024)
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
    (partition,) = generator.delegate.explain().partitions
    assert partition.peak_bytes <= budget
    assert generator.delegate.stats()["device_bytes"] - before <= budget


def _device_bytes(device: str) -> int:
    return int(clgpu_delegate.load(device=device).stats()["device_bytes"])


def test_graphs_share_arena_and_weights(device):
    """A signature for prompts needs no memory beyond that of the larger one of both."""
    for form in ("float32", *QUANTIZED):
        decoder = LARGE if form in BLOCKS else DECODERS["tiny"]
        if form in BLOCKS and decoder.width % BLOCKS[form]:
            continue
        held = []
        for prefill in ((), (1,)):
            generator = Generator(model_of(decoder, form, prefill), device=device)
            generator.generate(TINY_PROMPT, max_tokens=2)
            before = generator.delegate.stats()["device_bytes"]
            del generator
            held.append(before - _device_bytes(device))
        assert held[1] <= held[0] * 1.01 + 4096, form


CHILD = """
import json, re, sys
from clgpu_delegate import Generator
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

"""Decoders that litert-torch exports run whole, where it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import Generator
from tests.generation.exported import CACHE
from tests.generation.stock import TINY_PROMPT, Stock
from tests.models.comparison import relative_l2
from tests.runtimes import make_interpreter
from tests.tolerance import MODEL_L2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("litert_torch") is None, reason="litert-torch is not installed"
    ),
]

RUNTIME = "ai_edge_litert"
FLOATS = ("none", "fp16")
FORMS = (*FLOATS, "dynamic_int8", "weight_only_int8", "dynamic_int4_block32",
         "dynamic_int4_block128")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Hold a file for each form of weights."""
    made = tmp_path_factory.mktemp("exported")
    command = [sys.executable, "-m", "tests.generation.exported", str(made), *FORMS]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=1200,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return made


@pytest.mark.parametrize("form", FORMS)
def test_each_signature_is_one_partition(form, folder, device):
    model = (folder / f"{form}.tflite").read_bytes()
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(RUNTIME, model, [delegate])
    interpreter.allocate_tensors()
    report = delegate.explain()
    assert not [f"{n.op}: {n.reason}" for n in report.nodes if not n.claimed]
    assert len(report.partitions) == 1
    passes = {step.pass_name for step in report.steps if step.outcome == "applied"}
    assert {"fuse_rotation", "fuse_swish", "fuse_residual"} <= passes


@pytest.mark.parametrize("form", FLOATS)
def test_tokens_are_those_of_the_stock_runtime(form, folder, device):
    model = (folder / f"{form}.tflite").read_bytes()
    count = CACHE - len(TINY_PROMPT) + 1
    expected = Stock(model, RUNTIME).greedy(TINY_PROMPT, count)
    assert len(set(expected)) > 10, "the tokens go round in a short circle"
    generator = Generator(model, device=device, runtime=RUNTIME)
    assert generator.generate(TINY_PROMPT, max_tokens=count) == expected
    assert generator.length == CACHE
    # Files that litert-torch quantises may have data behind their end, and are not rewritten.
    assert form != "none" or generator.notes == ()


@pytest.mark.parametrize("form", FLOATS)
def test_logits(form, folder, device, precision):
    model = (folder / f"{form}.tflite").read_bytes()
    stock = Stock(model, RUNTIME)
    seen: list[np.ndarray] = []

    def sampler(logits: np.ndarray) -> int:
        seen.append(logits.copy())
        return int(np.argmax(logits))

    generator = Generator(
        model, device=device, runtime=RUNTIME, precision=precision, sampler=sampler
    )
    tokens = generator.generate(TINY_PROMPT, max_tokens=3)
    for token in TINY_PROMPT:
        wanted = stock.logits(token)
    for token, logits in zip(tokens, seen):
        assert relative_l2(logits, wanted) <= MODEL_L2[precision]
        wanted = stock.logits(token)

"""PyTorch on CUDA, in the same run as ours: what cuDNN takes for the same work."""

from __future__ import annotations

import contextlib
import importlib
import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.conv_layers import Case

CUDNN = "(cuDNN)"
_BATCH_S = 5e-3


def find() -> Any:
    """The module torch where it can use a GPU, else None."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


@contextlib.contextmanager
def precision_of(torch: Any, precision: str) -> Iterator[None]:
    """Let cuDNN search, and round products to TF32 in ``"tf32"`` only."""
    torch.backends.cudnn.benchmark = True
    allowed = precision == "tf32"
    before = (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def median_s(torch: Any, run: Callable[[], object], *, rounds: int, budget_s: float) -> float:
    """Median device time of a function, by events, in batches of milliseconds."""

    def batch(runs: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(runs):
            run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e-3 / runs

    batch(2)  # the search
    runs = max(1, min(1000, math.ceil(_BATCH_S / batch(1))))
    deadline = time.perf_counter() + budget_s
    batch(runs)
    times: list[float] = []
    while len(times) < rounds and (not times or time.perf_counter() < deadline):
        times.append(batch(runs))
    return statistics.median(times)


def conv_ms(torch: Any, case: Case, precision: str, *, rounds: int, budget_s: float) -> float:
    """Milliseconds of a layer, without its bias.

    fp32 is NCHW, without TF32; the others are channels_last, which is faster there.
    """
    layer = case.layer
    last = precision != "fp32"
    form = torch.channels_last if last else torch.contiguous_format
    dtype = torch.float16 if precision == "fp16" else torch.float32
    _, h, w, _ = case.tile.shape
    tile = torch.from_numpy(case.tile).cuda().permute(0, 3, 1, 2).to(dtype)
    x = tile.repeat(1, 1, layer.height // h, layer.width // w).contiguous(memory_format=form)
    weights = torch.from_numpy(case.weights).cuda().permute(0, 3, 1, 2)
    weights = weights.to(dtype).contiguous(memory_format=form)
    with precision_of(torch, precision):
        seconds = median_s(
            torch,
            lambda: torch.nn.functional.conv2d(x, weights, padding=layer.filter // 2),
            rounds=rounds,
            budget_s=budget_s,
        )
    return seconds * 1e3


def free(torch: Any) -> None:
    """Give the memory that PyTorch keeps back to the device."""
    torch.cuda.empty_cache()

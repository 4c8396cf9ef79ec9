"""Configurations of the experiments: a model, options, and what the device reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.model_maker import ModelMaker
from tests.passes import test_quantized_memory
from tests.passes.test_stream_rows import Rows
from tests.python import models

GPU = {"FAULTS_DEVICE_TYPE": "4", "FAULTS_UNIFIED_MEMORY": "0"}  # with separate memory
SHARED_GPU = {"FAULTS_DEVICE_TYPE": "4", "FAULTS_UNIFIED_MEMORY": "1"}


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One of `CONFIGURATIONS`."""

    model: Callable[[], bytes]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    device: Mapping[str, str] = dataclasses.field(default_factory=dict)
    runner: bool = False  # through `clgpu_delegate.Runner`
    resize: bool = False  # to a batch of two and back
    cold: bool = False  # the process forgets its compiled programs before each experiment
    cache: bool = False  # a file has them
    budget: float = 0.0  # of device memory, as a share of the plan's memory without a budget
    tolerance: float = 1e-3  # relative L2
    claims: str = ""  # the property that the configuration must have; see `experiment.holds`


def narrow() -> bytes:
    """Convolutions, a pool, a mean and a dense layer."""
    rng = np.random.default_rng(5)
    m = ModelMaker()
    x = m.input("x", (1, 8, 8, 4))
    for channels in (8, 8):
        x = m.op(
            "CONV_2D",
            [
                x,
                m.constant(rng.standard_normal((channels, 3, 3, m.shape(x)[3])).astype("f") / 6),
                m.constant(rng.standard_normal(channels).astype("f")),
            ],
            (1, 8, 8, channels),
            padding="SAME", stride_w=1, stride_h=1, fused_activation_function="RELU",
        )  # fmt: skip
    x = m.op(
        "AVERAGE_POOL_2D", [x], (1, 4, 4, 8),
        padding="SAME", stride_w=2, stride_h=2, filter_width=2, filter_height=2,
    )  # fmt: skip
    x = m.op("MEAN", [x, m.constant(np.array([1, 2], np.int32))], (1, 8))
    weights = m.constant(rng.standard_normal((5, 8)).astype("f"))
    m.output(m.op("FULLY_CONNECTED", [x, weights], (1, 5)))
    return m.build()


def rows() -> bytes:
    """A chain of convolutions that is computed band by band."""
    m = Rows((1, 20, 12, 4))
    x = m.input("x", m.image)
    for _ in range(3):
        x = m.conv(x, 4, act="RELU")
    m.output(x)
    return m.build()


def integers() -> bytes:
    """Quantised convolutions."""
    return test_quantized_memory.chain(np.random.default_rng(4))


def long_chain() -> bytes:
    """Five operations, some of which may stay on the CPU."""
    return models.chain((2, 11), ("TANH", "SOFTMAX", "LOGISTIC", "TANH", "SOFTMAX"))


CONFIGURATIONS: dict[str, Configuration] = {
    "float": Configuration(narrow),
    "compiling": Configuration(narrow, cold=True),
    "cached programs": Configuration(narrow, cold=True, cache=True),
    "resize": Configuration(models.image, resize=True),
    "parts": Configuration(long_chain, {"exclude": ("1", "3")}, claims="partitions"),
    "integers": Configuration(integers, device=SHARED_GPU),
    "integers, parts": Configuration(integers, {"exclude": ("1",)}, GPU, claims="partitions"),
    "half, profile": Configuration(
        narrow,
        {"precision": "fp16", "half_io": True, "profile": True},
        GPU,
        tolerance=2e-2,
    ),
    "mapped": Configuration(narrow, device=SHARED_GPU),
    "verify": Configuration(narrow, {"verify": 1}),
    "images": Configuration(narrow, {"engines": {"conv2d": "quads_image|auto"}}, SHARED_GPU),
    "pool of the process": Configuration(narrow, {"memory_pool": "process"}, GPU),
    "bands": Configuration(rows, {"row_band": 5}, GPU),
    "reuse": Configuration(rows, {"reuse": 1e-5, "row_band": 5}),
    "reuse, lanes": Configuration(
        rows, {"reuse": 1e-5, "row_band": 5}, GPU, runner=True, claims="stream"
    ),
    "swap": Configuration(models.detour, {"zero_copy": "off"}, GPU, budget=0.85, claims="moves"),
    "runner": Configuration(narrow, device=GPU, runner=True, claims="stream"),
    "runner, lanes": Configuration(models.detour, device=GPU, runner=True, claims="stream"),
    "runner, direct": Configuration(narrow, runner=True),
    "runner, resize": Configuration(models.image, device=GPU, runner=True, resize=True),
    "runner, verify": Configuration(narrow, {"verify": "first"}, GPU, runner=True),
}

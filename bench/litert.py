"""``python -m bench litert``: LiteRT's CompiledModel on this delegate, on its own GPU, on the CPU.

Every way takes its inputs from arrays and gives its outputs as arrays.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import clgpu_delegate
from bench import networks
from bench.measure import medians, relative_error, sentence_of
from bench.report import Column, Report, TextTable, name_column
from bench.session import Session
from bench.setting import Names, Precision, Setting, check_known, split
from clgpu_delegate import ClgpuError
from clgpu_delegate.litert.compiled import Compiled, by_arrays, on_own_gpu

_LEAST = 5  # timings of each way


@dataclasses.dataclass(frozen=True)
class Row:
    """One network in one precision; times are milliseconds, from array to array.

    Attributes
    ----------
    cpu_ms
        CompiledModel on the CPU.
    gpu_ms
        CompiledModel on LiteRT's own GPU; None if it does not take the whole model.
    interpreter_ms, compiled_ms
        The delegate, with Interpreter and with CompiledModel.
    error
        Relative L2 error of the delegate with CompiledModel, against the CPU.
    problem
        Why there is no time for LiteRT's own GPU.
    """

    model: str
    precision: str
    cpu_ms: float
    gpu_ms: float | None
    interpreter_ms: float
    compiled_ms: float
    error: float
    problem: str = ""

    @property
    def over_interpreter(self) -> float:
        """Time with CompiledModel divided by the time with Interpreter."""
        return self.compiled_ms / self.interpreter_ms

    @property
    def faster_than_gpu(self) -> float | None:
        """Time of LiteRT's own GPU divided by that of the delegate, both with CompiledModel."""
        return self.gpu_ms and self.gpu_ms / self.compiled_ms


def measure(name: str, model: bytes, setting: Setting, precision: str) -> Row:
    """Time all ways of a model in turns."""
    options: dict[str, Any] = {"device": setting.device, "precision": precision}
    samples = networks.sample_inputs(model, seed=1)
    session = Session(
        model, clgpu_delegate.load(**options), runtime="ai_edge_litert", threads=1
    ).feed(samples)
    inputs = session.inputs
    environment = clgpu_delegate.litert_environment(**options)
    cpu = Compiled(model, gpu=False, cpu=True, threads=setting.cpu_threads)
    ours = Compiled(model, gpu=True, cpu=False, environment=environment)
    ways = {
        "cpu": by_arrays(cpu, inputs),
        "interpreter": by_arrays(session._interpreter, inputs),
        "compiled": by_arrays(ours, inputs),
    }
    expected, found = ways["cpu"]()[0], ways["compiled"]()[0]
    problem = ""
    try:
        gpu = by_arrays(on_own_gpu(model), inputs)
        wrong = relative_error(gpu()[0], expected)
        if wrong > 0.1:
            problem = f"relative error {wrong:.1g}"
        else:
            ways["gpu"] = gpu
    except (ClgpuError, RuntimeError) as error:
        problem = sentence_of(error)
    times = medians(ways, rounds=setting.rounds, budget_s=setting.budget, least=_LEAST)
    return Row(
        model=name,
        precision=precision,
        cpu_ms=times["cpu"] * 1e3,
        gpu_ms=times["gpu"] * 1e3 if "gpu" in times else None,
        interpreter_ms=times["interpreter"] * 1e3,
        compiled_ms=times["compiled"] * 1e3,
        error=relative_error(found, expected),
        problem=problem,
    )


COLUMNS = (
    name_column("model", "model"),
    name_column("precision", "precision"),
    Column("CPU ms", "cpu_ms", ".3f"),
    Column("LiteRT's GPU ms", "gpu_ms", ".3f"),
    Column("Interpreter ms", "interpreter_ms", ".3f"),
    Column("CompiledModel ms", "compiled_ms", ".3f"),
    Column("over Interpreter", "over_interpreter", ".2f"),
    Column("LiteRT's GPU over ours", "faster_than_gpu", ".2f"),
    Column("error", "error", ".0e"),
)


def run(setting: Setting, names: Names = None, precision: Precision = "fp32,fp16") -> list[Row]:
    """Measure CompiledModel on the delegate, on LiteRT's own GPU and on the CPU."""
    check_known("network", names or (), sorted(networks.NETWORKS))
    if clgpu_delegate.litert_status().is_on:
        message = "LiteRT's GPU is this delegate: run `clgpu litert off` first"
        raise ValueError(message)
    report = Report[Row](setting, runtime="ai_edge_litert", threads=setting.cpu_threads)
    for name in names or networks.NETWORKS:
        model = networks.build(name)
        for word in split(precision):
            row = measure(name, model, setting, word)
            report.add([row], network=name)
            gpu = row.problem or f"{row.gpu_ms:.3f} ms"
            report.say(f"{name} {word}: {row.compiled_ms:.3f} ms, LiteRT's own GPU {gpu}")
    title = f"{setting.found.name}, {setting.cpu_threads} threads"
    return report.finish(TextTable.of(title, report.rows, COLUMNS))

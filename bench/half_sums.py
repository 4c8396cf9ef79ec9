"""``python -m bench half_sums``: the error of half sums, beside that of fp16 with float sums."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

import clgpu_delegate
from bench import networks
from bench.report import Column, Report, TextTable, name_column
from bench.setting import Names, Setting, check_known
from clgpu_delegate.measure.mixing import relative_l2
from tests.runtimes import make_interpreter, resolve_runtime, run_interpreter

FAMILIES = ("batch_matmul", "conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv")
"""Those whose engine ``quads`` has half sums."""

WINOGRAD = "winograd_f2x2_3x3_quads"
_SEED = 1


@dataclasses.dataclass(frozen=True)
class Row:
    """A network: relative L2 errors of its outputs, the largest of them, against the stock kernels.

    All ways use the engines of mobile GPUs, on any device; only their sums differ.

    Attributes
    ----------
    fp16_error
        With float sums.
    half_error
        With half sums.
    winograd_error
        With half sums, and with F(2x2, 3x3) for each convolution that it can compute, which is more
        than a plan for a phone takes.
    nodes
        That add halves.
    products
        Share of the model's arithmetic operations in these nodes.
    """

    network: str
    fp16_error: float
    half_error: float
    winograd_error: float
    nodes: int
    products: float

    @property
    def times(self) -> float:
        """Error with half sums, in units of that with float sums."""
        return self.half_error / self.fp16_error if self.fp16_error else math.nan


def measure(name: str, setting: Setting) -> Row:
    """Run a network four times on the same inputs.

    Raises
    ------
    ValueError
        If the device has no half arithmetic.
    """
    model = networks.build(name)
    inputs = networks.sample_inputs(model, seed=_SEED)
    runtime = resolve_runtime(setting.runtime)
    want = run_interpreter(make_interpreter(runtime, model), inputs)
    engines = dict.fromkeys(FAMILIES, "quads|auto")
    fast = {**engines, "conv2d": f"{WINOGRAD}|quads|auto"}

    def error(sums: str, engines: dict[str, str]) -> tuple[float, clgpu_delegate.Explanation]:
        delegate = clgpu_delegate.load(
            device=setting.device, precision="fp16", sums=sums, engines=engines, warm_up=False
        )  # type: ignore[call-overload]
        got = run_interpreter(make_interpreter(runtime, model, [delegate]), inputs)
        return relative_l2(got, want), delegate.explain()

    floats, _ = error("float", engines)
    halves, explanation = error("half", engines)
    winograd, _ = error("half", fast)
    adding = [node for node in explanation.nodes if node.sums == "half"]
    if not adding:
        raise ValueError(
            f"{setting.title} adds no halves in {name}: {'; '.join(explanation.notes) or 'no note'}"
        )
    whole = sum(node.flops for node in explanation.nodes)
    return Row(
        network=name,
        fp16_error=floats,
        half_error=halves,
        winograd_error=winograd,
        nodes=len(adding),
        products=sum(node.flops for node in adding) / whole,
    )


COLUMNS = (
    name_column("network", "network"),
    Column("fp16", "fp16_error", ".1e"),
    Column("half sums", "half_error", ".1e"),
    Column("x", "times", ".1f"),
    Column("with F(2x2)", "winograd_error", ".1e"),
    Column("nodes", "nodes", "d"),
    Column("operations", "products", ".0%"),
)


def _chosen(names: Names) -> Iterator[str]:
    known = tuple(sorted(networks.NETWORKS))
    check_known("network", names or (), known)
    return (name for name in known if not names or name in names)


def run(setting: Setting, names: Names = None) -> list[Row]:
    """Measure the error of half sums (option ``sums``) with the engines of mobile GPUs.

    Raises
    ------
    ValueError
        If a network does not exist, or the device has no half arithmetic.
    """
    report = Report[Row](setting, runtime=setting.runtime)
    for name in _chosen(names):
        row = measure(name, setting)
        report.add([row], f"{name}: {row.half_error:.1e}", network=name)
    return report.finish(TextTable.of(setting.title, report.rows, COLUMNS), on=setting.title)

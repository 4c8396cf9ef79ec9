"""``python -m bench layers``: where the time of a network goes, layer by layer.

Each launch is measured by itself, in the network and with the device's own clock. Beside it stand
the time of cuDNN for the same layer, and a bound: the time in which the device multiplies as much,
or copies as many bytes. What is fused into a layer, such as an addition, is in its time only.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Annotated, Any

import typer

import clgpu_delegate
from bench import networks, peaks, peers_torch
from bench.measure import device_median_s, sentence_of
from bench.nets import INT8, quantized
from bench.peers_torch import Product
from bench.report import Column, Report, TextTable, name_column
from bench.setting import PRECISIONS, Names, Setting, batch_sizes, check_known, split
from clgpu_delegate.tflite.graph import Operator, Subgraph
from clgpu_delegate.tflite.reader import parse

_PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
_SIZES = {"fp16": 2, INT8: 1}  # bytes of an element; else 4
_SAME = 0  # the schema's number of this padding


@dataclasses.dataclass(frozen=True)
class Row:
    """Layers of one network that are alike and computed in the same way. Times are microseconds.

    Attributes
    ----------
    op, shape, candidate
        Operation, sizes, and how it is computed.
    node
        The first of these layers.
    count
        How many there are.
    own_us
        Device time of one of them: median of its launches, and mean over the layers.
    peer_us
        cuDNN's; None where it was not measured.
    bound_us
        The larger time of two: products at the rate of tensor cores, and operands and results at
        the rate of copying, each once. None of operations that are not products.
    note
        Why cuDNN was not measured.
    """

    network: str
    batch: int
    precision: str
    op: str
    shape: str
    candidate: str
    node: int
    count: int
    own_us: float
    peer_us: float | None
    bound_us: float | None
    note: str = ""

    @property
    def lost_us(self) -> float | None:
        """What all of them take longer than cuDNN, or than the bound where it was not measured."""
        rival = self.bound_us if self.peer_us is None else self.peer_us
        return None if rival is None else self.count * (self.own_us - rival)

    @property
    def over_bound(self) -> float | None:
        """Time as a multiple of the bound."""
        return self.own_us / self.bound_us if self.bound_us else None


def product_of(graph: Subgraph, operator: Operator) -> Product | None:
    """What PyTorch needs to know of a layer; None if it is neither convolution nor product."""
    if operator.name not in _PRODUCTS:
        return None
    options = operator.options
    src, weights = (tuple(graph.tensors[i].shape) for i in operator.inputs[:2])
    dst = tuple(graph.tensors[operator.outputs[0]].shape)
    return Product(
        op=operator.name,
        src=src,
        weights=weights,
        dst=dst,
        stride=(int(options.get("StrideH", 1)), int(options.get("StrideW", 1))),
        dilation=(int(options.get("DilationHFactor", 1)), int(options.get("DilationWFactor", 1))),
        same=options.get("Padding", _SAME) == _SAME,
        activation={0: "", 1: "RELU", 3: "RELU6"}.get(int(options["FusedActivationFunction"]), ""),
    )


def bound_us(product: Product, precision: str, limits: peaks.Peaks) -> float:
    """Least microseconds for the products, and for operands and results moved once."""
    size = _SIZES.get(precision, 4) * sum(
        map(math.prod, (product.src, product.weights, product.dst))
    )
    # Tensor cores multiply int8 twice as fast as half.
    pace = 2 * limits.flops("fp16") if precision == INT8 else limits.flops(precision)
    return 1e6 * max(product.flops / pace, size / limits.copy_bytes)


def measure(
    name: str, batch: int, precision: str, setting: Setting, limits: peaks.Peaks
) -> tuple[list[Row], float]:
    """The layers of a network, in the order of an inference, and milliseconds of all of it."""
    model = networks.build(name, batch)
    inputs = networks.sample_inputs(model, seed=1)
    options: dict[str, Any] = {"precision": precision}
    if precision == INT8:
        model, options = quantized(model, setting.runtime), {}
    delegate = clgpu_delegate.load(device=setting.device, **options)
    session = setting.session(model, delegate).feed(inputs)
    session()
    whole = device_median_s(delegate, **setting.timing()) * 1e3
    plan = delegate.explain()
    graph = parse(model).main
    times: dict[int, float] = {}
    for launch in delegate.launch_times(setting.rounds):
        times[launch.node] = times.get(launch.node, 0.0) + launch.microseconds
    found: dict[tuple[Any, ...], list[int]] = {}
    for node in times:
        told, operator = plan.nodes[node], graph.operators[node]
        product = product_of(graph, operator)
        shape = str(product or tuple(graph.tensors[operator.outputs[0]].shape))
        found.setdefault((told.op, shape, told.candidate, product), []).append(node)
    rows = []
    for (op, shape, candidate, product), nodes in found.items():
        peer, note = _peer(product, precision, setting)
        own = sum(times[node] for node in nodes) / len(nodes)
        bound = None if product is None else bound_us(product, precision, limits)
        which = (op, shape, candidate, nodes[0], len(nodes))
        rows.append(Row(name, batch, precision, *which, own, peer, bound, note))
    return rows, whole


def _peer(product: Product | None, precision: str, setting: Setting) -> tuple[float | None, str]:
    if product is None or setting.peer is None or precision == INT8:
        return None, ""
    try:
        seconds = peers_torch.product_s(setting.peer, product, precision, **setting.timing(1 / 20))
    except RuntimeError as error:  # such as out of memory
        return None, sentence_of(error)
    return seconds * 1e6, ""


def by_loss(rows: Iterable[Row]) -> list[Row]:
    """The rows with the largest loss first, and those without a rival last."""
    return sorted(rows, key=lambda row: -math.inf if row.lost_us is None else row.lost_us)[::-1]


def totals(rows: Iterable[Row]) -> str:
    """Sums as a sentence."""
    rows = list(rows)
    own = sum(row.count * row.own_us for row in rows)
    known = [row for row in rows if row.bound_us is not None]
    text = f"launches {own:.0f} us"
    if known:
        text += (
            f"; of these, convolutions and products {sum(r.count * r.own_us for r in known):.0f} "
            f"us, by their bounds {sum(r.count * (r.bound_us or 0) for r in known):.0f} us"
        )
    compared = [row for row in rows if row.peer_us is not None]
    if compared:
        text += (
            f"; {sum(r.count * r.own_us for r in compared):.0f} us where cuDNN takes "
            f"{sum(r.count * (r.peer_us or 0) for r in compared):.0f} us"
        )
    return text


COLUMNS = (
    Column("lost us", "lost_us", ".1f"),
    Column("layers", "count"),
    Column("node", "node"),
    Column("", "op", is_text=True),
    name_column("sizes", "shape"),
    name_column("computed by", "candidate"),
    Column("us", "own_us", ".1f"),
    Column("cuDNN us", "peer_us", ".1f", is_optional=True),
    Column("bound us", "bound_us", ".1f"),
    Column("x bound", "over_bound", ".1f"),
)


def run(
    setting: Setting,
    names: Names = None,
    batch: Annotated[str, typer.Option(help="Batch sizes, separated by commas.")] = "16",
    precision: Annotated[
        str, typer.Option(help="Precisions of the delegate; int8 quantises the network.")
    ] = "fp16",
    most: Annotated[int, typer.Option(min=1, help="Lines of each table.")] = 40,
) -> list[Row]:
    """Measure the layers of networks beside cuDNN and beside their bounds, the largest loss first.

    Raises
    ------
    ValueError
        If a network or a precision does not exist, or a batch size is no number.
    """
    precisions, sizes = split(precision), batch_sizes(batch)
    check_known("network", names or (), sorted(networks.NETWORKS))
    check_known("precision", precisions, (*PRECISIONS, INT8))
    report = Report[Row](setting, torch=setting.peer)
    limits = peaks.measure(setting.device)
    for name in names or sorted(networks.NETWORKS):
        for size in sizes:
            for each in precisions:
                title = f"{name}, batch {size}, {each}"
                with report.console.status(title):
                    rows, whole = measure(name, size, each, setting, limits)
                limits = limits.or_better(peaks.measure(setting.device, 0.2))
                report.add(rows, network=name, peaks=limits)
                table = TextTable.of(title, by_loss(rows)[:most], COLUMNS)
                report.console.print(table.rich())
                report.say(f"{title}: {whole:.3f} ms; {totals(rows)}")
    report.say(f"{setting.title}: {limits}")
    report.write_csv(device=setting.title)
    return report.rows

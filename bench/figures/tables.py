"""The renderers: a function for each place of the pages, and its files."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence

from bench.conv_layers import LAYERS, Layer
from bench.conv_measure import Row
from bench.conv_report import LayerTimes, bound_ms, by_layer, totals
from bench.figures.source import Source, Sources, caption
from bench.formats import Row as FormatRow
from bench.mixed import Row as MixedRow
from bench.nets import Row as NetRow
from bench.peaks import Peaks
from bench.placement import Row as PlacementRow
from bench.pynet import Row as PynetRow
from bench.record import RecordError
from bench.setting import PRECISIONS
from bench.stream import Row as StreamRow

GPU = "nvidia_h200"
CPU = "cpu_intel"
NAMES = {
    "alexnet": "AlexNet", "espcn": "ESPCN", "inception_v1": "InceptionV1",
    "inception_v3": "InceptionV3", "lenet5": "LeNet-5", "mobilenet_v1": "MobileNetV1",
    "mobilenet_v2": "MobileNetV2", "pynet": "PyNET, 64 x 64", "resnet50": "ResNet50",
    "transformer": "Transformer", "unet": "U-Net", "deeplab_fp32": "deeplab",
    "mp_hand_landmark_full": "MediaPipe, hand landmarks",
    "mp_pose_detection": "MediaPipe, pose detection",
    "mp_pose_landmark_full": "MediaPipe, pose landmarks",
    "lenet5_digits": "LeNet-5, trained", "imagenet_moe": "mixture of experts",
    "colours": "1x1 convolution, 1080p", "edges": "3x3 convolution, 1080p",
}  # fmt: skip
NETWORKS = (
    "lenet5", "alexnet", "mobilenet_v1", "mobilenet_v2", "inception_v1", "inception_v3", "resnet50",
)  # fmt: skip
CHART_TITLES = {
    "networks": "How many times as fast as the stock CPU and as PyTorch: bars by network",
    "roofline": "Operations per second over operations per byte, below the device's roofs",
    "batches": "Time per image by batch, ours and that of PyTorch",
}
BY_BATCH = ("mobilenet_v1", "inception_v3", "resnet50")
_WIDTH = 118


@dataclasses.dataclass(frozen=True)
class Figure:
    """A place in the pages.

    Attributes
    ----------
    render
        A function of a `Source` for each file; returns Markdown.
    files
        Names as in `Source`.
    """

    render: Callable[..., str]
    files: tuple[str, ...]

    def text(self, sources: Sources) -> str:
        """The Markdown."""
        return self.render(*(sources[name] for name in self.files))


FIGURES: dict[str, Figure] = {}
_Render = Callable[..., str]


def figure(name: str, *files: str) -> Callable[[_Render], _Render]:
    """Register a renderer under the name of its place."""

    def register(render: _Render) -> _Render:
        FIGURES[name] = Figure(render, files)
        return render

    return register


def name_of(network: str) -> str:
    """The usual name of a network."""
    return NAMES.get(network, network)


def number(value: float | None, digits: int = 3) -> str:
    """A number with this many significant digits; empty for None."""
    if value is None or not math.isfinite(value):
        return ""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}")))))
    return f"{value:.{decimals}f}"


def numbers(values: Iterable[float | None]) -> str:
    """Numbers in one cell; empty if all are missing."""
    cells = [number(value) or "-" for value in values]
    return " / ".join(cells) if any(cell != "-" for cell in cells) else ""


def power(value: float | None) -> str:
    """An error: 4e-6."""
    if value is None:
        return ""
    front, _, back = f"{value:.0e}".partition("e")
    return f"{front}e{int(back)}" if value else "0"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    rule = ["---", *(["---:"] * (len(headings) - 1))]
    lines = [headings, rule, *rows]
    padded = [[f" {cell} " if cell else " " for cell in cells] for cells in lines]
    return "\n".join(f"|{'|'.join(cells)}|" for cells in padded)


def sentence(text: str) -> str:
    """A paragraph with lines of the usual length."""
    return textwrap.fill(" ".join(text.split()), _WIDTH, break_long_words=False,
                         break_on_hyphens=False)  # fmt: skip


def image(chart: str, front: str = "") -> str:
    """A chart of `bench.figures.charts`, for a page with this relative path to docs."""
    return f"![{CHART_TITLES[chart]}]({front}images/{chart}.svg)"


def listing(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _by_precision(
    source: Source, network: str, batch: int, precisions: Sequence[str] = PRECISIONS
) -> list[NetRow]:
    return [source.row(NetRow, network=network, batch=batch, precision=p) for p in precisions]


def _net_cells(source: Source, network: str, batch: int) -> list[str]:
    rows = _by_precision(source, network, batch)
    single, half = rows[0], rows[-1]
    return [
        numbers(row.device_ms for row in rows),
        numbers(row.torch_ms for row in rows),
        numbers([single.host_ms, half.host_ms]),
        number(single.cpu_ms),
        f"{power(single.error)} / {power(half.error)}",
    ]


_NET_HEADINGS = (
    "device ms, fp32 / tf32 / fp16", "PyTorch ms", "host ms, fp32 / fp16", "CPU ms",
    "error, fp32 / fp16",
)  # fmt: skip


@figure("networks", f"{GPU}/nets.json")
def networks(source: Source) -> str:
    """Networks at batch 1, and a sentence about some of them at 16."""
    rows = [[NAMES[name], *_net_cells(source, name, 1)] for name in NETWORKS]
    parts = []
    for name in BY_BATCH:
        large = _by_precision(source, name, 16)
        own = numbers(row.device_ms for row in large)
        parts.append(f"{NAMES[name]} {own} ({numbers(row.torch_ms for row in large)})")
    text = f"At batch 16, device ms (PyTorch): {listing(parts)}."
    parts = [image("networks", "docs/"), table(["network", *_NET_HEADINGS], rows)]
    return "\n\n".join([*parts, sentence(text), caption(source)])


@figure("networks-all", f"{GPU}/nets.json")
def networks_all(source: Source) -> str:
    """All rows of the file."""
    headings = ["network", "batch", "", "device ms", "PyTorch ms", "host ms", "CPU ms", "error"]
    every = sorted(source.rows(NetRow), key=lambda row: (row.batch, _rank(row.network)))
    rows = [
        [
            name_of(row.network), str(row.batch), row.precision, number(row.device_ms),
            number(row.torch_ms), number(row.host_ms), number(row.cpu_ms), power(row.error),
            number(row.peak_bytes / 1e6),
        ]
        for row in every
    ]  # fmt: skip
    lines = table([*headings, "device MB"], rows)
    return "\n\n".join([image("networks"), lines, caption(source)])


@figure("batches", f"{GPU}/nets.json", f"{GPU}/batches.json")
def batches(one: Source, more: Source) -> str:
    """Time per image by batch."""
    where = {row.batch: s for s in (one, more) for row in s.rows(NetRow, network=BY_BATCH[0])}
    lines = []
    for name in BY_BATCH:
        for precision in PRECISIONS:
            rows = [
                where[size].row(NetRow, network=name, batch=size, precision=precision)
                for size in sorted(where)
            ]
            own = [number(row.device_ms / row.batch) for row in rows]
            peer = [number(row.torch_ms and row.torch_ms / row.batch) for row in rows]
            lines += [[f"{NAMES[name]}, {precision}", *own], ["PyTorch", *peer]]
    text = "Milliseconds of device time per image by batch:"
    cells = table(["", *map(str, sorted(where))], lines)
    return "\n\n".join([image("batches"), text, cells, caption(one, more)])


def batch_times(one: Source, more: Source, name: str, precision: str) -> dict[int, NetRow]:
    """Rows by batch size, of two files."""
    rows = [r for s in (one, more) for r in s.rows(NetRow, network=name, precision=precision)]
    return {row.batch: row for row in sorted(rows, key=lambda row: row.batch)}


@figure("roofline", f"{GPU}/conv.json")
def roofline(source: Source) -> str:
    """The chart of the layers, and their sums."""
    return "\n\n".join([image("roofline"), sentence(conv_totals(source)), caption(source)])


def conv_totals(source: Source) -> str:
    """Sums over the layers."""
    rows = conv_rows(source)
    parts = []
    for precision in PRECISIONS:
        sums = totals(rows, precision)
        if sums is not None:
            peer = f" (cuDNN {number(sums.peer_ms)})" if sums.peer_layers else ""
            parts.append(f"{number(sums.default_ms)} ms in {precision}{peer}")
    count = len({row.layer for row in rows})
    return f"The {count} convolution layers of PyNET take {listing(parts)}."


@figure("conv-layers", f"{GPU}/conv.json")
def conv_layers(source: Source) -> str:
    """Groups of layers beside cuDNN and the bound."""
    rows, peaks = conv_rows(source), conv_peaks(source)
    every = {p: by_layer(rows, p) for p in PRECISIONS}
    lines = []
    for name, belongs in CONV_GROUPS.items():
        groups = [[t for t in every[p] if belongs(t.layer)] for p in PRECISIONS]
        lines.append([f"{name} ({len(groups[0])})", *(
            f"{_conv_sums(group)}, {_share_of_bound(group, p, peaks)}"
            for p, group in zip(PRECISIONS, groups)
        )])  # fmt: skip
    sums = (f"**{_conv_sums(every[p])}**" for p in PRECISIONS)
    lines.append([f"**all {len(every['fp32'])}**", *sums])
    headings = ["layers", *(f"{p} ms (cuDNN), of bound" for p in PRECISIONS)]
    ceilings = sentence(
        f"Peaks, measured in the same run: {number(peaks.fma_flops / 1e12)} TFLOP/s of float "
        f"multiply-adds, {number(peaks.mma_tf32_flops / 1e12)} TF32 and "
        f"{number(peaks.mma_f16_flops / 1e12)} fp16 on tensor cores, copies at "
        f"{number(peaks.copy_bytes / 1e12)} TB/s (read and written)."
    )
    return "\n\n".join([table(headings, lines), ceilings, caption(source)])


CONV_GROUPS: dict[str, Callable[[Layer], bool]] = {
    "3x3, 128 and more outputs": lambda x: x.filter == 3 and x.filters >= 128,
    "3x3, 32 and 64 outputs": lambda x: _is_wide(x) and x.filter == 3 and x.filters < 128,
    "5x5": lambda x: x.filter == 5,
    "7x7": lambda x: x.filter == 7,
    "9x9": lambda x: x.filter == 9,
    "3 outputs": lambda x: x.filters == 3,
    "4 and 16 inputs": lambda x: x.channels <= 16 and x.filters > 3,
}


def _is_wide(layer: Layer) -> bool:
    return layer.channels > 16 and layer.filters > 3


def conv_rows(source: Source) -> list[Row]:
    """The rows, with their layers as objects.

    Raises
    ------
    RecordError
        If one of the 35 layers is missing in a precision.
    """
    rows = [dataclasses.replace(r, layer=Layer(*r.layer)) for r in source.rows(Row)]
    for precision in PRECISIONS:
        missing = len(LAYERS) - sum(t.default is not None for t in by_layer(rows, precision))
        if missing:
            raise RecordError(
                f"{source.path} lacks {missing} of {len(LAYERS)} layers in {precision}; measure "
                f"again: {source.command}"
            )
    return rows


def conv_peaks(source: Source) -> Peaks:
    """The device's peaks, as measured with the rows."""
    return Peaks(**(source.record.peaks or {}))


def _conv_sums(group: Sequence[LayerTimes]) -> str:
    own = sum(t.default.ms or 0 for t in group if t.default)
    peers = [t.peer.ms or 0 for t in group if t.peer]
    return f"{number(own)} ({number(sum(peers))})" if peers else number(own)


def _share_of_bound(group: Sequence[LayerTimes], precision: str, peaks: Peaks) -> str:
    bound = sum(bound_ms(t.layer, precision, peaks) for t in group)
    own = sum(t.default.ms or 0 for t in group if t.default)
    return f"{100 * bound / own:.0f} %"


def _pynet_free(source: Source, precision: str) -> PynetRow:
    return source.row(PynetRow, way="unconstrained", precision=precision)


@figure("pynet", f"{GPU}/pynet.json")
def pynet(source: Source) -> str:
    """PyNET inside budgets."""
    rows = []
    for row in source.rows(PynetRow):
        sizes = [number(size and size / 1e9) for size in (row.budget, row.counted, row.largest)]
        psnr = "" if row.psnr is None else f"{row.psnr:.1f}"
        time = number(row.device_ms) or row.note or f"{number(row.host_ms)} (host)"
        rows.append([f"{row.way}, {row.precision}", *sizes, time, psnr])
    headings = ["", "budget GB", "device memory GB", "largest object GB", "device ms", "PSNR dB"]
    return "\n\n".join([table(headings, rows), caption(source)])


def pynet_short(source: Source) -> str:
    """PyNET without a budget, in a quarter of that, and in PyTorch."""
    free = _pynet_free(source, "fp16")
    quarter = source.row(PynetRow, way="1/4 of the peak", precision="fp16")
    peer = source.row(PynetRow, way="PyTorch", precision="fp16")

    def words(row: PynetRow) -> str:
        return f"{number(row.device_ms)} ms in {number((row.counted or 0) / 1e9)} GB"

    beside = peer.note if peer.device_ms is None else words(peer)
    return (
        f"PyNET for 12 megapixels in fp16: {words(free)} of device memory, {words(quarter)}; "
        f"PyTorch: {beside}."
    )


@figure("int8", f"{GPU}/int8.json")
def int8(source: Source) -> str:
    """int8 beside fp16 and fp32 on tensor cores."""
    rows = []
    for name in dict.fromkeys(row.network for row in source.rows(NetRow)):
        single, half, small = _by_precision(source, name, 1, ("fp32", "fp16", "int8"))
        rows.append([
            NAMES[name], *(number(row.device_ms) for row in (single, half, small)),
            number(half.device_ms / small.device_ms),
            f"{number(small.peak_bytes / 1e6)} of {number(single.peak_bytes / 1e6)}",
            "yes" if small.exact else "no",
        ])  # fmt: skip
    headings = ["batch 1", "fp32 ms", "fp16 ms", "int8 ms", "fp16 / int8", "MB, int8 of fp32"]
    return "\n\n".join([table([*headings, "equals the reference"], rows), caption(source)])


def int8_short(source: Source) -> str:
    """How much faster int8 is than fp16."""
    parts = []
    for name in ("mobilenet_v1", "resnet50"):
        single, half, small = _by_precision(source, name, 1, ("fp32", "fp16", "int8"))
        parts.append(
            f"{NAMES[name]} {number(small.device_ms)} ms (fp16 {number(half.device_ms)}), "
            f"{number(small.peak_bytes / single.peak_bytes, 2)} of the memory of fp32"
        )
    return f"int8 at batch 1: {listing(parts)}."


@figure("int8-cpu", f"{CPU}/nets.json")
def int8_cpu(source: Source) -> str:
    """int8 beside fp32 on a CPU."""
    rows = []
    for name in dict.fromkeys(row.network for row in source.rows(NetRow)):
        single, small = _by_precision(source, name, 1, ("fp32", "int8"))
        rows.append([
            NAMES[name], number(single.device_ms), number(small.device_ms),
            number(single.device_ms / small.device_ms),
            f"{number(small.peak_bytes / 1e6)} of {number(single.peak_bytes / 1e6)}",
        ])  # fmt: skip
    headings = ["batch 1", "fp32 ms", "int8 ms", "fp32 / int8", "MB, int8 of fp32"]
    return "\n\n".join([table(headings, rows), caption(source)])


def cpu(source: Source) -> str:
    """A CPU as the device, compared with the stock kernels on it."""
    parts = [
        f"{name_of(row.network)} {number(row.host_ms)} ({number(row.cpu_ms)})"
        for row in source.rows(NetRow, batch=1, precision="fp32")
    ]
    return (
        f"A CPU as the OpenCL device, host ms in fp32 (stock TensorFlow Lite on the same cores): "
        f"{listing(parts)}."
    )


@figure("mixed-gpu", f"{GPU}/mixed.json")
@figure("mixed-cpu", f"{CPU}/mixed.json")
def mixed_plans(source: Source) -> str:
    """Plans of precisions beside fp16, by model and batch."""
    rows = [
        [
            name_of(row.model), str(row.batch), number(row.fp16_ms), number(row.mixed_ms),
            f"{row.speedup:.2f}", _short(row.fp16_error), _short(row.error), f"{row.memory:.2f}",
        ]
        for row in source.rows(MixedRow)
    ]  # fmt: skip
    headings = [
        "network", "batch", "fp16 ms", "plan ms", "times fp16's speed", "error of fp16",
        "of the plan", "of fp16's memory",
    ]  # fmt: skip
    return "\n\n".join([table(headings, rows), caption(source)])


def _short(error: float | None) -> str:
    return "infinite" if error is None else f"{error:.1e}".replace("e-0", "e-")


@figure("formats-cpu", f"{CPU}/formats.json")
def formats_cpu(source: Source) -> str:
    """Number formats: times relative to fp32 of the same network, memory and accuracy."""
    rows = []
    for row in source.rows(FormatRow):
        whole = source.row(FormatRow, network=row.network, batch=row.batch, format="fp32")
        known = row.device_ms is not None and row.top1 is not None
        rows.append([
            name_of(row.network) if row.format == "fp32" else "", row.format,
            number(whole.device_ms / row.device_ms) if known else "", number(row.device_ms),
            number(row.peak_bytes / 1e6) if known else "",
            number(row.weight_bytes / 1e6) if known else "", _short(row.error) if known else "",
            f"{100 * row.top1:.0f} %" if known else "",
            f"{100 * row.accuracy:.1f} %" if row.accuracy is not None else "",
        ])  # fmt: skip
    headings = [
        "network", "format", "times fp32's speed", "device ms", "device MB", "weights MB", "error",
        "same top-1", "accuracy",
    ]  # fmt: skip
    return "\n\n".join([table(headings, rows), caption(source)])


@figure("stream", f"{GPU}/stream.json")
def stream(source: Source) -> str:
    """Sequences of images."""
    rows = []
    for row in source.rows(StreamRow):
        rates = [row.device, row.invoke, row.run, row.many, row.bound]
        rows.append([
            name_of(row.network), str(row.batch), f"{row.mb_in:.1f}", f"{row.mb_out:.1f}",
            *(f"{rate:.0f}" for rate in rates), f"{row.many / row.invoke:.1f}",
        ])  # fmt: skip
    headings = ["network", "batch", "MB in", "MB out", "device alone", "`invoke`", "`run`"]
    headings += ["`run_many`", "bound", "`run_many` / `invoke`"]
    return "\n\n".join([table(headings, rows), caption(source)])


def stream_short(source: Source) -> str:
    """The range of what overlapping gains."""
    gains = sorted(row.many / row.invoke for row in source.rows(StreamRow))
    return (
        f"Sequences of images, where copies are a visible share: `Runner.run_many` does "
        f"{gains[0]:.1f} to {gains[-1]:.1f} times the images per second of `invoke()` in a loop."
    )


@figure("placement-cpu", f"{CPU}/placement.json")
def placement_cpu(source: Source) -> str:
    """Placements where the CPU is device and host."""
    rows = [
        [
            name_of(row.model), f"{number(row.stock_ms)} ({number(row.expected_cpu_ms)})",
            f"{number(row.all_ms)} ({number(row.expected_device_ms)})",
            _chosen(row.auto), _chosen(row.choice), number(row.measured_ms),
            number(row.ratio),
        ]
        for row in source.rows(PlacementRow)
    ]  # fmt: skip
    headings = ["network", "CPU ms (expected)", "all ms (expected)", "`auto` takes"]
    headings += ["`measured` takes", "ms", "of the CPU's time"]
    return "\n\n".join([table(headings, rows), caption(source)])


def _chosen(choice: str) -> str:
    return {"cpu": "the CPU", "": "-"}.get(choice, choice)


@dataclasses.dataclass(frozen=True)
class _Loss:
    what: str
    own_ms: float
    peer: str
    peer_ms: float

    @property
    def ratio(self) -> float:
        return self.own_ms / self.peer_ms


def losses_of(
    nets: Iterable[NetRow], convolutions: Iterable[Row], budgets: Sequence[PynetRow]
) -> list[_Loss]:
    """Everything that another implementation computes faster, the worst first.

    It compares the device's time with PyTorch's, the time from host array to host array with the
    stock CPU's, and the layers' default engines with cuDNN (the sum of the layers where cuDNN is
    faster).
    """
    found = []
    for row in budgets:
        for peer in budgets:
            if peer.way == "PyTorch" != row.way and peer.precision == row.precision:
                what = f"PyNET, {row.way}, {row.precision}"
                found.append(_Loss(what, row.device_ms or 0, "PyTorch", peer.device_ms or math.inf))
    for net in nets:
        what = f"{name_of(net.network)}, batch {net.batch}, {net.precision}"
        if net.torch_ms is not None:
            found.append(_Loss(what, net.device_ms, "PyTorch", net.torch_ms))
        found.append(_Loss(what, net.host_ms, "stock CPU", net.cpu_ms))
    rows = list(convolutions)
    for precision in PRECISIONS:
        both = [t for t in by_layer(rows, precision) if t.default and t.peer]
        sums = [(t.default.ms or 0, t.peer.ms or 0) for t in both if t.default and t.peer]
        lost = [(own, peer) for own, peer in sums if own > peer]
        if lost:
            what = f"{len(lost)} of {len(sums)} convolution layers, {precision}"
            own_ms, peer_ms = (sum(times) for times in zip(*lost))
            found.append(_Loss(what, own_ms, "cuDNN", peer_ms))
    return sorted((x for x in found if x.ratio > 1), key=lambda x: -x.ratio)


@figure(
    "losses", f"{GPU}/nets.json", f"{GPU}/batches.json", f"{GPU}/pynet.json", f"{GPU}/conv.json"
)
def losses(nets: Source, more: Source, budgets: Source, conv: Source) -> str:
    """What other implementations compute faster."""
    rows = [*nets.rows(NetRow), *more.rows(NetRow)]
    found = losses_of(rows, conv_rows(conv), budgets.rows(PynetRow))
    lines = [[x.what, number(x.own_ms), x.peer, number(x.peer_ms), f"{x.ratio:.2f}"] for x in found]
    if not lines:
        return f"None.\n\n{caption(nets, more, budgets, conv)}"
    headings = ["", "ms", "faster is", "ms", "ours / theirs"]
    return "\n\n".join([table(headings, lines), caption(nets, more, budgets, conv)])


def _rank(name: str) -> tuple[int, str]:
    return (NETWORKS.index(name) if name in NETWORKS else len(NETWORKS), name)


@figure(
    "highlights", f"{GPU}/stream.json", f"{GPU}/int8.json", f"{GPU}/pynet.json",
    f"{GPU}/conv.json", f"{CPU}/nets.json",
)  # fmt: skip
def highlights(*sources: Source) -> str:
    """A line for each of the other tables."""
    sentences = (stream_short, int8_short, pynet_short, conv_totals, cpu)
    lines = [
        textwrap.indent(sentence(render(source)), "  ").replace("  ", "- ", 1)
        for render, source in zip(sentences, sources)
    ]
    return "\n\n".join(["\n".join(lines), caption(*sources, peers=False)])

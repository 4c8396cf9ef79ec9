"""PyTorch on CUDA in the same run: the time of cuDNN for the same work."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Union

from bench import networks
from bench.conv_layers import Case
from bench.measure import batched_median_s
from bench.peers.work import BUILDERS

CUDNN = "(cuDNN)"
_Size = Union[int, tuple[int, int]]
NETWORKS = BUILDERS


def find() -> Any:
    """The module torch where it can use a GPU, else None."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


@contextlib.contextmanager
def precision_of(torch: Any, precision: str) -> Iterator[None]:
    """Let cuDNN search for algorithms, and use TF32 only in ``"tf32"``."""
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

    batch(2)  # cuDNN's search
    return batched_median_s(batch, rounds=rounds, budget_s=budget_s)


def storage_of(torch: Any, precision: str) -> tuple[Any, Any]:
    """Type and memory format of tensors: NCHW for fp32, else channels_last, which is faster."""
    form = torch.contiguous_format if precision == "fp32" else torch.channels_last
    return torch.float16 if precision == "fp16" else torch.float32, form


def conv_ms(torch: Any, case: Case, precision: str, *, rounds: int, budget_s: float) -> float:
    """Milliseconds of a layer, without its bias."""
    layer = case.layer
    dtype, form = storage_of(torch, precision)
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


@dataclasses.dataclass(frozen=True)
class Product:
    """A convolution, or a product of matrices.

    Attributes
    ----------
    op
        ``"CONV_2D"``, ``"DEPTHWISE_CONV_2D"`` or ``"FULLY_CONNECTED"``.
    src, weights, dst
        Shapes as TFLite has them: images ``(n, h, w, c)``, filters ``(filters, kh, kw, c)`` and
        ``(1, kh, kw, c)``, matrices ``(units, depth)``.
    stride, dilation
        Along height and width.
    same
        Whether zeros are added around the image, so that a stride of 1 keeps its size.
    activation
        ``"RELU"``, ``"RELU6"`` or empty.
    """

    op: str
    src: tuple[int, ...]
    weights: tuple[int, ...]
    dst: tuple[int, ...]
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    same: bool = True
    activation: str = ""

    @property
    def flops(self) -> float:
        """Operations, two for each multiply-add."""
        taps = self.weights[1:3] if self.op == "DEPTHWISE_CONV_2D" else self.weights[1:]
        return 2.0 * math.prod(self.dst) * math.prod(taps)

    def __str__(self) -> str:
        text = f"{'x'.join(map(str, self.src))} -> {self.dst[-1]}"
        if self.op != "FULLY_CONNECTED":
            text += f", {self.weights[1]}x{self.weights[2]}"
            text += f" / {self.stride[0]}" if self.stride != (1, 1) else ""
        return text


_IN_A_GRAPH = 20  # runs: the start of a CUDA graph takes longer than most layers


def product_s(
    torch: Any, product: Product, precision: str, *, rounds: int, budget_s: float
) -> float:
    """Median seconds of a layer with bias and activation, many of them in one CUDA graph.

    Where cuDNN offers convolution, bias and RELU as one operation, the faster way counts. All runs
    have the same operands, which may stay in a cache.
    """
    dtype, form = storage_of(torch, precision)

    def draw(*shape: int) -> Any:
        values = torch.randn(shape, device="cuda").to(dtype)
        return values.contiguous(memory_format=form) if len(shape) == 4 else values

    functional = torch.nn.functional
    bias = draw(product.dst[-1])
    fused: Callable[[], object] | None = None
    if product.op == "FULLY_CONNECTED":
        x = draw(math.prod(product.src) // product.weights[1], product.weights[1])
        weights = draw(*product.weights)

        def multiply() -> Any:
            return functional.linear(x, weights, bias)
    else:
        n, h, w, c = product.src
        filters, kh, kw, depth = product.weights
        deep = product.op == "DEPTHWISE_CONV_2D"
        x = draw(n, c, h, w)
        weights = draw(depth, 1, kh, kw) if deep else draw(filters, depth, kh, kw)
        stride, dilation = list(product.stride), list(product.dilation)
        pads = [kh // 2 * dilation[0], kw // 2 * dilation[1]] if product.same else [0, 0]
        groups = c if deep else c // depth

        def multiply() -> Any:
            return functional.conv2d(x, weights, bias, stride, pads, dilation, groups)

        if product.activation == "RELU":

            def fused() -> object:
                return torch.cudnn_convolution_relu(
                    x, weights, bias, stride, pads, dilation, groups
                )

    def apart() -> object:
        y = multiply()
        if product.activation == "RELU":
            return functional.relu_(y)
        return functional.hardtanh_(y, 0.0, 6.0) if product.activation == "RELU6" else y

    found = []
    with precision_of(torch, precision):
        for run in (apart, fused):
            if run is None:
                continue
            try:
                replay = captured(torch, run, _IN_A_GRAPH)
            except RuntimeError:
                if run is apart:
                    raise
                continue  # cuDNN has no such kernel for these sizes
            found.append(median_s(torch, replay, rounds=rounds, budget_s=budget_s) / _IN_A_GRAPH)
    free(torch)
    return min(found)


def captured(torch: Any, run: Callable[[], object], times: int = 1) -> Callable[[], object]:
    """Warm up, capture so many runs in a CUDA graph, and return what replays them."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            run()
    replay: Callable[[], object] = graph.replay
    return replay


def free(torch: Any) -> None:
    """Return the memory that PyTorch has cached to the device."""
    torch.cuda.empty_cache()


class TorchNet:
    """The layers of `bench.networks.layers.Net` on CUDA tensors, NCHW, with random weights.

    Describing a network runs it: the first run draws the weights, and later runs use them in the
    same order. SAME with a stride pads both sides equally, as PyTorch does.
    """

    def __init__(self, torch: Any, precision: str) -> None:
        self._torch = torch
        self._functional = torch.nn.functional
        self._dtype, self._form = storage_of(torch, precision)
        self._inputs: dict[str, Any] = {}
        self._weights: list[Any] = []
        self._used = 0
        self.result: Any = None

    def run(self, describe: Callable[..., None], batch: int) -> None:
        """Run once; `result` is the result of the last run."""
        self._used = 0
        describe(self, batch)

    def compiled(self, run: Callable[[], object]) -> Callable[[], object]:
        """What ``torch.compile`` makes of a `run` of this net, with its weights as constants."""
        run()
        torch, net, drawn = self._torch, self, self._weights
        names = [f"weights_{i}" for i in range(len(drawn))]

        class Frozen(torch.nn.Module):  # type: ignore[misc, name-defined]
            """Its parameters are the weights: only a module's parameters become constants."""

            def forward(self) -> Any:
                net._weights = [getattr(self, name) for name in names]
                run()
                return net.result

        module = Frozen().eval()
        for name, weights in zip(names, drawn):
            module.register_parameter(name, torch.nn.Parameter(weights, requires_grad=False))
        freezing = importlib.import_module("torch._inductor.config")
        before, freezing.freezing = freezing.freezing, True
        try:
            made: Callable[[], object] = torch.compile(module, fullgraph=True)
            made()
        finally:
            freezing.freezing = before
        return made

    def input(self, name: str, shape: tuple[int, ...]) -> Any:
        if name not in self._inputs:
            n, h, w, c = shape
            self._inputs[name] = self._draw((n, c, h, w), 1.0)
        return self._inputs[name]

    def output(self, x: Any) -> None:
        self.result = x

    def shape(self, x: Any) -> tuple[int, ...]:
        n, c, *extents = x.shape
        return (n, *extents, c)

    def conv(
        self, x: Any, filters: int, kernel: _Size, stride: int = 1, *, padding: str = "SAME",
        activation: str | None = "RELU", groups: int = 1, gain: float = 1.0,
    ) -> Any:  # fmt: skip
        kh, kw = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        weights = self._weight(filters, x.shape[1] // groups, kh, kw, gain=gain)
        pads = (kh // 2, kw // 2) if padding == "SAME" else 0
        bias = self._weight(filters)
        y = self._functional.conv2d(x, weights, bias, stride, pads, groups=groups)
        return self.activate(y, activation)

    def depthwise(
        self, x: Any, kernel: int, stride: int = 1, *, activation: str | None = "RELU"
    ) -> Any:
        channels = x.shape[1]
        return self.conv(x, channels, kernel, stride, activation=activation, groups=channels)

    def dense(
        self, x: Any, units: int, *, activation: str | None = None, gain: float = 1.0,
        transposed: bool = False,  # noqa: ARG002  # concerns the file only
    ) -> Any:  # fmt: skip
        weights = self._weight(units, x.shape[-1], gain=gain)
        return self.activate(self._functional.linear(x, weights, self._weight(units)), activation)

    def activate(self, x: Any, activation: str | None) -> Any:
        functions = {
            "RELU": self._torch.relu_, "TANH": self._torch.tanh_,
            "RELU6": lambda x: self._functional.hardtanh_(x, 0.0, 6.0),
        }  # fmt: skip
        return functions[activation](x) if activation else x

    def max_pool(self, x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
        return self._functional.max_pool2d(x, size, stride, size // 2 if padding == "SAME" else 0)

    def avg_pool(self, x: Any, size: int, stride: int, padding: str = "VALID") -> Any:
        pads = size // 2 if padding == "SAME" else 0
        return self._functional.avg_pool2d(x, size, stride, pads, count_include_pad=False)

    def global_pool(self, x: Any) -> Any:
        return x.mean((2, 3))

    def local_response_norm(self, x: Any) -> Any:
        return self._functional.local_response_norm(x, 5, alpha=5e-4, beta=0.75, k=2.0)

    def add(self, x: Any, y: Any, activation: str | None = None) -> Any:
        return self.activate(x + y, activation)

    def concat(self, *parts: Any) -> Any:
        return self._torch.cat(parts, 1)

    def pad(self, x: Any, amount: int) -> Any:
        return self._functional.pad(x, (amount,) * 4)

    def flatten(self, x: Any) -> Any:
        return x.flatten(1)

    def softmax(self, x: Any) -> Any:
        return self._torch.softmax(x, 1)

    def _weight(self, *shape: int, gain: float = 1.0) -> Any:
        if self._used == len(self._weights):
            fan_in = math.prod(shape[1:])
            self._weights.append(self._draw(shape, math.sqrt(gain / fan_in)))
        self._used += 1
        return self._weights[self._used - 1]

    def _draw(self, shape: tuple[int, ...], scale: float) -> Any:
        values = self._torch.randn(shape, device="cuda").mul_(scale).to(self._dtype)
        return values.contiguous(memory_format=self._form) if len(shape) == 4 else values


def network_ms(
    torch: Any, name: str, batch: int, precision: str, *, rounds: int, budget_s: float,
    compiled: bool = False,
) -> float:  # fmt: skip
    """Milliseconds of a network of `NETWORKS` with replays of its CUDA graph, many in flight.

    With `compiled`, the graph is of what ``torch.compile`` makes of the network, whose weights are
    constants for it; compiling takes some seconds to a minute.
    """
    describe = networks.NETWORKS[name].describe
    with precision_of(torch, precision):
        net = TorchNet(torch, precision)
        run: Callable[[], object] = functools.partial(net.run, describe, batch)
        if compiled:
            run = net.compiled(run)  # it keeps the constants that the graph reads
        replay = captured(torch, run)
        seconds = median_s(torch, replay, rounds=rounds, budget_s=budget_s)
    del replay, run, net
    if compiled:
        torch._dynamo.reset()  # else the weights stay, and other networks count as recompilations
    free(torch)
    return seconds * 1e3

"""Chains of nodes computed band by band give the same results in less memory."""

from __future__ import annotations

from random import Random
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from tests import quick
from tests.model_maker import ModelMaker
from tests.models.comparison import relative_l2
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import MODEL_L2

# The same engine for bands and whole tensors, so that results are equal.
PLAIN = {"conv2d": "naive", "depthwise_conv2d": "naive", "transpose_conv": "naive"}
SAME = 1e-6  # relative L2; bands and wholes may take different engines

Array = Any


class Rows(ModelMaker):
    """A model of images; every method adds a node and returns its result."""

    def __init__(self, image: tuple[int, int, int, int], seed: int = 3) -> None:
        super().__init__()
        self.image = image
        self.rng = np.random.default_rng(seed)

    def weights(self, *shape: int, terms: int = 1) -> int:
        values = self.rng.standard_normal(shape).astype(np.float32)
        return self.constant(values / np.float32(np.sqrt(terms)))

    def conv(
        self,
        x: int,
        filters: int,
        kernel: tuple[int, int] = (3, 3),
        *,
        stride: int = 1,
        dilation: int = 1,
        padding: str = "SAME",
        act: str = "NONE",
    ) -> int:
        n, h, w, c = self.shape(x)
        size = [_filtered(e, k, stride, dilation, padding) for e, k in zip((h, w), kernel)]
        inputs = [x, self.weights(filters, *kernel, c, terms=c * kernel[0] * kernel[1])]
        return self.op(
            "CONV_2D",
            [*inputs, self.weights(filters)],
            (n, *size, filters),
            padding=padding,
            stride_w=stride,
            stride_h=stride,
            dilation_w_factor=dilation,
            dilation_h_factor=dilation,
            fused_activation_function=act,
        )

    def depthwise(self, x: int, kernel: tuple[int, int], stride: int = 1) -> int:
        n, h, w, c = self.shape(x)
        size = [_filtered(e, k, stride, 1, "SAME") for e, k in zip((h, w), kernel)]
        return self.op(
            "DEPTHWISE_CONV_2D",
            [x, self.weights(1, *kernel, c, terms=kernel[0] * kernel[1]), self.weights(c)],
            (n, *size, c),
            padding="SAME",
            stride_w=stride,
            stride_h=stride,
            depth_multiplier=1,
        )

    def transposed(self, x: int, filters: int, kernel: int, stride: int, padding: str) -> int:
        n, h, w, c = self.shape(x)
        more = max(kernel - stride, 0) if padding == "VALID" else 0
        shape = (n, h * stride + more, w * stride + more, filters)
        inputs = [self.constant(np.array(shape, np.int32))]
        inputs.append(self.weights(filters, kernel, kernel, c, terms=c * kernel**2))
        options = {"padding": padding, "stride_w": stride, "stride_h": stride}
        return self.op("TRANSPOSE_CONV", [*inputs, x, self.weights(filters)], shape, **options)

    def mirrored(self, x: int, filters: int, kernel: tuple[int, int], mode: str) -> int:
        """A convolution of an image that reflection has made larger."""
        return self.conv(self.mirror(x, kernel, mode), filters, kernel, padding="VALID")

    def mirror(self, x: int, kernel: tuple[int, int], mode: str) -> int:
        (top, left), (bottom, right) = [k // 2 for k in kernel], [(k - 1) // 2 for k in kernel]
        paddings = self.constant(np.array([[0, 0], [top, bottom], [left, right], [0, 0]], np.int32))
        n, h, w, c = self.shape(x)
        shape = (n, h + top + bottom, w + left + right, c)
        return self.op("MIRROR_PAD", [x, paddings], shape, mode=mode)

    def pad(self, x: int, rows: tuple[int, int], columns: tuple[int, int]) -> int:
        n, h, w, c = self.shape(x)
        paddings = self.constant(np.array([[0, 0], rows, columns, [0, 0]], np.int32))
        return self.op("PAD", [x, paddings], (n, h + sum(rows), w + sum(columns), c))

    def pool(self, x: int, kind: str, kernel: int, stride: int, padding: str = "SAME") -> int:
        n, h, w, c = self.shape(x)
        size = [_filtered(extent, kernel, stride, 1, padding) for extent in (h, w)]
        return self.op(
            f"{kind}_POOL_2D",
            [x],
            (n, *size, c),
            padding=padding,
            stride_w=stride,
            stride_h=stride,
            filter_width=kernel,
            filter_height=kernel,
        )

    def join(self, *parts: int, axis: int = 3) -> int:
        shape = list(self.shape(parts[0]))
        shape[axis] = sum(self.shape(part)[axis] for part in parts)
        return self.op("CONCATENATION", list(parts), tuple(shape), axis=axis)

    def resize(self, x: int, kind: str, height: int, width: int, **options: bool) -> int:
        n, _, _, c = self.shape(x)
        size = self.constant(np.array([height, width], np.int32))
        return self.op(f"RESIZE_{kind}", [x, size], (n, height, width, c), **options)

    def each(self, name: str, *inputs: int, **options: Any) -> int:
        return self.op(name, list(inputs), self.shape(inputs[0]), **options)

    def add(self, a: int, b: int, act: str = "NONE") -> int:
        return self.each("ADD", a, b, fused_activation_function=act)


def _filtered(extent: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    if padding == "VALID":
        extent -= (kernel - 1) * dilation
    return -(-extent // stride)


def run(model: bytes, inputs: list[Array], **options: Any) -> tuple[list[Array], Any]:
    delegate = clgpu_delegate.load(warm_up=False, **options)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    return run_interpreter(interpreter, inputs), delegate.explain()


def check_bands(
    m: Rows,
    device: str,
    bands: tuple[int, ...] = (1, 3, 7, 16),
    *,
    precision: str = "fp32",
    same: float = SAME,
    split: bool = True,
    **options: Any,
) -> None:
    """Compare bands of this many rows with the whole, and the whole with the stock kernels."""
    model = m.build()
    inputs = [m.rng.standard_normal(m.image).astype(np.float32)]
    options = {"device": device, "precision": precision, **options}
    want, whole = run(model, inputs, **options)
    assert whole.claimed == whole.total
    interpreter = make_interpreter(op_runtime(), model, [], "builtin")
    for got, reference in zip(want, run_interpreter(interpreter, inputs)):
        assert relative_l2(got, reference) <= MODEL_L2[precision]
    for band in bands:
        got, plan = run(model, inputs, row_band=band, **options)
        launches = plan.partitions[0].launches
        assert not split or launches > whole.partitions[0].launches, f"no bands of {band} rows"
        for index, (g, w) in enumerate(zip(got, want)):
            error = relative_l2(g, w)
            assert error <= same, f"bands of {band} rows: output {index} is off by {error:.1e}"


def start(shape: tuple[int, int, int, int]) -> tuple[Rows, int]:
    m = Rows(shape)
    return m, m.input("x", shape)


def _chain() -> Rows:
    m, x = start((1, 37, 9, 3))
    x = m.conv(x, 5, (3, 3), act="RELU")
    x = m.conv(x, 6, (9, 5))
    x = m.each("TANH", x)
    m.output(m.conv(x, 4, (1, 1)))
    return m


def _strides() -> Rows:
    m, x = start((1, 45, 12, 3))
    x = m.conv(x, 4, (5, 3), stride=2)
    x = m.conv(x, 4, (3, 3), stride=2, padding="VALID")
    x = m.conv(x, 4, (4, 2), dilation=2)
    m.output(m.conv(x, 2, (1, 1), stride=2))
    return m


def _reflection() -> Rows:
    m, x = start((1, 33, 17, 2))
    x = m.mirrored(x, 4, (9, 9), "REFLECT")
    x = m.mirrored(x, 4, (4, 3), "REFLECT")
    x = m.mirror(x, (5, 3), "SYMMETRIC")
    m.output(m.conv(x, 3, (3, 3)))
    return m


def _skips() -> Rows:
    m, x = start((1, 40, 10, 4))
    first = m.conv(x, 8, act="RELU")
    y = first
    for _ in range(4):
        y = m.add(y, m.conv(m.conv(y, 8, (5, 5), act="RELU"), 8))
    m.output(m.conv(m.join(first, y, x), 3))
    return m


def _blocks() -> Rows:
    m, x = start((1, 32, 8, 3))
    for _ in range(2):
        x = m.join(*[m.mirrored(x, 4, (k, k), "REFLECT") for k in (3, 5, 7, 9)])
        x = m.each("LEAKY_RELU", x, alpha=0.2)
    m.output(m.each("LOGISTIC", m.conv(x, 3)))
    return m


def _hourglass() -> Rows:
    m, x = start((1, 44, 12, 4))
    a = m.conv(x, 6)
    b = m.conv(m.pool(a, "MAX", 2, 2), 8)
    c = m.conv(m.pool(b, "AVERAGE", 3, 2), 8)
    up = m.resize(c, "BILINEAR", 22, 6, align_corners=True)
    up = m.conv(m.join(up, b), 6)
    up = m.resize(up, "BILINEAR", 44, 12, half_pixel_centers=True)
    m.output(m.conv(m.join(a, up), 3))
    return m


def _resizes() -> Rows:
    m, x = start((1, 13, 5, 4))
    x = m.resize(x, "NEAREST_NEIGHBOR", 29, 9)
    x = m.resize(x, "BILINEAR", 58, 9)
    x = m.conv(x, 3)
    x = m.resize(x, "BILINEAR", 41, 7, align_corners=True)
    x = m.resize(x, "NEAREST_NEIGHBOR", 23, 7, align_corners=True)
    m.output(m.resize(x, "NEAREST_NEIGHBOR", 46, 7, half_pixel_centers=True))
    return m


def _pads() -> Rows:
    m, x = start((1, 30, 7, 3))
    x = m.pad(x, (4, 5), (1, 0))
    x = m.pool(x, "MAX", 3, 1, "VALID")
    x = m.pad(m.each("NEG", x), (0, 9), (0, 2))
    m.output(m.pool(x, "AVERAGE", 4, 3))
    return m


def _rowwise() -> Rows:
    m, x = start((1, 26, 6, 8))
    scale = m.weights(8)
    y = m.each("MUL", x, scale, fused_activation_function="NONE")
    y = m.each("SUB", y, m.weights(1, 26, 6, 8), fused_activation_function="NONE")
    y = m.each("MAXIMUM", y, m.conv(x, 8, (1, 1)))
    y = m.each("SOFTMAX", y, beta=1.0)
    m.output(m.each("PRELU", y, m.weights(1, 1, 8)), m.each("ABS", y))
    return m


def _separable() -> Rows:
    m, x = start((1, 31, 11, 8))
    for _ in range(2):
        y = m.conv(m.depthwise(x, (3, 3)), 8, (1, 1), act="RELU6")
        x = m.add(x, y)
    m.output(m.conv(m.depthwise(x, (5, 3), stride=2), 5, (1, 1)))
    return m


def _blocks_of_pixels() -> Rows:
    m, x = start((1, 24, 6, 3))
    x = m.op("SPACE_TO_DEPTH", [m.conv(x, 4)], (1, 12, 3, 16), block_size=2)
    x = m.op("DEPTH_TO_SPACE", [m.conv(x, 18)], (1, 36, 9, 2), block_size=3)
    m.output(m.conv(x, 3, (5, 3)))
    return m


def _transposed() -> Rows:
    m, x = start((1, 15, 5, 4))
    for kernel, stride, padding in [
        (3, 2, "SAME"),
        (4, 2, "VALID"),
        (2, 3, "SAME"),
        (5, 1, "SAME"),
    ]:
        x = m.transposed(m.conv(x, 4), 4, kernel, stride, padding)
        x = m.pool(x, "MAX", 2, 2)
    m.output(x)
    return m


def _means() -> Rows:
    """Regions with a border that needs all rows."""
    m, x = start((1, 28, 9, 4))
    y = m.conv(m.conv(x, 6), 6)
    axes = m.constant(np.array([1, 2], np.int32))
    mean = m.op("MEAN", [y, axes], (1, 1, 1, 6), keep_dims=True)
    y = m.each("SUB", y, mean, fused_activation_function="NONE")
    m.output(m.conv(m.conv(y, 4, (5, 5)), 4))
    return m


def _outputs_of_all_heights() -> Rows:
    m, x = start((1, 48, 6, 3))
    a = m.conv(x, 4)
    b = m.conv(m.pool(a, "MAX", 2, 2), 4)
    c = m.conv(m.pool(b, "MAX", 4, 4), 4)
    m.output(a, b, m.conv(b, 2), c)
    return m


MODELS = {
    f.__name__.strip("_"): f
    for f in (
        _chain,
        _strides,
        _reflection,
        _skips,
        _blocks,
        _hourglass,
        _resizes,
        _pads,
        _rowwise,
        _separable,
        _blocks_of_pixels,
        _transposed,
        _means,
        _outputs_of_all_heights,
    )
}


@pytest.mark.parametrize("name", MODELS)
def test_bands_are_what_the_whole_is(name, device):
    # Each tensor has its own memory, filled with NaN: what is read must have been written.
    check_bands(MODELS[name](), device, engines=PLAIN, share_memory=False)


@pytest.mark.parametrize("name", ["skips", "hourglass", "blocks", "separable"])
def test_bands_share_memory(name, device):
    check_bands(MODELS[name](), device, (5, 16))


@pytest.mark.parametrize("name", ["skips", "hourglass", "rowwise"])
def test_bands_in_half(name, device):
    check_bands(MODELS[name](), device, (4,), precision="fp16", engines=PLAIN, same=1e-3)


def random_chain(seed: int) -> Rows:
    """A dozen nodes, each reading one of the last results, with joins of what has one size."""
    random = Random(seed)
    m = Rows((1, random.randint(17, 50), random.randint(4, 9), random.randint(1, 4)), seed)
    made = [m.input("x", m.image)]

    def grow(x: int) -> int:
        _, h, w, _ = m.shape(x)
        kernel = (random.randint(1, min(7, h - 1)), random.randint(1, max(1, min(5, w - 1))))
        filters = random.randint(1, 5)
        peers = [t for t in made if m.shape(t) == m.shape(x)]
        neighbours = [t for t in made if m.shape(t)[:3] == m.shape(x)[:3]]
        ways = [
            lambda: m.conv(x, filters, kernel, act=random.choice(["NONE", "RELU"])),
            lambda: m.conv(x, filters, kernel, padding="VALID"),
            lambda: m.mirrored(x, filters, kernel, random.choice(["REFLECT", "SYMMETRIC"])),
            lambda: m.each(random.choice(["TANH", "NEG", "LOGISTIC"]), x),
            lambda: m.add(x, random.choice(peers)),
            lambda: m.join(x, random.choice(neighbours)),
            lambda: m.depthwise(x, kernel, random.randint(1, 2)),
            lambda: m.pad(x, (random.randint(0, 3), random.randint(0, 3)), (1, 0)),
        ]
        if h > 12:
            size = random.randint(2, 4)
            ways += [
                lambda: m.conv(x, filters, kernel, stride=2),
                lambda: m.pool(x, random.choice(["MAX", "AVERAGE"]), size, random.randint(1, 2)),
            ]
        if h < 40:
            centers = {random.choice(["align_corners", "half_pixel_centers"]): True}
            kind = random.choice(["BILINEAR", "NEAREST_NEIGHBOR"])
            height = random.choice([2 * h, random.randint(h // 2, 2 * h)])
            ways += [lambda: m.resize(x, kind, height, w, **centers)]
        return random.choice(ways)()

    read: set[int] = set()
    for _ in range(random.randint(3, 12)):
        source = random.choice(made[-3:])
        read.add(source)
        made.append(grow(source))
    m.output(*[t for t in made[1:] if t not in read or random.random() < 0.1])
    return m


@hypothesis.settings(max_examples=3 if quick.is_on() else 12)
@hypothesis.given(seed=st.integers(0, 2**31), band=st.sampled_from([1, 2, 5, 9, 16]))
def test_random_chains(seed, band, device):
    m = random_chain(seed)
    check_bands(m, device, (band,), engines=PLAIN, share_memory=seed % 2 == 0, split=False)


def test_memory_is_that_of_bands(device):
    m, x = start((1, 512, 24, 4))
    for _ in range(6):
        x = m.add(x, m.conv(m.conv(x, 16, act="RELU"), 4))
    m.output(m.conv(x, 1))
    model = m.build()
    image = [m.rng.standard_normal(m.image).astype(np.float32)]
    _, whole = run(model, image, device=device)
    _, bands = run(model, image, device=device, row_band=16)
    outside = 512 * 24 * (4 + 1) * 4  # input and output
    widest = 512 * 24 * 16 * 4
    assert whole.arena_bytes >= widest
    assert bands.arena_bytes <= outside + widest // 4


def _gate() -> Rows:
    """A large tensor that waits for what needs all rows of the image."""
    m, x = start((1, 64, 16, 2))
    large = m.conv(x, 16)
    small = m.conv(m.conv(x, 16, stride=2), 16, stride=2)
    axes = m.constant(np.array([1, 2], np.int32))
    gate = m.op("MEAN", [small, axes], (1, 1, 1, 16), keep_dims=True)
    gated = m.each("MUL", large, m.each("LOGISTIC", gate), fused_activation_function="NONE")
    m.output(m.conv(gated, 2, (5, 5)))
    return m


@pytest.mark.parametrize("band", [3, 8])
def test_large_tensors_remain_bands_between_regions(band, device):
    m = _gate()
    image = [m.rng.standard_normal(m.image).astype(np.float32)]
    (want,), _ = run(m.build(), image, device=device)
    large = 64 * 16 * 16 * 4
    (got,), _ = run(m.build(), image, device=device, row_band=band, max_object=large // 2)
    assert relative_l2(got, want) <= SAME


def test_weights_are_packed_once(device):
    m = _chain()
    _, whole = run(m.build(), [np.zeros(m.image, np.float32)], device=device)
    _, bands = run(m.build(), [np.zeros(m.image, np.float32)], device=device, row_band=4)
    weights = [sum(p.weights_bytes for p in plan.partitions) for plan in (whole, bands)]
    assert weights[1] <= 2 * weights[0]  # the first and the last bands may take other engines

"""Experts of a dense file that are alike are computed together, and only those that are picked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import MODEL_L2, assert_close, relative_l2

Array = Any
WIDTH, HIDDEN = 13, 9


class Mixture:
    """A layer of experts, each ``down(tanh(first(x)) * second(x))``, with weights as an input.

    Inputs are x ``(*leading, WIDTH)``, scores ``(*leading, experts)``, of which the largest are
    picked, and weights ``(*leading, chosen)`` of those.
    """

    def __init__(
        self, leading: Sequence[int] = (2,), experts: int = 6, chosen: int = 2, seed: int = 0
    ) -> None:
        self.leading, self.experts, self.chosen = tuple(leading), experts, chosen
        self.rng = np.random.default_rng(seed)
        shapes = {"first": (HIDDEN, WIDTH), "second": (HIDDEN, WIDTH), "down": (WIDTH, HIDDEN)}
        self.matrices = {
            name: (self.rng.standard_normal((experts, *shape)) * 0.4).astype(np.float32)
            for name, shape in shapes.items()
        }

    def inputs(self) -> list[Array]:
        sizes = (WIDTH, self.experts, self.chosen)
        return [
            self.rng.standard_normal((*self.leading, size)).astype(np.float32) for size in sizes
        ]

    def gates(self, m: ModelMaker, scores: int, weights: int, *, on: float = 1) -> int:
        shape = (*self.leading, self.chosen)
        _, indices = m.op(
            "TOPK_V2", [scores, m.constant(np.int32(self.chosen))], [shape] * 2,
            dtype=[np.float32, np.int32],
        )  # fmt: skip
        numbers = [np.int32(self.experts), np.float32(on), np.float32(0)]
        hot = m.op(
            "ONE_HOT", [indices, *map(m.constant, numbers)], (*shape, self.experts),
            dtype=np.float32, axis=-1,
        )  # fmt: skip
        new = m.constant(np.int32([-1, *shape[1:], 1]))
        column = m.op("RESHAPE", [weights, new], (*shape, 1))
        terms = m.op("MUL", [hot, column], m.shape(hot))
        axis = m.constant(np.int32([len(self.leading)]))
        return m.op("SUM", [terms, axis], (*self.leading, self.experts), keep_dims=False)

    def expert(self, m: ModelMaker, x: int, i: int, *, half: bool, other: str) -> int:
        hidden, last = (*self.leading, HIDDEN), i == self.experts - 1

        def product(x: int, name: str, shape: tuple[int, ...], bias: int | None = None) -> int:
            matrix = self.matrices[name][i]
            weights = m.constant(matrix.astype(np.float16) if half else matrix)
            if half:
                weights = m.op("DEQUANTIZE", [weights], matrix.shape, dtype=np.float32)
            return m.op("FULLY_CONNECTED", [x, weights, bias], shape, keep_num_dims=len(shape) != 2)

        bias = None
        if other == "bias":
            bias = m.constant(np.full(HIDDEN, i / 8, np.float32))
        function = "LOGISTIC" if other == "function" and last else "TANH"
        y = m.op(function, [product(x, "first", hidden, bias)], hidden)
        if other == "softmax":
            y = m.op("SOFTMAX", [y], hidden, beta=1.0)
        scale = m.constant(np.float32(0.5 if other == "number" and last else 0.75))
        y = m.op("MUL", [y, scale], hidden)
        y = m.op("MUL", [y, product(x, "second", hidden)], hidden)
        return product(y, "down", (*self.leading, WIDTH))

    def model(self, *, half: bool = False, other: str = "") -> bytes:
        m = ModelMaker()
        x, scores, weights = (
            m.input(name, (*self.leading, size))
            for name, size in zip("xsw", (WIDTH, self.experts, self.chosen))
        )
        gates = self.gates(m, scores, weights, on=2 if other == "on" else 1)
        axis = m.constant(np.int32(len(self.leading)))
        parts = m.op("SPLIT", [axis, gates], [(*self.leading, 1)] * self.experts,
                     dtype=[np.float32] * self.experts, num_splits=self.experts)  # fmt: skip
        shape = (*self.leading, WIDTH)
        # Loops begin with zeros.
        total = m.constant(np.zeros(shape, np.float32)) if other == "zeros" else None
        for i, gate in enumerate(parts):
            y = m.op("MUL", [self.expert(m, x, i, half=half, other=other), gate], shape)
            total = y if total is None else m.op("ADD", [total, y], shape)
            if other == "addend" and i in (0, 2):
                total = m.op("ADD", [total, x], shape)
            if other == "product" and i == 2:
                total = m.op("MUL", [total, x], shape)
        m.output(m.op("ABS", [total], shape) if other == "behind" else total)
        if other == "gates":
            m.output(gates)
        return m.build()

    def expected(self, x: Array, scores: Array, weights: Array) -> Array:
        """Float64, of the experts that are picked."""
        rows = x.reshape(-1, WIDTH).astype(np.float64)
        picked = np.argsort(-scores, axis=-1, kind="stable")[..., : self.chosen]
        result = np.zeros_like(rows)
        first, second, down = (self.matrices[n].astype(np.float64) for n in self.matrices)
        which, factors = (array.reshape(len(rows), -1) for array in (picked, weights))
        for i, row in enumerate(rows):
            for e, factor in zip(which[i], factors[i]):
                inner = 0.75 * np.tanh(first[e] @ row) * (second[e] @ row)
                result[i] += float(factor) * (down[e] @ inner)
        return result.reshape(x.shape)


def run(model: bytes, inputs: Sequence[Array], device: str, times: int = 2, **options: Any):
    """Outputs of an inference after others, and the delegate."""
    delegate = clgpu_delegate.load(device=device, **options)
    interpreter = make_interpreter(op_runtime(), model, [delegate])
    for _ in range(times):
        outputs = run_interpreter(interpreter, list(inputs))
    return outputs, delegate


def stock(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    return run_interpreter(make_interpreter(op_runtime(), model), list(inputs))


def steps(delegate: clgpu_delegate.Delegate, outcome: str) -> list[str]:
    return [
        step.detail for step in delegate.explain().steps
        if step.pass_name == "group_experts" and step.outcome == outcome
    ]  # fmt: skip


def launches(delegate: clgpu_delegate.Delegate) -> int:
    (partition,) = delegate.explain().partitions
    return partition.launches


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("share_memory", [True, False])
@pytest.mark.parametrize("leading", [(1,), (3,), (8,), (1, 5), (2, 3)])
def test_results_are_those_of_all_experts(leading, share_memory, precision, device):
    # Devices with tensor cores compute all experts where samples leave hardly any of them.
    mixture = Mixture(leading, experts=13, chosen=3, seed=sum(leading))
    model = mixture.model()
    for _ in range(2):
        inputs = mixture.inputs()
        wanted = mixture.expected(*inputs)
        assert_close(stock(model, inputs)[0], wanted, "fp32", 64, "stock")
        for experts in ("dense", "sparse"):
            (output,), delegate = run(
                model, inputs, device,
                experts=experts, share_memory=share_memory, precision=precision,
            )  # fmt: skip
            assert bool(steps(delegate, "applied")) == (experts == "sparse")
            assert output.shape == wanted.shape
            assert relative_l2(output, wanted) < MODEL_L2[precision]


def test_choice_changes_from_one_inference_to_the_next(device):
    mixture = Mixture((3,))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), mixture.model(), [delegate])
    for _ in range(5):
        inputs = mixture.inputs()
        (output,) = run_interpreter(interpreter, inputs)
        assert_close(output, mixture.expected(*inputs), "fp32", 64, "")


def test_samples_that_pick_all_experts_together(device):
    mixture = Mixture((8,), experts=16, chosen=2)
    x, scores, weights = mixture.inputs()
    scores = np.zeros_like(scores)
    for sample in range(8):
        scores[sample, [2 * sample, 2 * sample + 1]] = 1
    (output,), _ = run(mixture.model(), [x, scores, weights], device)
    assert_close(output, mixture.expected(x, scores, weights), "fp32", 64, "")


def test_ties_are_the_file_s(device):
    """TOPK_V2 takes the first ones, and no others are computed."""
    mixture = Mixture((3,))
    x, scores, weights = mixture.inputs()
    scores[:] = 1
    model = mixture.model()
    (output,), delegate = run(model, [x, scores, weights], device)
    assert steps(delegate, "applied")
    assert_close(output, stock(model, [x, scores, weights])[0], "fp32", 64, "")


@pytest.mark.parametrize("weight", [0.0, -0.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("batch", [1, 3])
def test_weights(weight, batch, device):
    """As with all experts: an infinite weight is NaN at all others, which it multiplies by 0."""
    mixture = Mixture((batch,))
    inputs = mixture.inputs()
    inputs[2][-1, 1] = weight
    model = mixture.model()
    (dense,), _ = run(model, inputs, device, experts="dense")
    (output,), delegate = run(model, inputs, device)
    assert steps(delegate, "applied")
    np.testing.assert_array_equal(np.isnan(output), np.isnan(dense))
    assert np.isnan(output[-1]).all() == (weight != 0)
    assert_close(np.nan_to_num(output), np.nan_to_num(dense), "fp32", 64, str(weight))


def test_gates_that_pick_nothing_give_zeros(device):
    mixture = Mixture((3,))
    inputs = mixture.inputs()
    inputs[2][:] = 0
    (output,), _ = run(mixture.model(), inputs, device)
    assert not output.any()


def test_samples_that_are_not_numbers(device):
    mixture = Mixture((3,))
    inputs = mixture.inputs()
    inputs[0][1] = np.nan
    wanted = stock(mixture.model(), inputs)[0]
    (output,), _ = run(mixture.model(), inputs, device)
    assert np.isnan(output[1]).all()
    assert_close(output[[0, 2]], wanted[[0, 2]], "fp32", 64, "")


def test_experts_without_weight_may_be_infinite(device):
    """Those that nobody has picked, and those that a sample has picked with the weight 0."""
    mixture = Mixture((2,))
    x, scores, weights = mixture.inputs()
    scores[:] = [6, 5, 4, 3, 2, 1]
    wanted = mixture.expected(x, scores, weights * np.float32([1, 0]))
    weights[:, 1] = 0
    mixture.matrices["down"][[1, 4]] = np.inf
    (output,), _ = run(mixture.model(), [x, scores, weights], device)
    assert_close(output, wanted, "fp32", 64, "")


def test_launches_do_not_grow_with_the_number_of_experts(device):
    counts = set()
    for experts in (4, 6, 8):
        # Where rows are as many as experts, CPUs sort them, which takes a launch for each product.
        mixture = Mixture((4,), experts)
        _, delegate = run(mixture.model(), mixture.inputs(), device, times=1)
        counts.add(launches(delegate))
        _, apart = run(mixture.model(), mixture.inputs(), device, times=1, experts="dense")
        assert launches(apart) > 4 * experts
    assert len(counts) == 1
    assert counts.pop() < 12


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ("function", "the experts differ in more than constants: the first one and number 5"),
        ("number", "MUL at node"),
        ("softmax", "SOFTMAX at node"),
        ("product", "something else than additions reads the products with the gates"),
        ("on", "the gates are not known to be a sum of weights"),
    ],
)
def test_other_experts_stay_apart(other, reason, device):
    mixture = Mixture((3,))
    inputs = mixture.inputs()
    model = mixture.model(other=other)
    (output,), delegate = run(model, inputs, device)
    assert not steps(delegate, "applied")
    (told,) = steps(delegate, "declined")
    assert told.startswith(reason)
    assert_close(output, stock(model, inputs)[0], "fp32", 64, other)
    skips = [
        step for step in delegate.explain().steps
        if step.pass_name == "skip_experts" and step.outcome == "applied"
    ]  # fmt: skip
    assert len(skips) == mixture.experts


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("leading", [(1,), (3,), (1, 4)])
@pytest.mark.parametrize("other", ["addend", "zeros", "bias"])
def test_what_is_added(other, leading, precision, device):
    """To the sum of the experts, or within each of them."""
    mixture = Mixture(leading)
    inputs = mixture.inputs()
    model = mixture.model(other=other)
    (output,), delegate = run(model, inputs, device, precision=precision)
    assert steps(delegate, "applied")
    assert relative_l2(output, stock(model, inputs)[0]) < MODEL_L2[precision]
    assert not np.allclose(output, stock(mixture.model(), inputs)[0]) or other == "zeros"


@pytest.mark.parametrize("other", ["behind", "gates"])
def test_what_else_reads_gates_or_the_sum(other, device):
    mixture = Mixture((3,))
    inputs = mixture.inputs()
    model = mixture.model(other=other)
    outputs, delegate = run(model, inputs, device)
    assert steps(delegate, "applied")
    for output, wanted in zip(outputs, stock(model, inputs)):
        assert_close(output, wanted, "fp32", 64, other)


def test_more_than_half_of_the_experts(device):
    mixture = Mixture((2,), experts=5, chosen=3)
    inputs = mixture.inputs()
    (output,), delegate = run(mixture.model(), inputs, device)
    assert steps(delegate, "declined") == ["3 of 5 experts are chosen, which is more than half"]
    assert_close(output, mixture.expected(*inputs), "fp32", 64, "")


@pytest.mark.parametrize(
    "options",
    [{"memory_budget": 1 << 30}, {"engines": {"fully_connected": "naive"}}],
    ids=["budget", "engines"],
)
def test_options_that_keep_experts_apart(options, device):
    mixture = Mixture((2,))
    inputs = mixture.inputs()
    (output,), delegate = run(mixture.model(), inputs, device, **options)
    assert len(steps(delegate, "skipped")) == 1
    assert_close(output, mixture.expected(*inputs), "fp32", 64, "")


def test_dense_experts_stay_apart(device):
    mixture = Mixture((2,))
    _, delegate = run(mixture.model(), mixture.inputs(), device, experts="dense")
    assert [s.outcome for s in delegate.explain().steps if s.pass_name == "group_experts"] == []


MEMORY = """
import json, sys
from tests.passes import test_group_experts as tested

tested.WIDTH = tested.HIDDEN = 96
mixture = tested.Mixture((1,), experts=16, chosen=2)
model = mixture.model(half=sys.argv[2] == "half")
options = {"experts": sys.argv[3], "tuning": "off", "chain": "off"}
_, delegate = tested.run(model, mixture.inputs(), sys.argv[1], **options)
(partition,) = delegate.explain().partitions
told = [bool(tested.steps(delegate, "applied")), partition.weights_bytes]
print(json.dumps([*told, delegate.explain().peak_bytes, delegate.stats()["peak_device_bytes"]]))
"""


@pytest.mark.parametrize("width", ["float", "half"])
def test_no_weight_is_on_the_device_twice(width, device):
    """Nor wider than in the file; and what is predicted is what is counted."""
    weights = {}
    for experts in ("dense", "sparse"):
        done = run_python(MEMORY, device, width, experts)
        assert_succeeds(done)
        applied, weights[experts], predicted, counted = json.loads(done.stdout.splitlines()[-1])
        assert applied == (experts == "sparse")
        assert predicted == counted
    assert weights["sparse"] <= weights["dense"]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_matrices_of_halves(precision, device):
    mixture = Mixture((3,))
    inputs = mixture.inputs()
    model = mixture.model(half=True)
    (output,), delegate = run(model, inputs, device, precision=precision)
    assert steps(delegate, "applied")
    wanted = stock(model, inputs)[0]
    assert relative_l2(output, wanted) < MODEL_L2[precision]


def test_matrices_beyond_half_stay_floats(device):
    mixture = Mixture((2,), seed=4)
    for name, factor in (("first", 1e-6), ("down", 1e6)):
        mixture.matrices[name] *= np.float32(factor)
    inputs = mixture.inputs()
    (output,), delegate = run(mixture.model(), inputs, device, precision="fp16")
    assert steps(delegate, "applied")
    assert np.isfinite(output).all()
    assert relative_l2(output, mixture.expected(*inputs)) < MODEL_L2["fp16"]


def test_number_of_samples_may_change(device):
    mixture = Mixture((4,))
    delegate = clgpu_delegate.load(device=device)
    interpreter = make_interpreter(op_runtime(), mixture.model(), [delegate])
    for samples in (4, 1, 7, 4):
        mixture.leading = (samples,)
        inputs = mixture.inputs()
        (output,) = run_interpreter(interpreter, inputs, {i: x.shape for i, x in enumerate(inputs)})
        assert_close(output, mixture.expected(*inputs), "fp32", 64, str(samples))
        assert steps(delegate, "applied")


@pytest.mark.parametrize(
    "options",
    [{"chain": "on"}, {"verify": "first"}, {"command_list": "on"}, {"profile": True}],
    ids=lambda options: next(iter(options)),
)
def test_other_options(options, device):
    # With a sample, as PoCL's compiler ends the process for a chain with three launches that sort.
    mixture = Mixture((1,))
    inputs = mixture.inputs()
    (output,), delegate = run(mixture.model(), inputs, device, **options)
    assert steps(delegate, "applied")
    assert all(node.claimed for node in delegate.explain().nodes)
    assert_close(output, mixture.expected(*inputs), "fp32", 64, str(options))


def test_tuning_finds_kernels_for_them(device, tmp_path):
    mixture = Mixture((3,))
    path = tmp_path / "mixture.tflite"
    path.write_bytes(mixture.model())
    options = {"device": device, "cache": str(tmp_path / "cache")}
    report = clgpu_delegate.tune(path, budget=20, **options)
    measured = {name for layer in report.layers for name in layer.seconds}
    assert "grouped_16" in measured
    assert not [layer.problems for layer in report.layers if layer.problems]
    inputs = mixture.inputs()
    (output,), delegate = run(mixture.model(), inputs, **options)
    assert steps(delegate, "applied")
    assert_close(output, mixture.expected(*inputs), "fp32", 64, "tuned")

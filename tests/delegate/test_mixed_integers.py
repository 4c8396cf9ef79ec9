"""Nodes that a plan of precisions computes with int8 equal those of a quantised model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from clgpu_delegate import Int8Scale, PrecisionPlan
from clgpu_delegate.errors import QuantizationError
from clgpu_delegate.precision import plan_text
from clgpu_delegate.quantization import rules
from clgpu_delegate.quantization.regions import IntegerParts, integer_parts
from clgpu_delegate.runtimes import find_runtime
from tests import quick
from tests.model_maker import ModelMaker
from tests.models.random_graphs import random_graph
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import relative_l2

SHAPE = (1, 12, 12, 8)


class Network(ModelMaker):
    """Layers with random weights."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(7)

    def floats(self, *shape: int) -> int:
        return self.constant(self.rng.standard_normal(shape).astype(np.float32) * 0.3)

    def convolution(self, x: int, channels: int, size: int = 3, activation: str = "NONE") -> int:
        shape = self.shape(x)
        weights = self.floats(channels, size, size, shape[3])
        inputs = [x, weights, self.floats(channels)]
        return self.op(
            "CONV_2D", inputs, (*shape[:3], channels), padding="SAME", stride_w=1, stride_h=1,
            fused_activation_function=activation,
        )  # fmt: skip

    def depthwise(self, x: int, activation: str = "NONE") -> int:
        shape = self.shape(x)
        return self.op(
            "DEPTHWISE_CONV_2D", [x, self.floats(1, 3, 3, shape[3]), self.floats(shape[3])],
            shape, padding="SAME", stride_w=1, stride_h=1, depth_multiplier=1,
            fused_activation_function=activation,
        )  # fmt: skip

    def pool(self, name: str, x: int) -> int:
        n, h, w, c = self.shape(x)
        return self.op(
            name, [x], (n, h // 2, w // 2, c), padding="VALID", stride_w=2, stride_h=2,
            filter_width=2, filter_height=2, fused_activation_function="NONE",
        )  # fmt: skip


def network() -> bytes:
    """Operations of every kind that has a form of int8 in plans."""
    m = Network()
    x = m.input("x", SHAPE)
    first = m.convolution(x, 8, activation="RELU6")
    y = m.depthwise(first, "RELU")
    y = m.convolution(y, 8, 1)
    y = m.op("ADD", [first, y], SHAPE, fused_activation_function="RELU")
    near = m.pool("MAX_POOL_2D", y)
    far = m.pool("AVERAGE_POOL_2D", m.op("HARD_SWISH", [m.convolution(y, 8)], SHAPE))
    y = m.op("CONCATENATION", [near, far], (1, 6, 6, 16), axis=3)
    y = m.op("PAD", [y, m.constant(np.int32([[0, 0], [1, 1], [1, 1], [0, 0]]))], (1, 8, 8, 16))
    y = m.op("SUB", [y, m.constant(np.full((1, 1, 1, 16), 0.25, np.float32))], (1, 8, 8, 16))
    y = m.op("LEAKY_RELU", [y], (1, 8, 8, 16), alpha=0.1)
    y = m.op("RESIZE_BILINEAR", [y, m.constant(np.int32([4, 4]))], (1, 4, 4, 16))
    gate = m.op("LOGISTIC", [m.convolution(y, 16, 1)], (1, 4, 4, 16))
    y = m.op("MUL", [y, gate], (1, 4, 4, 16))
    y = m.op("TRANSPOSE", [y, m.constant(np.int32([0, 2, 1, 3]))], (1, 4, 4, 16))
    begin, size = m.constant(np.int32([0, 0, 1, 0])), m.constant(np.int32([1, 4, 3, 16]))
    y = m.op("SLICE", [y, begin, size], (1, 4, 3, 16))
    mean = m.op("MEAN", [y, m.constant(np.int32([1, 2]))], (1, 16))
    flat = m.op("RESHAPE", [y, m.constant(np.int32([1, -1]))], (1, 192))
    y = m.op("FULLY_CONNECTED", [flat, m.floats(16, 192), None], (1, 16))
    y = m.op("ADD", [y, mean], (1, 16))
    m.output(m.op("SOFTMAX", [y], (1, 16), beta=1.0), mean)
    return m.build()


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return np.random.default_rng(8).standard_normal((4, *SHAPE)).astype(np.float32)


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch) -> None:
    """`quantize` gives FULLY_CONNECTED one scale for all weights, plans one for each channel."""
    rule = dataclasses.replace(rules.RULES["FULLY_CONNECTED"], axis=0)
    monkeypatch.setitem(rules.RULES, "FULLY_CONNECTED", rule)


def parts_of(content: bytes, samples: Any) -> IntegerParts:
    return integer_parts(content, find_runtime(), [[x] for x in samples], "minmax")


def text_of(model: str, parts: IntegerParts, nodes: Any = None) -> str:
    """A plan with these nodes, or all, as integers."""
    scales = [Int8Scale(t, a.scale, a.zero_point) for t, a in parts.scales.items()]
    return plan_text(
        model,
        None,
        (),
        (),
        (),
        integers=parts.nodes if nodes is None else nodes,
        scales=scales,
    )


def digest(content: bytes, x: np.ndarray, **options: Any) -> str:
    mixed = run(content, x, "mixed", **options)[1].mixed
    assert mixed is not None
    return mixed.model


def run(content: bytes, x: np.ndarray, precision: str, **options: Any) -> tuple[Any, Any]:
    """Outputs, and the explanation."""
    delegate = clgpu_delegate.load(cache="off", precision=precision, **options)
    interpreter = make_interpreter(op_runtime(), content, [delegate])
    return run_interpreter(interpreter, [x]), delegate.explain()


@pytest.mark.usefixtures("channels")
def test_all_nodes_equal_the_quantised_model(device, samples, tmp_path):
    content, integers = network(), tmp_path / "int8.tflite"
    clgpu_delegate.quantize(content, samples, integers)
    parts = parts_of(content, samples)
    plan = text_of(digest(content, samples[0], device=device), parts)
    for x in samples:
        got, explanation = run(content, x, plan, device=device)
        for own, want in zip(got, run_reference(integers.read_bytes(), [x], op_runtime())):
            np.testing.assert_array_equal(own, want)
    applied = [s for s in explanation.steps if s.pass_name == "quantize_activations"]
    assert {s.outcome for s in applied} == {"applied"}
    assert tuple(s.node for s in applied) == parts.nodes
    assert {n.sums for n in explanation.nodes if n.family} == {"integer"}


@pytest.mark.usefixtures("channels")
@pytest.mark.parametrize("odd", [0, 1])
def test_single_nodes_among_floats_equal_those_of_a_quantised_model(device, samples, tmp_path, odd):
    """Each second node is float, so each tensor is converted."""
    m = Network()
    y = m.input("x", SHAPE)
    for activation in ("NONE", "RELU", "NONE", "RELU6", "NONE"):
        y = m.convolution(y, 8, activation=activation)
    m.output(y)
    content, integers = m.build(), tmp_path / "int8.tflite"
    nodes = [node for node in range(5) if node % 2 == odd]
    clgpu_delegate.quantize(content, samples, integers, skip=set(range(5)) - set(nodes))
    model = digest(content, samples[0], device=device)
    plan = text_of(model, parts_of(content, samples), nodes)
    got, explanation = run(content, samples[0], plan, device=device)
    (want,) = run_reference(integers.read_bytes(), [samples[0]], op_runtime())
    # A float that lies between two steps may fall on either side.
    assert relative_l2(got[0], want) < 2e-3
    told = {n.index: (n.family, n.precision) for n in explanation.nodes}
    for node in range(5):
        assert told[node] == ("conv2d", "int8" if node in nodes else "fp32")
    launches = sum(p.launches for p in explanation.partitions)
    assert launches == 5 + nodes.count(0), "kernels convert all but the model's input"


def test_steps_tell_what_is_converted_and_why_a_node_stays_float(samples):
    m = Network()
    x = m.input("x", SHAPE)
    y = m.op("ABS", [m.convolution(m.convolution(x, 8), 8)], SHAPE)
    m.output(m.op("SQUARE", [y], SHAPE))
    content = m.build()
    model = digest(content, samples[0])
    y, z = (Int8Scale(i, 0.05, 3) for i in first_results(content))
    steps = {}
    for scales in ([y], [y, z]):
        plan = plan_text(model, None, (), (), (), integers=range(4), scales=scales)
        _, explanation = run(content, samples[0], plan)
        found = [s for s in explanation.steps if s.pass_name == "quantize_activations"]
        steps[len(scales)] = {s.node: (s.outcome, s.detail) for s in found}
    reason = f"it computes with floats: the plan has no scale of tensor {z.tensor}"
    assert steps[1][1] == ("declined", reason)
    assert steps[2][1] == (
        "applied",
        "it computes with int8, 1 of its inputs converted before it, its result converted to "
        "float behind it",
    )
    reason = "it computes with floats: the plan has no scale of tensor 0"
    assert steps[2][0] == ("declined", reason)
    assert steps[2][3][0] == "declined"


def first_results(content: bytes) -> list[int]:
    delegate = clgpu_delegate.load(cache="off")
    interpreter = make_interpreter(op_runtime(), content, [delegate])
    interpreter.allocate_tensors()
    nodes = delegate.explain().nodes
    return [nodes[0].output_ids[0], nodes[1].output_ids[0]]


def test_plan_file_has_the_scales(samples, tmp_path):
    content = network()
    parts = parts_of(content, samples)
    scales = tuple(Int8Scale(t, a.scale, a.zero_point) for t, a in sorted(parts.scales.items()))
    plan = PrecisionPlan(
        digest(content, samples[0]), (), (), (), "a device", 1e-1, "relative L2", 1e-2, 4, 2,
        (), (), complete=True, integers=parts.nodes, scales=scales,
    )  # fmt: skip
    file: Path = tmp_path / "plan.json"
    plan.save(file)
    assert PrecisionPlan.load(file) == plan
    got, explanation = run(content, samples[0], str(file))
    want, _ = run(content, samples[0], plan.text)
    for own, other in zip(got, want):
        np.testing.assert_array_equal(own, other)
    assert explanation.mixed.integers == parts.nodes
    told = [Int8Scale(*scale) for scale in explanation.mixed.scales]
    assert [dataclasses.replace(s, scale=np.float32(s.scale)) for s in told] == [
        dataclasses.replace(s, scale=np.float32(s.scale)) for s in scales
    ]
    assert f"{len(parts.nodes)} with integers" in " ".join(str(plan).split())
    assert f"{len(parts.nodes)} with integers" in " ".join(str(explanation).split())


@pytest.mark.parametrize(
    "item",
    [
        "integers=", "integers=a", "scales=", "scales=1", "scales=1/0.5", "scales=1/0/0",
        "scales=1/-1/0", "scales=1/nan/0", "scales=1/inf/0", "scales=1/1e-45/0",
        "scales=1/1e39/0", "scales=1/0.5/128", "scales=1/0.5/-129", "scales=1/0.5/--1",
        "scales=1/0.5/0/0", "scales=1/0.5/0+1/0.5/0", "scales=1/0.5/0+", "scales=-1/0.5/0",
    ],
)  # fmt: skip
def test_text_with_wrong_integers_is_an_error(item):
    with pytest.raises(clgpu_delegate.OptionError, match="allowed: fp32, fp16, tf32, mixed, a p"):
        clgpu_delegate.load(precision=f"model=00,{item}")


@pytest.mark.parametrize("text", ["1/0.5/-128", "1/1e-30/127+9999999/1e30/0", "1/5e-1/-0"])
def test_text_with_right_scales_is_read(text):
    clgpu_delegate.load(precision=f"model=00,integers=3,scales={text}")


@pytest.mark.parametrize(
    ("scale", "problem"),
    [
        ({"scale": 0}, r"scales\[0\].scale is 0; allowed: a number from 1.18e-38 on"),
        ({"scale": -1.0}, r"scales\[0\].scale is -1.0; allowed"),
        ({"scale": "1"}, r"scales\[0\].scale is '1'; allowed: a finite number"),
        ({"zero_point": 128}, r"zero_point is 128; allowed: an integer from -128 to 127"),
        ({"zero_point": 0.5}, r"zero_point is 0.5; allowed: an integer from -128 to 127"),
        ({"tensor": -1}, r"scales\[0\].tensor is -1; allowed: an integer from 0 on"),
        ({"more": 1}, r"scales\[0\].more is missing or is no field of a plan"),
    ],
)
def test_wrong_scale_of_a_plan_file_is_named(scale, problem):
    plan = PrecisionPlan(
        "00", (), (), (), "a device", 1e-3, "relative L2", 1e-4, 4, 2, (), (), complete=True,
        integers=(1,), scales=(Int8Scale(1, 0.5, 0),),
    )  # fmt: skip
    data = plan.to_dict()
    with pytest.raises(ValueError, match=problem):
        PrecisionPlan.from_dict({**data, "scales": [{**data["scales"][0], **scale}]})
    del data["scales"], data["integers"]  # as earlier versions wrote it
    assert PrecisionPlan.from_dict(data).integers == ()


@pytest.mark.usefixtures("channels")
@hypothesis.settings(
    max_examples=6 if quick.is_on() else 60,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(random=st.randoms(use_true_random=False))
def test_integers_of_random_graphs_are_those_of_the_quantised_model(device, tmp_path, random):
    """Equal where all nodes are integers; floats between them are rounded in another order."""
    graph = random_graph(random)
    hypothesis.note(str(graph))
    inputs, integers = list(graph.inputs[0]), tmp_path / "int8.tflite"
    explanation = explained(graph.model, inputs, "mixed", device)[1]
    if explanation.mixed is None:
        return
    try:
        parts = integer_parts(graph.model, find_runtime(), [inputs], "minmax")
        clgpu_delegate.quantize(graph.model, [tuple(inputs)], integers)
        want = run_reference(integers.read_bytes(), inputs, op_runtime())
    except (QuantizationError, RuntimeError, ValueError):
        return
    outputs, explanation = explained(
        graph.model, inputs, text_of(explanation.mixed.model, parts), device
    )
    made = ("quantize_activations", "applied")
    applied = {s.node for s in explanation.steps if (s.pass_name, s.outcome) == made}
    whole = applied.issuperset(node.index for node in explanation.nodes)
    for own, other in zip(outputs, want):
        if whole:
            np.testing.assert_array_equal(own, other)
        elif other.dtype.kind == "f" and np.isfinite(other).all():
            assert np.isfinite(own).all()
            assert relative_l2(own, other) < 0.1


def explained(content: bytes, inputs: Any, precision: str, device: str) -> tuple[Any, Any]:
    """Outputs, and the explanation."""
    delegate = clgpu_delegate.load(cache="off", precision=precision, device=device)
    interpreter = make_interpreter(op_runtime(), content, [delegate])
    return run_interpreter(interpreter, inputs), delegate.explain()

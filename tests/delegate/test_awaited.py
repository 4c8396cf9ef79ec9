"""Shapes, axes and sizes that only an inference has: partitions are planned for their values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clgpu_delegate
from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, op_runtime
from tests.runtimes import make_interpreter

Array = np.ndarray
SHAPE = (2, 4, 6)


def answers(interpreter, given: dict[str, Array]) -> list[Array]:
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], given[detail["name"]])
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def reshaped(given: dict[str, Array], factor: int = 1) -> list[Array]:
    """Stock RESHAPE in place keeps the first shape of what follows it, so it is no reference."""
    return [np.abs(given["x"]).reshape(given["value"] * factor)]


def sliced_to(given: dict[str, Array]) -> list[Array]:
    """Stock SLICE stops at another shape than that of the file."""
    begin, size = np.array([1, 0, 2]), given["value"]
    ends = np.where(size < 0, SHAPE, begin + size)
    return [np.abs(given["x"])[tuple(slice(b, e) for b, e in zip(begin, ends))]]


# Of operations whose stock kernels are no reference here.
WANTED = {"RESHAPE": reshaped, "SLICE": sliced_to}


def compare(model: bytes, steps: list[dict[str, Array]], delegate, runtime=None, want=None) -> None:
    """With the stock runtime, or the results that `want` gives for the inputs."""
    runtime = runtime or op_runtime()
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for interpreter in (ours, stock):
        interpreter.allocate_tensors()
    for given in steps:
        for mine, its in zip(answers(ours, given), want(given) if want else answers(stock, given)):
            assert mine.shape == its.shape
            np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)


def one(name: str, settings: int, shape: tuple[int, ...], **options) -> Callable[[], bytes]:
    """NEG, the operation with an operand of this many numbers, and ABS."""

    def build() -> bytes:
        m = ModelMaker()
        x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
        value = m.input("value", (settings,) if settings else (), np.int32)
        m.output(m.op("ABS", [m.op(name, [x, value], shape, **options)], shape))
        return m.build()

    return build


def padded() -> bytes:
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    m.output(m.op("ABS", [m.op("PAD", [x, m.input("value", (3, 2), np.int32)], (3, 5, 7))],
                  (3, 5, 7)))  # fmt: skip
    return m.build()


def filled() -> bytes:
    m = ModelMaker()
    fill = m.op(
        "FILL", [m.input("value", (2,), np.int32), m.constant(np.float32(3))], (4, 6),
        dtype=np.float32,
    )  # fmt: skip
    m.output(m.op("ADD", [m.input("x", SHAPE), fill], SHAPE))
    return m.build()


def largest() -> bytes:
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    found, where = m.op("TOPK_V2", [x, m.input("value", (), np.int32)], [(2, 4, 3)] * 2,
                        dtype=[np.float32, np.int32])  # fmt: skip
    m.output(m.op("ABS", [found], (2, 4, 3)), where)
    return m.build()


def scattered() -> bytes:
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    at = m.constant(np.array([[2], [0]], np.int32))
    shape = m.input("value", (3,), np.int32)
    found = m.op("SCATTER_ND", [at, x, shape], (5, 4, 6), dtype=np.float32)
    m.output(m.op("ABS", [found], (5, 4, 6)))
    return m.build()


def sliced() -> bytes:
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    begin = m.constant(np.array([1, 0, 2], np.int32))
    part = m.op("SLICE", [x, begin, m.input("value", (3,), np.int32)], (1, 4, 2))
    m.output(m.op("ABS", [part], (1, 4, 2)))
    return m.build()


def cut() -> bytes:
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    begin, strides = (m.constant(np.array(v, np.int32)) for v in ([0, 1, 0], [1, 2, 1]))
    part = m.op("STRIDED_SLICE", [x, begin, m.input("value", (3,), np.int32), strides], (1, 2, 2))
    m.output(m.op("ABS", [part], (1, 2, 2)))
    return m.build()


CASES: dict[str, tuple[Callable[[], bytes], list]] = {
    "RESHAPE": (one("RESHAPE", 2, (6, 8)), [[6, 8], [6, 8], [-1, 4], [48, 1]]),
    "TILE": (one("TILE", 3, (2, 4, 12)), [[1, 1, 2], [2, 1, 1], [1, 1, 1]]),
    "SUM": (one("SUM", 1, (2, 6)), [[1], [0], [-1]]),
    "MEAN": (one("MEAN", 1, (2, 1, 6), keep_dims=True), [[1], [2]]),
    "TRANSPOSE": (one("TRANSPOSE", 3, (4, 6, 2)), [[1, 2, 0], [0, 2, 1], [2, 1, 0]]),
    "EXPAND_DIMS": (one("EXPAND_DIMS", 1, (2, 1, 4, 6)), [[1], [0], [-1]]),
    "REVERSE_V2": (one("REVERSE_V2", 1, SHAPE), [[1], [2]]),
    "CUMSUM": (one("CUMSUM", 0, SHAPE), [1, 2]),
    "PAD": (padded, [[[1, 0], [0, 1], [1, 0]], [[0, 0], [2, 1], [0, 0]]]),
    "FILL": (filled, [[4, 6], [1, 6], [4, 1]]),
    "SCATTER_ND": (scattered, [[5, 4, 6], [5, 4, 6], [3, 4, 6]]),
    "SLICE": (sliced, [[1, 4, 2], [1, -1, 4], [1, 2, 1]]),
    "STRIDED_SLICE": (cut, [[1, 4, 2], [2, 4, 6], [2, -1, -1]]),
    "TOPK_V2": (largest, [3, 3, 1, 6]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_may_change_from_one_inference_to_the_next(name, device, rng):
    build, values = CASES[name]
    delegate = clgpu_delegate.load(device=device)
    steps = [
        {"x": rng.standard_normal(SHAPE).astype(np.float32), "value": np.array(v, np.int32)}
        for v in values
    ]
    compare(build(), steps, delegate, want=WANTED.get(name))
    plan = delegate.explain()
    assert all(node.claimed for node in plan.nodes)
    assert len(plan.partitions) == 1
    assert not plan.partitions[0].on_cpu


@pytest.mark.parametrize("options", [{"verify": 1}, {"profile": True}, {"precision": "fp16"}],
                         ids=str)  # fmt: skip
def test_values_are_taken_with_every_option(device, rng, options):
    build, values = CASES["RESHAPE"]
    x = rng.integers(-8, 8, SHAPE).astype(np.float32)
    steps = [{"x": x, "value": np.array(v, np.int32)} for v in values]
    compare(build(), steps, clgpu_delegate.load(device=device, **options), want=reshaped)


def transposed() -> bytes:
    m = ModelMaker()
    to = m.input("value", (4,), np.int32)
    x = m.op("NEG", [m.input("x", (1, 3, 4, 2))], (1, 3, 4, 2))
    weights = m.constant(np.arange(54, dtype=np.float32).reshape(3, 3, 3, 2) / 54)
    m.output(m.op("TRANSPOSE_CONV", [to, weights, x], (1, 6, 8, 3), padding="SAME", stride_w=2,
                  stride_h=2, dtype=np.float32))  # fmt: skip
    return m.build()


def test_indices_of_sixteen_bits(device, rng):
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    operands = [x, m.input("value", (), np.int16)]
    dtypes = [np.float32, np.int16]
    found, where = m.op("TOPK_V2", operands, [(2, 4, 3)] * 2, dtype=dtypes, version=3)
    m.output(m.op("ABS", [found], (2, 4, 3)), where)
    delegate = clgpu_delegate.load(device=device)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    compare(m.build(), [{"x": x, "value": np.array(k, np.int16)} for k in (3, 1, 6)], delegate)
    assert all(node.claimed for node in delegate.explain().nodes)


def test_output_shapes_of_transposed_convolutions(runtime, device, rng):
    x = rng.standard_normal((1, 3, 4, 2)).astype(np.float32)
    steps = [
        {"x": x, "value": np.array(v, np.int32)} for v in ([1, 6, 8, 3], [1, 5, 7, 3], [1, 6, 8, 3])
    ]
    delegate = clgpu_delegate.load(device=device)
    compare(transposed(), steps, delegate, runtime)
    assert all(node.claimed for node in delegate.explain().nodes)


def test_output_shapes_of_transposed_convolutions_in_three_dimensions(device, rng):
    m = ModelMaker()
    to = m.input("value", (5,), np.int32)
    x = m.op("NEG", [m.input("x", (1, 2, 3, 4, 2))], (1, 2, 3, 4, 2))
    weights = m.constant(np.arange(144, dtype=np.float32).reshape(2, 3, 4, 3, 2) / 144)
    options = {"padding": "SAME", "stride_d": 1, "stride_h": 2, "stride_w": 2,
               "dilation_d_factor": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}  # fmt: skip
    m.output(m.op("CONV_3D_TRANSPOSE", [to, weights, x], (1, 2, 6, 8, 3), dtype=np.float32,
                  **options))  # fmt: skip
    x = rng.standard_normal((1, 2, 3, 4, 2)).astype(np.float32)
    steps = [
        {"x": x, "value": np.array(v, np.int32)}
        for v in ([1, 2, 6, 8, 3], [1, 2, 5, 7, 3], [1, 2, 6, 8, 3])
    ]
    delegate = clgpu_delegate.load(device=device)
    compare(m.build(), steps, delegate)
    assert all(node.claimed for node in delegate.explain().nodes)


def doubled_shape(m: ModelMaker, dtype=np.int32) -> bytes:
    """RESHAPE to twice what an input says."""
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    half = m.input("value", (2,), dtype)
    if dtype is not np.int32:
        types = {"in_data_type": dtype, "out_data_type": np.int32}
        half = m.op("CAST", [half], (2,), dtype=np.int32, **types)
    shape = m.op("ADD", [half, half], (2,))
    m.output(m.op("ABS", [m.op("RESHAPE", [x, shape], (6, 8), dtype=np.float32)], (6, 8)))
    return m.build()


def test_values_computed_of_a_few_numbers_are_planned_with(device, rng):
    delegate = clgpu_delegate.load(device=device)
    steps = [
        {"x": rng.standard_normal(SHAPE).astype(np.float32), "value": np.array(v, np.int32)}
        for v in ([3, 4], [3, 4], [6, 2], [1, 12])
    ]
    model = doubled_shape(ModelMaker())
    compare(model, steps, delegate, want=lambda given: reshaped(given, 2))
    plan = delegate.explain()
    assert all(node.claimed for node in plan.nodes)
    assert len(plan.partitions) == 1
    assert [n.op for n in plan.nodes if n.computed == "planning"] == ["ADD"]


def test_other_values_with_the_same_results_need_no_new_plan(device, rng):
    delegate = clgpu_delegate.load(device=device)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    values = [[3.1, 4.2], [3.5, 4.9], [3.0, 4.0], [6.5, 2.5], [3.1, 4.2]]
    steps = [{"x": x, "value": np.float32(v)} for v in values]

    def want(given):
        return [np.abs(x).reshape(2 * given["value"].astype(np.int32))]

    model = doubled_shape(ModelMaker(), np.float32)
    made = []
    for some in (steps[:1], steps[:3], steps[:4], steps):
        before = plans_made(delegate)
        compare(model, some, delegate, want=want)
        made.append(plans_made(delegate) - before)
    assert made[1] <= made[0]  # programs and packed weights may be kept
    assert made[2] > made[1]
    assert made[3] > made[2]
    assert all(node.claimed for node in delegate.explain().nodes)


def test_a_value_computed_of_many_numbers_is_read_from_the_device(device, rng):
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    many = m.input("value", (2, MANY), np.int32)
    shape = m.op("SUM", [many, m.constant(np.array([1], np.int32))], (2,))
    m.output(m.op("ABS", [m.op("RESHAPE", [x, shape], (6, 8), dtype=np.float32)], (6, 8)))
    delegate = clgpu_delegate.load(device=device)
    steps = []
    for value in ([6, 8], [6, 8], [12, 4]):
        numbers = np.zeros((2, MANY), np.int32)
        numbers[:, 7] = value
        steps.append({"x": rng.standard_normal(SHAPE).astype(np.float32), "value": numbers})
    compare(
        m.build(), steps, delegate,
        want=lambda given: [np.abs(given["x"]).reshape(given["value"].sum(1))],
    )  # fmt: skip
    plan = delegate.explain()
    assert all(node.claimed for node in plan.nodes)
    assert [part.stage_of for part in plan.partitions] == [None, 0]


def test_a_planned_value_may_be_a_result_and_a_factor(device, rng):
    """ADD's sum is a shape, a result of the model, and a number that the device multiplies by."""
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    half = m.input("value", (2,), np.int32)
    shape = m.op("ADD", [half, half], (2,))
    y = m.op("RESHAPE", [x, shape], (6, 8), dtype=np.float32)
    types = {"in_data_type": np.int32, "out_data_type": np.float32}
    factor = m.op("CAST", [shape], (2,), dtype=np.float32, **types)
    z = m.op("MUL", [factor, m.input("z", (2,))], (2,))
    m.output(y, shape, z)
    delegate = clgpu_delegate.load(device=device)
    steps = [
        {
            "x": rng.standard_normal(SHAPE).astype(np.float32),
            "z": rng.standard_normal(2).astype(np.float32),
            "value": np.array(v, np.int32),
        }
        for v in ([3, 4], [3, 4], [6, 2])
    ]

    def want(given):
        twice = 2 * given["value"]
        return [-given["x"].reshape(twice), twice, twice * given["z"]]

    compare(m.build(), steps, delegate, want=want)
    assert all(node.claimed for node in delegate.explain().nodes)


def test_values_that_no_kernel_takes_go_to_the_cpu(device, rng):
    """Without repetitions there are no elements."""
    build, _ = CASES["TILE"]
    delegate = clgpu_delegate.load(device=device)
    steps = [
        {"x": rng.standard_normal(SHAPE).astype(np.float32), "value": np.array(v, np.int32)}
        for v in ([1, 1, 2], [1, 0, 2], [2, 1, 1])
    ]
    ours = make_interpreter(op_runtime(), build(), [delegate])
    stock = make_interpreter(op_runtime(), build(), resolver="ref")
    for interpreter in (ours, stock):
        interpreter.allocate_tensors()
    for given, on_cpu in zip(steps, (False, True, False)):
        (mine,), (its,) = answers(ours, given), answers(stock, given)
        np.testing.assert_allclose(mine, its)
        assert bool(delegate.explain().partitions[0].on_cpu) == on_cpu


def test_values_that_the_runtime_refuses_are_an_error_and_the_next_ones_are_right(device, rng):
    build, _ = CASES["RESHAPE"]
    interpreter = make_interpreter(op_runtime(), build(), [clgpu_delegate.load(device=device)])
    interpreter.allocate_tensors()
    x = rng.standard_normal(SHAPE).astype(np.float32)
    for value, right in (([6, 8], True), ([7, 7], False), ([4, 12], True)):
        given = {"x": x, "value": np.array(value, np.int32)}
        if right:
            np.testing.assert_array_equal(answers(interpreter, given)[0], np.abs(x).reshape(value))
        else:
            with pytest.raises(RuntimeError, match="RESHAPE"):
                answers(interpreter, given)


def test_another_number_of_axes_than_the_models_goes_to_the_cpu(device, rng):
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    axes = m.input("value", (1,), np.int32, shape_signature=(-1,))
    m.output(m.op("ABS", [m.op("SUM", [x, axes], (2, 6))], (2, 6)))
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(op_runtime(), m.build(), [delegate])
    x = rng.standard_normal(SHAPE).astype(np.float32)
    for axes in ([1], [0, 1], [2]):
        by_name = {d["name"]: d["index"] for d in ours.get_input_details()}
        ours.resize_tensor_input(by_name["value"], (len(axes),))
        ours.allocate_tensors()
        (found,) = answers(ours, {"x": x, "value": np.array(axes, np.int32)})
        np.testing.assert_allclose(found, np.abs(x.sum(tuple(axes))), rtol=1e-5, atol=1e-6)
        on_cpu = delegate.explain().partitions[0].on_cpu
        assert ("has rank 1; the model says 2" in on_cpu) == (len(axes) == 2)


def test_inferences_of_a_runner_take_their_values(device, rng):
    build, values = CASES["RESHAPE"]
    x = rng.standard_normal(SHAPE).astype(np.float32)
    with clgpu_delegate.Runner(build(), device=device) as runner:
        for value in values:
            found = runner.run({"x": x, "value": np.array(value, np.int32)})
            found = next(iter(found.values())) if isinstance(found, dict) else found
            np.testing.assert_array_equal(found, np.abs(x).reshape(value))


def plans_made(delegate) -> int:
    return delegate.stats()["objects_created"]


def test_moving_positions_need_no_new_plan(device, rng):
    m = ModelMaker()
    x = m.input("x", SHAPE)
    begin = m.input("value", (3,), np.int32)
    size = m.constant(np.array([1, 2, 3], np.int32))
    m.output(m.op("ABS", [m.op("SLICE", [x, begin, size], (1, 2, 3))], (1, 2, 3)))
    delegate = clgpu_delegate.load(device=device)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    places = [[0, 0, 0], [1, 2, 3], [1, 0, 2]]
    steps = [{"x": x, "value": np.array(v, np.int32)} for v in places]
    compare(m.build(), steps[:1], delegate)
    before = plans_made(delegate)
    compare(m.build(), steps[:1], delegate)
    one = plans_made(delegate) - before
    compare(m.build(), steps, delegate)
    assert plans_made(delegate) - before == 2 * one
    assert all(node.claimed for node in delegate.explain().nodes)


def test_ranges_that_move_stay_on_the_cpu(device, rng):
    """A plan for each position would cost more than it saves."""
    m = ModelMaker()
    x = m.input("x", SHAPE)
    begin, end = m.input("value", (3,), np.int32), m.input("end", (3,), np.int32)
    strides = m.constant(np.ones(3, np.int32))
    part = m.op("STRIDED_SLICE", [x, begin, end, strides], (1, 2, 3))
    m.output(m.op("ABS", [part], (1, 2, 3)))
    delegate = clgpu_delegate.load(device=device)
    x = rng.standard_normal(SHAPE).astype(np.float32)
    steps = [
        {"x": x, "value": np.array(v, np.int32), "end": np.array(v, np.int32) + np.int32([1, 2, 3])}
        for v in ([0, 0, 0], [1, 2, 3])
    ]
    compare(m.build(), steps, delegate)
    reasons = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert reasons["STRIDED_SLICE"] == "end is computed at run time"


def test_a_slice_of_which_only_an_inference_knows_anything(device, rng):
    """The rest of an axis would need a new plan for each begin, so the CPU computes it."""
    m = ModelMaker()
    x = m.input("x", SHAPE)
    operands = [x, m.input("value", (3,), np.int32), m.input("size", (3,), np.int32)]
    m.output(m.op("ABS", [m.op("SLICE", operands, (1, 2, 3))], (1, 2, 3)))
    delegate = clgpu_delegate.load(device=device)
    x = rng.standard_normal(SHAPE).astype(np.float32)

    def want(given):
        begin, size = given["value"], given["size"]
        ends = np.where(size < 0, SHAPE, begin + size)
        return [np.abs(x)[tuple(slice(b, e) for b, e in zip(begin, ends))]]

    def run(*steps):
        given = [
            {"x": x, "value": np.array(v, np.int32), "size": np.array(size, np.int32)}
            for v, size in steps
        ]
        compare(m.build(), given, delegate, want=want)
        return delegate.explain()

    moving = ([0, 0, 0], [1, 2, 3]), ([1, 2, 3], [1, 2, 3]), ([0, 1, 1], [1, 1, 2])
    plan = run(*moving)
    assert all(node.claimed for node in plan.nodes)
    assert not plan.partitions[0].on_cpu
    rest = [1, 2, 3], [-1, -1, -1]
    assert "begin is computed at run time" in run(*moving, rest).partitions[0].on_cpu
    assert not run(*moving, rest, moving[0]).partitions[0].on_cpu


def test_two_partitions_wait_for_one_value(device, rng):
    m = ModelMaker()
    x, value = m.input("x", SHAPE), m.input("value", (1,), np.int32)
    first = m.op("REVERSE_V2", [m.op("NEG", [x], SHAPE), value], SHAPE)
    cut = m.op("NEG", [m.op("TANH", [x], SHAPE)], SHAPE)
    second = m.op("REVERSE_V2", [cut, value], SHAPE)
    shape = m.op("SHAPE", [cut], (3,), dtype=np.int32, out_type=np.int32)
    # There it is an index as any other.
    third = m.op("GATHER", [m.op("RESHAPE", [cut, shape], SHAPE), value], (2, 1, 6), axis=1)
    m.output(*(m.op("SQUARE", [y], m.shape(y)) for y in (first, second, third)))
    steps = [
        {"x": rng.standard_normal(SHAPE).astype(np.float32), "value": np.array([v], np.int32)}
        for v in (1, 2, 0, 0, 1)
    ]
    compare(m.build(), steps, clgpu_delegate.load(device=device, exclude="TANH"))


def test_results_without_elements_go_to_the_cpu(device):
    m = ModelMaker()
    fill = m.op(
        "FILL", [m.input("value", (2,), np.int32), m.constant(np.float32(3))], (2, 3),
        dtype=np.float32,
    )  # fmt: skip
    m.output(fill)
    steps = [{"value": np.array(v, np.int32)} for v in ([2, 3], [0, 3], [1, 3])]
    # Python cannot read the stock kernel's result without elements.
    delegate = clgpu_delegate.load(device=device)
    compare(m.build(), steps, delegate, want=lambda given: [np.full(given["value"], 3, np.float32)])


def branches() -> bytes:
    """IF, both of whose branches repeat their input as often as a value says."""
    m = ModelMaker()
    condition = m.input("condition", (1,), bool)
    operands = [condition, m.input("x", SHAPE), m.input("value", (3,), np.int32)]
    (y,) = m.op("IF", operands, [SHAPE], dtype=[np.float32], then_subgraph_index=1,
                else_subgraph_index=2)  # fmt: skip
    m.output(m.op("NEG", [y], SHAPE))
    for op in ("ABS", "TANH"):
        branch = m.subgraph()
        x, to = branch.input("x", SHAPE), branch.input("value", (3,), np.int32)
        repeated = branch.op("TILE", [branch.op("NEG", [x], SHAPE), to], SHAPE)
        branch.output(branch.op(op, [repeated], SHAPE))
    return m.build()


def loop() -> bytes:
    """WHILE, whose body repeats its input twice as often as a value says."""
    m = ModelMaker()
    start = m.constant(np.zeros(1, np.int32))
    operands = [start, m.input("x", SHAPE), m.input("value", (3,), np.int32)]
    _, y, _ = m.op("WHILE", operands, [(1,), SHAPE, (3,)], dtype=[np.int32, np.float32, np.int32],
                   cond_subgraph_index=1, body_subgraph_index=2)  # fmt: skip
    m.output(m.op("NEG", [y], SHAPE))
    condition, body = m.subgraph(), m.subgraph()
    for graph in (condition, body):
        count = graph.input("count", (1,), np.int32)
        x = graph.input("x", SHAPE, shape_signature=(-1, -1, -1))
        to = graph.input("value", (3,), np.int32)
        if graph is condition:
            two = graph.constant(np.array([2], np.int32))
            graph.output(graph.op("LESS", [count, two], (1,), dtype=bool))
            continue
        count = graph.op("ADD", [count, graph.constant(np.ones(1, np.int32))], (1,))
        repeated = graph.op("TILE", [graph.op("NEG", [x], SHAPE), to], SHAPE)
        graph.output(count, graph.op("ABS", [repeated], SHAPE), graph.op("ABS", [to], (3,)))
    return m.build()


def in_branches(given: dict[str, Array]) -> Array:
    function = np.abs if given["condition"][0] else np.tanh
    return -function(np.tile(-given["x"], given["value"]))


def in_loop(given: dict[str, Array]) -> Array:
    return -np.abs(np.tile(np.tile(given["x"], given["value"]), given["value"]))


@pytest.mark.parametrize(("build", "want"), [(branches, in_branches), (loop, in_loop)])
def test_nodes_that_run_another_graph_see_that_its_results_are_dynamic(
    runtime, device, rng, build, want
):
    interpreter = make_interpreter(runtime, build(), [clgpu_delegate.load(device=device)])
    interpreter.allocate_tensors()
    for value in ([1, 1, 2], [1, 1, 1], [2, 1, 1], [1, 1, 2]):
        given = {
            "condition": np.array([value[0] == 1]),
            "x": rng.standard_normal(SHAPE).astype(np.float32),
            "value": np.array(value, np.int32),
        }
        (got,) = answers(interpreter, given)
        np.testing.assert_allclose(got, want(given), rtol=1e-5, atol=1e-6)

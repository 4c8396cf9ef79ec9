"""Sizes that follow from what the device computes: partitions run in stages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clgpu_delegate
from tests.delegate.test_awaited import answers
from tests.delegate.test_faults import library, run  # noqa: F401
from tests.model_maker import ModelMaker
from tests.ops.harness import MANY, op_runtime
from tests.runtimes import make_interpreter

Array = np.ndarray
SHAPE = (3, 8)
# How many elements are positive.
COUNTS = (5, 0, 24, 5, 1, 0, 7)


def positive(rng, count: int, shape: tuple[int, ...] = SHAPE) -> Array:
    """Numbers of which this many are positive, anywhere."""
    x = -1 - np.abs(rng.standard_normal(shape)).astype(np.float32)
    places = rng.permutation(x.size)[:count]
    x.flat[places] = 1 + np.abs(rng.standard_normal(count)).astype(np.float32)
    return x


def greater(m: ModelMaker, x: int, than: float = 0, shape: tuple[int, ...] = SHAPE) -> int:
    return m.op("GREATER", [x, m.constant(np.float32(than))], shape, dtype=bool)


def places(m: ModelMaker, condition: int, rank: int = 2) -> int:
    return m.op("WHERE", [condition], (-1, rank), dtype=np.int64)


def last() -> bytes:
    m = ModelMaker()
    m.output(places(m, greater(m, m.op("ADD", [m.input("x", SHAPE)] * 2, SHAPE))))
    return m.build()


def read() -> bytes:
    """The elements that are found, and what follows from them."""
    m = ModelMaker()
    x = m.op("ADD", [m.input("x", SHAPE)] * 2, SHAPE)
    found = m.op("GATHER_ND", [x, places(m, greater(m, x))], (-1,), dtype=np.float32)
    m.output(m.op("MUL", [found, m.op("SQRT", [found], (-1,))], (-1,)), x)
    return m.build()


def twice(shape: tuple[int, ...] = SHAPE) -> bytes:
    """Of the elements that are found, those above 1.5."""
    m = ModelMaker()
    x = m.op("MUL", [m.input("x", shape), m.constant(np.float32(1))], shape)
    first = m.op("GATHER_ND", [x, places(m, greater(m, x, 0, shape))], (-1,), dtype=np.float32)
    second = places(m, greater(m, first, 1.5, (-1,)), 1)
    m.output(m.op("GATHER_ND", [m.op("NEG", [first], (-1,)), second], (-1,), dtype=np.float32))
    return m.build()


def normalized(shape: tuple[int, ...]) -> bytes:
    """A stage with results in memory of its own."""
    m = ModelMaker()
    x = m.op("ADD", [m.input("x", shape)] * 2, shape)
    found = m.op("GATHER_ND", [x, places(m, greater(m, x, 0, shape))], (-1,), dtype=np.float32)
    for _ in range(3):
        found = m.op("SOFTMAX", [m.op("TANH", [found], (-1,))], (-1,), beta=1.0)
    m.output(found)
    return m.build()


def filled() -> bytes:
    """As many numbers as are found, whose shape planning computes."""
    m = ModelMaker()
    x = m.op("ADD", [m.input("x", SHAPE)] * 2, SHAPE)
    found = places(m, greater(m, x))
    shape = m.op("SHAPE", [found], (2,), dtype=np.int32, out_type=np.int32)
    full = m.op("FILL", [shape, m.constant(np.float32(3))], (-1, 2), dtype=np.float32)
    m.output(m.op("ADD", [full, full], (-1, 2)))
    return m.build()


def wanted(stock, given: dict[str, Array]) -> list[Array]:
    """The stock interpreter has no array for a dynamic tensor without elements."""
    for detail in stock.get_input_details():
        stock.set_tensor(detail["index"], given[detail["name"]])
    stock.invoke()
    results = []
    for detail in stock.get_output_details():
        empty = np.zeros(detail["shape"], detail["dtype"])
        results.append(stock.get_tensor(detail["index"]) if empty.size else empty)
    return results


def compare(model: bytes, steps: list[dict[str, Array]], delegate, runtime: str | None = None):
    """With the stock kernels; returns the interpreter."""
    runtime = runtime or op_runtime()
    ours = make_interpreter(runtime, model, [delegate])
    stock = make_interpreter(runtime, model, resolver="ref")
    for interpreter in (ours, stock):
        interpreter.allocate_tensors()
    for given in steps:
        for mine, its in zip(answers(ours, given), wanted(stock, given)):
            assert mine.shape == its.shape
            assert mine.dtype == its.dtype
            np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)
    return ours


def assert_all_claimed(delegate) -> None:
    left = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert not left


MODELS: dict[str, Callable[[], bytes]] = {
    "last": last, "read": read, "twice": twice, "filled": filled,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_sizes_follow_from_what_the_device_computes(runtime, device, rng, name):
    delegate = clgpu_delegate.load(device=device)
    compare(MODELS[name](), [{"x": positive(rng, n)} for n in COUNTS], delegate, runtime)
    assert_all_claimed(delegate)


OPTIONS = (
    {"verify": 1}, {"verify": "first"}, {"profile": True},
    {"warm_up": False}, {"zero_copy": "off"},
)  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["read", "twice"])
def test_stages_with_every_option(device, rng, name, options):
    delegate = clgpu_delegate.load(device=device, **options)
    compare(MODELS[name](), [{"x": positive(rng, n)} for n in COUNTS], delegate)
    assert_all_claimed(delegate)


def test_stages_that_the_cost_model_divides(device, rng):
    """It knows the cost of the first one only."""
    delegate = clgpu_delegate.load(device=device, placement="auto")
    compare(twice(), [{"x": positive(rng, n)} for n in COUNTS], delegate)


@pytest.mark.parametrize("half_io", [False, True])
def test_stages_with_halves(device, rng, half_io):
    delegate = clgpu_delegate.load(device=device, precision="fp16", half_io=half_io)
    steps = [{"x": np.round(positive(rng, n) * 4) / 4} for n in COUNTS]
    compare(last(), steps, delegate)
    assert_all_claimed(delegate)


def value_of_many() -> bytes:
    """RESHAPE to what sums of many numbers say, which the device computes."""
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    many = m.input("value", (2, MANY), np.int32)
    shape = m.op("SUM", [many, m.constant(np.array([1], np.int32))], (2,))
    m.output(m.op("ABS", [m.op("RESHAPE", [x, shape], (6, 4), dtype=np.float32)], (6, 4)))
    return m.build()


def test_a_value_that_planning_needs_is_read_from_the_device(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, value_of_many(), [delegate])
    ours.allocate_tensors()
    for shape in ([6, 4], [6, 4], [12, 2], [1, 24], [6, 4]):
        value = np.zeros((2, MANY), np.int32)
        value[:, 7] = shape
        x = rng.standard_normal(SHAPE).astype(np.float32)
        (found,) = answers(ours, {"x": x, "value": value})
        np.testing.assert_array_equal(found, np.abs(x).reshape(shape))
    assert_all_claimed(delegate)


def moving_end() -> bytes:
    """The first rows, as many as there are positive elements in the first column."""
    m = ModelMaker()
    x = m.op("ADD", [m.input("x", (70, 4))] * 2, (70, 4))
    begin, ones = m.constant(np.int32([0, 0])), m.constant(np.int32([1, 1]))
    column = m.op("STRIDED_SLICE", [x, begin, m.constant(np.int32([70, 1])), ones], (70, 1),
                  dtype=np.float32)  # fmt: skip
    types = {"in_data_type": np.bool_, "out_data_type": np.int32}
    flags = m.op("CAST", [greater(m, column, 0, (70, 1))], (70, 1), dtype=np.int32, **types)
    rows = m.op("SUM", [flags, m.constant(np.int32([0]))], (1,), dtype=np.int32)
    end = m.op("CONCATENATION", [rows, m.constant(np.int32([4]))], (2,), axis=0)
    part = m.op("STRIDED_SLICE", [x, begin, end, ones], (-1, 4), dtype=np.float32)
    m.output(m.op("NEG", [part], (-1, 4)))
    return m.build()


def test_the_end_of_a_slice_may_be_computed_on_the_device(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device)
    steps = []
    for rows in (3, 70, 0, 3, 8):
        x = rng.standard_normal((70, 4)).astype(np.float32)
        x[:, :1] = positive(rng, rows, (70, 1))
        steps.append({"x": x})
    compare(moving_end(), steps, delegate, runtime)
    assert_all_claimed(delegate)


def segments() -> bytes:
    m = ModelMaker()
    ids = m.op("ADD", [m.input("ids", (9,), np.int32), m.constant(np.int32(0))], (9,))
    x = m.op("NEG", [m.input("x", (9, 3))], (9, 3))
    found = m.op("SEGMENT_SUM", [x, ids], (-1, 3), dtype=np.float32)
    m.output(m.op("ABS", [found], (-1, 3)))
    return m.build()


def summed(given: dict[str, Array]) -> Array:
    wanted = np.zeros((given["ids"][-1] + 1, 3), np.float64)
    np.add.at(wanted, given["ids"], given["x"])
    return np.abs(wanted)


def test_the_number_of_segments_is_measured(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device)
    steps = [
        {"x": rng.standard_normal((9, 3)).astype(np.float32), "ids": np.array(ids, np.int32)}
        for ids in ([0] * 9, range(9), [0, 0, 1, 2, 2, 2, 3, 3, 4], [0] * 9)
    ]
    interpreter = make_interpreter(runtime, segments(), [delegate])
    interpreter.allocate_tensors()
    for given in steps:  # the runtimes have no reference kernel for it
        np.testing.assert_allclose(answers(interpreter, given)[0], summed(given), rtol=1e-5)
    assert_all_claimed(delegate)
    for wrong in ([0, 2, 2, 2, 2, 2, 2, 2, 2], [1] * 9, [0, 1, 0, 1, 1, 1, 1, 1, 1]):
        with pytest.raises(RuntimeError):
            answers(interpreter, {**steps[0], "ids": np.array(wrong, np.int32)})
        (found,) = answers(interpreter, steps[1])
        np.testing.assert_allclose(found, np.abs(steps[1]["x"]), rtol=1e-6)


def uniques() -> bytes:
    """Rows of a table, each only once, and the place of each."""
    m = ModelMaker()
    ids = m.op("ADD", [m.input("ids", (9,), np.int32), m.constant(np.int32(1))], (9,))
    values, indices = m.op("UNIQUE", [ids], [(-1,), (9,)], dtype=[np.int32, np.int32],
                           idx_out_type=np.int32)  # fmt: skip
    rows = m.op("GATHER", [m.input("x", (12, 3)), values], (-1, 3), dtype=np.float32)
    found = m.op("GATHER", [m.op("SIN", [rows], (-1, 3)), indices], (9, 3), dtype=np.float32)
    m.output(found, values)
    return m.build()


def test_repeated_rows_are_computed_once(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device)
    steps = [
        {
            "x": rng.standard_normal((12, 3)).astype(np.float32),
            "ids": rng.integers(0, n, 9, np.int32),
        }
        for n in (1, 11, 4, 2)
    ]
    compare(uniques(), steps, delegate, runtime)
    assert_all_claimed(delegate)


def hosted(is_output: bool) -> bytes:
    """A condition that the host could compute, too: the shape of the result follows from it."""
    m = ModelMaker()
    mask = m.op(
        "NOT_EQUAL", [m.input("p", (8,), np.int32), m.constant(np.int32(0))], (8,), dtype=bool
    )
    types = {"in_data_type": np.bool_, "out_data_type": np.int32}
    flags = m.op("CAST", [mask], (8,), dtype=np.int32, **types)
    many = m.op("SUM", [flags, m.constant(np.int32([0]))], (1,), dtype=np.int32, keep_dims=True)
    x = m.op("NEG", [m.input("x", (8,))], (8,))
    found = m.op("GATHER_ND", [x, places(m, mask, 1)], (-1,), dtype=np.float32)
    m.output(m.op("RESHAPE", [m.op("ABS", [found], (-1,)), many], (-1,), dtype=np.float32))
    if is_output:
        m.output(mask)
    return m.build()


@pytest.mark.parametrize("is_output", [False, True])
def test_a_condition_that_the_host_could_compute(runtime, device, rng, is_output):
    delegate = clgpu_delegate.load(device=device)
    steps = [
        {
            "x": rng.standard_normal(8).astype(np.float32),
            "p": positive(rng, n, (8,)).clip(0).astype(np.int32),
        }
        for n in (3, 8, 1, 3, 5)
    ]
    compare(hosted(is_output), steps, delegate, runtime)
    assert_all_claimed(delegate)
    assert not [note for note in delegate.explain().notes if "the CPU's kernels" in note]


def folded_condition(m: ModelMaker, x: int) -> int:
    constants = [m.constant(np.arange(2000, dtype=np.float32)), m.constant(np.float32(1990))]
    mask = m.op("GREATER", constants, (2000,), dtype=bool)
    return m.op("GATHER_ND", [x, places(m, mask, 1)], (-1,), dtype=np.float32)


def folded_ids(m: ModelMaker, x: int) -> int:
    ids = m.constant((np.arange(2000) // 30).astype(np.int64))
    types = {"in_data_type": np.int64, "out_data_type": np.int32}
    cast = m.op("CAST", [ids], (2000,), dtype=np.int32, **types)
    return m.op("SEGMENT_SUM", [x, cast], (-1,), dtype=np.float32)


@pytest.mark.parametrize(("make", "op"), [(folded_condition, "WHERE"), (folded_ids, "SEGMENT_SUM")])
def test_a_number_of_constants_that_the_device_computes(runtime, device, rng, make, op):
    m = ModelMaker()
    x = m.op("NEG", [m.input("x", (2000,))], (2000,))
    m.output(m.op("ABS", [make(m, x)], (-1,)))
    delegate = clgpu_delegate.load(device=device)
    steps = [{"x": rng.standard_normal(2000).astype(np.float32)} for _ in range(3)]
    if op == "WHERE":
        compare(m.build(), steps, delegate, runtime)
    else:  # the runtimes have no reference kernel for it
        interpreter = make_interpreter(runtime, m.build(), [delegate])
        interpreter.allocate_tensors()
        for given in steps:
            wanted = np.zeros(67, np.float64)
            np.add.at(wanted, np.arange(2000) // 30, -given["x"])
            np.testing.assert_allclose(answers(interpreter, given)[0], np.abs(wanted), 1e-4, 1e-5)
    why = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert why[op] == (
        "the size of its result follows from a tensor that is computed while loading or planning"
    )


def test_a_number_of_what_planning_computes(runtime, device):
    m = ModelMaker()
    parts = m.input("p", (4,), np.int32)
    end = m.op("SUM", [parts, m.constant(np.int32([0]))], (), dtype=np.int32)
    zero, one = m.constant(np.int32(0)), m.constant(np.int32(1))
    found = places(m, m.op("RANGE", [zero, end, one], (-1,), dtype=np.int32), 1)
    x = m.op("NEG", [m.input("x", (24,))], (24,))
    m.output(m.op("GATHER_ND", [x, found], (-1,), dtype=np.float32))
    delegate = clgpu_delegate.load(device=device)
    x = np.arange(24, dtype=np.float32)
    steps = [{"x": x, "p": np.int32(p)} for p in ([2, 3, 4, 1], [9, 1, 1, 1], [2, 3, 4, 1])]
    compare(m.build(), steps, delegate, runtime)
    why = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert why["WHERE"].endswith("computed while loading or planning")


def test_the_last_plans_are_kept(device, rng):
    delegate = clgpu_delegate.load(device=device)
    model = read()
    interpreter = compare(model, [{"x": positive(rng, n)} for n in (5, 7, 9, 11)], delegate)
    built = delegate.stats()["load"]["launches"]
    for n in (5, 7, 9, 11) * 2:
        answers(interpreter, {"x": positive(rng, n)})
    assert delegate.stats()["load"]["launches"] == built
    answers(interpreter, {"x": positive(rng, 13)})
    assert delegate.stats()["load"]["launches"] > built


def test_memory_does_not_grow_with_the_number_of_sizes(device, rng):
    delegate = clgpu_delegate.load(device=device)
    interpreter = compare(twice(), [{"x": positive(rng, 24)}], delegate)
    held = []
    for _ in range(3):
        for n in range(1, 25):
            answers(interpreter, {"x": positive(rng, n)})
        held.append(delegate.stats()["device_bytes"])
    assert held[1] <= 1.2 * held[0]
    assert held[2] <= 1.2 * held[0]


def test_elements_stay_on_the_device_between_stages(device, rng):
    """The host reads one number."""
    shape = (64, 1024)
    m = ModelMaker()
    x = m.op("ADD", [m.input("x", shape)] * 2, shape)
    found = m.op("GATHER_ND", [x, places(m, greater(m, x, 0, shape))], (-1,), dtype=np.float32)
    m.output(m.op("SUM", [found, m.constant(np.int32([0]))], (), dtype=np.float32))
    delegate = clgpu_delegate.load(device=device, zero_copy="off")
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    interpreter.allocate_tensors()
    for n in (500, 500, 7):
        x = positive(rng, n, shape)
        (total,) = answers(interpreter, {"x": x})
        np.testing.assert_allclose(total, 2 * x[x > 0].sum(dtype=np.float64), rtol=1e-5)
    last_invoke = delegate.stats()["last_invoke"]
    assert last_invoke["bytes_down"] <= 64
    assert last_invoke["bytes_up"] <= x.nbytes + 64
    assert_all_claimed(delegate)


def test_shapes_of_inputs_may_change(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device)
    ours = make_interpreter(runtime, read(), [delegate])
    stock = make_interpreter(runtime, read(), resolver="ref")
    for shape in (SHAPE, (5, 7), SHAPE, (1, 3)):
        given = {"x": positive(rng, 2, shape)}
        for interpreter in (ours, stock):
            (x,) = interpreter.get_input_details()
            interpreter.resize_tensor_input(x["index"], shape)
            interpreter.allocate_tensors()
        for mine, its in zip(answers(ours, given), answers(stock, given)):
            np.testing.assert_allclose(mine, its, rtol=1e-6)
    assert_all_claimed(delegate)


def test_carried_tensors_exclude_stages(device):
    """All graphs of an interpreter need the same shape of a carried tensor."""
    m = ModelMaker()
    x, state = m.input("x", SHAPE), m.input("state", SHAPE)
    new = m.op("ADD", [x, state], SHAPE)
    m.output(new, places(m, greater(m, new)))
    delegate = clgpu_delegate.load(device=device, carry={"state": {0: (state, new)}})
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    interpreter.allocate_tensors()
    why = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert why == {"WHERE": "the size of its result is computed at run time"}


def test_a_memory_budget_excludes_stages(device, rng):
    """How much of it a stage needs is unknown before an inference."""
    delegate = clgpu_delegate.load(device=device, memory_budget=1 << 24)
    compare(read(), [{"x": positive(rng, n)} for n in COUNTS], delegate)
    why = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert why["WHERE"] == "the size of its result is computed at run time"
    assert {part.stage_of for part in delegate.explain().partitions} == {None}


def given_mask() -> bytes:
    """Elements of a result, where an input is not 0."""
    m = ModelMaker()
    x = m.op("NEG", [m.op("ADD", [m.input("x", SHAPE)] * 2, SHAPE)], SHAPE)
    found = places(m, m.input("p", SHAPE, np.int32))
    m.output(m.op("GATHER_ND", [x, found], (-1,), dtype=np.float32), m.op("EXP", [x], SHAPE))
    return m.build()


def test_what_does_not_depend_on_a_number_is_not_planned_with_it(runtime, device, rng):
    delegate = clgpu_delegate.load(device=device)

    def given(count: int) -> dict[str, Array]:
        return {"x": positive(rng, 5), "p": positive(rng, count).clip(0).astype(np.int32)}

    interpreter = compare(given_mask(), [given(n) for n in COUNTS], delegate, runtime)
    assert_all_claimed(delegate)
    plan = delegate.explain()
    assert [part.stage_of for part in plan.partitions] == [None, 0]
    first = {plan.nodes[node].op for node in plan.partitions[0].nodes}
    assert first == {"ADD", "NEG", "EXP"}
    answers(interpreter, given(0))
    (note,) = [note for note in delegate.explain().notes if "the CPU's kernels" in note]
    assert note.startswith("partition 1 ")


def test_carried_tensors_leave_computed_shapes_to_the_cpu(device):
    m = ModelMaker()
    x, state = m.input("x", SHAPE), m.input("state", SHAPE)
    new = m.op("ADD", [x, state], SHAPE)
    many = m.input("value", (2, MANY), np.int32)
    shape = m.op("SUM", [many, m.constant(np.array([1], np.int32))], (2,))
    m.output(new, m.op("RESHAPE", [new, shape], (6, 4), dtype=np.float32))
    delegate = clgpu_delegate.load(device=device, carry={"state": {0: (state, new)}})
    interpreter = make_interpreter(op_runtime(), m.build(), [delegate])
    interpreter.allocate_tensors()
    why = {n.op: n.reason for n in delegate.explain().nodes if not n.claimed}
    assert why == {"SUM": "computes a value that the plan of node 2 (RESHAPE) needs"}


def test_stages_are_reported(device, rng):
    delegate = clgpu_delegate.load(device=device)
    compare(read(), [{"x": positive(rng, 5)}], delegate)
    plan = delegate.explain()
    assert [part.stage_of for part in plan.partitions] == [None, 0]
    assert plan.partition_count == 1
    assert "1 partition in 2 stages" in plan.summary()
    assert "partition 1, a later stage of partition 0: takes" in str(plan)
    assert {"lent"} < {border.road for part in plan.partitions for border in part.inputs}


def test_a_stage_without_elements_is_noted(device, rng):
    delegate = clgpu_delegate.load(device=device)
    interpreter = compare(read(), [{"x": positive(rng, 0)}], delegate)
    (note,) = [note for note in delegate.explain().notes if "the CPU's kernels" in note]
    assert note.startswith("partition 1 is computed by the CPU's kernels for now: ")
    answers(interpreter, {"x": positive(rng, 3)})
    assert not [note for note in delegate.explain().notes if "the CPU's kernels" in note]


FAILING = """
from tests.delegate.test_stages import positive, read, wanted
from tests.delegate.test_awaited import answers
from tests.delegate.test_faults import library, run  # noqa: F401

model = read()
rng = np.random.default_rng(2)
delegate, ours = load(zero_copy="off")
stock = make_interpreter(runtime, model, resolver="ref")
ours.allocate_tensors()
stock.allocate_tensors()

def matches(count):
    given = {"x": positive(rng, count)}
    want = wanted(stock, given)
    found = answers(ours, given)
    for mine, its in zip(found, want):
        np.testing.assert_allclose(mine, its, rtol=1e-5)

counts = iter([4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 3, 5, 7, 9])
matches(next(counts))
failed, before = 0, layer.failed
for after in range(9):
    fault(CALL, CODE, after, 1)
    try:
        matches(next(counts))
    except RuntimeError as error:
        failed += 1
        assert CALL in str(error), error
    layer.clear()
    matches(5)
print(layer.failed - before, failed)
"""


@pytest.mark.parametrize(
    ("call", "code", "passes"),
    [
        ("clCreateBuffer", -4, True),
        ("clEnqueueNDRangeKernel", -5, False),
        ("clEnqueueReadBuffer", -5, False),
        ("clEnqueueWriteBuffer", -5, False),
        ("clFinish", -5, None),  # while a plan is made, too, where it is made otherwise then
    ],
)
def test_a_failing_stage_is_an_error_or_the_cpus(library, runtime, call, code, passes):  # noqa: F811
    script = f"CALL, CODE = '{call}', {code}\n{FAILING}"
    injected, failed = (int(number) for number in run(library, script, runtime).split()[-2:])
    assert injected > 0
    if passes is not None:
        assert failed == 0 if passes else failed > 0


KEPT = """
from tests.delegate.test_stages import positive, twice, wanted
from tests.delegate.test_awaited import answers

shape = (64, 512)
model = twice(shape)
rng = np.random.default_rng(2)
delegate, ours = load(zero_copy="off")
stock = make_interpreter(runtime, model, resolver="ref")
ours.allocate_tensors()
stock.allocate_tensors()

def matches(x):
    given = {"x": x}
    for mine, its in zip(answers(ours, given), wanted(stock, given), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-5)

few, many = positive(rng, 5, shape), positive(rng, 1700, shape)
injected = 0
matches(few)
first = delegate.explain().partitions[0].launches  # of a stage that keeps no plans
for after in range(first, first + 32):
    matches(few)
    matches(many)
    before = layer.failed
    fault("clEnqueueNDRangeKernel", OUT_OF_MEMORY, after, 1)
    matches(few)
    layer.clear()
    if layer.failed == before:
        break
    injected += 1
    matches(many)
assert injected > 1, injected
"""


def test_a_kept_plan_may_be_built_again(library, runtime):  # noqa: F811
    """With its own sizes, where the device reports late that it lacks memory."""
    run(library, KEPT, runtime)


CROWDED = (
    KEPT.split("injected = 0", maxsplit=1)[0].replace("twice", "normalized")
    + """
injected = 0
for after in range(32):
    matches(few)
    matches(many)
    before = layer.failed
    fault("clCreateBuffer", OUT_OF_MEMORY, after, 1)
    matches(positive(rng, 2000 + 900 * after, shape))
    layer.clear()
    if layer.failed == before:
        break
    injected += 1
    notes = [note for note in delegate.explain().notes if "failed" in note]
    assert not notes, notes
assert injected > 1, injected
"""
)


def test_kept_plans_make_room(library, runtime):  # noqa: F811
    """Before a plan of less memory is made, or the CPU computes a stage."""
    run(library, CROWDED, runtime)

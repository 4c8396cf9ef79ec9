"""The option carry: inputs whose next values are outputs stay on the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import ClgpuError, OptionError
from tests.campaign.faults import BUILD
from tests.delegate.test_chains import impatient  # noqa: F401
from tests.delegate.test_verification import broken  # noqa: F401
from tests.faults.control import environment
from tests.limits.build import LayerError
from tests.model_maker import ModelMaker
from tests.python.subprocesses import assert_succeeds, run_python
from tests.runtimes import make_interpreter

SHAPE = (1, 6, 4)


class Model:
    """A cache of rows: ``next`` of the graph is the cache with a row, ``y`` what it is used for."""

    def __init__(self, use: Callable[..., tuple[int, int]], dtype=np.float32) -> None:
        m = ModelMaker()
        row, place = m.input("row", (1, 1, 4), dtype), m.input("place", (1,), np.int32)
        cache = m.input("cache", SHAPE, dtype)
        after, y = use(m, cache, row, place)
        m.output(after, y)
        self.content = m.build()
        self.carry = {"cache": {0: (cache, after)}}

    def run(self, steps: int = 4, **options) -> tuple[list[np.ndarray], clgpu_delegate.Delegate]:
        """``y`` of some steps, with the cache on the device."""
        delegate = clgpu_delegate.load(carry=self.carry, **options)
        interpreter = make_interpreter("auto", self.content, [delegate])
        self.interpreter = interpreter
        return [self.step(i) for i in range(steps)], delegate

    def step(self, i: int) -> np.ndarray:
        interpreter = self.interpreter
        if i == 0:
            interpreter.allocate_tensors()
        details = {d["name"]: d for d in interpreter.get_input_details()}
        dtype = details["row"]["dtype"]
        interpreter.set_tensor(details["row"]["index"], np.full((1, 1, 4), i + 1, dtype))
        interpreter.set_tensor(details["place"]["index"], np.array([i], np.int32))
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[1]["index"])


def start_of(m: ModelMaker, place: int) -> int:
    zero = m.constant(np.zeros(1, np.int32))
    return m.op("CONCATENATION", [zero, place, zero], (3,), dtype=np.int32, axis=0)


def update(m: ModelMaker, cache: int, row: int, place: int) -> int:
    start = start_of(m, place)
    return m.op("DYNAMIC_UPDATE_SLICE", [cache, row, start], SHAPE, dtype=m.dtype(cache))


def total(m: ModelMaker, x: int) -> int:
    return m.op("SUM", [x, m.constant(np.array([1, 2], np.int32))], (1,))


def in_place(m, cache, row, place):
    after = update(m, cache, row, place)
    return after, total(m, after)


def read_before(m, cache, row, place):
    """The old value is read before the new row is written."""
    y = total(m, cache)
    return update(m, cache, row, place), y


def read_after(m, cache, row, place):
    """The old value is read after the new row is written."""
    after = update(m, cache, row, place)
    return after, m.op("ADD", [total(m, after), total(m, cache)], (1,))


def twice(m, cache, row, place):
    """Two updates in a row: the second one writes the same place."""
    after = update(m, update(m, cache, row, place), m.op("ADD", [row, row], (1, 1, 4)), place)
    return after, total(m, after)


def sum_of_all(m, cache, row, _place):
    """An elementwise operation, which would not survive being repeated."""
    after = m.op("ADD", [cache, row], SHAPE)
    return after, total(m, after)


def overwritten(m, _cache, row, _place):
    """The old value is not read."""
    ones = m.constant(np.ones(SHAPE, np.float32))
    after = m.op("MUL", [row, ones], SHAPE)
    return after, total(m, after)


def reshaped(m, cache, row, place):
    """The cache is a view of what is updated."""
    flat = m.op("RESHAPE", [cache, m.constant(np.array([6, 4], np.int32))], (6, 4))
    zero = m.constant(np.zeros(1, np.int32))
    start = m.op("CONCATENATION", [place, zero], (2,), dtype=np.int32, axis=0)
    line = m.op("RESHAPE", [row, m.constant(np.array([1, 4], np.int32))], (1, 4))
    flat = m.op("DYNAMIC_UPDATE_SLICE", [flat, line, start], (6, 4))
    after = m.op("RESHAPE", [flat, m.constant(np.array(SHAPE, np.int32))], SHAPE)
    return after, total(m, after)


# What y is after rows of 1, 2, 3 and 4; four elements each.
RIGHT = {
    in_place: [4, 12, 24, 40],
    read_before: [0, 4, 12, 24],
    read_after: [4, 16, 36, 64],
    twice: [8, 24, 48, 80],
    sum_of_all: [24, 72, 144, 240],
    overwritten: [24, 48, 72, 96],
    reshaped: [4, 12, 24, 40],
}


@pytest.mark.parametrize("options", [
    {}, {"zero_copy": "off"}, {"verify": 1}, {"share_memory": False}, {"chain": "on"},
    {"command_list": "on"},
    {"exclude": "DYNAMIC_UPDATE_SLICE,ADD,MUL"}, {"profile": True},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("use", RIGHT, ids=lambda use: use.__name__)
def test_each_step_has_the_value_that_the_last_one_left(use, options, device):
    model = Model(use)
    if "exclude" in options:
        # The runtime's tensors are the truth, and nobody hands them on.
        _, delegate = model.run(1, device=device, **options)
        assert all(entry["graphs"] != {0: ""} for entry in delegate.carried())
        return
    got, delegate = model.run(device=device, **options)
    assert [y.item() for y in got] == RIGHT[use]
    assert [entry["graphs"] for entry in delegate.carried()] == [{0: ""}]


@pytest.mark.parametrize("old", [True, False])
def test_a_view_may_be_an_ordinary_output(old, device):
    """The memory of the interpreter's output does not become that of the carried tensor."""

    def viewed(m, cache, row, place):
        after = update(m, cache, row, place)
        flat = m.constant(np.array([24], np.int32))
        return after, m.op("RESHAPE", [cache if old else after, flat], (24,), new_shape=(24,))

    model = Model(viewed)
    got, delegate = model.run(device=device)
    for i, y in enumerate(got):
        rows = np.zeros((6, 4))
        written = i if old else i + 1
        rows[:written] = np.arange(1, written + 1)[:, None]
        np.testing.assert_array_equal(y, rows.ravel())
    assert delegate.read_carried("cache")[0, 3].tolist() == [4] * 4


@pytest.mark.usefixtures("impatient")
def test_a_chain_that_gives_up_writes_no_wrong_row(device):
    """Where the new row belongs is computed by an earlier stage, which may not have run."""
    model = Model(in_place)
    (_,), delegate = model.run(1, device=device, chain="on", warm_up=False)
    rows = np.zeros((6, 4))
    rows[0] = 1
    for i in range(1, 60):
        model.step(i)
        rows[min(i, 5)] = i + 1  # the last place is the last row
        np.testing.assert_array_equal(delegate.read_carried("cache")[0], rows)
        if delegate.stats()["chains"][0]["reason"]:
            break


def test_what_is_copied_and_what_is_not():
    for use, kernel in ((in_place, "write"), (read_before, "write"), (twice, "write"),
                        (reshaped, "write"), (read_after, "select")):  # fmt: skip
        model = Model(use)
        _, delegate = model.run(zero_copy="off")
        kernels = {t.kernel for t in delegate.launch_times(1)}
        assert {k for k in kernels if "update" in k} == {f"dynamic_update_slice_{kernel}"}, use
        last = delegate.stats()["last_invoke"]
        assert (last["bytes_up"], last["bytes_down"]) == (16 + 4, 4), use
        (entry,) = delegate.carried()
        assert bool(entry["copied"][0]) == (kernel == "select"), use
    assert entry["copied"] == {
        0: "no kernel updates it in place, or its old value is read after that"
    }


def test_measuring_leaves_no_traces(device):
    model = Model(in_place)
    _, delegate = model.run(device=device)
    before = delegate.read_carried("cache")
    assert delegate.device_time(3) > 0
    delegate.launch_times(2)
    np.testing.assert_array_equal(delegate.read_carried("cache"), before)
    assert model.step(4).item() == 60


def test_reading_writing_and_clearing():
    model = Model(in_place)
    _, delegate = model.run(2)
    want = np.zeros(SHAPE, np.float32)
    want[0, 0], want[0, 1] = 1, 2
    np.testing.assert_array_equal(delegate.read_carried("cache"), want)
    delegate.write_carried("cache", want * 10)
    assert model.step(2).item() == 40 + 80 + 12
    delegate.clear_carried()
    assert model.step(3).item() == 16
    (entry,) = delegate.carried()
    assert entry == {
        "name": "cache", "shape": list(SHAPE), "type": "float32", "bytes": 96, "graphs": {0: ""},
        "copied": {0: ""},
    }  # fmt: skip
    for bad in (want[0], want.astype(np.float64)):
        with pytest.raises(OptionError, match=r"the carried tensor 'cache' is float32\[1, 6, 4\]"):
            delegate.write_carried("cache", bad)
    with pytest.raises(OptionError, match="the delegate carries no tensor 'x'"):
        delegate.read_carried("x")
    del model.interpreter
    with pytest.raises(ClgpuError, match="no interpreter of the delegate carries a tensor"):
        delegate.read_carried("cache")
    assert delegate.carried() == []


def test_integers_are_carried_too():
    model = Model(lambda m, *a: (after := update(m, *a), total(m, m.op("CAST", [after], SHAPE))),
                  np.int32)  # fmt: skip
    got, delegate = model.run()
    assert [y.item() for y in got] == RIGHT[in_place]
    assert delegate.read_carried("cache").dtype == np.int32


def outputs_only(*, dtype=np.float32, shape=(2, 3, 40)) -> tuple[bytes, dict]:
    """A model whose output stays on the device though it is the next value of no input."""
    m = ModelMaker()
    x = m.input("x", shape, dtype)
    y = m.op("NEG", [x], shape, dtype=dtype)
    m.output(y)
    return m.build(), {"y": {0: (y, y)}}


def give(interpreter, value: np.ndarray) -> None:
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()


@pytest.mark.parametrize("options", [{}, {"precision": "fp16"}, {"verify": 1}], ids=str)
def test_the_largest_elements_of_a_tensor_are_found_where_it_lies(options, device, rng):
    content, carry = outputs_only()
    delegate = clgpu_delegate.load(device=device, carry=carry, zero_copy="off", **options)
    interpreter = make_interpreter("auto", content, [delegate])
    x = rng.integers(-900, 900, (2, 3, 40)).astype(np.float32)
    x[0, 0, 7:9] = -1000  # the first of equal ones counts
    x[1, 1, 3] = np.nan
    give(interpreter, x)
    if "verify" not in options:
        assert delegate.stats()["last_invoke"]["bytes_down"] == 0
    y = -x.reshape(6, 40)
    np.testing.assert_array_equal(delegate.read_carried("y").reshape(6, 40), y)
    sums, first = delegate._largest_carried("y", None)
    assert np.isnan(sums).tolist() == [False, False, False, False, True, False]
    whole = [0, 1, 2, 3, 5]
    np.testing.assert_array_equal(first[whole], np.argmax(y, 1)[whole])
    assert first[0] == 7
    values, indices = (found.reshape(6, 4) for found in delegate._largest_carried("y", 4))
    np.testing.assert_array_equal(values[whole], -np.sort(-y, axis=1)[whole, :4])
    np.testing.assert_array_equal(np.take_along_axis(y, indices, 1)[whole], values[whole])
    # Of the next inferences, by the same executor. Its memory may have changed that of the model's,
    # so the first inference may create an object.
    for place in (8, 9):
        before = delegate.stats()["objects_created"]
        x = np.roll(x, 1, axis=2)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        assert delegate._largest_carried("y", None)[1][0] == place
    assert delegate.stats()["objects_created"] == before


def found(delegate, name, count) -> tuple[np.ndarray, np.ndarray, int]:
    """The largest elements, and how many launches it took to tell."""
    before = delegate.stats()["launches"]
    values, indices = delegate._largest_carried(name, count)
    return values, indices, delegate.stats()["launches"] - before


@pytest.mark.parametrize(
    "options", [{}, {"precision": "fp16"}, {"half_io": True}, {"profile": True}], ids=str
)
@pytest.mark.parametrize("count", [0, 1, 5])
def test_inferences_find_the_largest_elements(count, options, device, rng):
    """With their other results; what writes the tensor otherwise is looked at when it is asked."""
    content, carry = outputs_only()
    ((graph, (y, _)),) = carry["y"].items()
    delegate = clgpu_delegate.load(
        device=device, carry={"y": {graph: (y, y, count)}}, zero_copy="off", **options
    )
    interpreter = make_interpreter("auto", content, [delegate])
    for _ in range(2):
        x = rng.permutation(240).reshape(2, 3, 40).astype(np.float32)
        give(interpreter, x)
        values, indices, launches = found(delegate, "y", count or None)
        assert launches == 0
        rows = -x.reshape(6, 40)
        order = np.argsort(-rows, axis=1)[:, : count or 1]
        np.testing.assert_array_equal(indices.reshape(order.shape), order)
        expected = np.take_along_axis(rows, order, 1) if count else rows.sum(1)
        np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=1e-3)
    assert found(delegate, "y", 7)[2] > 0  # another count
    delegate.write_carried("y", np.float32(rows[:, ::-1].reshape(2, 3, 40)))
    values, indices, launches = found(delegate, "y", count or None)
    assert launches > 0
    np.testing.assert_array_equal(indices.reshape(order.shape), 39 - order)
    delegate.clear_carried()
    assert (found(delegate, "y", count or None)[1].reshape(6, -1)[:, 0] == 0).all()


def test_fewer_elements_than_an_inference_finds(device):
    """A carried tensor keeps its shape; the old one works again, and the elements are found."""
    content, carry = outputs_only()
    ((graph, (y, _)),) = carry["y"].items()
    delegate = clgpu_delegate.load(device=device, carry={"y": {graph: (y, y, 30)}}, cache="off")
    interpreter = make_interpreter("auto", content, [delegate])
    place = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(place, (2, 3, 20))
    with pytest.raises(RuntimeError, match=r"'y' is float32\[2, 3, 40\] already"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(place, (2, 3, 40))
    x = np.arange(240, dtype=np.float32).reshape(2, 3, 40)
    give(interpreter, x)
    np.testing.assert_array_equal(delegate.read_carried("y"), -x)
    indices = found(delegate, "y", 30)[1].reshape(6, 30)
    np.testing.assert_array_equal(indices, np.tile(np.arange(30), (6, 1)))


def test_a_node_has_its_own_kernel_in_the_explanation(device):
    """Not that of what looks at its results."""
    content, carry = outputs_only()
    ((graph, (y, _)),) = carry["y"].items()
    told = []
    for numbers in ((y, y), (y, y, 0)):
        delegate = clgpu_delegate.load(device=device, carry={"y": {graph: numbers}})
        interpreter = make_interpreter("auto", content, [delegate])
        interpreter.allocate_tensors()
        told += [[(n.op, n.candidate, n.flops) for n in delegate.explain().nodes]]
    assert told[0] == told[1]


@pytest.mark.usefixtures("impatient")
def test_a_chain_that_gives_up_finds_the_largest_elements(device, rng):
    content, carry = outputs_only()
    ((graph, (y, _)),) = carry["y"].items()
    delegate = clgpu_delegate.load(
        device=device, carry={"y": {graph: (y, y, 0)}}, chain="on", warm_up=False
    )
    interpreter = make_interpreter("auto", content, [delegate])
    interpreter.allocate_tensors()
    for _ in range(60):
        x = rng.permutation(240).reshape(2, 3, 40).astype(np.float32)
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        _, indices, launches = found(delegate, "y", None)
        assert launches == 0
        np.testing.assert_array_equal(indices, np.argmin(x.reshape(6, 40), 1))
        if delegate.stats()["chains"][0]["reason"]:
            break


def test_verification_leaves_the_largest_elements_to_be_asked_for(device, rng):
    content, carry = outputs_only()
    ((graph, (y, _)),) = carry["y"].items()
    delegate = clgpu_delegate.load(device=device, carry={"y": {graph: (y, y, 0)}}, verify=1)
    interpreter = make_interpreter("auto", content, [delegate])
    give(interpreter, x := rng.random((2, 3, 40), np.float32))
    _, indices, launches = found(delegate, "y", None)
    assert launches > 0
    np.testing.assert_array_equal(indices, np.argmin(x.reshape(6, 40), 1))


NO_KERNEL = """
from tests.delegate.test_carried import *
from clgpu_delegate import _core
for name in _core.kernel_sources():
    if name.startswith("topk/"):
        _core.override_kernel_source(name, "no OpenCL C")
content, carry = outputs_only()
((graph, (y, _)),) = carry["y"].items()
delegate = clgpu_delegate.load(carry={"y": {graph: (y, y, 5)}}, cache="off")
interpreter = make_interpreter("auto", content, [delegate])
x = np.arange(240, dtype=np.float32).reshape(2, 3, 40)
give(interpreter, x)
np.testing.assert_array_equal(delegate.read_carried("y"), -x)
assert delegate.stats()["last_invoke"]["launches"] == 1
with pytest.raises(ClgpuError, match="topk"):
    delegate._largest_carried("y", 5)
"""


def test_a_device_without_a_kernel_for_it_computes_the_rest():
    assert_succeeds(run_python(NO_KERNEL))


def test_what_the_largest_elements_are_not_found_of():
    content, carry = outputs_only(dtype=np.int32)
    delegate = clgpu_delegate.load(carry=carry)
    with pytest.raises(ClgpuError, match="no interpreter of the delegate carries a tensor"):
        delegate._largest_carried("y", 1)
    interpreter = make_interpreter("auto", content, [delegate])
    interpreter.allocate_tensors()
    with pytest.raises(ClgpuError, match=r"'y' is int32\[2, 3, 40\]; .* in rows of float32"):
        delegate._largest_carried("y", 1)
    with pytest.raises(OptionError, match="the delegate carries no tensor 'z'"):
        delegate._largest_carried("z", 1)
    content, carry = outputs_only()
    delegate = clgpu_delegate.load(carry=carry)
    interpreter = make_interpreter("auto", content, [delegate])
    interpreter.allocate_tensors()
    with pytest.raises(OptionError, match="count is 41; allowed: 0 to 40"):
        delegate._largest_carried("y", 41)


def test_two_interpreters_of_a_delegate_have_values_of_their_own():
    first, second = Model(in_place), Model(in_place)
    _, delegate = first.run(2)
    second.interpreter = make_interpreter("auto", second.content, [delegate])
    assert second.step(0).item() == 4
    assert first.step(2).item() == 24
    assert second.step(1).item() == 12


def test_new_shapes_keep_the_values():
    """Another input gets another shape, and back: what is carried stays."""
    m = ModelMaker()
    row, place = m.input("row", (1, 1, 4)), m.input("place", (1,), np.int32)
    cache = m.input("cache", SHAPE)
    more = m.input("more", (1, 3))
    after = update(m, cache, row, place)
    m.output(after, m.op("ADD", [total(m, after), m.op("TANH", [more], (1, 3))], (1, 3)))
    delegate = clgpu_delegate.load(carry={"cache": {0: (cache, after)}})
    interpreter = make_interpreter("auto", m.build(), [delegate])
    for i, size in enumerate((3, 5, 3)):
        interpreter.resize_tensor_input(more, [1, size])
        interpreter.allocate_tensors()
        interpreter.set_tensor(row, np.full((1, 1, 4), i + 1, np.float32))
        interpreter.set_tensor(place, np.array([i], np.int32))
        interpreter.set_tensor(more, np.zeros((1, size), np.float32))
        interpreter.invoke()
        y = interpreter.get_tensor(interpreter.get_output_details()[1]["index"])
        assert y.tolist() == [[RIGHT[in_place][i]] * size]


def test_the_cpu_takes_over_with_what_the_device_has(broken):  # noqa: F811
    """From the third inference on the sums are wrong, whatever computes them on the device."""
    model = Model(in_place)
    model.run(1, verify=1, warm_up=False, cache="off")
    got = [model.step(1)]
    broken("reduce/reduce.cl", "dst, output, total)", "dst, output, total * 3 + 1)")
    # Programs that are built stay: other shapes of nothing, so the partition is built again.
    delegate = clgpu_delegate.load(carry=model.carry, verify=1, warm_up=False, cache="off")
    kept = np.zeros(SHAPE, np.float32)
    kept[0, 0], kept[0, 1] = 1, 2
    model.interpreter = make_interpreter("auto", model.content, [delegate])
    model.interpreter.allocate_tensors()
    delegate.write_carried("cache", kept)
    got += [model.step(2), model.step(3)]
    assert [y.item() for y in got] == RIGHT[in_place][1:]
    verification = delegate.explain().verification
    assert verification is not None
    assert verification.partitions[0].level == "cpu"
    assert delegate.read_carried("cache")[0, :, 0].tolist() == [1, 2, 3, 4, 0, 0]


def test_values_that_the_option_does_not_take():
    for value, message in (
        ("a", "option 'carry' is 'a'; allowed: name=graph/input/output"),
        ("a=1/2", "option 'carry' is 'a=1/2'"),
        ("a=1/2/3/4", "option 'carry' is 'a=1/2/3/4'"),
        ("a=1/2/2/x", "option 'carry' is 'a=1/2/2/x'"),
        ("a=1/2/2/3/4", "option 'carry' is 'a=1/2/2/3/4'"),
        ("a=1/2/2/3+2/4/4", "option 'carry' is"),
        ({"a": {1: (2, 2, "x")}}, "option 'carry' is"),
        ("a=1/2/x", "option 'carry' is 'a=1/2/x'"),
        ("a=1/2/3+1/4/5", "option 'carry' is"),
        ("a=0/1/2,a=0/3/4", "option 'carry' is"),
        ("=0/1/2", "option 'carry' is"),
        ({"a b": {0: (1, 2)}}, "option 'carry' has 'a b'; allowed: names without"),
        ({"a": {}}, "option 'carry' is"),
        ([1], "option 'carry' is"),
    ):
        with pytest.raises(OptionError, match=message):
            clgpu_delegate.load(carry=value)


def test_tensors_that_cannot_be_carried_are_told():
    m = ModelMaker()
    a, b = m.input("a", (1, 4)), m.input("b", (1, 4))
    inner = m.op("NEG", [a], (1, 4))
    total = m.op("ADD", [inner, b], (1, 4))
    m.output(total, m.op("TANH", [total], (1, 4)))
    model = m.build()
    for carry, reason in (
        ({"k": {0: (a, total)}, "v": {0: (b, total)}}, "another carried tensor has its output"),
        ({"v": {0: (inner, total)}}, "its input is computed by a node"),
        ({"v": {0: (99, total)}}, "the graph has no tensor with the index of its input"),
    ):
        delegate = clgpu_delegate.load(carry=carry)
        interpreter = make_interpreter("auto", model, [delegate])
        interpreter.allocate_tensors()
        assert delegate.carried()[-1]["graphs"] == {0: reason}
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], np.ones((1, 4), np.float32))
        interpreter.invoke()


def test_shared_weights_leave_nothing_behind():
    """The second graph shares one form of the weights, and needs no other on the device."""
    size = 256
    weights = np.random.default_rng(0).standard_normal((size, size)).astype(np.float16)

    def bytes_of(*, shared: bool) -> int:
        m = ModelMaker()
        halves = m.constant(weights)
        carry = {}
        for graph in range(2):
            g = m if graph == 0 else m.subgraph()
            stored = halves if graph == 0 else g.shared_constant(m, halves)
            x, a = g.input("x", (1, size)), g.input("a", (1, size))
            w = g.op("DEQUANTIZE", [stored], (size, size), dtype=np.float32)
            y = x
            if graph == 1:
                turned = g.op(
                    "TRANSPOSE", [w, g.constant(np.array([1, 0], np.int32))], (size, size)
                )
                y = g.op("FULLY_CONNECTED", [y, turned], (1, size))
            largest = g.op("REDUCE_MAX", [w, g.constant(np.array([0], np.int32))], (size,))
            total = g.op("ADD", [a, g.op("ADD", [y, largest], (1, size))], (1, size))
            g.output(total)
            g.signature(f"g{graph}", {"x": x, "a": a}, {"total": total})
            carry[f"a{graph}"] = {graph: (a, total)}
        content = m.build()
        before = clgpu_delegate.load().stats()["device_bytes"]
        delegate = clgpu_delegate.load(carry=carry if shared else "")
        interpreter = make_interpreter("auto", content, [delegate])
        for graph in range(2):
            interpreter._interpreter.AllocateTensors(graph)
        return delegate.stats()["device_bytes"] - before

    # What is carried stays on the device, too: small beside the weights.
    assert bytes_of(shared=True) <= bytes_of(shared=False) + 64 * 1024


def test_runners_refuse_to_have_several_in_flight():
    model = Model(in_place)
    with clgpu_delegate.Runner(model.content, carry=model.carry, depth=2) as runner:
        assert "each inference needs the tensors that the one before it leaves" in (
            runner.reason or ""
        )


@pytest.fixture(scope="module")
def library() -> dict[str, str]:
    """Environment variables for an OpenCL library whose calls fail on demand."""
    try:
        return environment(BUILD)
    except LayerError as error:
        pytest.skip(str(error))


# A failed step may have written its rows; one that reads them before it writes them would see that.
FAILING = """
import numpy as np
import clgpu_delegate
from tests.delegate.test_carried import RIGHT, Model
from tests.delegate import test_carried
from tests.faults.control import Layer

layer = Layer()
for use in ("in_place", "read_after", "sum_of_all", "overwritten"):
    use = getattr(test_carried, use)
    model = Model(use)
    got, delegate = model.run(2, zero_copy="off")
    failures = 0
    for call in ("clEnqueueWriteBuffer", "clEnqueueNDRangeKernel", "clEnqueueReadBuffer",
                 "clEnqueueCopyBuffer"):
        for skip in range(3):
            layer.clear()
            before = delegate.read_carried("cache")
            layer.fail(call, -5, skip, 1)
            failed = False
            try:
                model.step(2)
            except (RuntimeError, ValueError) as error:
                failed = True
                failures += 1
                assert "CL_OUT_OF_RESOURCES" in str(error) or "failed to invoke" in str(error)
            layer.clear()
            if use.__name__ in ("in_place", "overwritten"):
                continue
            after = delegate.read_carried("cache")
            if not failed:
                delegate.write_carried("cache", before)
            else:
                np.testing.assert_array_equal(after, before)
    assert failures > 3
    got += [model.step(2), model.step(3)]
    assert [y.item() for y in got] == RIGHT[use], (use, got, delegate.read_carried("cache"))
assert not layer.misuse, layer.misuse
"""


def test_a_step_that_fails_is_repeated(library):
    assert_succeeds(run_python(FAILING, **library))

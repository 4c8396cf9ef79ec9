"""CompiledModel: signatures, subgraphs, resizing, custom operations, several models at once."""

from __future__ import annotations

import gc
import random
import threading

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate.tflite import reader, writer
from clgpu_delegate.tflite.graph import Signature
from tests.litert.compiled import Compiled, chain, needs_litert, preferred_device
from tests.model_maker import ModelMaker
from tests.ops.test_max_pool_argmax import CASES, argmax_model, argmax_pool

pytestmark = needs_litert


@pytest.fixture(scope="module")
def environment():
    """One for all tests here, as making one takes longer than most of them."""
    with clgpu_delegate.litert_environment(device=preferred_device()) as made:
        yield made


@pytest.fixture(autouse=True)
def collected():
    """Objects that a test has left do not affect the next one."""
    gc.collect()


def a_row(size: int = 8, scale: float = 2.0) -> np.ndarray:
    return np.linspace(-scale, scale, size, dtype=np.float32)[None]


def two_signatures() -> bytes:
    """``difference(minuend, subtrahend)``, and ``root(x)`` of a subgraph with its own sizes."""
    m = ModelMaker()
    x, y = m.input("x", (1, 8)), m.input("y", (1, 8))
    m.output(m.op("SUB", [x, y], (1, 8)))
    other = m.subgraph()
    root = other.op("SQRT", [other.op("ABS", [other.input("x", (1, 5))], (1, 5))], (1, 5))
    other.output(root)
    model = reader.parse(m.build())
    (difference,) = model.subgraphs[0].outputs
    x, y = model.subgraphs[0].inputs
    model.signatures = [
        # Not in the order of the graph: names must decide.
        Signature("difference", 0, {"subtrahend": y, "minuend": x}, {"result": difference}),
        Signature("root", 1, {"x": model.subgraphs[1].inputs[0]}, {"y": root}),
    ]
    return writer.serialize(model)


def test_signatures_run_by_their_names(environment):
    model = Compiled(two_signatures(), "GPU", environment).model
    assert set(model.get_signature_list()) == {"difference", "root"}
    given = {"minuend": a_row(), "subtrahend": a_row(scale=0.5), "x": a_row(5)}
    wanted = {
        ("difference", "result"): given["minuend"] - given["subtrahend"],
        ("root", "y"): np.sqrt(np.abs(given["x"])),
    }
    for _ in range(2):
        for (key, output), want in wanted.items():
            names = model.get_signature_list()[key]["inputs"]
            sources = {name: model.create_input_buffer_by_name(key, name) for name in names}
            results = {output: model.create_output_buffer_by_name(key, output)}
            for name, buffer in sources.items():
                buffer.write(given[name])
            model.run_by_name(key, sources, results)
            found = results[output].read(want.size, np.float32).reshape(want.shape)
            np.testing.assert_allclose(found, want, rtol=1e-6)
    (delegate,) = clgpu_delegate.litert_delegates()
    assert delegate.stats()["invokes"] == 4, "both subgraphs are on the device"


def test_loop_runs_its_body_on_the_device(environment):
    """``tanh`` of the sum of ``x`` and five."""
    m = ModelMaker()
    x = m.input("x", (1, 8))
    start = m.constant(np.zeros(1, np.int32))
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    _, y = m.op("WHILE", [start, x], [(1,), (1, 8)], dtype=[np.int32, np.float32], **options)
    m.output(m.op("TANH", [y], (1, 8)))
    cond = m.subgraph()
    i, _ = cond.input("i", (1,), np.int32), cond.input("y", (1, 8))
    cond.output(cond.op("LESS", [i, cond.constant(np.array([5], np.int32))], (1,), dtype=np.bool_))
    body = m.subgraph()
    i, y = body.input("i", (1,), np.int32), body.input("y", (1, 8))
    body.output(body.op("ADD", [i, body.constant(np.array([1], np.int32))], (1,)))
    body.output(body.op("ADD", [y, body.constant(np.ones((1, 8), np.float32))], (1, 8)))
    compiled = Compiled(m.build(), "GPU|CPU", environment)
    (found,) = compiled.run([a_row() - 5])
    np.testing.assert_allclose(found, np.tanh(a_row()), atol=1e-6)
    (found,) = Compiled(m.build(), "GPU", environment).run([a_row() - 5])
    np.testing.assert_allclose(found, np.tanh(a_row()), atol=1e-6)


@pytest.mark.parametrize("accelerators", ["GPU", "GPU|CPU"])
def test_rounds_of_a_loop_may_be_an_input(environment, accelerators):
    """Adds one to ``x`` from ``i`` to five."""
    m = ModelMaker()
    x, start = m.input("x", (1, 8)), m.input("i", (1,), np.int32)
    options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    _, y = m.op("WHILE", [start, x], [(1,), (1, 8)], dtype=[np.int32, np.float32], **options)
    m.output(m.op("TANH", [y], (1, 8)))
    cond, body = m.subgraph(), m.subgraph()
    i, _ = cond.input("i", (1,), np.int32), cond.input("y", (1, 8))
    cond.output(cond.op("LESS", [i, cond.constant(np.array([5], np.int32))], (1,), dtype=np.bool_))
    i, y = body.input("i", (1,), np.int32), body.input("y", (1, 8))
    body.output(body.op("ADD", [i, body.constant(np.array([1], np.int32))], (1,)))
    body.output(body.op("ADD", [y, body.constant(np.ones((1, 8), np.float32))], (1, 8)))
    compiled = Compiled(m.build(), accelerators, environment)
    for first in (0, 4, 7):
        (found,) = compiled.run([a_row(), np.array([first], np.int32)])
        np.testing.assert_allclose(found, np.tanh(a_row() + max(5 - first, 0)), atol=1e-6)
    assert all(node.claimed for node in clgpu_delegate.litert_delegates()[-1].explain().nodes)


def square(shape: tuple[int, ...]) -> bytes:
    m = ModelMaker()
    m.output(m.op("SQUARE", [m.input("x", shape)], shape))
    return m.build()


def test_only_extents_that_the_file_leaves_open_change(environment):
    compiled = Compiled(square((-1, 4)), "GPU", environment)
    for shape in ((3, 5), (3, 4, 1), (0, 4)):
        with pytest.raises(RuntimeError):
            compiled.resize(0, shape)
        (y,) = compiled.run([a_row(4)], [(1, 4)])  # as before
        np.testing.assert_array_equal(y, a_row(4) ** 2)
    compiled.resize(0, (6, 4))
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    np.testing.assert_array_equal(compiled.run([x], [(6, 4)])[0], x**2)


def test_any_extent_changes_if_the_caller_insists(environment):
    compiled = Compiled(square((1, 4)), "GPU", environment)
    with pytest.raises(RuntimeError, match=r"dynamic shape|not compatible"):
        compiled.resize(0, (2, 6))
    for shape in ((2, 6), (1, 4), (5, 1)):
        compiled.resize(0, shape, strict=False)
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(compiled.run([x], [shape])[0], x**2)


def test_shapes_that_no_node_can_have_are_an_error(environment):
    m = ModelMaker()
    x, y = m.input("x", (-1, 4)), m.input("y", (3, 4))
    m.output(m.op("ADD", [x, y], (3, 4)))
    compiled = Compiled(m.build(), "GPU", environment)
    ones = np.ones((3, 4), np.float32)
    for rows in (3, 2, 3):
        compiled.resize(0, (rows, 4))
        if rows == 2:
            with pytest.raises(RuntimeError, match="Failed to"):
                compiled.run([ones[:2], ones], [(3, 4)])
        else:
            np.testing.assert_array_equal(compiled.run([ones, ones], [(3, 4)])[0], 2 * ones)


def test_buffer_of_another_shape_resizes_the_model(environment):
    """LiteRT does so by itself when a model runs."""
    compiled = Compiled(square((-1, 4)), "GPU", environment)
    compiled.resize(0, (5, 4))
    five = compiled.sources, compiled.results
    compiled.resize(0, (2, 4))
    two = compiled.sources, compiled.results
    for rows, (sources, results) in ((2, two), (5, five), (2, two)):
        x = np.full((rows, 4), rows, np.float32)
        sources[0].write(x)
        compiled.model.run_by_index(0, sources, results)
        np.testing.assert_array_equal(results[0].read(rows * 4, np.float32), rows**2)


def test_results_that_wait_for_a_value_are_in_the_buffers(environment):
    """LiteRT creates the buffers for the file's shape of the result."""
    m = ModelMaker()
    x, to = m.input("x", (2, 3, 4)), m.input("value", (3,), np.int32)
    repeated = m.op("TILE", [m.op("NEG", [x], (2, 3, 4)), to], (2, 3, 8))
    m.output(m.op("ABS", [repeated], (2, 3, 8)))
    content = m.build()
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    compiled = Compiled(content, "GPU|CPU", environment)
    for repeats in ([1, 1, 2], [2, 1, 1], [1, 1, 1], [1, 2, 1]):
        want = np.abs(np.tile(x, repeats))
        (y,) = compiled.run([x, np.array(repeats, np.int32)], [want])
        np.testing.assert_array_equal(y, want)
    with pytest.raises(RuntimeError, match="Failed to invoke"):
        compiled.run([x, np.array([1, 1, 3], np.int32)], [want])
    (y,) = compiled.run([x, np.array(repeats, np.int32)], [want])
    np.testing.assert_array_equal(y, want)


def test_sets_of_buffers_take_turns_whatever_size_the_result_had(environment):
    """Small results leave the buffers as large as they are."""
    m = ModelMaker()
    x, to = m.input("x", (1, 1, 64)), m.input("value", (3,), np.int32)
    m.output(m.op("ABS", [m.op("TILE", [x, to], (1, 1, 1024))], (1, 1, 1024)))
    compiled = Compiled(m.build(), "GPU|CPU", environment)
    sets = [compiled.results, compiled.model.create_output_buffers(0)]
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 1, 64)
    for which, count in ((0, 16), (1, 16), (0, 1), (1, 16), (0, 16), (1, 1), (1, 16)):
        compiled.results = sets[which]
        want = np.tile(np.abs(x), [1, 1, count])
        (y,) = compiled.run([x, np.array([1, 1, count], np.int32)], [want])
        np.testing.assert_array_equal(y, want)


def test_shapes_that_the_cpu_computed_may_be_followed_by_larger_ones(environment):
    m = ModelMaker()
    table = np.arange(15, dtype=np.float32).reshape(5, 3)
    rows = m.input("rows", (4,), np.int32, shape_signature=(-1,))
    m.output(m.op("NEG", [m.op("GATHER", [m.constant(table), rows], (4, 3), dtype=np.float32)],
                  (4, 3)))  # fmt: skip
    compiled = Compiled(m.build(), "GPU|CPU", environment)
    for shape in ((1, 2), (1, 3), (4, 5), (3,), (30,), (6, 6)):
        compiled.resize(0, shape, strict=False)
        chosen = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) % 5
        (y,) = compiled.run([chosen], [-table[chosen]])
        np.testing.assert_array_equal(y, -table[chosen])


def custom(name: str, shape: tuple[int, ...] = (1, 4, 4, 2)) -> bytes:
    m = ModelMaker()
    x = m.op("ABS", [m.input("x", shape)], shape)
    m.output(m.op("TANH", [m.custom(name, [x], shape)], shape))
    return m.build()


def test_custom_operation_with_a_kernel_runs_on_the_device(environment):
    case = CASES[0]
    x = np.random.default_rng(1).standard_normal(case.shape).astype(np.float32)
    values, indices = argmax_pool(-x, case)
    found = Compiled(argmax_model(case), "GPU", environment).run([x])
    np.testing.assert_allclose(found[0], -values, atol=1e-6)
    np.testing.assert_allclose(found[1], indices + 0.1, atol=1e-6)


# Those that LiteRT accepts if a GPU is asked for, leaving them to it, and one that it never knows.
@pytest.mark.parametrize(
    "name",
    [
        "Resampler", "moe", "custom_call.GroupNorm", "custom_call.LayerNorm",
        "custom_call.RmsNorm", "custom_call.PixelShuffle", "Unheard",
    ],
)  # fmt: skip
def test_custom_operation_without_a_kernel_is_an_error(name, environment):
    with pytest.raises(RuntimeError, match="not accelerated"):
        Compiled(custom(name), "GPU", environment)
    with pytest.raises(RuntimeError, match="Failed to"):
        Compiled(custom(name), "GPU|CPU", environment).run([np.ones((1, 4, 4, 2), np.float32)])
    if name != "Unheard":
        compiled = Compiled(custom(name), "GPU|CPU", environment)
        nodes = clgpu_delegate.litert_delegates()[-1].explain().nodes
        assert [node.claimed for node in nodes] == [True, False, True]
        assert name in nodes[1].reason
        del compiled


def test_environments_come_and_go_in_threads():
    wrong: list[str] = []

    def work(seed: int) -> None:
        try:
            for size in range(4, 8):
                settings = {"device": preferred_device(), "min_nodes": 1}
                with clgpu_delegate.litert_environment(**settings) as made:
                    compiled = Compiled(chain(size + seed), "GPU", made)
                x = a_row(size + seed)
                if np.abs(compiled.run([x])[0] - np.tanh(np.abs(x))).max() > 1e-6:
                    wrong.append(f"thread {seed}, size {size}")
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    gc.collect()
    assert clgpu_delegate.litert_delegates() == []


@pytest.mark.parametrize("seed", range(3))
def test_models_buffers_and_environments_end_in_any_order(seed):
    settings = {"device": preferred_device()}
    environments = [clgpu_delegate.litert_environment(**settings) for _ in range(2)]
    models = [Compiled(chain(4 + i), "GPU", environments[i % 2]) for i in range(3)]
    for i, compiled in enumerate(models):
        compiled.run([a_row(4 + i)])
    held: list[list] = [
        *([environment] for environment in environments),
        *([delegate] for delegate in clgpu_delegate.litert_delegates()),
        *([compiled.model] for compiled in models),
        *([buffer] for compiled in models for buffer in (*compiled.sources, *compiled.results)),
    ]
    results = [compiled.results[0] for compiled in models]
    del environments, models, compiled
    random.Random(seed).shuffle(held)
    while held:
        held.pop().clear()
        gc.collect()
    for i, result in enumerate(results):
        want = np.tanh(np.abs(a_row(4 + i)))[0]
        np.testing.assert_allclose(result.read(4 + i, np.float32), want, atol=1e-6)
    assert clgpu_delegate.litert_delegates() == []


def test_name_of_a_signature_on_a_constant():
    """Such a name does not lie in the file, which the delegate finds to read the loop's graphs."""
    m = ModelMaker()
    x, constant = m.input("x", (1, 8)), m.constant(np.arange(4, dtype=np.float32))
    large = m.constant(np.zeros((1_500_000, 8), np.float32))  # a mapping of its own
    axis = m.constant(np.int32([0]))
    y = m.op("ADD", [x, m.op("SUM", [large, axis], (1, 8), keep_dims=True)], (1, 8))
    _, y = m.op(
        "WHILE", [m.constant(np.zeros(1, np.int32)), y], [(1,), (1, 8)],
        dtype=[np.int32, np.float32], cond_subgraph_index=1, body_subgraph_index=2,
    )  # fmt: skip
    m.output(m.op("TANH", [y], (1, 8)), constant)
    more = m.subgraph()
    count, _ = more.input("i", (1,), np.int32), more.input("y", (1, 8))
    limit = more.constant(np.array([5], np.int32))
    more.output(more.op("LESS", [count, limit], (1,), dtype=np.bool_))
    body = m.subgraph()
    count, y = body.input("i", (1,), np.int32), body.input("y", (1, 8))
    body.output(body.op("ADD", [count, body.constant(np.array([1], np.int32))], (1,)))
    body.output(body.op("ADD", [y, body.constant(np.full((1, 8), 0.1, np.float32))], (1, 8)))
    model = reader.parse(m.build())
    graph = model.subgraphs[0]
    names = {"y": graph.outputs[0], "anchors": graph.outputs[1]}
    model.signatures = [Signature("serving_default", 0, {"x": graph.inputs[0]}, names)]
    with clgpu_delegate.litert_environment(device=preferred_device()) as environment:
        compiled = Compiled(writer.serialize(model), "GPU|CPU", environment)
        results = compiled.run([np.zeros((1, 8), np.float32)])
        (wave,) = [array for array in results if array.size == 8]
        np.testing.assert_allclose(wave, np.full((1, 8), np.tanh(0.5)), rtol=1e-6)
        nodes = clgpu_delegate.litert_delegates()[-1].explain().nodes
        assert [node.op for node in nodes if not node.claimed] == []


@pytest.mark.parametrize("accelerators", ["GPU", "GPU|CPU"])
def test_sizes_may_follow_from_what_the_device_computes(environment, accelerators):
    """The sum of the elements above one; the result itself has a fixed shape."""
    m = ModelMaker()
    x = m.op("SQUARE", [m.input("x", (4, 8))], (4, 8))
    above = m.op("GREATER", [x, m.constant(np.float32(1))], (4, 8), dtype=np.bool_)
    places = m.op("WHERE", [above], (-1, 2), dtype=np.int64)
    found = m.op("GATHER_ND", [x, places], (-1,), dtype=np.float32)
    m.output(m.op("SUM", [found, m.constant(np.array([0], np.int32))], (1,), keep_dims=True,
                  dtype=np.float32))  # fmt: skip
    compiled = Compiled(m.build(), accelerators, environment)
    for largest in (2, 40, 3, 2):
        x = np.linspace(0, largest, 32, dtype=np.float32).reshape(4, 8)
        (found,) = compiled.run([x], [(1,)])
        np.testing.assert_allclose(found, [(x**2)[x**2 > 1].sum()], rtol=1e-5)
    assert all(node.claimed for node in clgpu_delegate.litert_delegates()[-1].explain().nodes)

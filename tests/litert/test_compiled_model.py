"""CompiledModel on this delegate: the results of LiteRT's CPU, and those of the delegate itself."""

from __future__ import annotations

import gc
import textwrap
import threading
from random import Random

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import OptionError, RuntimeNotFoundError, _core
from clgpu_delegate.litert import package
from tests.litert.compiled import Compiled, chain, needs_litert
from tests.model_maker import ModelMaker
from tests.models.random_graphs import random_graph
from tests.python import subprocesses
from tests.python.subprocesses import assert_succeeds
from tests.runtimes import make_interpreter

pytestmark = needs_litert


def run_python(code: str, **environment: str) -> subprocesses.subprocess.CompletedProcess[str]:
    return subprocesses.run_python(textwrap.dedent(code), **environment)


def a_row(size: int = 8, scale: float = 2.0) -> np.ndarray:
    return np.linspace(-scale, scale, size, dtype=np.float32)[None]


def test_model_runs_on_the_device_and_tells_of_it(device):
    with clgpu_delegate.litert_environment(device=device, profile=True) as environment:
        compiled = Compiled(chain(), "GPU", environment)
    assert compiled.model.is_fully_accelerated()
    (y,) = compiled.run([a_row()])
    np.testing.assert_allclose(y, np.tanh(np.abs(a_row())), atol=1e-6)
    (delegate,) = clgpu_delegate.litert_delegates()
    assert delegate.options.profile
    assert delegate.device.index == int(device)
    assert [node.claimed for node in delegate.explain().nodes] == [True, True]
    assert delegate.stats()["invokes"] == 1
    assert [node.op for node in delegate.profile().nodes][:1] == ["ABS"]


def test_delegates_are_there_as_long_as_their_models():
    with clgpu_delegate.litert_environment() as environment:
        first, second = (Compiled(chain(n), "GPU", environment) for n in (4, 5))
    inputs = [d.explain().nodes[0].inputs for d in clgpu_delegate.litert_delegates()]
    assert [tuple(shapes[0]) for shapes in inputs] == [(1, 4), (1, 5)], "the oldest first"
    del first
    gc.collect()
    assert len(clgpu_delegate.litert_delegates()) == 1
    (left,) = clgpu_delegate.litert_delegates()
    del second, environment
    gc.collect()
    assert clgpu_delegate.litert_delegates() == []
    assert left.explain().nodes, "what somebody holds still tells"


@pytest.fixture(autouse=True)
def collected():
    """Objects that a test has left do not affect the next one."""
    gc.collect()


@pytest.mark.parametrize("seed", range(12))
def test_same_bits_as_by_an_interpreter(device, seed):
    """Random graphs; LiteRT runs the nodes that the delegate does not take on the CPU."""
    graph = random_graph(Random(seed))
    delegate = clgpu_delegate.load(device=device, dynamic_range="hybrid")
    interpreter = make_interpreter("ai_edge_litert", graph.model, [delegate])
    interpreter.allocate_tensors()
    with clgpu_delegate.litert_environment(device=device, dynamic_range="hybrid") as environment:
        compiled = Compiled(graph.model, "GPU|CPU", environment)
    for inputs in graph.inputs:
        found = compiled.run(inputs)
        for detail, array in zip(interpreter.get_input_details(), inputs):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        for detail, y in zip(interpreter.get_output_details(), found):
            np.testing.assert_array_equal(y, interpreter.get_tensor(detail["index"]))


def test_excluded_nodes_run_on_the_cpu():
    with clgpu_delegate.litert_environment(exclude=["TANH"]) as environment:
        compiled = Compiled(chain(), "GPU|CPU", environment)
        (delegate,) = clgpu_delegate.litert_delegates()
        assert [node.claimed for node in delegate.explain().nodes] == [True, False]
        (y,) = compiled.run([a_row()])
        np.testing.assert_allclose(y, np.tanh(np.abs(a_row())), atol=1e-6)
        with pytest.raises(RuntimeError):  # LiteRT: a GPU alone was asked for
            Compiled(chain(), "GPU", environment)


def test_resized_model_runs_on_the_device():
    m = ModelMaker()
    m.output(m.op("ABS", [m.input("x", (-1, 4))], (-1, 4)))
    with clgpu_delegate.litert_environment() as environment:
        compiled = Compiled(m.build(), "GPU", environment)
    for rows in (3, 1, 7):
        compiled.resize(0, (rows, 4))
        x = np.arange(-4.0, rows * 4 - 4, dtype=np.float32).reshape(rows, 4)
        (y,) = compiled.run([x], [(rows, 4)])
        np.testing.assert_array_equal(y, np.abs(x))


def test_options_of_a_model_count_more_than_those_of_the_environment():
    with clgpu_delegate.litert_environment(precision="fp16") as environment:
        half = Compiled(chain(), "GPU", environment)
        whole = Compiled(chain(), "GPU", environment, enforce_f32=True)
    delegates = clgpu_delegate.litert_delegates()
    assert [d.options.precision for d in delegates] == ["fp16", "fp32"]
    for compiled in (half, whole):
        (y,) = compiled.run([a_row()])
        np.testing.assert_allclose(y, np.tanh(np.abs(a_row())), atol=1e-3)


def test_environments_have_options_of_their_own():
    environments = [clgpu_delegate.litert_environment(min_nodes=n) for n in (1, 2)]
    models = [Compiled(chain(), "GPU", environment) for environment in environments[::-1]]
    assert [d.options.min_nodes for d in clgpu_delegate.litert_delegates()] == [2, 1]
    assert all(np.ptp(model.run([a_row()])[0]) > 0 for model in models)


def test_models_in_threads_are_right():
    with clgpu_delegate.litert_environment() as environment:
        models = [Compiled(chain(64), "GPU", environment) for _ in range(4)]
    wrong: list[str] = []

    def run(i: int) -> None:
        for k in range(25):
            x = a_row(64, 0.1 * (i + 1) * (k + 1))
            (y,) = models[i].run([x])
            if np.abs(y - np.tanh(np.abs(x))).max() > 1e-6:
                wrong.append(f"model {i}, inference {k}")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("order", ["model first", "environment first", "delegate last", "exit"])
def test_any_order_of_ends(order):
    """Runs in a separate process, because errors here end the process."""
    code = f"""
        import gc, os, sys
        import clgpu_delegate
        from tests.litert.compiled import Compiled, chain
        from tests.litert.test_compiled_model import a_row
        environment = clgpu_delegate.litert_environment()
        folder = environment.options.runtime_path
        model = Compiled(chain(), "GPU", environment)
        model.run([a_row()])
        (delegate,) = clgpu_delegate.litert_delegates()
        if {order!r} == "exit":
            sys.exit()
        if {order!r} == "environment first":
            environment.close()
            del environment
            gc.collect()
            model.run([a_row()])
        if {order!r} != "delegate last":
            del delegate
        del model
        gc.collect()
        environment = None
        gc.collect()
        assert clgpu_delegate.litert_delegates() == []
        assert not os.path.exists(folder), "the folder of the environment stays"
    """
    assert_succeeds(run_python(code))


def test_wrong_option_is_told_at_once():
    with pytest.raises(OptionError, match="precision"):
        clgpu_delegate.litert_environment(precision="fp8")


def test_lack_of_litert_is_told(monkeypatch):
    monkeypatch.setattr(package.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RuntimeNotFoundError, match="ai_edge_litert is not installed; install"):
        clgpu_delegate.litert_environment()


def test_older_litert_is_told(monkeypatch):
    monkeypatch.setattr(package, "version", lambda: "2.1.4")
    with pytest.raises(RuntimeNotFoundError, match=r"LiteRT 2.1.4 .* supported: 2.2 and later"):
        clgpu_delegate.litert_environment()


@pytest.mark.parametrize(
    ("toml", "options", "ignored"),
    [
        ("", {}, []),
        ("precision = 0\nbenchmark_mode = false\n", {}, []),
        ("precision = 1\n", {"precision": "fp16"}, []),
        ("precision = 3\n", {"precision": "fp16"}, []),
        ("precision = 7\n", {}, ["precision"]),
        ('preferred_device_substr = "4090"', {}, ["preferred_device_substr"]),
        ('serialization_dir = "/d"\n', {"cache": "/d/clgpu_delegate.sqlite"}, []),
        ('serialization_dir = "/d"\nserialize_program_cache = false', {"cache": "off"}, []),
        ('preferred_device_substr = "Mali = 1"', {"device": "Mali = 1"}, []),
        ("priority = 2\nno line of toml\nwait_type=3", {}, ["priority", "wait_type"]),
    ],
)
def test_gpu_options_of_litert(toml, options, ignored):
    assert _core.litert_gpu_options(toml) == (options, ignored)


def test_model_for_the_cpu_stays_there():
    with clgpu_delegate.litert_environment() as environment:
        compiled = Compiled(chain(), "CPU", environment)
    assert clgpu_delegate.litert_delegates() == []
    np.testing.assert_allclose(compiled.run([a_row()])[0], np.tanh(np.abs(a_row())), atol=1e-6)


@pytest.mark.parametrize("end", ["dropped", "forked"])
def test_environment_that_ends_before_any_model_takes_nothing_with_it(end):
    code = f"""
        import gc, os, sys
        import clgpu_delegate
        from tests.litert.compiled import Compiled, chain
        environment = clgpu_delegate.litert_environment()
        if {end!r} == "forked":
            child = os.fork()
            if child == 0:
                sys.exit()
            os.waitpid(child, 0)
            assert os.path.exists(environment.options.runtime_path)
        else:
            environment = None
            gc.collect()
            environment = clgpu_delegate.litert_environment()
        model = Compiled(chain(), "GPU", environment)
        assert len(clgpu_delegate.litert_delegates()) == 1
    """
    assert_succeeds(run_python(code))


def test_option_without_effect_is_told_once():
    code = """
        import clgpu_delegate
        from tests.litert.compiled import Compiled, chain
        environment = clgpu_delegate.litert_environment()
        models = [Compiled(chain(), "GPU", environment, benchmark_mode=True) for _ in range(3)]
    """
    result = run_python(code)
    assert_succeeds(result)
    assert result.stderr.count("'benchmark_mode' has no effect on OpenCL") == 1


def test_variable_gives_options_to_a_model():
    code = """
        import clgpu_delegate
        from tests.litert.compiled import Compiled, chain
        environment = clgpu_delegate.litert_environment(min_nodes=2)
        model = Compiled(chain(), "GPU", environment)
        (delegate,) = clgpu_delegate.litert_delegates()
        print("options", delegate.options.precision, delegate.options.min_nodes)
    """
    result = run_python(code, CLGPU_LITERT_OPTIONS=" precision = fp16; min_nodes=1;")
    assert_succeeds(result)
    assert "options fp16 2" in result.stdout


def test_wrong_variable_is_told_and_no_model_lost():
    code = """
        import clgpu_delegate
        from tests.litert.compiled import Compiled, chain
        from tests.litert.test_compiled_model import a_row
        model = Compiled(chain(), "GPU|CPU", clgpu_delegate.litert_environment())
        print("ran", model.run([a_row()])[0].shape)
    """
    result = run_python(code, CLGPU_LITERT_OPTIONS="fp16")
    assert "CLGPU_LITERT_OPTIONS has 'fp16'; allowed: key=value;key=value" in result.stderr
    assert_succeeds(result)
    assert "ran (1, 8)" in result.stdout

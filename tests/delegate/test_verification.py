"""Verification detects kernels broken on purpose: another engine, fp32 or the CPU replaces them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from clgpu_delegate.report.verification import PartitionCheck
from tests.model_maker import ModelMaker
from tests.ops.harness import op_runtime
from tests.python import models
from tests.python.subprocesses import ROOT
from tests.runtimes import make_interpreter, run_interpreter, run_reference
from tests.tolerance import relative_l2

NAIVE, GEMV, SOFTMAX = (
    "fully_connected/naive.cl", "fully_connected/gemv.cl", "softmax/softmax.cl",
)  # fmt: skip
STORE = "STORE(DST_T, dst, c, "
IN_HALF = "((const __global char *)(src + 1) - (const __global char *)src == 2)"


class Breaker:
    """Replaces parts of kernel files."""

    def __init__(self) -> None:
        self._files: set[str] = set()

    def __call__(self, file: str, old: str, new: str) -> None:
        text = _core.kernel_sources()[file]
        assert old in text
        self._files.add(file)
        _core.override_kernel_source(file, text.replace(old, new))

    def mend(self) -> None:
        while self._files:
            _core.override_kernel_source(self._files.pop(), None)


@pytest.fixture
def broken():
    """Replaces parts of kernel files until the test ends."""
    breaker = Breaker()
    yield breaker
    breaker.mend()


# Makes all engines of a family wrong.
REDUCE = "reduce/reduce.cl", "dst, output, total)", "dst, output, total * 3 + 1)"
DENSE = "common/activation.cl", "activation_0(x) (x)", "activation_0(x) ((x) * 3.0f + 1.0f)"
ADD_INTEGERS = "binary/quantized.cl", "QUANTIZED_ADD(V, a, b)", "QUANTIZED_ADD(V, -(a), b)"


@pytest.fixture
def x() -> np.ndarray:
    return models.normal(np.random.default_rng(7), 3, 40)


def dense(tanh: bool = False, depth: int = 40) -> bytes:
    """Two dense layers, each followed by a TANH if asked for."""
    rng = np.random.default_rng(8)
    m = ModelMaker()
    x = m.input("x", (3, depth))
    for _ in range(2):
        weights = m.constant(models.normal(rng, depth, depth) / np.float32(6))
        x = m.op("FULLY_CONNECTED", [x, weights, None], (3, depth))
        x = m.op("TANH", [x], (3, depth)) if tanh else x
    m.output(x)
    return m.build()


def run(
    model: bytes, inputs: list[np.ndarray], runtime: str, times: int = 1, **options: Any
) -> tuple[list[np.ndarray], clgpu_delegate.Explanation]:
    """Outputs of the last of some inferences, and the explanation."""
    delegate = clgpu_delegate.load(warm_up=False, **{"verify": "first", **options})
    interpreter = make_interpreter(runtime, model, [delegate])
    for _ in range(times):
        outputs = run_interpreter(interpreter, inputs)
    return outputs, delegate.explain()


def check_of(explanation: clgpu_delegate.Explanation, partition: int = 0) -> PartitionCheck:
    assert explanation.verification is not None
    return explanation.verification.partitions[partition]


def is_right(got: list[np.ndarray], model: bytes, inputs: list[np.ndarray], runtime: str) -> None:
    for result, want in zip(got, run_reference(model, inputs, runtime)):
        assert relative_l2(result, want) < 1e-5


@pytest.mark.parametrize("sum_", ["sum + (SUM_T)(n == 7)", "sum + (at == 0 ? NAN : 0)"])
def test_wrong_numbers_of_any_kind(sum_, broken, x, device):
    broken(NAIVE, "FINISH_SUM(sum,", f"FINISH_SUM({sum_},")
    engines = {"fully_connected": "naive|auto"}
    got, explanation = run(dense(), [x], op_runtime(), device=device, engines=engines)
    is_right(got, dense(), [x], op_runtime())
    assert check_of(explanation).engine == "fully_connected/naive"


def test_an_engine_whose_results_are_converted_to_integers_is_wrong(broken, x, device):
    m = ModelMaker()
    weights = models.normal(np.random.default_rng(8), 40, 40) / np.float32(6)
    y = m.op("FULLY_CONNECTED", [m.input("x", (3, 40)), m.constant(weights), None], (3, 40))
    m.output(m.op("QUANTIZE", [y], (3, 40), dtype=np.int8, quantization=(0.05, 3)))
    broken(NAIVE, "FINISH_SUM(sum,", "FINISH_SUM(-3 * sum,")
    engines = {"fully_connected": "naive|auto"}
    (got,), explanation = run(m.build(), [x], op_runtime(), device=device, engines=engines)
    (want,) = run_reference(m.build(), [x], op_runtime())
    np.testing.assert_allclose(got.astype(int), want.astype(int), rtol=0, atol=1)
    assert check_of(explanation).engine == "fully_connected/naive"


def growing() -> bytes:
    """A loop of four dense layers, each of which makes the numbers four times as large."""
    m = ModelMaker()
    operands = [m.constant(np.int32(0)), m.input("x", (3, 40))]
    _, y = m.op("WHILE", operands, [(), (3, 40)], dtype=[np.int32, np.float32],
                cond_subgraph_index=1, body_subgraph_index=2)  # fmt: skip
    m.output(y)
    cond, body = m.subgraph(), m.subgraph()
    count, x = cond.input("count", (), np.int32), cond.input("x", (3, 40))
    cond.output(cond.op("LESS", [count, cond.constant(np.int32(4))], (), dtype=bool))
    count, x = body.input("count", (), np.int32), body.input("x", (3, 40))
    weights = body.constant(4 * np.eye(40, dtype=np.float32))
    body.output(
        body.op("ADD", [count, body.constant(np.int32(1))], ()),
        body.op("FULLY_CONNECTED", [x, weights, None], (3, 40)),
    )
    return m.build()


def test_the_last_round_of_a_loop_is_wrong(broken, x, device, runtime):
    broken(NAIVE, "FINISH_SUM(sum,", "FINISH_SUM(sum * (sum > 100 ? 2 : 1),")
    engines, x = {"fully_connected": "naive|auto"}, np.abs(x) + np.float32(0.5)
    got, explanation = run(growing(), [x], runtime, device=device, engines=engines)
    is_right(got, growing(), [x], runtime)
    check = check_of(explanation)
    assert (check.level, check.engine) == ("as asked", "fully_connected/naive")
    assert [node.claimed for node in explanation.nodes] == [True]


def test_another_engine_takes_over(broken, x, device, runtime, tmp_path):
    broken(NAIVE, "FINISH_SUM(sum,", "FINISH_SUM(sum * 2,")
    options: dict[str, Any] = {
        "device": device, "engines": {"fully_connected": "naive|auto"}, "cache": tmp_path / "c",
    }  # fmt: skip
    got, explanation = run(dense(), [x], runtime, **options)
    is_right(got, dense(), [x], runtime)
    check = check_of(explanation)
    assert (check.level, check.checked, check.source) == ("as asked", 1, "checked now")
    assert check.engine == "fully_connected/naive"
    assert "computes wrong numbers at node 0 (FULLY_CONNECTED)" in check.reason
    assert {node.candidate for node in explanation.nodes}.isdisjoint({"naive", ""})
    assert "computes wrong numbers" in explanation.nodes[0].refused["naive"]
    assert "fully_connected/naive" in str(explanation)

    # The next one starts without it, before any comparison, even with another model.
    for model in (dense(), dense(depth=24)):
        delegate = clgpu_delegate.load(warm_up=False, verify="first", **options)
        interpreter = make_interpreter(runtime, model, [delegate])
        explanation = delegate.explain()
        assert "naive" not in {node.candidate for node in explanation.nodes}
        assert "computes wrong numbers" in explanation.nodes[0].refused["naive"]
        if model == dense():
            check = check_of(explanation)
            assert (check.source, check.checked) == ("kept", 0)
            is_right(run_interpreter(interpreter, [x]), model, [x], runtime)
            check = check_of(delegate.explain())
            assert (check.source, check.checked) == ("kept", 1)

    assert clgpu_delegate.cache.clear(tmp_path / "c", "verification") >= 2
    assert check_of(run(dense(), [x], runtime, **options)[1]).source == "checked now"


def test_without_verification_nobody_notices(broken, x, device, runtime):
    broken(NAIVE, "FINISH_SUM(sum,", "FINISH_SUM(sum * 2,")
    engines = {"fully_connected": "naive"}
    got, explanation = run(dense(), [x], runtime, device=device, engines=engines, verify="off")
    assert relative_l2(got[0], run_reference(dense(), [x], runtime)[0]) > 0.1
    assert explanation.verification is None


def test_the_cpu_takes_over_where_no_engine_is_right(broken, x, device, runtime, tmp_path):
    model = models.chain((3, 40), ("TANH", "SOFTMAX"))
    broken(SOFTMAX, STORE, STORE + "c + ")
    options: dict[str, Any] = {"device": device, "cache": tmp_path / "c"}
    got, explanation = run(model, [x], runtime, 3, **options)
    want = run_reference(model, [x], runtime, "no_delegate")
    np.testing.assert_array_equal(got[0], want[0])
    check = check_of(explanation)
    assert (check.level, check.checked) == ("cpu", 1)
    assert "no engine of softmax is right at node 1 (SOFTMAX)" in check.reason
    assert "computed by the CPU's kernels" in explanation.nodes[1].reason

    got, explanation = run(model, [x], runtime, **options)
    np.testing.assert_array_equal(got[0], want[0])
    check = check_of(explanation)
    assert (check.level, check.source, check.checked) == ("cpu", "kept", 0)

    # A fixed kernel is another one: it is checked again.
    broken(SOFTMAX, STORE + "c + ", STORE)
    got, explanation = run(model, [x], runtime, **options)
    check = check_of(explanation)
    assert (check.level, check.source, check.reason) == ("as asked", "checked now", "")
    assert (check.outcome, check.is_good) == ("right", True)
    assert check.relative_l2 <= check.bound_l2
    assert str(check).startswith("partition 0: right; relative L2 error ")


def test_an_engine_asked_for_gives_way_to_the_cpu(broken, x, device):
    runtime = op_runtime()
    broken(GEMV, "FINISH_SUM(partial[item * WG],", "FINISH_SUM(2 * partial[item * WG],")
    got, explanation = run(
        dense(), [x], runtime, device=device, engines={"fully_connected": "gemv"}
    )
    is_right(got, dense(), [x], runtime)
    check = check_of(explanation)
    assert (check.level, check.outcome, check.is_good) == ("cpu", "replaced", False)
    assert "engine 'gemv' cannot compute FULLY_CONNECTED" in check.reason
    assert "wrong numbers; now computed by the CPU's kernels" in str(check)


def test_wrong_in_half_only(broken, x, device):
    runtime = op_runtime()
    model = models.chain((3, 40), ("TANH", "SOFTMAX"))
    broken(SOFTMAX, STORE, STORE + IN_HALF + " * c + ")
    got, explanation = run(model, [x], runtime, device=device, precision="fp16", half_io=True)
    is_right(got, model, [x], runtime)
    check = check_of(explanation)
    assert check.level == "fp32"
    assert "as asked: no engine of softmax is right" in check.reason
    assert "exact sums: no engine of softmax is right" in check.reason


def test_numbers_too_large_for_half(x, device):
    runtime = op_runtime()
    m = ModelMaker()
    y = m.input("x", (3, 40))
    for factor in (1e4, 1e4, 1e-8):
        y = m.op("MUL", [y, m.constant(np.float32(factor))], (3, 40))
    m.output(y)
    model = m.build()
    got, explanation = run(model, [x], runtime, device=device, precision="fp16", half_io=True)
    is_right(got, model, [x], runtime)
    assert check_of(explanation).level == "fp32"


def test_which_inferences_are_checked(x, device, runtime):
    for verify, checked in (("first", 1), (1, 5), (2, 3), (7, 1)):
        _, explanation = run(dense(), [x], runtime, 5, device=device, verify=verify)
        assert explanation.verification.checked == checked

    delegate = clgpu_delegate.load(device=device, warm_up=False, verify="first")
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    for shape in ((1, 7, 6, 3), (1, 7, 6, 3), (1, 9, 8, 3)):
        run_interpreter(interpreter, [np.ones(shape, np.float32)], {0: shape})
    check = check_of(delegate.explain())
    assert (check.level, check.relative_l2 < 1e-6) == ("as asked", True)
    assert check.checked in (2, 3)  # a resize to the same shape may be none


def test_partitions_are_judged_one_by_one(broken, x, device):
    runtime = op_runtime()
    model = dense(tanh=True)
    text = "FINISH_SUM(sum + (SUM_T)(weights[1] < 0 ? 1 : 0),"
    broken(NAIVE, "FINISH_SUM(sum,", text)
    got, explanation = run(
        model, [x], runtime, device=device, exclude=["TANH"], engines={"fully_connected": "naive"}
    )
    is_right(got, model, [x], runtime)
    weights = np.random.default_rng(8)
    levels = []
    for i in range(2):
        wrong = models.normal(weights, 40, 40)[0, 1] < 0
        levels.append((check_of(explanation, i).level == "cpu", bool(wrong)))
    # A broken engine is left out everywhere as soon as it is known.
    assert all(cpu or not wrong for cpu, wrong in levels), levels


def test_each_partition_leaves_out_the_engine_that_all_were_built_with(broken, x, device):
    runtime, model = op_runtime(), dense(tanh=True)
    broken(NAIVE, "FINISH_SUM(sum,", "FINISH_SUM(sum * 2,")
    got, explanation = run(
        model, [x], runtime, device=device, exclude=["TANH"],
        engines={"fully_connected": "naive|auto"},
    )  # fmt: skip
    is_right(got, model, [x], runtime)
    for i in range(2):
        check = check_of(explanation, i)
        assert (check.level, check.engine) == ("as asked", "fully_connected/naive"), check


def test_integers(broken, device, runtime):
    m = ModelMaker()
    x = m.input("x", (3, 40), np.int8, quantization=(0.05, 3))
    rng = np.random.default_rng(9)
    weights = m.constant(rng.integers(-127, 128, (40, 40)).astype(np.int8), quantization=(0.01, 0))
    y = m.op("FULLY_CONNECTED", [x, weights, None], (3, 40), dtype=np.int8, quantization=(0.1, -5),
             version=4)  # fmt: skip
    m.output(y)
    model, inputs = m.build(), [rng.integers(-128, 128, (3, 40)).astype(np.int8)]
    options: dict[str, Any] = {"device": device, "engines": {"fully_connected": "naive|auto"}}
    _, explanation = run(model, inputs, runtime, **options)
    assert (check_of(explanation).engine, check_of(explanation).reason) == ("", "")
    broken(NAIVE, "FINISH_SUM(sum,", "FINISH_SUM(sum + 4000,")
    got, explanation = run(model, inputs, runtime, **options)
    assert check_of(explanation).engine == "fully_connected/naive"
    (want,) = run_reference(model, inputs, runtime)
    assert np.abs(got[0].astype(int) - want.astype(int)).max() <= 1


def test_ties_of_indices_are_right(device):
    runtime = op_runtime()
    m = ModelMaker()
    y = m.op("SOFTMAX", [m.input("x", (2, 40))], (2, 40), beta=1.0)
    m.output(
        m.op("ARG_MAX", [y, m.constant(np.int32(1))], (2,), dtype=np.int64, output_type=np.int64)
    )
    x = np.zeros((2, 40), np.float32)
    x[:, 5], x[:, 6] = 3.0, np.nextafter(np.float32(3.0), np.float32(4.0))
    _, explanation = run(m.build(), [x], runtime, device=device, precision="fp16", half_io=True)
    assert check_of(explanation).level == "as asked"


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (models.image(), REDUCE), (models.detour(8), REDUCE), (models.quantized(), ADD_INTEGERS),
        (dense(), DENSE),
    ],
    ids=["image", "detour", "quantized", "dense"],
)  # fmt: skip
def test_what_the_cpu_computes_is_what_the_runtime_does(model, fault, runtime, broken):
    rng = np.random.default_rng(10)
    details = make_interpreter(runtime, model).get_input_details()
    inputs = [(rng.standard_normal(d["shape"]) * 8).astype(d["dtype"]) for d in details]
    broken(*fault)
    got, explanation = run(model, inputs, runtime, 2)
    assert check_of(explanation).level == "cpu"
    for result, want in zip(got, run_reference(model, inputs, runtime, "no_delegate")):
        np.testing.assert_array_equal(result, want)


def test_what_is_told_of_nodes_is_of_the_shapes_of_the_moment(device, runtime, broken):
    broken(*REDUCE)
    delegate = clgpu_delegate.load(device=device, warm_up=False, verify="first")
    interpreter = make_interpreter(runtime, models.image(), [delegate])
    for shape, fails in (((1, 7, 6, 3), True), ((1, 9, 8, 3), False)):
        if not fails:
            broken.mend()
        run_interpreter(interpreter, [np.ones(shape, np.float32)], {0: shape})
        explanation = delegate.explain()
        assert check_of(explanation).level == ("cpu" if fails else "as asked")
        for node in explanation.nodes:
            assert ("verification has failed" in node.reason) == fails, node


def test_convolutions_without_a_bias_crash_no_stock_kernel(device, rng):
    m = ModelMaker()
    stride = {"padding": "SAME", "stride_w": 1, "stride_h": 1}
    x, shape = m.input("x", (1, 5, 5, 8)), (1, 5, 5, 8)
    weights = m.constant(models.normal(rng, 1, 3, 3, 8))
    x = m.op("DEPTHWISE_CONV_2D", [x, weights], shape, depth_multiplier=1, **stride)
    m.output(m.op("CONV_2D", [x, m.constant(models.normal(rng, 8, 1, 1, 8))], shape, **stride))
    inputs = [models.normal(rng, *shape)]
    check = check_of(run(m.build(), inputs, op_runtime(), device=device)[1])
    assert (check.level, check.checked, check.reason) == ("as asked", 1, "")
    assert check.relative_l2 < 1e-5


def test_what_the_runtime_cannot_compute_is_not_verified(device, runtime):
    m = ModelMaker()
    pool = np.array([1, 2, 2, 2, 2, 0], np.int32).tobytes()
    shape = (1, 2, 2, 3)
    x = m.input("x", (1, 4, 4, 3))
    values, _ = m.custom("MaxPoolingWithArgmax2D", [x], [shape] * 2, pool)
    m.output(values)
    x = np.random.default_rng(11).standard_normal((1, 4, 4, 3)).astype(np.float32)
    got, explanation = run(m.build(), [x], runtime, device=device)
    np.testing.assert_array_equal(got[0], x.reshape(1, 2, 2, 2, 2, 3).max((2, 4)))
    check = check_of(explanation)
    assert (check.checked, check.level, check.outcome) == (0, "as asked", "not checked")
    assert check.reason.startswith("not verified: the CPU kernel of node 0")
    assert not explanation.verification.is_good, "nothing was compared"
    assert str(check).startswith("partition 0: not checked; not verified: the CPU kernel of")


def test_integers_that_round_differently_are_told_apart_from_wrong_ones():
    check = PartitionCheck(
        0, 1, "as asked", 8.7e-3, 0.5, "", "many words", "checked now", "rounding", 5e-4
    )
    assert check.is_good
    assert str(check) == (
        "partition 0: integers round differently, no node alone is wrong; relative L2 error "
        "8.7e-03 (bound 5e-04), 1 inference checked"
    )
    kept = PartitionCheck(1, 0, "fp32", 0.0, 0.0, "softmax/rows", "because", "kept")
    assert not kept.is_good
    assert str(kept) == (
        "partition 1: wrong numbers, found by an earlier process; now computed in fp32, without "
        "softmax/rows; because"
    )


def test_model_whose_integers_round_differently(device):
    path = ROOT.parent / "shared/models/more/lyra/soundstream_encoder.tflite"
    if not path.exists():
        pytest.skip("the model is not here")
    result = clgpu_delegate.compare(path, runs=1, device=device, verify="first")
    (check,) = result.explanation.verification.partitions
    assert check.outcome in ("right", "rounding")
    assert (check.outcome == "right") == (check.relative_l2 <= check.bound_l2)
    assert "\n" not in str(check)
    assert len(str(check)) < 140

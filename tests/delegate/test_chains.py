"""Launches that run as stages of one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.delegate.test_verification import NAIVE, broken, check_of  # noqa: F401
from tests.model_maker import ModelMaker, Quantization
from tests.python import models
from tests.runtimes import make_interpreter

SHAPE = (1, 9, 7, 5)
PATIENCE, LONGEST = 500_000, 0.1  # as in src_cpp/runtime/run/chains.cpp
NONE = {
    "partition": 0, "kernels": 0, "launches": 0, "early": 0, "divided": 0, "slower": 0, "reason": ""
}  # fmt: skip


@pytest.fixture(scope="module")
def model() -> bytes:
    """Two branches, a product with barriers, and a softmax of rows that share a work-group."""
    m = ModelMaker()
    x = m.input("x", SHAPE)
    rng = np.random.default_rng(5)
    left = m.op("TANH", [x], SHAPE)
    right = m.op("ABS", [x], SHAPE)
    both = m.op("ADD", [left, right], SHAPE)
    weights = m.constant(rng.standard_normal((11, 5)).astype(np.float32) / 3)
    bias = m.constant(rng.standard_normal(11).astype(np.float32))
    product = m.op("FULLY_CONNECTED", [both, weights, bias], (63, 11))
    m.output(m.op("SOFTMAX", [product], (63, 11), beta=1.0))
    m.output(m.op("MEAN", [both, m.constant(np.array([1, 2], np.int32))], (1, 5)))
    return m.build()


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(7).standard_normal(SHAPE).astype(np.float32)


def load(model: bytes, device: str, **options: Any) -> tuple[Any, Any]:
    delegate = clgpu_delegate.load(device=device, **options)
    interpreter = make_interpreter("auto", model, [delegate], resolver="no_delegate")
    interpreter.allocate_tensors()
    return delegate, interpreter


def infer(interpreter: Any, x: np.ndarray) -> list[np.ndarray]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def stock(model: bytes, x: np.ndarray) -> list[np.ndarray]:
    interpreter = make_interpreter("auto", model, [], resolver="ref")
    interpreter.allocate_tensors()
    return infer(interpreter, x)


def check(got: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


def of(delegate: Any) -> dict[str, Any]:
    (chains,) = delegate.stats()["chains"]
    return dict(chains)


@pytest.fixture
def one_group():
    """Its work-groups never wait, so that a busy CPU changes nothing."""
    _core.pretend_chain_groups(1)
    yield
    _core.pretend_chain_groups(0)


def test_chains_of_several_groups_compute_the_same(model, x, device):
    """As many as the device runs at once; a busy CPU may run none beside another."""
    delegate, interpreter = load(model, device, chain="on")
    for factor in (1, -2, 3):
        check(infer(interpreter, factor * x), stock(model, factor * x))
    taken = of(delegate)
    assert taken["kernels"] > 0 or "waited" in taken["reason"]


@pytest.mark.usefixtures("one_group")
def test_chains_compute_the_same_with_fewer_launches(model, x, device):
    delegate, interpreter = load(model, device, chain="on")
    planned = delegate.explain().partitions[0].launches
    for factor in (1, -2):
        check(infer(interpreter, factor * x), stock(model, factor * x))
        taken = of(delegate)
        assert taken["reason"] == ""
        assert taken["launches"] > taken["kernels"] > 0
        launches = planned - taken["launches"] + taken["kernels"]
        assert delegate.stats()["last_invoke"]["launches"] == launches
    assert delegate.device_time(3) > 0


@pytest.fixture
def large():
    """No tensor is too small to be stored in 16 bits."""
    _core.pretend_no_small_tensors(True)
    yield
    _core.pretend_no_small_tensors(False)


@pytest.mark.usefixtures("one_group", "large")
def test_stages_read_and_write_bfloat16(model, x, device):
    """Their functions that convert have names of their own in each stage."""
    mixed = load(model, device, precision="mixed")[0].explain().mixed
    plan = f"model={mixed.model},bfloat=0-99"
    delegate, interpreter = load(model, device, chain="on", precision=plan)
    stored = [t.storage for t in delegate.explain().tensors]
    assert stored.count("bfloat16") > 3
    for ours, theirs in zip(infer(interpreter, x), stock(model, x)):
        np.testing.assert_allclose(ours, theirs, rtol=3e-2, atol=3e-2)
    taken = of(delegate)
    assert taken["reason"] == ""
    assert taken["launches"] > taken["kernels"] > 0


@pytest.mark.parametrize("options", [{"chain": "off"}, {"chain": "on", "profile": True}])
def test_without_chains_each_launch_is_enqueued(model, x, device, options):
    delegate, interpreter = load(model, device, **options)
    check(infer(interpreter, x), stock(model, x))
    assert of(delegate) == NONE
    planned = delegate.explain().partitions[0].launches
    assert delegate.stats()["last_invoke"]["launches"] == planned


@pytest.mark.usefixtures("one_group")
def test_half_tensors(model, x, device):
    _, interpreter = load(model, device, chain="on", precision="fp16")
    got, expected = infer(interpreter, x), stock(model, x)
    for ours, theirs in zip(got, expected):
        np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=2e-2)


@pytest.mark.usefixtures("one_group")
def test_shapes_that_change_again_and_again_are_not_compiled_for(device):
    """A kernel of a chain contains the sizes of its launches."""
    m = ModelMaker()
    x = m.input("x", (1, 8))
    m.output(m.op("ABS", [m.op("TANH", [x], (1, 8))], (1, 8)))
    delegate, interpreter = load(m.build(), device, chain="on")
    reasons = []
    for rows in range(2, 8):
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [rows, 8])
        interpreter.allocate_tensors()
        data = np.linspace(-2, 2, rows * 8, dtype=np.float32).reshape(rows, 8)
        (got,) = infer(interpreter, data)
        np.testing.assert_allclose(got, np.abs(np.tanh(data)), rtol=2e-6)
        reasons.append(of(delegate)["reason"])
    often = "compiling takes seconds, and its plan often changes"
    assert reasons[0] == ""
    assert reasons[-1] == often


@pytest.fixture
def impatient():
    _core.set_chain_patience(0)
    _core.pretend_chain_groups(2)
    yield
    _core.set_chain_patience(PATIENCE)
    _core.pretend_chain_groups(0)


@pytest.mark.usefixtures("impatient")
def test_a_group_that_gives_up_makes_the_launches_run(model, x, device, tmp_path):
    """The right results in the same inference, and a row of the cache that says so."""
    tmp_path.chmod(0o700)
    cache = tmp_path / "cache.sqlite"
    waited = "a work-group of a chain waited too long for the others"
    for row in ("waited once", "waited"):  # after the second time it is final
        delegate, interpreter = load(model, device, chain="on", cache=cache, warm_up=False)
        for i in range(50):  # nobody gives up where all groups arrive at the same time
            check(infer(interpreter, x + i), stock(model, x + i))
            if of(delegate)["reason"]:
                break
        assert of(delegate) == {**NONE, "reason": waited}
        note = f"partition 0: launches run one by one: {waited}"
        assert note in delegate.explain().notes
        check(infer(interpreter, x), stock(model, x))
        planned = delegate.explain().partitions[0].launches
        assert delegate.stats()["last_invoke"]["launches"] == planned

        assert [r for r in tuning_rows(cache) if "chains" in r] == [f"chains of launches: {row}"]

    _core.set_chain_patience(PATIENCE)
    delegate, interpreter = load(model, device, chain="on", cache=cache)
    assert of(delegate)["reason"] == waited
    assert note in delegate.explain().notes
    check(infer(interpreter, x), stock(model, x))


def test_small_groups_share_the_elements(device):
    """Rows of 16 work-items, and then elements that any work-item may compute."""
    m = ModelMaker()
    x = m.input("x", (64, 40))
    y = m.op("SOFTMAX", [x], (64, 40), beta=1.0)
    m.output(m.op("ADD", [m.op("TANH", [y], (64, 40)), y], (64, 40)))
    data = np.random.default_rng(3).standard_normal((64, 40)).astype(np.float32)
    _core.pretend_chain_groups(2)
    try:
        _, interpreter = load(m.build(), device, chain="on")
        check(infer(interpreter, data), stock(m.build(), data))
    finally:
        _core.pretend_chain_groups(0)


@pytest.mark.usefixtures("one_group")
def test_two_kernels_of_a_file_with_other_macros(device):
    """Of a dynamic-range model: names of vectors of one element get a number, too."""
    m = ModelMaker()
    x = m.input("x", (3, 24))
    rng = np.random.default_rng(4)
    for outputs, activation in ((7, 0), (12, 1)):
        integers = rng.integers(-127, 128, (outputs, 24)).astype(np.int8)
        weights = m.constant(integers, quantization=Quantization(0.01))
        m.output(
            m.op(
                "FULLY_CONNECTED", [x, weights], (3, outputs), fused_activation_function=activation
            )
        )
    data = rng.standard_normal((3, 24)).astype(np.float32)
    results = []
    for chain in ("off", "on"):
        delegate, interpreter = load(m.build(), device, chain=chain)
        assert of(delegate)["reason"] == ""
        results.append(infer(interpreter, data))
    check(*results)
    assert of(delegate)["kernels"] > 0


def test_auto_is_for_devices_on_which_it_was_measured(model, x, device):
    """On NVIDIA's GPUs it measures; elsewhere nothing is chained."""
    delegate, interpreter = load(model, device)
    check(infer(interpreter, x), stock(model, x))
    taken = of(delegate)
    if "nvidia" not in delegate.explain().device.lower():
        assert taken == NONE


@pytest.mark.usefixtures("one_group")
def test_stages_convert_between_floats_and_integers(device, x):
    """Types of kernels/common/stored_types.cl have the same names in all stages."""
    m = ModelMaker()
    y = m.op("NEG", [m.input("x", SHAPE)], SHAPE)
    y = m.op("QUANTIZE", [y], SHAPE, dtype=np.int8, quantization=(0.05, 3))
    y = m.op("TANH", [y], SHAPE, quantization=(1 / 128, 0))
    y = m.op("DEQUANTIZE", [y], SHAPE, dtype=np.float32)
    m.output(m.op("EXP", [y], SHAPE))
    delegate, interpreter = load(m.build(), device, chain="on")
    got = infer(interpreter, x)
    check(got, stock(m.build(), x))
    assert [node.fused_into for node in delegate.explain().nodes] == [None, 0, None, 4, None]
    taken = of(delegate)
    assert (taken["reason"], taken["launches"]) == ("", 3)


@pytest.fixture
def slow():
    """Tells how long each launch takes, and each stage."""
    yield _core.pretend_seconds
    _core.pretend_seconds(0, 0)


@pytest.fixture
def cache(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path / "cache.sqlite"


def tuning_rows(cache: Any) -> list[str]:
    return [row.label for row in clgpu_delegate.cache.entries(cache) if row.kind == "tuning"]


@pytest.mark.usefixtures("one_group")
@pytest.mark.parametrize(("launch", "stage"), [(0.03, 0.03), (0.001, 0.03), (0.001, 0.04)])
def test_a_chain_that_would_take_too_long_is_divided(model, x, device, cache, slow, launch, stage):
    """By the times of its launches, or by its own if that is longer; later loads know."""
    delegate, interpreter = load(model, device, chain="on")
    whole = of(delegate)
    assert whole["divided"] == 0
    slow(launch, stage)
    for i in range(2):
        delegate, interpreter = load(model, device, chain="on", cache=cache)
        check(infer(interpreter, x), stock(model, x))
        taken = of(delegate)
        assert taken["reason"] == ""
        assert taken["divided"] > 0
        assert taken["launches"] / taken["kernels"] < whole["launches"] / whole["kernels"]
        (note,) = [n for n in delegate.explain().notes if "divided" in n]
        assert note.startswith("partition 0: chains are divided before launches ")
        assert note.endswith("because none may take more than 0.1 s")
        if i == 0:
            first = taken
            (label,) = [row for row in tuning_rows(cache) if "0.1 s" in row]
            assert label.startswith("chains of launches: none takes more than 0.1 s, they end bef")
            slow(0, 0)
        assert taken == first


@pytest.mark.usefixtures("one_group")
@pytest.mark.parametrize(("launch", "stage"), [(0.06, 0.06), (0.001, 0.2)])
def test_launches_that_take_too_long_together_are_no_chain(
    model, x, device, cache, slow, launch, stage
):
    slow(launch, stage)
    reason = "each chain would take more than 0.1 s"
    for _ in range(2):
        delegate, interpreter = load(model, device, chain="on", cache=cache)
        check(infer(interpreter, x), stock(model, x))
        assert of(delegate) == {**NONE, "reason": reason}
        assert f"partition 0: launches run one by one: {reason}" in delegate.explain().notes
        planned = delegate.explain().partitions[0].launches
        assert delegate.stats()["last_invoke"]["launches"] == planned
        slow(0, 0)


@pytest.fixture
def hasty():
    """No chain is as short."""
    _core.set_longest_chain(1e-9)
    yield
    _core.set_longest_chain(LONGEST)


@pytest.mark.usefixtures("one_group", "hasty")
def test_times_of_chains_are_measured(model, x, device):
    delegate, interpreter = load(model, device, chain="on")
    check(infer(interpreter, x), stock(model, x))
    assert of(delegate) == {**NONE, "reason": "each chain would take more than 1e-09 s"}


@pytest.mark.usefixtures("one_group", "hasty")
def test_without_warm_up_an_inference_tells_that_chains_take_too_long(model, x, device):
    """The second one, because the first one may compile."""
    delegate, interpreter = load(model, device, chain="on", warm_up=False)
    check(infer(interpreter, x), stock(model, x))
    assert of(delegate)["kernels"] > 0
    for factor in (2, 3):
        check(infer(interpreter, factor * x), stock(model, factor * x))
        reason = of(delegate)["reason"]
        assert reason.startswith("a chain takes more than 1e-09 s")
    planned = delegate.explain().partitions[0].launches
    assert delegate.stats()["last_invoke"]["launches"] == planned


@pytest.mark.usefixtures("one_group")
@pytest.mark.parametrize("row", ["", "x", "3-", "2-1", "-1", "0 99999"])
def test_a_row_that_is_damaged_is_measured_again(model, x, device, cache, slow, row):
    slow(0.03, 0.03)
    delegate, interpreter = load(model, device, chain="on", cache=cache)
    expected = of(delegate)
    assert expected["divided"] > 0
    (entry,) = [e for e in clgpu_delegate.cache.entries(cache) if "0.1 s" in e.label]
    _core.Store(str(cache)).put("tuning", entry.key, row.encode())
    delegate, interpreter = load(model, device, chain="on", cache=cache)
    assert of(delegate) == expected
    check(infer(interpreter, x), stock(model, x))


@pytest.mark.usefixtures("one_group")
@pytest.mark.parametrize("verify", ["first", 1])
def test_what_chains_compute_is_verified(model, x, device, verify):
    delegate, interpreter = load(model, device, chain="on", verify=verify)
    for factor in (1, -2, 3):
        check(infer(interpreter, factor * x), stock(model, factor * x))
    done = check_of(delegate.explain())
    assert (done.outcome, done.level) == ("right", "as asked")
    assert done.checked == (1 if verify == "first" else 3)
    taken = of(delegate)
    assert taken["reason"] == ""
    assert taken["launches"] > taken["kernels"] > 0


@pytest.mark.usefixtures("one_group")
def test_a_stage_that_computes_wrong_numbers_is_replaced(model, x, device, broken):  # noqa: F811
    """By another engine, with which the launches run in chains again."""
    broken(NAIVE, "FINISH_SUM(sum,", "FINISH_SUM(sum * 2,")
    engines = {"fully_connected": "naive|auto"}
    wrong, interpreter = load(model, device, chain="on", engines=engines, verify="off")
    assert of(wrong)["kernels"] > 0
    expected = stock(model, x)
    assert not np.allclose(infer(interpreter, x)[0], expected[0], atol=1e-3)

    delegate, interpreter = load(model, device, chain="on", engines=engines, verify=1)
    for factor in (1, 2):
        check(infer(interpreter, factor * x), stock(model, factor * x))
    done = check_of(delegate.explain())
    assert (done.outcome, done.level, done.engine) == ("right", "as asked", "fully_connected/naive")
    taken = of(delegate)
    assert taken["reason"] == ""
    assert taken["launches"] > taken["kernels"] > 0


WAIT = "  if (get_local_id(0) == 0) {\n    uint looks = 0;\n"
PRELUDE, PROBE = "common/chain.cl", "device/chain.cl"


@pytest.mark.usefixtures("one_group")
@pytest.mark.parametrize("verify", ["off", 1])
def test_launches_run_within_the_inference_in_which_a_chain_gives_up(
    model,
    x,
    device,
    cache,
    broken,  # noqa: F811
    verify,
):
    broken(PRELUDE, WAIT, "  atomic_xchg(&state[CHAIN_GAVE_UP], 1u);\n" + WAIT)
    options = {"chain": "on", "warm_up": False, "cache": cache, "verify": verify}
    delegate, interpreter = load(model, device, **options)
    kernels, reason = of(delegate)["kernels"], of(delegate)["reason"]
    assert kernels > 0
    assert reason == ""
    planned = delegate.explain().partitions[0].launches
    for i in range(2):
        check(infer(interpreter, x + i), stock(model, x + i))
        launches = delegate.stats()["last_invoke"]["launches"]
        assert launches > planned if i == 0 else launches == planned
        assert of(delegate)["kernels"] == 0
        waited = "a work-group of a chain waited too long for the others"
        assert of(delegate)["reason"] == waited
    assert f"partition 0: launches run one by one: {waited}" in delegate.explain().notes
    assert "chains of launches: waited once" in tuning_rows(cache)
    if verify == 1:
        done = check_of(delegate.explain())
        assert (done.outcome, done.checked) == ("right", 2)


def test_where_a_probe_fails_nothing_is_a_chain(model, x, device, cache, broken):  # noqa: F811
    """The work-groups of a device may not run at the same time, or not see each other's stores."""
    broken(PROBE, "* 3 + stage", "* 5 + stage")
    delegate, interpreter = load(model, device, chain="on", cache=cache)
    check(infer(interpreter, x), stock(model, x))
    reason = "work-groups that wait for each other do not all run in a probe"
    assert of(delegate) == {**NONE, "reason": reason}
    assert f"partition 0: launches run one by one: {reason}" in delegate.explain().notes
    planned = delegate.explain().partitions[0].launches
    assert delegate.stats()["last_invoke"]["launches"] == planned
    assert not [e for e in clgpu_delegate.cache.entries(cache) if e.label.startswith("chains on")]


@pytest.fixture
def judge():
    """Chains are measured, as on NVIDIA's GPUs; those that begin at given launches are slower."""
    yield lambda slower: _core.judge_chains(True, slower)
    _core.judge_chains(False)


def long_model() -> bytes:
    """A chain has four stages at most where it is not for NVIDIA."""
    return models.chain((3, 40), ("TANH", "SOFTMAX", "ABS", "SOFTMAX") * 3)


@pytest.mark.usefixtures("one_group")
def test_a_chain_whose_launches_are_faster_is_left_out(device, cache, judge):
    """Of three chains the second; the cache tells which, and after the second time it is final."""
    m, x = long_model(), np.random.default_rng(2).standard_normal((3, 40)).astype(np.float32)
    judge(set())
    delegate, interpreter = load(m, device, chain="on")
    all_of_them = of(delegate)
    planned = delegate.explain().partitions[0].launches
    assert (all_of_them["kernels"], all_of_them["slower"]) == (planned // 4, 0)
    for row in ("once", "twice", "twice"):
        judge({4})
        delegate, interpreter = load(m, device, chain="on", cache=cache)
        check(infer(interpreter, x), stock(m, x))
        taken = of(delegate)
        assert (taken["kernels"], taken["launches"]) == (planned // 4 - 1, planned - 4)
        assert (taken["slower"], taken["reason"]) == (1, "")
        assert delegate.stats()["last_invoke"]["launches"] == planned // 4 - 1 + 4
        label = f"chains of launches: launches 4-8 are faster, measured {row}"
        assert label in tuning_rows(cache)
        assert "chains of launches: faster" in tuning_rows(cache)
    judge(set())  # nothing is measured any more
    delegate, interpreter = load(m, device, chain="on", cache=cache)
    assert of(delegate) == taken
    check(infer(interpreter, x), stock(m, x))


@pytest.mark.usefixtures("one_group")
@pytest.mark.parametrize(
    ("second", "told"),
    [
        ({4, 8}, "launches 4-8 are faster, measured twice"),  # 8 was not slower before
        ({8}, "the launches of none are faster"),
        (set(), "the launches of none are faster"),
    ],
)
def test_what_was_slower_once_is_measured_again(device, cache, judge, second, told):
    m, x = long_model(), np.random.default_rng(2).standard_normal((3, 40)).astype(np.float32)
    for slower, left_out, label in (
        ({0, 4}, 2, "launches 0-8 are faster, measured once"),
        (second, len(second & {0, 4}), told),
        ({0}, len(second & {0, 4}), told),  # nothing is measured any more
    ):
        judge(slower)
        delegate, interpreter = load(m, device, chain="on", cache=cache)
        check(infer(interpreter, x), stock(m, x))
        assert of(delegate)["slower"] == left_out
        assert f"chains of launches: {label}" in tuning_rows(cache)


@pytest.mark.usefixtures("one_group")
def test_where_all_chains_are_slower_there_is_none(device, cache, judge):
    judge({0, 4, 8})
    for _ in range(2):
        delegate, _interpreter = load(long_model(), device, chain="on", cache=cache)
        assert of(delegate) == {**NONE, "reason": "the launches are faster"}
    assert "chains of launches: slower" in tuning_rows(cache)


@pytest.mark.usefixtures("one_group")
@pytest.mark.parametrize(
    "row", ["", "x", "1 once", "0 once 4", "1 thrice 4", "1 twice 99", "none x"]
)
def test_a_row_on_slower_chains_that_is_damaged_is_measured_again(device, cache, judge, row):
    judge({4})
    for _ in range(2):
        delegate, _interpreter = load(long_model(), device, chain="on", cache=cache)
    expected = of(delegate)
    entries = clgpu_delegate.cache.entries(cache)
    (entry,) = [e for e in entries if e.label.endswith("are faster, measured twice")]
    _core.Store(str(cache)).put("tuning", entry.key, row.encode())
    delegate, _interpreter = load(long_model(), device, chain="on", cache=cache)
    assert of(delegate) == expected


@pytest.mark.usefixtures("one_group")
def test_each_chain_is_timed(device, judge):
    """Whatever is faster here, results are right."""
    m, x = long_model(), np.random.default_rng(2).standard_normal((3, 40)).astype(np.float32)
    judge(None)
    delegate, interpreter = load(m, device, chain="on")
    for factor in (1, -2):
        check(infer(interpreter, factor * x), stock(m, factor * x))
    taken = of(delegate)
    planned = delegate.explain().partitions[0].launches
    if taken["reason"]:
        assert taken == {**NONE, "reason": "the launches are faster"}
    else:
        assert taken["kernels"] + taken["slower"] == planned // 4

"""A plan of precisions: what it stores as half, on which models, and what tells of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import clgpu_delegate
from clgpu_delegate import OptionError
from clgpu_delegate.runtimes import find_runtime
from tests import quick
from tests.model_maker import ModelMaker
from tests.models.random_graphs import Stock, check, make, random_graph, run_shaped
from tests.ops.harness import op_runtime
from tests.runtimes import make_interpreter, run_interpreter
from tests.tolerance import MODEL_L2, relative_l2

SHAPE = (1, 24, 24, 8)


def network(scale: float = 0.1, activation: str = "RELU", middle: float = 0.0) -> bytes:
    """Three convolutions of large images with large weights, a view and a mean.

    ``middle`` is added to a weight in the middle of each convolution.
    """
    rng = np.random.default_rng(3)
    m = ModelMaker()
    x = m.input("x", SHAPE)
    for _ in range(3):
        weights = np.float32(scale) * rng.standard_normal((8, 5, 5, 8), np.float32)
        weights[4, 2, 2, 4] += middle
        x = m.op(
            "CONV_2D", [x, m.constant(weights), m.constant(np.ones(8, np.float32))], SHAPE,
            padding="SAME", stride_w=1, stride_h=1, fused_activation_function=activation,
        )  # fmt: skip
    x = m.op("RESHAPE", [x, m.constant(np.int32([1, -1, 8]))], (1, 576, 8))
    m.output(m.op("MEAN", [x, m.constant(np.int32([1]))], (1, 8)))
    return m.build()


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(4).random(SHAPE, np.float32)


class Loaded:
    """A model in a precision, run once."""

    def __init__(self, x: np.ndarray, content: bytes | None = None, **options: Any) -> None:
        delegate = clgpu_delegate.load(**{"cache": "off", **options})
        self._interpreter = make_interpreter(op_runtime(), content or network(), [delegate])
        (self.output,) = run_interpreter(self._interpreter, [x])
        self.explanation = delegate.explain()

    @property
    def halves(self) -> list[int]:
        return [t.id for t in self.explanation.tensors if t.storage == "float16"]

    @property
    def launches(self) -> int:
        return sum(partition.launches for partition in self.explanation.partitions)

    def plan(self, *items: str) -> str:
        """The text of a plan of this model."""
        assert self.explanation.mixed is not None
        return ",".join([f"model={self.explanation.mixed.model}", *items])


def joined(ids: Any) -> str:
    return "+".join(map(str, ids))


def test_plan_stores_what_it_lists_as_half(device, x):
    none = Loaded(x, device=device, precision="mixed")
    whole = Loaded(x, device=device, precision="fp16")
    assert len(whole.halves) == 7, "three results, the view of the last, three weights"
    for count in range(1, len(whole.halves)):
        listed = whole.halves[:count]
        plan = none.plan(f"half={joined(listed)}")
        mixed = Loaded(x, device=device, precision=plan)
        assert set(mixed.halves) - {whole.halves[-1]} == set(listed) - {whole.halves[-1]}
        assert mixed.launches == whole.launches == none.launches, "a border costs no launch"
        assert relative_l2(mixed.output, none.output) < MODEL_L2["fp16"]
        report = mixed.explanation.mixed
        assert report is not None
        assert (report.source, report.half) == ("given", tuple(listed))


def test_plan_stores_what_it_lists_as_bfloat16(device, x):
    """Also numbers beyond half."""
    content = network(scale=1e4)
    none = Loaded(x, content, device=device, precision="mixed")
    whole = Loaded(x, content, device=device, precision="fp16")
    mixed = Loaded(x, content, device=device, precision=none.plan("bfloat=0-99"))
    stored = {t.id for t in mixed.explanation.tensors if t.storage == "bfloat16"}
    assert stored == set(whole.halves)
    assert mixed.launches == none.launches
    assert not np.isfinite(whole.output).all()
    assert relative_l2(mixed.output, none.output) < MODEL_L2["bf16"]
    assert "bf16" in [node.precision for node in mixed.explanation.nodes]
    report = mixed.explanation.mixed
    assert report is not None
    assert report.bfloat == tuple(range(100))


def test_plans_of_nothing_and_of_all_are_the_precisions_of_the_whole(device, x):
    floats, halves = (Loaded(x, device=device, precision=p) for p in ("fp32", "fp16"))
    none = Loaded(x, device=device, precision="mixed")
    assert np.array_equal(none.output, floats.output)
    assert np.array_equal(Loaded(x, device=device, precision=none.plan()).output, floats.output)
    every = none.plan("half=0-99")
    assert np.array_equal(Loaded(x, device=device, precision=every).output, halves.output)


def test_weights_that_a_plan_lists_are_int8(device, x):
    none = Loaded(x, device=device, precision="mixed")
    weights = [node.input_ids[1] for node in none.explanation.nodes if node.op == "CONV_2D"]
    for count in range(1, 4):
        plan = none.plan(f"int8={joined(weights[:count])}")
        mixed = Loaded(x, device=device, precision=plan)
        stored = {t.id: t.storage for t in mixed.explanation.tensors}
        assert [stored[i] for i in weights] == ["int8"] * count + ["float32"] * (3 - count)
        assert mixed.launches == none.launches
        assert 1e-5 < relative_l2(mixed.output, none.output) < 2e-2
    both = Loaded(x, device=device, precision=none.plan("half=0-99", "int8=0-99"))
    assert {t.storage for t in both.explanation.tensors if t.id in weights} == {"int8"}
    assert relative_l2(both.output, none.output) < 2e-2


def test_weights_are_rounded_to_a_grid_of_each_output_channel(x):
    """So weights that lie on such a grid stay what they are."""
    rng = np.random.default_rng(5)
    steps = rng.integers(-127, 128, (8, 5, 5, 8))
    steps[:, 0, 0, 0] = 127
    on_grid = (steps * 2.0 ** -np.arange(8, 16)[:, None, None, None]).astype(np.float32)
    on_grid[3] = 0
    m = ModelMaker()
    given = m.input("x", SHAPE)
    m.output(
        m.op(
            "CONV_2D", [given, m.constant(on_grid), None], SHAPE, padding="SAME",
            stride_w=1, stride_h=1, fused_activation_function="NONE",
        )
    )  # fmt: skip
    none = Loaded(x, m.build(), precision="mixed")
    mixed = Loaded(x, m.build(), precision=none.plan("int8=0-9"))
    assert "int8" in {t.storage for t in mixed.explanation.tensors}
    assert relative_l2(mixed.output, none.output) < 1e-6


def test_view_follows_the_tensor_that_it_is_a_view_of(x):
    none = Loaded(x, precision="mixed")
    nodes = none.explanation.nodes
    view = next(node for node in nodes if node.is_view)
    source, result = view.input_ids[0], view.output_ids[0]
    assert set(Loaded(x, precision=none.plan(f"half={source}")).halves) == {source, result}
    assert Loaded(x, precision=none.plan(f"half={result}")).halves == []


def test_nodes_tell_their_precision(x):
    none = Loaded(x, precision="mixed")
    first = none.explanation.nodes[0]
    plan = none.plan(f"half={joined(first.output_ids)}", "error=0.01")
    mixed = Loaded(x, precision=plan).explanation
    told = [node.precision for node in mixed.nodes]
    assert told == ["fp32", "fp16", "fp32", "", "fp32"]
    assert mixed.mixed is not None
    assert mixed.mixed.error == 0.01
    text = " ".join(str(mixed).split())
    assert "1 of" in text
    assert "plan given" in text
    assert "made for an error of 0.01" in text


@hypothesis.settings(max_examples=3 if quick.is_on() else 20)
@hypothesis.given(random=st.randoms(use_true_random=False))
def test_random_plan_of_a_random_graph_is_right(device, random):
    graph = random_graph(random)
    hypothesis.note(str(graph))
    delegate, _interpreter = make(graph, device, precision="mixed", cache="off", half_io=False)
    explanation = delegate.explain()
    if explanation.mixed is None or not explanation.claimed:
        return
    ids = [t.id for t in explanation.tensors if random.random() < 0.5]
    items = [f"half={joined(ids)}"] if ids else []
    wide = [t.id for t in explanation.tensors if random.random() < 0.25]
    items += [f"bfloat={joined(wide)}"] if wide else []
    nodes = [n.index for n in explanation.nodes if random.random() < 0.5]
    items += [f"tf32={joined(nodes)}"] if nodes else []
    plan = ",".join([f"model={explanation.mixed.model}", *items])
    _delegate, interpreter = make(graph, device, precision=plan, cache="off", half_io=False)
    stock = Stock(graph)
    for inputs in graph.inputs:
        precision = {"precision": "bf16" if wide else "fp16"}
        check(graph, stock, run_shaped(interpreter, inputs), inputs, precision)


def test_plan_of_another_model_is_an_error(x):
    plan = Loaded(x, precision="mixed").plan()
    with pytest.raises(RuntimeError, match=r"is of another model: it is of [0-9a-f]{32}, this one"):
        Loaded(x, network(0.2), precision=plan)


def digest(x: np.ndarray, content: bytes, **options: Any) -> str:
    report = Loaded(x, content, precision="mixed", **options).explanation.mixed
    assert report is not None
    return report.model


def test_constants_and_attributes_of_a_model_distinguish_it_too(x):
    """The weights have more bytes than a hash of their ends would read."""
    same = {digest(x, network()) for _ in range(2)}
    others = [network(0.2), network(activation="RELU6"), network(middle=1.0)]
    assert len(same) == 1
    assert len(same | {digest(x, content) for content in others}) == 4


def test_excluded_nodes_do_not_change_the_digest(x):
    assert digest(x, network(), exclude="MEAN,0") == digest(x, network())


def test_weights_of_a_plan_are_floats_to_the_hybrid_arithmetic_too(x):
    none = Loaded(x, precision="mixed")
    plan = none.plan("int8=0-99")
    usual, hybrid = (
        Loaded(x, precision=plan, dynamic_range=way) for way in ("dequantize", "hybrid")
    )
    assert np.array_equal(hybrid.output, usual.output)
    assert hybrid.launches == usual.launches


@pytest.mark.parametrize(
    "text",
    [
        "model=", "model=xyz", "model=00,half=", "model=00,half=3-2", "model=00,half=a",
        "model=00,bfloat=",
        "model=00,half=1+", "model=00,half=0-9999999", "model=00,error=nan", "model=00,error=0",
        "model=00,error=-1", "model=00,error=1e-3x", "model=00,more=1", "model=00,model=00",
        "model=00,half=99999999",
        "model=00,means=2", "model=00,means=2/", "model=00,means=2/3f8", "model=00,means=2/7f80",
        "model=00,means=2/3f80+2/3f80", "model=00,means=x/3f80",
    ],
)  # fmt: skip
def test_text_that_is_no_plan_is_an_error(text):
    with pytest.raises(OptionError, match="allowed: fp32, fp16, tf32, mixed, a plan"):
        clgpu_delegate.load(precision=text)


def test_without_a_plan_a_note_says_so(x, tmp_path):
    loaded = Loaded(x, precision="mixed", cache=tmp_path / "cache.sqlite")
    assert loaded.explanation.mixed.source == ""
    assert any("precision mixed is fp32 here" in note for note in loaded.explanation.notes)


def test_plan_is_kept_for_a_model(x, tmp_path):
    cache = tmp_path / "cache.sqlite"
    none = Loaded(x, precision="mixed")
    (half,) = none.explanation.nodes[0].output_ids
    delegate = clgpu_delegate.load(cache=cache)
    assert delegate._native.keep_plan(none.plan(f"half={half}"), "a test")
    kept = Loaded(x, precision="mixed", cache=cache)
    assert (kept.halves, kept.explanation.mixed.source) == ([half], "kept")
    other = Loaded(x, network(0.2), precision="mixed", cache=cache)
    assert (other.halves, other.explanation.mixed.source) == ([], "")
    assert clgpu_delegate.cache.clear(cache, "precision") == 1
    assert Loaded(x, precision="mixed", cache=cache).halves == []


def test_delegate_without_a_cache_keeps_nothing():
    delegate = clgpu_delegate.load(cache="off")
    assert not delegate._native.keep_plan("model=00", "a test")
    with pytest.raises(OptionError, match="is no plan of precisions"):
        delegate._native.keep_plan("half=1", "a test")


@pytest.mark.parametrize(("bound", "level"), [("0.01", "as asked"), ("1e-09", "fp32")])
def test_verification_checks_the_bound_of_the_plan(x, bound, level):
    none = Loaded(x, precision="mixed")
    plan = none.plan("half=0-99", f"error={bound}")
    loaded = Loaded(x, precision=plan, verify="first")
    assert loaded.explanation.verification is not None
    (found,) = loaded.explanation.verification.partitions
    assert found.level == level
    assert relative_l2(loaded.output, none.output) < (1e-6 if level == "fp32" else 1e-2)


@pytest.mark.parametrize("half_io", [False, True])
def test_verification_that_leaves_a_plan_for_half_io_is_told(x, half_io):
    none = Loaded(x, precision="mixed")
    plan = none.plan("half=0-99", "error=1e-09")
    explanation = Loaded(x, precision=plan, verify="first", half_io=half_io).explanation
    told = [note for note in explanation.notes if "tune with half_io" in note]
    assert len(told) == half_io
    if half_io:
        assert told[0].startswith("partition 0 does not follow the plan: option 'half_io' rounds")


def test_products_of_pairs_are_those_of_floats(device, x):
    """Of each device; those without such kernels compute as in fp32."""
    none = Loaded(x, device=device, precision="mixed")
    mixed = Loaded(x, device=device, precision=none.plan("pairs=0-99"))
    # Each of the three convolutions has an error of some 5e-6 with pairs.
    assert relative_l2(mixed.output, none.output) < 2e-5
    rounded = Loaded(x, device=device, precision="tf32").explanation.nodes
    for node, own in zip(rounded, mixed.explanation.nodes):
        allowed = {"bf16_pairs", "fp32"} if node.precision == "tf32" else {node.precision}
        assert own.precision in allowed
    report = mixed.explanation.mixed
    assert report is not None
    assert report.bf16_pairs == tuple(range(100))
    both = Loaded(x, device=device, precision=none.plan("pairs=0-99", "tf32=0-99"))
    assert [n.precision for n in both.explanation.nodes] == [n.precision for n in rounded]


def test_bound_of_a_plan_is_not_that_of_partitions_whose_results_the_cpu_reads(x):
    """Their errors may be larger than those of the model's outputs."""
    none = Loaded(x, precision="mixed", exclude="MEAN")
    options = {"precision": none.plan("half=0-99", "error=1e-06"), "exclude": "MEAN"}
    verification = Loaded(x, verify="first", **options).explanation.verification
    assert verification is not None
    assert [found.level for found in verification.partitions] == ["as asked"]


def test_hosts_that_only_know_texts_take_a_plan(x):
    none = Loaded(x, precision="mixed")
    (half,) = none.explanation.nodes[0].output_ids
    module = find_runtime().module
    options = {"precision": none.plan(f"half={half}"), "cache": "off"}
    plugin = module.load_delegate(clgpu_delegate.plugin_path(), options)
    interpreter = module.Interpreter(model_content=network(), experimental_delegates=[plugin])
    (output,) = run_interpreter(interpreter, [x])
    assert np.array_equal(output, Loaded(x, precision=options["precision"]).output)


def test_plan_file_is_a_value_of_the_option(x, tmp_path):
    none = Loaded(x, precision="mixed")
    (half,) = none.explanation.nodes[0].output_ids
    plan = clgpu_delegate.PrecisionPlan(
        none.explanation.mixed.model, (half,), (), (), "a device", 1e-3, "relative L2", 1e-4, 4, 2,
        (), (),
        complete=True,
    )  # fmt: skip
    file = tmp_path / "plan.json"
    plan.save(file)
    for value in (plan, file, str(file)):
        assert Loaded(x, precision=value).halves == [half]
    options = clgpu_delegate.Options(precision=plan)
    assert (options.precision, options.precision_name) == (plan.text, "mixed")
    assert clgpu_delegate.Options.from_delegate_dict(options.as_delegate_dict()) == options


def test_file_that_is_no_plan_is_an_error(tmp_path):
    file = tmp_path / "plan.json"
    with pytest.raises(clgpu_delegate.FileError, match="cannot read the plan"):
        clgpu_delegate.load(precision=file)
    nested = b"[" * 200_000
    none = (b"", b"[]", b"{}", b'{"format": 2}', b"\xff", nested, Path(__file__).read_bytes())
    for content in none:
        file.write_bytes(content)
        with pytest.raises(clgpu_delegate.FileError, match="is not a plan of precisions"):
            clgpu_delegate.load(precision=str(file))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"half": [math.inf]}, "an element of half is inf; allowed: an integer from 0 on"),
        ({"half": [3.7]}, "an element of half is 3.7"),
        ({"half": "12"}, "half is '12'; allowed: a list of integers"),
        ({"int8": [-3]}, "an element of int8 is -3"),
        ({"max_error": math.inf}, "max_error is inf; allowed: a finite number"),
        ({"max_error": 0}, "max_error is 0.0; allowed: a number above 0"),
        ({"metric": 3}, "metric is 3; allowed: a text"),
        ({"complete": 1}, "complete is 1; allowed: true, false"),
        ({"points": {}}, "points is {}; allowed: a list"),
        ({"points": [3]}, r"points\[0\] is 3; allowed: an object"),
        ({"points": [{"name": "fp32"}]}, r"points\[0\]\.bytes is missing"),
        (
            {"points": [{"name": "fp32", "error": 0, "seconds": "1", "bytes": 0}]},
            r"points\[0\]\.seconds is '1'; allowed: a finite number",
        ),
        (
            {"means": [{"tensor": 1, "bits": "3f8"}]},
            r"means\[0\]\.bits is '3f8'; allowed: four hexadecimal digits for each channel",
        ),
        ({"means": [{"tensor": 1, "bits": "7f80"}]}, r"means\[0\]\.bits is '7f80'"),
        ({"more": 1}, "more is missing or is no field of a plan"),
    ],
)
def test_wrong_field_of_a_plan_file_is_named(tmp_path, changes, problem):
    plan = clgpu_delegate.PrecisionPlan(
        "00", (1,), (), (), "a device", 1e-3, "relative L2", 1e-4, 4, 2, (), (), complete=True
    )
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({**plan.to_dict(), **changes}))
    with pytest.raises(clgpu_delegate.FileError, match=problem) as error:
        clgpu_delegate.load(precision=file)
    assert "plan.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_random_is_not_the_order_of_a_plan(x):
    """Lists and ranges of the same numbers are the same plan."""
    none = Loaded(x, precision="mixed")
    ids = list(range(20))
    Random(1).shuffle(ids)
    outputs = [
        Loaded(x, precision=none.plan(f"half={text}")).output for text in ("0-19", joined(ids))
    ]
    assert np.array_equal(*outputs)

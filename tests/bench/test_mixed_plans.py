"""What a plan of precisions makes of the kernels of an H200; no such device is needed."""

from __future__ import annotations

import json

import pytest

from bench.plans import paper, snapshots
from tests.limits.build import LayerError
from tests.python.subprocesses import assert_succeeds, run_python

SCRIPT = """
import json, sys
import clgpu_delegate
from bench.plans.making import Planner
from bench.plans.models import Models, Way
from bench.plans.paper import indices

index, = indices([json.loads(sys.argv[1])])
planner = Planner(Models("resnet50"), str(index))

def plan(precision):
    return planner.plan(Way("a plan", batch=16, options={"precision": precision}))

def joined(ids):
    return "+".join(map(str, ids))

def told(precision):
    nodes = plan(precision).nodes
    return {
        node.index: (node.precision, node.candidate, node.rounds_factors)
        for node in nodes if node.candidate
    }

mixed = plan("mixed")
prefix = f"model={mixed.mixed.model}"
last = max(node.index for node in mixed.nodes)
wholes = {name: told(name) for name in ("fp32", "tf32", "fp16", "mixed")}
rounded = [n for n, (*_, rounds) in wholes["tf32"].items() if rounds]
some = rounded[::2]
# As tune lists them where fp16 holds the bound: no input or output of the model.
floats = {t.id for t in plan("fp32").tensors if t.storage == "float32"}
halves = [t.id for t in plan("fp16").tensors if t.storage == "float16" and t.id in floats]
factors = [n for n, (*_, rounds) in wholes["fp16"].items() if rounds]
plans = {
    "nothing": told(prefix),
    "every tf32": told(f"{prefix},tf32=0-{last}"),
    "some tf32": told(f"{prefix},tf32={joined(some)}"),
    "every half": told(f"{prefix},half={joined(halves)},tf32={joined(factors)}"),
}
json.dump([wholes, plans, some, factors], sys.stdout)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Precision and kernel of each node, of wholes and of plans; two lists of nodes with TF32."""
    try:
        driver = paper.driver()
    except LayerError as error:
        pytest.skip(str(error))
    profile = snapshots.find("nvidia_h200")
    facts = tmp_path_factory.mktemp("facts") / "facts"
    facts.write_text(paper.facts_text(profile))
    device = {
        "name": profile.device["CL_DEVICE_NAME"],
        "platform": profile.platform["CL_PLATFORM_NAME"],
        "probe": profile.probe,
    }
    result = run_python(
        SCRIPT, json.dumps(device), CLGPU_OPENCL_LIBRARY=str(driver), CLGPU_PAPER=str(facts),
        CLGPU_CACHE="off", CLGPU_PROGRAMS="",
    )  # fmt: skip
    assert_succeeds(result)
    return json.loads(result.stdout[result.stdout.index("[{") :])


def test_plans_of_nothing_and_of_all_choose_the_kernels_of_whole_precisions(made):
    wholes, plans, _, factors = made
    assert factors, "the input of the model stays float, so the first product rounds it"
    (first,) = map(str, factors)
    assert wholes["mixed"] == wholes["fp32"] == plans["nothing"]
    assert plans["every tf32"] == wholes["tf32"] != wholes["fp32"]
    # A plan lets the first product round to TF32 only; fp16 lets a kernel make it halves, too.
    whole, planned = dict(wholes["fp16"]), dict(plans["every half"])
    precision, kernel, _ = whole.pop(first)
    assert kernel.startswith("tensor_pairs_")
    assert precision == "fp16"
    assert planned.pop(first) == wholes["tf32"][first]
    assert wholes["tf32"][first][0] == "tf32"
    assert planned == whole


def test_only_listed_nodes_round_their_factors(made):
    wholes, plans, listed, _ = made
    assert len(listed) > 10
    for node, told in plans["some tf32"].items():
        assert told == wholes["tf32" if int(node) in listed else "fp32"][node]

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
from bench.plans.worker import _indices

index, = _indices([json.loads(sys.argv[1])])
planner = Planner(Models("resnet50"), str(index))

def plan(precision):
    return planner.plan(Way("a plan", batch=16, options={"precision": precision}))

def told(precision):
    nodes = plan(precision).nodes
    return {node.index: (node.precision, node.candidate) for node in nodes if node.candidate}

mixed = plan("mixed")
prefix = f"model={mixed.mixed.model}"
last = max(node.index for node in mixed.nodes)
wholes = {name: told(name) for name in ("fp32", "tf32", "fp16", "mixed")}
rounded = [n for n, (precision, _) in wholes["tf32"].items() if precision == "tf32"]
some = rounded[::2]
plans = {
    "nothing": told(prefix),
    "every tf32": told(f"{prefix},tf32=0-{last}"),
    "some tf32": told(f"{prefix},tf32={'+'.join(map(str, some))}"),
    "every half": told(f"{prefix},half=0-{max(t.id for t in mixed.tensors)}"),
}
json.dump([wholes, plans, some], sys.stdout)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Precision and kernel of each node: of whole precisions, of plans; the nodes of one plan."""
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
    wholes, plans, _ = made
    assert wholes["mixed"] == wholes["fp32"] == plans["nothing"]
    assert plans["every tf32"] == wholes["tf32"] != wholes["fp32"]
    assert plans["every half"] == wholes["fp16"]


def test_only_listed_nodes_round_their_factors(made):
    wholes, plans, listed = made
    assert len(listed) > 10
    for node, told in plans["some tf32"].items():
        assert told == wholes["tf32" if int(node) in listed else "fp32"][node]

"""Plans of a device that is not there: an H200 on paper."""

from __future__ import annotations

import dataclasses
import json

import pytest

from bench.plans import paper, snapshots
from bench.plans.profile import KernelFacts, Profile
from tests.limits.build import LayerError
from tests.python.subprocesses import assert_succeeds, run_python

HEAD = """
import json, sys
import numpy as np
import clgpu_delegate
from bench.plans.paper import indices
from clgpu_delegate import _core
from tests.model_maker import ModelMaker
from tests.runtimes import make_interpreter

index, = indices([json.loads(sys.argv[1])])

def load(model, **options):
    delegate = clgpu_delegate.load(
        device=str(index), precision="fp16", half_io=True, warm_up=False, tuning="off",
        isolate_builds="off", **options,
    )
    interpreter = make_interpreter("auto", model, [delegate], resolver="no_delegate")
    interpreter.allocate_tensors()
    return delegate, interpreter
"""


def answer(tmp_path, script: str, profile: Profile):
    """What a script prints as JSON in a process whose device is the profile."""
    facts = tmp_path / "facts"
    facts.write_text(paper.facts_text(profile))
    try:
        variables = paper.variables(facts)
    except (LayerError, paper.PaperError) as error:
        pytest.skip(str(error))
    device = {
        "name": profile.device["CL_DEVICE_NAME"],
        "platform": profile.platform["CL_PLATFORM_NAME"],
        "probe": profile.probe,
    }
    done = run_python(HEAD + script, json.dumps(device), **variables)
    assert_succeeds(done)
    return json.loads(done.stdout.splitlines()[-1])


ATTENTION = """
from tests.ops.test_composite import model_of, operands

_core.pretend_chain_groups(8)
told = []
for keys in (256, 600):
    inputs = operands(np.random.default_rng(1), 1, 70, keys, 4, 2, 64)
    mask = np.zeros((1, 1, 70, keys), np.float32)
    delegate, _ = load(model_of([*inputs, mask], 0.125), chain="on")
    explanation = delegate.explain()
    (node,) = explanation.nodes
    (chains,) = delegate.stats()["chains"]
    told.append([node.candidate, explanation.partitions[0].launches, chains["launches"]])
print(json.dumps(told))
"""


def test_attention_that_waits_for_its_whole_work_group_is_no_stage_of_a_chain(tmp_path):
    device = snapshots.find("nvidia_h200")
    kernels = {
        ("composite_mask_tiles", "*"): KernelFacts(1024, 4),
        ("composite_attention_nvidia", "*"): KernelFacts(1024, 32 << 10),
    }
    device = dataclasses.replace(device, kernels={**device.kernels, **kernels})
    told = answer(tmp_path, ATTENTION, device)
    assert told == [["tensor_rows", 1, 0], ["tensor_rows", 2, 0]]


def with_products(device: Profile) -> Profile:
    """A device that has all kernels for tensor cores."""
    kernels = {(name, "*"): KernelFacts(1024, 16 << 10) for name in PRODUCT_KERNELS}
    return dataclasses.replace(device, kernels={**device.kernels, **kernels})


PRODUCT_KERNELS = ("tensor_gemm", "tensor_gemm_registers")
EARLY = """
_core.pretend_chain_groups(8)
told = []
for constant in (True, False):
    m = ModelMaker()
    x = m.input("x", (64, 128))
    rng = np.random.default_rng(2)
    table = rng.standard_normal((2, 128, 128)).astype(np.float32)
    for i, t in enumerate(table):
        w = m.constant(t) if constant else m.input(f"w{i}", t.shape)
        x = m.op("FULLY_CONNECTED", [x, w], (64, 128))
    m.output(x)
    delegate, _ = load(m.build(), chain="on", engines={"fully_connected": "tensor_gemm"})
    (chains,) = delegate.stats()["chains"]
    told.append([chains["launches"], chains["early"]])
print(json.dumps(told))
"""


def test_stages_read_early_what_no_launch_of_an_inference_writes(tmp_path):
    """The second product waits for the first. Weights of the caller are packed each time."""
    device = snapshots.find("nvidia_h200")
    device = with_products(device)
    constant, given = answer(tmp_path, EARLY, device)
    assert constant == [2, 1]
    assert given[0] > 2
    assert given[1] == 0


# More than half of the experts are chosen, so they keep launches of their own.
EXPERTS = """
from bench import networks
_core.pretend_chain_groups(8)
model = networks.build(
    "decoder_moe", 1, form="dense", experts=16, chosen=9, width=1024, hidden=1024
)
delegate, _ = load(model, chain="on")
(chains,) = delegate.stats()["chains"]
print(json.dumps([chains["launches"], chains["early"]]))
"""


def test_stages_that_a_gate_may_leave_out_wait_before_they_look_at_it(tmp_path):
    """Work-items that see different gates would wait for each other for ever."""
    device = snapshots.find("nvidia_h200")
    warps = {("fully_connected_warps", "*"): KernelFacts(1024, 8 << 10)}
    device = dataclasses.replace(device, kernels={**device.kernels, **warps})
    launches, early = answer(tmp_path, EXPERTS, device)
    assert launches > 64
    assert early == 0


BRANCHES = """
_core.pretend_chain_groups(8)
told = []
for options in ({}, {"memory_budget": 1 << 30}):
    m = ModelMaker()
    shape = (1, 12, 12, 64)
    x = m.input("x", shape)
    rng = np.random.default_rng(4)
    for length in (1, 2, 4, 4):
        y = x
        for i in range(length):
            size = 3 if i % 2 else 1
            weights = m.constant(rng.standard_normal((64, size, size, 64)).astype(np.float32))
            y = m.op("CONV_2D", [y, weights], shape, padding="SAME", stride_h=1, stride_w=1)
        m.output(y)
    delegate, _ = load(m.build(), chain="on", engines={"conv2d": "tensor_gemm"}, **options)
    explanation = delegate.explain()
    (chains,) = delegate.stats()["chains"]
    moved = [step.node for step in explanation.steps if step.pass_name == "order_levels"]
    told.append([chains["launches"], chains["early"], moved])
print(json.dumps(told))
"""


def test_branches_side_by_side_wait_once_for_each_level(tmp_path):
    """All stages that wait have weights that they read before.

    With a budget nodes keep the order of the file, and tensors share memory as soon as they can.
    """
    device = with_products(snapshots.find("nvidia_h200"))
    levels, file = answer(tmp_path, BRANCHES, device)
    assert levels == [11, 3, [3, 7, 8, 9]]
    assert file[0] == 11
    assert file[1] > 6
    assert file[2] == []


PRODUCTS = """
told = []
for rows, depth, cols in ((2048, 4096, 4096), (512, 1024, 1024)):
    m = ModelMaker()
    x = m.input("x", (rows, depth))
    weights = m.constant(np.zeros((cols, depth), np.float32))
    m.output(m.op("FULLY_CONNECTED", [x, weights], (rows, cols)))
    delegate, _ = load(m.build())
    told.append(delegate.explain().nodes[-1].candidates)
print(json.dumps(told))
"""


def test_some_products_for_tensor_cores_do_without_wgmma(tmp_path):
    device = snapshots.find("nvidia_h200")
    device = dataclasses.replace(device, probe={**device.probe, "wgmma": True})
    for names in answer(tmp_path, PRODUCTS, device):
        tiles = [name for name in names if name.startswith("tensor_gemm_")]
        assert len(tiles) <= 7
        assert sum("wgmma" not in name for name in tiles) >= 2
        assert any("wgmma" in name for name in tiles)


ENDED = """
told = {}
for engines in ({}, {"dynamic_update_slice": "select"}, {"rotate": "auto"}):
    m = ModelMaker()
    x, old = m.input("x", (1, 512)), m.input("old", (1, 1, 64, 512))
    start = m.input("start", (4,), np.int32)
    weights = np.random.default_rng(3).integers(-7, 8, (512, 512)) / np.float32(8)
    y = m.op("FULLY_CONNECTED", [x, m.constant(weights.astype(np.float32))], (1, 512))
    shape = m.constant(np.array([1, 1, 1, 512], np.int32))
    y = m.op("RESHAPE", [y, shape], (1, 1, 1, 512))
    m.output(m.op("DYNAMIC_UPDATE_SLICE", [old, y, start], (1, 1, 64, 512)))
    delegate, _ = load(m.build(), engines=engines)
    steps = [[step.pass_name, step.outcome] for step in delegate.explain().steps]
    told[",".join(engines)] = [outcome for name, outcome in steps if name == "fuse_products"]
print(json.dumps(told))
"""


def test_engines_of_what_may_end_a_product_keep_it_apart(tmp_path):
    told = answer(tmp_path, ENDED, snapshots.find("nvidia_h200"))
    assert set(told[""]) == {"applied"}
    assert told["dynamic_update_slice"] == told["rotate"] == ["skipped"]


REGISTERS = """
from tests.ops import test_batch_matmul, test_conv2d, test_fully_connected
from tests.quantized import test_conv2d as test_quantized

told = {}
rng = np.random.default_rng(5)

def see(family, model):
    delegate, _ = load(model)
    found = [name for node in delegate.explain().nodes for name in node.candidates]
    told.setdefault(family, set()).update(n for n in found if n.endswith("_registers"))

for case in [*test_conv2d.CASES.values(), *test_conv2d.MIDDLE.values()]:
    see("conv2d", test_conv2d.make_model(case, test_conv2d.make_data(case, rng)))
for name in test_quantized.BRANCHES:
    case = test_conv2d.CASES[name]
    see("conv2d of int8", test_quantized.build(rng, case, np.int8, per_channel=True))
for x, y, (rows, cols, depth) in test_batch_matmul.CASES:
    sizes = (x, rows, depth), (y, depth, cols)
    pair = [test_batch_matmul.draw(rng, *size, False) for size in sizes]
    see("batch_matmul", test_batch_matmul.products([pair], False, False)[0])
for shape, cols in test_fully_connected.CASES + test_fully_connected.LONG_CASES:
    x = test_fully_connected.draw(rng, *shape)
    weights = test_fully_connected.draw(rng, cols, np.prod(shape[1:]))
    see("fully_connected", test_fully_connected.one_op(x, weights))
print(json.dumps({family: sorted(names) for family, names in told.items()}))
"""


def test_tests_of_operations_have_every_tile_of_registers(tmp_path):
    """They try what the delegate offers for a size."""
    told = answer(tmp_path, REGISTERS, with_products(snapshots.find("nvidia_h200")))
    sizes = ["16x16", "16x32", "32x16", "32x32", "32x64", "64x32", "64x64"]
    assert {f"tensor_gemm_{size}_registers" for size in sizes} <= set(told["conv2d"])
    assert "tensor_pairs_16x16_registers" in told["conv2d"]
    assert all(len(names) >= 4 for names in told.values())


DECODER = """
from bench.networks.decoder import Decoder, make_decoder
_core.pretend_chain_groups(8)
decoder = Decoder(
    width=128, layers=2, heads=4, key_heads=2, depth=64, hidden=2048, vocabulary=96
)
maker = make_decoder(decoder, form="int8", prefill=(), decode=True, cache=256)
((inputs, outputs),) = maker.signatures().values()
carry = ",".join(f"{n}=0/{t}/{outputs[n]}" for n, t in inputs.items() if n in outputs)
delegate, _ = load(maker.build(), chain="on", carry=carry)
(chains,) = delegate.stats()["chains"]
forms = ("warps", "ended", "fused")
products = [node for node in delegate.explain().nodes if node.candidate in forms]
print(json.dumps([chains["kernels"], chains["launches"], len(products)]))
"""


def test_a_token_is_one_chain_though_its_products_update_the_caches(tmp_path):
    """The products for keys and values end in the update of what outlives the inference."""
    device = snapshots.find("nvidia_h200")
    kernels = {
        ("fully_connected_warps", "*"): KernelFacts(1024, 8 << 10),
        ("composite_decode", "*"): KernelFacts(1024, 8 << 10),
    }
    device = dataclasses.replace(device, kernels={**device.kernels, **kernels})
    kernels, launches, products = answer(tmp_path, DECODER, device)
    assert kernels == 1
    assert products == 13  # six of a layer, of which one has the gate, too, and the last one
    assert launches > products


# Rows of the products on tensor cores, then one row of many columns and of many elements.
WIDE = """
_core.pretend_chain_groups(8)
m = ModelMaker()
rng = np.random.default_rng(3)
x = m.input("x", (64, 128))
def product(x, rows, cols, depth):
    weights = m.constant(rng.standard_normal((cols, depth)).astype(np.float32))
    return m.op("FULLY_CONNECTED", [x, weights], (rows, cols))
for _ in range(2):
    x = product(x, 64, 128, 128)
x = m.op("RESHAPE", [x, m.constant(np.array([1, 8192], np.int32))], (1, 8192))
x = product(x, 1, 2368, 8192)
m.output(product(x, 1, 2368, 2368))
delegate, _ = load(m.build(), chain="on")
(chains,) = delegate.stats()["chains"]
nodes = [node.candidate for node in delegate.explain().nodes]
print(json.dumps([nodes, chains["kernels"], chains["launches"]]))
"""


def test_work_groups_of_a_chain_are_as_large_as_the_registers_of_its_stages_allow(tmp_path):
    """Stages with work-groups of 512 work-items have a chain of their own."""
    device = with_products(snapshots.find("nvidia_h200"))
    warps = {("fully_connected_warps", "*"): KernelFacts(1024, 8 << 10)}
    device = dataclasses.replace(device, kernels={**device.kernels, **warps})
    nodes, kernels, launches = answer(tmp_path, WIDE, device)
    assert nodes[-2:] == ["warps", "warps"]
    assert all("warps" not in candidate for candidate in nodes[:2])
    assert (kernels, launches) == (2, 4)

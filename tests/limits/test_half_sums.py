"""Plans for phones with ``sums="half"``: their kernels add halves, and the numbers are right."""

from __future__ import annotations

import pytest

from tests.limits.build import LayerError, environment
from tests.limits.profiles import PROFILES
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

SCRIPT = """
import sys
sys.path.append(sys.argv[1])
import clgpu_delegate
from tests.kernels.mobile_layers import other_layers
from tests.kernels.test_mobile_defaults import layers
from tests.python.models import normal
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter, run_reference
from tests.tolerance import relative_l2
import numpy as np

can, = (device.abilities().half_arithmetic for device in clgpu_delegate.devices())
for model in (layers(quantized=False), other_layers()):
    stock = make_interpreter(available_runtimes()[0], model)
    shapes = [detail["shape"] for detail in stock.get_input_details()]
    inputs = [normal(np.random.default_rng(i), *shape) for i, shape in enumerate(shapes)]
    want = run_interpreter(stock, inputs)
    delegate = clgpu_delegate.load(precision="fp16", sums="half", warm_up=False, cache="off")
    interpreter = make_interpreter(available_runtimes()[0], model, [delegate])
    got = run_interpreter(interpreter, inputs)
    for result, expected in zip(got, want):
        assert relative_l2(result, expected) < 5e-3, (result.shape, relative_l2(result, expected))
    explanation = delegate.explain()
    for node in explanation.nodes:
        if node.family:
            print("node:", node.family, node.candidate, node.sums)
    print("notes:", *explanation.notes)
print("half arithmetic:", can)
"""

PRODUCTS = {"conv2d", "fully_connected", "depthwise_conv2d", "transpose_conv", "batch_matmul"}


@pytest.mark.slow
@pytest.mark.parametrize("profile", PROFILES)
def test_products_of_phones_add_halves(profile):
    try:
        device = environment(profile, ROOT / "build" / "limits")
    except LayerError as error:
        pytest.skip(str(error))
    result = run_python(SCRIPT, str(ROOT), timeout=600, **device)
    assert_succeeds(result)
    lines = result.stdout.splitlines()
    nodes = [tuple(line.split()[1:]) for line in lines if line.startswith("node:")]
    products = {
        (family, candidate, sums) for family, candidate, sums in nodes if family in PRODUCTS
    }
    assert {family for family, _, _ in products} == PRODUCTS
    if "half arithmetic: True" not in lines:
        if "cl_khr_fp16" in PROFILES[profile].extensions:
            pytest.skip("the CPU's OpenCL has no half arithmetic")
        assert "half" not in {sums for _, _, sums in nodes}
        assert "notes: sums half are float here: the device has no half arithmetic" in result.stdout
        return
    assert {sums for _, _, sums in products} == {"half"}, products
    assert all(candidate.endswith("_half") for _, candidate, _ in products)
    assert "winograd_f2x2_3x3_quads" in result.stdout
    assert "half" not in {sums for family, _, sums in nodes if family not in PRODUCTS}
    images = "_image" in result.stdout
    assert images == profile.startswith(("adreno", "powervr"))

"""Probes find abilities that a device does not report, and reject wrong results."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.python import models
from tests.runtimes import make_interpreter, run_interpreter, run_reference

MMA = "device/mma_nvidia.cl"
WGMMA = "device/wgmma_nvidia.cl"
DOT8 = "device/dot8.cl"


@pytest.fixture
def override():
    """Sets the text of the tensor cores' probe."""
    yield lambda text: _core.override_kernel_source(MMA, text)
    _core.override_kernel_source(MMA, None)


def is_nvidia(device: str) -> bool:
    (found,) = [d for d in clgpu_delegate.devices() if str(d.index) == str(device)]
    return "NVIDIA" in found.vendor and found.type == "gpu"


def test_probe_leaves_nothing_on_the_console(device, capfd):
    facts = _core.probe_device(str(device))
    assert not facts["notes"]
    assert facts["mma_f16"] or not facts["mma_tf32"]
    out, err = capfd.readouterr()
    assert not out
    assert not err


def test_probe_that_does_not_build_is_a_silent_no(device, override):
    override("this is no kernel")
    facts = _core.probe_device(str(device))
    assert (facts["mma_f16"], facts["mma_tf32"], facts["notes"]) == (False, False, [])


def test_dot_product_is_found_where_the_device_lists_it(device):
    (found,) = [d for d in clgpu_delegate.devices() if str(d.index) == str(device)]
    listed = "Intel" in found.platform or is_nvidia(device)
    assert (found.abilities().dot8 != "none") == listed


def test_wrong_dot_product_is_not_used(device):
    text = _core.kernel_sources()[DOT8]
    assert "start[i]);" in text
    _core.override_kernel_source(DOT8, text.replace("start[i]);", "start[i]) + 1;"))
    try:
        facts = _core.probe_device(str(device))
    finally:
        _core.override_kernel_source(DOT8, None)
    assert facts["dot8"] == "none"
    if _core.probe_device(str(device))["dot8"] != "none":
        assert "wrong numbers" in facts["notes"][0]


def test_wrong_number_turns_the_path_off_with_a_note(device, runtime, override):
    if not is_nvidia(device):
        pytest.skip("the tensor cores of NVIDIA are probed on its devices only")
    text = _core.kernel_sources()[MMA]
    assert "dst[at] = sum.s0;" in text
    override(text.replace("dst[at] = sum.s0;", "dst[at] = sum.s0 + 1.0f;"))
    facts = _core.probe_device(str(device))
    assert not facts["mma_f16"]
    assert not facts["mma_tf32"]
    assert not facts["mma_s8"]
    delegate = clgpu_delegate.load(device=device)
    make_interpreter(runtime, models.chain((2, 11), ("TANH",)), [delegate])
    notes = [note for note in delegate.explain().notes if "wrong numbers" in note]
    assert len(notes) == 3


def test_wrong_product_by_four_warps_is_not_used(device):
    if not _core.probe_device(str(device))["wgmma"]:
        pytest.skip("only NVIDIA's Hopper has products by four warps")
    text = _core.kernel_sources()[WGMMA]
    assert "dst[at + n * 8] = sum[n].s0;" in text
    wrong = text.replace("dst[at + n * 8] = sum[n].s0;", "dst[at + n * 8] = sum[n].s1;")
    _core.override_kernel_source(WGMMA, wrong)
    try:
        facts = _core.probe_device(str(device))
    finally:
        _core.override_kernel_source(WGMMA, None)
    assert facts["mma_f16"]
    assert not facts["wgmma"]
    assert "wrong numbers" in facts["notes"][0]


def test_comments_of_ptx_for_sm_90_become_instructions_for_sm_90a():
    head = ".version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n"
    body = "// begin inline asm\n//sm_90a wgmma.fence.sync.aligned;\n// end inline asm\n"
    made = _core.sm_90a_of(head + body)
    assert made.splitlines()[1] == ".target sm_90a, texmode_independent"
    assert made.splitlines()[3:] == [
        "// begin inline asm", "wgmma.fence.sync.aligned;", "// end inline asm",
    ]  # fmt: skip
    assert _core.sm_90a_of(made) == "", "nothing is left to change"
    assert _core.sm_90a_of(body) == "", "no target"
    assert _core.sm_90a_of("\x7fELF") == ""


def test_tf32_is_fp32_where_there_is_no_tf32(device, runtime, override):
    override("this is no kernel")
    delegate = clgpu_delegate.load(device=device, precision="tf32")
    model = models.chain((2, 11), ("TANH", "SOFTMAX"))
    interpreter = make_interpreter(runtime, model, [delegate])
    x = models.normal(np.random.default_rng(1), 2, 11)
    np.testing.assert_allclose(
        run_interpreter(interpreter, [x])[0], run_reference(model, [x], runtime)[0], rtol=1e-5
    )
    plan = delegate.explain()
    assert plan.precision == "tf32"
    assert plan.notes == ("precision tf32 is fp32 here: the device has no TF32 products",)

"""Every kernel runs once in Oclgrind, which checks each memory access, without a finding.

It reports reads and writes out of bounds, data races and misuse of the OpenCL API. Its search for
uninitialised values crashes on vectors that the compiler leaves partly undefined, so those are
found differently: the op tests fill fresh device memory with NaN.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kernels.test_kernel_files import ENTRIES
from tests.python.subprocesses import ROOT, assert_succeeds, run_python

LIBRARIES = [
    Path("/usr/lib/oclgrind/liboclgrind-rt.so"),
    Path("/usr/local/lib/oclgrind/liboclgrind-rt.so"),
]
LIBRARY = next((path for path in LIBRARIES if path.is_file()), None)

# Entries that only other devices can run, and why.
EXEMPT = {
    "composite_attention_nvidia": "inline PTX for NVIDIA's tensor cores",
    "composite_mask_tiles": "looks at masks for composite_attention_nvidia only",
    "composite_decode": "inline PTX: shuffles between the work-items of a warp",
    "conv2d_pair_columns": "lays out images and filters for tensor_gemm only",
    "conv2d_tensor_halo": "inline PTX for NVIDIA's tensor cores",
    "conv2d_tensor_halo_pack": "packs for conv2d_tensor_halo only",
    "device_address": "tells where a buffer lies, on NVIDIA's devices",
    "device_address_read": "reads at an address that is a number, which Oclgrind does not know",
    "device_chain": "probes work-groups that wait for each other, which looks like a race",
    "device_dot8": "probes devices that list dot products of int8; Oclgrind lists none",
    "device_half": "probes GPUs that do not list half arithmetic; Oclgrind is a CPU",
    "fully_connected_warps": "inline PTX for NVIDIA's tensor cores",
    "fully_connected_pack_warps": "packs for fully_connected_warps only",
    "device_mma": "inline PTX for NVIDIA's tensor cores",
    "device_wgmma": "inline PTX for NVIDIA's tensor cores",
    "separable_conv2d_fused_f16": "inline PTX for NVIDIA's tensor cores",
    "separable_conv2d_fused_s8": "inline PTX for NVIDIA's tensor cores",
    "separable_conv2d_pack_depth": "packs for separable_conv2d_fused_f16 only",
    "separable_conv2d_pack_point": "packs for separable_conv2d_fused_f16 only",
    "tensor_gemm": "inline PTX for NVIDIA's tensor cores",
    "tensor_gemm_pack": "packs for tensor_gemm only",
    "tensor_gemm_pack_float_pairs": "packs for tensor_gemm only",
    "tensor_gemm_pack_rows": "packs for tensor_gemm only",
    "tensor_gemm_registers": "inline PTX for NVIDIA's tensor cores",
    "conv2d_sum_splits": "depths that are worth splitting are too large; other devices run it",
    "device_mma_peak": "inline PTX for NVIDIA's tensor cores",
}

RUN_OP_TESTS = """
import sys, pytest
root = sys.argv[1]
options = ["-q", "-p", "no:cacheprovider", "-c", f"{root}/pyproject.toml", *sys.argv[2:]]
# Chains of one work-group: the order that several keep among themselves looks like a race to it.
chains = f"{root}/tests/delegate/test_chains.py::test_"
tests = [f"{root}/tests/{part}" for part in ("ops", "quantized", "kernels/test_peaks.py")]
tests += [chains + "chains_compute_the_same_with_fewer_launches", chains + "half_tensors"]
# Kernels that nodes of their own do not have: predicates of experts, rows of carried tensors.
gates = f"{root}/tests/passes/test_experts.py::test_gates"
tests += [f"{gates}[oclgrind-ties-{batch}]" for batch in (1, 3)]
carried = f"{root}/tests/delegate/test_carried.py::test_each_step_has"
tests += [carried + "_the_value_that_the_last_one_left[oclgrind-in_place-{}]"]
code = pytest.main([*options, *tests])
from clgpu_delegate import _core
print("made:", *sorted(_core.kernel_names()))
sys.exit(code)
"""


# CI sets this to a fraction like 1/4, because all of them take 20 minutes.
SAMPLE = os.environ.get("CLGPU_OCLGRIND_SAMPLE")


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="Oclgrind is not installed (Debian: oclgrind)")
def test_every_kernel_runs_in_oclgrind_without_a_finding(tmp_path):
    log = tmp_path / "findings.txt"
    result = run_python(
        RUN_OP_TESTS,
        str(ROOT),
        *(["--sample", SAMPLE] if SAMPLE else []),
        timeout=3600,
        CLGPU_OPENCL_LIBRARY=str(LIBRARY),
        CLGPU_TEST_SMALL="1",
        OCLGRIND_CHECK_API="1",
        # Not OCLGRIND_INST_COUNTS, which would name the kernels: 21.10 corrupts its heap counting.
        OCLGRIND_DATA_RACES="1",
        OCLGRIND_LOG=str(log),
        CLGPU_PROGRAMS="",  # each is compiled, as ever
    )
    findings = log.read_text() if log.exists() else ""
    assert not findings, findings[:4000]
    result.stdout = result.stdout[-4000:] if result.returncode else result.stdout
    assert_succeeds(result)
    if SAMPLE:
        return  # a sample does not run every kernel
    ran = set(result.stdout.partition("made:")[2].split())
    missing = {entry for entries in ENTRIES.values() for entry in entries} - ran - set(EXEMPT)
    assert not missing, f"no test small enough for Oclgrind runs {sorted(missing)}"


RUN_TWO_GROUPS = """
import sys
import numpy as np
import clgpu_delegate
from clgpu_delegate import _core
from tests.delegate.test_chains import check, infer, load, of, stock
from tests.python import models

_core.pretend_chain_groups(2)
_core.set_chain_patience(200)
model = models.chain((8, 16), ("TANH", "SOFTMAX", "ABS"))
x = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
for warm_up in (True, False):
    delegate, interpreter = load(model, "0", chain="on", cache=sys.argv[1], warm_up=warm_up)
    for factor in (1, -2):
        check(infer(interpreter, factor * x), stock(model, factor * x))
    print(of(delegate)["reason"])
    print(*[n for n in delegate.explain().notes if "one by one" in n])
print(*[e.label for e in clgpu_delegate.cache.entries(sys.argv[1]) if "chains" in e.label])
"""


@pytest.mark.skipif(LIBRARY is None, reason="Oclgrind is not installed (Debian: oclgrind)")
def test_two_work_groups_of_a_chain_give_up_in_oclgrind(tmp_path):
    """It runs one after the other, so the first one waits in vain; nobody uses memory wrongly."""
    log, cache = tmp_path / "findings.txt", tmp_path / "cache.sqlite"
    tmp_path.chmod(0o700)
    result = run_python(
        RUN_TWO_GROUPS,
        str(cache),
        CLGPU_OPENCL_LIBRARY=str(LIBRARY),
        OCLGRIND_NUM_THREADS="1",
        OCLGRIND_CHECK_API="1",
        OCLGRIND_LOG=str(log),
        CLGPU_PROGRAMS="",
    )
    assert_succeeds(result)
    assert not log.exists() or not log.read_text()
    waited = "a work-group of a chain waited too long for the others"
    note = f"partition 0: launches run one by one: {waited}"
    assert result.stdout.splitlines() == [waited, note] * 2 + ["chains of launches: waited"]

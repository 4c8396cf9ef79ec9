"""Published models: every .tflite file of a folder, if there is one.

The folder is named by ``CLGPU_OPEN_MODELS``, else it is ``shared/models/open`` beside the checkout.
The suffix of a file's name gives its kind: ``_int8``, ``_i16x8`` and ``_dyn*`` are quantised.
"""

from __future__ import annotations

import functools
import os
import pathlib
import re
import struct

import numpy as np
import pytest
import tflite

import clgpu_delegate
from bench import networks
from clgpu_delegate.quantization import parameters
from clgpu_delegate.tflite import reader, writer
from tests.models.comparison import LIMITS, assert_close, relative_l2, run_delegated
from tests.runtimes import available_runtimes, make_interpreter, run_interpreter, run_reference

FOLDER = pathlib.Path(
    os.environ.get("CLGPU_OPEN_MODELS")
    or pathlib.Path(__file__).parents[3] / "shared" / "models" / "open"
)
FILES = sorted(path.name for path in FOLDER.glob("*.tflite")) if FOLDER.is_dir() else []
QUANTISED = re.compile(r"_(int8|i16x8|dyn|dynpc)\.tflite$")
FLOAT_FILES = [name for name in FILES if not QUANTISED.search(name)]
INTEGER_FILES = [name for name in FILES if name.endswith(("_int8.tflite", "_i16x8.tflite"))]
DYNAMIC_FILES = [name for name in FILES if QUANTISED.search(name) and name not in INTEGER_FILES]

# Hybrid kernels quantise activations to 8 bits at run time: a last-bit difference before one may
# move a value by a step of 1/127 of the largest. The stock runtime's own kernels differ by up to
# 0.24 (deeplab_dyn), so the differences between them are allowed, too.
DYNAMIC_LIMIT = 2e-2

pytestmark = pytest.mark.skipif(not FILES, reason=f"there are no models in {FOLDER}")


# Half storage of activations costs these more than LIMITS["fp16"] (measured; relative L2): deep
# networks of random weights, and logits of a trained one on an image that shows nothing. The stock
# kernels disagree among themselves there as well, by 8e-5 in float for mp_pose_landmark_full.
FP16_LIMITS = {
    "deeplab_fp16.tflite": 1.5e-2,
    "deeplab_fp32.tflite": 1.5e-2,
    "mobilebert_ln_fp16.tflite": 8e-3,
    "mobilebert_ln_fp32.tflite": 8e-3,
    "mp_hand_landmark_full.tflite": 1.2e-2,
    "mp_pose_landmark_full.tflite": 1.2e-1,
}


@functools.lru_cache(maxsize=4)
def _case(name: str, resolver: str):
    """The model, its inputs, the stock runtime's results, and that runtime."""
    model = (FOLDER / name).read_bytes()
    problems = []
    for runtime in reversed(available_runtimes()):  # the newer one knows more operations
        try:
            inputs = networks.sample_inputs(model, seed=1)
            return model, inputs, run_reference(model, inputs, runtime, resolver, 2), runtime
        except (RuntimeError, ValueError) as error:
            problems.append(f"{runtime}: {str(error)[:120]}")
    pytest.skip("no stock runtime runs this model: " + "; ".join(problems))


@functools.lru_cache(maxsize=2)
def _reference(name: str):
    """The reference kernels' results for the same inputs; None if they cannot run the model."""
    model, inputs, _, runtime = _case(name, "builtin")
    try:
        return run_reference(model, inputs, runtime, "ref")
    except RuntimeError:
        return None


@pytest.mark.parametrize("name", FLOAT_FILES)
def test_float_model_is_claimed_and_right(name, device, precision):
    model, inputs, want, runtime = _case(name, "builtin")
    got, report = run_delegated(runtime, model, inputs, device=device, precision=precision)
    nodes = report["nodes"]
    refused = {f"{node['op']}: {node['reason']}" for node in nodes if not node["claimed"]}
    claimed = sum(node["claimed"] for node in nodes)
    assert claimed >= 0.95 * len(nodes), refused
    if not refused:
        assert len(report["partitions"]) == 1
    limit = LIMITS[precision]
    if precision == "fp16":
        limit = FP16_LIMITS.get(name, limit)
    for g, w, other in zip(got, want, _reference(name) or want):
        # As near to one of the stock kernels as they are to each other, where that is not near.
        nearest = min(w, other, key=lambda stock: relative_l2(g, stock))
        assert_close([g], [nearest], max(limit, 2 * relative_l2(other, w)))


RUNTIME = (available_runtimes() or ("",))[-1]  # the newer one, whose reference kernels are meant


def _with_first_versions(model: bytes, builtin: int) -> bytes:
    """The model with version 1 of an operation: the reference kernels register no later one."""
    patched = bytearray(model)
    root = tflite.Model.GetRootAsModel(patched, 0)
    for i in range(root.OperatorCodesLength()):
        code = root.OperatorCodes(i)
        if max(code.BuiltinCode(), code.DeprecatedBuiltinCode()) == builtin:
            struct.pack_into("<i", patched, code._tab.Pos + code._tab.Offset(8), 1)
    return bytes(patched)


@functools.lru_cache(maxsize=2)
def _integer_case(name: str):
    """The model, its inputs and the results of the newer runtime's reference kernels."""
    model = (FOLDER / name).read_bytes()
    if name == "espcn_x3_int8.tflite":  # they know int8 there all the same
        model = _with_first_versions(model, tflite.BuiltinOperator.DEPTH_TO_SPACE)
    inputs = networks.sample_inputs(model, seed=3)
    return model, inputs, run_reference(model, inputs, RUNTIME, "ref")


@pytest.mark.parametrize("name", INTEGER_FILES)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_integer_model_equals_the_reference(name, device, precision):
    model, inputs, want = _integer_case(name)
    options = {"device": device, "precision": precision, "warm_up": False}
    got, report = run_delegated(RUNTIME, model, inputs, "ref", **options)
    left = [node for node in report["nodes"] if not node["claimed"]]
    assert not left
    for g, w in zip(got, want):
        different = np.count_nonzero(g != w)
        assert different == 0, f"{different} of {w.size} differ, by up to {np.max(np.abs(g - w))}"


def _float_twin(content: bytes) -> bytes:
    """The same model with the floats that its int8 weights stand for; tables stay as they are."""
    model = reader.parse(content)
    tensors = model.main.tensors
    for op in model.main.operators:
        for i in op.inputs[1:2]:
            affine = tensors[i].affine if i >= 0 else None
            if affine is not None and tensors[i].dtype == "int8":
                values = parameters.dequantize(model.values(tensors[i]), affine)
                tensors[i].dtype, tensors[i].affine = "float32", None
                tensors[i].buffer = model.add_buffer(values)
    return writer.serialize(model)


@pytest.mark.parametrize("name", DYNAMIC_FILES)
def test_int8_weights_are_dequantised_on_the_fly(name, device, precision):
    model, inputs, _, runtime = _case(name, "builtin")
    want = run_reference(_float_twin(model), inputs, runtime, "builtin", 2)
    got, report = run_delegated(runtime, model, inputs, device=device, precision=precision)
    refused = {f"{node['op']}: {node['reason']}" for node in report["nodes"] if not node["claimed"]}
    assert not refused
    limit = LIMITS[precision]
    if precision == "fp16":
        limit = FP16_LIMITS.get(name.replace("_dyn", "_fp16"), limit)
    assert_close(got, want, limit)


@pytest.mark.parametrize("name", DYNAMIC_FILES)
def test_hybrid_arithmetic_is_that_of_the_stock_kernels(name, device):
    model, inputs, want, runtime = _case(name, "ref")
    options = {"device": device, "dynamic_range": "hybrid", "warm_up": False}
    got, report = run_delegated(runtime, model, inputs, **options)
    assert all(node["claimed"] for node in report["nodes"])
    for g, w, other in zip(got, want, _case(name, "builtin")[2]):
        nearest = min(relative_l2(g, w), relative_l2(g, other))
        assert nearest <= max(DYNAMIC_LIMIT, relative_l2(other, w))


@pytest.mark.parametrize("samples", [1760, 16000])
def test_model_of_dynamic_size_is_claimed_before_its_size_is_known(samples, device, precision):
    """oww_melspectrogram takes any number of samples; its file says 1, which fits nothing."""
    name = "oww_melspectrogram.tflite"
    if name not in FILES:
        pytest.skip(f"there is no {name}")
    model = (FOLDER / name).read_bytes()
    sound = np.random.default_rng(0).normal(0, 0.1, (1, samples)).astype(np.float32)
    resize = {0: sound.shape}
    for runtime in available_runtimes():
        want = run_reference(model, [sound], runtime, "builtin", resize=resize)
        delegate = clgpu_delegate.load(device=device, precision=precision)
        interpreter = make_interpreter(runtime, model, [delegate])
        got = run_interpreter(interpreter, [sound], resize)
        assert delegate.explain().claimed == delegate.explain().total
        assert_close(got, want, LIMITS[precision])


@pytest.mark.skipif(len(available_runtimes()) < 2, reason="both runtimes are needed")
def test_custom_operations_run_where_the_stock_runtime_has_none(device):
    """tflite-runtime 2.14 does not know Convolution2DTransposeBias; the delegate does."""
    name = "mp_selfie_segmentation.tflite"
    if name not in FILES:
        pytest.skip(f"there is no {name}")
    model, inputs, want, _ = _case(name, "builtin")
    got, report = run_delegated("tflite_runtime", model, inputs, device=device)
    assert all(node["claimed"] for node in report["nodes"])
    assert_close(got, want, LIMITS["fp32"])

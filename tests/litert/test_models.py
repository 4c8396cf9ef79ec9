"""Published models give the same bits through CompiledModel as through an interpreter."""

from __future__ import annotations

import pytest

from tests.litert import models
from tests.litert.compiled import needs_litert

pytestmark = [
    needs_litert,
    pytest.mark.skipif(not models.FOLDER.is_dir(), reason=f"there is no folder {models.FOLDER}"),
]

# Small ones of each kind: floats, integers, int8 weights, composites, control flow, variables,
# several signatures, shapes that the file leaves open.
QUICK = [
    "more/aieq_tests/simple_composite.tflite",
    "more/aieq_tests/two_signatures_a8w8.tflite",
    "more/aieq_tests/weight_sharing_fcs.tflite",
    "more/litert_testdata/constant_output_tensor.tflite",
    "more/litert_testdata/fallback_model.tflite",
    "more/litert_testdata/multi_signature_model.tflite",
    "more/litert_testdata/reverse_signature_model.tflite",
    "more/litert_testdata/simple_add_dynamic_shape.tflite",
    "more/litert_testdata/static_w8_a16_quantized_k_einsum.tflite",
    "more/tflite_testdata/call_once_mul.bin",
    "more/tflite_testdata/empty_model.bin",
    "more/tflite_testdata/mixed16x8.bin",
    "more/tflite_testdata/nested_while.bin",
    "more/tflite_testdata/no_signatures_no_tensor_names.bin",
    "more/tflite_testdata/resource_vars_calibrated.bin",
    "more/tflm_seanet_int16/leaky_relu/leaky_relu0.tflite",
    "open/lenet5_dynpc.tflite",
    "open/lenet5_fp32.tflite",
    "open/lenet5_int8.tflite",
    "open/oww_melspectrogram.tflite",
]


@pytest.mark.parametrize("name", QUICK)
def test_model_gives_the_same_bits_through_both_interfaces(name):
    path = models.FOLDER / name
    if not path.exists():
        pytest.skip(f"there is no {path}")
    outcome, text = models.by_cpu(path)
    if outcome == models.SAME:
        outcome, text = models.by_both(path, text)
    assert outcome == models.SAME, text


@pytest.mark.slow
def test_all_models_give_the_same_bits_through_both_interfaces():
    """Of those that LiteRT's CPU runs. Some end the process, so they run in child processes."""
    wrong = [
        f"{outcome}: {path}: {text}"
        for path, outcome, text in models.outcomes(models.found(models.FOLDER))
        if outcome not in models.GOOD
    ]
    assert not wrong, "\n".join(wrong)

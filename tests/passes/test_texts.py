"""Each pass of the pipeline, text in, text out: what it rewrites, and what it does not change."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.passes.texts import after, assert_becomes, assert_stays

CONVOLUTION = """
%0: float32[1, 6, 6, 4]
%1: float32[4, 3, 3, 4] = const splat(1)
inputs %0
%2: float32[1, 6, 6, 4] = conv2d(%0, %1) op=CONV_2D node=0
"""


# keep_half_constants


def test_half_constant_is_read_as_it_is():
    before = """
    %0: float32[4]
    %1: float16[4] = const [1, 2, 3, 4]
    inputs %0
    %2: float32[4] = dequantize(%1) {half=true} op=DEQUANTIZE node=0
    %3: float32[4] = add(%0, %2) op=ADD node=1
    outputs %3
    """
    expected = """
    %0: float32[4]
    %1: float16[4] = const [1, 2, 3, 4]
    %2: float32[4] = const float16 [1, 2, 3, 4]
    inputs %0
    %3: float32[4] = add(%0, %2) op=ADD node=1
    outputs %3
    step keep_half_constants applied node=0
    """
    assert_becomes(before, "keep_half_constants", expected)


@pytest.mark.parametrize(
    ("kind", "node"),
    [
        ("bfloat16", "dequantize(%1) {half=true} op=DEQUANTIZE"),
        ("bfloat16", "cast(%1) op=CAST"),
        ("float16", "cast(%1) op=CAST"),
    ],
)
def test_constant_of_16_bits_is_read_as_it_is(kind, node):
    before = f"""
    %0: float32[4]
    %1: {kind}[4] = const [1, 2, 3, 4]
    inputs %0
    %2: float32[4] = {node} node=0
    %3: float32[4] = add(%0, %2) op=ADD node=1
    outputs %3
    """
    expected = f"""
    %0: float32[4]
    %1: {kind}[4] = const [1, 2, 3, 4]
    %2: float32[4] = const {kind} [1, 2, 3, 4]
    inputs %0
    %3: float32[4] = add(%0, %2) op=ADD node=1
    outputs %3
    step keep_half_constants applied node=0
    """
    assert_becomes(before, "keep_half_constants", expected)


def test_halves_that_are_no_constant_stay():
    before = """
    %0: float16[4]
    inputs %0
    %1: float32[4] = dequantize(%0) {half=true} op=DEQUANTIZE node=0
    outputs %1
    """
    declined = 'keep_half_constants declined node=0 "its input is not a constant"'
    assert_stays(before, "keep_half_constants", declined)


# fuse_instance_norm

NORMALISATION = """
%0: float32[1, 8, 8, 4]
%1: int32[2] = const [1, 2]
%2: float32[1] = const [0.001]
inputs %0
%3: float32[1, 1, 1, 4] = reduce(%0, %1) {op=mean, axes=[1, 2], keep_dims=true} op=MEAN node=0
%4: float32[1, 8, 8, 4] = binary(%0, %3) {op=squared_difference} op=SQUARED_DIFFERENCE node=1
%5: float32[1, 1, 1, 4] = reduce(%4, %1) {op=mean, axes=[1, 2], keep_dims=true} op=MEAN node=2
%6: float32[1, 1, 1, 4] = add(%5, %2) op=ADD node=3
%7: float32[1, 1, 1, 4] = unary(%6) {op=rsqrt} op=RSQRT node=4
%8: float32[1, 8, 8, 4] = binary(%0, %3) {op=sub} op=SUB node=5
%9: float32[1, 8, 8, 4] = binary(%8, %7) {op=mul} op=MUL node=6
outputs %9
"""


def test_normalisation_becomes_one_node():
    expected = """
    %0: float32[1, 8, 8, 4]
    %1: int32[2] = const [1, 2]
    %2: float32[1] = const [0.001]
    inputs %0
    %9: float32[1, 8, 8, 4] = instance_norm(%0, -, -) {epsilon=0.001} op=MUL node=6
    outputs %9
    step fuse_instance_norm applied node=5 into=6
    step fuse_instance_norm applied node=4 into=6
    step fuse_instance_norm applied node=3 into=6
    step fuse_instance_norm applied node=2 into=6
    step fuse_instance_norm applied node=1 into=6
    step fuse_instance_norm applied node=0 into=6
    """
    assert_becomes(NORMALISATION, "fuse_instance_norm", expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[0.001]", "[0]"),  # a flat image would have no result
        ("axes=[1, 2]", "axes=[1]"),  # of the rows alone
        ("op=squared_difference", "op=mul"),
    ],
)
def test_what_is_not_quite_a_normalisation_stays(old, new):
    assert old in NORMALISATION
    assert_stays(NORMALISATION.replace(old, new), "fuse_instance_norm")


# fuse_layer_norm


def over_rows(text: str) -> str:
    return text.replace("[1, 1, 1, 4]", "[1, 8, 8, 1]").replace("axes=[1, 2]", "axes=[-1]")


def test_normalisation_of_rows_becomes_one_node():
    expected = """
    %0: float32[1, 8, 8, 4]
    %1: int32[2] = const [1, 2]
    %2: float32[1] = const [0.001]
    inputs %0
    %9: float32[1, 8, 8, 4] = layer_norm(%0, -, -) {epsilon=0.001} op=MUL node=6
    outputs %9
    step fuse_layer_norm applied node=5 into=6
    step fuse_layer_norm applied node=4 into=6
    step fuse_layer_norm applied node=3 into=6
    step fuse_layer_norm applied node=2 into=6
    step fuse_layer_norm applied node=1 into=6
    step fuse_layer_norm applied node=0 into=6
    """
    assert_becomes(over_rows(NORMALISATION), "fuse_layer_norm", expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[0.001]", "[0]"),
        ("axes=[-1]", "axes=[2]"),
        ("axes=[-1], keep_dims=true", "axes=[-1]"),
        ("op=squared_difference", "op=mul"),
    ],
)
def test_what_is_not_quite_a_normalisation_of_rows_stays(old, new):
    rows = over_rows(NORMALISATION)
    assert old in rows
    assert_stays(rows.replace(old, new), "fuse_layer_norm")


def test_normalisations_stay_where_their_parts_are_named():
    result = after(over_rows(NORMALISATION), "fuse_layer_norm", norms=False)
    assert "layer_norm(" not in result
    assert "the option engines names a kernel of its parts" in result


# fuse_rms_norm

ROWS = """
%0: float32[2, 3, 8]
%1: int32[1] = const [-1]
%2: float32[1] = const [1e-06]
%3: float32[8] = const [1, 2, 3, 4, 5, 6, 7, 8]
inputs %0
%4: float32[2, 3, 8] = binary(%0, %0) {op=mul} op=MUL node=0
%5: float32[2, 3, 1] = reduce(%4, %1) {op=mean, axes=[-1], keep_dims=true} op=MEAN node=1
%6: float32[2, 3, 1] = add(%5, %2) op=ADD node=2
%7: float32[2, 3, 1] = unary(%6) {op=rsqrt} op=RSQRT node=3
%8: float32[2, 3, 8] = binary(%0, %7) {op=mul} op=MUL node=4
%9: float32[2, 3, 8] = binary(%8, %3) {op=mul} op=MUL node=5
outputs %9
"""


def test_rows_over_the_roots_of_their_mean_squares_become_one_node():
    expected = """
    %0: float32[2, 3, 8]
    %3: float32[8] = const [1, 2, 3, 4, 5, 6, 7, 8]
    inputs %0
    %9: float32[2, 3, 8] = composite(%0, %3) {kind=rms_norm, epsilon=1e-06} op=MUL node=5
    outputs %9
    step fuse_rms_norm applied node=4 into=5
    step fuse_rms_norm applied node=3 into=5
    step fuse_rms_norm applied node=2 into=5
    step fuse_rms_norm applied node=1 into=5
    step fuse_rms_norm applied node=0 into=5
    """
    unused = "%1: int32[1] = const [-1]\n%2: float32[1] = const [1e-06]\n"
    assert_becomes(ROWS, "fuse_rms_norm", unused + expected)
    squared = ROWS.replace("binary(%0, %0) {op=mul} op=MUL", "unary(%0) {op=square} op=SQUARE")
    assert_becomes(squared, "fuse_rms_norm", unused + expected)


def test_sum_divided_by_the_columns_and_a_new_shape_are_a_mean_of_rows():
    before = """
    %0: float32[2, 8]
    %1: int32[1] = const [1]
    %2: float32[] = const [0.125]
    %3: float32[1] = const [1e-06]
    %4: int32[2] = const [2, 1]
    inputs %0
    %5: float32[2, 8] = unary(%0) {op=square} op=SQUARE node=0
    %6: float32[2] = reduce(%5, %1) {axes=[1]} op=SUM node=1
    %7: float32[2] = binary(%6, %2) {op=mul} op=MUL node=2
    %8: float32[2] = add(%3, %7) op=ADD node=3
    %9: float32[2, 1] = reshape(%8, %4) {values=[2, 1]} op=RESHAPE node=4
    %10: float32[2, 1] = unary(%9) {op=rsqrt} op=RSQRT node=5
    %11: float32[2, 8] = binary(%10, %0) {op=mul} op=MUL node=6
    outputs %11
    """
    got = after(before, "fuse_rms_norm")
    assert "composite(%0) {kind=rms_norm, epsilon=1e-06} op=MUL node=6" in got
    assert got.count("step fuse_rms_norm applied") == 6


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("const [1e-06]", "const [0]"),  # rows of zeros would have no result
        ("axes=[-1]", "axes=[1]"),
        ("{op=mean, axes", "{op=sum, axes"),  # not divided by the columns
        ("%8: float32[2, 3, 8] = binary(%0, %7) {op=mul}", "%8: float32[2, 3, 8] = add(%0, %7)"),
        ("binary(%0, %0) {op=mul}", "binary(%0, %3) {op=mul}"),
        ("op=MUL node=4", "op=MUL node=4 activation=relu"),
    ],
)
def test_what_is_not_quite_a_norm_of_rows_stays(old, new):
    assert old in ROWS
    before = ROWS.replace(old, new)
    if "axes=[1]" in new:
        before = before.replace("[2, 3, 1]", "[2, 1, 8]")
    assert_stays(before, "fuse_rms_norm")


def test_weight_with_more_axes_than_the_rows_stays_a_product():
    before = ROWS.replace("%3: float32[8]", "%3: float32[1, 1, 1, 8]")
    got = after(before.replace("%9: float32[2,", "%9: float32[1, 2,"), "fuse_rms_norm")
    assert "composite(%0) {kind=rms_norm" in got
    assert "%9: float32[1, 2, 3, 8] = binary(%8, %3) {op=mul}" in got


def test_norm_of_rows_leaves_what_others_read():
    before = ROWS.replace("outputs %9", "outputs %9, %7")
    got = after(before, "fuse_rms_norm")
    assert "kind=rms_norm" in got
    assert got.count("step fuse_rms_norm applied") == 1
    assert "op=RSQRT" in got


# fuse_rotation

ROTATION = """
%0: float32[1, 3, 2, 4]
%1: float32[1, 3, 1, 2]
%2: float32[1, 3, 1, 2]
%3: int32[4] = const [0, 0, 0, 0]
%4: int32[4] = const [0, 0, 0, 2]
%5: int32[4] = const [1, 3, 2, 2]
inputs %0, %1, %2
%6: float32[1, 3, 2, 2] = strided_slice(%0, %3, %5) {strided=false, \
rules=[{kind=range, size=1}, {kind=range, size=3}, {kind=range, size=2}, \
{kind=range, size=2}]} op=SLICE node=0
%7: float32[1, 3, 2, 2] = strided_slice(%0, %4, %5) {strided=false, \
rules=[{kind=range, size=1}, {kind=range, size=3}, {kind=range, size=2}, \
{kind=range, begin=2, size=2}]} op=SLICE node=1
%8: float32[1, 3, 2, 2] = binary(%6, %1) {op=mul} op=MUL node=2
%9: float32[1, 3, 2, 2] = binary(%7, %2) {op=mul} op=MUL node=3
%10: float32[1, 3, 2, 2] = binary(%8, %9) {op=sub} op=SUB node=4
%11: float32[1, 3, 2, 2] = binary(%7, %1) {op=mul} op=MUL node=5
%12: float32[1, 3, 2, 2] = binary(%6, %2) {op=mul} op=MUL node=6
%13: float32[1, 3, 2, 2] = add(%11, %12) op=ADD node=7
%14: float32[1, 3, 2, 4] = concatenation(%10, %13) {axis=3} op=CONCATENATION node=8
outputs %14
""".replace("\\\n", "")


def test_turned_halves_become_one_node():
    head = ROTATION.split("%6:", maxsplit=1)[0]
    steps = "".join(f"step fuse_rotation applied node={i} into=8\n" for i in range(7, -1, -1))
    expected = f"""
    {head}
    %14: float32[1, 3, 2, 4] = rotate(%0, %1, %2) op=CONCATENATION node=8
    outputs %14
    {steps}
    """
    assert_becomes(ROTATION, "fuse_rotation", expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("binary(%8, %9) {op=sub}", "binary(%9, %8) {op=sub}"),  # turned the other way
        ("{op=sub} op=SUB", "{op=mul} op=MUL"),
        ("binary(%6, %2)", "binary(%6, %1)"),
        ("binary(%7, %1)", "binary(%6, %1)"),
        ("concatenation(%10, %13)", "concatenation(%13, %10)"),
        ("{kind=range, begin=2, size=2}", "{kind=range, begin=1, size=2}"),
        ("op=ADD node=7", "op=ADD node=7 activation=relu"),
    ],
)
def test_what_is_not_quite_a_rotation_stays(old, new):
    assert old in ROTATION
    assert_stays(ROTATION.replace(old, new), "fuse_rotation")


TURNED = ROTATION.replace("inputs %0, %1, %2\n", "inputs %0, %1, %2, %15, %16\n").replace(
    "outputs %14",
    "%17: float32[1, 9, 2, 4] = dynamic_update_slice(%15, %14, %16) "
    "op=DYNAMIC_UPDATE_SLICE node=9\noutputs %17",
)
TURNED = "%15: float32[1, 9, 2, 4]\n%16: int32[4]\n" + TURNED


def test_turned_halves_are_written_to_a_cache_by_the_same_node():
    text = after(TURNED, "fuse_rotation")
    assert "= rotate.update(%15, %0, %16, %1, %2) op=DYNAMIC_UPDATE_SLICE node=9" in text
    assert "step fuse_rotation applied node=8 into=9" in text
    assert "= rotate(" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("outputs %17", "outputs %14, %17"),  # others read them
        # The cache is turned, not its update.
        ("dynamic_update_slice(%15, %14, %16)", "dynamic_update_slice(%14, %15, %16)"),
        ("[1, 9, 2, 4]", "[1, 9, 2, 6]"),  # a part of each row of the cache
    ],
)
def test_turned_halves_stay_apart_from_another_update(old, new):
    assert old in TURNED
    text = after(TURNED.replace(old, new), "fuse_rotation")
    assert "= rotate(%0, %1, %2)" in text
    assert "= dynamic_update_slice(" in text


# fuse_attention

ATTENTION = """
%0: float32[1, 3, 12]
%1: float32[1, 5, 2, 2]
%2: float32[1, 5, 2, 2]
%3: float32[1, 1, 3, 5]
%4: int32[4] = const [3, 2, 3, 2]
%5: int32[4] = const [1, 2, 0, 3]
%6: int32[4] = const [1, 2, 9, 2]
%7: int32[4] = const [0, 2, 1, 3]
%8: float32[1] = const [0.5]
%9: int32[4] = const [1, 6, 3, 5]
%10: int32[4] = const [1, 2, 9, 5]
%11: int32[4] = const [1, 6, 3, 2]
%12: int32[3] = const [1, 3, 12]
inputs %0, %1, %2, %3
%20: float32[3, 2, 3, 2] = reshape(%0, %4) {values=[3, 2, 3, 2]} op=RESHAPE node=0
%21: float32[2, 3, 3, 2] = transpose(%20, %5) {perm=[1, 2, 0, 3]} op=TRANSPOSE node=1
%22: float32[1, 2, 9, 2] = reshape(%21, %6) {values=[1, 2, 9, 2]} op=RESHAPE node=2
%23: float32[1, 2, 5, 2] = transpose(%1, %7) {perm=[0, 2, 1, 3]} op=TRANSPOSE node=3
%24: float32[1, 2, 5, 2] = transpose(%2, %7) {perm=[0, 2, 1, 3]} op=TRANSPOSE node=4
%25: float32[1, 2, 9, 5] = batch_matmul(%22, %23) {adj_y=true} op=BATCH_MATMUL node=5
%26: float32[1, 2, 9, 5] = binary(%25, %8) {op=mul} op=MUL node=6
%27: float32[1, 6, 3, 5] = reshape(%26, %9) {values=[1, 6, 3, 5]} op=RESHAPE node=7
%28: float32[1, 6, 3, 5] = add(%27, %3) op=ADD node=8
%29: float32[1, 6, 3, 5] = softmax(%28) {beta=1} op=SOFTMAX node=9
%30: float32[1, 2, 9, 5] = reshape(%29, %10) {values=[1, 2, 9, 5]} op=RESHAPE node=10
%31: float32[1, 2, 9, 2] = batch_matmul(%30, %24) op=BATCH_MATMUL node=11
%32: float32[1, 6, 3, 2] = reshape(%31, %11) {values=[1, 6, 3, 2]} op=RESHAPE node=12
%33: float32[1, 3, 6, 2] = transpose(%32, %7) {perm=[0, 2, 1, 3]} op=TRANSPOSE node=13
%34: float32[1, 3, 12] = reshape(%33, %12) {values=[1, 3, 12]} op=RESHAPE node=14
outputs %34
"""


def test_products_around_a_softmax_become_attention():
    """Heads share keys; queries become the rows of a matrix and back."""
    head = ATTENTION.split("%20:", maxsplit=1)[0]
    merged = (12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
    steps = "".join(f"step fuse_attention applied node={node} into=13\n" for node in merged)
    expected = f"""
    {head}
    %35: float32[1, 3, 6, 2] = reshape(%0) {{values=[1, 3, 6, 2]}} op=TRANSPOSE node=13
    %33: float32[1, 3, 6, 2] = composite(%35, %1, %2, %3) {{scale=0.5}} op=TRANSPOSE node=13
    %34: float32[1, 3, 12] = reshape(%33, %12) {{values=[1, 3, 12]}} op=RESHAPE node=14
    outputs %34
    {steps}
    """
    assert_becomes(ATTENTION, "fuse_attention", expected)


def test_factor_of_the_queries_and_missing_mask():
    before = (
        ATTENTION.replace("batch_matmul(%22, %23)", "batch_matmul(%26, %23)")
        .replace("%25: float32[1, 2, 9, 5]", "%40: float32[1, 2, 9, 5]")
        .replace("%26: float32[1, 2, 9, 5] = binary(%25, %8)", "SCALED")
        .replace("reshape(%26, %9)", "reshape(%40, %9)")
        .replace("softmax(%28)", "softmax(%27)")
    )
    lines = [line for line in before.splitlines() if "SCALED" not in line and "node=8" not in line]
    at = next(i for i, line in enumerate(lines) if line.startswith("%23"))
    lines.insert(at, "%26: float32[1, 2, 9, 2] = binary(%8, %22) {op=mul} op=MUL node=6")
    got = after("\n".join(lines), "fuse_attention")
    assert "composite(%41, %1, %2) {scale=0.5} op=TRANSPOSE node=13" in got


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"outputs %34": "outputs %34, %27"},
            "other nodes read the scores, or have an activation of them",
        ),
        (
            {"outputs %34": "outputs %34, %29"},
            "its result has other readers than one product of matrices",
        ),
        (
            {"op=BATCH_MATMUL node=11": "op=BATCH_MATMUL node=11 activation=relu"},
            "the product with the values has an activation",
        ),
        # The keys lie between the elements of a head.
        (
            {
                "%1: float32[1, 5, 2, 2]": "%1: float32[1, 2, 2, 5]",
                "%23: float32[1, 2, 5, 2] = transpose(%1, %7) {perm=[0, 2, 1, 3]}": (
                    "%23: float32[1, 2, 2, 5] = transpose(%1, %7) {perm=[0, 2, 1, 3]}"
                ),
                "{adj_y=true} op=BATCH_MATMUL": "op=BATCH_MATMUL",
            },
            "no kernel has its order of axes",
        ),
    ],
)
def test_other_attention_stays(changes, reason):
    before = ATTENTION
    for old, new in changes.items():
        assert old in before
        before = before.replace(old, new)
    assert_stays(before, "fuse_attention", f'fuse_attention declined node=9 "{reason}"')


def test_mask_that_is_scaled_stays():
    """The kernel adds the mask as it is."""
    before = ATTENTION.replace("{beta=1}", "{beta=2}")
    assert_stays(before, "fuse_attention")


# fuse_swish

SWISH = """
%0: float32[2, 3]
inputs %0
%1: float32[2, 3] = unary(%0) op=LOGISTIC node=0 activation=sigmoid
%2: float32[2, 3] = binary(%0, %1) {op=mul} op=MUL node=1
outputs %2
"""


def test_product_with_the_sigmoid_is_an_activation():
    expected = """
    %0: float32[2, 3]
    inputs %0
    %2: float32[2, 3] = unary(%0) op=MUL node=1 activation=swish
    outputs %2
    step fuse_swish applied node=0 into=1
    """
    assert_becomes(SWISH, "fuse_swish", expected)
    assert_becomes(SWISH.replace("(%0, %1)", "(%1, %0)"), "fuse_swish", expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("activation=sigmoid", "activation=tanh"),
        ("{op=mul} op=MUL", "{op=sub} op=SUB"),
        ("(%0, %1)", "(%1, %1)"),
        ("op=MUL node=1", "op=MUL node=1 activation=relu"),
    ],
)
def test_other_products_of_activations_stay(old, new):
    assert old in SWISH
    assert_stays(SWISH.replace(old, new), "fuse_swish")


HARD_SWISH = """
%0: float32[2, 3]
%1: float32[] = const [3]
%2: float32[] = const [0.16666667]
inputs %0
%3: float32[2, 3] = add(%0, %1) op=ADD node=0 activation=relu6
%4: float32[2, 3] = binary(%0, %3) {op=mul} op=MUL node=1
%5: float32[2, 3] = binary(%4, %2) {op=mul} op=MUL node=2
outputs %5
"""

SIXTH_FIRST = """
%4: float32[2, 3] = binary(%2, %3) {op=mul} op=MUL node=1
%5: float32[2, 3] = binary(%4, %0) {op=mul} op=MUL node=2
outputs %5
"""

DIVIDED = """
%6: float32[2, 3] = unary(%3) op=RELU6 node=3 activation=relu6
%4: float32[2, 3] = binary(%6, %0) {op=mul} op=MUL node=1
%5: float32[2, 3] = binary(%4, %2) {op=div} op=DIV node=2
outputs %5
"""


def test_spelled_hard_swish_is_an_activation():
    head = HARD_SWISH.partition("%4")[0]
    plain = head.replace(" activation=relu6", "").replace("0.16666667", "6")
    for before in (HARD_SWISH, head + SIXTH_FIRST, plain + DIVIDED):
        result = after(before, "fuse_swish", "remove_dead")
        node = [line for line in result.splitlines() if line.startswith("%5")]
        assert len(node) == 1
        assert "= unary(%0) op=" in node[0]
        assert "activation=hard_swish" in node[0]
        assert "binary" not in result
        assert "add" not in result


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("const [3]", "const [2.5]"),
        ("0.16666667", "0.1666"),
        ("activation=relu6", "activation=relu"),
        ("(%0, %3)", "(%3, %3)"),
        ("(%0, %3) {op=mul} op=MUL node=1", "(%0, %3) {op=mul} op=MUL node=1 activation=relu"),
        ("op=MUL node=2", "op=MUL node=2 activation=relu"),
        ("(%4, %2) {op=mul}", "(%4, %2) {op=sub}"),
    ],
)
def test_what_is_not_quite_a_hard_swish_stays(old, new):
    assert old in HARD_SWISH
    assert_stays(HARD_SWISH.replace(old, new), "fuse_swish")


# fuse_squeeze_excite

GATE = """
%0: float32[1, 8, 8, 4]
%1: int32[2] = const [1, 2]
%2: float32[2, 1, 1, 4] = const splat(1)
%3: float32[4, 1, 1, 2] = const splat(1)
inputs %0
%4: float32[1, 1, 1, 4] = reduce(%0, %1) {op=mean, axes=[1, 2], keep_dims=true} op=MEAN node=0
%5: float32[1, 1, 1, 2] = conv2d(%4, %2) op=CONV_2D node=1 activation=relu
%6: float32[1, 1, 1, 4] = conv2d(%5, %3) op=CONV_2D node=2 activation=sigmoid
%7: float32[1, 8, 8, 4] = binary(%0, %6) {op=mul} op=MUL node=3
outputs %7
"""
CPU = {"device": "cpu", "local_bytes": 32768}


def test_gate_of_an_image_becomes_one_node():
    expected = """
    %0: float32[1, 8, 8, 4]
    %1: int32[2] = const [1, 2]
    %2: float32[2, 1, 1, 4] = const splat(1)
    %3: float32[4, 1, 1, 2] = const splat(1)
    inputs %0
    %7: float32[1, 8, 8, 4] = squeeze_excite(%0, -, %2, -, %3, -, -) {hidden=relu, gate=sigmoid} op=MUL node=3
    outputs %7
    step fuse_squeeze_excite applied node=2 into=3
    step fuse_squeeze_excite applied node=1 into=3
    step fuse_squeeze_excite applied node=0 into=3
    """  # noqa: E501
    assert_becomes(GATE, "fuse_squeeze_excite", expected, **CPU)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("outputs %7", "outputs %7, %6"),
        ("outputs %7", "outputs %7, %4"),
        ("axes=[1, 2]", "axes=[1]"),
        ("activation=sigmoid", "activation=leaky_relu alpha=0.1"),
        ("{op=mul} op=MUL", "{op=sub} op=SUB"),
    ],
)
def test_what_is_not_quite_a_gate_stays(old, new):
    assert old in GATE
    assert_stays(GATE.replace(old, new), "fuse_squeeze_excite", **CPU)


def test_gates_of_many_products_stay():
    wide = GATE.replace("[2, 1, 1, 4]", "[40000, 1, 1, 4]").replace("1, 1, 2]", "1, 1, 40000]")
    wide = wide.replace("%5: float32[1, 1, 1, 2]", "%5: float32[1, 1, 1, 40000]")
    declined = (
        'fuse_squeeze_excite declined node=3 "a launch for each node is expected to be faster on '
        'this device"'
    )
    assert declined in after(wide, "fuse_squeeze_excite", **CPU)


def test_gates_stay_where_their_parts_are_named():
    result = after(GATE, "fuse_squeeze_excite", gates=False, **CPU)
    assert "squeeze_excite(" not in result
    assert "with a memory budget, or as the option engines names a kernel of its parts" in result


# fuse_activation


def test_activation_moves_into_the_node_before_it():
    before = (
        CONVOLUTION
        + """
    %3: float32[1, 6, 6, 4] = unary(%2) op=LEAKY_RELU node=1 activation=leaky_relu alpha=0.1
    outputs %3
    """
    )
    expected = """
    %0: float32[1, 6, 6, 4]
    %1: float32[4, 3, 3, 4] = const splat(1)
    inputs %0
    %3: float32[1, 6, 6, 4] = conv2d(%0, %1) op=CONV_2D node=0 activation=leaky_relu alpha=0.1
    outputs %3
    step fuse_activation applied node=1 into=0
    """
    assert_becomes(before, "fuse_activation", expected)


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (
            """
            %3: float32[1, 6, 6, 4] = unary(%2) op=RELU node=1 activation=relu
            %4: float32[1, 6, 6, 4] = unary(%2) {op=abs} op=ABS node=2
            outputs %3, %4
            """,
            "other nodes read its input",
        ),
        (
            """
            %3: float32[1, 6, 6, 4] = unary(%2) op=RELU node=1 activation=relu
            outputs %2, %3
            """,
            "its input is a result of the partition",
        ),
    ],
)
def test_activation_of_what_is_needed_as_it_is_stays(rest, reason):
    assert_stays(
        CONVOLUTION + rest, "fuse_activation", f'fuse_activation declined node=1 "{reason}"'
    )


def test_second_activation_stays():
    before = (
        CONVOLUTION.replace("node=0", "node=0 activation=relu")
        + """
    %3: float32[1, 6, 6, 4] = unary(%2) op=TANH node=1 activation=tanh
    outputs %3
    """
    )
    reason = "the node before it has an activation already"
    assert_stays(before, "fuse_activation", f'fuse_activation declined node=1 "{reason}"')


# fuse_lookup

TABLED = """
%0: int8[1, 6, 6, 4] quantized(0.5, 0)
%1: int8[4, 3, 3, 4] quantized(0.25, 0) = const splat(1)
inputs %0
%2: int8[1, 6, 6, 4] quantized(0.5, 3) = conv2d(%0, %1) op=CONV_2D node=0
%3: int8[1, 6, 6, 4] quantized(0.00390625, -128) = unary(%2) {table={builtin=14}} op=LOGISTIC node=1
outputs %3
"""


def logistic_table() -> str:
    """The table of TABLED's function, as the reference kernel computes it."""
    stored = np.arange(256).astype(np.int8).astype(np.float64)
    real = 1 / (1 + np.exp(-0.5 * (stored - 3)))
    return np.clip(np.round(real * 256) - 128, -128, 127).astype(np.int8).tobytes().hex()


def test_table_moves_into_the_product_before_it():
    expected = f"""
    %0: int8[1, 6, 6, 4] quantized(0.5, 0)
    %1: int8[4, 3, 3, 4] quantized(0.25, 0) = const splat(1)
    inputs %0
    %3: int8[1, 6, 6, 4] quantized(0.00390625, -128) = conv2d(%0, %1) op=CONV_2D node=0 \
        tail(own=quantized(0.5, 3), table=hex({logistic_table()}), \
             looked_up=quantized(0.00390625, -128))
    outputs %3
    step fuse_lookup applied node=1 into=0
    """
    assert_becomes(TABLED, "fuse_lookup", expected)


def test_table_of_a_result_of_the_partition_stays():
    before = TABLED.replace("outputs %3", "outputs %2, %3")
    declined = 'fuse_lookup declined node=1 "its input is a result of the partition"'
    assert_stays(before, "fuse_lookup", declined)


# fuse_residual


def test_addition_moves_into_the_convolution_before_it():
    before = (
        CONVOLUTION
        + """
    %3: float32[1, 6, 6, 4] = add(%2, %0) op=ADD node=1 activation=relu
    outputs %3
    """
    )
    expected = """
    %0: float32[1, 6, 6, 4]
    %1: float32[4, 3, 3, 4] = const splat(1)
    inputs %0
    %3: float32[1, 6, 6, 4] = conv2d(%0, %1, -, %0) op=CONV_2D node=0 activation=relu
    outputs %3
    step fuse_residual applied node=1 into=0
    """
    assert_becomes(before, "fuse_residual", expected)


def test_addition_of_integers_moves_into_the_tail():
    before = """
    %0: int8[1, 6, 6, 4] quantized(0.5, 0)
    %1: int8[4, 3, 3, 4] quantized(0.25, 0) = const splat(1)
    inputs %0
    %2: int8[1, 6, 6, 4] quantized(0.5, 3) = conv2d(%0, %1) op=CONV_2D node=0
    %3: int8[1, 6, 6, 4] quantized(1, 0) = add(%2, %0) {quantized=true} op=ADD node=1
    outputs %3
    """
    expected = """
    %0: int8[1, 6, 6, 4] quantized(0.5, 0)
    %1: int8[4, 3, 3, 4] quantized(0.25, 0) = const splat(1)
    inputs %0
    %3: int8[1, 6, 6, 4] quantized(1, 0) = conv2d(%0, %1, -, %0) op=CONV_2D node=0 \
        tail(own=quantized(0.5, 3), sum=quantized(1, 0))
    outputs %3
    step fuse_residual applied node=1 into=0
    """
    assert_becomes(before, "fuse_residual", expected)


def test_addition_behind_an_activation_stays():
    before = (
        CONVOLUTION.replace("node=0", "node=0 activation=relu6")
        + """
    %3: float32[1, 6, 6, 4] = add(%2, %0) op=ADD node=1
    outputs %3
    """
    )
    declined = (
        'fuse_residual declined node=1 "input 0: CONV_2D (node 0) has an activation; '
        'input 1: no node of the partition computes it"'
    )
    assert_stays(before, "fuse_residual", declined)


# fuse_prelu

SLOPED = """
%0: float32[1, 6, 6, 4]
%1: float32[4, 3, 3, 4] = const splat(1)
%2: float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]
inputs %0
%3: float32[1, 6, 6, 4] = conv2d(%0, %1) op=CONV_2D node=0
%4: float32[1, 6, 6, 4] = binary(%3, %2) {op=prelu} op=PRELU node=1
outputs %4
"""
SLOPED_CONVOLUTION = """
%0: float32[1, 6, 6, 4]
%1: float32[4, 3, 3, 4] = const splat(1)
%2: float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]
inputs %0
%5: float32[4] = const [0.5, 0.25, 0.125, 2]
%4: float32[1, 6, 6, 4] = conv2d(%0, %1, -, -, %5) op=CONV_2D node=0 activation=prelu
outputs %4
step fuse_prelu applied node=1 into=0
"""


def test_prelu_moves_into_the_convolution_before_it():
    assert_becomes(SLOPED, "fuse_prelu", SLOPED_CONVOLUTION)


def test_prelu_of_one_slope_is_a_leaky_relu():
    before = SLOPED.replace("[1, 1, 4] = const [0.5, 0.25, 0.125, 2]", "[1] = const [0.5]")
    expected = """
    %0: float32[1, 6, 6, 4]
    %1: float32[4, 3, 3, 4] = const splat(1)
    %2: float32[1] = const [0.5]
    inputs %0
    %4: float32[1, 6, 6, 4] = conv2d(%0, %1) op=CONV_2D node=0 activation=leaky_relu alpha=0.5
    outputs %4
    step fuse_prelu applied node=1 into=0
    """
    assert_becomes(before, "fuse_prelu", expected)


def test_addition_moves_in_behind_prelu():
    before = SLOPED.replace(
        "outputs %4", "%5: float32[1, 6, 6, 4] = add(%0, %4) op=ADD node=2\noutputs %5"
    )
    expected = """
    %0: float32[1, 6, 6, 4]
    %1: float32[4, 3, 3, 4] = const splat(1)
    %2: float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]
    inputs %0
    %6: float32[4] = const [0.5, 0.25, 0.125, 2]
    %5: float32[1, 6, 6, 4] = conv2d(%0, %1, -, %0, %6) op=CONV_2D node=0 activation=prelu \
        residual_after
    outputs %5
    step fuse_prelu applied node=1 into=0
    step fuse_residual applied node=2 into=0
    """
    assert_becomes(before, "fuse_prelu fuse_residual", expected)


def test_addition_with_an_activation_stays_behind_prelu():
    before = SLOPED.replace(
        "outputs %4",
        "%5: float32[1, 6, 6, 4] = add(%0, %4) op=ADD node=2 activation=relu\noutputs %5",
    )
    declined = (
        'step fuse_residual declined node=2 "input 0: no node of the partition computes it; '
        'input 1: CONV_2D (node 0) has an activation"'
    )
    assert declined in after(before, "fuse_prelu", "fuse_residual")


def test_prelu_behind_an_addition_moves_into_the_convolution():
    before = SLOPED.replace(
        "%4: float32[1, 6, 6, 4] = binary(%3, %2) {op=prelu} op=PRELU node=1",
        "%4: float32[1, 6, 6, 4] = add(%3, %0) op=ADD node=1\n"
        "%5: float32[1, 6, 6, 4] = binary(%4, %2) {op=prelu} op=PRELU node=2",
    ).replace("outputs %4", "outputs %5")
    expected = """
    %0: float32[1, 6, 6, 4]
    %1: float32[4, 3, 3, 4] = const splat(1)
    %2: float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]
    inputs %0
    %6: float32[4] = const [0.5, 0.25, 0.125, 2]
    %5: float32[1, 6, 6, 4] = conv2d(%0, %1, -, %0, %6) op=CONV_2D node=0 activation=prelu
    outputs %5
    step fuse_residual applied node=1 into=0
    step fuse_prelu applied node=2 into=0
    """
    assert_becomes(before, "fuse_residual fuse_prelu", expected)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("outputs %4", "outputs %3, %4", "its input is a result of the partition"),
        (
            "outputs %4",
            "%5: float32[1, 6, 6, 4] = unary(%3) {op=abs} op=ABS node=2\noutputs %4, %5",
            "other nodes read its input",
        ),
        ("node=0", "node=0 activation=relu", "the node before it has an activation already"),
        (
            "op=PRELU node=1",
            "op=PRELU node=1 activation=relu",
            "it has an activation of its own",
        ),
        (
            "float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]",
            "float32[6, 1, 4] = const omitted",
            "it has other slopes than one for all, or one for each channel",
        ),
        (
            "const [0.5, 0.25, 0.125, 2]",
            "const [0.5, 0.25, nan, 2]",
            "of its slopes: they are not all finite",
        ),
        (
            "conv2d(%0, %1) op=CONV_2D node=0",
            "unary(%0) {op=abs} op=ABS node=0",
            "the kernels of the node before it have no slopes",
        ),
        (
            "float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]\ninputs %0",
            "float32[1, 1, 4]\ninputs %0, %2",
            "of its slopes: they are no constant floats",
        ),
        (
            "= const splat(1)\n%2: float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]\ninputs %0",
            "\n%2: float32[1, 1, 4] = const [0.5, 0.25, 0.125, 2]\ninputs %0, %1",
            "the weights of the node before it are computed",
        ),
    ],
)
def test_prelu_that_stays(old, new, reason):
    assert SLOPED.count(old) == 1
    if "omitted" in new:
        new = new.replace("omitted", str([i / 8 for i in range(24)]))
    declined = f'fuse_prelu declined node=1 "{reason}"'
    assert_stays(SLOPED.replace(old, new), "fuse_prelu", declined)


# dynamic_range

INT8_WEIGHTS = """
%0: float32[2, 8] "x"
%1: int8[4, 8] "w" quantized([0.5, 1, 2, 4], 0) = const splat(3)
inputs %0
%2: float32[2, 4] = fully_connected(%0, %1) {depth=8} op=FULLY_CONNECTED node=0
outputs %2
"""
# Bits of 0.5, 1, 2 and 4.
SCALES = '%3: int32[16] "w scales" = const [1056964608, 1065353216, 1073741824, 1082130432' + (
    ", 0" * 12 + "]"
)


def test_weights_are_scaled():
    expected = f"""
    %0: float32[2, 8] "x"
    %1: int8[4, 8] "w" quantized([0.5, 1, 2, 4], 0) = const splat(3)
    {SCALES}
    inputs %0
    %2: float32[2, 4] = fully_connected(%0, %1, -, -, -, %3) {{depth=8}} op=FULLY_CONNECTED node=0
    outputs %2
    step dynamic_range applied node=0 "its weights are scaled"
    """
    assert_becomes(INT8_WEIGHTS, "dynamic_range", expected)


def test_input_is_quantised_row_by_row():
    expected = f"""
    %0: float32[2, 8] "x"
    %1: int8[4, 8] "w" quantized([0.5, 1, 2, 4], 0) = const splat(3)
    {SCALES}
    inputs %0
    %4: int8[] "x quantised" rank=2 quantized(1, 0), %5: int32[] "x factors" rank=2 \
        = quantize_rows(%0, %1) {{depth=8}} op=QUANTIZE node=0
    %2: float32[2, 4] = fully_connected(%4, %1, -, -, -, %3, %5) {{depth=8}} \
        op=FULLY_CONNECTED node=0
    outputs %2
    step dynamic_range applied node=0 "its input is quantised row by row"
    """
    assert_becomes(INT8_WEIGHTS, "dynamic_range", expected, dynamic_range="hybrid")


def test_weights_without_hybrid_arithmetic_are_scaled_only():
    before = INT8_WEIGHTS.replace("{depth=8}", "{allows_hybrid=false, depth=8}")
    expected = f"""
    %0: float32[2, 8] "x"
    %1: int8[4, 8] "w" quantized([0.5, 1, 2, 4], 0) = const splat(3)
    {SCALES}
    inputs %0
    %2: float32[2, 4] = fully_connected(%0, %1, -, -, -, %3) {{allows_hybrid=false, depth=8}} \
        op=FULLY_CONNECTED node=0
    outputs %2
    step dynamic_range declined node=0 "the reference kernels have no hybrid arithmetic for it"
    """
    assert_becomes(before, "dynamic_range", expected, dynamic_range="hybrid")


def test_weights_of_floats_stay():
    before = CONVOLUTION + "outputs %2"
    assert_stays(before, "dynamic_range", dynamic_range="hybrid")


# fuse_pad

PADDED = """
%0: float32[1, 6, 6, 4]
%1: int32[4, 2] = const [0, 0, 1, 2, 3, 4, 0, 0]
%2: float32[4, 3, 3, 4] = const splat(1)
inputs %0
%3: float32[1, 9, 13, 4] = pad(%0, %1) {before=[0, 1, 3, 0], after=[0, 2, 4, 0]} op=PAD node=0
%4: float32[1, 7, 11, 4] = conv2d(%3, %2) {geometry={padding=VALID}} op=CONV_2D node=1
outputs %4
"""


def test_padding_moves_into_the_convolution_behind_it():
    expected = """
    %0: float32[1, 6, 6, 4]
    %2: float32[4, 3, 3, 4] = const splat(1)
    inputs %0
    %4: float32[1, 7, 11, 4] = conv2d(%0, %2) {geometry={padding=VALID, extra_top=1, \
        extra_bottom=2, extra_left=3, extra_right=4}} op=CONV_2D node=1
    outputs %4
    step fuse_pad applied node=0 into=1
    """
    assert_becomes(PADDED, "fuse_pad remove_dead", expected)


def test_padding_in_front_of_another_padding_stays():
    before = PADDED.replace("padding=VALID", "padding=SAME")
    declined = 'fuse_pad declined node=0 "the reader CONV_2D (node 1) cannot have this border"'
    assert_stays(before, "fuse_pad", declined)


def test_padding_that_is_a_result_of_the_partition_stays():
    before = PADDED.replace("outputs %4", "outputs %3, %4")
    declined = 'fuse_pad declined node=0 "its result is a result of the partition"'
    assert_stays(before, "fuse_pad", declined)


def test_padding_that_another_node_reads_stays():
    before = PADDED.replace(
        "outputs %4",
        """
    %5: float32[1, 9, 13, 4] = unary(%3) {op=abs} op=ABS node=2
    outputs %4, %5
    """,
    )
    assert_stays(
        before,
        "fuse_pad",
        'fuse_pad declined node=0 "the reader ABS (node 2) cannot have this border"',
    )


@pytest.mark.parametrize(
    "attributes",
    [
        "{before=[0, 1, 3, 1], after=[0, 2, 4, 0]}",  # channels, too
        "{before=[0, 1, 3, 0], after=[0, 2, 4, 0], mode=symmetric}",
    ],
)
def test_padding_that_no_convolution_adds_stays(attributes):
    usual = "{before=[0, 1, 3, 0], after=[0, 2, 4, 0]}"
    assert usual in PADDED
    assert_stays(PADDED.replace(usual, attributes), "fuse_pad")


# fuse_separable

SEPARABLE = """
%0: float32[1, 64, 64, 8]
%1: float32[1, 3, 3, 8] = const splat(1)
%2: float32[16, 1, 1, 8] = const splat(1)
inputs %0
%3: float32[1, 64, 64, 8] = depthwise_conv2d(%0, %1) op=DEPTHWISE_CONV_2D node=0 activation=relu6
%4: float32[1, 64, 64, 16] = conv2d(%3, %2) op=CONV_2D node=1
outputs %4
"""


def test_depthwise_and_pointwise_become_one_node_where_that_pays():
    expected = """
    %0: float32[1, 64, 64, 8]
    %1: float32[1, 3, 3, 8] = const splat(1)
    %2: float32[16, 1, 1, 8] = const splat(1)
    inputs %0
    %4: float32[1, 64, 64, 16], %3: float32[1, 64, 64, 8] = separable_conv2d(%0, %1, -, %2, -) { \
            depthwise=<%3 = depthwise_conv2d(%0, %1) \
                op=DEPTHWISE_CONV_2D node=0 activation=relu6>, \
            pointwise=<%4 = conv2d(%3, %2) op=CONV_2D node=1>} \
        op=DEPTHWISE_CONV_2D node=0
    outputs %4
    step fuse_separable applied node=1 into=0
    """
    assert_becomes(SEPARABLE, "fuse_separable", expected, device="gpu")


INVERTED = """
%0: float32[1, 8, 8, 16]
%1: float32[40, 1, 1, 16] = const splat(1)
%2: float32[1, 3, 3, 40] = const splat(1)
%3: float32[24, 1, 1, 40] = const splat(1)
inputs %0
%4: float32[1, 8, 8, 40] = conv2d(%0, %1) op=CONV_2D node=0 activation=relu6
%5: float32[1, 8, 8, 40] = depthwise_conv2d(%4, %2) op=DEPTHWISE_CONV_2D node=1
%6: float32[1, 8, 8, 24] = conv2d(%5, %3) op=CONV_2D node=2
outputs %6
"""


def test_inverted_residual_blocks_of_halves_become_one_node_on_tensor_cores():
    expected = """
    half
    %0: float32[1, 8, 8, 16]
    %1: float32[40, 1, 1, 16] = const splat(1)
    %2: float32[1, 3, 3, 40] = const splat(1)
    %3: float32[24, 1, 1, 40] = const splat(1)
    inputs %0
    %6: float32[1, 8, 8, 24], %5: float32[1, 8, 8, 40], %4: float32[1, 8, 8, 40] = \
        separable_conv2d(%0, %2, -, %3, -, -, %1, -) { \
            depthwise=<%5 = depthwise_conv2d(%4, %2) op=DEPTHWISE_CONV_2D node=1>, \
            pointwise=<%6 = conv2d(%5, %3) op=CONV_2D node=2>, \
            expand=<%4 = conv2d(%0, %1) op=CONV_2D node=0 activation=relu6>} \
        op=CONV_2D node=0
    outputs %6
    step fuse_separable applied node=1 into=0
    step fuse_separable applied node=2 into=0
    """
    facts = {"device": "gpu", "mma_f16": True}
    assert_becomes("half\n" + INVERTED, "fuse_separable", expected, **facts)


def test_inverted_residual_block_whose_image_is_a_result_keeps_its_first_convolution():
    text = "half\n" + INVERTED.replace("outputs %6", "outputs %6, %4")
    found = after(text, "fuse_separable", device="gpu", mma_f16=True)
    assert "expand=" not in found
    assert "step fuse_separable applied node=2 into=1" in found


@pytest.mark.parametrize(("separable", "is_block"), [("as_pairs", False), ("as_blocks", True)])
def test_named_engines_decide_on_inverted_residual_blocks(separable, is_block):
    facts = {"device": "gpu", "mma_f16": True, "separable": separable}
    found = after("half\n" + INVERTED, "fuse_separable", **facts)
    assert ("expand=" in found) == is_block
    assert "separable_conv2d(" in found


def test_kernels_of_halves_do_not_count_where_results_are_computed_in_bands():
    reason = "two launches are expected to be faster on this device"
    step = f'fuse_separable declined node=2 "{reason}"'
    facts = {"device": "gpu", "mma_f16": True, "blocks": False}
    assert_stays("half\n" + INVERTED, "fuse_separable", step, **facts)


# fuse_pooling

POOLED = """
%0: float32[1, 9, 9, 8]
inputs %0
%1: float32[1, 9, 9, 8] = local_response_normalization(%0) {radius=2, bias=1, alpha=0.5, beta=0.75} op=LOCAL_RESPONSE_NORMALIZATION node=0
%2: float32[1, 4, 4, 8] = pool(%1) {kind=0, padding=VALID, stride_h=2, stride_w=2, filter_h=3, filter_w=3} op=MAX_POOL_2D node=1
outputs %2
"""  # noqa: E501


def test_pooling_is_one_node_with_what_computes_its_image():
    expected = """
    %0: float32[1, 9, 9, 8]
    inputs %0
    %2: float32[1, 4, 4, 8], %1: float32[1, 9, 9, 8] = pooled(%0) { \
            first=<%1 = local_response_normalization(%0) \
                {radius=2, bias=1, alpha=0.5, beta=0.75} \
                op=LOCAL_RESPONSE_NORMALIZATION node=0>, \
            pooling=<%2 = pool(%1) \
                {kind=0, padding=VALID, stride_h=2, stride_w=2, filter_h=3, filter_w=3} \
                op=MAX_POOL_2D node=1>} \
        op=LOCAL_RESPONSE_NORMALIZATION node=0
    outputs %2
    step fuse_pooling applied node=1 into=0
    """
    assert_becomes(POOLED, "fuse_pooling", expected, device="gpu")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("outputs %2", "outputs %2, %1"),
        ("radius=2", "radius=5"),
        ("node=0\n", "node=0 activation=relu\n"),
        ("stride_w=2, filter_h=3, filter_w=3", "stride_w=2, filter_h=5, filter_w=5"),
    ],
)
def test_what_no_kernel_pools_stays(old, new):
    assert old in POOLED
    assert_stays(POOLED.replace(old, new), "fuse_pooling", device="gpu")


@pytest.mark.parametrize(
    ("facts", "is_one"),
    [
        ({"device": "cpu"}, False),
        ({"device": "cpu", "pooling": "always"}, True),
        ({"device": "gpu", "pooling": "never"}, False),
    ],
)
def test_poolings_become_one_node_where_that_pays(facts, is_one):
    assert ("pooled(" in after(POOLED, "fuse_pooling", **facts)) == is_one


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"device": "cpu"}, SEPARABLE),
        ({"device": "gpu", "gpu": "adreno"}, SEPARABLE),
        # Tensor cores, and more channels than are worth doing without them.
        ({"device": "gpu", "mma_f16": True}, "tf32\n" + re.sub(r"\b16\b", "64", SEPARABLE)),
    ],
)
def test_depthwise_and_pointwise_stay_where_that_does_not_pay(facts, text):
    reason = "two launches are expected to be faster on this device"
    assert_stays(text, "fuse_separable", f'fuse_separable declined node=1 "{reason}"', **facts)


def test_depthwise_and_pointwise_that_engines_keep_apart():
    skipped = 'fuse_separable skipped "the option engines names a kernel of its parts"'
    assert_stays(SEPARABLE, "fuse_separable", skipped, separable="never")


# fuse_products

TENSOR_CORES = {"device": "gpu", "mma_f16": True}
NORMED = """
half
%0: float32[1, 1, 128]
%1: float32[128] = const splat(1)
%2: float16[64, 128] = const splat(1)
%3: float16[64, 128] = const splat(1)
inputs %0
%4: float32[1, 1, 128] = composite(%0, %1) {kind=rms_norm, epsilon=0.5} op=MUL node=0
%5: float32[1, 1, 64] = fully_connected(%4, %2) {depth=128, keep_num_dims=true} \
    op=FULLY_CONNECTED node=1 activation=swish
%6: float32[1, 1, 64] = fully_connected(%4, %3) {depth=128, keep_num_dims=true} \
    op=FULLY_CONNECTED node=2
%7: float32[1, 1, 64] = binary(%5, %6) {op=mul} op=MUL node=3
outputs %7
"""


# Rows of the product are several of the normalisation.
FLATTENED = """
half
%0: float32[1, 2, 64]
%1: float32[64] = const splat(1)
%2: float16[64, 128] = const splat(1)
inputs %0
%4: float32[1, 2, 64] = composite(%0, %1) {kind=rms_norm, epsilon=0.5} op=MUL node=0
%5: float32[1, 64] = fully_connected(%4, %2) {depth=128} op=FULLY_CONNECTED node=1
outputs %5
"""

# The product also adds the normalised row.
ADDED = """
half
%0: float32[1, 1, 128]
%1: float32[128] = const splat(1)
%2: float16[128, 128] = const splat(1)
inputs %0
%4: float32[1, 1, 128] = composite(%0, %1) {kind=rms_norm, epsilon=0.5} op=MUL node=0
%5: float32[1, 1, 128] = fully_connected(%4, %2, -, %4) {depth=128, keep_num_dims=true} \
    op=FULLY_CONNECTED node=1
outputs %5
"""


def test_normalisation_gate_and_products_become_one_node():
    expected = """
    half
    %0: float32[1, 1, 128]
    %1: float32[128] = const splat(1)
    %2: float16[64, 128] = const splat(1)
    %3: float16[64, 128] = const splat(1)
    inputs %0
    %7: float32[1, 1, 64], %8: float32[1, 1, 128], %5: float32[1, 1, 64], \
        %6: float32[1, 1, 64] = fully_connected.fused(%0, %2, -, -, -, -, -, %1, %3) { \
            product=<%5 = fully_connected(%4, %2) {depth=128, keep_num_dims=true} \
                op=FULLY_CONNECTED node=1 activation=swish>, \
            norm=<%4 = composite(%0, %1) {kind=rms_norm, epsilon=0.5} op=MUL node=0>, \
            other=<%6 = fully_connected(%4, %3) {depth=128, keep_num_dims=true} \
                op=FULLY_CONNECTED node=2>, \
            gate=<%7 = binary(%5, %6) {op=mul} op=MUL node=3>} \
        op=FULLY_CONNECTED node=1 activation=swish
    outputs %7
    step fuse_products applied node=0 into=1
    step fuse_products applied node=2 into=1
    step fuse_products applied node=3 into=1
    """
    assert_becomes(NORMED, "fuse_products", expected, **TENSOR_CORES)


def test_products_of_one_normalisation_compute_it_each():
    separate = NORMED.replace("outputs %7", "outputs %5, %6").replace(
        "%7: float32[1, 1, 64] = ", "#"
    )
    text = after(separate, "fuse_products", **TENSOR_CORES)
    assert text.count("= fully_connected.fused(%0, ") == 2
    assert "%5: float32[1, 1, 64], %7: float32[1, 1, 128] =" in text
    assert "%6: float32[1, 1, 64], %8: float32[1, 1, 128] =" in text
    assert text.count("step fuse_products applied node=0") == 2


@pytest.mark.parametrize(
    "before",
    [
        # Others read the normalised row, too.
        NORMED.replace("outputs %7", "outputs %4, %7"),
        # Work-groups would normalise several rows, each.
        NORMED.replace("[1, 1, ", "[1, 2, "),
    ],
)
def test_gate_moves_without_a_normalisation_that_stays(before):
    text = after(before, "fuse_products", **TENSOR_CORES)
    assert "= fully_connected.fused(%4, %2, -, -, -, -, -, -, %3)" in text
    assert "node=0 into" not in text


@pytest.mark.parametrize(
    ("before", "facts"),
    [
        (NORMED, {"device": "gpu"}),
        (NORMED, {"device": "cpu"}),
        # More rows than the kernel takes.
        (NORMED.replace("[1, 1, ", "[1, 9, "), TENSOR_CORES),
        # Weights of two types, and a product that another node reads: nothing to gain but the norm,
        # which a sum reads.
        (
            NORMED.replace("%3: float16", "%3: float32").replace("outputs %7", "outputs %4, %7"),
            TENSOR_CORES,
        ),
        (NORMED.replace("outputs %7", "outputs %4, %5, %7"), TENSOR_CORES),
        (FLATTENED, TENSOR_CORES),
        (ADDED, TENSOR_CORES),
        # The gate broadcasts.
        (
            NORMED.replace("%6: float32[1, 1, 64]", "%6: float32[1, 64]")
            .replace(
                "fully_connected(%4, %3) {depth=128, keep_num_dims=true}",
                "fully_connected(%4, %3) {depth=128}",
            )
            .replace("outputs %7", "outputs %4, %7"),
            TENSOR_CORES,
        ),
        (NORMED.replace("op=mul", "op=sub").replace("outputs %7", "outputs %4, %7"), TENSOR_CORES),
    ],
)
def test_products_stay_apart_where_no_kernel_computes_them_together(before, facts):
    assert_stays(before, "fuse_products", **facts)


# A product of a normalised row, seen as two heads.
ROW_TURNED = """
half
%0: float16[1, 1, 128]
%1: float32[128] = const splat(1)
%2: float16[256, 128] = const splat(1)
%3: float32[1, 1, 1, 64]
%4: float32[1, 1, 1, 64]
%5: float16[1, 9, 2, 128]
%6: int32[4]
inputs %0, %3, %4, %5, %6
%7: float16[1, 1, 128] = composite(%0, %1) {kind=rms_norm, epsilon=0.5} op=MUL node=0
%8: float16[1, 1, 256] = fully_connected(%7, %2) {depth=128, keep_num_dims=true} \
    op=FULLY_CONNECTED node=1
%9: float16[1, 1, 2, 128] = reshape(%8) op=RESHAPE node=2
%10: float16[1, 9, 2, 128] = rotate.update(%5, %9, %6, %3, %4) op=DYNAMIC_UPDATE_SLICE node=3
outputs %10
"""
ROW_WRITTEN = ROW_TURNED.replace(
    "rotate.update(%5, %9, %6, %3, %4)", "dynamic_update_slice(%5, %9, %6)"
)
HEADS_TURNED = (
    ROW_TURNED.replace("%10: float16[1, 9, 2, 128]", "%10: float16[1, 1, 2, 128]")
    .replace("rotate.update(%5, %9, %6, %3, %4)", "rotate(%9, %3, %4)")
    .replace("op=DYNAMIC_UPDATE_SLICE", "op=CONCATENATION")
)


@pytest.mark.parametrize(
    ("before", "inputs"),
    [
        (ROW_TURNED, "%0, %2, -, -, -, -, -, %1, -, -, %3, %4, %5, %6"),
        (ROW_WRITTEN, "%0, %2, -, -, -, -, -, %1, -, -, -, -, %5, %6"),
        (HEADS_TURNED, "%0, %2, -, -, -, -, -, %1, -, -, %3, %4, -, -"),
    ],
)
def test_products_end_in_rotations_and_updates(before, inputs):
    text = after(before, "fuse_products", **TENSOR_CORES)
    assert f"= fully_connected.ended({inputs})" in text
    for node in (0, 2, 3):  # the normalisation, the view, the end
        assert f"step fuse_products applied node={node} into=1" in text


@pytest.mark.parametrize(
    "before",
    [
        # Angles of their own for each head.
        ROW_TURNED.replace("[1, 1, 1, 64]", "[1, 1, 2, 64]"),
        # Others read the rows, too.
        ROW_TURNED.replace("outputs %10", "outputs %9, %10"),
        # Heads do not lie one after the other in the cache.
        ROW_TURNED.replace("%5: float16[1, 9, 2, 128]", "%5: float16[1, 9, 3, 128]").replace(
            "%10: float16[1, 9, 2, 128]", "%10: float16[1, 9, 3, 128]"
        ),
        # The cache has another type than its new value.
        ROW_TURNED.replace("%5: float16", "%5: float32"),
    ],
)
def test_rotations_and_updates_stay_apart_where_no_kernel_ends_in_them(before):
    text = after(before, "fuse_products", **TENSOR_CORES)
    assert "fully_connected.ended" not in text
    assert "= rotate.update(%5, %9, %6, %3, %4)" in text


def test_products_that_engines_keep_apart():
    skipped = (
        "fuse_products skipped "
        '"a memory budget, or a kernel that engines names, keeps its parts apart"'
    )
    assert_stays(NORMED, "fuse_products", skipped, products=False, **TENSOR_CORES)


# remove_dead


def test_node_whose_result_nobody_reads_goes_with_its_constants():
    before = (
        CONVOLUTION
        + """
    %3: float32[1, 6, 6, 4] = unary(%0) {op=neg} op=NEG node=1
    outputs %3
    """
    )
    expected = """
    %0: float32[1, 6, 6, 4]
    inputs %0
    %3: float32[1, 6, 6, 4] = unary(%0) {op=neg} op=NEG node=1
    outputs %3
    step remove_dead applied node=0 "nothing reads its results"
    """
    assert_becomes(before, "remove_dead", expected)


def test_node_whose_result_somebody_reads_stays():
    before = (
        CONVOLUTION
        + """
    %3: float32[1, 6, 6, 4] = unary(%2) {op=neg} op=NEG node=1
    outputs %3
    """
    )
    assert_stays(before, "remove_dead")


# allow_tf32


def test_nodes_of_a_plan_and_readers_of_half_images_may_round_factors():
    before = """
    %0: float32[1, 6, 6, 4] tflite=5
    %1: float32[4, 3, 3, 4] = const splat(1)
    inputs %0
    %2: float32[1, 6, 6, 4] tflite=6 = conv2d(%0, %1) op=CONV_2D node=0
    %3: float32[1, 6, 6, 4] tflite=7 = conv2d(%2, %1) op=CONV_2D node=1
    %4: float32[1, 6, 6, 4] tflite=8 = conv2d(%3, %1) op=CONV_2D node=2
    outputs %4
    """
    for plan, nodes in (
        ("tf32=1-2", "12"),
        ("half=6", "1"),
        ("half=5,tf32=2", "02"),
        ("int8=6", ""),
    ):
        expected = before
        for node in nodes:
            expected = expected.replace(f"node={node}", f"node={node} tf32")
        settings = {"precision": "mixed", "plan": f"model=0,{plan}"}
        assert_becomes(before, "allow_tf32", expected, **settings)
    assert_stays(before, "allow_tf32", precision="tf32")  # the graph as a whole allows it
    pairs = before.replace("node=0", "node=0 bf16_pairs").replace("node=1", "node=1 tf32")
    settings = {"precision": "mixed", "plan": "model=0,pairs=0-1,tf32=1"}
    assert_becomes(before, "allow_tf32", pairs, **settings)


# choose_sums


def test_nodes_whose_factors_may_be_half_may_add_halves():
    before = """
    half
    %0: float32[1, 6, 6, 4] tflite=5
    %1: float32[4, 3, 3, 4] = const splat(1)
    %2: float32[4, 3, 3, 4] = const splat(70000)
    inputs %0
    %3: float32[1, 6, 6, 4] tflite=6 = conv2d(%0, %1) op=CONV_2D node=0
    %4: float32[1, 6, 6, 4] tflite=7 storage=float16 = conv2d(%3, %2) op=CONV_2D node=1
    %5: float32[1, 6, 6, 4] tflite=8 = conv2d(%4, %1) op=CONV_2D node=2
    %6: float32[1, 6, 6, 4] = unary(%5) {op=neg} op=NEG node=3
    outputs %6
    """
    declined = 'step choose_sums declined node={} "sums stay float: {}"\n'
    large = declined.format(1, "a constant is beyond the largest half")

    def expected(graph: str, nodes: str, steps: str) -> str:
        for node in nodes:
            graph = graph.replace(f"node={node}", f"node={node} half_sums")
        return graph + steps

    assert_becomes(
        before, "choose_sums", expected(before, "02", large), precision="fp16", half_sums=True
    )
    assert_stays(before, "choose_sums", precision="fp16")
    assert_stays(before, "choose_sums", precision="fp32", half_sums=True)
    # Where only listed tensors are half, an image that is float is no factor of a half product.
    mixed = before.replace("    half\n", "", 1)
    stored = declined.format(0, "an input is stored as float")
    assert_becomes(
        mixed, "choose_sums", expected(mixed, "2", stored), precision="mixed",
        plan="model=0,sums=0+2-3",
    )  # fmt: skip
    assert_stays(mixed, "choose_sums", precision="mixed", plan="model=0,half=5-8")


# quantize_weights

WEIGHTS = """
%0: float32[1, 6, 6, 2]
%1: float32[2, 1, 1, 2] tflite=1 = const [1, -127, 0, 0.5]
inputs %0
%2: float32[1, 6, 6, 2] = conv2d(%0, %1) op=CONV_2D node=0
outputs %2
"""


def test_weights_of_a_plan_become_int8():
    expected = """
    %0: float32[1, 6, 6, 2]
    %1: float32[2, 1, 1, 2] tflite=1 = const [1, -127, 0, 0.5]
    %3: int8[2, 1, 1, 2] tflite=1 quantized([1, 0.003937008], 0) = const [1, -127, 0, 127]
    inputs %0
    %2: float32[1, 6, 6, 2] = conv2d(%0, %3) op=CONV_2D node=0
    outputs %2
    step quantize_weights applied node=0 "its weights are int8"
    """
    settings = {"precision": "mixed", "plan": "model=0,int8=1"}
    assert_becomes(WEIGHTS, "quantize_weights", expected, **settings)
    for plan in ("model=0,int8=2", "model=0,half=1"):
        assert_stays(WEIGHTS, "quantize_weights", precision="mixed", plan=plan)
    assert_stays(WEIGHTS, "quantize_weights", precision="fp16", plan="model=0,int8=1")


def test_weights_that_no_int8_holds_stay_float():
    before = WEIGHTS.replace("0.5]", "nan]")
    declined = 'quantize_weights declined node=0 "they are not all finite"'
    settings = {"precision": "mixed", "plan": "model=0,int8=1"}
    assert_stays(before, "quantize_weights", declined, **settings)
    computed = WEIGHTS.replace(" = const [1, -127, 0, 0.5]\ninputs %0", "\ninputs %0, %1")
    declined = 'quantize_weights declined node=0 "they are no constant floats"'
    assert_stays(computed, "quantize_weights", declined, **settings)


# round_weights

ROUNDED = """
%0: float32[1, 64] tflite=0
%1: float32[32, 64] tflite=1 = const splat(0.1)
%2: float32[32] = const splat(0.5)
inputs %0
%3: float32[1, 32] = fully_connected(%0, %1, %2) op=FULLY_CONNECTED node=0
outputs %3
"""
OF_ONE = "means=0/" + 64 * "3f80"  # each channel is 1 on average


def test_bias_has_the_mean_of_what_rounding_loses():
    lost = 64 * (np.float32(0.1) - np.float32(np.float16(0.1)))
    expected = f"""
    %0: float32[1, 64] tflite=0
    %1: float32[32, 64] tflite=1 = const splat(0.1)
    %2: float32[32] = const splat(0.5)
    %4: float32[32, 64] tflite=1 = const float16 splat(0.099975586)
    %5: float32[32] = const splat({np.float32(0.5 + lost)!s})
    inputs %0
    %3: float32[1, 32] = fully_connected(%0, %4, %5) op=FULLY_CONNECTED node=0
    outputs %3
    step round_weights applied node=0 "its weights are rounded, and its bias has the mean of what that changes"
    """  # noqa: E501  # a step is a line
    plan = f"model=0,half=1,{OF_ONE}"
    assert_becomes(ROUNDED, "round_weights", expected, precision="mixed", plan=plan)
    for other in ("model=0,half=1", f"model=0,{OF_ONE}", f"model=0,half=1,int8=1,{OF_ONE}"):
        assert_stays(ROUNDED, "round_weights", precision="mixed", plan=other)
    assert_stays(ROUNDED, "round_weights", precision="fp16", plan=plan)


@pytest.mark.parametrize(
    ("old", "new", "means", "reason"),
    [
        (", %2)", ")", OF_ONE, "it has no bias"),
        (
            "%2: float32[32] = const splat(0.5)\ninputs %0", "%2: float32[32]\ninputs %0, %2",
            OF_ONE, "its bias is no constant float for each output channel",
        ),
        ("", "", "means=0/3f80", "the plan has 1 means, its input 64 channels"),
    ],
)  # fmt: skip
def test_product_whose_bias_cannot_be_corrected_keeps_its_weights(old, new, means, reason):
    before = ROUNDED.replace(old, new) if old else ROUNDED
    declined = f'round_weights declined node=0 "{reason}"'
    plan = f"model=0,half=1,{means}"
    assert_stays(before, "round_weights", declined, precision="mixed", plan=plan)


# quantize_activations

ACTIVATIONS = """
%0: float32[1, 6, 6, 2] "image" tflite=0
%1: float32[2, 1, 1, 2] tflite=1 = const [1, -127, 0, 0.5]
%2: float32[2] tflite=2 = const [1, 0.5]
inputs %0
%3: float32[1, 6, 6, 2] tflite=3 = conv2d(%0, %1, %2) op=CONV_2D node=0 activation=relu
%4: float32[1, 6, 6, 2] "result" tflite=4 = unary(%3) {op=abs} op=ABS node=1
outputs %4
"""
OF_INT8 = "scales=0/0.5/0+3/0.25/-128+4/0.125/-128"


def test_nodes_of_a_plan_compute_with_int8():
    expected = """
    %0: float32[1, 6, 6, 2] "image" tflite=0
    %1: float32[2, 1, 1, 2] tflite=1 = const [1, -127, 0, 0.5]
    %2: float32[2] tflite=2 = const [1, 0.5]
    %6: int32[2] = const [2, 254]
    %7: int8[2, 1, 1, 2] tflite=1 quantized([1, 0.003937008], 0) = const [1, -127, 0, 127]
    inputs %0
    %5: int8[1, 6, 6, 2] "image int8" quantized(0.5, 0) = quantize(%0) op=QUANTIZE node=0
    %3: int8[1, 6, 6, 2] tflite=3 quantized(0.25, -128) = conv2d(%5, %7, %6) op=CONV_2D node=0 activation=relu
    %8: int8[1, 6, 6, 2] "result int8" quantized(0.125, -128) = unary(%3) {op=abs, table={builtin=101}} op=ABS node=1
    %4: float32[1, 6, 6, 2] "result" tflite=4 = dequantize(%8) op=DEQUANTIZE node=1
    outputs %4
    step quantize_activations applied node=0 "it computes with int8, 1 of its inputs converted before it"
    step quantize_activations applied node=1 "it computes with int8, its result converted to float behind it"
    """  # noqa: E501
    plan = f"model=0,integers=0-1,{OF_INT8}"
    assert_becomes(ACTIVATIONS, "quantize_activations", expected, precision="mixed", plan=plan)
    for other in ("model=0,integers=7," + OF_INT8, "model=0," + OF_INT8):
        assert_stays(ACTIVATIONS, "quantize_activations", precision="mixed", plan=other)
    assert_stays(ACTIVATIONS, "quantize_activations", precision="fp16", plan=plan)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "", "the plan has no scale of tensor 4"),
        ("op=abs", "op=sin", "the function has no form of int8 here"),
        ("{op=abs} op", "activation=sigmoid op", "the scale of the output has to be 1/256"),
        ("%4: float32", "%4: int32", "its result is no float"),
    ],
)
def test_nodes_that_cannot_compute_with_int8_tell_why(old, new, reason):
    before = ACTIVATIONS.replace(old, new) if old else ACTIVATIONS
    scales = OF_INT8 if old else OF_INT8.replace("+4/0.125/-128", "")
    declined = f'quantize_activations declined node=1 "it computes with floats: {reason}"'
    plan = f"model=0,integers=1,{scales}"
    assert_stays(before, "quantize_activations", declined, precision="mixed", plan=plan)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("127, 0, 0.5]", "127, 0, nan]", "of its weights, they are not all finite"),
        ("const [1, 0.5]", "const [1, inf]", "of its bias, they are not all finite"),
        (" = const [1, 0.5]\ninputs %0", "\ninputs %0, %2", "of its bias, they are no constant fl"),
        ("3/0.25/-128", "3/1e-10/-128", "the scale of the result is too small for that of an in"),
        ("-127, 0, 0.5]", "-1e13, 0, 0.5]", "the scale of the result is too small for the product"),
        ("activation=relu", "activation=tanh", "its fused activation is not defined on integers"),
    ],
)
def test_products_that_cannot_compute_with_int8_tell_why(old, new, reason):
    plan = f"model=0,integers=0,{OF_INT8}"
    assert old in ACTIVATIONS + plan
    text = after(
        ACTIVATIONS.replace(old, new),
        "quantize_activations",
        precision="mixed",
        plan=plan.replace(old, new),
    )
    assert f'declined node=0 "it computes with floats: {reason}' in text
    assert "conv2d(%0, %1, %2)" in text


# choose_storage

# All tensors are large but %4.
LARGE = """
%0: float32[1, 64, 64, 8]
%1: float32[8, 5, 5, 8] = const splat(1)
%4: float32[16] = const splat(2)
inputs %0
%2: float32[1, 64, 64, 8] = conv2d(%0, %1) op=CONV_2D node=0
%3: float32[1, 64, 64, 8] = unary(%2) {op=abs} op=ABS node=1
outputs %3
"""


@pytest.mark.parametrize(
    ("settings", "halves"),
    [
        ({"precision": "fp32"}, ""),
        ({"precision": "tf32"}, ""),
        ({"precision": "fp16"}, "%1 %2"),
        ({"precision": "fp16", "half_io": True}, "%0 %1 %2 %3"),
        ({"precision": "fp32", "half_weights": True}, "%1"),
        ({"precision": "mixed"}, ""),
        ({"precision": "mixed", "plan": "model=0,half=0-9"}, ""),  # no tensor has a number
    ],
)
def test_large_tensors_are_stored_as_half(settings, halves):
    expected = LARGE
    for name in halves.split():
        expected = re.sub(rf"({name}: [^]]*\])", r"\1 storage=float16", expected)
    assert_becomes(LARGE, "choose_storage", expected, **settings)


def test_what_is_found_of_a_carried_tensor_stays_float():
    """A sum of many elements may be no half."""
    before = LARGE.replace("%2: float32[1, 64, 64, 8]", "%2: float32[1, 64, 64, 8] carried=0")
    before = before.replace("%3: float32[1, 64, 64, 8]", "%3: float32[1, 64, 64, 8] largest_of=0")
    got = after(before, "choose_storage", precision="fp16", half_io=True)
    assert "%0: float32[1, 64, 64, 8] storage=float16" in got
    assert "%3: float32[1, 64, 64, 8] largest_of=0 = unary" in got


def of_border(node: int, tensor: int) -> str:
    """What choose_storage says of an input or output that a plan lists."""
    why = "input or output of the model, a loop or a branch"
    return f'step choose_storage declined node={node} tensor={tensor} "{why}"\n'


def test_plan_lists_what_is_stored_as_half():
    """Of what fp16 would store as half: neither inputs and outputs nor small tensors."""
    before = re.sub(r"(%(\d): [^]]*\])", r"\1 tflite=\2", LARGE)
    both = of_border(0, 0) + of_border(1, 3)
    for plan, halves, told in (
        ("0-9", "%1 %2", both), ("2", "%2", ""), ("1+3-4", "%1", of_border(1, 3))
    ):  # fmt: skip
        expected = before + told
        for name in halves.split():
            expected = re.sub(rf"({name}: .*?tflite=\d)", r"\1 storage=float16", expected)
        settings = {"precision": "mixed", "plan": f"model=0,half={plan}"}
        assert_becomes(before, "choose_storage", expected, **settings)


def test_plan_lists_what_is_stored_as_bfloat16():
    before = re.sub(r"(%(\d): [^]]*\])", r"\1 tflite=\2", LARGE)
    both = of_border(0, 0) + of_border(1, 3)
    for plan, halves, bfloats, told in (
        ("bfloat=0-9", "", "%1 %2", both),
        ("half=0-9,bfloat=2", "%1", "%2", both),
        ("half=2,bfloat=1-2", "", "%1 %2", ""),
    ):
        expected = before + told
        for names, storage in ((halves, "float16"), (bfloats, "bfloat16")):
            for name in names.split():
                expected = re.sub(rf"({name}: .*?tflite=\d)", rf"\1 storage={storage}", expected)
        settings = {"precision": "mixed", "plan": f"model=0,{plan}"}
        assert_becomes(before, "choose_storage", expected, **settings)


@pytest.mark.parametrize(
    ("settings", "value", "storage"),
    [
        ({"precision": "fp32"}, "1", "bfloat16"),
        ({"precision": "fp32", "half_weights": True}, "1", "bfloat16"),
        ({"precision": "tf32"}, "1", "bfloat16"),
        ({"precision": "mixed"}, "1", "bfloat16"),
        ({"precision": "fp16"}, "1", "float16"),
        ({"precision": "fp16"}, "131072", "bfloat16"),
    ],
)
def test_weights_of_bfloat16_take_16_bits(settings, value, storage):
    before = LARGE.replace("const splat(1)", f"const bfloat16 splat({value})")
    assert before != LARGE
    expected = re.sub(r"(%1: [^]]*\])", rf"\1 storage={storage}", before)
    if settings["precision"] == "fp16":
        expected = re.sub(r"(%2: [^]]*\])", r"\1 storage=float16", expected)
    assert_becomes(before, "choose_storage", expected, **settings)


def test_constant_that_no_half_holds_stays_float():
    before = LARGE.replace("splat(1)", "splat(70000)")
    expected = before.replace("8] = conv2d", "8] storage=float16 = conv2d")
    assert_becomes(before, "choose_storage", expected, precision="fp16")


def test_plan_that_lists_what_stays_float_is_told_why():
    before = """
    %0: float32[1, 64, 64, 8] tflite=0
    %1: float32[8, 5, 5, 8] tflite=1 = const splat(70000)
    %6: float32[8] tflite=6
    inputs %0, %6
    %2: float32[1, 64, 64, 8] tflite=2 = conv2d(%0, %1) op=CONV_2D node=0
    %3: float32[32768] tflite=3 = reshape(%2) {values=[-1]} op=RESHAPE node=1
    %4: float32[8] tflite=4 = unary(%6) {op=abs} op=ABS node=2
    %5: float32[8] tflite=5 = unary(%4) {op=abs} op=ABS node=3
    outputs %3, %5
    """
    told = [
        line
        for line in after(
            before, "choose_storage", precision="mixed", plan="model=0,half=1-4"
        ).splitlines()
        if line.strip().startswith("step")
    ]
    border = "input or output of the model, a loop or a branch"
    assert told == [
        'step choose_storage declined node=0 tensor=1 "constant beyond half"',
        f'step choose_storage declined node=0 tensor=2 "{border}"',
        f'step choose_storage declined node=1 tensor=3 "{border}"',
        'step choose_storage declined node=2 tensor=4 "small tensor"',
    ]


def test_view_is_stored_as_what_it_is_a_view_of():
    before = """
    %0: float32[1, 64, 64, 8]
    inputs %0
    %1: float32[32768] = reshape(%0) {values=[-1]} op=RESHAPE node=0
    %2: float32[32768] = unary(%1) {op=abs} op=ABS node=1
    outputs %2
    """
    assert_stays(before, "choose_storage", precision="fp16")


# Passes that rely on shapes.


def test_shapes_follow_from_those_of_the_inputs():
    expected = CONVOLUTION + "outputs %2"
    before = expected.replace("%2: float32[1, 6, 6, 4]", "%2: float32[0, 0, 0, 0]")
    assert_becomes(before, "infer_shapes", expected)
    assert_stays(expected, "infer_shapes")


def test_shapes_that_do_not_fit_are_told_with_the_node():
    text = CONVOLUTION.replace("%1: float32[4, 3, 3, 4]", "%1: float32[4, 3, 3, 3]") + "outputs %2"
    with pytest.raises(clgpu_delegate.ShapeError, match=r"CONV_2D \(node 0\): .* 4 channels"):
        after(text, "infer_shapes")


def test_parts_are_written_where_the_whole_lies():
    before = """
    %0: float32[1, 6, 6, 4]
    inputs %0
    %1: float32[1, 6, 6, 4] = unary(%0) {op=abs} op=ABS node=0
    %2: float32[1, 6, 6, 4] = unary(%0) {op=neg} op=NEG node=1
    %3: float32[1, 6, 6, 8] = concatenation(%1, %2) {axis=3} op=CONCATENATION node=2
    outputs %3
    """
    expected = """
    %0: float32[1, 6, 6, 4]
    inputs %0
    %1: float32[1, 6, 6, 4] part(%3, pitch=8, first=0) = unary(%0) {op=abs} op=ABS node=0
    %2: float32[1, 6, 6, 4] part(%3, pitch=8, first=4) = unary(%0) {op=neg} op=NEG node=1
    %3: float32[1, 6, 6, 8] = concatenation(%1, %2) {axis=3} op=CONCATENATION node=2
    outputs %3
    """
    assert_becomes(before, "remove_concatenations", expected)
    assert_stays(before, "remove_concatenations", concatenations="copy_all")


def test_large_concatenations_exist_as_their_parts():
    before = """
    %0: float32[1, 2, 2, 2]
    %1: float32[1, 2, 2, 2]
    %7: float32[1, 1, 1, 4] = const [0, 1, 2, 3]
    inputs %0, %1
    %2: float32[1, 2, 2, 2] = unary(%0) {op=abs} op=ABS node=0
    %3: float32[1, 2, 2, 4] = concatenation(%0, %2) {axis=3} op=CONCATENATION node=1
    %4: float32[1, 2, 2, 2] = unary(%1) {op=neg} op=NEG node=2
    %5: float32[1, 2, 2, 4] = concatenation(%1, %4) {axis=3} op=CONCATENATION node=3
    %6: float32[1, 2, 2, 4] = add(%3, %5) op=ADD node=4
    %8: float32[1, 2, 2, 1] = conv2d(%6, %7) op=CONV_2D node=5
    outputs %8
    """
    expected = """
    %0: float32[1, 2, 2, 2]
    %1: float32[1, 2, 2, 2]
    %7: float32[1, 1, 1, 4] = const [0, 1, 2, 3]
    %11: float32[1, 1, 1, 2] = const [0, 1]
    %13: float32[1, 1, 1, 2] = const [2, 3]
    inputs %0, %1
    %2: float32[1, 2, 2, 2] = unary(%0) {op=abs} op=ABS node=0
    %4: float32[1, 2, 2, 2] = unary(%1) {op=neg} op=NEG node=2
    %9: float32[1, 2, 2, 2] = add(%0, %1) op=ADD node=4
    %10: float32[1, 2, 2, 2] = add(%2, %4) op=ADD node=4
    %12: float32[1, 2, 2, 1] = conv2d(%9, %11, -) op=CONV_2D node=5
    %8: float32[1, 2, 2, 1] = conv2d(%10, %13, -, %12) op=CONV_2D node=5
    outputs %8
    step split_additions applied node=4 into=4
    step split_convolutions applied node=4 into=5
    """
    bytes_of_the_sum = 4 * 16
    assert_becomes(before, "remove_concatenations", expected, most=bytes_of_the_sum - 1)
    assert "= add(%3, %5)" in after(before, "remove_concatenations", most=bytes_of_the_sum)


def test_weights_are_split_by_output_channels():
    before = """
    %0: float32[1, 4]
    %1: float32[4, 4] = const [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    inputs %0
    %2: float32[1, 4] = fully_connected(%0, %1) op=FULLY_CONNECTED node=0
    outputs %2
    """
    expected = """
    %0: float32[1, 4]
    %3: float32[2, 4] " [0...]" = const [0, 1, 2, 3, 4, 5, 6, 7]
    %5: float32[2, 4] " [2...]" = const [8, 9, 10, 11, 12, 13, 14, 15]
    inputs %0
    %4: float32[1, 2] " [0...]" part(%2, pitch=4, first=0) \
        = fully_connected(%0, %3) op=FULLY_CONNECTED node=0
    %6: float32[1, 2] " [2...]" part(%2, pitch=4, first=2) \
        = fully_connected(%0, %5) op=FULLY_CONNECTED node=0
    %2: float32[1, 4] = concatenation(%4, %6) {axis=1} op=CONCATENATION
    outputs %2
    """
    assert_becomes(before, "split_weights", expected, limit=32)
    assert_stays(before, "split_weights", limit=64)


def test_chain_is_computed_band_by_band():
    before = """
    %0: float32[1, 8, 4, 4] "x"
    %1: float32[4, 3, 3, 4] = const splat(1)
    inputs %0
    %2: float32[1, 8, 4, 4] "y" = conv2d(%0, %1) op=CONV_2D node=0
    %3: float32[1, 8, 4, 4] = conv2d(%2, %1) op=CONV_2D node=1
    outputs %3
    """
    # The rows 3 and 4 of y are kept from the first band for the second one.
    expected = """
    %0: float32[1, 8, 4, 4] "x"
    %1: float32[4, 3, 3, 4] = const splat(1)
    inputs %0
    %4: float32[1, 1, 4, 4] "y rows 0:1" = conv2d(%0, %1) {geometry={padding=VALID, \
        extra_top=1, extra_bottom=-6, extra_left=1, extra_right=1}} op=CONV_2D node=0 band
    %5: float32[1, 4, 4, 4] "y rows 1:5" = conv2d(%0, %1) {geometry={padding=VALID, \
        extra_bottom=-2, extra_left=1, extra_right=1}} op=CONV_2D node=0 band
    %6: float32[1, 5, 4, 4] "y rows 0:5" = concatenation(%4, %5) {axis=1} \
        op=CONCATENATION node=0 band
    %7: float32[1, 4, 4, 4] " rows 0:4" = conv2d(%6, %1) {geometry={padding=VALID, \
        extra_top=1, extra_left=1, extra_right=1}} op=CONV_2D node=1 band
    %8: float32[1, 2, 4, 4] "y rows 3:5" = rows.kept(%6) {rows={first=3, end=5}} \
        op=ROWS node=0 band
    %9: float32[1, 3, 4, 4] "y rows 5:8" = conv2d(%0, %1) {geometry={padding=VALID, \
        extra_top=-4, extra_bottom=1, extra_left=1, extra_right=1}} op=CONV_2D node=0 band
    %10: float32[1, 5, 4, 4] "y rows 3:8" = concatenation(%8, %9) {axis=1} \
        op=CONCATENATION node=0 band
    %11: float32[1, 4, 4, 4] " rows 4:8" = conv2d(%10, %1) {geometry={padding=VALID, \
        extra_bottom=1, extra_left=1, extra_right=1}} op=CONV_2D node=1 band
    %3: float32[1, 8, 4, 4] = concatenation(%7, %11) {axis=1} op=CONCATENATION node=1 band
    outputs %3
    """
    assert_becomes(before, "stream_rows", expected, band=4)
    assert_stays(before, "stream_rows", band=8)


def test_large_inputs_of_a_region_are_cut_into_bands():
    before = """
    %0: float32[1, 4, 2, 1]
    %1: int32[1] = const [1]
    inputs %0
    %2: float32[1, 4, 2, 1] "y" = reverse(%0, %1) {axes=[1]} op=REVERSE_V2 node=0
    %3: float32[1, 4, 2, 1] = unary(%0) {op=sqrt} op=SQRT node=1
    %4: float32[1, 4, 2, 1] "z" = unary(%2) {op=neg} op=NEG node=2
    %5: float32[1, 4, 2, 1] = unary(%4) {op=abs} op=ABS node=3
    outputs %3, %5
    """
    # They are cut where they are written; nothing else of them has to wait for the region.
    expected = """
    %0: float32[1, 4, 2, 1]
    %1: int32[1] = const [1]
    inputs %0
    %2: float32[1, 4, 2, 1] "y" = reverse(%0, %1) {axes=[1]} op=REVERSE_V2 node=0
    %6: float32[1, 2, 2, 1] "y rows 0:2" = rows(%2) {rows={end=2}} op=ROWS node=0 band
    %7: float32[1, 2, 2, 1] "y rows 2:4" = rows(%2) {rows={first=2, end=4}} op=ROWS node=0 band
    %3: float32[1, 4, 2, 1] = unary(%0) {op=sqrt} op=SQRT node=1
    %9: float32[1, 2, 2, 1] "z rows 0:2" = unary(%6) {op=neg} op=NEG node=2 band
    %10: float32[1, 2, 2, 1] " rows 0:2" = unary(%9) {op=abs} op=ABS node=3 band
    %11: float32[1, 2, 2, 1] "z rows 2:4" = unary(%7) {op=neg} op=NEG node=2 band
    %12: float32[1, 2, 2, 1] " rows 2:4" = unary(%11) {op=abs} op=ABS node=3 band
    %5: float32[1, 4, 2, 1] = concatenation(%10, %12) {axis=1} op=CONCATENATION node=3 band
    outputs %3, %5
    """
    assert_becomes(before, "stream_rows", expected, band=2, most=31)
    assert "op=ROWS node=0" not in after(before, "stream_rows", band=2, most=32)


# reuse_rows

FRAME = """
%0: float32[1, 16, 4, 4] "x" fed
%1: float32[4, 3, 3, 4] = const splat(1)
%2: int32[2] = const [1, 2]
inputs %0
%3: float32[1, 16, 4, 4] "y" = conv2d(%0, %1) op=CONV_2D node=0
%4: float32[1, 1, 1, 4] = reduce(%3, %2) {op=mean, axes=[1, 2], keep_dims=true} op=MEAN node=1
%5: float32[1, 1, 1, 4] = unary(%4) {op=abs} op=ABS node=2
outputs %5
"""


def test_nodes_run_only_if_rows_of_the_input_change():
    # The mean is not kept: its only reader runs whenever it does.
    expected = """
    %0: float32[1, 16, 4, 4] "x" fed
    %1: float32[4, 3, 3, 4] = const splat(1)
    %2: int32[2] = const [1, 2]
    inputs %0
    %6: float32[1, 16, 4, 4] "x held" kept, %7: int32[3] "changed blocks" kept \
        = held_rows(%0) {tolerance=0.5, blocks=[{rows=[{end=9}]}, {rows=[{first=7, end=16}]}, \
        {rows=[{end=16}], weight=2}]} op=HELD_ROWS
    %8: float32[1, 8, 4, 4] "y rows 0:8" kept part(%3, pitch=4, first=0) \
        = conv2d(%6, %1) {geometry={padding=VALID, extra_top=1, extra_bottom=-7, \
        extra_left=1, extra_right=1}} op=CONV_2D node=0 band only_if(%7, 0)
    %9: float32[1, 8, 4, 4] "y rows 8:16" kept part(%3, pitch=4, first=128) \
        = conv2d(%6, %1) {geometry={padding=VALID, extra_top=-7, extra_bottom=1, \
        extra_left=1, extra_right=1}} op=CONV_2D node=0 band only_if(%7, 1)
    %3: float32[1, 16, 4, 4] "y" kept \
        = concatenation(%8, %9) {axis=1} op=CONCATENATION node=0 band
    %4: float32[1, 1, 1, 4] \
        = reduce(%3, %2) {op=mean, axes=[1, 2], keep_dims=true} op=MEAN node=1 only_if(%7, 2)
    %5: float32[1, 1, 1, 4] kept = unary(%4) {op=abs} op=ABS node=2 only_if(%7, 2)
    outputs %5
    step reuse_rows applied \
        "3 nodes run only if rows of the inputs change; 1 of them in bands, 4 in all"
    """
    assert_becomes(FRAME, "reuse_rows", expected.replace("\\\n", ""), band=8, tolerance=0.5)


def test_nodes_are_not_divided_where_a_band_is_worth_no_launch():
    got = after(FRAME, "reuse_rows", device="cpu", compute_units=2)
    assert "3 nodes run only if rows of the inputs change; 0 of them in bands, 3 in all" in got


def test_what_depends_on_something_else_is_always_computed():
    declined = 'reuse_rows declined "no node depends on inputs of the application alone"'
    computed_by_the_cpu = FRAME.replace(" fed", "")
    assert_stays(computed_by_the_cpu, "reuse_rows", declined)
    other = FRAME.replace("const [1, 2]\n", 'const [1, 2]\n%9: float32[1] "state" state=0\n')
    other = other.replace("inputs %0", "inputs %0, %9")
    got = after(other.replace("unary(%4) {op=abs} op=ABS", "add(%4, %9) op=ADD"), "reuse_rows")
    assert "%5: float32[1, 1, 1, 4] = add(%4, %9) op=ADD node=2\n" in got
    assert "%4: float32[1, 1, 1, 4] kept" in got


# skip_experts

GATED = """
%0: float32[2, 4]
%1: float32[4, 4] = const splat(1)
%2: int32[] = const [1]
%3: float32[2, 1]
inputs %0, %3
%4: float32[2, 4] = fully_connected(%0, %1) op=FULLY_CONNECTED node=0
%5: float32[2, 4] = unary(%4) {op=exp} op=EXP node=1
%6: float32[2, 1], %7: int32[2, 1] = topk(%3, %2) op=TOPK_V2 node=2
%8: float32[2, 4] = binary(%6, %5) {op=mul} op=MUL node=3
outputs %8
"""


def test_nodes_that_only_an_expert_needs_get_its_gate():
    expected = """
    %0: float32[2, 4]
    %1: float32[4, 4] = const splat(1)
    %2: int32[] = const [1]
    %3: float32[2, 1]
    inputs %0, %3
    %6: float32[2, 1], %7: int32[2, 1] = topk(%3, %2) op=TOPK_V2 node=2
    %4: float32[2, 4] = fully_connected(%0, %1) op=FULLY_CONNECTED node=0 only_if(%6)
    %5: float32[2, 4] = unary(%4) {op=exp} op=EXP node=1 only_if(%6)
    %8: float32[2, 4] = binary(%5, %6) {op=gated} op=MUL node=3
    outputs %8
    step skip_experts applied node=3 "2 nodes run only if an element of the gate is not 0"
    """
    assert_becomes(GATED, "skip_experts", expected)
    assert_becomes(GATED, "skip_experts", expected, experts="sparse")


def test_nodes_that_others_need_always_run():
    shared = GATED.replace("outputs %8", "outputs %8, %5")
    reason = '"no convolution or matrix product is computed for it alone"'
    assert_stays(shared, "skip_experts", f"skip_experts declined node=3 {reason}")
    # The product is an output, its activation is not.
    partly = after(GATED.replace("outputs %8", "outputs %8, %4"), "skip_experts")
    assert "only_if" not in partly


def test_gate_that_its_expert_reads_is_computed_first():
    """No node decides about itself."""
    text = """
    %0: float32[2, 4]
    %1: float32[4, 4] = const splat(1)
    %2: int32[] = const [1]
    %3: float32[2, 3]
    inputs %0, %3
    %6: float32[2, 1], %7: int32[2, 1] = topk(%3, %2) op=TOPK_V2 node=0
    %9: float32[2, 1] = unary(%6) {op=exp} op=EXP node=1
    %10: float32[2, 4] = binary(%0, %9) {op=mul} op=MUL node=2
    %4: float32[2, 4] = fully_connected(%10, %1) op=FULLY_CONNECTED node=3
    %8: float32[2, 4] = binary(%4, %9) {op=mul} op=MUL node=4
    outputs %8
    """
    got = after(text, "skip_experts")
    assert "unary(%6) {op=exp} op=EXP node=1\n" in got
    assert "op=FULLY_CONNECTED node=3 only_if(%9)" in got


def test_gates_that_are_not_chosen_skip_nothing():
    assert_stays(GATED.replace("binary(%6,", "binary(%3,"), "skip_experts")
    # Behind a product no element of a gate is zero.
    text = GATED.replace("binary(%6,", "binary(%9,").replace(
        "%8:", "%9: float32[2, 1] = fully_connected(%6, %10) op=FULLY_CONNECTED node=4\n%8:"
    )
    assert_stays(f"%10: float32[1, 1] = const [1]\n{text}", "skip_experts")


def test_large_gates_are_not_looked_through():
    text = GATED.replace("[2, 4]", "[5000, 4]").replace("[2, 1]", "[5000, 1]")
    reason = '"the gate has 5000 elements; at most 4096 are looked through"'
    assert_stays(text, "skip_experts", f"skip_experts declined node=3 {reason}")


def test_dense_experts_stay():
    step = 'skip_experts skipped "the option experts is dense"'
    assert_stays(GATED, "skip_experts", step, experts="dense")


def test_predicate_stays_with_merged_nodes():
    text = after(
        """
        %0: float32[1, 8, 8, 4]
        %1: float32[1, 3, 3, 4] = const splat(1)
        %2: float32[8, 1, 1, 4] = const splat(1)
        %3: float32[1, 1, 1, 1]
        inputs %0, %3
        %4: float32[1, 8, 8, 4] = depthwise_conv2d(%0, %1) op=DEPTHWISE_CONV_2D node=0 only_if(%3)
        %5: float32[1, 8, 8, 8] = conv2d(%4, %2) op=CONV_2D node=1 only_if(%3)
        outputs %5
        """,
        "fuse_separable",
        separable="as_pairs",
    )
    assert "separable_conv2d(" in text
    assert "only_if(%3)" in text


# inline_branches, and predicates of its nodes

BRANCH = """
%0: bool[]
%1: float32[2, 4]
inputs %0, %1
%2: float32[2, 4] = control_flow.branch(%0, %1) op=IF node=0 graph {
  %0: float32[2, 4] carried=0
  %1: float32[4, 4] = const splat(1)
  inputs %0
  %2: float32[2, 4] = fully_connected(%0, %1) op=FULLY_CONNECTED node=0
  %3: float32[2, 4] carried=1 = unary(%2) {op=exp} op=EXP node=0
  outputs %0, %3
} graph {
  %0: float32[2, 4] carried=0
  inputs %0
  %1: float32[2, 4] carried=1 = control_flow.state(%0) op=STATE node=0
  outputs %0, %1
}
%3: float32[2, 4] = unary(%2) {op=abs} op=ABS node=1
outputs %3
"""


def test_graphs_of_a_branch_become_part_of_the_graph_around_it():
    expected = """
    %0: bool[]
    %1: float32[2, 4]
    %4: float32[4, 4] = const splat(1)
    inputs %0, %1
    %5: float32[2, 4] = fully_connected(%1, %4) op=FULLY_CONNECTED node=0
    %6: float32[2, 4] = unary(%5) {op=exp} op=EXP node=0
    %2: float32[2, 4] = control_flow.choice(%0, %6, %1) op=IF node=0
    %3: float32[2, 4] = unary(%2) {op=abs} op=ABS node=1
    outputs %3
    step inline_branches applied node=0 "nodes choose between the results of its graphs"
    """
    assert_becomes(BRANCH, "inline_branches", expected)
    assert_becomes(BRANCH, "inline_branches", expected, experts="sparse")


def test_a_graph_that_is_not_chosen_does_not_run():
    got = after(BRANCH, "inline_branches", "skip_experts")
    assert got.count("only_if(%0)") == 2
    assert "unary(%2) {op=abs} op=ABS node=1\n" in got
    both = BRANCH.replace(
        "%1: float32[2, 4] carried=1 = control_flow.state(%0) op=STATE node=0",
        "%1: float32[2, 4] carried=1 = unary(%0) {op=neg} op=NEG node=0",
    )
    got = after(both, "inline_branches", "skip_experts")
    assert "logical(%0) {op=2} op=LOGICAL_NOT node=0" in got
    assert "2 nodes run only if the condition is true, 1 if it is false" in got


def test_branches_stay_with_dense_experts():
    step = 'inline_branches skipped "the option experts is dense"'
    assert_stays(BRANCH, "inline_branches", step, experts="dense")


# gather_experts

GATHERED = """
%0: float32[2, 1, 1, 8]
%1: float32[5, 3, 8] = const splat(1)
%2: int32[2, 2]
inputs %0, %2
%3: float32[2, 2, 3, 8] = gather(%1, %2) op=GATHER node=0
%4: float32[2, 2, 1, 3] = batch_matmul(%0, %3) {adj_y=true} op=BATCH_MATMUL node=1
outputs %4
"""


def test_matrices_of_experts_are_read_in_place():
    expected = """
    %0: float32[2, 1, 1, 8]
    %1: float32[5, 3, 8] = const splat(1)
    %2: int32[2, 2]
    inputs %0, %2
    %4: float32[2, 2, 1, 3] = expert_matmul(%0, %1, %2) op=BATCH_MATMUL node=1
    outputs %4
    step gather_experts applied node=0 into=1
    """
    assert_becomes(GATHERED, "gather_experts remove_dead", expected)


def test_matrices_of_experts_on_the_left():
    before = """
    %0: float32[2, 8, 1]
    %1: float32[5, 8, 3] = const splat(1)
    %2: int32[2]
    inputs %0, %2
    %3: float32[2, 8, 3] = gather(%1, %2) op=GATHER node=0
    %4: float32[2, 3, 1] = batch_matmul(%3, %0) {adj_x=true} op=BATCH_MATMUL node=1
    outputs %4
    """
    assert "expert_matmul(%0, %1, %2) {transposed=true, x_column=true, column=true}" in after(
        before, "gather_experts"
    )


def test_matrices_that_are_needed_elsewhere_are_gathered():
    step = (
        'gather_experts declined node=1 "the matrices that are gathered are needed elsewhere, too"'
    )
    assert_stays(GATHERED.replace("outputs %4", "outputs %4, %3"), "gather_experts", step)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(%1, %2) op", "(%1, %2) {axis=1} op"),
        ("%0: float32[2, 1, 1, 8]", "%0: float32[2, 2, 8, 1]"),  # adj_x
        ("%0: float32[2, 1, 1, 8]", "%0: float32[1, 2, 1, 8]"),  # of the second index only
    ],
)
def test_other_products_of_gathered_matrices_stay(old, new):
    text = GATHERED.replace(old, new)
    if "8, 1]" in new:
        text = text.replace("adj_y=true", "adj_x=true, adj_y=true")
    assert_stays(text, "gather_experts")


def test_gathered_matrices_stay_with_dense_experts():
    step = 'gather_experts skipped "the option experts is dense"'
    assert_stays(GATHERED, "gather_experts", step, experts="dense")


# group_experts

PICKED = """
%0: float32[2, 8]
%1: float32[2, 2]
inputs %0, %1
%3: float32[2, 1], %4: int32[2, 1] = topk(%1, %5) op=TOPK_V2 node=0
%5: int32[] = const [1]
%6: int32[] = const [2]
%7: float32[] = const [1]
%8: float32[] = const [0]
%9: float32[2, 1, 2] = one_hot(%4, %6, %7, %8) {axis=2, depth=2} op=ONE_HOT node=1
%10: float32[2, 1, 1] = reshape(%3) {values=[2, 1, 1]} op=RESHAPE node=2
%11: float32[2, 1, 2] = binary(%9, %10) {op=mul} op=MUL node=3
%12: float32[2, 2] = reduce(%11, %22) {axes=[1]} op=SUM node=4
%13: float32[2, 1], %14: float32[2, 1] = split(%22, %12) {src=1, axis=1} op=SPLIT node=5
%15: float32[3, 8] = const splat(1)
%16: float32[3, 8] = const splat(2)
%22: int32[] = const [1]
%17: float32[2, 3] = fully_connected(%0, %15) op=FULLY_CONNECTED node=6 activation=relu
%18: float32[2, 3] = binary(%17, %13) {op=mul} op=MUL node=7
%19: float32[2, 3] = fully_connected(%0, %16) op=FULLY_CONNECTED node=8 activation=relu
%20: float32[2, 3] = binary(%19, %14) {op=mul} op=MUL node=9
%21: float32[2, 3] = add(%18, %20) op=ADD node=10
outputs %21
"""


def test_experts_that_are_alike_become_one():
    expected = """
    %0: float32[2, 8]
    %1: float32[2, 2]
    %5: int32[] = const [1]
    %15: float32[3, 8] = const splat(1)
    %16: float32[3, 8] = const splat(2)
    inputs %0, %1
    %3: float32[2, 1], %4: int32[2, 1] = topk(%1, %5) op=TOPK_V2 node=0
    %10: float32[2, 1, 1] = reshape(%3) {values=[2, 1, 1]} op=RESHAPE node=2
    %23: float32[2, 3, 8] = concatenation(%15, %16) {new_axis=true} op=PACK node=6
    %24: float32[2, 1, 1, 8] = reshape(%0) {values=[2, 1, 1, 8]} op=FULLY_CONNECTED node=6
    %25: float32[2, 1, 1, 3] = expert_matmul(%24, %23, %4) op=FULLY_CONNECTED node=6 activation=relu
    %21: float32[2, 3] = expert_sum(%25, %10) op=ADD node=10
    outputs %21
    step group_experts applied node=8 into=6
    step group_experts applied node=7 into=10
    step group_experts applied node=9 into=10
    step group_experts applied node=10 "STEP"
    step group_experts applied node=5 into=10
    step group_experts applied node=4 into=10
    step group_experts applied node=3 into=10
    step group_experts applied node=1 into=10
    """.replace(
        "STEP",
        "for each sample, the 1 of 2 experts that it has picked are computed, all samples together",
    )
    before = after(PICKED, "skip_experts").partition("step ")[0]
    assert_becomes(before, "group_experts remove_dead", expected)


def test_gates_that_others_need_are_computed():
    got = after(PICKED.replace("outputs %21", "outputs %21, %12"), "skip_experts", "group_experts")
    assert "one_hot(" in got
    assert "split(" not in got


UNKNOWN = "the gates are not known to be a sum of weights at the indices of the largest scores"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "node=8 activation=relu", "node=8",
            "the experts differ in more than constants: the first one and number 1",
        ),
        ("binary(%17, %13)", "binary(%17, %14)", None),
        ("%7: float32[] = const [1]", "%7: float32[] = const [2]", UNKNOWN),
        ("%8: float32[] = const [0]", "%8: float32[] = const [1]", UNKNOWN),
        ("axes=[1]}", "op=max, axes=[1]}", UNKNOWN),
        ("(%9, %10) {op=mul}", "(%9, %10) {op=add}", UNKNOWN),
        ("one_hot(%4", "one_hot(%23", UNKNOWN),
        (
            "add(%18, %20)", "add(%18, %18)",
            "something else than additions reads the products with the gates",
        ),
        (
            "op=ADD node=10", "op=ADD node=10 activation=relu",
            "something else than additions reads the products with the gates",
        ),
    ],
)  # fmt: skip
def test_experts_that_differ_stay_apart(old, new, reason):
    text = PICKED.replace(old, new).replace("inputs %0", "%23: int32[2, 1]\ninputs %23, %0")
    assert text.count(new) > 0
    before = after(text, "skip_experts")
    assert before.count("only_if") == 2
    steps = [] if reason is None else [f'group_experts declined node=5 "{reason}"']
    assert_stays(before, "group_experts", *steps)


def test_many_samples_stay_apart_on_tensor_cores():
    before = after(PICKED.replace("[2, ", "[9, "), "skip_experts")
    reason = "9 samples; up to 8 are grouped on tensor cores"
    for facts in ({"mma_f16": True}, {"mma_tf32": True}):
        assert_stays(before, "group_experts", f'group_experts declined node=5 "{reason}"', **facts)
    assert "expert_sum(" in after(before, "group_experts")


@pytest.mark.parametrize(("samples", "stay"), [(4, False), (5, True)])
def test_experts_that_all_are_picked_have_no_predicates_on_tensor_cores(samples, stay):
    """Each of two experts is left out by one sample of two."""
    text = PICKED.replace("[2, ", f"[{samples}, ")
    reason = (
        "of samples that pick at random, 3.1 % of the experts would be left, and tensor cores "
        "compute all of them sooner than gates are looked at"
    )
    for facts in ({"mma_f16": True}, {"mma_tf32": True}):
        got = after(text, "skip_experts", **facts)
        assert (f'skip_experts declined node=9 "{reason}"' in got) == stay
        assert ("only_if" in got) != stay
    assert "only_if" in after(text, "skip_experts")


# split_samples

SAMPLES = """
%0: float32[2, 6, 6, 4] "x"
%1: float32[4, 1, 1, 4] = const splat(1)
%2: float32[2, 1, 1, 1]
inputs %0, %2
%3: float32[2, 6, 6, 4] "y" = conv2d(%0, %1) op=CONV_2D node=0 only_if(%2)
%4: float32[2, 6, 6, 4] "z" = unary(%3) {op=exp} op=EXP node=1 only_if(%2)
%5: float32[2, 6, 6, 4] = binary(%4, %2) {op=gated} op=MUL node=2
outputs %5
"""


def test_samples_of_an_expert_are_computed_one_by_one():
    expected = """
    %0: float32[2, 6, 6, 4] "x"
    %1: float32[4, 1, 1, 4] = const splat(1)
    %2: float32[2, 1, 1, 1]
    inputs %0, %2
    %6: float32[1, 6, 6, 4] "x sample 0" = rows.kept(%0) {rows={end=1}, samples=true} \
        op=ROWS node=0
    %7: float32[1, 6, 6, 4] "x sample 1" = rows.kept(%0) {rows={first=1, end=2}, samples=true} \
        op=ROWS node=0
    %8: float32[1, 6, 6, 4] "y sample 0" = conv2d(%6, %1) op=CONV_2D node=0 only_if(%2, 0)
    %9: float32[1, 6, 6, 4] "z sample 0" = unary(%8) {op=exp} op=EXP node=1 only_if(%2, 0)
    %10: float32[1, 6, 6, 4] "y sample 1" = conv2d(%7, %1) op=CONV_2D node=0 only_if(%2, 1)
    %11: float32[1, 6, 6, 4] "z sample 1" = unary(%10) {op=exp} op=EXP node=1 only_if(%2, 1)
    %4: float32[2, 6, 6, 4] "z" = concatenation(%9, %11) op=CONCATENATION node=1 only_if(%2)
    %5: float32[2, 6, 6, 4] = binary(%4, %2) {op=gated} op=MUL node=2
    outputs %5
    """
    assert_becomes(SAMPLES, "split_samples", expected)


MIXED = "%6: float32[2, 6, 6, 4] = cumsum(%4) node=3 only_if(%2)\n%5"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (", 1, 1, 1]\ninputs", ", 6, 6, 4]\ninputs"),  # several elements for a sample
        ("%5: float32[2, 6, 6, 4] = binary(%4,", f"{MIXED}: float32[2, 6, 6, 4] = binary(%6,"),
        ("conv2d(%0, %1) op=CONV_2D", "unary(%0) {op=exp} op=EXP"),  # no product
        ("only_if(%2)", "only_if(%2, 1)"),
        # Samples of an operand with fewer axes meet another axis.
        (
            "%5: float32[2, 6, 6, 4] = binary(%4,",
            "%7: float32[2, 4] = const splat(1)\n%8: float32[2, 4] = unary(%7) {op=exp} node=3\n"
            "%6: float32[2, 6, 6, 4] = binary(%4, %8) {op=add} node=4 only_if(%2)\n"
            "%5: float32[2, 6, 6, 4] = binary(%6,",
        ),
    ],
)
def test_other_experts_are_computed_for_the_whole_batch(old, new):
    assert_stays(SAMPLES.replace(old, new), "split_samples")


def test_one_sample_stays():
    assert_stays(SAMPLES.replace("32[2,", "32[1,"), "split_samples")


# bring_together


def test_products_of_the_same_rows_come_together():
    before = """
    %0: float32[1, 8]
    %1: float32[4, 8] = const splat(1)
    %2: int32[3] = const [1, 2, 2]
    inputs %0
    %3: float32[1, 4] = fully_connected(%0, %1) op=FULLY_CONNECTED node=0
    %4: float32[1, 2, 2] = reshape(%3, %2) {values=[1, 2, 2]} op=RESHAPE node=1
    %5: float32[1, 2, 2] = unary(%4) {op=sin} op=SIN node=2
    %6: float32[1, 8] = reshape(%0) {values=[1, 8]} op=RESHAPE node=3
    %7: float32[1, 4] = fully_connected(%6, %1) op=FULLY_CONNECTED node=4
    %8: float32[1, 2, 2] = reshape(%7, %2) {values=[1, 2, 2]} op=RESHAPE node=5
    outputs %5, %8
    """
    expected = """
    %0: float32[1, 8]
    %1: float32[4, 8] = const splat(1)
    %2: int32[3] = const [1, 2, 2]
    inputs %0
    %6: float32[1, 8] = reshape(%0) {values=[1, 8]} op=RESHAPE node=3
    %3: float32[1, 4] = fully_connected(%0, %1) op=FULLY_CONNECTED node=0
    %7: float32[1, 4] = fully_connected(%6, %1) op=FULLY_CONNECTED node=4
    %4: float32[1, 2, 2] = reshape(%3, %2) {values=[1, 2, 2]} op=RESHAPE node=1
    %5: float32[1, 2, 2] = unary(%4) {op=sin} op=SIN node=2
    %8: float32[1, 2, 2] = reshape(%7, %2) {values=[1, 2, 2]} op=RESHAPE node=5
    outputs %5, %8
    step bring_together applied node=4 "it follows node 0"
    """
    assert_becomes(before, "bring_together", expected)


def test_product_of_another_one_stays():
    before = """
    %0: float32[1, 8]
    %1: float32[8, 8] = const splat(1)
    inputs %0
    %2: float32[1, 8] = fully_connected(%0, %1) op=FULLY_CONNECTED node=0
    %3: float32[1, 8] = unary(%2) {op=sin} op=SIN node=1
    %4: float32[1, 8] = fully_connected(%3, %1) op=FULLY_CONNECTED node=2
    outputs %4
    """
    assert_stays(before, "bring_together")


def test_carried_tensor_is_not_changed_before_others_have_read_it():
    before = """
    %0: float32[1, 4] "a" carried=0
    %1: float32[1, 4] "b" carried=1
    %2: float32[1, 1]
    %3: int32[2] = const [0, 1]
    inputs %0, %1, %2
    %4: float32[1, 4] carried=0 = dynamic_update_slice(%0, %2, %3) op=DYNAMIC_UPDATE_SLICE node=0
    %5: float32[1, 4] = unary(%1) {op=sin} op=SIN node=1
    %6: float32[1, 4] carried=1 = dynamic_update_slice(%1, %2, %3) op=DYNAMIC_UPDATE_SLICE node=2
    outputs %4, %5, %6
    """
    assert_stays(before, "bring_together")
    other = before.replace("[1, 4] = unary(%1)", "[1, 1] = unary(%2)")
    got = after(other, "bring_together")
    assert "step bring_together applied node=2" in got


# fuse_borders

CONVERTED = """
%0: float32[1, 4, 4, 4]
%1: float32[4, 3, 3, 4] = const splat(0.5)
inputs %0
"""


def test_the_tensor_before_quantize_holds_integers():
    before = """
    %2: float32[1, 4, 4, 4] = conv2d(%0, %1) op=CONV_2D node=0
    %3: int8[1, 4, 4, 4] quantized(0.5, 3) = quantize(%2) op=QUANTIZE node=1
    outputs %3
    """
    expected = """
    %2: float32[1, 4, 4, 4] storage=int8 quantized(0.5, 3) = conv2d(%0, %1) op=CONV_2D node=0
    %3: int8[1, 4, 4, 4] quantized(0.5, 3) = quantize.fused(%2) op=QUANTIZE node=1
    outputs %3
    step fuse_borders applied node=1 into=0 "the kernel writes its results as int8"
    """
    assert_becomes(CONVERTED + before, "fuse_borders", CONVERTED + expected)


def test_a_tensor_before_quantize_with_other_readers_stays():
    before = """
    %2: float32[1, 4, 4, 4] = conv2d(%0, %1) op=CONV_2D node=0
    %3: int8[1, 4, 4, 4] quantized(0.5, 3) = quantize(%2) op=QUANTIZE node=1
    outputs %2, %3
    """
    reason = "its input is a result of the partition"
    assert_stays(CONVERTED + before, "fuse_borders", f'fuse_borders declined node=1 "{reason}"')


# order_levels

BRANCHES = """
%0: float32[1, 8, 8, 4]
inputs %0
%1: float32[1, 8, 8, 4] = unary(%0) {op=sin} op=SIN node=0
%2: float32[1, 8, 8, 4] = unary(%1) {op=cos} op=COS node=1
%3: float32[1, 8, 8, 4] = unary(%2) {op=exp} op=EXP node=2
%4: float32[1, 8, 8, 4] = unary(%0) {op=abs} op=ABS node=3
%5: float32[1, 8, 8, 4] = unary(%4) {op=neg} op=NEG node=4
%6: float32[1, 8, 8, 4] = add(%3, %5) op=ADD node=5
outputs %6
"""
NVIDIA_CHAINS = {"chains": True, "gpu": "nvidia"}


def test_nodes_of_branches_come_side_by_side():
    expected = """
    %0: float32[1, 8, 8, 4]
    inputs %0
    %1: float32[1, 8, 8, 4] = unary(%0) {op=sin} op=SIN node=0
    %4: float32[1, 8, 8, 4] = unary(%0) {op=abs} op=ABS node=3
    %2: float32[1, 8, 8, 4] = unary(%1) {op=cos} op=COS node=1
    %5: float32[1, 8, 8, 4] = unary(%4) {op=neg} op=NEG node=4
    %3: float32[1, 8, 8, 4] = unary(%2) {op=exp} op=EXP node=2
    %6: float32[1, 8, 8, 4] = add(%3, %5) op=ADD node=5
    outputs %6
    step order_levels applied node=3 "it runs beside node 0"
    step order_levels applied node=4 "it runs beside node 1"
    """
    assert_becomes(BRANCHES, "order_levels", expected, **NVIDIA_CHAINS)


def test_views_are_no_level_and_stand_before_their_readers():
    before = """
    %0: float32[1, 8]
    %1: int32[3] = const [1, 2, 4]
    inputs %0
    %2: float32[1, 8] = unary(%0) {op=sin} op=SIN node=0
    %3: float32[1, 2, 4] = reshape(%2, %1) {values=[1, 2, 4]} op=RESHAPE node=1
    %4: float32[1, 2, 4] = unary(%3) {op=cos} op=COS node=2
    %5: float32[1, 2, 4] = unary(%4) {op=exp} op=EXP node=3
    %6: float32[1, 2, 4] = reshape(%0, %1) {values=[1, 2, 4]} op=RESHAPE node=4
    %7: float32[1, 2, 4] = unary(%6) {op=abs} op=ABS node=5
    %8: float32[1, 2, 4] = unary(%7) {op=neg} op=NEG node=6
    outputs %5, %8
    """
    expected = """
    %0: float32[1, 8]
    %1: int32[3] = const [1, 2, 4]
    inputs %0
    %2: float32[1, 8] = unary(%0) {op=sin} op=SIN node=0
    %6: float32[1, 2, 4] = reshape(%0, %1) {values=[1, 2, 4]} op=RESHAPE node=4
    %7: float32[1, 2, 4] = unary(%6) {op=abs} op=ABS node=5
    %3: float32[1, 2, 4] = reshape(%2, %1) {values=[1, 2, 4]} op=RESHAPE node=1
    %4: float32[1, 2, 4] = unary(%3) {op=cos} op=COS node=2
    %8: float32[1, 2, 4] = unary(%7) {op=neg} op=NEG node=6
    %5: float32[1, 2, 4] = unary(%4) {op=exp} op=EXP node=3
    outputs %5, %8
    step order_levels applied node=5 "it runs beside node 0"
    step order_levels applied node=6 "it runs beside node 2"
    """
    assert_becomes(before, "order_levels", expected, **NVIDIA_CHAINS)


def test_concatenation_stays_behind_the_writers_of_its_parts():
    before = """
    %0: float32[1, 4]
    inputs %0
    %1: float32[1, 4] = unary(%0) {op=sin} op=SIN node=0
    %2: float32[1, 4] = unary(%1) {op=cos} op=COS node=1
    %3: float32[1, 4] = unary(%0) {op=abs} op=ABS node=2
    %4: float32[1, 8] = concatenation(%2, %3) {axis=1} op=CONCATENATION node=3
    outputs %4
    """
    got = after(before, "order_levels", "remove_concatenations", **NVIDIA_CHAINS)
    nodes = re.findall(r"node=(\d)\n", got)
    assert nodes[:4] == ["0", "2", "1", "3"]
    assert got.count(" part(") == 2


@pytest.mark.parametrize("settings", [{}, {"chains": True}, {"gpu": "nvidia"}])
def test_order_stays_without_chains_of_nvidia(settings):
    assert_stays(BRANCHES, "order_levels", **settings)


def test_order_stays_where_a_result_is_large():
    """All results of a level take memory at once."""
    large = BRANCHES.replace("[1, 8, 8, 4]", "[1, 1024, 512, 4]")
    assert "order_levels applied" in after(large, "order_levels", **NVIDIA_CHAINS)
    assert_stays(large.replace("512, 4]", "513, 4]"), "order_levels", **NVIDIA_CHAINS)


def test_order_stays_where_a_tensor_is_carried():
    """Who reads its old value stands before the node that may change it in place."""
    before = """
    %0: float32[1, 4] "a" carried=0
    %1: float32[1, 1]
    %2: int32[2] = const [0, 1]
    inputs %0, %1
    %3: float32[1, 4] = unary(%0) {op=sin} op=SIN node=0
    %4: float32[1, 4] = unary(%3) {op=cos} op=COS node=1
    %5: float32[1, 4] carried=0 = dynamic_update_slice(%0, %1, %2) op=DYNAMIC_UPDATE_SLICE node=2
    outputs %4, %5
    """
    assert_stays(before, "order_levels", **NVIDIA_CHAINS)
    assert "order_levels applied" in after(
        before.replace(" carried=0", ""), "order_levels", **NVIDIA_CHAINS
    )


def test_order_stays_where_a_node_has_a_predicate():
    before = BRANCHES.replace("inputs %0\n", "%9: bool[1]\ninputs %0, %9\n")
    assert "order_levels applied" in after(before, "order_levels", **NVIDIA_CHAINS)
    before = before.replace("op=NEG node=4", "op=NEG node=4 only_if(%9)")
    assert_stays(before, "order_levels", **NVIDIA_CHAINS)


def test_each_pass_has_its_cases_here():
    cases = Path(__file__).read_text(encoding="utf-8")
    for name in _core.ir_passes():
        for check in ("assert_becomes", "assert_stays"):
            assert re.search(rf'{check}\([^"]*"[^"]*\b{name}\b', cases), f"{check} for {name}"

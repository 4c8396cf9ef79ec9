"""Requantisation as floats (kernels/common/by_floats.cl) equals that of integers, in every bit."""

from __future__ import annotations

import numpy as np
import pytest

import clgpu_delegate
from clgpu_delegate import _core
from tests.model_maker import ModelMaker, Quantization
from tests.runtimes import make_interpreter

# A kernel of ADD that is replaced: it gets the parameters of a quantised sum.
FILE = "binary/quantized.cl"
COUNT = 1 << 16

# Sums near the borders between two results, where floats decide last, and any sums; multipliers and
# shifts of clgpu::ops::ChannelTable::quick. With PAIRS sums in the middle between two borders, one
# for each result. The result is 1 where both ways agree.
KERNEL = """
#define QUANTIZED 1
#define SUM_T int
#define RESIDUAL %(residual)d
#define PAIRS %(pairs)d
#define RESIDUAL_T char
#define RESIDUAL_AFTER 0
#define TABLE 0
#define ACT 0
#define ACT_ALPHA 0.0f
#define BY_FLOATS 1
#include "common/broadcast.cl"
#include "common/epilogue.cl"
#include "common/by_floats.cl"
__kernel void binary_quantized(__global const char *a, __global const char *residual,
                               RESULT_PARAM QUANTIZED_PAIR_PARAMS, BROADCAST_DIMS,
                               BROADCAST_STRIDES(a), BROADCAST_STRIDES(b)) {
  const float real_a = %(a).9ef, real_b = %(b).9ef, real_start = %(start).9ef;
  for (int j = 0; j < WIDTH; j += 4) {
    const int at = (int)get_global_id(0) * WIDTH + j;
    int4 sum;
    channel4_t c;
    int *sums = (int *)&sum, *multipliers = (int *)&c.multiplier, *shifts = (int *)&c.shift;
    c.start = (int4)(5, -7, 0, 11);
    for (int k = 0; k < 4; ++k) {
      const uint hash = (uint)(at + k) * 2654435761u ^ (uint)(at + k) >> 7;
      multipliers[k] = (1 << 30) + (int)(hash >> 2);
      shifts[k] = -1 - (int)((uint)(at + k) * 40503u >> 8) %% 18;
      const long twice = (long)((int)(hash >> 5) %% 521 - 260) * 2 + 1;
      const long near = (twice << (30 - shifts[k])) / multipliers[k] + (long)(hash %% 5u) - 2;
      sums[k] = hash %% 4u == 0 ? (int)hash >> (hash >> 27 & 15u)
                               : (int)clamp(near, -(1L << 30), 1L << 30);
      const long steps = (at + k) / 256 %% 256 - 128 - pair_a_zero;
      if (PAIRS) sums[k] = (int)((steps << (31 - shifts[k])) / multipliers[k]);
    }
    if (PAIRS) c.start = (int4)(0);
    const int dst_zero = pair_a_zero, dst_low = -128, dst_high = 127;
    const int4 real = FINISH_BY_FLOATS4(sum, c, REAL_CHANNEL4(c),
                                        LOAD4_ALIGNED(char, residual, at));
    const int4 whole = FINISH_SUM4_ALIGNED(sum, c, at);
    const int4 agree = (real == whole) & 1;
    STORE4(DST_T, dst, at, agree);
  }
}
"""


@pytest.mark.parametrize("kind", ["sums", "sums and a residual", "all pairs"])
@pytest.mark.parametrize("seed", range(4))
def test_floats_give_the_results_of_integers(seed, kind, device):
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.01, 0.02, 3)
    if seed % 2:  # an eighth of the sums with a residual lie so near to a half that floats differ
        scales = scales[2] * np.array([0.75, 0.625, 1])
    zeros = [int(zero) for zero in rng.integers(-128, 128, 3)]
    a, b = scales[0] / scales[2], scales[1] / scales[2]
    # As clgpu::ops::real_pair, with the zero point of a taken off its stored values.
    start = zeros[2] - b * zeros[1]
    residual, pairs = int(kind != "sums"), int(kind == "all pairs")
    text = KERNEL % {"residual": residual, "pairs": pairs, "a": a, "b": b, "start": start}
    m = ModelMaker()
    x, y = (
        m.input(name, (COUNT,), np.int8, quantization=Quantization(float(s), z))
        for name, s, z in zip("xy", scales, zeros)
    )
    m.output(m.op("ADD", [x, y], (COUNT,), quantization=Quantization(float(scales[2]), zeros[2])))
    _core.override_kernel_source(FILE, text)
    try:
        delegate = clgpu_delegate.load(device=device, cache="off", verify="off", warm_up=False)
        interpreter = make_interpreter("auto", m.build(), [delegate])
        interpreter.allocate_tensors()
        assert all(node.claimed for node in delegate.explain().nodes)
        for detail in interpreter.get_input_details():
            values = rng.integers(-128, 128, COUNT).astype(np.int8)
            if pairs:  # each result with each number that is added
                values = np.resize(np.arange(-128, 128, dtype=np.int8), COUNT)
            interpreter.set_tensor(detail["index"], values)
        interpreter.invoke()
        agree = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    finally:
        _core.override_kernel_source(FILE, None)
    np.testing.assert_array_equal(agree, 1)

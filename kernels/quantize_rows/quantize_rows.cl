// quantize_rows.cl - floats to int8, each row with its own scale and zero point; rows may be images, which
//                    get a border
//
// Shapes    src: [rows, in_h, in_w, channels]; ranges: [rows, PARTS, 2], least and greatest element of a part;
//           dst: [rows, out_h, out_w, channels], src at (top, left), zero points around it;
//           factors: [rows, 2], the bits of the scale and the zero point
// Launch    quantize_rows_ranges: a work-group for each part: global = (ITEMS * PARTS, rows),
//           local = (ITEMS, 1); quantize_rows: the same
// Macros    SRC_T       float|half  element type of src
//           ITEMS       1..64       work-items of a part
//           PARTS       1..64       parts of a row
//           ASYMMETRIC  0|1         see factors.cl
// Numerics  round(zero + x * (1 / scale)) in float, halves away from zero, as in TFLite's hybrid kernels
#include "common/local.cl"
#include "common/types.cl"
#include "quantize_rows/factors.cl"

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void quantize_rows_ranges(
    __global const SRC_T *src, __global float *ranges, int elements) {
  LOCAL_ARRAY(float, least, ITEMS);
  LOCAL_ARRAY(float, greatest, ITEMS);
  const int item = get_local_id(0), row = get_global_id(1);
  src += row * elements;
  float low = INFINITY, high = -INFINITY;
  for (int i = get_global_id(0); i < elements; i += ITEMS * PARTS) {
    const float x = LOAD(SRC_T, src, i);
    low = min(low, x);
    high = max(high, x);
  }
  least[item] = low;
  greatest[item] = high;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    for (int i = 1; i < ITEMS; ++i) {
      low = min(low, least[i]);
      high = max(high, greatest[i]);
    }
    const int at = (row * PARTS + (int)get_group_id(0)) * 2;
    ranges[at] = low;
    ranges[at + 1] = high;
  }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void quantize_rows(
    __global const SRC_T *src, __global const float *ranges, __global char *dst,
    __global int *factors, int in_h, int in_w, int channels, int out_h, int out_w, int top,
    int left) {
#pragma OPENCL FP_CONTRACT OFF
  const int row = get_global_id(1);
  ranges += row * PARTS * 2;
  float low = ranges[0], high = ranges[1];
  for (int i = 1; i < PARTS; ++i) {
    low = min(low, ranges[2 * i]);
    high = max(high, ranges[2 * i + 1]);
  }
  const row_factors_t f = row_factors(low, high);
  if (get_global_id(0) == 0) {
    factors[2 * row] = as_int(f.scale);
    factors[2 * row + 1] = f.zero;
  }
  src += row * in_h * in_w * channels;
  dst += row * out_h * out_w * channels;
  for (int i = get_global_id(0); i < out_h * out_w * channels; i += ITEMS * PARTS) {
    const int x = i / channels % out_w - left, y = i / channels / out_w - top;
    const bool inside = x >= 0 && x < in_w && y >= 0 && y < in_h;
    int q = f.zero;
    if (inside) {
      const float scaled = LOAD(SRC_T, src, (y * in_w + x) * channels + i % channels) * f.inverse;
      q = clamp((int)round((float)f.zero + scaled), ASYMMETRIC ? -128 : -127, 127);
    }
    dst[i] = (char)q;
  }
}

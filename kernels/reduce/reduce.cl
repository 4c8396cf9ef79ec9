// reduce.cl - dst[i] = OP over r of src[kept offset of i + reduced offset of r]
//
// Shapes    src: alternating kept and reduced axes, neighbours of one kind merged: at most three of
//           each, sizes (.., k1, k2) and (.., r1, r2), each with a stride in elements
//           dst: [outputs], the kept axes in their order
// Launch    global = (ceil(outputs / WX) * WX * WY, 1, 1), local = (WX * WY, 1, 1): a work-group
//           computes WX outputs, WY work-items share each
// Macros    OP     0..4                    0 sum, 1 mean, 2 max, 3 min, 4 product
//           WX     power of two, 1..256    outputs of a work-group
//           WY     power of two, 1..256    work-items that share an output
//           Y_FAST 0|1                     1: neighbouring items share an output; 0: they compute
//                                          neighbouring outputs; the order of src decides
//           R_AXES 1|3                     1: r2 is the only reduced axis
//           SRC_T  float|half|int|long|short|char|uchar  element type of src
//           DST_T  float|half|int|long|short|char|uchar  element type of dst
//           ACC_T  float|int|long          type of the accumulators
//           QUANTIZED  0|1                 1: OP is 0, ACC_T int; the sum plus `start` is requantised:
//                                          times multiplier * 2^(shift - 31), plus dst_zero, clamped
// Numerics  float sums in blocks of 32 per work-item, the work-items pairwise; integer means are truncated
//           towards zero, sums of quantised integers wrap around; ACT and ACT_ALPHA (float only): see
//           common/activation.cl
#include "common/activation.cl"
#include "common/local.cl"
#include "common/types.cl"
#if QUANTIZED
#include "common/multiply.cl"
#define REQUANTIZE_PARAM \
  int start, int multiplier, int shift, int dst_zero, int dst_low, int dst_high,
#else
#define REQUANTIZE_PARAM
#endif

#define LOWEST_float (-INFINITY)
#define LOWEST_int INT_MIN
#define LOWEST_long LONG_MIN
#define HIGHEST_float INFINITY
#define HIGHEST_int INT_MAX
#define HIGHEST_long LONG_MAX

#if OP == 0 || OP == 1
#define EMPTY ((ACC_T)0)
#define COMBINE(a, b) ((a) + (b))
#elif OP == 2
#define EMPTY CLGPU_CAT(LOWEST_, ACC_T)
#define COMBINE(a, b) max(a, b)
#elif OP == 3
#define EMPTY CLGPU_CAT(HIGHEST_, ACC_T)
#define COMBINE(a, b) min(a, b)
#else
#define EMPTY ((ACC_T)1)
#define COMBINE(a, b) ((a) * (b))
#endif

#if R_AXES == 1
#define REDUCED_OFFSET(r) ((r) * r2_stride)
#else
#define REDUCED_OFFSET(r) \
  ((r) / r2 / r1 * r0_stride + (r) / r2 % r1 * r1_stride + (r) % r2 * r2_stride)
#endif
// Elements that a work-item sums before it adds to its total, which bounds the error of long sums.
#define BLOCK 32

__kernel __attribute__((reqd_work_group_size(WX * WY, 1, 1))) void reduce_axes(
    __global const SRC_T *src, __global DST_T *dst, REQUANTIZE_PARAM int outputs, int count, int k1,
    int k2, int k0_stride, int k1_stride, int k2_stride, int r1, int r2, int r0_stride,
    int r1_stride, int r2_stride) {
  const int item = get_local_id(0);
  const int x = Y_FAST ? item / WY : item % WX;
  const int y = Y_FAST ? item % WY : item / WX;
  const int output = get_group_id(0) * WX + x;
  ACC_T total = EMPTY;
  if (output < outputs) {
    src += output / k2 / k1 * k0_stride + output / k2 % k1 * k1_stride + output % k2 * k2_stride;
    int r = y;
    while (r < count) {
      const int end = count - r > BLOCK * WY ? r + BLOCK * WY : count;
      ACC_T part = EMPTY;
      for (; r < end; r += WY) part = COMBINE(part, (ACC_T)LOAD(SRC_T, src, REDUCED_OFFSET(r)));
      total = COMBINE(total, part);
    }
  }
#if WY > 1
  LOCAL_ARRAY(ACC_T, totals, WX * WY);
  totals[y * WX + x] = total;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WY / 2; step > 0; step /= 2) {
    if (y < step) {
      totals[y * WX + x] = COMBINE(totals[y * WX + x], totals[(y + step) * WX + x]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  total = totals[x];
#endif
  if (y == 0 && output < outputs) {
#if OP == 1
    total = total / (ACC_T)count;
#endif
#if QUANTIZED
    total = clamp(requantize_int(total + start, multiplier, shift) + dst_zero, dst_low, dst_high);
#endif
#if ACT != 0
    total = ACTIVATE(total);
#endif
    STORE(DST_T, dst, output, total);
  }
}

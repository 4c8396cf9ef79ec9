// quantized_product.cl - dst[i] = product over r of (src[kept offset of i + reduced offset of r] - src_zero),
//                        rescaled after each factor, plus dst_zero
//
// Shapes    as in reduce.cl
// Launch    one work-item per output: global = (outputs, rounded up), local = (64)
// Macros    SRC_T, DST_T  char|short  element types
// Numerics  after each factor, and after a final 1, the product is multiplied by multiplier *
//           2^(shift - 31) in 64 bits and truncated to 32: the order of the factors matters; it is that of src
#include "common/multiply.cl"
#include "common/types.cl"

__kernel void reduce_quantized_product(__global const SRC_T *src, __global DST_T *dst, int src_zero,
                                       int multiplier, int shift, int dst_zero, int dst_low,
                                       int dst_high, int outputs, int count, int k1, int k2,
                                       int k0_stride, int k1_stride, int k2_stride, int r1, int r2,
                                       int r0_stride, int r1_stride, int r2_stride) {
  const int output = get_global_id(0);
  if (output >= outputs) return;
  src += output / k2 / k1 * k0_stride + output / k2 % k1 * k1_stride + output % k2 * k2_stride;
  int product = LOAD(SRC_T, src, 0) - src_zero;
  for (int r = 1; r < count; ++r) {
    const int at = r / r2 / r1 * r0_stride + r / r2 % r1 * r1_stride + r % r2 * r2_stride;
    const long next = (long)product * (LOAD(SRC_T, src, at) - src_zero);
    product = requantize_long(next, multiplier, shift);
  }
  const int result = requantize_long((long)product, multiplier, shift) + dst_zero;
  STORE(DST_T, dst, output, clamp(result, dst_low, dst_high));
}

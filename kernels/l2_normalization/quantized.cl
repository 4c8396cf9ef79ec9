// quantized.cl - L2 normalisation over the last axis of quantised integers of 8 bits
//
// Shapes    src, dst: [rows, cols], row-major, contiguous
// Launch    global = (ceil(rows / ROWS) * ROWS * WG, 1, 1), local = (ROWS * WG, 1, 1): a work-group
//           takes ROWS rows, WG work-items share each
// Macros    ROWS   power of two, 1..64   rows of a work-group
//           WG     power of two, 1..256  work-items per row
//           SRC_T  char|uchar            element type of src and dst; dst has the scale 1/128 and the
//                                        zero point 0 (char) or 128
// Numerics  bit for bit as TFLite's reference kernels, which round differently for char and uchar
#include "common/fixed_point.cl"
#include "common/local.cl"
#include "common/types.cl"

#define NORMALIZED(x) CLGPU_CAT(normalized_, SRC_T)(x, inverse, power)
static inline int normalized_char(int x, int inverse, int power) {
  return clamp(requantize_int(x, inverse, 7 - power), -128, 127);
}
static inline int normalized_uchar(int x, int inverse, int power) {
  return clamp(FIXED_SHIFT(FIXED_MUL(128 * x, inverse), power) + 128, 0, 255);
}

__kernel __attribute__((reqd_work_group_size(ROWS * WG, 1, 1))) void l2_normalization_quantized(
    __global const SRC_T *src, __global SRC_T *dst, int rows, int cols, int src_zero) {
  const int item = get_local_id(0) % WG;
  const int row = get_group_id(0) * ROWS + get_local_id(0) / WG;
  const int end = row < rows ? cols : 0;  // rows past the end have no elements
  src += row * cols;
  dst += row * cols;
  int sum = 0;
  for (int c = item; c < end; c += WG) {
    const int x = src[c] - src_zero;
    sum += x * x;
  }
#if WG > 1
  LOCAL_ARRAY(int, sums, ROWS *WG);
  const int mine = get_local_id(0);
  sums[mine] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) sums[mine] += sums[mine + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = sums[mine - item];
#endif
  int power;
  const int inverse = fixed_inverse_root(sum, &power);
  for (int c = item; c < end; c += WG) dst[c] = (SRC_T)(NORMALIZED(src[c] - src_zero));
}

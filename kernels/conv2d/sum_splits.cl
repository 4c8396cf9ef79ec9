// sum_splits.cl - dst[p, o] = act(bias[o] + sum over s of src[s, p, o]), the end of a convolution
//                 whose depth is shared by several work-groups
//
// Shapes    src: [splits, pixels, out_c] of SUM_T; bias: [out_c]; dst: [pixels, out_c]
// Launch    one work-item per element of dst: global = (elements, rounded up), local = (64)
// Macros    DST_T           float|half|char|uchar  element type of dst
//           and those of common/epilogue.cl
// Numerics  the sum is in SUM_T, in the order of s; the bias is added last
#include "common/epilogue.cl"
#include "common/types.cl"

__kernel void conv2d_sum_splits(__global const SUM_T *src,
                                BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int elements, int out_c,
                                int splits) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  SUM_T sum = 0;
  for (int s = 0; s < splits; ++s) sum += src[s * elements + i];
  const int o = i % out_c, at = RESULT_AT(i / out_c, o, out_c);
  STORE(DST_T, dst, at, FINISH_SUM(sum, CHANNEL_AT(o), at));
}

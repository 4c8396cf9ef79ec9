// conv3d.cl - convolutions of volumes, and transposed ones: dst = activation(sum + bias)
//
// Shapes    src: [batches, src_d, src_h, src_w, src_c]; dst: [batches, dst_d, dst_h, dst_w, dst_c];
//           weights: [filter_d, filter_h, filter_w, src_c, dst_c], of transposed ones
//           [filter_d, filter_h, filter_w, dst_c, src_c]; bias: [dst_c]
// Launch    one work-item per element of dst: global = elements, local any
// Macros    TRANSPOSED  0|1         1: src is spread over dst by the strides
//           HAS_BIAS    0|1         1: with a bias
//           SRC_T       float|half  element type of src
//           WEIGHTS_T   float|half  element type of weights
//           BIAS_T if HAS_BIAS  float|half  element type of bias
//           DST_T       float|half  element type of dst
//           and those of common/activation.cl
// Numerics  sums in float, in the order depth, height, width, channel
#include "common/activation.cl"
#include "common/types.cl"

// The place in src of tap k for place `at` of dst, or -1.
static inline int place_of(int at, int k, int stride, int dilation, int pad, int size) {
#if TRANSPOSED
  const int spread = at + pad - k * dilation;
  if (spread < 0 || spread % stride != 0) return -1;
  const int place = spread / stride;
  return place < size ? place : -1;
#else
  const int place = at * stride - pad + k * dilation;
  return place >= 0 && place < size ? place : -1;
#endif
}

__kernel void conv3d_naive(__global const SRC_T *src, __global const WEIGHTS_T *weights,
#if HAS_BIAS
                           __global const BIAS_T *bias,
#endif
                           __global DST_T *dst, int elements, int src_d, int src_h, int src_w,
                           int src_c, int dst_d, int dst_h, int dst_w, int dst_c, int filter_d,
                           int filter_h, int filter_w, int stride_d, int stride_h, int stride_w,
                           int dilation_d, int dilation_h, int dilation_w, int pad_d, int pad_h,
                           int pad_w) {
  const int i = get_global_id(0);
  if (i >= elements) return;
  const int c = i % dst_c, voxel = i / dst_c;
  const int x = voxel % dst_w, line = voxel / dst_w;
  const int y = line % dst_h, plane = line / dst_h;
  const int z = plane % dst_d, batch = plane / dst_d;
  float sum = 0.0f;
  for (int fz = 0; fz < filter_d; ++fz) {
    const int sz = place_of(z, fz, stride_d, dilation_d, pad_d, src_d);
    if (sz < 0) continue;
    for (int fy = 0; fy < filter_h; ++fy) {
      const int sy = place_of(y, fy, stride_h, dilation_h, pad_h, src_h);
      if (sy < 0) continue;
      for (int fx = 0; fx < filter_w; ++fx) {
        const int sx = place_of(x, fx, stride_w, dilation_w, pad_w, src_w);
        if (sx < 0) continue;
        const int from = (((batch * src_d + sz) * src_h + sy) * src_w + sx) * src_c;
        const int tap = ((fz * filter_h + fy) * filter_w + fx) * src_c * dst_c;
        for (int k = 0; k < src_c; ++k) {
#if TRANSPOSED
          const int at = tap + c * src_c + k;
#else
          const int at = tap + k * dst_c + c;
#endif
          sum += LOAD(SRC_T, src, from + k) * LOAD(WEIGHTS_T, weights, at);
        }
      }
    }
  }
#if HAS_BIAS
  sum += LOAD(BIAS_T, bias, c);
#endif
  STORE(DST_T, dst, i, ACTIVATE(sum));
}

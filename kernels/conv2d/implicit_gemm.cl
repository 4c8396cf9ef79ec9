// implicit_gemm.cl - 2-D convolution as in naive.cl, as a product of matrices tiled in local memory;
//                    the rows of the left matrix (im2col) are read from src on the fly
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; dst: [pixels, out_c], pixels = n * out_h * out_w
//           packed: [groups, panels, depth, TN] as pack_weights.cl writes it,
//           depth = filter_h * filter_w * group_in
//           with SPLIT dst is a float buffer [splits, pixels, out_c] of sums over `chunk` elements of
//           depth each, for sum_splits.cl; chunk is a multiple of 16
// Launch    one work-group of 256 per tile of TM pixels x TN channels and per split:
//           global = (256 * ceil(pixels / TM), panels, groups * splits), local = (256, 1, 1)
// Macros    TM, TN  64|128         tile: pixels and output channels of a work-group
//           VEC_K   0|1            1: group_in and in_c are multiples of 4
//           SPLIT   0|1            there are parameters splits and chunk
//           SRC_T, PACKED_T, DST_T float|half  element types
//           BIAS, BIAS_T, RESIDUAL, RESIDUAL_T, ACT, ACT_ALPHA  see common/epilogue.cl
// Numerics  products and sum in float, in the order of the filter taps, then input channels; the bias
//           is added last
#include "common/epilogue.cl"
#include "common/types.cl"
#ifndef TM
#error "TM is required (64 or 128)"
#endif
#ifndef TN
#error "TN is required (64 or 128)"
#endif
#ifndef VEC_K
#error "VEC_K is required (0 or 1)"
#endif
#ifndef SPLIT
#error "SPLIT is required (0 or 1)"
#endif
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef PACKED_T
#error "PACKED_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif

#define TK 16         // depth of a step
#define QM (TM / 64)  // groups of four pixels, and ...
#define QN (TN / 64)  // ... of four channels of a work-item
#define ROW (TM + 4)  // row of the left tile: the padding spreads its writes over the banks

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void conv2d_implicit_gemm(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM __global DST_T *dst,
#if SPLIT
    int splits, int chunk,
#endif
    int pixels, int panels, int group_in, int group_out, int in_h, int in_w, int in_c, int out_h,
    int out_w, int out_c, int filter_h, int filter_w, int stride_h, int stride_w, int dilation_h,
    int dilation_w, int top, int left) {
  __local float4 a_tile[TK * ROW / 4];  // [TK][ROW], pixels along the row
  __local float4 b_tile[TK * TN / 4];   // [TK][TN]
  __local float *a_elements = (__local float *)a_tile;

  const int item = get_local_id(0);
  const int panel = get_group_id(1);
  const int depth = filter_h * filter_w * group_in;
#if SPLIT
  const int group = (int)get_group_id(2) / splits, split = (int)get_group_id(2) % splits;
  const int begin = split * chunk, end = min(begin + chunk, depth);
  dst += split * pixels * out_c;
#else
  const int group = get_group_id(2);
  const int begin = 0, end = depth;
#endif
  const int first_pixel = (int)get_group_id(0) * TM;
  packed += (group * panels + panel) * depth * TN;
  src += group * group_in;

  // Loading the left tile: the item reads the four elements k0 .. k0+3 of QM pixels.
  const int k0 = item % (TK / 4) * 4;
  int in_x[QM], in_y[QM], image[QM];
#pragma unroll
  for (int q = 0; q < QM; ++q) {
    const int pixel = first_pixel + item / (TK / 4) + q * 64;
    in_x[q] = pixel % out_w * stride_w - left;
    in_y[q] = pixel < pixels ? pixel / out_w % out_h * stride_h - top : INT_MIN / 2;
    image[q] = pixel < pixels ? pixel / out_w / out_h * in_h * in_w : 0;
  }
  // Input channel and filter tap of element k0 of the present step.
  int i0 = (begin + k0) % group_in;
  int t0 = (begin + k0) / group_in % filter_w, u0 = (begin + k0) / group_in / filter_w;

  float4 sum[QM * 4][QN];
#pragma unroll
  for (int r = 0; r < QM * 4; ++r) {
#pragma unroll
    for (int c = 0; c < QN; ++c) sum[r][c] = (float4)(0.0f);
  }

  const int row = item / 16, column = item % 16;
  for (int step = begin; step < end; step += TK) {
    float4 a[QM], b[QN];
#if VEC_K
    const int at_u = u0 * dilation_h, at_t = t0 * dilation_w;
#pragma unroll
    for (int q = 0; q < QM; ++q) {
      const int y = in_y[q] + at_u, x = in_x[q] + at_t;
      const bool inside = u0 < filter_h && (uint)y < (uint)in_h && (uint)x < (uint)in_w;
      a[q] = (float4)(0.0f);
      if (inside) a[q] = LOAD4_ALIGNED(SRC_T, src, (image[q] + y * in_w + x) * in_c + i0);
    }
#else
#pragma unroll
    for (int q = 0; q < QM; ++q) {
      int i = i0, t = t0, u = u0;
      float e[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int y = in_y[q] + u * dilation_h, x = in_x[q] + t * dilation_w;
        const bool inside = u < filter_h && (uint)y < (uint)in_h && (uint)x < (uint)in_w;
        e[j] = 0.0f;
        if (inside) e[j] = LOAD(SRC_T, src, (image[q] + y * in_w + x) * in_c + i);
        const bool next_tap = ++i == group_in;
        i = next_tap ? 0 : i;
        t += next_tap ? 1 : 0;
        const bool next_row = t == filter_w;
        t = next_row ? 0 : t;
        u += next_row ? 1 : 0;
      }
      a[q] = (float4)(e[0], e[1], e[2], e[3]);
    }
#endif
    for (i0 += TK; i0 >= group_in; i0 -= group_in) {
      const bool next_row = ++t0 == filter_w;
      t0 = next_row ? 0 : t0;
      u0 += next_row ? 1 : 0;
    }
#pragma unroll
    for (int q = 0; q < QN; ++q) {
      const int quad = item + q * 256;
      const int k = step + quad / (TN / 4);
      b[q] = (float4)(0.0f);
      if (k < depth) b[q] = LOAD4_ALIGNED(PACKED_T, packed, k * TN + quad % (TN / 4) * 4);
    }

    barrier(CLK_LOCAL_MEM_FENCE);  // the tiles of the step before have been read
#pragma unroll
    for (int q = 0; q < QM; ++q) {
      const int at = k0 * ROW + item / (TK / 4) + q * 64;
      a_elements[at] = a[q].s0;
      a_elements[at + ROW] = a[q].s1;
      a_elements[at + 2 * ROW] = a[q].s2;
      a_elements[at + 3 * ROW] = a[q].s3;
    }
#pragma unroll
    for (int q = 0; q < QN; ++q) b_tile[item + q * 256] = b[q];
    barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll
    for (int k = 0; k < TK; ++k) {
      float4 w[QN];
#pragma unroll
      for (int c = 0; c < QN; ++c) w[c] = b_tile[k * (TN / 4) + c * 16 + column];
#pragma unroll
      for (int q = 0; q < QM; ++q) {
        const float4 x = a_tile[k * (ROW / 4) + q * 16 + row];
#pragma unroll
        for (int c = 0; c < QN; ++c) {
          sum[q * 4][c] = mad((float4)(x.s0), w[c], sum[q * 4][c]);
          sum[q * 4 + 1][c] = mad((float4)(x.s1), w[c], sum[q * 4 + 1][c]);
          sum[q * 4 + 2][c] = mad((float4)(x.s2), w[c], sum[q * 4 + 2][c]);
          sum[q * 4 + 3][c] = mad((float4)(x.s3), w[c], sum[q * 4 + 3][c]);
        }
      }
    }
  }

#pragma unroll
  for (int c = 0; c < QN; ++c) {
    const int channel = panel * TN + (c * 16 + column) * 4;  // within the group
    const int left_over = group_out - channel;
    const int o = group * group_out + channel;
    float4 b = (float4)(0.0f);
    if (left_over > 0) b.s0 = BIAS_AT(o);
    if (left_over > 1) b.s1 = BIAS_AT(o + 1);
    if (left_over > 2) b.s2 = BIAS_AT(o + 2);
    if (left_over > 3) b.s3 = BIAS_AT(o + 3);
#pragma unroll
    for (int r = 0; r < QM * 4; ++r) {
      const int pixel = first_pixel + (r / 4 * 16 + row) * 4 + r % 4;
      if (pixel < pixels) {
        const float4 v = sum[r][c] + b;
        const int at = pixel * out_c + o;
        if (left_over > 3) {
          STORE4(DST_T, dst, at, FINISH4(v, at));
        } else {
          if (left_over > 0) STORE(DST_T, dst, at, FINISH(v.s0, at));
          if (left_over > 1) STORE(DST_T, dst, at + 1, FINISH(v.s1, at + 1));
          if (left_over > 2) STORE(DST_T, dst, at + 2, FINISH(v.s2, at + 2));
        }
      }
    }
  }
}

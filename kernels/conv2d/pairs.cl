// pairs.cl - 2-D convolution of 8-bit integers as in naive.cl for CPUs; a work-item copies the pixels that a
//            tile reads to local memory, as shorts, and keeps PX pixels x (OV * VW) channels in registers
//
// Shapes    src: [n, in_h, in_w, in_c]; dst: [pixels, out_c], pixels = n * out_h * out_w
//           packed: [groups, panels, ceil(depth / 2), OV * VW, 2] as pack_pairs.cl writes it, depth =
//           filter_h * filter_w * group_in
// Launch    axis 0: blocks of `block` panels of a group; axis 1: blocks of `tiles` * PX consecutive
//           pixels; axis 2: groups. local = (1, 1, 1)
// Macros    VW        4|8|16   channels of one vector
//           OV        1..2     vectors of a panel
//           PX        1..14    pixels of a tile
//           RUN       even     elements of the depth that are in local memory at once
//           SRC_T     char|uchar  element type of src
//           PACKED_T  char|short  element type of packed
//           DST_T     char|uchar  element type of dst
//           REFLECT   0|1      see common/border.cl
//           and those of common/epilogue.cl, QUANTIZED being 1
// Numerics  exact
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/pairs.cl"
#ifndef OV
#error "OV is required (1..2)"
#endif
#ifndef PX
#error "PX is required (1..14)"
#endif
#ifndef RUN
#error "RUN is required (even)"
#endif
#ifndef SRC_T
#error "SRC_T is required (char or uchar)"
#endif
#ifndef PACKED_T
#error "PACKED_T is required (char or short)"
#endif
#ifndef DST_T
#error "DST_T is required (char or uchar)"
#endif

#define PANEL (OV * VW)
#define LOAD_PAIRS(p) CLGPU_CAT(load_pairs_, PACKED_T)(p)
#define load_pairs_char(p) SHORT_PAIRS(*(__global const pairs_t *)(p))
#define load_pairs_short(p) (*(__global const short_pairs_t *)(p))
#define LOAD_SHORTS16(p) convert_short16(vload16(0, p))

// BIAS and the like are macros: names cannot be put together from them.
#if VW == 4
#define CHANNELS_VEC_T CHANNEL4_T
#define CHANNELS_VEC_AT(o) CHANNEL4_AT(o)
#define FINISH_SUMS(sum, c, at) FINISH_SUM4(sum, c, at)
#define STORE_SUMS(p, i, v) STORE4(DST_T, p, i, v)
#elif VW == 8
#define CHANNELS_VEC_T CHANNEL8_T
#define CHANNELS_VEC_AT(o) CHANNEL8_AT(o)
#define FINISH_SUMS(sum, c, at) FINISH_SUM8(sum, c, at)
#define STORE_SUMS(p, i, v) STORE8(DST_T, p, i, v)
#else
#define CHANNELS_VEC_T CHANNEL16_T
#define CHANNELS_VEC_AT(o) CHANNEL16_AT(o)
#define FINISH_SUMS(sum, c, at) FINISH_SUM16(sum, c, at)
#define STORE_SUMS(p, i, v) STORE16(DST_T, p, i, v)
#endif

static inline void copy_run(__global const SRC_T *from, __local short *to, int count) {
  int i = 0;
  for (; i + 16 <= count; i += 16) vstore16(LOAD_SHORTS16(from + i), 0, to + i);
  for (; i < count; ++i) to[i] = from[i];
}
static inline void fill_run(short value, __local short *to, int count) {
  for (int i = 0; i < count; ++i) to[i] = value;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void conv2d_pairs(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int tiles, int block, int panels,
    int group_in, int group_out, int in_h, int in_w, int in_c, int out_h, int out_w, int out_c,
    int filter_h, int filter_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int top,
    int left, int src_zero) {
  __local short image[PX * RUN];
  const int group = get_global_id(2);
  const int first_panel = get_global_id(0) * block, last_panel = min(first_panel + block, panels);
  const int depth = filter_h * filter_w * group_in;
  const int pairs = (depth + 1) / 2;
  packed += group * panels * pairs * PANEL * 2;
  src += group * group_in;

  for (int tile = 0; tile < tiles; ++tile) {
    const int first = ((int)get_global_id(1) * tiles + tile) * PX;
    if (first >= pixels) return;
    for (int panel = first_panel; panel < last_panel; ++panel) {
      INT_VEC sum[PX][OV];
#pragma unroll
      for (int p = 0; p < PX; ++p) {
#pragma unroll
        for (int v = 0; v < OV; ++v) sum[p][v] = (INT_VEC)(0);
      }
      for (int start = 0; start < depth; start += RUN) {
        const int end = min(start + RUN, depth);
        // What is in local memory serves all panels, unless it is a part of the depth.
        if (depth > RUN || panel == first_panel) {
          for (int p = 0; p < PX; ++p) {
            const int pixel = min(first + p, pixels - 1);
            const int x = pixel % out_w * stride_w - left;
            const int y = pixel / out_w % out_h * stride_h - top;
            const int image_at = pixel / out_w / out_h * in_h * in_w;
            // Few channels make short runs; a filter row within the image's columns is one run, too.
            const bool whole =
                dilation_w == 1 && group_in == in_c && x >= 0 && x + filter_w <= in_w;
            const int runs = whole ? 1 : filter_w;  // of a filter row
            const int run = whole ? filter_w * group_in : group_in;
            int k = 0;
            for (int u = 0; u < filter_h; ++u) {
              const int at_y = BORDER(y + u * dilation_h, in_h);
              for (int t = 0; t < runs; ++t, k += run) {
                const int low = max(k, start), count = min(k + run, end) - low;
                if (count <= 0) continue;
                const int at_x = BORDER(x + t * dilation_w, in_w);
                __local short *to = image + p * RUN + low - start;
                if ((uint)at_y < (uint)in_h && (uint)at_x < (uint)in_w) {
                  copy_run(src + (image_at + at_y * in_w + at_x) * in_c + low - k, to, count);
                } else {
                  fill_run(src_zero, to, count);
                }
              }
            }
            if (end % 2 != 0) image[p * RUN + end - start] = 0;
          }
        }
        __global const PACKED_T *w = packed + (panel * pairs + start / 2) * PANEL * 2;
        for (int k = 0; k < end - start; k += 2, w += PANEL * 2) {
          short_pairs_t w_[OV];
#pragma unroll
          for (int v = 0; v < OV; ++v) w_[v] = LOAD_PAIRS(w + v * VW * 2);
#pragma unroll
          for (int p = 0; p < PX; ++p) {
            const short2 x = *(__local const short2 *)(image + p * RUN + k);
#pragma unroll
            for (int v = 0; v < OV; ++v) sum[p][v] = DOT_PAIRS(x, w_[v], sum[p][v]);
          }
        }
      }
#pragma unroll
      for (int v = 0; v < OV; ++v) {
        const int channel = panel * PANEL + v * VW;
        const int left_over = group_out - channel;  // channels from here to the group's end
        if (left_over <= 0) break;
        const int o = group * group_out + channel;
        const CHANNELS_VEC_T c = CHANNELS_VEC_AT(o);
#pragma unroll
        for (int p = 0; p < PX; ++p) {
          if (first + p >= pixels) break;
          const int at = RESULT_AT(first + p, o, out_c);
          const INT_VEC result = FINISH_SUMS(sum[p][v], c, at);
          if (left_over >= VW) {
            STORE_SUMS(dst, at, result);
          } else {
            int lanes[VW];
            CLGPU_CAT(vstore, VW)(result, 0, lanes);
            for (int j = 0; j < left_over; ++j) STORE(DST_T, dst, at + j, lanes[j]);
          }
        }
      }
    }
  }
}

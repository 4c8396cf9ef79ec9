// pairs.cl - 2-D convolution of 8-bit integers as in naive.cl for CPUs; a work-item copies the pixels of a tile
//            to local memory, as shorts, and keeps PX pixels x (OV * VW) channels in registers
//
// Shapes    src: [n, in_h, in_w, in_c]; dst: [pixels, out_c], pixels = n * out_h * out_w
//           packed: [groups, panels, ceil(depth / 2), OV * VW, 2] as pack_pairs.cl writes it, depth =
//           filter_h * filter_w * group_in
// Launch    axis 0: blocks of `block` panels of a group; axis 1: blocks of `tiles` * PX consecutive
//           pixels; axis 2: groups. local = (1, 1, 1)
// Macros    VW        4|8|16   channels of one vector
//           OV        1..2     vectors of a panel
//           PX        1..14    pixels of a tile
//           RUN       multiple of 64  elements of the depth in local memory at a time
//           SRC_T     char|uchar  element type of src
//           PACKED_T  char|short  element type of packed
//           DST_T     char|uchar  element type of dst
//           REFLECT   0|1      see common/border.cl
//           POINTWISE 0|1      1: pixel p reads only pixel p of src
//           QUICK     0|1      1: requantise with CHANNEL_QUICK4 .. 16 of common/requantize.cl
//           and those of common/epilogue.cl; QUANTIZED is 1
// Numerics  exact
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/pairs.cl"

#define PANEL (OV * VW)
#define PITCH (RUN + 32)  // an odd number of cache lines, which spreads rows over the cache
#define LOAD_PAIRS(p) CLGPU_CAT(load_pairs_, PACKED_T)(p)
#define load_pairs_char(p) SHORT_PAIRS(*(__global const pairs_t *)(p))
#define load_pairs_short(p) (*(__global const short_pairs_t *)(p))
#define LOAD_SHORTS16(p) convert_short16(vload16(0, p))

// BIAS and similar names are macros and cannot be pasted together (##).
#if VW == 4
#define CHANNELS_VEC_T CHANNEL4_T
#define CHANNELS_VEC_AT(o) CHANNEL4_AT(o)
#define STORE_SUMS(p, i, v) STORE4(DST_T, p, i, v)
#elif VW == 8
#define CHANNELS_VEC_T CHANNEL8_T
#define CHANNELS_VEC_AT(o) CHANNEL8_AT(o)
#define STORE_SUMS(p, i, v) STORE8(DST_T, p, i, v)
#else
#define CHANNELS_VEC_T CHANNEL16_T
#define CHANNELS_VEC_AT(o) CHANNEL16_AT(o)
#define STORE_SUMS(p, i, v) STORE16(DST_T, p, i, v)
#endif

#if QUICK
#define OWN_RESULTS(sum, c) CLGPU_CAT(CHANNEL_QUICK, VW)(sum, c)
#else
#define OWN_RESULTS(sum, c) CLGPU_CAT(CHANNEL_RESULT, VW)(sum, c)
#endif
#define FINISH_RESULTS(v, at) BEHIND_SUM(INT_VEC, v, CLGPU_CAT(LOAD, VW)(RESIDUAL_T, residual, at))

// Both write up to 15 elements beyond the last one; later writes overwrite these. readable: the number of
// elements of src from `from` on.
static inline void copy_run(__global const SRC_T *from, __local short *to, int count,
                            int readable) {
  int i = 0;
  for (; i < count && i + 16 <= readable; i += 16) vstore16(LOAD_SHORTS16(from + i), 0, to + i);
  for (; i < count; ++i) to[i] = from[i];
}
static inline void fill_run(short value, __local short *to, int count) {
  for (int i = 0; i < count; i += 16) vstore16((short16)(value), 0, to + i);
}

// The hint says that the code is vectorised already: vectorising over work-items gains nothing, and
// compilers take long to try it.
__kernel __attribute__((reqd_work_group_size(1, 1, 1), vec_type_hint(INT_VEC))) void conv2d_pairs(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int pixels, int tiles, int block, int panels, int depth,
    int group_out, int in_h, int in_w, int in_c, int out_h, int out_w, int out_c, int filter_h,
    int filter_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int top, int left,
    int src_zero) {
  LOCAL_ARRAY(short, image, PX *PITCH);
  const int group = get_global_id(2);
  const int first_panel = get_global_id(0) * block, last_panel = min(first_panel + block, panels);
  const int group_in = depth / (filter_h * filter_w);
  const int pairs = (depth + 1) / 2;
  packed += group * panels * pairs * PANEL * 2;
  src += group * group_in;
  const int elements =
      (pixels - 1) / (out_h * out_w) * in_h * in_w * in_c + in_h * in_w * in_c - group * group_in;

  const int reach = (filter_h - 1) * dilation_h, row_run = filter_w * group_in;
  // Inside of the image, a row of the filter is one run of src.
  const bool rows_are_runs = dilation_w == 1 && group_in == in_c && depth <= RUN;

  for (int tile = 0; tile < tiles; ++tile) {
    const int first = ((int)get_global_id(1) * tiles + tile) * PX;
    if (first >= pixels) return;
    const int count_p = min(PX, pixels - first);
    for (int panel = first_panel; panel < last_panel; ++panel) {
      INT_VEC sum[PX][OV];
#pragma unroll
      for (int p = 0; p < PX; ++p) {
#pragma unroll
        for (int v = 0; v < OV; ++v) sum[p][v] = (INT_VEC)(0);
      }
      for (int start = 0; start < depth; start += RUN) {
        const int end = min(start + RUN, depth);
        // Local memory is filled once for all panels, unless it holds only a part of the depth.
        if (depth > RUN || panel == first_panel) {
#if POINTWISE
          for (int p = 0; p < count_p; ++p) {
            const int from = (first + p) * in_c + start;
            copy_run(src + from, image + p * PITCH, end - start, elements - from);
          }
#else
          int out_x = first % out_w, out_y = first / out_w % out_h, n = first / out_w / out_h;
          for (int p = 0; p < count_p; ++p) {
            const int x = out_x * stride_w - left, y = out_y * stride_h - top;
            const int image_at = n * in_h * in_w;
            const bool wrap_x = ++out_x == out_w;
            out_x = wrap_x ? 0 : out_x;
            out_y += wrap_x ? 1 : 0;
            const bool wrap_y = out_y == out_h;
            out_y = wrap_y ? 0 : out_y;
            n += wrap_y ? 1 : 0;
            __local short *row = image + p * PITCH;
            const int corner = (image_at + y * in_w + x) * in_c;
            if (rows_are_runs && x >= 0 && x + filter_w <= in_w && y >= 0 && y + reach < in_h &&
                corner + reach * in_w * in_c + row_run + 16 <= elements) {
              __global const SRC_T *from = src + corner;
              for (int u = 0; u < filter_h; ++u, from += dilation_h * in_w * in_c, row += row_run)
                for (int i = 0; i < row_run; i += 16) vstore16(LOAD_SHORTS16(from + i), 0, row + i);
              continue;
            }
            int k = 0;
            for (int u = 0; u < filter_h; ++u) {
              const int at_y = BORDER(y + u * dilation_h, in_h);
              for (int t = 0; t < filter_w; ++t, k += group_in) {
                const int low = max(k, start), count = min(k + group_in, end) - low;
                if (count <= 0) continue;
                const int at_x = BORDER(x + t * dilation_w, in_w);
                __local short *to = row + low - start;
                if ((uint)at_y < (uint)in_h && (uint)at_x < (uint)in_w) {
                  const int from = (image_at + at_y * in_w + at_x) * in_c + low - k;
                  copy_run(src + from, to, count, elements - from);
                } else {
                  fill_run(src_zero, to, count);
                }
              }
            }
          }
#endif
          // The last pair of an odd depth.
          for (int p = 0; p < PX; ++p) image[p * PITCH + end - start] = 0;
        }
        __global const PACKED_T *w = packed + (panel * pairs + start / 2) * PANEL * 2;
        for (int k = 0; k < end - start; k += 2, w += PANEL * 2) {
          short_pairs_t w_[OV];
#pragma unroll
          for (int v = 0; v < OV; ++v) w_[v] = LOAD_PAIRS(w + v * VW * 2);
#pragma unroll
          for (int p = 0; p < PX; ++p) {
            const short2 x = *(__local const short2 *)(image + p * PITCH + k);
#pragma unroll
            for (int v = 0; v < OV; ++v) sum[p][v] = DOT_PAIRS(x, w_[v], sum[p][v]);
          }
        }
      }
      INT_VEC sums[OV][PX];  // in memory, so that the epilogue's code exists only once
#pragma unroll
      for (int p = 0; p < PX; ++p) {
#pragma unroll
        for (int v = 0; v < OV; ++v) sums[v][p] = sum[p][v];
      }
#pragma unroll 1
      for (int v = 0; v < OV; ++v) {
        const int channel = panel * PANEL + v * VW;
        const int left_over = group_out - channel;  // channels from here to the group's end
        if (left_over <= 0) break;
        const int o = group * group_out + channel;
        const CHANNELS_VEC_T c = CHANNELS_VEC_AT(o);
#pragma unroll 1
        for (int p = 0; p < count_p; ++p) {
          const int at = RESULT_AT(first + p, o, out_c);
          const INT_VEC own = OWN_RESULTS(sums[v][p], c);
          if (left_over >= VW) {
            STORE_SUMS(dst, at, FINISH_RESULTS(own, at));
          } else {
            int lanes[VW];
            CLGPU_CAT(vstore, VW)(own, 0, lanes);
            for (int j = 0; j < left_over; ++j)
              STORE(DST_T, dst, at + j, FINISH_LANE(lanes[j], at + j));
          }
        }
      }
    }
  }
}

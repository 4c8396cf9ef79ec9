// image_tile.cl - 2-D convolution as in naive.cl for strides and dilations of 1: a work-group reads
//                 a part of the image once, with the halo of the filter, and keeps it in local
//                 memory for all filter taps
//
// Shapes    src: [n, in_h, in_w, in_c]; bias: [out_c]; residual, dst: [n, out_h, out_w, out_c]
//           packed: [groups, panels, FILTER_H * FILTER_W * group_in, TN] as pack_weights.cl
//           writes it; group_in and in_c are multiples of CK
// Launch    one work-group per tile of TH rows x XG * PX pixels x TN channels:
//           global = (IMAGE_TILE_ITEMS * panels, tiles_x * ceil(out_h / TH), n * groups),
//           local = (IMAGE_TILE_ITEMS, 1, 1)
// Macros    TN        multiple of RN  output channels of a tile
//           RN        multiple of 4   output channels of a work-item
//           PX        4|8             neighbouring pixels of a row per work-item
//           XG        1..16           work-items side by side in a row of the tile
//           TH        1..32           rows of the tile
//           CK        multiple of 4   input channels in local memory at a time
//           UNROLL    1..CK           input channels per unrolled inner loop
//           FILTER_H, FILTER_W  1..   size of the filter
//           VEC_N     0|1             1: group_out is a multiple of 4
//           SRC_T, PACKED_T, DST_T    float|half  element types
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           and those of common/epilogue.cl
// Numerics  products and sum in float: CK channels at a time, among these in the order of the
//           filter's rows, then channels, then columns; bias and residual are added last
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/types.cl"

#define GX (TN / RN)  // items along the channels
#define IMAGE_TILE_ITEMS (GX * XG * TH)
#define QN (RN / 4)
// 32 neighbouring items read few pixels and few channels.
#if GX >= 8
#define COLUMN(i) ((i) / 32 % (GX / 8) * 8 + (i) % 8)
#define PLACE(i) ((i) / 32 / (GX / 8) * 4 + (i) % 32 / 8)
#else
#define COLUMN(i) ((i) % GX)
#define PLACE(i) ((i) / GX)
#endif

#define IMAGE_W (XG * PX + FILTER_W - 1)
#define IMAGE_H (TH + FILTER_H - 1)
#define PITCH ((IMAGE_W + 3) / 4)                // of a row, in vectors
#define PLANE (IMAGE_H * PITCH)                  // of a channel
#define ROW_QUADS ((PX + FILTER_W - 1 + 3) / 4)  // of a row, read by an item
#define WEIGHT_QUADS (FILTER_W * CK * TN / 4)    // of a row of the filter
#define WEIGHTS \
  ((WEIGHT_QUADS + IMAGE_TILE_ITEMS - 1) / IMAGE_TILE_ITEMS)  // of these, loaded by an item
#define HAS_WEIGHT(q) \
  (WEIGHT_QUADS % IMAGE_TILE_ITEMS == 0 || item + (q) * IMAGE_TILE_ITEMS < WEIGHT_QUADS)

// Row u of the filter for the channels c .. c + CK - 1.
#define LOAD_WEIGHTS(c, u)                                                           \
  _Pragma("unroll") for (int q = 0; q < WEIGHTS; ++q) {                              \
    if (HAS_WEIGHT(q)) {                                                             \
      const int i = item + q * IMAGE_TILE_ITEMS;                                     \
      const int t = i / (CK * TN / 4), rest = i % (CK * TN / 4);                     \
      w[q] = LOAD4_ALIGNED(PACKED_T, packed,                                         \
                           (((u) * FILTER_W + t) * group_in + (c)) * TN + rest * 4); \
    }                                                                                \
  }

__kernel __attribute__((reqd_work_group_size(IMAGE_TILE_ITEMS, 1, 1))) void conv2d_image_tile(
    __global const SRC_T *src, __global const PACKED_T *packed,
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int panels, int groups, int tiles_x, int group_in,
    int group_out, int in_h, int in_w, int in_c, int out_h, int out_w, int out_c, int top,
    int left) {
  LOCAL_ARRAY(float4, image, CK * PLANE);          // [CK][IMAGE_H][PITCH], pixels along the row
  LOCAL_ARRAY(float4, weights, 2 * WEIGHT_QUADS);  // twice [FILTER_W][CK][TN / 4]

  const int item = get_local_id(0), panel = get_group_id(0);
  const int group = (int)get_group_id(2) % groups, n = (int)get_group_id(2) / groups;
  const int first_x = (int)get_group_id(1) % tiles_x * (XG * PX);
  const int first_y = (int)get_group_id(1) / tiles_x * TH;
  packed += (group * panels + panel) * (FILTER_H * FILTER_W) * group_in * TN;
  src += n * in_h * in_w * in_c + group * group_in;

  const int column = COLUMN(item), place = PLACE(item);
  const int y0 = place / XG, x0 = place % XG * PX;  // first pixel, in the tile
  float4 sum[PX][QN];
#pragma unroll
  for (int p = 0; p < PX; ++p) {
#pragma unroll
    for (int k = 0; k < QN; ++k) sum[p][k] = (float4)(0.0f);
  }

  float4 w[WEIGHTS];  // the next row of the filter, being loaded
  LOAD_WEIGHTS(0, 0)
  int stage = 0;
  for (int c0 = 0; c0 < group_in; c0 += CK) {
    barrier(CLK_LOCAL_MEM_FENCE);  // the previous channels have been read
    for (int i = item; i < IMAGE_H * IMAGE_W * (CK / 4); i += IMAGE_TILE_ITEMS) {
      const int quad = i % (CK / 4) * 4, at = i / (CK / 4);
      const int y = BORDER(first_y - top + at / IMAGE_W, in_h);
      const int x = BORDER(first_x - left + at % IMAGE_W, in_w);
      float4 v = (float4)(0.0f);
      if ((uint)y < (uint)in_h && (uint)x < (uint)in_w) {
        v = LOAD4_ALIGNED(SRC_T, src, (y * in_w + x) * in_c + c0 + quad);
      }
      __local float *to =
          (__local float *)(image + quad * PLANE + at / IMAGE_W * PITCH) + at % IMAGE_W;
      to[0] = v.s0;
      to[PLANE * 4] = v.s1;
      to[PLANE * 8] = v.s2;
      to[PLANE * 12] = v.s3;
    }
    for (int u = 0; u < FILTER_H; ++u) {
#pragma unroll
      for (int q = 0; q < WEIGHTS; ++q) {
        if (HAS_WEIGHT(q)) weights[stage * WEIGHT_QUADS + item + q * IMAGE_TILE_ITEMS] = w[q];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      if (u + 1 < FILTER_H) {
        LOAD_WEIGHTS(c0, u + 1)
      } else if (c0 + CK < group_in) {
        LOAD_WEIGHTS(c0 + CK, 0)
      }
      __local const float4 *row = image + (y0 + u) * PITCH + x0 / 4;
      __local const float4 *right = weights + stage * WEIGHT_QUADS + column;
#pragma unroll UNROLL
      for (int c = 0; c < CK; ++c) {
        float x[ROW_QUADS * 4];
#pragma unroll
        for (int j = 0; j < ROW_QUADS; ++j) {
          const float4 v = row[c * PLANE + j];
          x[j * 4] = v.s0;
          x[j * 4 + 1] = v.s1;
          x[j * 4 + 2] = v.s2;
          x[j * 4 + 3] = v.s3;
        }
#pragma unroll
        for (int t = 0; t < FILTER_W; ++t) {
          float4 tap[QN];
#pragma unroll
          for (int k = 0; k < QN; ++k) tap[k] = right[(t * CK + c) * (TN / 4) + k * GX];
#pragma unroll
          for (int p = 0; p < PX; ++p) {
#pragma unroll
            for (int k = 0; k < QN; ++k) sum[p][k] = mad((float4)(x[p + t]), tap[k], sum[p][k]);
          }
        }
      }
      stage ^= 1;
    }
  }

  const int y = first_y + y0;
#pragma unroll
  for (int k = 0; k < QN; ++k) {
    const int o = panel * TN + (k * GX + column) * 4;  // within the group
    const int left_over = y < out_h ? group_out - o : 0;
    if (left_over > 0) {
      const int channel = group * group_out + o;
      const CHANNEL4_T c4 = CHANNEL4_SOME(channel, left_over);
#pragma unroll
      for (int p = 0; p < PX; ++p) {
        if (first_x + x0 + p < out_w) {
          const int pixel = (n * out_h + y) * out_w + first_x + x0 + p;
          const int at = RESULT_AT(pixel, channel, out_c);
          if (VEC_N) {
            STORE4_ALIGNED(DST_T, dst, at, FINISH_SUM4_ALIGNED(sum[p][k], c4, at));
          } else {
            const float4 v = SUM_LANE4(sum[p][k], c4, at);
            STORE(DST_T, dst, at, FINISH_SUM_LANE(v.s0, c4, 0, at));
            if (left_over > 1) STORE(DST_T, dst, at + 1, FINISH_SUM_LANE(v.s1, c4, 1, at + 1));
            if (left_over > 2) STORE(DST_T, dst, at + 2, FINISH_SUM_LANE(v.s2, c4, 2, at + 2));
            if (left_over > 3) STORE(DST_T, dst, at + 3, FINISH_SUM_LANE(v.s3, c4, 3, at + 3));
          }
        }
      }
    }
  }
}

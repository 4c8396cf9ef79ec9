// winograd_input_quads.cl - dst[p, e, c] = (B^T d B)[e] of channel c of tile p, for mobile GPUs; see
//                           winograd_tile.cl
//
// Shapes    src: [n, in_h, in_w, in_c], in_c a multiple of 4
//           dst: [tiles, ALPHA^2, in_c], tiles of the n * tiles_h rows, from first_row on
// Launch    axis 0: in_c / 4; axis 1: tiles; axis 2: the ALPHA rows of a transformed tile, so that a work-item
//           keeps one; axes 0 and 1 rounded up. local = (any, any, 1): the items of a group take the same branches
// Macros    SRC_KIND  buffer|image  see common/quads.cl
//           SRC_T     float|half    element type of src
//           DST_T     float|half    element type of dst
//           REFLECT   0|1           values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           ALPHA, TILE             see conv2d/winograd_tile.cl; ALPHA 4 or 6
// Numerics  in float; columns first, then rows
#include "common/border.cl"
#include "common/quads.cl"
#include "conv2d/winograd_tile.cl"

// B^T by rows; EACH(DO): DO(x) for each column.
#if ALPHA == 4
__constant float winograd_rows[ALPHA][ALPHA] = {
    {1.0f, 0.0f, -1.0f, 0.0f},
    {0.0f, 1.0f, 1.0f, 0.0f},
    {0.0f, -1.0f, 1.0f, 0.0f},
    {0.0f, -1.0f, 0.0f, 1.0f},
};
#define EACH(DO) DO(0) DO(1) DO(2) DO(3)
#else
#define ROW_OF(p, other) {0.0f, -(p) * (other), -(other), p, 1.0f, 0.0f}
__constant float winograd_rows[ALPHA][ALPHA] = {
    {S1 * S2, 0.0f, -S1 - S2, 0.0f, 1.0f, 0.0f},
    ROW_OF(P1, S2),
    ROW_OF(-P1, S2),
    ROW_OF(P2, S1),
    ROW_OF(-P2, S1),
    {0.0f, S1 * S2, 0.0f, -S1 - S2, 0.0f, 1.0f},
};
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#endif

#define DECLARE(x) float4 sum##x = (float4)(0.0f);
// Column x of a row of the image, times its factor in B^T; outside of the image the nearest column is read.
#define ADD(x)                                                                      \
  {                                                                                 \
    const int in_x = BORDER(x0 + x, in_w), near_x = min(max(in_x, 0), in_w - 1);    \
    const float4 value = QUAD(SRC_KIND, SRC_T, src, (row + near_x) * quads + quad); \
    sum##x = mad((float4)(in_x == near_x ? factor : 0.0f), value, sum##x);          \
  }
#define COLUMN(x) sum##x
#define STORE_COLUMN(x, v) STORE4_ALIGNED(DST_T, dst, ((first + (x)) * quads + quad) * 4, v)
#define STORE_PAIR(k)                                               \
  {                                                                 \
    const float4 even = SHARED(k, COLUMN), odd = SIGNED(k, COLUMN); \
    STORE_COLUMN(PAIR_ROW(k), even + odd);                          \
    STORE_COLUMN(PAIR_ROW(k) + 1, even - odd);                      \
  }

__kernel void conv2d_winograd_input_quads(QUADS(SRC_KIND, SRC_T) src, __global DST_T *dst, int in_h,
                                          int in_w, int quads, int tiles_h, int tiles_w, int top,
                                          int left, int first_row, int tiles) {
  const int quad = get_global_id(0), tile = get_global_id(1), i = get_global_id(2);
  if (quad >= quads || tile >= tiles) return;
  const int row_of_tiles = first_row + tile / tiles_w;
  const int y0 = row_of_tiles % tiles_h * TILE - top, x0 = tile % tiles_w * TILE - left;
  const int first_image_row = row_of_tiles / tiles_h * in_h;

  EACH(DECLARE)
  for (int y = 0; y < ALPHA; ++y) {
    const float factor = winograd_rows[i][y];
    const int in_y = BORDER(y0 + y, in_h);
    if (factor == 0.0f || (uint)in_y >= (uint)in_h) continue;
    const int row = (first_image_row + in_y) * in_w;
    EACH(ADD)
  }

  const int first = (tile * ALPHA + i) * ALPHA;
  STORE_COLUMN(0, FIRST(COLUMN));
  STORE_PAIR(0)
#if ALPHA == 6
  STORE_PAIR(1)
#endif
  STORE_COLUMN(ALPHA - 1, LAST(COLUMN));
}

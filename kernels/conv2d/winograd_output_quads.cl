// winograd_output_quads.cl - dst[n, y, x, o] = act((A^T m A)[y, x] of the tile + bias[o] + residual[n, y, x, o]),
//                            for mobile GPUs; see winograd_tile.cl
//
// Shapes    src: [tiles, ALPHA^2, out_c], out_c a multiple of 4, tiles of the n * tiles_h rows, from first_row on;
//           bias: [out_c]; dst, residual: [n, out_h, out_w, out_c]
// Launch    axis 0: out_c / 4; axis 1: tiles; axis 2: the TILE rows of a tile, so that a work-item keeps one;
//           axes 0 and 1 rounded up. local = (any, any, 1): the items of a group take the same branches
// Macros    SRC_KIND  buffer|image  see common/quads.cl
//           ALIGNED   0|1           1: every pixel of dst begins at a multiple of 4
//           SRC_T     float|half    element type of src
//           DST_T     float|half    element type of dst
//           and those of common/epilogue.cl
//           ALPHA, TILE             see conv2d/winograd_tile.cl; ALPHA 4 or 6
// Numerics  in float; columns first, then rows; then bias, residual
#include "common/epilogue.cl"
#include "common/quads.cl"
#include "conv2d/winograd_tile.cl"

// DO(j) for each column of the products, and for each column of the results.
#if ALPHA == 4
#define EACH(DO) DO(0) DO(1) DO(2) DO(3)
#else
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#endif
#if TILE == 2
#define EACH_RESULT(DO) DO(0) DO(1)
#else
#define EACH_RESULT(DO) DO(0) DO(1) DO(2) DO(3)
#endif

#define DECLARE(j) float4 sum##j = (float4)(0.0f);
#define ADD(j) \
  sum##j = mad((float4)(factor), QUAD(SRC_KIND, SRC_T, src, (row + j) * quads + quad), sum##j);
#define ADD_POWER(j) v = mad((float4)(winograd_powers[j][x]), sum##j, v);
#if ALIGNED
#define STORE_RESULT(at, v) STORE4_ALIGNED(DST_T, dst, at, FINISH_SUM4_ALIGNED(v, c, at))
#else
#define STORE_RESULT(at, v) STORE4(DST_T, dst, at, FINISH_SUM4(v, c, at))
#endif
#define FINISH_RESULT(k)                                  \
  if (x0 + k < out_w) {                                   \
    const int x = k, at = RESULT_AT(first + k, o, out_c); \
    float4 v = (float4)(0.0f);                            \
    EACH(ADD_POWER)                                       \
    STORE_RESULT(at, v);                                  \
  }

__kernel void conv2d_winograd_output_quads(QUADS(SRC_KIND, SRC_T) src,
                                           BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int quads,
                                           int tiles_h, int tiles_w, int first_row, int tiles,
                                           int out_h, int out_w, int out_c) {
  const int quad = get_global_id(0), tile = get_global_id(1), k = get_global_id(2);
  if (quad >= quads || tile >= tiles) return;
  const int row_of_tiles = first_row + tile / tiles_w;
  const int y = row_of_tiles % tiles_h * TILE + k, x0 = tile % tiles_w * TILE;
  if (y >= out_h) return;

  EACH(DECLARE)
  for (int i = 0; i < ALPHA; ++i) {
    const float factor = winograd_powers[i][k];
    if (factor == 0.0f) continue;
    const int row = (tile * ALPHA + i) * ALPHA;
    EACH(ADD)
  }

  const int o = quad * 4, first = (row_of_tiles / tiles_h * out_h + y) * out_w + x0;
  const CHANNEL4_T c = CHANNEL4_AT(o);
  EACH_RESULT(FINISH_RESULT)
}

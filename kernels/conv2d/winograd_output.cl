// winograd_output.cl - dst[n, y, x, o] = act((A^T m A)[y, x] of the tile + bias[o] + residual[n, y, x, o]), the
//                      last of four kernels, see winograd_tile.cl
//
// Shapes    src: [ALPHA^2, tile_rows * tiles_w, cols], the tiles in tile_rows of the n * tiles_h rows of tiles,
//           from first_row on; plane = tile_rows * tiles_w * cols, cols a multiple of VW
//           bias: [out_c]; dst, residual: [n, out_h, out_w, out_c]
// Launch    one work-item per tile and VW channels, channels fastest: global = (items, rounded up),
//           local: any
// Macros    VW     4|8|16      channels of a vector
//           VEC_O  0|1         1: out_c is a multiple of VW; with VW 4 so is the start of every pixel of dst
//           SRC_T  float|half  element type of src
//           DST_T  float|half  element type of dst
//           and those of common/epilogue.cl
//           ALPHA, TILE        see conv2d/winograd_tile.cl
// Numerics  in float; the products of a row in the order of the points, then the rows; then bias, residual
#include "common/vector_epilogue.cl"
#include "conv2d/winograd_tile.cl"

#if VW == 4
#define LOAD_SUMS LOAD_VEC_ALIGNED
#define STORE_RESULTS STORE_VEC_ALIGNED
#else
#define LOAD_SUMS LOAD_VEC
#define STORE_RESULTS STORE_VEC
#endif

__kernel void conv2d_winograd_output(__global const SRC_T *src,
                                     BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int items, int tiles_h,
                                     int tiles_w, int first_row, int plane, int cols, int out_h,
                                     int out_w, int out_c) {
  const int index = get_global_id(0);
  if (index >= items) return;
  const int vectors = cols / VW;
  const int o = index % vectors * VW, tile = index / vectors;
  const int row = first_row + tile / tiles_w;
  const int y0 = row % tiles_h * TILE, x0 = tile % tiles_w * TILE, image = row / tiles_h;
  src += tile * cols + o;

  VEC sum[TILE][TILE];
#pragma unroll
  for (int y = 0; y < TILE; ++y) {
#pragma unroll
    for (int x = 0; x < TILE; ++x) sum[y][x] = (VEC)(0.0f);
  }
#pragma unroll
  for (int i = 0; i < ALPHA; ++i) {
    VEC r[TILE];
#pragma unroll
    for (int x = 0; x < TILE; ++x) r[x] = (VEC)(0.0f);
#pragma unroll
    for (int j = 0; j < ALPHA; ++j) {
      const VEC m = LOAD_SUMS(SRC_T, src, (i * ALPHA + j) * plane);
#pragma unroll
      for (int x = 0; x < TILE; ++x) r[x] = mad((VEC)(winograd_powers[j][x]), m, r[x]);
    }
#pragma unroll
    for (int y = 0; y < TILE; ++y) {
#pragma unroll
      for (int x = 0; x < TILE; ++x) {
        sum[y][x] = mad((VEC)(winograd_powers[i][y]), r[x], sum[y][x]);
      }
    }
  }

#pragma unroll
  for (int y = 0; y < TILE; ++y) {
#pragma unroll
    for (int x = 0; x < TILE; ++x) {
      if (y0 + y < out_h && x0 + x < out_w) {
        const int at = RESULT_AT((image * out_h + y0 + y) * out_w + x0 + x, o, out_c);
#if VEC_O
        STORE_RESULTS(DST_T, dst, at, FINISH_SUM_VEC(sum[y][x], CHANNEL_VEC_AT(o), at));
#else
        float lanes[VW];
        SPILL_VEC(sum[y][x], lanes);
        for (int j = 0; j < VW && o + j < out_c; ++j) {
          STORE(DST_T, dst, at + j, FINISH_SUM(lanes[j], CHANNEL_AT(o + j), at + j));
        }
#endif
      }
    }
  }
}

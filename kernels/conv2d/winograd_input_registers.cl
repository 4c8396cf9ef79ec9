// winograd_input_registers.cl - winograd_input.cl without local memory: a work-item transforms a tile of VW
//                               channels in registers, or in the cache of a CPU
//
// Shapes    src, dst: as in winograd_input.cl; channels is a multiple of VW
// Launch    axis 0: tiles * channels / VW items, rounded up, channels fastest; axis 1: blocks; local: any
// Macros    VW     1|4|8|16     channels of a vector
//           VEC_C  0|1          1: in_c is a multiple of VW
//           REFLECT  0|1        values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           SRC_T  float|half   element type of src
//           DST_T  float|half   element type of dst
//           ALPHA, TILE         see conv2d/winograd_tile.cl
// Numerics  in float; columns first, then rows
#define SUM_T float
#include "common/border.cl"
#include "common/vector.cl"
#include "conv2d/winograd_tile.cl"

#define COLUMN(y) d[y]
#define ROW(x) rows[y][x]

__kernel void conv2d_winograd_input_registers(__global const SRC_T *src, __global DST_T *dst,
                                              int items, int in_h, int in_w, int in_c, int tiles_h,
                                              int tiles_w, int top, int left, int first_row,
                                              int tile_rows, int depth, int blocks_w, int first_c,
                                              int channels) {
  const int index = get_global_id(0), block = get_global_id(1);
  if (index >= items) return;
  const int vectors = channels / VW;
  const int c = index % vectors * VW, tile = index / vectors;
  const int row = first_row + tile / tiles_w;
  const int y0 = row % tiles_h * TILE - top + block / blocks_w * TAPS;
  const int x0 = tile % tiles_w * TILE - left + block % blocks_w * TAPS;
#if !VEC_C
  const int left_over = in_c - first_c - c;  // channels of src from here on
#endif
  src += row / tiles_h * in_h * in_w * in_c + first_c + c;
  dst += tile * depth + block * channels + c;
  const int plane = tile_rows * tiles_w * depth;

  VEC rows[ALPHA][ALPHA];
#pragma unroll
  for (int x = 0; x < ALPHA; ++x) {
    VEC d[ALPHA], v[ALPHA];
#pragma unroll
    for (int y = 0; y < ALPHA; ++y) {
      const int in_y = BORDER(y0 + y, in_h), in_x = BORDER(x0 + x, in_w);
      const bool inside = (uint)in_y < (uint)in_h && (uint)in_x < (uint)in_w;
      const int at = (in_y * in_w + in_x) * in_c;
      d[y] = (VEC)(0.0f);
#if VEC_C
      if (inside) d[y] = LOAD_VEC(SRC_T, src, at);
#else
      if (inside && left_over >= VW) {
        d[y] = LOAD_VEC(SRC_T, src, at);
      } else if (inside) {
        float lanes[VW];
#pragma unroll 1  // rarely executed, and unrolled it compiles slowly
        for (int j = 0; j < VW; ++j) lanes[j] = j < left_over ? LOAD(SRC_T, src, at + j) : 0.0f;
        d[y] = FILL_VEC(lanes);
      }
#endif
    }
    TRANSFORM_INPUT(VEC, COLUMN, v);
#pragma unroll
    for (int y = 0; y < ALPHA; ++y) rows[y][x] = v[y];
  }
#pragma unroll
  for (int y = 0; y < ALPHA; ++y) {
    VEC v[ALPHA];
    TRANSFORM_INPUT(VEC, ROW, v);
#pragma unroll
    for (int x = 0; x < ALPHA; ++x) STORE_VEC(DST_T, dst, (y * ALPHA + x) * plane, v[x]);
  }
}

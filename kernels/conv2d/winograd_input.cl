// winograd_input.cl - dst[e, p, b * channels + c] = (B^T d B)[e] of channel first_c + c of tile p, shifted by
//                     block b of the filter; the second of four kernels, see winograd_tile.cl
//
// Shapes    src: [n, in_h, in_w, in_c]
//           dst: [ALPHA^2, tile_rows * tiles_w, depth], depth = blocks * channels; the tiles are those in
//           tile_rows of the n * tiles_h rows of tiles, from first_row on, with TILE x TILE outputs each;
//           channels is a multiple of 4; those past in_c are zero
// Launch    a work-group per strip of TX tiles x CV vectors of 4 channels:
//           global = (TX * CV * ceil(channels / 4 / CV), ceil(tiles_w / TX), tile_rows * blocks),
//           local = (TX * CV, 1, 1). It reads its strip once, then keeps two rows of a tile in registers.
// Macros    TX     1..32        tiles of a strip
//           CV     1..32        vectors of a strip; local memory: ALPHA * (TX * TILE + TAPS - 1) * CV * 16 bytes
//           VEC_C  0|1          1: in_c is a multiple of 4
//           REFLECT  0|1        values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           SRC_T  float|half   element type of src
//           DST_T  float|half   element type of dst
//           ALPHA, TILE         see conv2d/winograd_tile.cl
// Numerics  in float; rows first, then columns
#include "common/border.cl"
#include "common/local.cl"
#include "common/types.cl"
#include "conv2d/winograd_tile.cl"

#define WIDTH (TX * TILE + TAPS - 1)
#define STRIP(y, x) strip[(((y) * WIDTH) + tile * TILE + (x)) * CV + vector]
#define COLUMN(y) STRIP(y, x)
#define ROW(x) row[x]

// Writes row i of the transform; the columns along y are transformed already.
#define WRITE_ROW(i)                                                  \
  do {                                                                \
    float4 v_[ALPHA];                                                 \
    TRANSFORM_INPUT(float4, ROW, v_);                                 \
    _Pragma("unroll") for (int x_ = 0; x_ < ALPHA; ++x_) {            \
      STORE4_ALIGNED(DST_T, dst, ((i) * ALPHA + x_) * plane, v_[x_]); \
    }                                                                 \
  } while (0)

__kernel __attribute__((reqd_work_group_size(TX * CV, 1, 1))) void conv2d_winograd_input(
    __global const SRC_T *src, __global DST_T *dst, int in_h, int in_w, int in_c, int tiles_h,
    int tiles_w, int top, int left, int first_row, int tile_rows, int depth, int blocks_w,
    int first_c, int channels) {
  LOCAL_ARRAY(float4, strip, ALPHA * WIDTH * CV);
  const int item = get_local_id(0);
  const int c0 = (int)get_group_id(0) * CV * 4, tile_x0 = (int)get_group_id(1) * TX;
  const int row_of_tiles = (int)get_group_id(2) % tile_rows;
  const int block = (int)get_group_id(2) / tile_rows;
  const int y0 = (first_row + row_of_tiles) % tiles_h * TILE - top + block / blocks_w * TAPS;
  const int x0 = tile_x0 * TILE - left + block % blocks_w * TAPS;
  src += (first_row + row_of_tiles) / tiles_h * in_h * in_w * in_c;

  for (int i = item; i < ALPHA * WIDTH * CV; i += TX * CV) {
    const int y = BORDER(y0 + i / CV / WIDTH, in_h), x = BORDER(x0 + i / CV % WIDTH, in_w);
    const int c = first_c + c0 + i % CV * 4;
    float4 value = (float4)(0.0f);
    if ((uint)y < (uint)in_h && (uint)x < (uint)in_w && c < in_c) {
      const int at = (y * in_w + x) * in_c + c;
#if VEC_C
      value = LOAD4_ALIGNED(SRC_T, src, at);
#else
      value.s0 = LOAD(SRC_T, src, at);
      if (c + 1 < in_c) value.s1 = LOAD(SRC_T, src, at + 1);
      if (c + 2 < in_c) value.s2 = LOAD(SRC_T, src, at + 2);
      if (c + 3 < in_c) value.s3 = LOAD(SRC_T, src, at + 3);
#endif
    }
    strip[i] = value;
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  const int tile = item / CV, vector = item % CV, c = c0 + vector * 4;
  if (tile_x0 + tile < tiles_w && c < channels) {
    const int plane = tile_rows * tiles_w * depth;
    dst += (row_of_tiles * tiles_w + tile_x0 + tile) * depth + block * channels + c;
    float4 row[ALPHA], difference[ALPHA];
#if ALPHA != 7
#pragma unroll
    for (int x = 0; x < ALPHA; ++x) row[x] = FIRST(COLUMN);
    WRITE_ROW(0);
#endif
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
#pragma unroll
      for (int x = 0; x < ALPHA; ++x) {
        const float4 even = SHARED(k, COLUMN), odd = SIGNED(k, COLUMN);
        row[x] = even + odd;
        difference[x] = even - odd;
      }
      WRITE_ROW(PAIR_ROW(k));
#pragma unroll
      for (int x = 0; x < ALPHA; ++x) row[x] = difference[x];
      WRITE_ROW(PAIR_ROW(k) + 1);
    }
#pragma unroll
    for (int x = 0; x < ALPHA; ++x) row[x] = LAST(COLUMN);
    WRITE_ROW(ALPHA - 1);
  }
}

// winograd_input.cl - dst[e, p, b * channels + c] = (B^T d B)[e] of channel first_c + c of the tile p, moved by
//                     block b of the filter; the second of four kernels, see winograd_tile.cl
//
// Shapes    src: [n, in_h, in_w, in_c]
//           dst: [ALPHA^2, tile_rows * tiles_w, depth], depth = blocks * channels; the tiles are those of
//           tile_rows rows from first_row on of the n * tiles_h rows, with TILE x TILE outputs each
//           channels is a multiple of 4; those past in_c are zero
// Launch    a work-group per strip of TX tiles x CV vectors of 4 channels:
//           global = (TX * CV * ceil(channels / 4 / CV), ceil(tiles_w / TX), tile_rows * blocks),
//           local = (TX * CV, 1, 1). It reads its strip once, then keeps two rows of a tile in registers.
// Macros    TX     1..32        tiles of a strip
//           CV     1..32        vectors of a strip; ALPHA * (TX * TILE + TAPS - 1) * CV * 16 bytes
//           VEC_C  0|1          1: in_c is a multiple of 4
//           SRC_T  float|half   element type of src
//           DST_T  float|half   element type of dst
//           ALPHA, TILE         see conv2d/winograd_tile.cl
// Numerics  in float; rows first, then columns
#include "common/types.cl"
#include "conv2d/winograd_tile.cl"
#ifndef TX
#error "TX is required (1..32)"
#endif
#ifndef CV
#error "CV is required (1..32)"
#endif
#ifndef VEC_C
#error "VEC_C is required (0 or 1)"
#endif
#ifndef SRC_T
#error "SRC_T is required (float or half)"
#endif
#ifndef DST_T
#error "DST_T is required (float or half)"
#endif

#define WIDTH (TX * TILE + TAPS - 1)
#define D(y, x) d[((y) * WIDTH + (x)) * CV]

// Transforms the row r of ALPHA vectors along x and writes it as row `i` of the tile.
#define FINISH_ROW(r, i)                                        \
  do {                                                          \
    float4 v_[ALPHA];                                           \
    WINOGRAD_INPUT(float4, r, v_);                              \
    _Pragma("unroll") for (int x_ = 0; x_ < ALPHA; ++x_) {      \
      STORE4_ALIGNED(DST_T, dst, ((i) * ALPHA + x_) * plane, v_[x_]); \
    }                                                           \
  } while (0)

__kernel __attribute__((reqd_work_group_size(TX * CV, 1, 1))) void conv2d_winograd_input(
    __global const SRC_T *src, __global DST_T *dst, int in_h, int in_w, int in_c, int tiles_h,
    int tiles_w, int top, int left, int first_row, int tile_rows, int depth, int blocks_w, int first_c,
    int channels) {
  __local float4 strip[ALPHA * WIDTH * CV];
  const int item = get_local_id(0);
  const int c0 = (int)get_group_id(0) * CV * 4, tile_x0 = (int)get_group_id(1) * TX;
  const int row = (int)get_group_id(2) % tile_rows, block = (int)get_group_id(2) / tile_rows;
  const int y0 = (first_row + row) % tiles_h * TILE - top + block / blocks_w * TAPS;
  const int x0 = tile_x0 * TILE - left + block % blocks_w * TAPS;
  src += (first_row + row) / tiles_h * in_h * in_w * in_c;

  for (int i = item; i < ALPHA * WIDTH * CV; i += TX * CV) {
    const int y = y0 + i / CV / WIDTH, x = x0 + i / CV % WIDTH, c = first_c + c0 + i % CV * 4;
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

  const int tile_x = tile_x0 + item / CV, c = c0 + item % CV * 4;
  if (tile_x < tiles_w && c < channels) {
    const int plane = tile_rows * tiles_w * depth;
    dst += (row * tiles_w + tile_x) * depth + block * channels + c;
    __local const float4 *d = strip + item / CV * TILE * CV + item % CV;
    float4 r[ALPHA];
#if ALPHA == 4
#pragma unroll
    for (int x = 0; x < 4; ++x) r[x] = D(0, x) - D(2, x);
    FINISH_ROW(r, 0);
#pragma unroll
    for (int x = 0; x < 4; ++x) r[x] = D(2, x) + D(1, x);
    FINISH_ROW(r, 1);
#pragma unroll
    for (int x = 0; x < 4; ++x) r[x] = D(2, x) - D(1, x);
    FINISH_ROW(r, 2);
#pragma unroll
    for (int x = 0; x < 4; ++x) r[x] = D(3, x) - D(1, x);
    FINISH_ROW(r, 3);
#else
#pragma unroll
    for (int x = 0; x < 6; ++x) r[x] = D(4, x) - S2 * D(2, x) + S1 * (S2 * D(0, x) - D(2, x));
    FINISH_ROW(r, 0);
#pragma unroll
    for (int x = 0; x < 6; ++x) r[x] = D(5, x) - S2 * D(3, x) + S1 * (S2 * D(1, x) - D(3, x));
    FINISH_ROW(r, 5);
    float4 odd[ALPHA];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const float s = pair == 0 ? S2 : S1, p = pair == 0 ? P1 : P2;
#pragma unroll
      for (int x = 0; x < 6; ++x) {
        r[x] = D(4, x) - s * D(2, x);
        odd[x] = p * (D(3, x) - s * D(1, x));
      }
      float4 sum[ALPHA];
#pragma unroll
      for (int x = 0; x < 6; ++x) sum[x] = r[x] + odd[x];
      FINISH_ROW(sum, pair * 2 + 1);
#pragma unroll
      for (int x = 0; x < 6; ++x) sum[x] = r[x] - odd[x];
      FINISH_ROW(sum, pair * 2 + 2);
    }
#endif
  }
}

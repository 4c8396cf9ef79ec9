// tensor_halo_nvidia.cl - 2-D convolution of stride 1 on NVIDIA's tensor cores: a work-group copies the
//                         pixels of its tile and the halo to local memory once for all filter taps;
//                         a warp reads a row of pixels once for all rows of the filter
//
// Shapes    src: [batch, in_h, in_w, in_c]; bias: [out_c]; dst, residual: [batch, out_h, out_w, out_c]
//           packed: as tensor_halo_pack_nvidia.cl writes it; chunks = ceil(in_c / channels of a chunk),
//           UNITS * 8 halves, UNITS * 4 floats or UNITS * 16 chars; with FILL: outside: four bytes, each the
//           value outside of the image; tiles_y = ceil(out_h / (ROWS * WARPS_Y))
// Launch    one work-group of `items` = 32 * WARPS_X * WARPS_Y * WARPS_N per tile of ROWS * WARPS_Y rows
//           of 16 * WARPS_X pixels x 8 * BLOCKS * WARPS_N channels (a panel):
//           global = (panels * items, ceil(out_w / (16 * WARPS_X)), batch * tiles_y), local = (items)
// Macros    FILTER_H, FILTER_W      1..  filter, at most 9 rows
//           DILATION_H, DILATION_W  1..
//           ROWS      2|8    rows of 16 pixels of a warp
//           BLOCKS    1|2|4  blocks of 8 output channels of a warp
//           WARPS_X, WARPS_Y, WARPS_N  1..4  warps of a work-group along width, height, channels
//           UNITS     2|4    units of 16 bytes per pixel and chunk
//           STAGES    1|2    chunks in local memory; 2: one is copied while the other is computed
//           COPY      4|8|16 bytes copied at once: they divide a pixel
//           WIDE      0|1    1: BLOCKS is above 1; out_c and the start of every pixel of dst are
//                           multiples of 2 * BLOCKS
//           MMA_TYPE  0..2   0: src is half, 1: float, 2: char; packed is of the same type
//           FILL      0|1    1: values outside of the image are `outside`, not zero
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           DST_T     float|half|char  element type of dst; and those of common/epilogue.cl
// Numerics  products exact (after float operands have been rounded to TF32), sums in float in the order
//           of chunks, filter columns, half chunks, filter rows; bias and residual are added last. Integers: exact
#include "common/border.cl"
#include "common/epilogue.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"

#if MMA_TYPE == 2
#define SRC_T char
#elif MMA_TYPE == 1
#define SRC_T float
#else
#define SRC_T half
#endif
#define BYTES MMA_BYTES
#define ITEMS (32 * WARPS_X * WARPS_Y * WARPS_N)
#define PIXEL (UNITS * 16)  // bytes of a pixel in a stage
#define HALO_H (ROWS * WARPS_Y + (FILTER_H - 1) * DILATION_H)
#define HALO_W (16 * WARPS_X + (FILTER_W - 1) * DILATION_W)
#define PITCH ((HALO_W + 1) / 2 * 2)  // pixels; even, so that the swizzle fits every row
#define STAGE (HALO_H * PITCH * PIXEL)
#define COLUMNS (PIXEL / COPY)  // copies of a pixel
#define COPIES (HALO_H * HALO_W * COLUMNS)
#define DEPTHS (UNITS / 2)             // operand widths, 32 bytes, in a chunk
#define STEPS (FILTER_W * DEPTHS)      // of a chunk
#define STEP (FILTER_H * BLOCKS * 64)  // registers of right operands that a warp reads in a step
#define SOURCE_ROWS (ROWS + (FILTER_H - 1) * DILATION_H)  // that a warp reads

// Swizzle: units of a pixel are permuted so that one unit of 8 neighbouring pixels covers all banks.
#if UNITS == 4
#define SWIZZLE(x) (((x) >> 1) & 3)
#else
#define SWIZZLE(x) (((x) >> 2) & 1)
#endif
#if FILL
#define COPY_TO(address, from, valid) CLGPU_CAT(COPY_OR_, COPY)(address, from, valid, outside)
#else
#define COPY_TO(address, from, valid) CLGPU_CAT(COPY_, COPY)(address, from, valid)
#endif

// Copies the halo's chunk that begins at channel c0 to the stage at `to`; (y0, x0): the halo's first pixel.
void copy_chunk(int item, uint to, __global const SRC_T *src, int outside, int c0, int y0, int x0,
                int in_h, int in_w, int in_c) {
#pragma unroll 1
  for (int i = item; i < COPIES; i += ITEMS) {
    const int column = i % COLUMNS, pixel = i / COLUMNS;
    const int hy = pixel / HALO_W, hx = pixel - hy * HALO_W;
    const int y = BORDER(y0 + hy, in_h), x = BORDER(x0 + hx, in_w);
    const int c = c0 + column * (COPY / BYTES);
    const bool inside = (uint)y < (uint)in_h && (uint)x < (uint)in_w && c < in_c;
    const uint place = (hy * PITCH + hx) * PIXEL + (((column * COPY / 16) ^ SWIZZLE(hx)) * 16) +
                       column * COPY % 16;
    COPY_TO(to + place, src + (inside ? (y * in_w + x) * in_c + c : 0), inside);
  }
  COPIES_COMMIT();
}

// Right operands of filter row u: registers 0 and 1 of each block.
void load_right(uint *right, __global const uint *packed, int u, int lane) {
#if BLOCKS == 1
  const uint2 v = *(__global const uint2 *)(packed + u * 64 + lane * 2);
  right[0] = v.s0, right[1] = v.s1;
#else
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j) {
    const uint4 v = *(__global const uint4 *)(packed + (u * BLOCKS + j * 2) * 64 + lane * 4);
    right[4 * j] = v.s0, right[4 * j + 1] = v.s1;
    right[4 * j + 2] = v.s2, right[4 * j + 3] = v.s3;
  }
#endif
}

#if WIDE
#include "common/mma_wide.cl"
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void conv2d_tensor_halo(
    __global const SRC_T *src, __global const uint *packed,
#if FILL
    int outside,
#endif
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM int chunks, int tiles_y, int in_h, int in_w, int in_c,
    int out_h, int out_w, int out_c, int top, int left) {
#if !FILL
  const int outside = 0;
#endif
  LOCAL_LINES(uint4, stages, STAGES * STAGE / 16);

  const int item = get_local_id(0), lane = item % 32, warp = item / 32;
  const int warp_n = warp % WARPS_N, warp_x = warp / WARPS_N % WARPS_X;
  const int warp_y = warp / (WARPS_N * WARPS_X);
  const int image = (int)get_group_id(2) / tiles_y, tile_y = (int)get_group_id(2) % tiles_y;
  const int out_y = tile_y * (ROWS * WARPS_Y), out_x = (int)get_group_id(1) * (16 * WARPS_X);
  const int block = (int)get_group_id(0) * WARPS_N + warp_n;
  const int y0 = out_y - top, x0 = out_x - left;
  const uint base = local_address(stages);
  src += image * in_h * in_w * in_c;
  packed += (size_t)block * chunks * STEPS * STEP;

  MMA_SUM4_T sum[ROWS][BLOCKS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) sum[r][b] = (MMA_SUM4_T)(0);
  }
  uint right[FILTER_H][2 * BLOCKS];

#pragma unroll
  for (int u = 0; u < FILTER_H; ++u) load_right(right[u], packed, u, lane);
  OPERANDS_READY();
  copy_chunk(item, base, src, outside, 0, y0, x0, in_h, in_w, in_c);

  const int lane_x = warp_x * 16 + lane % 16;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const uint stage = base + (STAGES == 2 && chunk % 2 ? STAGE : 0);
    COPIES_WAIT(0);
    barrier(CLK_LOCAL_MEM_FENCE);  // the chunk has arrived, the other stage is free
#if STAGES == 2
    if (chunk + 1 < chunks) {
      copy_chunk(item, base + (chunk % 2 ? 0 : STAGE), src, outside, (chunk + 1) * (PIXEL / BYTES),
                 y0, x0, in_h, in_w, in_c);
    }
#endif
#pragma unroll 1
    for (int t = 0; t < FILTER_W; ++t) {
      const int x = lane_x + t * DILATION_W;
      const uint at = (warp_y * ROWS * PITCH + x) * PIXEL + ((lane / 16) ^ SWIZZLE(x)) * 16;
#pragma unroll
      for (int depth = 0; depth < DEPTHS; ++depth) {
        const uint from = stage + (depth == 1 ? at ^ 32 : at);
        packed += STEP;  // of the next step; the buffer has space for one more after the last
#if FILTER_H <= 3
        uint next[FILTER_H][2 * BLOCKS];
#pragma unroll
        for (int u = 0; u < FILTER_H; ++u) load_right(next[u], packed, u, lane);
#endif
        uint4 pixels[2];
        LDMATRIX_X4(pixels[0], from);
#pragma unroll
        for (int r = 0; r < SOURCE_ROWS; ++r) {
          if (r + 1 < SOURCE_ROWS) {
            LDMATRIX_X4(pixels[(r + 1) % 2], from + (r + 1) * (PITCH * PIXEL));
          }
          uint4 a = pixels[r % 2];
#if MMA_TYPE == 1
          a = (uint4)(to_tf32(a.s0), to_tf32(a.s1), to_tf32(a.s2), to_tf32(a.s3));
#endif
#pragma unroll
          for (int u = 0; u < FILTER_H; ++u) {
            const int y = r - u * DILATION_H;
            if (y >= 0 && y < ROWS) {
#pragma unroll
              for (int b = 0; b < BLOCKS; ++b)
                MMA(sum[y][b], a, right[u][2 * b], right[u][2 * b + 1]);
            }
#if FILTER_H > 3
            if (y == ROWS - 1) load_right(right[u], packed, u, lane);  // the last use
#endif
          }
        }
#if FILTER_H <= 3
#pragma unroll
        for (int u = 0; u < FILTER_H; ++u) {
#pragma unroll
          for (int b = 0; b < 2 * BLOCKS; ++b) right[u][b] = next[u][b];
        }
#endif
      }
    }
#if STAGES == 1
    if (chunk + 1 < chunks) {
      barrier(CLK_LOCAL_MEM_FENCE);  // the stage is free
      copy_chunk(item, base, src, outside, (chunk + 1) * (PIXEL / BYTES), y0, x0, in_h, in_w, in_c);
    }
#endif
  }

  // Lane 4 * g + q has pixels g and g + 8 of each row and 2 * BLOCKS channels from q * 2 * BLOCKS on.
  const int o = (block * 4 + lane % 4) * (2 * BLOCKS);
  if (o >= out_c) return;
#if WIDE
  CHANNEL4_T channel[BLOCKS / 2];
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j) channel[j] = CHANNEL4_AT(o + 4 * j);
#else
  CHANNEL_T channel[2 * BLOCKS];
#pragma unroll
  for (int i = 0; i < 2 * BLOCKS; ++i) channel[i] = CHANNEL_AT(min(o + i, out_c - 1));
#endif
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int y = out_y + warp_y * ROWS + r;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int x = out_x + warp_x * 16 + side * 8 + lane / 4;
      if (y >= out_h || x >= out_w) continue;
      const int pixel_at = RESULT_AT((image * out_h + y) * out_w + x, o, out_c);
      MMA_SUM_T v[2 * BLOCKS];
#pragma unroll
      for (int b = 0; b < BLOCKS; ++b) {
        v[2 * b] = side ? sum[r][b].s2 : sum[r][b].s0;
        v[2 * b + 1] = side ? sum[r][b].s3 : sum[r][b].s1;
      }
#if WIDE
      MMA_SUM4_T quads[BLOCKS / 2];
#pragma unroll
      for (int j = 0; j < BLOCKS / 2; ++j) {
        const MMA_SUM4_T quad = (MMA_SUM4_T)(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
        quads[j] = FINISH_SUM4_ALIGNED(quad, channel[j], pixel_at + 4 * j);
      }
      CLGPU_CAT(store_wide_, DST_T)(dst + pixel_at, quads);
#else
#pragma unroll
      for (int i = 0; i < 2 * BLOCKS; ++i) {
        if (o + i < out_c)
          STORE(DST_T, dst, pixel_at + i, FINISH_SUM(v[i], channel[i], pixel_at + i));
      }
#endif
    }
  }
}

// blocked.cl - pooling as in window.cl; a work-item computes PX pixels x PY rows x WIDTH channels, and loads each
//              element of their windows once
//
// Shapes    src: [batches, src_h, src_w, channels]; dst: [batches, dst_h, dst_w, channels]; channels is a
//           multiple of WIDTH
// Launch    global = batches * ceil(dst_h / PY) * ceil(dst_w / PX) * channels / WIDTH, local any
// Macros    WIDTH  4           channels of a work-item
//           PX, PY  1..4       pixels and rows of a work-item
//           FILTER_H, FILTER_W, STRIDE_H, STRIDE_W  1..5  of the windows
//           SRC_T  float|half, or char|uchar|short with QUANTIZED  element type of src
//           DST_T  float|half, or char|uchar|short with QUANTIZED  element type of dst
//           and those of common/pooling.cl and common/result.cl
// Numerics  float arithmetic whatever the storage is, the rows of a window first; integers are exact; padding
//           does not count
#include "common/pooling.cl"
#include "common/result.cl"
#include "common/types.cl"

#define VALUE_T CLGPU_CAT(POOL_T, WIDTH)
#define READ(p, i) CLGPU_CAT(LOAD, WIDTH)(SRC_T, p, i)
#define WRITE(p, i, v) CLGPU_CAT(STORE, WIDTH)(DST_T, p, i, v)

// Rows and columns of src that a block reads.
#define ROWS ((PY - 1) * STRIDE_H + FILTER_H)
#define COLUMNS ((PX - 1) * STRIDE_W + FILTER_W)

__kernel void pool_blocked(__global const SRC_T *src, RESULT_PARAM POOL_RANGE_PARAM int batches,
                           int src_h, int src_w, int dst_h, int dst_w, int channels, int pad_h,
                           int pad_w) {
  const int blocks = channels / WIDTH;
  const int columns = (dst_w + PX - 1) / PX, rows = (dst_h + PY - 1) / PY;
  const int item = get_global_id(0);
  if (item >= batches * rows * columns * blocks) return;
  const int block = item / blocks;
  const int c = (item - block * blocks) * WIDTH;
  const int row = block / columns;
  const int n = row / rows;
  const int x = (block - row * columns) * PX, y = (row - n * rows) * PY;
  const int left = x * STRIDE_W - pad_w, top = y * STRIDE_H - pad_h;
  src += n * src_h * src_w * channels + c;

  VALUE_T sum[PY][PX];
#pragma unroll
  for (int q = 0; q < PY; ++q) {
#pragma unroll
    for (int p = 0; p < PX; ++p) sum[q][p] = (VALUE_T)(POOL_START);
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const bool inside = (uint)(top + r) < (uint)src_h;
    VALUE_T element[COLUMNS];
#pragma unroll
    for (int t = 0; t < COLUMNS; ++t) {
      element[t] = (VALUE_T)(POOL_START);
      if (inside && (uint)(left + t) < (uint)src_w) {
        element[t] = READ(src, ((top + r) * src_w + left + t) * channels);
      }
    }
#pragma unroll
    for (int p = 0; p < PX; ++p) {
      VALUE_T part = (VALUE_T)(POOL_START);
#pragma unroll
      for (int t = 0; t < FILTER_W; ++t) part = POOL_ADD(part, element[p * STRIDE_W + t]);
#pragma unroll
      for (int q = 0; q < PY; ++q) {
        if (q * STRIDE_H <= r && r < q * STRIDE_H + FILTER_H)
          sum[q][p] = POOL_JOIN(sum[q][p], part);
      }
    }
  }

#pragma unroll
  for (int q = 0; q < PY; ++q) {
    const int first_row = top + q * STRIDE_H;
    const int height = min(first_row + FILTER_H, src_h) - max(first_row, 0);
#pragma unroll
    for (int p = 0; p < PX; ++p) {
      if (y + q >= dst_h || x + p >= dst_w) continue;
      const int first = left + p * STRIDE_W;
      const int count = height * (min(first + FILTER_W, src_w) - max(first, 0));
      const int pixel = (n * dst_h + y + q) * dst_w + x + p;
      const VALUE_T result = FINISH_POOL(sum[q][p], count);
      WRITE(dst, RESULT_AT(pixel, c, channels), result);
    }
  }
}

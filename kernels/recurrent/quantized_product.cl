// quantized_product.cl - pre[first + r * step, j] =   sum over k of (x[r, k] - x_zero) * wx[k, j] + bias[j]
//                                                   + sum over k of (h[r, k] - h_zero) * wh[k, j]
//
// Both sums are requantised, each by scales of its own, before they are added.
//
// Shapes    x: [rows, x_depth], h: [rows, h_depth]; wx, wh: [depth, cols], where the columns are the gates,
//           `cells` columns each; vectors: [cols, ..], starts with the bias
//           scales: [gates, 8] ints, see quantized_sequence.cl; pre: [.., cols]
// Launch    global = (ceil(cols / WX) * WX * WY, ceil(rows / ROWS), 1), local = (WX * WY, 1, 1): a
//           work-group computes WX columns of ROWS rows, WY work-items share each
// Macros    INPUT  0|1                   x is there; without it, pre is added to
//           STATE  0|1                   h is there
//           BIAS   0|1                   the bias is added to the first sum
//           ROWS   1|2|4|8               rows that a work-item computes
//           WX     power of two, 1..256  columns of a work-group
//           WY     power of two, 1..256  work-items that share a column
// Numerics  equal to TFLite's kernel; int sums
#include "common/multiply.cl"

#if INPUT
#define INPUT_PARAMS __global const char *x, __global const char *wx, int x_depth, int x_zero,
#else
#define INPUT_PARAMS
#endif
#if STATE
#define STATE_PARAMS __global const char *h, __global const char *wh, int h_depth, int h_zero,
#else
#define STATE_PARAMS
#endif

// The part of work-item y of the sums of all rows, for the work-items that add them up.
#define PUT_SUMS(src, weights, depth, zero, parts)                                 \
  {                                                                                \
    int total[ROWS];                                                               \
    for (int r = 0; r < ROWS; ++r) total[r] = 0;                                   \
    for (int k = y; k < (depth); k += WY) {                                        \
      const int weight = weights[k * cols + source];                               \
      for (int r = 0; r < ROWS; ++r)                                               \
        total[r] += weight * (src[min(row + r, rows - 1) * (depth) + k] - (zero)); \
    }                                                                              \
    for (int r = 0; r < ROWS; ++r) parts[(y * ROWS + r) * WX + lane] = total[r];   \
  }
#define GET_SUM(sum, parts) \
  for (int part = 0; part < WY; ++part) sum += parts[(part * ROWS + r) * WX + lane];

__kernel __attribute__((reqd_work_group_size(WX * WY, 1, 1))) void recurrent_quantized_product(
    INPUT_PARAMS STATE_PARAMS __global const int *vectors, __global const int *scales,
    __global short *pre, int rows, int cols, int cells, int first, int step) {
  const int item = get_local_id(0);
  // On CPUs the loops of all work-items of a vector have to be alike.
  const int lane = WY == 1 ? item : item % WX, y = WY == 1 ? 0 : item / WX;
  const int col = get_group_id(0) * WX + lane, row = get_group_id(1) * ROWS;
  const int source = min(col, cols - 1);
  const int gate = source / cells;
#if INPUT
  __local int x_parts[WY * ROWS * WX];
  PUT_SUMS(x, wx, x_depth, x_zero, x_parts)
#endif
#if STATE
  __local int h_parts[WY * ROWS * WX];
  PUT_SUMS(h, wh, h_depth, h_zero, h_parts)
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = y; r < ROWS; r += WY) {
    if (col >= cols || row + r >= rows) continue;
    const int at = (first + (row + r) * step) * cols + col;
#if INPUT
    int sum = BIAS ? vectors[col] : 0;
    GET_SUM(sum, x_parts)
    int result = requantize_int(sum, scales[8 * gate], scales[8 * gate + 1]);
    result = clamp(result, -32768, 32767);
#else
    int result = pre[at];
#endif
#if STATE
    int more = 0;
    GET_SUM(more, h_parts)
    result += requantize_int(more, scales[8 * gate + 2], scales[8 * gate + 3]);
#endif
    pre[at] = (short)clamp(result, -32768, 32767);
  }
}

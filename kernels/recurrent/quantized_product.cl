// quantized_product.cl - pre[first + r * step, j] = sum over k of (x[r, k] - zero) * w[k, j], requantised
//
// Shapes    x: [rows, depth], w: [depth, cols], where the columns are the gates, `cells` columns each
//           vectors: [cols, ..], starts with the bias; scales: [gates, 8] ints, see quantized_sequence.cl
//           pre: [.., cols]
// Launch    global = (ceil(cols / WX) * WX * WY, ceil(rows / ROWS), 1), local = (WX * WY, 1, 1): a
//           work-group computes WX columns of ROWS rows, WY work-items share each
// Macros    PART   0|1                   0: the products with the input; 1: with the state, which are added
//                                        to pre
//           BIAS   0|1                   the bias is added to the sums
//           ROWS   1|2|4|8               rows that a work-item computes
//           WX     power of two, 1..256  columns of a work-group
//           WY     power of two, 1..256  work-items that share a column
// Numerics  equal to TFLite's kernel; int sums
#include "common/multiply.cl"

__kernel __attribute__((reqd_work_group_size(WX *WY, 1, 1))) void recurrent_quantized_product(
    __global const char *x, __global const char *w, __global const int *vectors,
    __global const int *scales, __global short *pre, int depth, int zero, int rows, int cols,
    int cells, int first, int step) {
  __local int parts[WY * ROWS * WX];
  const int item = get_local_id(0), lane = item % WX, y = item / WX;
  const int col = get_group_id(0) * WX + lane, row = get_group_id(1) * ROWS;
  const int gate = min(col, cols - 1) / cells;
  int from[ROWS], total[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    from[r] = min(row + r, rows - 1) * depth;
    total[r] = 0;
  }
  for (int k = y; k < depth && col < cols; k += WY) {
    const int weight = w[k * cols + col];
    for (int r = 0; r < ROWS; ++r) total[r] += weight * (x[from[r] + k] - zero);
  }
  for (int r = 0; r < ROWS; ++r) parts[(y * ROWS + r) * WX + lane] = total[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = y; r < ROWS; r += WY) {
    if (col >= cols || row + r >= rows) continue;
    const int at = (first + (row + r) * step) * cols + col;
    int sum = 0;
#if BIAS
    sum = vectors[col];
#endif
    for (int part = 0; part < WY; ++part) sum += parts[(part * ROWS + r) * WX + lane];
    int result = requantize_int(sum, scales[8 * gate + 2 * PART], scales[8 * gate + 2 * PART + 1]);
    if (PART == 1) result += pre[at];
    pre[at] = (short)clamp(result, -32768, 32767);
  }
}

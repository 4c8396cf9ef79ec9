// product.cl - pre[first + r * step, j] = bias[j] + sum over k of x[r, k] * wx[k, j]
//                                       + sum over k of aux[r, k] * wa[k, j]
//                                       + sum over k of h[r, k] * wh[k, j]
//
// Shapes    x: [rows, x_depth], aux: [rows, aux_depth], h: [rows, h_depth]; wx, wa, wh: [depth, cols],
//           where the columns are the gates, `cells` columns each; pre: [.., cols]
//           vectors: [cols, ..], starts with the bias; scales: [3, gates], of wx, wa and wh
// Launch    global = (ceil(cols / WX) * WX * WY, ceil(rows / ROWS), 1), local = (WX * WY, 1, 1): a
//           work-group computes WX columns of ROWS rows, WY work-items share each
// Macros    INPUT  0|1                   x is there
//           X_T if INPUT == 1  float|half  element type of x
//           WX_T if INPUT == 1  float|half|weight8  element type of wx
//           AUX    0|1                   aux is there
//           AUX_T if AUX == 1  float|half  element type of aux
//           WA_T if AUX == 1  float|half|weight8  element type of wa
//           STATE  0|1                   h is there
//           H_T if STATE == 1  float|half  element type of h
//           WH_T if STATE == 1  float|half|weight8  element type of wh
//           START  0..2                  what the sums are added to: 0 nothing, 1 the bias, 2 pre
//           ROWS   1|2|4|8               rows that a work-item computes
//           WX     power of two, 1..256  columns of a work-group
//           WY     power of two, 1..256  work-items that share a column
// Numerics  float sums, in order of k per work-item, then over the work-items; scales multiply sums
#include "common/types.cl"

#define SUM(T, WT, src, weights, depth, part)                                           \
  {                                                                                     \
    float sum[ROWS];                                                                    \
    for (int r = 0; r < ROWS; ++r) sum[r] = 0.0f;                                       \
    for (int k = y; k < (depth); k += WY) {                                             \
      const float w = LOAD(WT, weights, k * cols + source);                             \
      for (int r = 0; r < ROWS; ++r) sum[r] += w * LOAD(T, src, from[r] * (depth) + k); \
    }                                                                                   \
    const float scale = scales[(part) * gates + gate];                                  \
    for (int r = 0; r < ROWS; ++r) total[r] += sum[r] * scale;                          \
  }

#if INPUT
#define INPUT_PARAMS __global const X_T *x, __global const WX_T *wx, int x_depth,
#else
#define INPUT_PARAMS
#endif
#if AUX
#define AUX_PARAMS __global const AUX_T *aux, __global const WA_T *wa, int aux_depth,
#else
#define AUX_PARAMS
#endif
#if STATE
#define STATE_PARAMS __global const H_T *h, __global const WH_T *wh, int h_depth,
#else
#define STATE_PARAMS
#endif

__kernel __attribute__((reqd_work_group_size(WX * WY, 1, 1))) void recurrent_product(
    INPUT_PARAMS AUX_PARAMS STATE_PARAMS __global const float *vectors,
    __global const float *scales, __global float *pre, int rows, int cols, int cells, int first,
    int step) {
  __local float parts[WY * ROWS * WX];
  const int item = get_local_id(0);
  // On CPUs the loops of all work-items of a vector have to be alike.
  const int lane = WY == 1 ? item : item % WX, y = WY == 1 ? 0 : item / WX;
  const int col = get_group_id(0) * WX + lane, row = get_group_id(1) * ROWS;
  const int source = min(col, cols - 1);
  const int gates = cols / cells, gate = source / cells;
  int from[ROWS];
  float total[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    from[r] = min(row + r, rows - 1);
    total[r] = 0.0f;
  }
#if INPUT
  SUM(X_T, WX_T, x, wx, x_depth, 0)
#endif
#if AUX
  SUM(AUX_T, WA_T, aux, wa, aux_depth, 1)
#endif
#if STATE
  SUM(H_T, WH_T, h, wh, h_depth, 2)
#endif
  for (int r = 0; r < ROWS; ++r) parts[(y * ROWS + r) * WX + lane] = total[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = y; r < ROWS; r += WY) {
    if (col >= cols || row + r >= rows) continue;
    const int at = (first + (row + r) * step) * cols + col;
    float sum = START == 2 ? pre[at] : START == 1 ? vectors[col] : 0.0f;
    for (int part = 0; part < WY; ++part) sum += parts[(part * ROWS + r) * WX + lane];
    pre[at] = sum;
  }
}

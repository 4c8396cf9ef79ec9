// product.cl - pre[first + r * step, j] = bias[j] + sum over k of x[r, k] * wx[k, j]
//                                       + sum over k of aux[r, k] * wa[k, j]
//                                       + sum over k of h[r, k] * wh[k, j]
//
// Each of the three sums has a scale of its own. Integers: the zero points of x and h are subtracted first,
// the bias belongs to the sum of x, and both sums are requantised before they are added.
//
// Shapes    x: [rows, x_depth], aux: [rows, aux_depth], h: [rows, h_depth]; wx, wa, wh: [depth, cols],
//           where the columns are the gates, `cells` columns each; pre: [.., cols]
//           vectors: [cols, ..], starts with the bias; scales: see floats.cl and integers.cl
// Launch    global = (ceil(cols / WX) * WX * WY, ceil(rows / ROWS), 1), local = (WX * WY, 1, 1): a
//           work-group computes WX columns of ROWS rows, WY work-items share each
// Macros    INTEGER  0|1                 1: x, h and weights are char; AUX is 0
//           ACC_T  float|int             type of sums, vectors and scales
//           PRE_T  float|short           element type of pre
//           INPUT  0|1                   x is there
//           X_T if INPUT == 1  float|half|char  element type of x
//           WX_T if INPUT == 1  float|half|weight8|char  element type of wx
//           AUX    0|1                   aux is there
//           AUX_T if AUX == 1  float|half  element type of aux
//           WA_T if AUX == 1  float|half|weight8  element type of wa
//           STATE  0|1                   h is there
//           H_T if STATE == 1  float|half|char  element type of h
//           WH_T if STATE == 1  float|half|weight8|char  element type of wh
//           START  0..2                  what the sums are added to: 0 nothing, 1 the bias, 2 pre
//           ROWS   1|2|4|8               rows that a work-item computes
//           WX     power of two, 1..256  columns of a work-group
//           WY     power of two, 1..256  work-items that share a column
// Numerics  float sums, in order of k per work-item, then over the work-items; scales multiply sums.
//           Integers: equal to TFLite's kernel
#include "common/local.cl"
#include "common/types.cl"
#if INTEGER
#include "common/multiply.cl"
#endif

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

// One of the sums: the part of this work-item, for each row.
#define SUM(T, WT, src, weights, i)                                                           \
  {                                                                                           \
    ACC_T sum[ROWS];                                                                          \
    for (int r = 0; r < ROWS; ++r) sum[r] = 0;                                                \
    for (int k = y; k < src##_depth; k += WY) {                                               \
      const ACC_T w = LOAD(WT, weights, k * cols + source);                                   \
      for (int r = 0; r < ROWS; ++r) sum[r] += w * FACTOR(T, src, from[r] * src##_depth + k); \
    }                                                                                         \
    KEEP(i)                                                                                   \
  }
#define PART(i, y) parts[(((i) * WY + (y)) * ROWS + r) * WX + lane]
#define ADD_PARTS(total, i) \
  for (int part = 0; part < WY; ++part) total += PART(i, part);

#if INTEGER
#define ZERO_PARAMS , int x_zero, int h_zero
#define FACTOR(T, src, i) (LOAD(T, src, i) - src##_zero)
#define SUMS (INPUT + STATE)  // each is requantised on its own
#define H_SUM INPUT
#define KEEP(i) \
  for (int r = 0; r < ROWS; ++r) PART(i, y) = sum[r];
#define SCALED(sum, i) \
  requantize_int(sum, scales[8 * gate + 2 * (i)], scales[8 * gate + 2 * (i) + 1])
#define SHORT(x) clamp(x, -32768, 32767)
#else
#define ZERO_PARAMS
#define FACTOR(T, src, i) LOAD(T, src, i)
#define SUMS 1
#define H_SUM 2
#define KEEP(i)                                   \
  const float scale = scales[(i) * gates + gate]; \
  for (int r = 0; r < ROWS; ++r) total[r] += sum[r] * scale;
#endif

__kernel __attribute__((reqd_work_group_size(WX * WY, 1, 1))) void recurrent_product(
    INPUT_PARAMS AUX_PARAMS STATE_PARAMS __global const ACC_T *vectors,
    __global const ACC_T *scales, __global PRE_T *pre, int rows, int cols, int cells, int first,
    int step ZERO_PARAMS) {
  LOCAL_ARRAY(ACC_T, parts, SUMS * WY * ROWS * WX);
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
  SUM(X_T, WX_T, x, wx, 0)
#endif
#if AUX
  SUM(AUX_T, WA_T, aux, wa, 1)
#endif
#if STATE
  SUM(H_T, WH_T, h, wh, H_SUM)
#endif
#if !INTEGER
  for (int r = 0; r < ROWS; ++r) PART(0, y) = total[r];
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = y; r < ROWS; r += WY) {
    if (col >= cols || row + r >= rows) continue;
    const int at = (first + (row + r) * step) * cols + col;
#if INTEGER
    int result = START == 2 ? pre[at] : 0;
#if INPUT
    int sum = START == 1 ? vectors[col] : 0;
    ADD_PARTS(sum, 0)
    result += SHORT(SCALED(sum, 0));
#endif
#if STATE
    int more = 0;
    ADD_PARTS(more, H_SUM)
    result += SCALED(more, 1);
#endif
    pre[at] = (short)SHORT(result);
#else
    float sum = START == 2 ? pre[at] : START == 1 ? vectors[col] : 0.0f;
    ADD_PARTS(sum, 0)
    pre[at] = sum;
#endif
  }
}

// winograd_gemm.cl - m[e, p, k] = sum over c of v[e, p, c] * u[e, k / TN, u_first + c, k % TN], tiled, with two
//                    stages in local memory; the third of four kernels, see winograd_tile.cl
//
// Shapes    v: [planes, rows, depth], depth a multiple of 4; u: [planes, panels, u_depth, TN], zero past the
//           last channel, u_depth >= u_first + depth rounded up to TK
//           m: [planes, rows, cols], cols a multiple of 4
// Launch    a work-group per tile of TM rows x TN columns: TM * TN / (RM * RN) items;
//           global = (items * panels, ceil(rows / TM), planes), local = (items, 1, 1)
// Macros    TM, TN  32|64|128     tile: rows and columns of a work-group
//           TK      8|16          depth of a stage; an item loads whole vectors of 4: TM * TK / 4 and
//                                 TN * TK / 4 are multiples of the number of items
//           RM, RN  4|8           rows and columns of an item
//           ADD     0|1           1: add the products to m, which holds those of other channels
//           V_T, U_T, M_T         float|half  element types
// Numerics  one float sum per element, in the order of c
#include "common/local.cl"
#include "common/types.cl"

#define GX (TN / RN)  // items along the columns
#define GY (TM / RM)  // items along the rows
#define ITEMS (GX * GY)
#define QM (RM / 4)   // groups of four rows of an item
#define QN (RN / 4)   // groups of four columns of an item
#define ROW (TM + 4)  // row of the left tile: the padding spreads its writes over the banks
#define V_LOADS (TM * TK / 4 / ITEMS)
#define U_LOADS (TN * TK / 4 / ITEMS)

// Reads the tiles from depth k0 on into registers. Past the depth, v repeats its last channels, because
// u is zero there.
#define FETCH(k0)                                                       \
  do {                                                                  \
    const int c_ = min((k0) + load_k, depth - 4);                       \
    _Pragma("unroll") for (int q = 0; q < V_LOADS; ++q) {               \
      a[q] = LOAD4_ALIGNED(V_T, v, v_row[q] + c_);                      \
    }                                                                   \
    _Pragma("unroll") for (int q = 0; q < U_LOADS; ++q) {               \
      b[q] = LOAD4_ALIGNED(U_T, u, (k0) * TN + (item + q * ITEMS) * 4); \
    }                                                                   \
  } while (0)

// Writes them to stage s; a row of the left tile holds the rows of v.
#define STAGE(s)                                                                                \
  do {                                                                                          \
    _Pragma("unroll") for (int q = 0; q < V_LOADS; ++q) {                                       \
      __local float *to_ =                                                                      \
          (__local float *)a_tile[s] + load_k * ROW + load_row + q * (ITEMS * 4 / TK);          \
      to_[0] = a[q].s0;                                                                         \
      to_[ROW] = a[q].s1;                                                                       \
      to_[2 * ROW] = a[q].s2;                                                                   \
      to_[3 * ROW] = a[q].s3;                                                                   \
    }                                                                                           \
    _Pragma("unroll") for (int q = 0; q < U_LOADS; ++q) { b_tile[s][item + q * ITEMS] = b[q]; } \
  } while (0)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void conv2d_winograd_gemm(
    __global const V_T *v, __global const U_T *u, __global M_T *m, int rows, int depth, int u_first,
    int u_depth, int cols) {
  LOCAL_ARRAY2(float4, a_tile, 2, TK * ROW / 4);
  LOCAL_ARRAY2(float4, b_tile, 2, TK * TN / 4);
  const int item = get_local_id(0);
  const int panel = get_group_id(0), row0 = (int)get_group_id(1) * TM, plane = get_group_id(2);
  v += plane * rows * depth;
  u += ((plane * (int)get_num_groups(0) + panel) * u_depth + u_first) * TN;
  m += plane * rows * cols;

  const int load_k = item % (TK / 4) * 4, load_row = item / (TK / 4);
  int v_row[V_LOADS];
#pragma unroll
  for (int q = 0; q < V_LOADS; ++q) {
    v_row[q] = min(row0 + load_row + q * (ITEMS * 4 / TK), rows - 1) * depth;
  }

  float4 sum[RM][QN];
#pragma unroll
  for (int r = 0; r < RM; ++r) {
#pragma unroll
    for (int c = 0; c < QN; ++c) sum[r][c] = (float4)(0.0f);
  }

  const int y = item / GX, x = item % GX;
  float4 a[V_LOADS], b[U_LOADS];
  FETCH(0);
  STAGE(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  int stage = 0;
  for (int k0 = 0; k0 < depth; k0 += TK) {
    const bool more = k0 + TK < depth;
    if (more) FETCH(k0 + TK);
#pragma unroll
    for (int k = 0; k < TK; ++k) {
      // All reads come first, which takes a quarter less time on an H200.
      float4 right[QN], left[QM];
#pragma unroll
      for (int c = 0; c < QN; ++c) right[c] = b_tile[stage][k * (TN / 4) + c * GX + x];
#pragma unroll
      for (int q = 0; q < QM; ++q) left[q] = a_tile[stage][k * (ROW / 4) + q * GY + y];
#pragma unroll
      for (int q = 0; q < QM; ++q) {
#pragma unroll
        for (int c = 0; c < QN; ++c) {
          sum[q * 4][c] = mad((float4)(left[q].s0), right[c], sum[q * 4][c]);
          sum[q * 4 + 1][c] = mad((float4)(left[q].s1), right[c], sum[q * 4 + 1][c]);
          sum[q * 4 + 2][c] = mad((float4)(left[q].s2), right[c], sum[q * 4 + 2][c]);
          sum[q * 4 + 3][c] = mad((float4)(left[q].s3), right[c], sum[q * 4 + 3][c]);
        }
      }
    }
    stage ^= 1;
    if (more) STAGE(stage);
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (int c = 0; c < QN; ++c) {
    const int col = panel * TN + (c * GX + x) * 4;
#pragma unroll
    for (int r = 0; r < RM; ++r) {
      const int row = row0 + (r / 4 * GY + y) * 4 + r % 4;
      if (row < rows && col < cols) {
        float4 value = sum[r][c];
#if ADD
        value += LOAD4_ALIGNED(M_T, m, row * cols + col);
#endif
        STORE4_ALIGNED(M_T, m, row * cols + col, value);
      }
    }
  }
}

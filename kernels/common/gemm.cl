// gemm.cl - a tile of c[m, n] = sum over k of a(m, k) * b(k, n), staged through local memory
//
// Shapes    a: [rows, depth], or [depth, rows] where A_TRANSPOSED
//           b: [depth, cols], or [cols, depth] where B_TRANSPOSED
// Launch    work-groups of GX * GY items along axis 0 of the local range; item i works at
//           x = i % GX, y = i / GX and keeps rows m0 + y * RM + 0 .. RM - 1 and columns
//           n0 + x * RN + 0 .. RN - 1, so a work-group covers GY * RM rows and GX * RN columns
// Macros    A_T           float|half   element type of a
//           B_T           float|half   element type of b
//           A_TRANSPOSED  0|1          a lies as [depth, rows]
//           B_TRANSPOSED  0|1          b lies as [cols, depth]
//           GX            1..32        work-items along the columns
//           GY            1..32        work-items along the rows
//           RM            4|8          rows kept by a work-item
//           RN            4|8          columns kept by a work-item
//           KT            1..64        depth of a stage
// Numerics  one float accumulator per element, summed in the order of k
#include "common/types.cl"
#ifndef A_T
#error "A_T is required (float or half)"
#endif
#ifndef B_T
#error "B_T is required (float or half)"
#endif
#ifndef A_TRANSPOSED
#error "A_TRANSPOSED is required (0 or 1)"
#endif
#ifndef B_TRANSPOSED
#error "B_TRANSPOSED is required (0 or 1)"
#endif
#ifndef GX
#error "GX is required (1..32)"
#endif
#ifndef GY
#error "GY is required (1..32)"
#endif
#ifndef RM
#error "RM is required (4 or 8)"
#endif
#ifndef RN
#error "RN is required (4 or 8)"
#endif
#ifndef KT
#error "KT is required (1..64)"
#endif

#define GEMM_ROWS (GY * RM)
#define GEMM_COLS (GX * RN)
// A pad of one vector keeps vectors aligned and spreads the writes of transposed stages over banks.
#define GEMM_A_PITCH (GEMM_ROWS + RM)
#define GEMM_B_PITCH (GEMM_COLS + RN)
#define GEMM_VEC CLGPU_CAT(float, RN)
// Declares the two stages; only allowed in the body of the kernel itself.
#define GEMM_LOCAL(a_stage, b_stage)                                     \
  __local float a_stage[KT * GEMM_A_PITCH] __attribute__((aligned(32))); \
  __local float b_stage[KT * GEMM_B_PITCH] __attribute__((aligned(32)))

// The loops over a tile must be unrolled, else its accumulators lie in memory; not every compiler
// sees that by itself (PoCL: eight times slower).
//
// Adds the products to acc[RM]. Every item of the work-group must call it; elements outside the
// matrices count as zero.
void gemm_tile(__global const A_T *a, __global const B_T *b, __local float *a_stage,
               __local float *b_stage, int rows, int cols, int depth, int m0, int n0,
               GEMM_VEC *acc) {
  const int item = get_local_id(0);
  const int x = item % GX, y = item / GX;
  for (int k0 = 0; k0 < depth; k0 += KT) {
    for (int i = item; i < GEMM_ROWS * KT; i += GX * GY) {
#if A_TRANSPOSED
      const int m = i % GEMM_ROWS, k = i / GEMM_ROWS;
      const int at = (k0 + k) * rows + m0 + m;
#else
      const int k = i % KT, m = i / KT;
      const int at = (m0 + m) * depth + k0 + k;
#endif
      float value = 0.0f;
      if (m0 + m < rows && k0 + k < depth) value = LOAD(A_T, a, at);
      a_stage[k * GEMM_A_PITCH + m] = value;
    }
    for (int i = item; i < GEMM_COLS * KT; i += GX * GY) {
#if B_TRANSPOSED
      const int k = i % KT, n = i / KT;
      const int at = (n0 + n) * depth + k0 + k;
#else
      const int n = i % GEMM_COLS, k = i / GEMM_COLS;
      const int at = (k0 + k) * cols + n0 + n;
#endif
      float value = 0.0f;
      if (n0 + n < cols && k0 + k < depth) value = LOAD(B_T, b, at);
      b_stage[k * GEMM_B_PITCH + n] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < KT; ++k) {
      const GEMM_VEC right = *(__local const GEMM_VEC *)(b_stage + k * GEMM_B_PITCH + x * RN);
      float left[RM];
#pragma unroll
      for (int i = 0; i < RM; ++i) left[i] = a_stage[k * GEMM_A_PITCH + y * RM + i];
#pragma unroll
      for (int i = 0; i < RM; ++i) acc[i] += left[i] * right;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

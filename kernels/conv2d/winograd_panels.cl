// winograd_panels.cl - winograd_gemm.cl for CPUs: a work-item keeps PX rows x (OV * VW) columns in
//                      registers and walks one panel of u
//
// Shapes    v: [planes, rows, depth], depth a multiple of 4; u: [planes, panels, u_depth, OV * VW];
//           m: [planes, rows, cols], cols a multiple of VW; u_depth >= u_first + depth
// Launch    axis 0: panels; axis 1: blocks of `tiles` * PX rows; axis 2: planes; local = (1, 1, 1)
// Macros    VW     4|8|16          columns of a vector
//           OV     1|2             vectors of a work-item
//           PX     1..16           rows of a tile
//           ADD    0|1             1: add the products to m, which holds those of other channels
//           V_T, U_T, M_T          float|half  element types
// Numerics  one float sum per element, in the order of c
#define SUM_T float
#include "common/vector.cl"

// sum[r] += v[r, k] * u[k] for all rows r of the tile.
#define ACCUMULATE(k)                                                                              \
  do {                                                                                             \
    VEC w_[OV];                                                                                    \
    _Pragma("unroll") for (int o = 0; o < OV; ++o) {                                               \
      w_[o] = LOAD_VEC(U_T, u, ((k) * OV + o) * VW);                                               \
    }                                                                                              \
    _Pragma("unroll") for (int r = 0; r < PX; ++r) {                                               \
      const float x_ = LOAD(V_T, from[r], k);                                                      \
      _Pragma("unroll") for (int o = 0; o < OV; ++o) sum[r][o] = mad(w_[o], (VEC)(x_), sum[r][o]); \
    }                                                                                              \
  } while (0)

__kernel void conv2d_winograd_panels(__global const V_T *v, __global const U_T *u, __global M_T *m,
                                     int rows, int depth, int u_first, int u_depth, int cols,
                                     int tiles) {
  const int panel = get_global_id(0), plane = get_global_id(2);
  v += plane * rows * depth;
  u += ((plane * (int)get_global_size(0) + panel) * u_depth + u_first) * (OV * VW);
  m += plane * rows * cols + panel * OV * VW;

  for (int tile = 0; tile < tiles; ++tile) {
    const int first = ((int)get_global_id(1) * tiles + tile) * PX;
    if (first >= rows) return;
    __global const V_T *from[PX];
    VEC sum[PX][OV];
#pragma unroll
    for (int r = 0; r < PX; ++r) {
      from[r] = v + min(first + r, rows - 1) * depth;
#pragma unroll
      for (int o = 0; o < OV; ++o) sum[r][o] = (VEC)(0.0f);
    }
    for (int k = 0; k < depth; k += 4) {
      ACCUMULATE(k);
      ACCUMULATE(k + 1);
      ACCUMULATE(k + 2);
      ACCUMULATE(k + 3);
    }
#pragma unroll
    for (int r = 0; r < PX; ++r) {
#pragma unroll
      for (int o = 0; o < OV; ++o) {
        if (first + r < rows && panel * OV * VW + o * VW < cols) {
          const int at = (first + r) * cols + o * VW;
          VEC value = sum[r][o];
#if ADD
          value += LOAD_VEC(M_T, m, at);
#endif
          STORE_VEC(M_T, m, at, value);
        }
      }
    }
  }
}

// pack_rows_nvidia.cl - weights in the order in which products by four warps (common/wgmma.cl) read them as
//                       right operands: rows of output channels, swizzled
//
// Shapes    src: [groups, group_out, depth], or [groups, depth, group_out] if TRANSPOSED;
//           dst: [groups, panels, steps, TN, TK], panels = ceil(group_out / TN), steps = ceil(depth / TK), zero
//           past the last channel or depth; the pieces of 16 bytes of a row are permuted as SWIZZLE
//           tells. Row r of a panel is channel r / 32 * 32 + r % 8 / 2 * 8 + r % 32 / 8 * 2 + r % 2, so that a
//           lane has 8 neighbouring channels
// Launch    one work-item per 16 bytes of dst: global = (their number, rounded up), local = (64)
// Macros    TN          multiple of 32  channels of a panel
//           STEP_BYTES  64|128          bytes of a row
//           TRANSPOSED  0|1             1: the depth is the slower axis of src
//           SRC_T       float|half|weight8|char  element type of src
//           DST_T       half|char       element type of dst
// Numerics  float to half rounds to nearest even
#include "common/swizzle.cl"
#include "tensor_gemm/piece.cl"

#define TK (STEP_BYTES / BYTES)

__kernel void tensor_gemm_pack_rows(__global const SRC_T *src, __global DST_T *dst, int elements,
                                    int depth, int group_out, int panels, int steps) {
  const int i = get_global_id(0);
  if (i >= elements / EACH) return;
  const int row = i / (TK / EACH) % TN;
  const int tile = i / (TN * (TK / EACH));
  const int step = tile % steps;
  const int panel = tile / steps % panels;
  const int group = tile / steps / panels;
  const int first = step * TK + (i % (TK / EACH) ^ SWIZZLE(row)) * EACH;
  const int channel = panel * TN + row / 32 * 32 + row % 8 / 2 * 8 + row % 32 / 8 * 2 + row % 2;
  ARITH(SRC_T) x[EACH];
#pragma unroll
  for (int j = 0; j < EACH; ++j) {
    const int k = first + j;
    x[j] = 0;
    if (channel < group_out && k < depth) x[j] = WEIGHT_AT(k);
  }
  STORE_PIECE(i, x);
}

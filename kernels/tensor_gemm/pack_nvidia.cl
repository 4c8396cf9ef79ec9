// pack_nvidia.cl - weights in the order in which the lanes of a warp read them as right operands of
//                  tensor-core products (common/mma.cl)
//
// Shapes    src: [groups, group_out, depth], or [groups, depth, group_out] if TRANSPOSED;
//           dst: [groups, panels, steps, TK / K, TN / 16, 32 lanes, 16 bytes], panels =
//           ceil(group_out / TN), steps = ceil(depth / TK), K = 16 halves, 8 floats or 32 chars, zero past the
//           last channel or depth; the 16 bytes of a lane are its registers of two blocks of 8
//           columns. Column j of block b of a warp is channel j / 2 * (2 * BLOCKS) + b % BLOCKS * 2 +
//           j % 2, so that a lane has 2 * BLOCKS neighbouring channels; the next BLOCKS blocks follow
//           these
// Launch    one work-item per 16 bytes of dst: global = (their number, rounded up), local = (64)
// Macros    TN          16..128        channels of a panel
//           TK          multiple of K  depth of a step
//           BLOCKS      2|4            blocks of 8 columns whose channels interleave
//           NEIGHBOURS  0|1            0: a register's second half of the depth K begins at K / 2; 1: of each
//                                      two parts of K, a lane's registers are neighbours, 16 bytes of the
//                                      depth: what it reads of the left operand at once
//           TRANSPOSED  0|1            1: the depth is the slower axis of src
//           SRC_T       float|half|weight8  element type of src, or char
//           DST_T       float|half     element type of dst, or char if SRC_T is char
// Numerics  float to half rounds to nearest even; floats are rounded to TF32 (10 bits of mantissa), to
//           nearest, ties away from zero
#define PAIRS 0
#include "tensor_gemm/pack_order.cl"

__kernel void tensor_gemm_pack(__global const SRC_T *src, __global DST_T *dst, int elements,
                               int depth, int group_out, int panels, int steps) {
  const int i = get_global_id(0);
  if (i < elements / EACH) pack_one(i, src, dst, depth, group_out, panels, steps);
}

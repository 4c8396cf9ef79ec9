// pack_exact_nvidia.cl - weights as pack_nvidia.cl writes them, for products of pairs of TF32 numbers
//
// Shapes    src, dst: as in pack_nvidia.cl, K = 8
// Launch    one work-item per 16 bytes of dst: global = (their number, rounded up), local = (64)
// Macros    TN          16..128        channels of a panel
//           TK          multiple of K  depth of a step
//           BLOCKS      2|4            blocks of 8 columns whose channels interleave
//           TRANSPOSED  0|1            1: the depth is the slower axis of src
//           SRC_T       as in pack_nvidia.cl  element type of src: float
//           DST_T       as in pack_nvidia.cl  element type of dst: float
// Numerics  floats are written as they are: the products divide them
#define EXACT 1
#define NEIGHBOURS 0
#include "tensor_gemm/pack_order.cl"

__kernel void tensor_gemm_pack_exact(__global const SRC_T *src, __global DST_T *dst, int elements,
                                     int depth, int group_out, int panels, int steps) {
  const int i = get_global_id(0);
  if (i < elements / EACH) pack_one(i, src, dst, depth, group_out, panels, steps);
}

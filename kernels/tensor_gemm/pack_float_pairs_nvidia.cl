// pack_float_pairs_nvidia.cl - weights in the order of pack_nvidia.cl, for products of pairs (common/float_pairs.cl)
//
// Shapes    src, dst: as in pack_nvidia.cl, K = 8. A lane's registers of one block, the floats at q and q + 4, are
//           replaced: the first has both floats as bfloat16, the second what these are less than the floats
// Launch    one work-item per 16 bytes of dst: global = (their number, rounded up), local = (64)
// Macros    TN          16..128        channels of a panel
//           TK          multiple of K  depth of a step
//           BLOCKS      2|4            blocks of 8 columns whose channels interleave
//           TRANSPOSED  0|1            1: the depth is the slower axis of src
//           SRC_T       as in pack_nvidia.cl  element type of src: float, half or weight8
//           DST_T       as in pack_nvidia.cl  element type of dst: float
// Numerics  both numbers are rounded to nearest even; they leave 2^-17 of a float at most
#define PAIRS 1
#define NEIGHBOURS 0
#include "tensor_gemm/pack_order.cl"

__kernel void tensor_gemm_pack_float_pairs(__global const SRC_T *src, __global DST_T *dst,
                                           int elements, int depth, int group_out, int panels,
                                           int steps) {
  const int i = get_global_id(0);
  if (i < elements / EACH) pack_one(i, src, dst, depth, group_out, panels, steps);
}

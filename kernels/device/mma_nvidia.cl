// mma_nvidia.cl - dst = a * b^T by one warp, as kernels on tensor cores compute it: copied asynchronously,
//                 read as matrices, multiplied. A device supports common/mma.cl if this gives the right
//                 numbers
//
// Shapes    a: [16, K]; b: [8, K]; dst: [16, 8] float, or int for int8; K is 16 halves, 8 floats or 32
//           int8; only the first `rows` rows of a are read, the others count as zero
// Launch    one warp: global = local = (32)
// Macros    MMA_TYPE  0..2  elements of a and b: 0 half, 1 float, 2 char
// Numerics  see common/mma.cl
#include "common/mma.cl"

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void device_mma(__global const uint4 *a,
                                                                         __global const uint4 *b,
                                                                         __global MMA_SUM_T *dst,
                                                                         int rows) {
  __local uint4 tile[(16 + 8) * 2];  // rows of 32 bytes
  const int lane = get_local_id(0);
  const uint base = local_address(tile);
  COPY_16(base + lane * 16, a + lane, lane / 2 < rows);
  COPIES_COMMIT();
  if (lane < 16) COPY_16(base + 512 + lane * 16, b + lane, true);
  COPIES_COMMIT();
  COPIES_WAIT(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  uint4 left;
  uint2 right;
  LDMATRIX_X4(left, base + lane % 16 * 32 + lane / 16 * 16);
  LDMATRIX_X2(right, base + 512 + lane % 8 * 32 + lane / 8 % 2 * 16);
#if MMA_TYPE == 1
  left = (uint4)(to_tf32(left.s0), to_tf32(left.s1), to_tf32(left.s2), to_tf32(left.s3));
#endif
  MMA_SUM4_T sum = (MMA_SUM4_T)(0);
  MMA(sum, left, right.s0, right.s1);
  const int at = lane / 4 * 8 + lane % 4 * 2;
  dst[at] = sum.s0;
  dst[at + 1] = sum.s1;
  dst[at + 64] = sum.s2;
  dst[at + 65] = sum.s3;
}

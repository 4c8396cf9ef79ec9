// mma_nvidia.cl - dst = a * b^T by one warp, as kernels on tensor cores compute it: copied asynchronously,
//                 read as matrices, multiplied. A device on which it gives the right numbers has what
//                 common/mma.cl needs
//
// Shapes    a: [16, K]; b: [8, K]; dst: [16, 8] float; K is 16 halves or 8 floats; of a only the first
//           `rows` rows are read, zeros stand for the others
// Launch    one warp: global = local = (32)
// Macros    MMA_TF32  0|1  elements of a and b: 0 half, 1 float
// Numerics  see common/mma.cl
#include "common/mma.cl"

#if MMA_TF32
#define SRC_T float
#else
#define SRC_T half
#endif

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void device_mma(__global const SRC_T *a,
                                                                         __global const SRC_T *b,
                                                                         __global float *dst,
                                                                         int rows) {
  __local uint4 tile[(16 + 8) * 2];  // rows of 32 bytes
  const int lane = get_local_id(0);
  const uint base = local_address(tile);
  COPY_16(base + lane * 16, (__global const uint4 *)a + lane, lane / 2 < rows);
  COPIES_COMMIT();
  if (lane < 16) COPY_16(base + 512 + lane * 16, (__global const uint4 *)b + lane, true);
  COPIES_COMMIT();
  COPIES_WAIT(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  uint4 left;
  uint2 right;
  LDMATRIX_X4(left, base + lane % 16 * 32 + lane / 16 * 16);
  LDMATRIX_X2(right, base + 512 + lane % 8 * 32 + lane / 8 % 2 * 16);
#if MMA_TF32
  left = (uint4)(to_tf32(left.s0), to_tf32(left.s1), to_tf32(left.s2), to_tf32(left.s3));
#endif
  float4 sum = (float4)(0.0f);
  MMA(sum, left, right.s0, right.s1);
  const int at = lane / 4 * 8 + lane % 4 * 2;
  dst[at] = sum.s0;
  dst[at + 1] = sum.s1;
  dst[at + 64] = sum.s2;
  dst[at + 65] = sum.s3;
}

// wgmma_nvidia.cl - dst = a * b^T by four warps together, as kernels with common/wgmma.cl compute it: copied
//                   asynchronously, multiplied from local memory, of which it takes as much as the largest
//                   tile of tensor_gemm. A device supports that file if this gives the right numbers
//
// Shapes    a: [64, 2 * K]; b: [32, 2 * K]; dst: [64, 32] float, or int for int8; K is 16 halves or 32
//           int8; only the first `rows` rows of a are read, the others count as zero
// Launch    four warps: global = local = (128)
// Macros    MMA_TYPE  3|4  elements of a and b: 3 half, 4 char
// Numerics  see common/wgmma.cl
#define STEP_BYTES 64
#define WGMMA_N 32
#define LOCAL_BYTES 196608  // the most that a tile of tensor_gemm takes
#include "common/mma.cl"
#include "common/wgmma.cl"

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void device_wgmma(__global const uint4 *a,
                                                                            __global const uint4 *b,
                                                                            __global MMA_SUM_T *dst,
                                                                            int rows) {
  __local uint4 tile[LOCAL_BYTES / 16] __attribute__((aligned(1024)));
  const int item = get_local_id(0), lane = item % 32;
  const int row = item / 4, to = (item % 4 ^ SWIZZLE(row)) * 16;
  // The operands lie at the end, behind the bytes that the driver reports as the most.
  const uint base = local_address(tile) + LOCAL_BYTES - (64 + WGMMA_N) * STEP_BYTES;
  COPY_16(base + row * STEP_BYTES + to, a + item, row < rows);
  COPY_16(base + (row + 32) * STEP_BYTES + to, a + 128 + item, row + 32 < rows);
  COPY_16(base + (row + 64) * STEP_BYTES + to, b + item, true);
  COPIES_COMMIT();
  COPIES_WAIT(0);
  WGMMA_SHOW();
  barrier(CLK_LOCAL_MEM_FENCE);
  MMA_SUM4_T sum[WGMMA_N / 8];
#pragma unroll
  for (int n = 0; n < WGMMA_N / 8; ++n) sum[n] = (MMA_SUM4_T)(0);
  WGMMA_FENCE();
  WGMMA_ADD(sum, WGMMA_OPERAND(base), WGMMA_OPERAND(base + 64 * STEP_BYTES));
  WGMMA_ADD(sum, WGMMA_OPERAND(base) + 2, WGMMA_OPERAND(base + 64 * STEP_BYTES) + 2);
  WGMMA_COMMIT();
  WGMMA_WAIT(0);
  const int at = (item / 32 * 16 + lane / 4) * WGMMA_N + lane % 4 * 2;
#pragma unroll
  for (int n = 0; n < WGMMA_N / 8; ++n) {
    dst[at + n * 8] = sum[n].s0;
    dst[at + n * 8 + 1] = sum[n].s1;
    dst[at + n * 8 + 8 * WGMMA_N] = sum[n].s2;
    dst[at + n * 8 + 8 * WGMMA_N + 1] = sum[n].s3;
  }
}

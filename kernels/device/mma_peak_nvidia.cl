// mma_peak_nvidia.cl - the peak rate of products on tensor cores
//
// Shapes    dst: [global size] float, or int for int8
// Launch    whole warps; any work-group
// Macros    MMA_TYPE  0..2  operands: 0 half, 1 TF32, 2 int8
// Numerics  see common/mma.cl; every element of both operands has the given bits; the caller chooses
//           values so small that float sums stay finite; 32 products per round and warp
#include "common/mma.cl"

// Independent sums, enough to hide the latency of one.
#define SUMS(F) F(c0) F(c1) F(c2) F(c3) F(c4) F(c5) F(c6) F(c7)
#define ZERO(c) MMA_SUM4_T c = (MMA_SUM4_T)(0);
#define PRODUCT(c) MMA(c, a, bits, bits);

__kernel void device_mma_peak(__global MMA_SUM_T *dst, int rounds, uint bits) {
  const uint4 a = (uint4)(bits);
  SUMS(ZERO)
  for (int i = 0; i < rounds; ++i) {
    SUMS(PRODUCT) SUMS(PRODUCT) SUMS(PRODUCT) SUMS(PRODUCT)
  }
  const MMA_SUM4_T sum = c0 + c1 + c2 + c3 + c4 + c5 + c6 + c7;
  dst[get_global_id(0)] = sum.s0 + sum.s1 + sum.s2 + sum.s3;
}

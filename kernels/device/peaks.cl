// peaks.cl - peak rates of a device: multiply-adds, copies, reads from caches, launches
//
// Shapes    device_fma: dst: [global size * LANES]; device_copy: src, dst: [global size * 4]
//           device_reread: src, dst: [global size * LANES]; device_nothing: dst: [1]
// Launch    one work-item per LANES or 4 elements; any work-group; of device_reread, the global size
//           and `part` are powers of two
// Macros    LANES     1|4|16   floats in a vector of device_fma and device_reread (any for the others)
// Numerics  x = x * a + b in float, 16 * CHAINS * LANES times per round and work-item; the caller
//           passes |a| < 1, so x stays finite
#include "common/types.cl"

#if LANES == 1
#define VECTOR float
#define LOAD_VECTOR LOAD
#define STORE_VECTOR STORE
#elif LANES == 4
#define VECTOR float4
#define LOAD_VECTOR LOAD4
#define STORE_VECTOR STORE4
#else
#define VECTOR float16
#define LOAD_VECTOR LOAD16
#define STORE_VECTOR STORE16
#endif

// Independent sums, enough to hide the latency of one.
#define CHAINS(F) F(x0) F(x1) F(x2) F(x3) F(x4) F(x5) F(x6) F(x7)
#define FMA(x) x = fma(x, factor, term);
#define ROUND CHAINS(FMA) CHAINS(FMA) CHAINS(FMA) CHAINS(FMA)

__kernel void device_fma(__global float *dst, int rounds, float a, float b) {
  const int id = get_global_id(0);
  const VECTOR factor = (VECTOR)(a), term = (VECTOR)(b);
  VECTOR x0 = (VECTOR)(id), x1 = x0 + 1, x2 = x0 + 2, x3 = x0 + 3;
  VECTOR x4 = x0 + 4, x5 = x0 + 5, x6 = x0 + 6, x7 = x0 + 7;
  for (int i = 0; i < rounds; ++i) {
    ROUND ROUND ROUND ROUND
  }
  STORE_VECTOR(float, dst, id *LANES, x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7);
}

__kernel void device_copy(__global const float *src, __global float *dst) {
  const int i = get_global_id(0) * 4;
  STORE4_ALIGNED(float, dst, i, LOAD4_ALIGNED(float, src, i));
}

// Work-items whose results lie in one part of dst, of `part` elements, read whole parts of src again
// and again, `step` elements further each time: a large step misses a processor's own cache, a small
// one suits processors that read ahead. `mask` is the number of elements less 1.
#define REREAD(x)          \
  at = (at + step) & mask; \
  x += LOAD_VECTOR(float, src, at + mine);

__kernel void device_reread(__global const float *src, __global float *dst, int mask, int part,
                            int step, int rounds) {
  const int id = get_global_id(0) * LANES, mine = id & (part - 1);
  int at = id - mine;
  VECTOR x0 = (VECTOR)(0), x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;
  for (int i = 0; i < rounds; ++i) {
    CHAINS(REREAD)
  }
  STORE_VECTOR(float, dst, id, x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7);
}

__kernel void device_nothing(__global float *dst) {
  if (get_global_id(0) < 0) dst[0] = 0.0f;
}

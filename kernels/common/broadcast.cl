// broadcast.cl - the element of a broadcast operand for a flat output index
//
// clgpu::ops::BroadcastWalk merges the axes of an output until 1, 3 or 6 are left and appends the
// kernel arguments: the sizes d0.. of the axes (slowest first), then for each operand its strides in
// elements (0 along an axis that it is broadcast over; 0 or 1 along the last axis).
//
//   __kernel void f(..., BROADCAST_DIMS, BROADCAST_STRIDES(a), BROADCAST_STRIDES(b)) {
//     const int i = get_global_id(0);
//     if (i >= BROADCAST_COUNT) return;
//     BROADCAST_COORDS(i);
//     ... a[BROADCAST_AT(a)] ... BROADCAST_STEP(a)
//
// Macros    RANK  1|3|6  axes walked

#if RANK == 1
#define BROADCAST_DIMS int d0
#define BROADCAST_STRIDES(p) int p##_s0
#define BROADCAST_COUNT d0
#define BROADCAST_COORDS(flat) const int i0 = (flat)
#define BROADCAST_AT(p) (i0 * p##_s0)
#define BROADCAST_STEP(p) p##_s0
#elif RANK == 3
#define BROADCAST_DIMS int d0, int d1, int d2
#define BROADCAST_STRIDES(p) int p##_s0, int p##_s1, int p##_s2
#define BROADCAST_COUNT (d0 * d1 * d2)
#define BROADCAST_COORDS(flat)       \
  const int row_ = (flat) / d2;      \
  const int i2 = (flat) - row_ * d2; \
  const int i0 = row_ / d1;          \
  const int i1 = row_ - i0 * d1
#define BROADCAST_AT(p) (i0 * p##_s0 + i1 * p##_s1 + i2 * p##_s2)
#define BROADCAST_STEP(p) p##_s2
#elif RANK == 6
#include "common/index.cl"
#define BROADCAST_DIMS int d0, int d1, int d2, int d3, int d4, int d5
#define BROADCAST_STRIDES(p) int p##_s0, int p##_s1, int p##_s2, int p##_s3, int p##_s4, int p##_s5
#define BROADCAST_COUNT (d0 * d1 * d2 * d3 * d4 * d5)
#define BROADCAST_COORDS(flat) UNRAVEL6(flat, d1, d2, d3, d4, d5)
#define BROADCAST_AT(p) \
  (i0 * p##_s0 + i1 * p##_s1 + i2 * p##_s2 + i3 * p##_s3 + i4 * p##_s4 + i5 * p##_s5)
#define BROADCAST_STEP(p) p##_s5
#else
#error "RANK is out of range (1, 3 or 6)"
#endif

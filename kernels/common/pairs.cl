// pairs.cl - sums of two products of 16-bit integers in each lane, one instruction on x86: vectors of VW
//            ints, and of 2 * VW shorts and chars, two per lane
//
// PAIRS_T, SHORT_PAIRS_T  2 * VW chars, 2 * VW shorts
// SHORT_PAIRS(c)          chars as shorts
// DOT_PAIRS(x, w, sum)    lane i is sum.i + x.0 * w.(2i) + x.1 * w.(2i + 1): x short2, w SHORT_PAIRS_T, sum
//                         VW ints; wraps around
//
// Macros    VW  4|8|16  lanes
#include "common/types.cl"

#if VW == 16
// Wider than OpenCL's vectors, but clang has them: two halves would not become one instruction.
typedef char pairs_t __attribute__((ext_vector_type(32)));
typedef uchar unsigned_pairs_t __attribute__((ext_vector_type(32)));
typedef short short_pairs_t __attribute__((ext_vector_type(32)));
typedef int int_pairs_t __attribute__((ext_vector_type(32)));
#elif VW == 8
typedef char16 pairs_t;
typedef short16 short_pairs_t;
typedef int16 int_pairs_t;
#else
typedef char8 pairs_t;
typedef short8 short_pairs_t;
typedef int8 int_pairs_t;
#endif
#define SHORT_PAIRS(c) __builtin_convertvector(c, short_pairs_t)
#define INT_VEC CLGPU_CAT(int, VW)

static inline INT_VEC dot_pairs(short2 x, short_pairs_t w, INT_VEC sum) {
  const short_pairs_t both = __builtin_astype((INT_VEC)(as_int(x)), short_pairs_t);
  const int_pairs_t products =
      __builtin_convertvector(both, int_pairs_t) * __builtin_convertvector(w, int_pairs_t);
  return sum + (products.even + products.odd);
}
#define DOT_PAIRS(x, w, sum) dot_pairs(x, w, sum)

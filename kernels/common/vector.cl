// vector.cl - VEC, a vector of VW sums, and access to VW neighbouring elements
//
// LOAD_VEC(T, p, i), STORE_VEC(T, p, i, v)  elements i .. i+VW-1, see types.cl; any alignment
// LOAD_VEC_ALIGNED, STORE_VEC_ALIGNED       the same, if p is the start of a buffer or a multiple of VW
//                                           elements after it, and i a multiple of VW: one access, while
//                                           the others may be VW
// SPILL_VEC(v, p), FILL_VEC(p)              writes v to the private array p; reads a vector from it
// MAD_VEC(a, b, sum)                        sum + a * b
//
// Macros    VW     1|4|8|16   width
//           SUM_T  float|int|half  type of sums, of the elements of VEC, which are float with half; long only
//                  with VW 1
#include "common/types.cl"

#define total_float float
#define total_half float
#define total_int int
#define total_long long
#define TOTAL_T CLGPU_CAT(total_, SUM_T)

#define MAD_VEC(a, b, sum) CLGPU_CAT(mad_vec_, SUM_T)(a, b, sum)
#define mad_vec_float(a, b, sum) mad(a, b, sum)
#define mad_vec_half(a, b, sum) mad(a, b, sum)
#define mad_vec_int(a, b, sum) ((a) * (b) + (sum))
#define mad_vec_long(a, b, sum) ((a) * (b) + (sum))

#if VW == 1
#define VEC TOTAL_T
#define LOAD_VEC(T, p, i) LOAD(T, p, i)
#define STORE_VEC(T, p, i, v) STORE(T, p, i, v)
#define SPILL_VEC(v, p) (*(p) = (v))
#define FILL_VEC(p) (p)[0]
#define LOAD_VEC_ALIGNED(T, p, i) LOAD(T, p, i)
#define STORE_VEC_ALIGNED(T, p, i, v) STORE(T, p, i, v)
#else
#define VEC CLGPU_CAT(TOTAL_T, VW)
#define LOAD_VEC(T, p, i) CLGPU_CAT(LOAD, VW)(T, p, i)
#define STORE_VEC(T, p, i, v) CLGPU_CAT(STORE, VW)(T, p, i, v)
#define SPILL_VEC(v, p) CLGPU_CAT(vstore, VW)(v, 0, p)
#define FILL_VEC(p) CLGPU_CAT(vload, VW)(0, p)
#define LOAD_VEC_ALIGNED(T, p, i) CLGPU_CAT(load_aligned_, T)(p, i)
#define STORE_VEC_ALIGNED(T, p, i, v) CLGPU_CAT(store_aligned_, T)(p, i, v)
#define load_aligned_float(p, i) (*(__global const VEC *)((p) + (i)))
#define load_aligned_half(p, i) CLGPU_CAT(CLGPU_CAT(load, VW), _aligned_half)(p, i)
#define store_aligned_float(p, i, v) (*(__global VEC *)((p) + (i)) = (v))
#define store_aligned_half(p, i, v) CLGPU_CAT(CLGPU_CAT(store, VW), _aligned_half)(p, i, v)
#define INT_VEC CLGPU_CAT(int, VW)
#define CHAR_VEC CLGPU_CAT(char, VW)
#define UCHAR_VEC CLGPU_CAT(uchar, VW)
#define load_aligned_char(p, i) \
  CLGPU_CAT(convert_, INT_VEC)(*(__global const CHAR_VEC *)((p) + (i)))
#define load_aligned_uchar(p, i) \
  CLGPU_CAT(convert_, INT_VEC)(*(__global const UCHAR_VEC *)((p) + (i)))
#define load_aligned_weight8(p, i) CLGPU_CAT(convert_, VEC)(*(__global const CHAR_VEC *)((p) + (i)))
#define store_aligned_char(p, i, v) \
  (*(__global CHAR_VEC *)((p) + (i)) = CLGPU_CAT(convert_, CHAR_VEC)(v))
#define store_aligned_uchar(p, i, v) \
  (*(__global UCHAR_VEC *)((p) + (i)) = CLGPU_CAT(convert_, UCHAR_VEC)(v))
#endif

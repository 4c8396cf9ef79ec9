// vector.cl - VEC, a vector of VW sums, and access to VW elements side by side
//
// LOAD_VEC(T, p, i), STORE_VEC(T, p, i, v)  elements i .. i+VW-1, see types.cl; any alignment
// LOAD_VEC_ALIGNED, STORE_VEC_ALIGNED       the same where p is a whole buffer and i a multiple of VW:
//                                           one access where the others may be VW
// SPILL_VEC(v, p)                           writes v to the private array p
// MAD_VEC(a, b, sum)                        sum + a * b
// CHANNEL_VEC_T, CHANNEL_VEC_AT(o), FINISH_SUM_VEC(sum, c, at)  see epilogue.cl
// Kernels of floats only:
// BIAS_VEC_AT(o), FINISH_VEC(v, at)         see epilogue.cl
//
// Macros    VW     1|4|8|16   width
//           SUM_T  float|int  type of sums, of the elements of VEC; long only with VW 1
#include "common/epilogue.cl"
#include "common/types.cl"

#if QUANTIZED
#define MAD_VEC(a, b, sum) ((a) * (b) + (sum))
#else
#define MAD_VEC(a, b, sum) mad(a, b, sum)
#endif

#if VW == 1
#define VEC SUM_T
#define LOAD_VEC(T, p, i) LOAD(T, p, i)
#define STORE_VEC(T, p, i, v) STORE(T, p, i, v)
#define SPILL_VEC(v, p) (*(p) = (v))
#define BIAS_VEC_AT(o) BIAS_AT(o)
#define FINISH_VEC(v, at) FINISH(v, at)
#define CHANNEL_VEC_T CHANNEL_T
#define CHANNEL_VEC_AT(o) CHANNEL_AT(o)
#define FINISH_SUM_VEC(sum, c, at) FINISH_SUM(sum, c, at)
#define LOAD_VEC_ALIGNED(T, p, i) LOAD(T, p, i)
#define STORE_VEC_ALIGNED(T, p, i, v) STORE(T, p, i, v)
#else
#define VEC CLGPU_CAT(SUM_T, VW)
#define LOAD_VEC(T, p, i) CLGPU_CAT(LOAD, VW)(T, p, i)
#define STORE_VEC(T, p, i, v) CLGPU_CAT(STORE, VW)(T, p, i, v)
#define SPILL_VEC(v, p) CLGPU_CAT(vstore, VW)(v, 0, p)
#define FINISH_VEC(v, at) CLGPU_CAT(FINISH, VW)(v, at)
#define CHANNEL_VEC_T CLGPU_CAT(CLGPU_CAT(CHANNEL, VW), _T)
#define CHANNEL_VEC_AT(o) CLGPU_CAT(CLGPU_CAT(CHANNEL, VW), _AT)(o)
#define FINISH_SUM_VEC(sum, c, at) CLGPU_CAT(FINISH_SUM, VW)(sum, c, at)
#define LOAD_VEC_ALIGNED(T, p, i) CLGPU_CAT(load_aligned_, T)(p, i)
#define STORE_VEC_ALIGNED(T, p, i, v) CLGPU_CAT(store_aligned_, T)(p, i, v)
#define load_aligned_float(p, i) (*(__global const VEC *)((p) + (i)))
#define load_aligned_half(p, i) CLGPU_CAT(vloada_half, VW)(0, (p) + (i))
#define store_aligned_float(p, i, v) (*(__global VEC *)((p) + (i)) = (v))
#define store_aligned_half(p, i, v) CLGPU_CAT(vstorea_half, VW)(v, 0, (p) + (i))
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

// BIAS is a macro: names cannot be put together from it.
#if VW == 4
#define BIAS_VEC_AT(o) BIAS4_AT(o)
#elif VW == 8
#define BIAS_VEC_AT(o) BIAS8_AT(o)
#elif VW == 16
#define BIAS_VEC_AT(o) BIAS16_AT(o)
#endif

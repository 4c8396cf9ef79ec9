// rescale.cl - a quantised tensor with another scale, zero point or type:
//              dst[i] = (src[i] - src_zero) * multiplier * 2^(shift - 31) + dst_zero, clamped
//
// Shapes    src, dst: the same, contiguous
// Launch    one work-item per WIDTH elements: global = ceil(count / WIDTH), local any
// Macros    WIDTH  1|4|16                elements of a work-item; the runs of a slice begin at multiples
//                                        of it
//           SRC_T  char|uchar|short|int  element type of src
//           DST_T  char|uchar|short|int  element type of dst
//           and those of common/result.cl
// Numerics  bit for bit as TFLite's reference kernel: common/multiply.cl; differences wrap around
#include "common/multiply.cl"
#include "common/result.cl"
#include "common/types.cl"

#define PRODUCT(V, x) CLGPU_CAT(requantize_, V)((x) - src_zero, (V)(multiplier), (V)(shift))
#define RESCALED(V, x) clamp(PRODUCT(V, x) + dst_zero, (V)(low), (V)(high))
#if WIDTH > 1
#define VEC CLGPU_CAT(int, WIDTH)
#define READ(p) CLGPU_CAT(convert_int, WIDTH)(*(__global const CLGPU_CAT(SRC_T, WIDTH) *)(p))
#define WRITE(p, v) \
  (*(__global CLGPU_CAT(DST_T, WIDTH) *)(p) = CLGPU_CAT(CLGPU_CAT(convert_, DST_T), WIDTH)(v))
#else
#define VEC int
#endif

// Do not build vectors from vectors: Intel's compiler gathers them from single integers.
__kernel __attribute__((vec_type_hint(VEC))) void quantize_rescale(__global const SRC_T *src,
                                                                   RESULT_PARAM int count,
                                                                   int src_zero, int multiplier,
                                                                   int shift, int dst_zero, int low,
                                                                   int high) {
  const int i = (int)get_global_id(0) * WIDTH;
#if WIDTH > 1
  if (i + WIDTH <= count) {
    const VEC x = READ(src + i);
    WRITE(dst + RESULT_OF(i), RESCALED(VEC, x));
    return;
  }
#endif
  for (int k = i; k < min(i + WIDTH, count); ++k)
    dst[RESULT_OF(k)] = (DST_T)(RESCALED(int, (int)src[k]));
}

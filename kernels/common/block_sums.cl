// block_sums.cl - sums of many products in SUM_T. Where that is half, a sum is added in half for at most
//                 BLOCK products; then its value is added to a float, and the next block begins at 0:
//                 the error of half grows with the number of terms, and here that number is limited
//
//   DECLARE_TOTAL(float4, half4, sum)   a sum of 0 with this name and the type of whole sums (SUM_T half);
//                                       of the first type with other types: TOTAL4_T is the right one
//   COUNT_PRODUCTS                      before the loop over products
//   PARTIAL(sum) = mad(a, b, PARTIAL(sum));   a, b: of the type of SUM_T
//   ADDED(n, FLUSHES)                   after n products of each sum, n constant and at most BLOCK: adds the
//                                       blocks to the sums if they have no room for n more
//   FLUSH_TOTAL(convert_float4, sum)    adds a block to its sum; also at the end. FLUSHES are such statements
//
// TOTAL_T, TOTAL4_T      the type of whole sums: float for half, otherwise SUM_T, SUM4_T
// LOAD_FACTOR, LOAD_FACTOR4, FACTOR_QUAD  LOAD, LOAD4 and QUAD of common/types.cl and common/quads.cl, as
//                        factors: without a conversion where memory has halves
//
// Macros    SUM_T  float|int|long|half  type of sums; half needs cl_khr_fp16
//           BLOCK if SUM_T == half  8..64  most products that are added in half
#include "common/quads.cl"
#include "common/types.cl"

#define is_half_float 0
#define is_half_int 0
#define is_half_long 0
#define is_half_half 1
#define HALF_SUMS CLGPU_CAT(is_half_, SUM_T)

#if HALF_SUMS
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define TOTAL4_T float4
#define DECLARE_TOTAL(TOTAL, PART, sum) \
  TOTAL sum = (TOTAL)(0);               \
  PART part_##sum = (PART)(0);
#define PARTIAL(sum) part_##sum
#define FLUSH_TOTAL(CONVERT, sum) \
  sum += CONVERT(part_##sum);     \
  part_##sum = 0;
#define COUNT_PRODUCTS int products_ = 0;
#define ADDED(n, FLUSHES)        \
  products_ += (n);              \
  if (products_ + (n) > BLOCK) { \
    FLUSHES                      \
    products_ = 0;               \
  }

#define LOAD_FACTOR(T, p, i) CLGPU_CAT(factor_, T)(p, i)
#define LOAD_FACTOR4(T, p, i) CLGPU_CAT(factor4_, T)(p, i)
#define factor_half(p, i) ((p)[i])
#define factor_float(p, i) convert_half((p)[i])
#define factor4_half(p, i) vload4(0, (p) + (i))
#define factor4_float(p, i) convert_half4(vload4(0, (p) + (i)))
#define FACTOR_QUAD(KIND, T, p, q) CLGPU_CAT(CLGPU_CAT(factor_quad_, KIND), CLGPU_CAT(_, T))(p, q)
#define factor_quad_buffer_half(p, q) (*(__global const half4 *)((p) + (q) * 4))
#define factor_quad_image_half(p, q) read_imageh(p, (int)(q))
#define factor_quad_buffer_float(p, q) convert_half4(quad_buffer(float, p, q))
#define factor_quad_image_float(p, q) convert_half4(quad_image(float, p, q))
#else
#define TOTAL4_T CLGPU_CAT(SUM_T, 4)
#define DECLARE_TOTAL(TOTAL, PART, sum) TOTAL sum = (TOTAL)(0);
#define PARTIAL(sum) sum
#define FLUSH_TOTAL(CONVERT, sum)
#define COUNT_PRODUCTS
#define ADDED(n, FLUSHES)

#define LOAD_FACTOR(T, p, i) LOAD(T, p, i)
#define LOAD_FACTOR4(T, p, i) LOAD4(T, p, i)
#define FACTOR_QUAD(KIND, T, p, q) QUAD(KIND, T, p, q)
#endif

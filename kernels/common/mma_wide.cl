// mma_wide.cl - stores all results of a lane of tensor cores (common/mma.cl), 2 * BLOCKS neighbours, and loads as many
//
// A lane holds results of BLOCKS blocks of 8 channels, in BLOCKS / 2 quads; the blocks' channels interleave so
// that a lane's results are neighbours. p is aligned to 2 * BLOCKS elements.
//
// store_wide_float(p, v), store_wide_half  floats, if QUANTIZED is 0
// store_wide_char(p, v)                    integers
// store_wide_rounded_char(p, v, scale, zero), ..._uchar, ..._short  floats as integers, see
//                                          common/stored_types.cl
// store_wide_real_float, store_wide_real_half  integers as floats, likewise
//
// WIDE_T(T)                   what load_wide_float .. half .. char read: as many elements, as they are stored
// load_wide_float(p)          reads them
// wide_quad_float(v, j)       elements 4 * j .. 4 * j + 3 of what was read: floats, of char integers
//
// Macros    BLOCKS     2|4   blocks of a lane
//           QUANTIZED  0..3  see common/epilogue.cl
#include "common/mma.cl"
#include "common/steps.cl"

#define WIDE_T(T) CLGPU_CAT(wide_, CLGPU_CAT(T, _t))
#if BLOCKS == 4
typedef float8 wide_float_t;
typedef uint4 wide_half_t;
typedef uint2 wide_char_t;
#else
typedef float4 wide_float_t;
typedef uint2 wide_half_t;
typedef uint wide_char_t;
#endif
static inline wide_float_t load_wide_float(__global const float *p) {
  return *(__global const wide_float_t *)p;
}
static inline wide_half_t load_wide_half(__global const half *p) {
  return *(__global const wide_half_t *)p;
}
static inline wide_char_t load_wide_char(__global const char *p) {
  return *(__global const wide_char_t *)p;
}
#if BLOCKS == 4
static inline float4 wide_quad_float(wide_float_t v, int j) { return j == 0 ? v.lo : v.hi; }
static inline float4 wide_quad_half(wide_half_t v, int j) {
  const uint2 bits = j == 0 ? v.lo : v.hi;
  return (float4)(from_halves(bits.s0), from_halves(bits.s1));
}
static inline int4 wide_quad_char(wide_char_t v, int j) {
  return convert_int4(as_char4(j == 0 ? v.s0 : v.s1));
}
#else
static inline float4 wide_quad_float(wide_float_t v, int j) { return v; }
static inline float4 wide_quad_half(wide_half_t v, int j) {
  return (float4)(from_halves(v.s0), from_halves(v.s1));
}
static inline int4 wide_quad_char(wide_char_t v, int j) { return convert_int4(as_char4(v)); }
#endif

#if QUANTIZED
void store_wide_char(__global char *p, const int4 *v) {
#if BLOCKS == 4
  *(__global uint2 *)p = (uint2)(as_uint(convert_char4(v[0])), as_uint(convert_char4(v[1])));
#else
  *(__global char4 *)p = convert_char4(v[0]);
#endif
}
void store_wide_real_float(__global float *p, const int4 *v, float scale, int zero) {
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j)
    *(__global float4 *)(p + 4 * j) = scale * convert_float4(v[j] - zero);
}
void store_wide_real_half(__global half *p, const int4 *v, float scale, int zero) {
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j)
    STORE4_ALIGNED(half, p, 4 * j, scale * convert_float4(v[j] - zero));
}
#else
void store_wide_rounded_char(__global char *p, const float4 *v, float scale, int zero) {
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j)
    *(__global char4 *)(p + 4 * j) = convert_char4_sat(steps_of4(v[j], scale, zero));
}
void store_wide_rounded_uchar(__global uchar *p, const float4 *v, float scale, int zero) {
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j)
    *(__global uchar4 *)(p + 4 * j) = convert_uchar4_sat(steps_of4(v[j], scale, zero));
}
void store_wide_rounded_short(__global short *p, const float4 *v, float scale, int zero) {
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j)
    *(__global short4 *)(p + 4 * j) = convert_short4_sat(steps_of4(v[j], scale, zero));
}
void store_wide_float(__global float *p, const float4 *v) {
#pragma unroll
  for (int j = 0; j < BLOCKS / 2; ++j) *(__global float4 *)(p + 4 * j) = v[j];
}
void store_wide_half(__global half *p, const float4 *v) {
#if BLOCKS == 4
  *(__global uint4 *)p = (uint4)(to_halves(v[0].s0, v[0].s1), to_halves(v[0].s2, v[0].s3),
                                 to_halves(v[1].s0, v[1].s1), to_halves(v[1].s2, v[1].s3));
#else
  *(__global uint2 *)p = (uint2)(to_halves(v[0].s0, v[0].s1), to_halves(v[0].s2, v[0].s3));
#endif
}
#endif

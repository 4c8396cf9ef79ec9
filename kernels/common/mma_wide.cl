// mma_wide.cl - stores all results of a lane of tensor cores (common/mma.cl), 2 * BLOCKS neighbours
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
// Macros    BLOCKS     2|4   blocks of a lane
//           QUANTIZED  0..3  see common/epilogue.cl
#include "common/mma.cl"
#include "common/steps.cl"

#if QUANTIZED
void store_wide_char(__global char *p, const int4 *v) {
#if BLOCKS == 4
  *(__global char8 *)p = convert_char8((int8)(v[0], v[1]));
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
    vstore_half4(scale * convert_float4(v[j] - zero), 0, p + 4 * j);
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

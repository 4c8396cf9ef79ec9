// result.cl - where a result lies: in its own tensor, or in a slice of a larger one, the whole
//
//   __kernel void f(__global const SRC_T *src, RESULT_PARAM int count) {
//     ... STORE(DST_T, dst, RESULT_AT(pixel, c, channels), v);
//
// The pixels of a result are the positions along all axes but the last, its channels those along the
// last. Channel c of pixel p of a slice is element dst_first + p * dst_pitch + c of the whole.
//
// RESULT_PARAM                   the parameter dst and the position of the slice
// RESULT_AT(pixel, c, channels)  index in dst of channel c of a pixel; channels: those of the result
// RESULT_OF(i)                   ... of element i of the result
// RESULT_RUNS_OF_4               whether elements i .. i+3 are neighbours in dst, for i a multiple of 4
//
// Macros    SLICED  0|1  1: the result is a slice; pitch, first and dst_channels count units of dst

#if SLICED
#define RESULT_PARAM __global DST_T *dst, int dst_channels, int dst_pitch, int dst_first,
#define RESULT_AT(pixel, c, channels) (dst_first + (pixel) * dst_pitch + (c))
// A slice without gaps counts as one pixel: dst_channels is its number of elements.
#define RESULT_OF(i) (dst_first + (i) / dst_channels * dst_pitch + (i) % dst_channels)
#define RESULT_RUNS_OF_4 (dst_channels % 4 == 0)
#else
#define RESULT_PARAM __global DST_T *dst,
#define RESULT_AT(pixel, c, channels) ((pixel) * (channels) + (c))
#define RESULT_OF(i) (i)
#define RESULT_RUNS_OF_4 1
#endif

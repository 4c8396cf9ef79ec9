// sums.cl - partial[i, k, c] = sum of src[i, p, c] (+ addend[i, p, c]) over the pixels p of chunk k
//
// Shapes    src, addend: [images, pixels, channels]; partial: [images, chunks, channels]
// Launch    a work-group takes a chunk and LANES * VW channels: global = (chunks * LANES * ROWS,
//           ceil(channels / (LANES * VW)), images), local = (LANES * ROWS, 1, 1)
// Macros    VW      1|4|16                 channels of a work-item; channels is a multiple of it
//           LANES   power of two, 1..32    work-items side by side along the channels
//           ROWS    power of two, 1..256   pixels that a work-group reads at once
//           ADDEND  0|1                    1: there is a parameter addend
//           SRC_T   float|half             element type of src
//           ADDEND_T if ADDEND == 1  float|half  element type of addend
//           and those of common/vector.cl (SUM_T float)
// Numerics  ROWS sums in float, added pairwise
#include "common/local.cl"
#include "common/vector.cl"

#if ADDEND
#define ADDEND_PARAM __global const ADDEND_T *addend,
#define VALUES(at) (LOAD_VEC(SRC_T, src, at) + LOAD_VEC(ADDEND_T, addend, at))
#else
#define ADDEND_PARAM
#define VALUES(at) LOAD_VEC(SRC_T, src, at)
#endif

__kernel __attribute__((reqd_work_group_size(LANES * ROWS, 1, 1))) void squeeze_excite_sums(
    __global const SRC_T *src, ADDEND_PARAM __global float *partial, int pixels, int channels,
    int chunk, int chunks) {
  const int item = get_local_id(0);
  const int k = get_group_id(0);
  const int c = (get_group_id(1) * LANES + item % LANES) * VW;
  const int image = get_group_id(2);
  const int end = c < channels ? min((k + 1) * chunk, pixels) : 0;
  VEC sum = (VEC)(0.0f);
#pragma unroll 4
  for (int p = k * chunk + item / LANES; p < end; p += ROWS) {
    sum += VALUES((image * pixels + p) * channels + c);
  }
#if ROWS > 1
  LOCAL_ARRAY(VEC, sums, LANES * ROWS);
  sums[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = ROWS / 2; reach > 0; reach /= 2) {
    if (item < reach * LANES) sums[item] += sums[item + reach * LANES];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sum = sums[item];
  if (item >= LANES) return;
#endif
  if (c < channels) STORE_VEC(float, partial, (image * chunks + k) * channels + c, sum);
}

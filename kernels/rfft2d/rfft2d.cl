// rfft2d.cl - dst[v, u] = sum over y, x of src[y, x] * exp(-2 pi i (v y / height + u x / width)), u up to width / 2
//
// Rows first: `half` complex numbers made of pairs of reals are transformed, and the result taken apart into
// the transforms of even and odd elements. Then the columns, if there are several rows.
//
// Shapes    src: [slices, src_height, src_width], cut or filled with zeros to [slices, height, 2 * half];
//           dst: [slices, height, half + 1] complex numbers, each two floats; lines: the same;
//           turns: [size + 1] complex numbers exp(-pi i k / size) for rows, [size] exp(-2 pi i k / size) for columns;
//           spare: [lines, size] complex numbers
// Launch    one work-group of WG items per row (slices * height) or column (slices * (half + 1)):
//           global = (lines * WG, 1, 1), local = (WG, 1, 1)
// Macros    WG     power of two, 1..256  work-items of a row or column
//           SRC_T  float|half            element type of src
//           LOCAL  0|1                   1: a line fits into local memory, 0: it is in `spare`
// Numerics  float; the turns are rounded from double. The error grows with the logarithm of the size
#include "common/types.cl"

#if LOCAL
#define SPACE __local
#define SPARE_PARAM __local float2 *work
#define SPARE_LINE(size)
#else
#define SPACE __global
#define SPARE_PARAM __global float2 *work
#define SPARE_LINE(size) work += (size_t)get_group_id(0) * (size)
#endif
#define FENCE (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

static inline float2 product(float2 a, float2 b) {
  return (float2)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

static inline int reversed(int index, int bits) {
  int result = 0;
  for (int i = 0; i < bits; ++i) result |= ((index >> i) & 1) << (bits - 1 - i);
  return result;
}

// Transforms a line whose elements are in the order of their reversed bits. turns[k * step] is
// exp(-2 pi i k / (2^bits)).
static inline void transform(SPACE float2 *work, __global const float2 *turns, int bits, int step,
                             int item) {
  const int pairs = (1 << bits) / 2;
  for (int stage = 0; stage < bits; ++stage) {
    barrier(FENCE);
    const int apart = 1 << stage;
    for (int i = item; i < pairs; i += WG) {
      const int within = i & (apart - 1), low = 2 * i - within;
      const float2 turn = turns[(within << (bits - 1 - stage)) * step];
      const float2 even = work[low], odd = product(turn, work[low + apart]);
      work[low] = even + odd;
      work[low + apart] = even - odd;
    }
  }
  barrier(FENCE);
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void rfft2d_rows(
    __global const SRC_T *src, __global const float2 *turns, __global float2 *dst, SPARE_PARAM,
    int height, int bits, int src_height, int src_width) {
  const int item = get_local_id(0), row = get_group_id(0);
  const int size = 1 << bits;
  const int slice = row / height, y = row - slice * height;
  SPARE_LINE(size);
  src += (slice * src_height + y) * src_width;
  for (int i = item; i < size; i += WG) {
    float2 pair = (float2)(0.0f, 0.0f);
    if (y < src_height && 2 * i < src_width) pair.x = LOAD(SRC_T, src, 2 * i);
    if (y < src_height && 2 * i + 1 < src_width) pair.y = LOAD(SRC_T, src, 2 * i + 1);
    work[reversed(i, bits)] = pair;
  }
  transform(work, turns, bits, 2, item);
  dst += row * (size + 1);
  for (int k = item; k <= size; k += WG) {
    const float2 a = work[k & (size - 1)], b = work[(size - k) & (size - 1)];
    const float2 even = (float2)(0.5f * (a.x + b.x), 0.5f * (a.y - b.y));
    const float2 odd = (float2)(0.5f * (a.y + b.y), 0.5f * (b.x - a.x));
    dst[k] = even + product(turns[k], odd);
  }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void rfft2d_columns(
    __global const float2 *lines, __global const float2 *turns, __global float2 *dst, SPARE_PARAM,
    int width, int bits) {
  const int item = get_local_id(0), column = get_group_id(0);
  const int size = 1 << bits;
  const int slice = column / width, first = slice * size * width + (column - slice * width);
  SPARE_LINE(size);
  for (int i = item; i < size; i += WG) work[reversed(i, bits)] = lines[first + i * width];
  transform(work, turns, bits, 1, item);
  for (int i = item; i < size; i += WG) dst[first + i * width] = work[i];
}

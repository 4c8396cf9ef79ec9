// vectors.cl - sums of attention over a chunk of the keys, see composite/attention.cl; each work-item
//              computes ROWS rows of scores with vectors of VEC elements
//
// Shapes    q: [batches, queries, heads, DEPTH]; k: [batches, keys, key_heads, DEPTH]; v: [batches,
//           keys, key_heads, COLS]; mask: strides mb, mn, mt, ms along batches, heads, queries, keys;
//           parts: [batches, queries, heads, chunks, 2 + COLS], which composite/merge.cl reads
// Launch    a work-item takes ROWS of the queries * heads / key_heads rows of scores that share a head
//           of k and v, and `chunk` keys: global = (ceil(rows / ROWS) * chunks, key_heads, batches),
//           local = (1, 1, 1), where chunks = ceil(keys / chunk)
// Macros    ROWS   1..           rows of a work-item
//           VEC    4|8|16        elements of a vector; divides DEPTH and COLS
//           DEPTH  4..           elements of a query and of a key
//           COLS   4..           elements of a value
//           MASK   0|1           1: there is a parameter mask
//           HALF_MASK  0|1       1: -infinity in it may be a large number that was rounded to half
//           Q_T, K_T, V_T        float|half  element types
//           MASK_T               float|half  of the mask (any if there is none)
// Numerics  as composite/attention.cl, with steps of 16 keys
#include "common/types.cl"

#if MASK
#define MASK_PARAM __global const MASK_T *mask,
#else
#define MASK_PARAM
#endif
// A masked key has this score, whatever its product is. A row without any other key is a plain mean if
// the mask had a large number before it was rounded.
#if HALF_MASK
#define LEAST -65504.0f
#else
#define LEAST -INFINITY
#endif
#define MASKED(added) ((added) == -INFINITY)
#define KEYS 16
#define VECTOR CLGPU_CAT(float, VEC)
#define LOAD_VECTOR CLGPU_CAT(LOAD, VEC)

static inline float sum_4(float4 v) { return v.s0 + v.s1 + (v.s2 + v.s3); }
static inline float sum_8(float8 v) { return sum_4(v.lo + v.hi); }
static inline float sum_16(float16 v) { return sum_8(v.lo + v.hi); }
#define SUM_OF CLGPU_CAT(sum_, VEC)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void composite_vectors(
    __global const Q_T *q, __global const K_T *k, __global const V_T *v,
    MASK_PARAM __global float *parts, int queries, int keys, int heads, int key_heads, int mb,
    int mn, int mt, int ms, float scale, int chunk) {
  const int chunks = (keys + chunk - 1) / chunk;
  const int part = get_group_id(0) % chunks;
  const int first = get_group_id(0) / chunks * ROWS;
  const int head = get_group_id(1);
  const int batch = get_group_id(2);
  const int share = heads / key_heads;
  const int rows = queries * share;
  const int end = min(keys, part * chunk + chunk);

  VECTOR query[ROWS][DEPTH / VEC], sums[ROWS][COLS / VEC];
  float largest[ROWS], total[ROWS];
#if MASK
  int of_mask[ROWS];
#endif
  for (int r = 0; r < ROWS; ++r) {
    const int row = min(first + r, rows - 1);  // rows past the end are not stored
    const int at = (batch * queries + row / share) * heads + head * share + row % share;
#if MASK
    of_mask[r] = batch * mb + (head * share + row % share) * mn + row / share * mt;
#endif
    for (int d = 0; d < DEPTH / VEC; ++d)
      query[r][d] = scale * LOAD_VECTOR(Q_T, q, at * DEPTH + d * VEC);
    for (int c = 0; c < COLS / VEC; ++c) sums[r][c] = 0.0f;
    largest[r] = -INFINITY;
    total[r] = 0.0f;
  }
  for (int begin = part * chunk; begin < end; begin += KEYS) {
    float score[ROWS][KEYS];
    bool some = false;
#if MASK && !HALF_MASK
    // Most blocks of a long cache are masked as a whole.
    if (ms == 1 && begin + KEYS <= end) {
      int16 open = 0;
      for (int r = 0; r < ROWS; ++r) open |= LOAD16(MASK_T, mask, of_mask[r] + begin) != -INFINITY;
      if (!any(open)) continue;
    }
#endif
    for (int j = 0; j < KEYS; ++j) {
      const int key = begin + j;
      bool reads = key < end;
#if MASK
      float added[ROWS];
      if (reads) {
        reads = false;
        for (int r = 0; r < ROWS; ++r) {
          added[r] = LOAD(MASK_T, mask, of_mask[r] + key * ms);
          reads = reads || !MASKED(added[r]);
        }
      }
#endif
      if (!reads) {
        for (int r = 0; r < ROWS; ++r) score[r][j] = key < end ? LEAST : -INFINITY;
        some = some || (HALF_MASK && key < end);
        continue;
      }
      some = true;
      VECTOR products[ROWS];
      for (int r = 0; r < ROWS; ++r) products[r] = 0.0f;
      const int at = ((batch * keys + key) * key_heads + head) * DEPTH;
      for (int d = 0; d < DEPTH / VEC; ++d) {
        const VECTOR x = LOAD_VECTOR(K_T, k, at + d * VEC);
        for (int r = 0; r < ROWS; ++r) products[r] += x * query[r][d];
      }
      for (int r = 0; r < ROWS; ++r) {
        score[r][j] = SUM_OF(products[r]);
#if MASK
        score[r][j] = MASKED(added[r]) ? LEAST : score[r][j] + added[r];
#endif
      }
    }
    if (!some) continue;
    for (int r = 0; r < ROWS; ++r) {
      float larger = largest[r];
      // The maximum leaves out NaN, which must not be left out where all others are -infinity.
      for (int j = 0; j < KEYS; ++j)
        larger = fmax(larger, isnan(score[r][j]) ? INFINITY : score[r][j]);
      const float shrink = largest[r] == -INFINITY ? 0.0f : exp(largest[r] - larger);
      const float16 exponents = vload16(0, score[r]) - larger;
      // Of a difference of infinities there is no weight yet.
      vstore16(larger == -INFINITY ? (float16)(0.0f) : exp(exponents), 0, score[r]);
      largest[r] = larger;
      total[r] = total[r] * shrink + sum_16(vload16(0, score[r]));
      for (int c = 0; c < COLS / VEC; ++c) sums[r][c] *= shrink;
    }
    const int count = min(KEYS, end - begin);
    for (int j = 0; j < count; ++j) {
      bool counts = false;
      for (int r = 0; r < ROWS; ++r) counts = counts || score[r][j] != 0.0f;
      if (!counts) continue;
      const int at = ((batch * keys + begin + j) * key_heads + head) * COLS;
      for (int c = 0; c < COLS / VEC; ++c) {
        const VECTOR x = LOAD_VECTOR(V_T, v, at + c * VEC);
        for (int r = 0; r < ROWS; ++r) sums[r][c] += score[r][j] * x;
      }
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    const int row = first + r;
    if (row >= rows) break;
    const int at =
        (((batch * queries + row / share) * heads + head * share + row % share) * chunks + part) *
        (COLS + 2);
    parts[at] = largest[r];
    parts[at + 1] = total[r];
    for (int c = 0; c < COLS / VEC; ++c) {
      CLGPU_CAT(vstore, VEC)(sums[r][c], 0, parts + at + 2 + c * VEC);
    }
  }
}

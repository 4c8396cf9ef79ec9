// lanes.cl - sums of attention over a chunk of the keys, see composite/attention.cl; LANES work-items
//            share a key, so that neighbours read neighbouring elements
//
// Shapes    q: [batches, queries, heads, DEPTH]; k: [batches, keys, key_heads, DEPTH]; v: [batches,
//           keys, key_heads, cols]; mask: strides mb, mn, mt, ms along batches, heads, queries, keys;
//           parts: [batches, queries, heads, chunks, 2 + cols], which composite/merge.cl reads
// Launch    a work-group takes ROWS of the queries * heads / key_heads rows of scores that share a
//           head of k and v, and `chunk` keys: global = (ceil(rows / ROWS) * chunks * WG, key_heads,
//           batches), local = (WG, 1, 1), where chunks = ceil(keys / chunk)
// Macros    ROWS   1..           rows of a work-group
//           WG     power of two  work-items
//           LANES  power of two  work-items of a key; 4 * LANES divides DEPTH
//           DEPTH  4..           elements of a query and of a key
//           PARTS  1..           columns of a work-item: PARTS * WG is at least cols
//           MASK   0|1           1: there is a parameter mask
//           HALF_MASK  0|1       1: -infinity in it may be a large number that was rounded to half
//           Q_T, K_T, V_T        float|half  element types
//           MASK_T               float|half  of the mask (any if there is none)
// Numerics  as composite/attention.cl, with steps of WG / LANES keys
#include "common/local.cl"
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
#define KEYS (WG / LANES)

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void composite_lanes(
    __global const Q_T *q, __global const K_T *k, __global const V_T *v,
    MASK_PARAM __global float *parts, int queries, int keys, int heads, int key_heads, int cols,
    int mb, int mn, int mt, int ms, float scale, int chunk) {
  LOCAL_ARRAY(float, query, ROWS *DEPTH);
  LOCAL_ARRAY(float, partial, ROWS *WG);
  LOCAL_ARRAY(float, score, ROWS *KEYS);
  const int item = get_local_id(0), lane = item % LANES;
  const int chunks = (keys + chunk - 1) / chunk;
  const int part = get_group_id(0) % chunks;
  const int first = get_group_id(0) / chunks * ROWS;
  const int head = get_group_id(1);
  const int batch = get_group_id(2);
  const int share = heads / key_heads;
  const int rows = queries * share;
  const int end = min(keys, part * chunk + chunk);
  for (int i = item; i < ROWS * DEPTH; i += WG) {
    const int row = min(first + i / DEPTH, rows - 1);  // rows past the end are not stored
    const int at = (batch * queries + row / share) * heads + head * share + row % share;
    query[i] = scale * LOAD(Q_T, q, at * DEPTH + i % DEPTH);
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  float largest[ROWS], total[ROWS], sums[ROWS][PARTS];
#if MASK
  int of_mask[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    const int row = min(first + r, rows - 1);
    of_mask[r] = batch * mb + (head * share + row % share) * mn + row / share * mt;
  }
#endif
  for (int r = 0; r < ROWS; ++r) {
    largest[r] = -INFINITY;
    total[r] = 0.0f;
    for (int p = 0; p < PARTS; ++p) sums[r][p] = 0.0f;
  }
  // A chunk has a key. PoCL 3.1 compiles a loop that tests before its first barrier to wrong code.
  int begin = part * chunk;
  do {
    const int key = begin + item / LANES;
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
    float4 products[ROWS];
    for (int r = 0; r < ROWS; ++r) products[r] = 0.0f;
    if (reads) {
      const int at = ((batch * keys + key) * key_heads + head) * DEPTH;
      for (int d = 4 * lane; d < DEPTH; d += 4 * LANES) {
        const float4 x = LOAD4(K_T, k, at + d);
        for (int r = 0; r < ROWS; ++r) products[r] += x * vload4(0, query + r * DEPTH + d);
      }
    }
    for (int r = 0; r < ROWS; ++r) {
      const float4 v4 = products[r];
      partial[r * WG + item] = v4.s0 + v4.s1 + (v4.s2 + v4.s3);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
      for (int r = 0; r < ROWS; ++r) {
        float sum = key < end ? 0.0f : -INFINITY;
        for (int l = 0; l < LANES && key < end; ++l) sum += partial[r * WG + item + l];
#if MASK
        if (key < end) sum = MASKED(added[r]) ? LEAST : sum + added[r];
#endif
        score[r * KEYS + item / LANES] = sum;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float larger[ROWS];
    bool any = false;
    for (int r = 0; r < ROWS; ++r) {
      larger[r] = -INFINITY;
      for (int j = 0; j < KEYS; ++j) {
        const float s = score[r * KEYS + j];
        // The maximum leaves out NaN, which must not be left out where all others are -infinity.
        larger[r] = fmax(larger[r], isnan(s) ? INFINITY : s);
      }
      any = any || larger[r] != -INFINITY;
      larger[r] = fmax(larger[r], largest[r]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < ROWS * KEYS; i += WG) {
      float top = larger[0];
      for (int r = 1; r < ROWS; ++r) top = i / KEYS == r ? larger[r] : top;
      score[i] = score[i] == -INFINITY ? 0.0f : exp(score[i] - top);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < ROWS; ++r) {
      const float shrink = largest[r] == -INFINITY ? 0.0f : exp(largest[r] - larger[r]);
      largest[r] = larger[r];
      total[r] *= shrink;
      for (int j = 0; j < KEYS; ++j) total[r] += score[r * KEYS + j];
      for (int p = 0; p < PARTS; ++p) sums[r][p] *= shrink;
    }
    // Values of keys that are all masked are not read.
    const int count = any ? min(KEYS, end - begin) : 0;
    for (int p = 0; p < PARTS; ++p) {
      const int col = p * WG + item;
      if (col >= cols) break;
      int at = ((batch * keys + begin) * key_heads + head) * cols + col;
      for (int j = 0; j < count; ++j, at += key_heads * cols) {
        const float x = LOAD(V_T, v, at);
        for (int r = 0; r < ROWS; ++r) sums[r][p] += score[r * KEYS + j] * x;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    begin += KEYS;
  } while (begin < end);

  for (int r = 0; r < ROWS; ++r) {
    const int row = first + r;
    if (row >= rows) break;
    const int at =
        (((batch * queries + row / share) * heads + head * share + row % share) * chunks + part) *
        (cols + 2);
    for (int p = 0; p < PARTS; ++p) {
      const int col = p * WG + item;
      if (col < cols) parts[at + 2 + col] = sums[r][p];
    }
    if (item == 0) {
      parts[at] = largest[r];
      parts[at + 1] = total[r];
    }
  }
}

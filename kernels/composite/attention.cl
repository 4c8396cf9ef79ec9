// attention.cl - dst[b, t, n, c] = sum over s of p[s] * v[b, s, m, c], where p = softmax over s of
//                scale * (sum over d of q[b, t, n, d] * k[b, s, m, d]) + mask[b, n, t, s], and
//                m = n / (heads / key_heads)
//
// Shapes    q: [batches, queries, heads, DEPTH]; k: [batches, keys, key_heads, DEPTH]; v: [batches,
//           keys, key_heads, cols]; mask: strides mb, mn, mt, ms along batches, heads, queries, keys;
//           dst: [batches, queries, heads, cols], with SPLIT what composite/merge.cl reads
// Launch    a work-group takes ROWS of the queries * heads / key_heads rows of scores that share a
//           head of k and v, and with SPLIT `chunk` keys: global = (ceil(rows / ROWS) * chunks * WG,
//           key_heads, batches), local = (WG, 1, 1), where chunks = ceil(keys / chunk)
// Macros    ROWS   1..           rows of a work-group
//           WG     power of two  work-items, and keys in each step
//           DEPTH  1..           elements of a query and of a key
//           PARTS  1..           columns of a work-item: PARTS * WG is at least cols
//           SPLIT  0|1           1: work-groups share the keys
//           MASK   0|1           1: there is a parameter mask
//           HALF_MASK  0|1       1: -infinity in it may be a large number that was rounded to half
//           Q_T, K_T, V_T, DST_T  float|half  element types
//           MASK_T                float|half  of the mask (any if there is none)
// Numerics  float. Scores are never stored: with each step the sums so far are multiplied by exp(old
//           maximum - new maximum). As in a softmax, a row whose scores are all -infinity is NaN. Keys
//           whose mask is -infinity for all rows of a work-group are not read
#include "common/local.cl"
#include "common/types.cl"

#if MASK
#define MASK_PARAM __global const MASK_T *mask,
#else
#define MASK_PARAM
#endif
#if SPLIT
#define RESULT_BUFFER __global float *parts
#define CHUNK_PARAM , int chunk
#else
#define RESULT_BUFFER __global DST_T *dst
#define CHUNK_PARAM
#endif
#if DEPTH % 4 == 0
#define STEP 4
#define VALUES float4
#define LOAD_VALUES(T, p, i) LOAD4(T, p, i)
#define SUM_OF(v) ((v).s0 + (v).s1 + ((v).s2 + (v).s3))
#define VALUES_AT(p, i) vload4(0, (p) + (i))
#else
#define STEP 1
#define VALUES float
#define LOAD_VALUES(T, p, i) LOAD(T, p, i)
#define SUM_OF(v) (v)
#define VALUES_AT(p, i) ((p)[i])
#endif

// A masked key has this score, whatever its product is. A row without any other key is a plain mean if
// the mask had a large number before it was rounded.
#if HALF_MASK
#define LEAST -65504.0f
#else
#define LEAST -INFINITY
#endif
#define MASKED(added) ((added) == -INFINITY)

// Exponential of a difference from a maximum that may be -infinity.
static inline float weight_of(float score, float largest) {
  return score == -INFINITY ? 0.0f : exp(score - largest);
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void composite_attention(
    __global const Q_T *q, __global const K_T *k, __global const V_T *v, MASK_PARAM RESULT_BUFFER,
    int queries, int keys, int heads, int key_heads, int cols, int mb, int mn, int mt, int ms,
    float scale CHUNK_PARAM) {
  LOCAL_ARRAY(float, query, ROWS *DEPTH);
  LOCAL_ARRAY(float, shared, ROWS *WG);
  // What the work-group has reduced a row of `shared` to. Intel's compiler for CPUs (2026.2) moves loads
  // of shared[r * WG] of 8 rows before the loop with barriers that writes them.
  LOCAL_ARRAY(float, reduced, ROWS);
  const int item = get_local_id(0);
#if SPLIT
  const int chunks = (keys + chunk - 1) / chunk;
  const int part = get_group_id(0) % chunks;
  const int first = get_group_id(0) / chunks * ROWS;
  const int from = part * chunk, end = min(keys, from + chunk);
#else
  const int first = get_group_id(0) * ROWS;
  const int from = 0, end = keys;
#endif
  const int head = get_group_id(1);
  const int batch = get_group_id(2);
  const int share = heads / key_heads;
  const int rows = queries * share;
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
  for (int begin = from; begin < end; begin += WG) {
    const int key = begin + item;
    float score[ROWS];
    for (int r = 0; r < ROWS; ++r) score[r] = key < end ? LEAST : -INFINITY;
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
    if (reads) {
      VALUES products[ROWS];
      for (int r = 0; r < ROWS; ++r) products[r] = 0.0f;
      const int at = ((batch * keys + key) * key_heads + head) * DEPTH;
      for (int d = 0; d < DEPTH; d += STEP) {
        const VALUES x = LOAD_VALUES(K_T, k, at + d);
        for (int r = 0; r < ROWS; ++r) products[r] += x * VALUES_AT(query, r * DEPTH + d);
      }
      for (int r = 0; r < ROWS; ++r) {
        score[r] = SUM_OF(products[r]);
#if MASK
        score[r] = MASKED(added[r]) ? LEAST : score[r] + added[r];
#endif
      }
    }
    // The maximum leaves out NaN, which must not be left out where all others are -infinity.
    for (int r = 0; r < ROWS; ++r) shared[r * WG + item] = isnan(score[r]) ? INFINITY : score[r];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = WG / 2; step > 0; step /= 2) {
      if (item < step) {
        for (int r = 0; r < ROWS; ++r)
          shared[r * WG + item] = fmax(shared[r * WG + item], shared[r * WG + item + step]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int r = item; r < ROWS; r += WG) reduced[r] = shared[r * WG];
    barrier(CLK_LOCAL_MEM_FENCE);
    float shrink[ROWS];
    bool any = false;
    for (int r = 0; r < ROWS; ++r) any = any || reduced[r] != -INFINITY;
    if (!any) continue;
    for (int r = 0; r < ROWS; ++r) {
      const float larger = fmax(largest[r], reduced[r]);
      shrink[r] = weight_of(largest[r], larger);
      largest[r] = larger;
    }
    for (int r = 0; r < ROWS; ++r) {
      const float weight = weight_of(score[r], largest[r]);
      total[r] = total[r] * shrink[r] + weight;
      shared[r * WG + item] = weight;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int count = min(WG, end - begin);
    for (int p = 0; p < PARTS; ++p) {
      const int col = p * WG + item;
      if (col >= cols) break;
      for (int r = 0; r < ROWS; ++r) sums[r][p] *= shrink[r];
      int at = ((batch * keys + begin) * key_heads + head) * cols + col;
      for (int j = 0; j < count; ++j, at += key_heads * cols) {
        const float x = LOAD(V_T, v, at);
        for (int r = 0; r < ROWS; ++r) sums[r][p] += shared[r * WG + j] * x;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  for (int r = 0; r < ROWS; ++r) shared[r * WG + item] = total[r];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) {
      for (int r = 0; r < ROWS; ++r) shared[r * WG + item] += shared[r * WG + item + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = item; r < ROWS; r += WG) reduced[r] = shared[r * WG];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int r = 0; r < ROWS; ++r) {
    const int row = first + r;
    if (row >= rows) break;
#if SPLIT
    const int at =
        (((batch * queries + row / share) * heads + head * share + row % share) * chunks + part) *
        (cols + 2);
    for (int p = 0; p < PARTS; ++p) {
      const int col = p * WG + item;
      if (col < cols) parts[at + 2 + col] = sums[r][p];
    }
    if (item == 0) {
      parts[at] = largest[r];
      parts[at + 1] = reduced[r];
    }
#else
    const int at = ((batch * queries + row / share) * heads + head * share + row % share) * cols;
    for (int p = 0; p < PARTS; ++p) {
      const int col = p * WG + item;
      if (col < cols) STORE(DST_T, dst, at + col, sums[r][p] / reduced[r]);
    }
#endif
  }
}

// decode_nvidia.cl - attention as attention.cl has it for few rows and many keys, on NVIDIA's GPUs: one launch, the
//                    time of reading keys and values
//
// Shapes    q: [batches, queries, heads, DEPTH]; k, v: [batches, keys, key_heads, DEPTH]; mask: strides mb,
//           mn, mt, ms along batches, heads, queries, keys; dst: as q. With G = batches * key_heads *
//           ceil(rows / ROWS): sums: [G, chunks, ROWS, DEPTH]; stats: [G, chunks, ROWS, 2]; counters:
//           [G], zero before and after
// Launch    a work-group takes ROWS of the queries * heads / key_heads rows of scores that share a head of k
//           and v, and `chunk` keys; the last one of a head merges the sums of chunks with keys that
//           the mask leaves; if there is one such chunk, it stores the result: global = (ceil(rows /
//           ROWS) * chunks * WARPS * 32, key_heads, batches), local = (WARPS * 32, 1, 1), where
//           chunks = ceil(keys / chunk), up to 64, and chunk is a multiple of KEYS
// Macros    ROWS   1..8    rows of a work-group
//           WARPS  4|8     warps of a work-group
//           DEPTH  64|128|256  elements of a query, a key and a value
//           MASK   0|1     1: there is a parameter mask
//           HALF_MASK  0|1  1: -infinity in it may be a large number that was rounded to half
//           TENSOR     0|1  1: the tensor cores multiply; k and v are half
//           SPLIT if TENSOR == 1  0|1  1: q is float, and each element the sum of two halves
//           MMA_TYPE   0    see common/mma.cl
//           Q_T, K_T, V_T, DST_T  float|half  element types
//           MASK_T                float|half  of the mask (any if there is none)
// Numerics  float; exponentials to about 2 units in the last place. With TENSOR weights are rounded to half, and
//           with SPLIT elements of q beyond 65504 count as 65504. As in a softmax, a row whose scores are
//           all -infinity is NaN. Keys whose mask is -infinity for all rows of a work-group are not
//           read, unless a row has no other key
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"

#define ITEMS (WARPS * 32)
#if TENSOR
#define KEYS (WARPS * 16)   // of a step: a warp has 16
#define PIECES (DEPTH / 8)  // of 16 bytes, in a row of halves
#define PITCH (PIECES + 1)  // of them, in local memory: rows begin at different banks
#define PARTS (1 + SPLIT)
#else
#define LANES (DEPTH / 8)            // of a warp that share a key
#define SLOTS (32 / LANES)           // keys that a warp reads at once
#define EACH 4                       // of them, one after the other, without waiting
#define KEYS (WARPS * SLOTS * EACH)  // of a step
#endif
#define MOST_CHUNKS 64
#define EARLY 16  // chunks whose sums are read before the factors are known
// A work-item reads so many elements of the mask, to find chunks with keys. Of more keys, all count.
#define LOOKS 8
#define QUADS (DEPTH / 4)

#if MASK
#define MASK_PARAM __global const MASK_T *mask,
#else
#define MASK_PARAM
#endif
// As in attention.cl: a masked key has this score.
#if HALF_MASK
#define LEAST -65504.0f
#else
#define LEAST -INFINITY
#endif
#define MASKED(added) ((added) == -INFINITY)
// Scores from this one on make the weights of masked keys zero.
#define PLAIN -65000.0f

// Adds 1 to a counter and returns what it was before. Releases what the item has done, and the others of its group
// before a barrier, and acquires what those who counted before have released.
int count_in(volatile __global int *counter) {
  int before;
  __asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(counter)
                 : "memory");
  return before;
}
// -infinity - -infinity is no number.
float weight_of(float score, float largest) {
  return score == -INFINITY ? 0.0f : native_exp2((score - largest) * 1.44269504f);
}
float dot8(float8 x, float8 y) {
  const float8 p = x * y;
  const float4 s = p.lo + p.hi;
  return (s.s0 + s.s1) + (s.s2 + s.s3);
}
// Eight elements as they lie in memory: halves take half as many registers.
#define RAW(T) CLGPU_CAT(raw_, T)
#define FLOATS(T, v) CLGPU_CAT(floats_of_, T)(v)
typedef uint4 raw_half;
typedef float8 raw_float;
#define floats_of_float(v) (v)
float8 floats_of_half(uint4 v) {
  return (float8)(from_halves(v.s0), from_halves(v.s1), from_halves(v.s2), from_halves(v.s3));
}
float from_lane(float v, uint bits) { return as_float(shuffle_xor(as_uint(v), bits)); }
#define OF_MASK(row) (batch * mb + (head * share + (row) % share) * mn + (row) / share * mt)
#define OF_ROW(r) OF_MASK(min(first + (r), rows - 1))  // rows past the end are not stored
#if TENSOR
float of_lane(float v, uint lane) {
  uint other;
  __asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(other)
                 : "r"(as_uint(v)), "r"(lane));
  return as_float(other);
}
// The first halves of two words, or the second ones.
uint low_halves(uint a, uint b) {
  uint v;
  __asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}
uint high_halves(uint a, uint b) {
  uint v;
  __asm("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}
// Reads the mask of a warp's keys from `base` on, to `added` and `open`.
#if MASK
#define SEES(row, key) \
  !MASKED(LOAD(MASK_T, mask, OF_ROW(min(row, ROWS - 1)) + min(key, keys - 1) * ms))
#define IS_OPEN(key) (SEES(q4, key) | (ROWS > 4 && SEES(q4 + 4, key)))
#define ADDED(key) LOAD(MASK_T, mask, of_own + min(key, keys - 1) * ms)
#else
#define IS_OPEN(key) true
#define ADDED(key) 0.0f
#endif
#define READ_MASK(base)                                                    \
  do {                                                                     \
    _Pragma("unroll") for (int j = 0; j < 4; ++j) added[j] =               \
        ADDED((base) + j / 2 * 8 + q4 * 2 + j % 2);                        \
    _Pragma("unroll") for (int t = 0; t < 2; ++t) {                        \
      const int key_of_lane = (base) + t * 8 + g;                          \
      uint lanes = lanes_with((key_of_lane < end) & IS_OPEN(key_of_lane)); \
      lanes |= lanes >> 1;                                                 \
      open[t] = lanes | lanes >> 2;                                        \
    }                                                                      \
  } while (0)
#endif

// Keys that are masked have weights where there is no other one.
#if MASK && HALF_MASK
#define ADD_MASKED(i, all, most, weights)                                                     \
  if ((most) < PLAIN) {                                                                       \
    for (int key = 0; key < keys; ++key) {                                                    \
      bool is_open = false;                                                                   \
      for (int other = 0; other < ROWS; ++other)                                              \
        is_open = is_open || !MASKED(LOAD(MASK_T, mask, of_mask[other] + key * ms));          \
      if (is_open) continue;                                                                  \
      const float factor = weight_of(LEAST, most);                                            \
      const int of_key = ((batch * keys + key) * key_heads + head) * DEPTH + (i) % QUADS * 4; \
      weights += factor;                                                                      \
      all += factor * LOAD4(V_T, v, of_key);                                                  \
    }                                                                                         \
  }
#else
#define ADD_MASKED(i, all, most, weights)
#endif
// Stores four elements of a row, from the sums over all keys.
#define FINISH(i, all, most, weights)                                                    \
  do {                                                                                   \
    const int row = first + (i) / QUADS;                                                 \
    ADD_MASKED(i, all, most, weights)                                                    \
    const int at = (batch * queries + row / share) * heads + head * share + row % share; \
    if (row < rows) STORE4(DST_T, dst, at * DEPTH + (i) % QUADS * 4, (all) / (weights)); \
  } while (0)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void composite_decode(
    __global const Q_T *q, __global const K_T *k, __global const V_T *v,
    MASK_PARAM __global float4 *sums, __global float2 *stats, volatile __global int *counters,
    __global DST_T *dst, int queries, int keys, int heads, int key_heads, int mb, int mn, int mt,
    int ms, float scale, int chunk) {
  LOCAL_ARRAY(float4, of_warps, WARPS * ROWS * QUADS);
  LOCAL_ARRAY(float2, stats_of_warps, WARPS * ROWS);
  LOCAL_ARRAY(float, factors, ROWS *MOST_CHUNKS);
  LOCAL_ARRAY(float2, whole, ROWS);  // the largest score of a row, and the sum of its weights
  LOCAL_ARRAY(int, done, 1);         // groups that were done before; -1: it does not count
  LOCAL_ARRAY(ulong, chunks_of_warps, WARPS);  // bits: a warp has seen a key of the chunk
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int chunks = (keys + chunk - 1) / chunk;
  const int part = get_group_id(0) % chunks;
  const int tile = get_group_id(0) / chunks, first = tile * ROWS;
  const int head = get_group_id(1);
  const int batch = get_group_id(2);
  const int share = heads / key_heads;
  const int rows = queries * share;
  const int group = (batch * key_heads + head) * ((rows + ROWS - 1) / ROWS) + tile;
  const int end = min(keys, part * chunk + chunk);
  int of_mask[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) of_mask[r] = OF_ROW(r);
#if MASK
  const bool looks = keys <= LOOKS * ITEMS;
  uint2 seen = looks ? 0U : ~0U;  // a bit for each chunk
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (looks && (r == 0 || of_mask[r] != of_mask[0])) {
      float added_to[LOOKS];  // read without waiting for each other
#pragma unroll
      for (int j = 0; j < LOOKS; ++j)
        added_to[j] = LOAD(MASK_T, mask, of_mask[r] + min(j * ITEMS + item, keys - 1) * ms);
#pragma unroll
      for (int j = 0; j < LOOKS; ++j) {
        const ulong bit = 1UL << (min(j * ITEMS + item, keys - 1) / chunk);
        seen |= MASKED(added_to[j]) ? (uint2)(0U) : as_uint2(bit);
      }
    }
  }
#pragma unroll
  for (uint bits = 1; bits < 32; bits *= 2)
    seen |= (uint2)(shuffle_xor(seen.s0, bits), shuffle_xor(seen.s1, bits));
  if (lane == 0) chunks_of_warps[warp] = as_ulong(seen);
#endif

#if TENSOR
  // Rows of A: g has the upper halves of row g of the scores, g + 8 the lower ones.
  LOCAL_LINES(uint4, halves, PARTS * ROWS * PITCH);
  const int g = lane / 4, q4 = lane % 4;
  const int of_own = OF_ROW(min(g, ROWS - 1));  // rows past the end are not stored
  float added[4];  // to the scores of keys 2q, 2q + 1, 2q + 8 and 2q + 9
  uint open[2];    // one bit of four for each of keys 0 to 7, and 8 to 15
  READ_MASK(part * chunk + warp * 16);
  OPERANDS_READY();
  for (int i = item; i < ROWS * PIECES; i += ITEMS) {
    const int row = min(first + i / PIECES, rows - 1);
    const int at = (batch * queries + row / share) * heads + head * share + row % share;
    const int to = i / PIECES * PITCH + i % PIECES;
#if SPLIT
    const float8 x = LOAD8_ALIGNED(Q_T, q, at * DEPTH + i % PIECES * 8);
    const float8 clamped =
        select(select(x, (float8)(65504.0f), x > 65504.0f), (float8)(-65504.0f), x < -65504.0f);
    const uint4 high = as_halves8(clamped);
    halves[to] = high;
    halves[to + ROWS * PITCH] = as_halves8(clamped - from_halves8(high));
#else
    halves[to] = ((__global const uint4 *)q)[at * PIECES + i % PIECES];
#endif
  }
  float largest = -INFINITY, total = 0.0f;  // of row g
  // Of rows 2q and 2q + 1: of each, elements 64h + 8g + 2w and the next one.
  float4 sum[DEPTH / 16];
#pragma unroll
  for (int i = 0; i < DEPTH / 16; ++i) sum[i] = 0.0f;
  bool has_queries = false;
  for (int begin = part * chunk; begin < end; begin += KEYS) {
    const int base = begin + warp * 16;
    uint4 x[2][DEPTH / 32], y[4][DEPTH / 64];
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const int key = base + t * 8 + g;
      const int at = ((batch * keys + key) * key_heads + head) * PIECES + q4;
#pragma unroll
      for (int i = 0; i < DEPTH / 32; ++i) {
        x[t][i] = 0;
        if (open[t] >> (g * 4) & 1) x[t][i] = ((__global const uint4 *)k)[at + i * 4];
      }
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int in_tile = q4 * 2 + t % 2;
      const int key = base + t / 2 * 8 + in_tile;
      const int at = ((batch * keys + key) * key_heads + head) * PIECES + g;
#pragma unroll
      for (int h = 0; h < DEPTH / 64; ++h) {
        y[t][h] = 0;
        if (open[t / 2] >> (in_tile * 4) & 1) y[t][h] = ((__global const uint4 *)v)[at + h * 8];
      }
    }
    const bool any = (open[0] | open[1]) != 0;
    const uint4 of_keys = (uint4)(open[0] >> (q4 * 8) & 1, open[0] >> (q4 * 8 + 4) & 1,
                                  open[1] >> (q4 * 8) & 1, open[1] >> (q4 * 8 + 4) & 1);
    const float4 more = (float4)(added[0], added[1], added[2], added[3]);
    if (!has_queries) barrier(CLK_LOCAL_MEM_FENCE);
    has_queries = true;
    if (begin + KEYS < end) READ_MASK(base + KEYS);
    if (!any) continue;  // of all lanes
    float4 products[2];
#pragma unroll
    for (int t = 0; t < 2; ++t) products[t] = 0.0f;
#pragma unroll
    for (int i = 0; i < DEPTH / 32; ++i) {
      uint4 high = 0, low = 0;
      if (g < ROWS) {
        high = halves[g * PITCH + i * 4 + q4];
        if (SPLIT) low = halves[(g + ROWS * SPLIT) * PITCH + i * 4 + q4];
      }
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const uint4 left = (uint4)(high.s0, low.s0, high.s1, low.s1);
        MMA(products[t], left, x[t][i].s0, x[t][i].s1);
        const uint4 next = (uint4)(high.s2, low.s2, high.s3, low.s3);
        MMA(products[t], next, x[t][i].s2, x[t][i].s3);
      }
    }
    float score[4];
    float larger = largest;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float4 both = products[j / 2];
      score[j] = scale * (j % 2 ? both.s1 + both.s3 : both.s0 + both.s2);
#if MASK
      score[j] = MASKED(more[j]) ? LEAST : score[j] + more[j];
#endif
      if (!of_keys[j]) score[j] = -INFINITY;
      // The maximum leaves out NaN, which must not be left out where all others are -infinity.
      larger = fmax(larger, isnan(score[j]) ? INFINITY : score[j]);
    }
    larger = fmax(larger, from_lane(larger, 1));
    larger = fmax(larger, from_lane(larger, 2));
    const float shrink = weight_of(largest, larger);
    largest = larger;
    float weight[4];
    total *= shrink;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      weight[j] = weight_of(score[j], larger);
      total += weight[j];
    }
    const uint right0 = to_halves(weight[0], weight[1]), right1 = to_halves(weight[2], weight[3]);
    const float2 shrinks = (float2)(of_lane(shrink, q4 * 8), of_lane(shrink, q4 * 8 + 4));
#pragma unroll
    for (int h = 0; h < DEPTH / 64; ++h) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const uint a = y[0][h][w], b = y[1][h][w], c = y[2][h][w], d = y[3][h][w];
        const uint4 left =
            (uint4)(low_halves(a, b), high_halves(a, b), low_halves(c, d), high_halves(c, d));
        sum[h * 4 + w] *= (float4)(shrinks, shrinks);
        MMA(sum[h * 4 + w], left, right0, right1);
      }
    }
  }
  total += from_lane(total, 1);
  total += from_lane(total, 2);
#pragma unroll
  for (int h = 0; h < DEPTH / 64; ++h) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = q4 * 2 + r;
      if (row >= ROWS) continue;
      __local float4 *const to = &of_warps[(warp * ROWS + row) * QUADS + h * 16 + g * 2];
#pragma unroll
      for (int w = 0; w < 2; ++w) {
        const float4 even = sum[h * 4 + w * 2], odd = sum[h * 4 + w * 2 + 1];
        to[w] = r == 0 ? (float4)(even.s0, even.s2, odd.s0, odd.s2)
                       : (float4)(even.s1, even.s3, odd.s1, odd.s3);
      }
    }
  }
  if (q4 == 0 && g < ROWS) stats_of_warps[warp * ROWS + g] = (float2)(largest, total);
#else
  OPERANDS_READY();
  const int piece = lane % LANES * 8, slot = lane / LANES;
  float8 query[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int row = min(first + r, rows - 1);  // rows past the end are not stored
    const int at = (batch * queries + row / share) * heads + head * share + row % share;
    query[r] = scale * LOAD8_ALIGNED(Q_T, q, at * DEPTH + piece);
  }
  float largest[ROWS], total[ROWS];
  float8 sum[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    largest[r] = -INFINITY;
    total[r] = 0.0f;
    sum[r] = 0.0f;
  }
  for (int begin = part * chunk; begin < end; begin += KEYS) {
    bool reads[EACH];
    float added[EACH][ROWS];
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
      const int key = begin + (j * WARPS + warp) * SLOTS + slot;
      reads[j] = key < end;
#if MASK
#pragma unroll
      for (int r = 0; r < ROWS; ++r)
        added[j][r] = LOAD(MASK_T, mask, of_mask[r] + min(key, keys - 1) * ms);
      bool open = false;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) open = open || !MASKED(added[j][r]);
      reads[j] = reads[j] && open;
#endif
    }
    bool idle = true;
    RAW(K_T) x[EACH];
    RAW(V_T) y[EACH];
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
      const int key = begin + (j * WARPS + warp) * SLOTS + slot;
      const int at = ((batch * keys + key) * key_heads + head) * DEPTH + piece;
      x[j] = 0;
      y[j] = 0;
      if (reads[j]) {
        x[j] = *(__global const RAW(K_T) *)(k + at);
        y[j] = *(__global const RAW(V_T) *)(v + at);
      }
      idle = idle && !reads[j];
    }
    if (warp_all(idle)) continue;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      float score[EACH];
      float larger = largest[r];
#pragma unroll
      for (int j = 0; j < EACH; ++j) {
        score[j] = dot8(FLOATS(K_T, x[j]), query[r]);
#pragma unroll
        for (int bits = 1; bits < LANES; bits *= 2) score[j] += from_lane(score[j], bits);
#if MASK
        score[j] = MASKED(added[j][r]) ? LEAST : score[j] + added[j][r];
#endif
        if (!reads[j]) score[j] = -INFINITY;
        // The maximum leaves out NaN, which must not be left out where all others are -infinity.
        larger = fmax(larger, isnan(score[j]) ? INFINITY : score[j]);
      }
#pragma unroll
      for (int bits = LANES; bits < 32; bits *= 2) larger = fmax(larger, from_lane(larger, bits));
      const float shrink = weight_of(largest[r], larger);
      largest[r] = larger;
      total[r] *= shrink;
      sum[r] *= shrink;
#pragma unroll
      for (int j = 0; j < EACH; ++j) {
        const float weight = weight_of(score[j], larger);
        total[r] += weight;
        sum[r] += weight * FLOATS(V_T, y[j]);
      }
    }
  }

  // Slots, then warps.
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int bits = LANES; bits < 32; bits *= 2) {
      total[r] += from_lane(total[r], bits);
      sum[r] += (float8)(from_lane(sum[r].s0, bits), from_lane(sum[r].s1, bits),
                         from_lane(sum[r].s2, bits), from_lane(sum[r].s3, bits),
                         from_lane(sum[r].s4, bits), from_lane(sum[r].s5, bits),
                         from_lane(sum[r].s6, bits), from_lane(sum[r].s7, bits));
    }
    if (slot == 0) {
      of_warps[(warp * ROWS + r) * QUADS + piece / 4] = sum[r].lo;
      of_warps[(warp * ROWS + r) * QUADS + piece / 4 + 1] = sum[r].hi;
    }
    if (lane == 0) stats_of_warps[warp * ROWS + r] = (float2)(largest[r], total[r]);
  }
#endif
  barrier(CLK_LOCAL_MEM_FENCE);
  const ulong every = ~0UL >> (MOST_CHUNKS - chunks);
#if MASK
  ulong live = 0UL;
#pragma unroll
  for (int w = 0; w < WARPS; ++w) live |= chunks_of_warps[w];
  live &= every;
  if (live == 0UL) live = every;
#else
  const ulong live = every;
#endif
  const bool is_live = live >> part & 1UL;
  const int others = (int)popcount(live) - 1;
  const int mine = (group * chunks + part) * ROWS;
  for (int i = item; i < ROWS * QUADS; i += ITEMS) {
    const int r = i / QUADS;
    float most = others == 0 ? LEAST : -INFINITY, weights = 0.0f;
    float4 all = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) most = fmax(most, stats_of_warps[w * ROWS + r].s0);
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      const float2 stat = stats_of_warps[w * ROWS + r];
      const float factor = weight_of(stat.s0, most);
      weights += factor * stat.s1;
      all += factor * of_warps[(w * ROWS + r) * QUADS + i % QUADS];
    }
    if (is_live && others == 0) FINISH(i, all, most, weights);
    // Nobody reads the sums of a chunk without keys.
    if (others > 0 && most != -INFINITY) sums[mine * QUADS + i] = all;
    if (others > 0 && i % QUADS == 0) stats[mine + r] = (float2)(most, weights);
  }
  // The last group to arrive sees what all others have written.
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    int before = -1;
    if (is_live && others > 0) before = count_in(&counters[group]);
    if (before == others) counters[group] = 0;
    done[0] = before;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (done[0] == others) {
    const int base = group * chunks * ROWS;
    float4 early[EARLY];  // on its way while the factors are computed
#pragma unroll
    for (int c = 0; c < EARLY; ++c) {
      if (live >> c & 1UL && item < ROWS * QUADS) early[c] = sums[(base + c * ROWS) * QUADS + item];
    }
    for (int r = warp; r < ROWS; r += WARPS) {
      float2 stat[MOST_CHUNKS / 32];
      float most = LEAST;
#pragma unroll
      for (int i = 0; i < MOST_CHUNKS / 32; ++i) {
        const int c = i * 32 + lane;
        stat[i] = (float2)(-INFINITY, 0.0f);
        if (c < chunks && live >> c & 1UL) stat[i] = stats[base + c * ROWS + r];
        most = fmax(most, stat[i].s0);
      }
#pragma unroll
      for (int bits = 1; bits < 32; bits *= 2) most = fmax(most, from_lane(most, bits));
      float weights = 0.0f;
#pragma unroll
      for (int i = 0; i < MOST_CHUNKS / 32; ++i) {
        const float factor = weight_of(stat[i].s0, most);
        factors[r * MOST_CHUNKS + i * 32 + lane] = factor;
        weights += factor * stat[i].s1;
      }
#pragma unroll
      for (int bits = 1; bits < 32; bits *= 2) weights += from_lane(weights, bits);
      if (lane == 0) whole[r] = (float2)(most, weights);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < ROWS * QUADS; i += ITEMS) {
      const int r = i / QUADS;
      if (first + r >= rows) break;
      float4 all = 0.0f;
#pragma unroll
      for (int c = 0; c < EARLY; ++c) {
        const float factor = c < chunks ? factors[r * MOST_CHUNKS + c] : 0.0f;
        if (i != item && live >> c & 1UL) early[c] = sums[(base + c * ROWS) * QUADS + i];
        if (factor != 0.0f) all += factor * early[c];
      }
#pragma unroll 8
      for (int c = EARLY; c < chunks; ++c) {
        const float factor = factors[r * MOST_CHUNKS + c];
        if (factor != 0.0f) all += factor * sums[(base + c * ROWS) * QUADS + i];
      }
      float weights = whole[r].s1;
      FINISH(i, all, whole[r].s0, weights);
    }
  }
}

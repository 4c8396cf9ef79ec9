// decode_nvidia.cl - attention as attention.cl has it for few rows and many keys, on NVIDIA's GPUs: one launch, the
//                    time of reading keys and values
//
// Shapes    q: [batches, queries, heads, DEPTH]; k, v: [batches, keys, key_heads, DEPTH]; mask: strides mb,
//           mn, mt, ms along batches, heads, queries, keys; dst: as q. With G = batches * key_heads *
//           ceil(rows / ROWS): sums: [G, chunks, ROWS, DEPTH]; stats: [G, chunks, ROWS, 2]; counters:
//           [G], zero before and after
// Launch    a work-group takes ROWS of the queries * heads / key_heads rows of scores that share a head of k
//           and v, and `chunk` keys; the last one of a head merges their sums: global = (ceil(rows /
//           ROWS) * chunks * WARPS * 32, key_heads, batches), local = (WARPS * 32, 1, 1), where
//           chunks = ceil(keys / chunk), up to 64, and chunk is a multiple of KEYS
// Macros    ROWS   1..8    rows of a work-group
//           WARPS  4|8     warps of a work-group
//           DEPTH  64|128|256  elements of a query, a key and a value
//           MASK   0|1     1: there is a parameter mask
//           HALF_MASK  0|1  1: -infinity in it may be a large number that was rounded to half
//           MMA_TYPE   0    see common/mma.cl
//           Q_T, K_T, V_T, DST_T  float|half  element types
//           MASK_T                float|half  of the mask (any if there is none)
// Numerics  float; exponentials to about 2 units in the last place. As in a softmax, a row whose scores are
//           all -infinity is NaN. Keys whose mask is -infinity for all rows of a work-group are not
//           read, unless a row has no other key
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"

#define ITEMS (WARPS * 32)
#define LANES (DEPTH / 8)            // of a warp that share a key
#define SLOTS (32 / LANES)           // keys that a warp reads at once
#define EACH 4                       // of them, one after the other, without waiting
#define KEYS (WARPS * SLOTS * EACH)  // of a step
#define MOST_CHUNKS 64
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

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void composite_decode(
    __global const Q_T *q, __global const K_T *k, __global const V_T *v,
    MASK_PARAM __global float4 *sums, __global float2 *stats, volatile __global int *counters,
    __global DST_T *dst, int queries, int keys, int heads, int key_heads, int mb, int mn, int mt,
    int ms, float scale, int chunk) {
  LOCAL_ARRAY(float4, of_warps, WARPS * ROWS * QUADS);
  LOCAL_ARRAY(float2, stats_of_warps, WARPS * ROWS);
  LOCAL_ARRAY(float, factors, ROWS *MOST_CHUNKS);
  LOCAL_ARRAY(float2, whole, ROWS);  // the largest score of a row, and the sum of its weights
  LOCAL_ARRAY(int, done, 1);         // groups that were done before
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int piece = lane % LANES * 8, slot = lane / LANES;
  const int chunks = (keys + chunk - 1) / chunk;
  const int part = get_group_id(0) % chunks;
  const int tile = get_group_id(0) / chunks, first = tile * ROWS;
  const int head = get_group_id(1);
  const int batch = get_group_id(2);
  const int share = heads / key_heads;
  const int rows = queries * share;
  const int group = (batch * key_heads + head) * ((rows + ROWS - 1) / ROWS) + tile;
  const int end = min(keys, part * chunk + chunk);

  float8 query[ROWS];
  int of_mask[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int row = min(first + r, rows - 1);  // rows past the end are not stored
    const int at = (batch * queries + row / share) * heads + head * share + row % share;
    query[r] = scale * LOAD8_ALIGNED(Q_T, q, at * DEPTH + piece);
    of_mask[r] = batch * mb + (head * share + row % share) * mn + row / share * mt;
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
  barrier(CLK_LOCAL_MEM_FENCE);
  const int mine = (group * chunks + part) * ROWS;
  for (int i = item; i < ROWS * QUADS; i += ITEMS) {
    const int r = i / QUADS;
    float most = -INFINITY, weights = 0.0f;
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
    // Nobody reads the sums of a chunk without keys.
    if (most != -INFINITY) sums[mine * QUADS + i] = all;
    if (i % QUADS == 0) stats[mine + r] = (float2)(most, weights);
  }
  // The last group to arrive sees what all others have written.
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (item == 0) {
    FENCE_DEVICE();
    const int before = atomic_inc(&counters[group]);
    if (before == chunks - 1) counters[group] = 0;
    done[0] = before;
    FENCE_DEVICE();
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (done[0] == chunks - 1) {
    const int base = group * chunks * ROWS;
    for (int r = warp; r < ROWS; r += WARPS) {
      float2 stat[MOST_CHUNKS / 32];
      float most = LEAST;
#pragma unroll
      for (int i = 0; i < MOST_CHUNKS / 32; ++i) {
        const int c = i * 32 + lane;
        stat[i] = (float2)(-INFINITY, 0.0f);
        if (c < chunks) stat[i] = stats[base + c * ROWS + r];
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
      const int r = i / QUADS, row = first + r;
      if (row >= rows) break;
      float4 all = 0.0f;
#pragma unroll 8
      for (int c = 0; c < chunks; ++c) {
        const float factor = factors[r * MOST_CHUNKS + c];
        if (factor != 0.0f) all += factor * sums[(base + c * ROWS) * QUADS + i];
      }
      float weights = whole[r].s1;
#if MASK && HALF_MASK
      if (whole[r].s0 < PLAIN) {
        for (int key = 0; key < keys; ++key) {
          bool open = false;
          for (int other = 0; other < ROWS; ++other)
            open = open || !MASKED(LOAD(MASK_T, mask, of_mask[other] + key * ms));
          if (open) continue;
          const float factor = weight_of(LEAST, whole[r].s0);
          const int at = ((batch * keys + key) * key_heads + head) * DEPTH + i % QUADS * 4;
          weights += factor;
          all += factor * LOAD4(V_T, v, at);
        }
      }
#endif
      const int at = (batch * queries + row / share) * heads + head * share + row % share;
      STORE4(DST_T, dst, at * DEPTH + i % QUADS * 4, all / weights);
    }
  }
}

// attention_nvidia.cl - dst[b, t, n, c] = sum over s of p[s] * v[b, s, m, c] as attention.cl has it, on NVIDIA's tensor
//                       cores: FlashAttention-2 (Dao 2023), with the heads that share a head of keys as rows
//
// Shapes    q: [batches, queries, heads, DEPTH]; k, v: [batches, keys, key_heads, DEPTH]; mask: strides
//           mb, mn, mt, ms along batches, heads, queries, keys; dst: as q
// Launch    a work-group takes WARPS * 16 of the queries * heads / key_heads rows of scores that share a
//           head of k and v: global = (ceil(rows / (WARPS * 16)) * WARPS * 32, key_heads, batches),
//           local = (WARPS * 32, 1, 1)
// Macros    WARPS  4|8     warps of a work-group
//           DEPTH  64|128  elements of a query, a key and a value
//           MASK   0|1     1: there is a parameter mask
//           HALF_MASK  0|1  1: -infinity in it may be a large number that was rounded to half
//           MMA_TYPE   0    see common/mma.cl
//           Q_T, K_T, V_T, DST_T  float|half  element types
//           MASK_T                float|half  of the mask (any if there is none)
// Numerics  q, k, v and the exponentials are rounded to half, sums are float; exponentials to about 2 units
//           in the last place of float. As in a softmax, a row whose scores are all -infinity is NaN
#include "common/local.cl"
#include "common/mma.cl"
#include "common/types.cl"

#define ITEMS (WARPS * 32)
#define ROWS (WARPS * 16)
#define KEYS 64             // of a step
#define PIECES (DEPTH / 8)  // of 16 bytes, in a row of a tile
#define HALVES (KEYS * PIECES)
#define LOG2_E 1.44269504f
#if ROWS > 2 * KEYS
#error "the queries do not fit into the tiles of keys and values"
#endif

// Position of a piece in a tile: pieces are permuted so that a piece of 8 rows covers all banks.
#define PIECE_AT(row, piece) ((row) * PIECES + ((piece) ^ ((row) & 7)))

#if MASK
#define MASK_PARAM __global const MASK_T *mask,
#else
#define MASK_PARAM
#endif

uint4 halves_of(float8 v) {
  return (uint4)(to_halves(v.s0, v.s1), to_halves(v.s2, v.s3), to_halves(v.s4, v.s5),
                 to_halves(v.s6, v.s7));
}

// Writes eight elements as halves to piece `at`, zeros if they are not valid; those of half arrive
// after COPIES_WAIT.
#define PUT_half(at, from, valid) COPY_16(base + (at) * 16, from, valid)
#define PUT_float(at, from, valid) \
  tile[at] = (valid) ? halves_of(*(__global const float8 *)(from)) : (uint4)(0)

// Begins to copy the keys from `key` on, or their values, to the tile at piece `to`.
#define PUT_KEYS(T, p, to, key)                                                             \
  do {                                                                                      \
    _Pragma("unroll") for (int i = 0; i < HALVES; i += ITEMS) {                             \
      const int row = (i + item) / PIECES, piece = (i + item) % PIECES;                     \
      const int at = (key) + row;                                                           \
      CLGPU_CAT(PUT_, T)                                                                    \
      ((to) + PIECE_AT(row, piece),                                                         \
       (p) + (((batch * keys + min(at, keys - 1)) * key_heads + head) * DEPTH + piece * 8), \
       at < keys);                                                                          \
    }                                                                                       \
    COPIES_COMMIT();                                                                        \
  } while (0)

// -infinity - -infinity is no number.
float weight_of(float score, float largest) {
  return score == -INFINITY ? 0.0f : native_exp2(score - largest);
}

// Of the four lanes that hold a row.
float largest_of_row(float v) {
  v = fmax(v, as_float(shuffle_xor(as_uint(v), 1)));
  return fmax(v, as_float(shuffle_xor(as_uint(v), 2)));
}
float sum_of_row(float v) {
  v += as_float(shuffle_xor(as_uint(v), 1));
  return v + as_float(shuffle_xor(as_uint(v), 2));
}

#define STORE_PAIR_half(p, x, y) *(__global uint *)(p) = to_halves(x, y)
#define STORE_PAIR_float(p, x, y) *(__global float2 *)(p) = (float2)(x, y)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void composite_attention_nvidia(
    __global const Q_T *q, __global const K_T *k, __global const V_T *v,
    MASK_PARAM __global DST_T *dst, int queries, int keys, int heads, int key_heads, int mb, int mn,
    int mt, int ms, float scale) {
  LOCAL_LINES(uint4, tile, 2 * HALVES);  // keys, values; at first the queries
  const uint base = local_address(tile);
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int first = get_group_id(0) * ROWS;
  const int head = get_group_id(1);
  const int batch = get_group_id(2);
  const int share = heads / key_heads;
  const int rows = queries * share;

  for (int i = item; i < ROWS * PIECES; i += ITEMS) {
    const int row = min(first + i / PIECES, rows - 1);  // rows past the end are not stored
    const int at = (batch * queries + row / share) * heads + head * share + row % share;
    CLGPU_CAT(PUT_, Q_T)(PIECE_AT(i / PIECES, i % PIECES), q + (at * DEPTH + i % PIECES * 8), true);
  }
  COPIES_COMMIT();
  COPIES_WAIT(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  // What a lane loads with LDMATRIX_X4: row lane % 8 of matrix lane / 8.
  const int line = lane % 8, low = lane / 8 % 2, high = lane / 16;
  uint4 query[DEPTH / 16];
#pragma unroll
  for (int d = 0; d < DEPTH / 16; ++d)
    LDMATRIX_X4(query[d], base + PIECE_AT(warp * 16 + low * 8 + line, 2 * d + high) * 16);
  barrier(CLK_LOCAL_MEM_FENCE);
  PUT_KEYS(K_T, k, 0, 0);
  PUT_KEYS(V_T, v, HALVES, 0);

  // A lane has two rows of scores and results.
  const int row0 = first + warp * 16 + lane / 4, row1 = row0 + 8;
#if MASK
  const int seen0 = min(row0, rows - 1), seen1 = min(row1, rows - 1);
  const int mask0 = batch * mb + (head * share + seen0 % share) * mn + seen0 / share * mt;
  const int mask1 = batch * mb + (head * share + seen1 % share) * mn + seen1 / share * mt;
  const float unscale = 1.0f / scale;
#endif
  const float scale2 = scale * LOG2_E;
  float largest0 = -INFINITY, largest1 = -INFINITY, total0 = 0.0f, total1 = 0.0f;
  float4 sums[DEPTH / 8];
#pragma unroll
  for (int c = 0; c < DEPTH / 8; ++c) sums[c] = 0.0f;

  for (int begin = 0; begin < keys; begin += KEYS) {
    float4 scores[KEYS / 8];
    uint hidden = 0;
#if MASK
    // The sums of products begin with the mask. Keys that it hides from a row change nothing, unless
    // the row has seen no other key so far.
    float most = -INFINITY;
#pragma unroll
    for (int n = 0; n < KEYS / 8; ++n) {
      const int key = begin + n * 8 + lane % 4 * 2;
      const int at0 = min(key, keys - 1) * ms, at1 = min(key + 1, keys - 1) * ms;
      const float4 given =
          (float4)(LOAD(MASK_T, mask, mask0 + at0), LOAD(MASK_T, mask, mask0 + at1),
                   LOAD(MASK_T, mask, mask1 + at0), LOAD(MASK_T, mask, mask1 + at1));
      scores[n] = unscale * given;
#if !HALF_MASK
      // The lowest number is not -infinity: a row that has nothing else is the mean of the values.
      scores[n] = select(scores[n], clamp(scores[n], -FLT_MAX, FLT_MAX), isfinite(given));
#endif
      most = fmax(most, fmax(fmax(scores[n].s0, scores[n].s1), fmax(scores[n].s2, scores[n].s3)));
    }
    const float seen = HALF_MASK ? -6e4f : -1e20f;
    hidden = warp_all(most * scale < -1e30f && fmin(largest0, largest1) > seen);
#else
#pragma unroll
    for (int n = 0; n < KEYS / 8; ++n) scores[n] = 0.0f;
#endif
    COPIES_WAIT(1);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!hidden) {
#pragma unroll
      for (int d = 0; d < DEPTH / 16; ++d) {
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
          uint4 b;
          LDMATRIX_X4(b, base + PIECE_AT(n * 16 + high * 8 + line, 2 * d + low) * 16);
          MMA(scores[2 * n], query[d], b.s0, b.s1);
          MMA(scores[2 * n + 1], query[d], b.s2, b.s3);
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (begin + KEYS < keys) {
      PUT_KEYS(K_T, k, 0, begin + KEYS);
    } else {
      COPIES_COMMIT();
    }
    uint4 weights[KEYS / 16];
    if (!hidden) {
      float larger0 = largest0, larger1 = largest1;
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n) {
        scores[n] *= scale2;
#if HALF_MASK
        // A row without any other key is then a plain mean, as with the number before rounding.
        scores[n] = select(scores[n], (float4)(-65504.0f * LOG2_E), scores[n] == -INFINITY);
#endif
        const int key = begin + n * 8 + lane % 4 * 2;
        if (key >= keys) scores[n].s02 = -INFINITY;
        if (key + 1 >= keys) scores[n].s13 = -INFINITY;
        larger0 = fmax(larger0, fmax(scores[n].s0, scores[n].s1));
        larger1 = fmax(larger1, fmax(scores[n].s2, scores[n].s3));
      }
      larger0 = largest_of_row(larger0);
      larger1 = largest_of_row(larger1);
      const float shrink0 = weight_of(largest0, larger0), shrink1 = weight_of(largest1, larger1);
      largest0 = larger0;
      largest1 = larger1;
      total0 *= shrink0;
      total1 *= shrink1;
#pragma unroll
      for (int c = 0; c < DEPTH / 8; ++c) sums[c] *= (float4)(shrink0, shrink0, shrink1, shrink1);
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n) {
        const float4 w =
            (float4)(weight_of(scores[n].s0, larger0), weight_of(scores[n].s1, larger0),
                     weight_of(scores[n].s2, larger1), weight_of(scores[n].s3, larger1));
        total0 += w.s0 + w.s1;
        total1 += w.s2 + w.s3;
        const uint2 pair = (uint2)(to_halves(w.s0, w.s1), to_halves(w.s2, w.s3));
        if (n % 2 == 0) {
          weights[n / 2].lo = pair;
        } else {
          weights[n / 2].hi = pair;
        }
      }
    }
    COPIES_WAIT(1);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!hidden) {
#pragma unroll
      for (int n = 0; n < KEYS / 16; ++n) {
#pragma unroll
        for (int c = 0; c < DEPTH / 16; ++c) {
          uint4 b;
          LDMATRIX_X4_TRANSPOSED(
              b, base + (HALVES + PIECE_AT(n * 16 + low * 8 + line, 2 * c + high)) * 16);
          MMA(sums[2 * c], weights[n], b.s0, b.s1);
          MMA(sums[2 * c + 1], weights[n], b.s2, b.s3);
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (begin + KEYS < keys) {
      PUT_KEYS(V_T, v, HALVES, begin + KEYS);
    } else {
      COPIES_COMMIT();
    }
  }

  total0 = 1.0f / sum_of_row(total0);
  total1 = 1.0f / sum_of_row(total1);
  const int to0 = (batch * queries + row0 / share) * heads + head * share + row0 % share;
  const int to1 = (batch * queries + row1 / share) * heads + head * share + row1 % share;
#pragma unroll
  for (int c = 0; c < DEPTH / 8; ++c) {
    const int col = c * 8 + lane % 4 * 2;
    if (row0 < rows)
      CLGPU_CAT(STORE_PAIR_, DST_T)(dst + (to0 * DEPTH + col), sums[c].s0 * total0,
                                    sums[c].s1 * total0);
    if (row1 < rows)
      CLGPU_CAT(STORE_PAIR_, DST_T)(dst + (to1 * DEPTH + col), sums[c].s2 * total1,
                                    sums[c].s3 * total1);
  }
}

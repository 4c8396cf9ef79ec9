// attention_nvidia.cl - dst[b, t, n, c] = sum over s of p[s] * v[b, s, m, c] as attention.cl has it, on NVIDIA's tensor
//                       cores: FlashAttention-2 (Dao 2023), with the heads that share a head of keys as rows
//
// Shapes    q: [batches, queries, heads, DEPTH]; k, v: [batches, keys, key_heads, DEPTH]; mask: strides
//           mb, mn, mt, ms along batches, heads, queries, keys; tiles: as mask_tiles.cl writes it; dst: as q
// Launch    a work-group takes WARPS * 16 of the queries * heads / key_heads rows of scores that share a head
//           of k and v, the last ones first, because a causal mask gives them the most keys:
//           global = (key_heads * WARPS * 32, ceil(rows / (WARPS * 16)), batches), local = (WARPS * 32, 1, 1)
// Macros    WARPS  4       warps of a work-group
//           DEPTH  64|128  elements of a query, a key and a value
//           KEYS   64      keys of a step
//           MASK   0|1     1: there is a parameter mask
//           TILES  0|1     1: there is a parameter tiles, which tells what the mask hides
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
#define PIECES (DEPTH / 8)  // of 16 bytes, in a row of a tile
#define APART (ITEMS / PIECES)
#define K_AT (ROWS * PIECES)  // pieces before the tile of keys, and before that of values
#define V_AT (K_AT + KEYS * PIECES)
#define LOG2_E 1.44269504f
// Finite numbers of a scaled row are at least this, so that differences between them are exact.
#define LOWEST -1e30f

// Position of a piece in a tile: pieces are permuted so that a piece of 8 rows covers all banks.
#define PIECE_AT(row, piece) ((row) * PIECES + ((piece) ^ ((row) & 7)))

#if MASK
#define MASK_PARAM __global const MASK_T *mask,
#else
#define MASK_PARAM
#endif
#if TILES
#define TILES_PARAM __global const uchar *tiles,
#define PASSES 2
#else
#define TILES_PARAM
#define PASSES 1
#endif

uint4 halves_of(float8 v) {
  return (uint4)(to_halves(v.s0, v.s1), to_halves(v.s2, v.s3), to_halves(v.s4, v.s5),
                 to_halves(v.s6, v.s7));
}

// Writes eight elements as halves to piece `at`, zeros if they are not valid; those of half arrive
// after COPIES_WAIT.
#define PUT_half(at, from, valid) COPY_16(base + (at) * 16, from, valid)
#define PUT_float(at, from, valid) \
  lines[at] = (valid) ? halves_of(*(__global const float8 *)(from)) : (uint4)(0)

// Begins to copy the keys from `key` on, or their values, to the tile at piece `to`.
#define PUT_KEYS(T, p, to, key)                                                             \
  do {                                                                                      \
    _Pragma("unroll") for (int i = 0; i < KEYS; i += APART) {                               \
      const int row = i + item / PIECES, piece = item % PIECES, at = (key) + row;           \
      CLGPU_CAT(PUT_, T)                                                                    \
      ((to) + PIECE_AT(row, piece),                                                         \
       (p) + (((batch * keys + min(at, keys - 1)) * key_heads + head) * DEPTH + piece * 8), \
       at < keys);                                                                          \
    }                                                                                       \
    COPIES_COMMIT();                                                                        \
  } while (0)

// The next tile of keys after `t` that this pass takes: the first one those that the mask does not
// hide, the second one the others.
#if TILES
#define NEXT_TILE(t) \
  do {               \
    ++(t);           \
  } while ((t) < key_tiles && (tiles[(t)] == 0) != pass)
#else
#define NEXT_TILE(t) ++(t)
#endif

// Of the four lanes that hold a row.
float largest_of_row(float v) {
  v = fmax(v, as_float(shuffle_xor(as_uint(v), 1)));
  return fmax(v, as_float(shuffle_xor(as_uint(v), 2)));
}
float sum_of_row(float v) {
  v += as_float(shuffle_xor(as_uint(v), 1));
  return v + as_float(shuffle_xor(as_uint(v), 2));
}
// -infinity - -infinity is no number.
float finite_or_0(float largest) { return largest == -INFINITY ? 0.0f : largest; }

#define STORE_PAIR_half(p, x, y) *(__global uint *)(p) = to_halves(x, y)
#define STORE_PAIR_float(p, x, y) *(__global float2 *)(p) = (float2)(x, y)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void composite_attention_nvidia(
    __global const Q_T *q, __global const K_T *k, __global const V_T *v,
    MASK_PARAM TILES_PARAM __global DST_T *dst, int queries, int keys, int heads, int key_heads,
    int mb, int mn, int mt, int ms, float scale, int tiles_batch, int tiles_head) {
  LOCAL_LINES(uint4, lines, V_AT + KEYS * PIECES);  // queries, keys, values
  const uint base = local_address(lines);
  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int head = get_group_id(0);
  const int row_tile = (int)get_num_groups(1) - 1 - (int)get_group_id(1);
  const int first = row_tile * ROWS;
  const int batch = get_group_id(2);
  const int share = heads / key_heads;
  const int rows = queries * share;
  const int key_tiles = (keys + KEYS - 1) / KEYS;
#if TILES
  tiles += batch * tiles_batch + head * tiles_head + row_tile * key_tiles;
#endif

#pragma unroll
  for (int i = 0; i < ROWS; i += APART) {
    const int line = i + item / PIECES, piece = item % PIECES;
    const int row = min(first + line, rows - 1);  // rows past the end are not stored
    const int at = (batch * queries + row / share) * heads + head * share + row % share;
    CLGPU_CAT(PUT_, Q_T)(PIECE_AT(line, piece), q + (at * DEPTH + piece * 8), true);
  }
  COPIES_COMMIT();
  // What a lane loads with LDMATRIX_X4: row lane % 8 of matrix lane / 8.
  const int line = lane % 8, low = lane / 8 % 2, high = lane / 16;

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

#pragma unroll 1
  for (int pass = 0; pass < PASSES; ++pass) {
#if TILES
    if (pass == 1) {
      // What the mask hides changes nothing, unless a row has seen nothing else.
      const float least = fmin(largest0, largest1);
      if (!group_any(!(least > (HALF_MASK ? -6e4f : -1e20f)))) break;
    }
#endif
    int tile = -1;
    NEXT_TILE(tile);
    if (tile < key_tiles) PUT_KEYS(K_T, k, K_AT, tile * KEYS);
#pragma unroll 1
    while (tile < key_tiles) {
      const int begin = tile * KEYS;
      float4 scores[KEYS / 8];
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n) scores[n] = 0.0f;
#if MASK
#if TILES
      const bool masked = tiles[tile] != 1;
#else
      const bool masked = true;
#endif
      if (masked) {
        // The sums of products begin with the mask.
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
        }
      }
#endif
      COPIES_WAIT(0);
      barrier(CLK_LOCAL_MEM_FENCE);  // the keys have arrived, and nobody reads values any more
      PUT_KEYS(V_T, v, V_AT, begin);
#pragma unroll
      for (int d = 0; d < DEPTH / 16; ++d) {
        // In registers, the queries would leave room for two work-groups instead of three.
        uint4 query;
        LDMATRIX_X4(query, base + PIECE_AT(warp * 16 + low * 8 + line, 2 * d + high) * 16);
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
          uint4 b;
          LDMATRIX_X4(b, base + (K_AT + PIECE_AT(n * 16 + high * 8 + line, 2 * d + low)) * 16);
          MMA(scores[2 * n], query, b.s0, b.s1);
          MMA(scores[2 * n + 1], query, b.s2, b.s3);
        }
      }
      float factor = scale2;  // that is still to be applied
#if MASK
      if (masked) {
        factor = 1.0f;
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
          // In a mask of halves, -infinity may be a number of which a row that has no other key
          // gets the mean of the values.
          const float hidden = HALF_MASK ? -65504.0f * LOG2_E : -INFINITY;
          scores[n] =
              select(fmax(scores[n] * scale2, LOWEST), (float4)(hidden), scores[n] == -INFINITY);
        }
      }
#endif
      if (begin + KEYS > keys) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
          const int key = begin + n * 8 + lane % 4 * 2;
          if (key >= keys) scores[n].s02 = -INFINITY;
          if (key + 1 >= keys) scores[n].s13 = -INFINITY;
        }
      }
      float larger0 = -INFINITY, larger1 = -INFINITY;
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n) {
        larger0 = fmax(larger0, fmax(scores[n].s0, scores[n].s1));
        larger1 = fmax(larger1, fmax(scores[n].s2, scores[n].s3));
      }
      larger0 = fmax(largest0, largest_of_row(larger0) * factor);
      larger1 = fmax(largest1, largest_of_row(larger1) * factor);
      const float from0 = finite_or_0(larger0), from1 = finite_or_0(larger1);
      const float shrink0 = native_exp2(largest0 - from0), shrink1 = native_exp2(largest1 - from1);
      largest0 = larger0;
      largest1 = larger1;
      total0 *= shrink0;
      total1 *= shrink1;
#pragma unroll
      for (int c = 0; c < DEPTH / 8; ++c) sums[c] *= (float4)(shrink0, shrink0, shrink1, shrink1);
      uint4 weights[KEYS / 16];
#pragma unroll
      for (int n = 0; n < KEYS / 8; ++n) {
        const float4 w = (float4)(native_exp2(fma(scores[n].s0, factor, -from0)),
                                  native_exp2(fma(scores[n].s1, factor, -from0)),
                                  native_exp2(fma(scores[n].s2, factor, -from1)),
                                  native_exp2(fma(scores[n].s3, factor, -from1)));
        total0 += w.s0 + w.s1;
        total1 += w.s2 + w.s3;
        const uint2 pair = (uint2)(to_halves(w.s0, w.s1), to_halves(w.s2, w.s3));
        if (n % 2 == 0) {
          weights[n / 2].lo = pair;
        } else {
          weights[n / 2].hi = pair;
        }
      }
      COPIES_WAIT(0);
      barrier(CLK_LOCAL_MEM_FENCE);  // the values have arrived, and nobody reads keys any more
      NEXT_TILE(tile);
      if (tile < key_tiles) PUT_KEYS(K_T, k, K_AT, tile * KEYS);
#pragma unroll
      for (int n = 0; n < KEYS / 16; ++n) {
#pragma unroll
        for (int c = 0; c < DEPTH / 16; ++c) {
          uint4 b;
          LDMATRIX_X4_TRANSPOSED(
              b, base + (V_AT + PIECE_AT(n * 16 + low * 8 + line, 2 * c + high)) * 16);
          MMA(sums[2 * c], weights[n], b.s0, b.s1);
          MMA(sums[2 * c + 1], weights[n], b.s2, b.s3);
        }
      }
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

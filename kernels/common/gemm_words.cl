// gemm_words.cl - the loading of common/gemm.cl for matrices of int8: quads of words
//
// Bytes outside of a matrix are 0 (for uint8: after 128 has been subtracted).
#include "common/word.cl"

// Four words along k, if k is the inner axis: lines past the last one repeat it.
#define GEMM_LOAD_K4(T, VEC, v, p, width, first, count, step)                                     \
  _Pragma("unroll") for (int q = 0; q < (TILE_QUADS(width) + TILE_ITEMS - 1) / TILE_ITEMS; ++q) { \
    if (TILE_HAS(q, width)) {                                                                     \
      const int k_ = ((step) + TILE_K4_K(q)) * 4;                                                 \
      const int at_ = min((first) + TILE_K4_ROW(q), (count) - 1) * depth + k_;                    \
      v[q] = (int4)(0);                                                                           \
      if (VEC == 2) {                                                                             \
        if (k_ < depth) v[q] = WORD4_ALIGNED(T, p, at_);                                          \
      } else if (VEC == 1) {                                                                      \
        if (k_ < depth) v[q].s0 = WORD_ALIGNED(T, p, at_);                                        \
        if (k_ + 4 < depth) v[q].s1 = WORD_ALIGNED(T, p, at_ + 4);                                \
        if (k_ + 8 < depth) v[q].s2 = WORD_ALIGNED(T, p, at_ + 8);                                \
        if (k_ + 12 < depth) v[q].s3 = WORD_ALIGNED(T, p, at_ + 12);                              \
      } else {                                                                                    \
        v[q].s0 = WORD(T, p, at_, 1, depth - k_);                                                 \
        v[q].s1 = WORD(T, p, at_ + 4, 1, depth - k_ - 4);                                         \
        v[q].s2 = WORD(T, p, at_ + 8, 1, depth - k_ - 8);                                         \
        v[q].s3 = WORD(T, p, at_ + 12, 1, depth - k_ - 12);                                       \
      }                                                                                           \
    }                                                                                             \
  }
// Words of four neighbouring rows or columns, if those are the inner axis.
#define GEMM_LOAD_N4(T, VEC, v, p, width, first, count, step)                                     \
  _Pragma("unroll") for (int q = 0; q < (TILE_QUADS(width) + TILE_ITEMS - 1) / TILE_ITEMS; ++q) { \
    if (TILE_HAS(q, width)) {                                                                     \
      const int k_ = ((step) + TILE_N4_K(q, width)) * 4, n_ = (first) + TILE_N4_AT(q, width);     \
      const int at_ = k_ * (count) + n_;                                                          \
      v[q] = (int4)(0);                                                                           \
      if (VEC) {                                                                                  \
        if (n_ < (count)) v[q] = WORD4_ACROSS(T, p, at_, count, depth - k_);                      \
      } else {                                                                                    \
        if (n_ < (count)) v[q].s0 = WORD(T, p, at_, count, depth - k_);                           \
        if (n_ + 1 < (count)) v[q].s1 = WORD(T, p, at_ + 1, count, depth - k_);                   \
        if (n_ + 2 < (count)) v[q].s2 = WORD(T, p, at_ + 2, count, depth - k_);                   \
        if (n_ + 3 < (count)) v[q].s3 = WORD(T, p, at_ + 3, count, depth - k_);                   \
      }                                                                                           \
    }                                                                                             \
  }

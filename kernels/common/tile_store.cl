// tile_store.cl - the end of common/tile.cl: adds slices and stores results

// Adds the sums of all slices in slice 0, the only one that stores.
#if SLICES > 1
#define TILE_KEPT(slice, r, c) \
  tile_memory[(((slice) * RM + (r)) * TILE_QN + (c)) * TILE_PLACES + tile_place]
#define TILE_SUM_SLICES                                          \
  if (tile_slice > 0) {                                          \
    _Pragma("unroll") for (int r = 0; r < RM; ++r) {             \
      _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) {      \
        TILE_KEPT(tile_slice - 1, r, c) = tile_sum[r][c];        \
      }                                                          \
    }                                                            \
  }                                                              \
  barrier(CLK_LOCAL_MEM_FENCE);                                  \
  if (tile_slice == 0) {                                         \
    _Pragma("unroll") for (int r = 0; r < RM; ++r) {             \
      _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) {      \
        _Pragma("unroll") for (int s = 0; s < SLICES - 1; ++s) { \
          tile_sum[r][c] += TILE_KEPT(s, r, c);                  \
        }                                                        \
      }                                                          \
    }                                                            \
  }
#else
#define TILE_SUM_SLICES
#endif

// Stores the sums inside of c: row m, column n at m * pitch + first + n, or at that element of a
// slice; the output channel is first + n.
#define TILE_STORE(first_row, rows, first_column, columns, pitch, first)        \
  {                                                                             \
    TILE_SUM_SLICES                                                             \
    _Pragma("unroll") for (int c = 0; c < TILE_QN; ++c) {                       \
      const int n = (first_column) + (c * TILE_GX + tile_column) * 4;           \
      const int left_over = tile_slice == 0 ? (columns) - n : 0;                \
      if (left_over > 0) {                                                      \
        const CHANNEL4_T c4 = CHANNEL4_SOME((first) + n, left_over);            \
        _Pragma("unroll") for (int r = 0; r < RM; ++r) {                        \
          const int m = (first_row) + (r / 4 * TILE_GY + tile_row) * 4 + r % 4; \
          if (m < (rows)) {                                                     \
            const int at = RESULT_AT(m, (first) + n, pitch);                    \
            TILE_STORE4(tile_sum[r][c], c4, at, left_over)                      \
          }                                                                     \
        }                                                                       \
      }                                                                         \
    }                                                                           \
  }
#define TILE_STORE4(sum, c4, at, left_over)                                           \
  if (VEC_N) {                                                                        \
    STORE4_ALIGNED(DST_T, dst, at, FINISH_SUM4_ALIGNED(sum, c4, at));                 \
  } else {                                                                            \
    TILE_FINISH(v, sum, c4, at)                                                       \
    STORE(DST_T, dst, at, TILE_FINISHED(v.s0, c4, 0, at));                            \
    if (left_over > 1) STORE(DST_T, dst, at + 1, TILE_FINISHED(v.s1, c4, 1, at + 1)); \
    if (left_over > 2) STORE(DST_T, dst, at + 2, TILE_FINISHED(v.s2, c4, 2, at + 2)); \
    if (left_over > 3) STORE(DST_T, dst, at + 3, TILE_FINISHED(v.s3, c4, 3, at + 3)); \
  }
// Reads the residual only for existing columns.
#if QUANTIZED == 3
#define TILE_FINISH(v, sum, c4, at) const SUM4_T v = sum;
#define TILE_FINISHED(v, c4, j, at) (v)
#elif QUANTIZED
#define TILE_FINISH(v, sum, c4, at) const int4 v = CHANNEL_RESULT4(sum, c4);
#define TILE_FINISHED(v, c4, j, at) FINISH_LANE(v, at)
#else
#define TILE_FINISH(v, sum, c4, at) const float4 v = SUM_LANE4(sum, c4, at);
#define TILE_FINISHED(v, c4, j, at) FINISH_SUM_LANE(v, c4, j, at)
#endif

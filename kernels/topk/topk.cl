// topk.cl - the k largest of each row with their indices, sorted; of equal elements the lower index comes first
//
// Shapes    src: [rows, cols]; values, indices: [rows, k]
// Launch    topk_rank: one work-item per element of src: global = (rows * cols rounded up, 1, 1)
//           topk_select: one work-group per row: global = (rows * WG, 1, 1), local = (WG, 1, 1)
// Macros    WG     power of two, 1..256  work-items of a row; any for topk_rank
//           SRC_T  float|half|int|long|short|char|uchar  element type of src
//           DST_T  float|half|int|long|short|char|uchar  element type of values
//           INDEX_T  int|short  element type of indices
// Numerics  exact; floats are compared as integers of the same order, so the order is total: NaN is
//           above infinity, and -0 equals 0
#include "common/local.cl"
#include "common/types.cl"

int ordered(float value) {
  const int bits = as_int(value == 0.0f ? 0.0f : value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
#define KEY_float(value) ordered(value)
#define KEY_half(value) ordered(value)
#define KEY_int(value) (value)
#define KEY_long(value) (value)
#define KEY_short(value) (value)
#define KEY_char(value) (value)
#define KEY_uchar(value) (value)
#define KEY_AT(i) CLGPU_CAT(KEY_, SRC_T)(LOAD(SRC_T, src, i))
#define KEY_T_float int
#define KEY_T_half int
#define KEY_T_int int
#define KEY_T_long long
#define KEY_T_short int
#define KEY_T_char int
#define KEY_T_uchar int
#define KEY_T CLGPU_CAT(KEY_T_, SRC_T)

// Whether element (key a, index i) comes before (key b, index j).
#define BEFORE(a, i, b, j) ((a) > (b) || ((a) == (b) && (i) < (j)))

__kernel void topk_rank(__global const SRC_T *src, __global DST_T *values,
                        __global INDEX_T *indices, int rows, int cols, int k) {
  const int at = get_global_id(0);
  if (at >= rows * cols) return;
  const int row = at / cols, mine = at % cols;
  src += row * cols;
  const KEY_T key = KEY_AT(mine);
  int rank = 0;
  for (int i = 0; i < cols; ++i) {
    const KEY_T other = KEY_AT(i);
    rank += BEFORE(other, i, key, mine) ? 1 : 0;
  }
  if (rank < k) {
    STORE(DST_T, values, row * k + rank, LOAD(SRC_T, src, mine));
    indices[row * k + rank] = (INDEX_T)mine;
  }
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void topk_select(__global const SRC_T *src,
                                                                          __global DST_T *values,
                                                                          __global INDEX_T *indices,
                                                                          int rows, int cols,
                                                                          int k) {
  LOCAL_ARRAY(KEY_T, keys, WG);
  LOCAL_ARRAY(int, places, WG);  // -1: no element left
  const int item = get_local_id(0);
  const int row = get_group_id(0);
  src += row * cols;
  KEY_T last_key = 0;
  int last = -1;  // the element found in the previous round
  for (int place = 0; place < k; ++place) {
    // The first of this item's elements, in the order of the result, after the last one found.
    KEY_T best_key = 0;
    int best = -1;
    for (int i = item; i < cols; i += WG) {
      const KEY_T key = KEY_AT(i);
      const bool is_left = last < 0 || BEFORE(last_key, last, key, i);
      if (is_left && (best < 0 || key > best_key)) {
        best_key = key;
        best = i;
      }
    }
    keys[item] = best_key;
    places[item] = best;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = WG / 2; step > 0; step /= 2) {
      if (item < step) {
        const int other = item + step;
        const bool is_better =
            places[item] < 0 || BEFORE(keys[other], places[other], keys[item], places[item]);
        if (places[other] >= 0 && is_better) {
          keys[item] = keys[other];
          places[item] = places[other];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    last_key = keys[0];
    last = places[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
      STORE(DST_T, values, row * k + place, LOAD(SRC_T, src, last));
      indices[row * k + place] = (INDEX_T)last;
    }
  }
}

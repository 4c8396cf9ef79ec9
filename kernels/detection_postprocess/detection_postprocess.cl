// detection_postprocess.cl - boxes from offsets to anchors, and the best of those that do not overlap
//
// y = offset.y / ys * anchor.h + anchor.y, h = exp(offset.h / hs) * anchor.h, likewise x and w;
// corners are y -+ h / 2, x -+ w / 2.
//
// Shapes    offsets: [boxes, codes], of which 4 are read; scores: [boxes, columns];
//           anchors: [boxes, 4]; corners: [boxes, 4]; best: [boxes];
//           keys: [groups, boxes]; chosen: [groups, most]; counts: [groups];
//           heads: [groups]; detected, labels, values: [detections, 4], [detections], [detections]
// Launch    detection_postprocess_decode: one work-item per box;
//           detection_postprocess_choose: one work-group of WG items per class, or one for all:
//           global = (groups * WG, 1, 1), local = (WG, 1, 1);
//           detection_postprocess_fast: one work-item per place of a box, `most` of them;
//           detection_postprocess_merge: one work-group: global = local = (WG, 1, 1)
// Macros    WG       power of two, 1..256  work-items of a work-group
//           BOX_T    float|half|uchar  element type of offsets
//           ANCHOR_T float|half|uchar  element type of anchors
//           SCORE_T  float|half|uchar  element type of scores
//           BOXES_T  float|half        element type of detected
//           LABEL_T  float|half        element type of labels
//           VALUE_T  float|half        element type of values
//           COUNT_T  float|half        element type of the number of detections
// Numerics  corners are rounded as the reference rounds double, see common/wide.cl; scores are
//           compared exactly. Of equal scores the box with the lower index comes first; classes
//           of a box come in the order of std::partial_sort. Places behind the last detection
//           are 0
#include "common/local.cl"
#include "common/types.cl"
#include "common/wide.cl"

#define DEAD INT_MIN  // the key of a box that is out: below that of every score
#define VALUE(T, p, i, scale, zero) (((float)LOAD(T, p, i) - (zero)) * (scale))

#define HEAP_CONTEXT __global const SCORE_T *
#define HEAP_BELOW(row, a, b) ((float)LOAD(SCORE_T, row, a) > (float)LOAD(SCORE_T, row, b))
#include "common/heap.cl"

// Floats as integers of the same order; -0 equals 0.
static inline int ordered(float value) {
  const int bits = as_int(value == 0.0f ? 0.0f : value);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

// Finds the item with the largest key, of equal ones the lowest place; -1: no item has a place. All
// items get the result.
static inline int first_of(__local int *keys, __local int *places, int item) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WG / 2; step > 0; step /= 2) {
    if (item < step) {
      const int other = item + step;
      const bool is_better = places[item] < 0 || keys[other] > keys[item] ||
                             (keys[other] == keys[item] && places[other] < places[item]);
      if (places[other] >= 0 && is_better) {
        keys[item] = keys[other];
        places[item] = places[other];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const int found = places[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return found;
}

// Whether the intersection is more than this share of the union.
static inline bool overlap(float4 a, float4 b, float share) {
  const float area_a = (a.z - a.x) * (a.w - a.y), area_b = (b.z - b.x) * (b.w - b.y);
  const float height = fmax(fmin(a.z, b.z) - fmax(a.x, b.x), 0.0f);
  const float width = fmax(fmin(a.w, b.w) - fmax(a.y, b.y), 0.0f);
  const float common = height * width;
  if (area_a <= 0.0f || area_b <= 0.0f || common <= 0.0f) return false;
  return exact_quotient(common, area_a + area_b - common) > share;
}

static inline float decoded_center(float offset, float scale, float size, float center) {
  const float2 moved = wide_mul(wide_quotient(offset, scale), (float2)(size, 0.0f));
  return wide_add(moved, (float2)(center, 0.0f)).x;
}

__kernel void detection_postprocess_decode(__global const BOX_T *offsets,
                                           __global const ANCHOR_T *anchors,
                                           __global const SCORE_T *scores, __global float *corners,
                                           __global float *best, int boxes, int codes, int columns,
                                           int first, float ys, float xs, float hs, float ws,
                                           float box_scale, float box_zero, float anchor_scale,
                                           float anchor_zero, float score_scale, float score_zero) {
  const int i = get_global_id(0);
  if (i >= boxes) return;
  float4 code, anchor;
  code.x = VALUE(BOX_T, offsets, i * codes, box_scale, box_zero);
  code.y = VALUE(BOX_T, offsets, i * codes + 1, box_scale, box_zero);
  code.z = VALUE(BOX_T, offsets, i * codes + 2, box_scale, box_zero);
  code.w = VALUE(BOX_T, offsets, i * codes + 3, box_scale, box_zero);
  anchor.x = VALUE(ANCHOR_T, anchors, i * 4, anchor_scale, anchor_zero);
  anchor.y = VALUE(ANCHOR_T, anchors, i * 4 + 1, anchor_scale, anchor_zero);
  anchor.z = VALUE(ANCHOR_T, anchors, i * 4 + 2, anchor_scale, anchor_zero);
  anchor.w = VALUE(ANCHOR_T, anchors, i * 4 + 3, anchor_scale, anchor_zero);
  const float y = decoded_center(code.x, ys, anchor.z, anchor.x);
  const float x = decoded_center(code.y, xs, anchor.w, anchor.y);
  const float h = scaled_exp(wide_quotient(code.z, hs), anchor.z, -1);
  const float w = scaled_exp(wide_quotient(code.w, ws), anchor.w, -1);
  vstore4((float4)(y - h, x - w, y + h, x + w), i, corners);

  float top = -INFINITY;
  for (int c = first; c < columns; ++c)
    top = fmax(top, VALUE(SCORE_T, scores, i * columns + c, score_scale, score_zero));
  best[i] = top;
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void detection_postprocess_choose(
    __global const float *corners, __global const SCORE_T *scores, __global int *keys,
    __global int *chosen, __global int *counts, int boxes, int columns, int first, int most,
    float score_scale, float score_zero, float least_score, float share) {
  LOCAL_ARRAY(int, best_keys, WG);
  LOCAL_ARRAY(int, places, WG);
  const int item = get_local_id(0), group = get_group_id(0);
  keys += group * boxes;
  chosen += group * most;
  for (int i = item; i < boxes; i += WG) {
    const float score =
        VALUE(SCORE_T, scores, i * columns + first + group, score_scale, score_zero);
    keys[i] = score >= least_score ? ordered(score) : DEAD;
  }
  // Each round takes the best box that is left, then drops those that overlap it.
  int count = 0, last = -1;
  float4 last_corners = 0.0f;
  for (int round = 0; round < most; ++round) {
    int best_key = DEAD, best = -1;
    for (int i = item; i < boxes; i += WG) {
      int key = keys[i];
      if (key == DEAD) continue;
      if (i == last || (last >= 0 && overlap(last_corners, vload4(i, corners), share))) {
        keys[i] = DEAD;
        continue;
      }
      if (key > best_key) {
        best_key = key;
        best = i;
      }
    }
    best_keys[item] = best_key;
    places[item] = best;
    last = first_of(best_keys, places, item);
    if (last < 0) break;
    last_corners = vload4(last, corners);
    if (item == 0) chosen[round] = last;
    ++count;
  }
  if (item == 0) counts[group] = count;
}

// The classes of each chosen box: `kept` of the `classes`, in `width` places.
__kernel void detection_postprocess_fast(__global const float *corners,
                                         __global const SCORE_T *scores, __global const int *chosen,
                                         __global const int *counts, __global int *order,
                                         __global BOXES_T *detected, __global LABEL_T *labels,
                                         __global VALUE_T *values, __global COUNT_T *detections,
                                         int most, int columns, int first, int kept, int width,
                                         float score_scale, float score_zero) {
  const int place = get_global_id(0);
  if (place >= most) return;
  const int count = counts[0], classes = columns - first;
  if (place == 0) STORE(COUNT_T, detections, 0, (float)count);
  const bool is_there = place < count;
  const int box = is_there ? chosen[place] : 0;
  __global const SCORE_T *row = scores + box * columns + first;
  order += place * kept;
  if (kept == 1) {
    int best = 0;
    for (int c = 1; c < classes; ++c) best = HEAP_BELOW(row, c, best) ? c : best;
    order[0] = best;
  } else {
    for (int c = 0; c < kept; ++c) order[c] = c;
    heap_make(row, order, kept);
    for (int c = kept; c < classes; ++c) {
      if (HEAP_BELOW(row, c, order[0])) heap_sink(row, order, 0, kept, c);
    }
    for (int left = kept; left > 1; --left) heap_pop(row, order, left);
  }
  for (int c = 0; c < width; ++c) {
    const int to = place * width + c;
    const bool is_used = is_there && c < kept;
    const int label = c < kept ? order[c] : 0;
    for (int k = 0; k < 4; ++k) {
      const float corner = corners[box * 4 + k];
      STORE(BOXES_T, detected, to * 4 + k, is_used ? corner : 0.0f);
    }
    const float score = VALUE(SCORE_T, row, label, score_scale, score_zero);
    STORE(LABEL_T, labels, to, is_used ? (float)label : 0.0f);
    STORE(VALUE_T, values, to, is_used ? score : 0.0f);
  }
}

// The best of what the classes have chosen; of equal scores the lower class comes first.
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void detection_postprocess_merge(
    __global const float *corners, __global const SCORE_T *scores, __global const int *chosen,
    __global const int *counts, __global int *heads, __global BOXES_T *detected,
    __global LABEL_T *labels, __global VALUE_T *values, __global COUNT_T *detections,
    int all_places, int detections_most, int columns, int first, int most, float score_scale,
    float score_zero) {
  LOCAL_ARRAY(int, best_keys, WG);
  LOCAL_ARRAY(int, places, WG);
  const int item = get_local_id(0), classes = columns - first;
  // A class's boxes are in the order of their scores: only the first that is left matters.
  for (int c = item; c < classes; c += WG) heads[c] = 0;
  int count = 0;
  for (int place = 0; place < detections_most; ++place) {
    int best_key = DEAD, best = -1;
    for (int c = item; c < classes; c += WG) {
      if (heads[c] >= counts[c]) continue;
      const int at = chosen[c * most + heads[c]] * columns + first + c;
      const int key = ordered(VALUE(SCORE_T, scores, at, score_scale, score_zero));
      if (best < 0 || key > best_key) {
        best_key = key;
        best = c;
      }
    }
    best_keys[item] = best_key;
    places[item] = best;
    const int label = first_of(best_keys, places, item);
    if (label < 0) break;
    ++count;
    if (item == label % WG) {
      const int box = chosen[label * most + heads[label]++];
      const int at = box * columns + first + label;
      for (int k = 0; k < 4; ++k) STORE(BOXES_T, detected, place * 4 + k, corners[box * 4 + k]);
      STORE(LABEL_T, labels, place, (float)label);
      STORE(VALUE_T, values, place, VALUE(SCORE_T, scores, at, score_scale, score_zero));
    }
  }
  for (int place = count + item; place < all_places; place += WG) {
    for (int k = 0; k < 4; ++k) STORE(BOXES_T, detected, place * 4 + k, 0.0f);
    STORE(LABEL_T, labels, place, 0.0f);
    STORE(VALUE_T, values, place, 0.0f);
  }
  if (item == 0) STORE(COUNT_T, detections, 0, (float)count);
}

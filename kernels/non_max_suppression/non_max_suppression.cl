// non_max_suppression.cl - the boxes with the best scores that overlap no better one; others lose score or are out
//
// Shapes    boxes: [count, 4], two opposite corners; scores: [count]; share, least_score, sigma: one
//           element; chosen, values: [most]; total: one; queue, begins: [count]; current: [count]
// Launch    one work-item: global = local = (1, 1, 1). The order of boxes with equal scores, and of those
//           that lose score, is that of a queue into which each is put in turn
// Macros    BOX_T     float|half  element type of boxes
//           SCORE_T   float|half  element type of scores
//           SHARE_T   float|half  element type of share
//           LEAST_T   float|half  element type of least_score
//           SOFT      0|1         1: scores decay with the overlap, by sigma, and are a result
//           SIGMA_T if SOFT  float|half  element type of sigma
//           VALUE_T if SOFT  float|half  element type of values
// Numerics  overlaps are rounded like the reference; the decay as its exp, but for a few of 1000. A box without
//           area overlaps nothing, not even itself, and is chosen again, as in the reference. Places behind
//           the last box are 0
#include "common/types.cl"
#include "common/wide.cl"

#define HEAP_CONTEXT __global const float *
#define HEAP_BELOW(current, a, b) ((current)[a] < (current)[b])
#include "common/heap.cl"

static inline float4 corners_of(__global const BOX_T *boxes, int i) {
  const float4 box = LOAD4(BOX_T, boxes, 4 * i);
  return (float4)(fmin(box.x, box.z), fmin(box.y, box.w), fmax(box.x, box.z), fmax(box.y, box.w));
}

// Intersection over union.
static inline float overlap_of(float4 a, float4 b) {
  const float area_a = (a.z - a.x) * (a.w - a.y), area_b = (b.z - b.x) * (b.w - b.y);
  if (area_a <= 0.0f || area_b <= 0.0f) return 0.0f;
  const float height = fmax(fmin(a.z, b.z) - fmax(a.x, b.x), 0.0f);
  const float width = fmax(fmin(a.w, b.w) - fmax(a.y, b.y), 0.0f);
  return exact_quotient(height * width, area_a + area_b - height * width);
}

__kernel void non_max_suppression_queue(__global const BOX_T *boxes, __global const SCORE_T *scores,
                                        __global const SHARE_T *share_at,
                                        __global const LEAST_T *least_at,
#if SOFT
                                        __global const SIGMA_T *sigma_at,
#endif
                                        __global int *queue, __global float *current,
                                        __global int *begins, __global int *chosen,
#if SOFT
                                        __global VALUE_T *values,
#endif
                                        __global int *total, int count, int most) {
  if (get_global_id(0) > 0) return;
  const float share = LOAD(SHARE_T, share_at, 0), least = LOAD(LEAST_T, least_at, 0);
#if SOFT
  const float sigma = LOAD(SIGMA_T, sigma_at, 0);
  const float decay = sigma > 0.0f ? exact_quotient(-0.5f, sigma) : 0.0f;
#else
  const float sigma = 0.0f, decay = 0.0f;
#endif
  int left = 0;
  for (int i = 0; i < count; ++i) {
    const float score = LOAD(SCORE_T, scores, i);
    if (!(score > least)) continue;
    current[i] = score;
    begins[i] = 0;
    heap_rise(current, queue, left, 0, i);
    ++left;
  }
  const int outputs = min(left, most);
  int found = 0;
  while (found < outputs && left > 0) {
    const int box = heap_pop(current, queue, left--);
    const float4 corners = corners_of(boxes, box);
    const float before = current[box];
    float score = before;
    bool is_out = false;
    // Boxes before `begins` have been compared already.
    for (int j = found - 1; j >= begins[box]; --j) {
      const float overlap = overlap_of(corners, corners_of(boxes, chosen[j]));
      if (overlap >= share) {
        is_out = true;
        break;
      }
      if (sigma > 0.0f) score *= scaled_exp((float2)(decay * overlap * overlap, 0.0f), 1.0f, 0);
      if (score <= least) break;
    }
    begins[box] = found;
    if (is_out) continue;
    if (score == before) {
      chosen[found] = box;
#if SOFT
      STORE(VALUE_T, values, found, score);
#endif
      ++found;
    }
    if (score > least) {
      current[box] = score;
      heap_rise(current, queue, left, 0, box);
      ++left;
    }
  }
  total[0] = found;
  for (int i = found; i < most; ++i) {
    chosen[i] = 0;
#if SOFT
    STORE(VALUE_T, values, i, 0.0f);
#endif
  }
}

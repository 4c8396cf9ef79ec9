// svdf.cl - one step of a layer of filters of rank 1: each filter f multiplies the input by its weights,
// keeps the last `memory` products, and sums them with weights of time
//
//   state[b, f, m] = m < memory - 1 ? before[b, f, m + 1] : sum over k of src[b, k] * wf[f, k]
//   dst[b, u] = act(bias[u] + sum over the `rank` filters f of unit u and m of state[b, f, m] * wt[f, m])
//
// Shapes    src: [batch, depth], wf: [filters, depth], wt: [filters, memory], bias: [units]
//           before, state: [batch, filters * memory], dst: [batch, units], filters = units * rank
// Launch    one work-group per unit: global = (units * WG, batch, 1), local = (WG, 1, 1)
// Macros    INTEGER  0|1                   1: sums are requantised, the products to STATE_T with
//                                          feature_multiplier and shift, the results likewise
//           BIAS     0|1                   bias is there
//           WG       power of two, 1..256  work-items
//           SRC_T    float|half|char       element type of src
//           WF_T     float|half|weight8|char   element type of wf
//           WT_T     float|half|weight8|short|char  element type of wt
//           BIAS_T   float|half|int        element type of bias; any without one
//           STATE_T  float|half|short|char  element type of before and state
//           DST_T    float|half|char       element type of dst
//           ACC_T    float|int             type of sums
// Numerics  floats: the sums of work-items in order, then in a tree; weight8: sums times a scale; integers
//           are exact
#include "common/activation.cl"
#include "common/local.cl"
#include "common/types.cl"
#if INTEGER
#include "common/multiply.cl"
#define SCALING_PARAMS                                                                            \
  int src_zero, int state_zero, int feature_multiplier, int feature_shift, int result_multiplier, \
      int result_shift, int dst_zero
#define STATE_MOST (sizeof(STATE_T) == 1 ? 127 : 32767)
#else
#define SCALING_PARAMS float feature_scale, float time_scale
#endif
#if BIAS
#define BIAS_PARAM __global const BIAS_T *bias,
#else
#define BIAS_PARAM
#endif

static inline ACC_T sum_of_group(ACC_T x, __local ACC_T *sums) {
  const int item = get_local_id(0);
  sums[item] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = WG / 2; reach > 0; reach /= 2) {
    if (item < reach) sums[item] += sums[item + reach];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const ACC_T sum = sums[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void svdf_step(
    __global const SRC_T *src, __global const WF_T *wf, __global const WT_T *wt,
    BIAS_PARAM __global const STATE_T *before, __global STATE_T *state, __global DST_T *dst,
    int depth, int memory, int rank, int units, SCALING_PARAMS) {
  LOCAL_ARRAY(ACC_T, sums, WG);
  const int item = get_local_id(0);
  const int unit = get_group_id(0), b = get_group_id(1);
  ACC_T total = 0;
  for (int r = 0; r < rank; ++r) {
    const int filter = unit * rank + r;
    ACC_T part = 0;
    for (int k = item; k < depth; k += WG) {
      ACC_T x = LOAD(SRC_T, src, b * depth + k);
#if INTEGER
      x -= src_zero;
#endif
      part += x * LOAD(WF_T, wf, filter * depth + k);
    }
    ACC_T product = sum_of_group(part, sums);
#if INTEGER
    product = requantize_int(product, feature_multiplier, feature_shift) + state_zero;
    product = clamp(product, -STATE_MOST - 1, STATE_MOST);
#else
    product *= feature_scale;
#endif
    const int first = (b * units * rank + filter) * memory;
    for (int m = item; m < memory; m += WG) {
      const ACC_T value = m < memory - 1 ? LOAD(STATE_T, before, first + m + 1) : product;
      STORE(STATE_T, state, first + m, value);
#if INTEGER
      total += (value - state_zero) * LOAD(WT_T, wt, filter * memory + m);
#else
      total += value * LOAD(WT_T, wt, filter * memory + m);
#endif
    }
  }
  total = sum_of_group(total, sums);
  if (item > 0) return;
#if INTEGER
#if BIAS
  total += LOAD(BIAS_T, bias, unit);
#endif
  const int result = requantize_int(total, result_multiplier, result_shift) + dst_zero;
  STORE(DST_T, dst, b * units + unit, clamp(result, -128, 127));
#else
  total *= time_scale;
#if BIAS
  total += LOAD(BIAS_T, bias, unit);
#endif
  STORE(DST_T, dst, b * units + unit, ACTIVATE(total));
#endif
}

// arg_min_max.cl - dst[o, n] = index of the largest (smallest) of src[o, :, n], the first one if several are equal
//
// Shapes    src: [outer, length, inner]; dst: [outer, inner], outputs = outer * inner
// Launch    global = (ceil(outputs / WX) * WX * WY, 1, 1), local = (WX * WY, 1, 1): a work-group
//           computes WX outputs, WY work-items share each
// Macros    MIN    0|1                   1: the smallest
//           WX     power of two, 1..256  outputs of a work-group
//           WY     power of two, 1..256  work-items that share an output
//           Y_FAST 0|1                   1: neighbouring items share an output; 0: they compute
//                                        neighbouring outputs; the order of src decides
//           SRC_T  float|half|int|char|uchar  element type of src
//           DST_T  int|long              element type of dst
// Numerics  exact
#include "common/local.cl"
#include "common/types.cl"

#if MIN
#define BETTER(a, b) ((a) < (b))
#else
#define BETTER(a, b) ((a) > (b))
#endif

__kernel __attribute__((reqd_work_group_size(WX * WY, 1, 1))) void arg_min_max(
    __global const SRC_T *src, __global DST_T *dst, int outputs, int length, int inner) {
  const int item = get_local_id(0);
  const int x = Y_FAST ? item / WY : item % WX;
  const int y = Y_FAST ? item % WY : item / WX;
  const int output = get_group_id(0) * WX + x;
  // Items without elements start with the first element, which does not change the result.
  const int last = min(output, outputs - 1);
  src += last / inner * length * inner + last % inner;
  int best = y < length ? y : 0;
  ARITH(SRC_T) best_value = LOAD(SRC_T, src, best * inner);
  for (int i = best + WY; i < length; i += WY) {
    const ARITH(SRC_T) value = LOAD(SRC_T, src, i * inner);
    if (BETTER(value, best_value)) {
      best_value = value;
      best = i;
    }
  }
#if WY > 1
  LOCAL_ARRAY(ARITH(SRC_T), values, WX * WY);
  LOCAL_ARRAY(int, indices, WX *WY);
  const int mine = y * WX + x;
  values[mine] = best_value;
  indices[mine] = best;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WY / 2; step > 0; step /= 2) {
    if (y < step) {
      const int other = mine + step * WX;
      if (BETTER(values[other], values[mine]) ||
          (values[other] == values[mine] && indices[other] < indices[mine])) {
        values[mine] = values[other];
        indices[mine] = indices[other];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  best = indices[x];
#endif
  if (y == 0 && output < outputs) STORE(DST_T, dst, output, best);
}

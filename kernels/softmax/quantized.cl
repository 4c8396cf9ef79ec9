// quantized.cl - softmax over the last axis of quantised integers, or its logarithm
//
// Shapes    src, dst: [rows, cols], row-major, contiguous
//           exps: for 8 bits [256], exp(beta * scale * -d) in Q0 (common/fixed_point.cl) at d; for int16
//           [513], exp is interpolated between entries; inverses: [513], likewise for 1 / (1 + x)
// Launch    global = (ceil(rows / ROWS) * ROWS * WG, 1, 1), local = (ROWS * WG, 1, 1): a work-group
//           takes ROWS rows, WG work-items share each
// Macros    ROWS    power of two, 1..64   rows of a work-group
//           WG      power of two, 1..256  work-items per row
//           SRC_T   char|uchar|short      element type of src
//           DST_T   char|uchar|short      element type of dst
//           WIDE    0|1                   1: SRC_T and DST_T are short
//           LOG     0|1                   1: the logarithm; SRC_T and DST_T are char
// Numerics  bit for bit as TFLite's reference kernels: exponentials in fixed point, tables for int16. If
//           a sum of exponentials is too large for them, 8-bit results are the nearest ones, while 16-bit
//           results and logarithms are those of the largest sum (4096 for 8-bit inputs)
#include "common/fixed_point.cl"
#include "common/local.cl"
#include "common/types.cl"

#if WIDE
#define TABLES_PARAM \
  __global const short *exps, __global const short *inverses, int multiplier, int shift
// Interpolates a table at an int16.
static inline int interpolated(__global const short *table, int x) {
  x = clamp(x, -32768, 32767);
  const int i = 256 + (x >> 7);
  return (short)(table[i] + (((short)(table[i + 1] - table[i]) * (x & 127) + 64) >> 7));
}
#define EXP(d) interpolated(exps, requantize_int(d, multiplier, shift) + 32767)
#define TERM(d) EXP(d)
#else
#if LOG
// A step of src in Q5 (multiplier, shift), the limit of differences, and the inverse of the step.
#define TABLES_PARAM \
  __global const int *exps, int multiplier, int shift, int least, int inverse, int inverse_shift
#else
#define TABLES_PARAM __global const int *exps
#endif
#define EXP(d) exps[-(d)]
#define TERM(d) FIXED_SHIFT(EXP(d), 12)
#endif

#if WG > 1
#define SHARE(x, join)                                                       \
  shared[mine] = x;                                                          \
  barrier(CLK_LOCAL_MEM_FENCE);                                              \
  for (int step = WG / 2; step > 0; step /= 2) {                             \
    if (item < step) shared[mine] = join(shared[mine], shared[mine + step]); \
    barrier(CLK_LOCAL_MEM_FENCE);                                            \
  }                                                                          \
  x = shared[mine - item];                                                   \
  barrier(CLK_LOCAL_MEM_FENCE)
#else
#define SHARE(x, join)
#endif
#define SUM(a, b) add_sat(a, b)  // 4096 times 1 is too much for Q12

__kernel __attribute__((reqd_work_group_size(ROWS * WG, 1, 1))) void softmax_quantized_rows(
    __global const SRC_T *src, __global DST_T *dst, TABLES_PARAM, int rows, int cols, int low,
    int high) {
  const int item = get_local_id(0) % WG;
  const int row = get_group_id(0) * ROWS + get_local_id(0) / WG;
  const int end = row < rows ? cols : 0;  // rows past the end have no elements
  src += (size_t)row * cols;
  dst += (size_t)row * cols;
#if WG > 1
  LOCAL_ARRAY(int, shared, ROWS *WG);
  const int mine = get_local_id(0);
#endif
  int largest = -32768;
  for (int c = item; c < end; c += WG) largest = max(largest, (int)src[c]);
  SHARE(largest, max);
  int sum = 0;
  for (int c = item; c < end; c += WG) sum = SUM(sum, TERM(src[c] - largest));
  SHARE(sum, SUM);
#if LOG
  const int log_sum = fixed_log(max(sum, 1 << 19));
  const int bound = max(least - 1, requantize_int(log_sum + INT_MIN, inverse, inverse_shift));
  for (int c = item; c < end; c += WG) {
    const int d = src[c] - largest;
    const int value = FIXED_SHIFT(requantize_int(d, multiplier, shift) - log_sum, 22) + 127;
    STORE(DST_T, dst, c, d > bound ? clamp(value, low, high) : low);
  }
#elif WIDE
  const int zeros = clz(sum), right = 31 - zeros;
  const uint unit = ((uint)sum << (zeros - 1)) + (1u << 13);
  const int inverse = interpolated(inverses, (int)(unit >> 14) - (1 << 15) - (1 << 16));
  for (int c = item; c < end; c += WG) {
    const int product = EXP(src[c] - largest) * inverse + (1 << (right - 1));
    STORE(DST_T, dst, c, clamp(product >> right, 0, 32767));
  }
#else
  int power;
  const int inverse = fixed_reciprocal(max(sum, 1), &power);
  const int right = power + 12 - 8 * (int)sizeof(STEPS_T(DST_T));
  for (int c = item; c < end; c += WG) {
    const int share = FIXED_MUL(inverse, EXP(src[c] - largest));
    // If the sum is 512 or more, no result exceeds half a step; the reference kernels abort there.
    const int value = right < 32 ? FIXED_SHIFT(share, right) : 0;
    STORE(DST_T, dst, c, clamp(value + low, low, high));
  }
#endif
}

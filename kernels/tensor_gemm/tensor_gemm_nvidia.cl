// tensor_gemm_nvidia.cl - 2-D convolution on NVIDIA's tensor cores as a product of matrices, tiled in local
//                         memory; the rows of the left matrix (im2col) are copied from src on the fly.
//                         A matrix product is a convolution of an image of width 1 with a 1 x 1 filter
//
// Shapes    src: groups times [n, in_h, in_w, in_c], `src_group` elements apart (channels of one image, or
//           separate images); bias: [out_c]; dst, residual: groups times [pixels, out_c], `dst_group`
//           elements apart, pixels = n * out_h * out_w; bias is also read at group * dst_group
//           packed: as pack_nvidia.cl or, if WGMMA, pack_rows_nvidia.cl writes it; steps =
//           ceil(filter_h * filter_w * group_in / TK)
//           ..._mul, ..._shift: quotients by out_w, out_h and filter_w, see QUOTIENT
//           with FILL: outside: four bytes, each the value outside of the image
//           with SPLIT: sums: [tiles, splits, TM * TN] SUM_T in the order of the items' registers;
//           counters: [tiles], zero before and after; split_steps: steps of one split
// Launch    one work-group of WARPS_M * WARPS_N * WARPS_K * 32 per tile of TM pixels x TN channels and
//           split: global = (ceil(pixels / TM) * panels * items, 1, groups * splits),
//           local = (items, 1, 1)
// Macros    TM, TN            tile: pixels (32..128) and output channels (16..256) of a work-group
//           WARPS_M, WARPS_N  1..8  warps along TM and TN, each with whole blocks of 16 pixels x 16 channels
//           WARPS_K           1..4  warps that share the depth of a step, each with an even number
//                             of parts of 32 bytes
//           STEP_BYTES        64|128   bytes of depth of a step, TK = STEP_BYTES / size of an element
//           STAGES            2..6     steps in local memory, (TM + TN) * STEP_BYTES bytes each
//           COPY              1|4|8|16  bytes copied at once: group_in, in_c and src_group are multiples;
//                                    1, with FILL and char: an item reads four bytes one by one
//           SPLIT             0|1      1: several work-groups share the depth of a tile; the last one stores it
//           WIDE              0|1      1: group_out, out_c, dst_group and the start of each pixel of
//                                    dst are multiples of 8
//           MMA_TYPE          0..5     0, 3: src is half, 1, 5: float, 2, 4: char; packed is of the same type.
//                                    3, 4: products by four warps, which have 64 pixels (WGMMA): WARPS_M is
//                                    TM / 16, WARPS_K is 1, TN / WARPS_N is 32, 64, 128 or 256, COPY is not 1.
//                                    5: products of pairs (common/float_pairs.cl): packed is as
//                                    pack_float_pairs_nvidia.cl writes it
//           FILL              0|1      1: values outside of the image are `outside`, not zero
//           REFLECT  0|1  values outside of the image: 0 zero, 1 mirrored; see common/border.cl
//           DST_T     float|half|char  element type of dst; those of common/epilogue.cl and common/by_floats.cl
// Numerics  products exact (after float operands have been rounded to TF32), sums in float, in an order
//           that depends only on sizes; bias and residual are added last. Integers: exact. Pairs: see
//           common/float_pairs.cl
#include "common/border.cl"
#include "common/epilogue.cl"

#include "common/by_floats.cl"
#include "common/local.cl"
#include "common/mma.cl"
#include "common/swizzle.cl"
#include "common/types.cl"
#include "tensor_gemm/quotient.cl"
#define WGMMA (MMA_TYPE == 3 || MMA_TYPE == 4)
#define PAIRS (MMA_TYPE == 5)
#define WGMMA_N (TN / WARPS_N)
// Whether the products of a step go on while the next one is awaited: where one work-group takes a whole
// compute unit, none computes meanwhile. Copies then begin a step later.
#define BEHIND (WGMMA_N == 256)
#include "common/wgmma.cl"
#if PAIRS
#include "common/float_pairs.cl"
#endif

#if MMA_TYPE == 2 || MMA_TYPE == 4
#define SRC_T char
#elif MMA_TYPE == 1 || PAIRS
#define SRC_T float
#else
#define SRC_T half
#endif
#define BYTES MMA_BYTES
#define ITEMS (WARPS_M * WARPS_N * WARPS_K * 32)
#define TK (STEP_BYTES / BYTES)
#define MB (TM / WARPS_M / 16)  // blocks of 16 pixels of a warp
#define NB (TN / WARPS_N / 8)   // blocks of 8 channels of a warp
#if NB == 2
#define BLOCKS 2  // blocks whose channels interleave: a lane has 2 * BLOCKS neighbouring channels
#else
#define BLOCKS 4
#endif
#define PARTS (STEP_BYTES / 32 / WARPS_K)  // of a step, multiplied at once; even
#if !WGMMA && PARTS % 2 != 0
#error "STEP_BYTES and WARPS_K make an odd number of parts"
#endif
#define STAGE ((TM + TN) * STEP_BYTES)
#if WGMMA
#define AHEAD (STAGES - 1 - BEHIND)  // steps that are copied ahead
#else
#define AHEAD (STAGES - 1)
#endif
#if COPY == 1
#define PIECE 4  // bytes that an item copies at once
#else
#define PIECE COPY
#endif
#define TAPS (PIECE / COPY)           // copies that make a piece
#define COLUMNS (STEP_BYTES / PIECE)  // pieces of a pixel's row
#define ROWS (TM * COLUMNS / ITEMS)   // pixels whose rows an item copies
#define APART (ITEMS / COLUMNS)       // their distance, a multiple of 8

// The first read of the residual is then from the second level of cache.
#if RESIDUAL && WIDE
// Of 128 bytes, in a pixel's part of a tile.
#define RESIDUAL_LINES ((TN * (int)sizeof(RESIDUAL_T) + 127) / 128)
#define PREFETCH_RESIDUAL()                                                                \
  for (int i = item; i < TM * RESIDUAL_LINES; i += ITEMS) {                                \
    const int pixel = tile_m * TM + i / RESIDUAL_LINES;                                    \
    const int channel = panel * TN + i % RESIDUAL_LINES * (128 / (int)sizeof(RESIDUAL_T)); \
    if (pixel < pixels && channel < group_out)                                             \
      __asm volatile("prefetch.global.L2 [%0];" ::"l"(                                     \
          residual + RESULT_AT(pixel, group * dst_group + channel, out_c)));               \
  }
#else
#define PREFETCH_RESIDUAL()
#endif

#define FROM_CORNER \
  (!REFLECT)  // taps have a fixed distance from the first one: `from` is that pixel, else the image
#if FILL
#define COPY_TO(address, from, valid) CLGPU_CAT(COPY_OR_, COPY)(address, from, valid, outside)
#else
#define COPY_TO(address, from, valid) CLGPU_CAT(COPY_, COPY)(address, from, valid)
#endif

// Copies the panel's part of step s to a stage.
#define COPY_RIGHT(s, stage)                                                    \
  _Pragma("unroll") for (int c = 0; c < TN * STEP_BYTES / 16; c += ITEMS) {     \
    if (c + ITEMS <= TN * STEP_BYTES / 16 || item < TN * STEP_BYTES / 16 - c) { \
      COPY_16(base + (stage) * STAGE + TM * STEP_BYTES + (item + c) * 16,       \
              right + ((s) * (TN * STEP_BYTES / 16) + c), true);                \
    }                                                                           \
  }

// Channel and tap of the copy after the next one.
#define ADVANCE(j)                                     \
  do {                                                 \
    i0[j] += step_i;                                   \
    tap[j] += step_taps + (i0[j] >= group_in ? 1 : 0); \
    i0[j] -= i0[j] >= group_in ? group_in : 0;         \
  } while (0)

// Copies the pixels' part of the next step to stage `fill`.
#if COPY == 1
#define COPY_LEFT()                                                                              \
  do {                                                                                           \
    uint words[ROWS];                                                                            \
    _Pragma("unroll") for (int j = 0; j < TAPS; ++j) {                                           \
      const int u = QUOTIENT(tap[j], filter_mul, filter_shift);                                  \
      const int at_y = u * dilation_h, at_x = (tap[j] - u * filter_w) * dilation_w;              \
      const int at = (at_y * in_w + at_x) * in_c + i0[j];                                        \
      _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                         \
        const int y = in_y[r] + at_y, x = in_x[r] + at_x;                                        \
        const bool inside = u < filter_h && (uint)y < (uint)in_h && (uint)x < (uint)in_w;        \
        uint byte = outside & 255;                                                               \
        if (inside) byte = *(__global const uchar *)(src + (from[r] + at));                      \
        words[r] = j == 0 ? byte : words[r] | byte << (8 * j);                                   \
      }                                                                                          \
      ADVANCE(j);                                                                                \
    }                                                                                            \
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) STORE_WORD(to[r] + fill * STAGE, words[r]); \
    fill = fill + 1 == STAGES ? 0 : fill + 1;                                                    \
  } while (0)
#else
#define COPY_LEFT()                                                                     \
  do {                                                                                  \
    const int u = QUOTIENT(tap[0], filter_mul, filter_shift);                           \
    const int at_y = u * dilation_h, at_x = (tap[0] - u * filter_w) * dilation_w;       \
    const int at = FROM_CORNER ? (at_y * in_w + at_x) * in_c + i0[0] : i0[0];           \
    _Pragma("unroll") for (int r = 0; r < ROWS; ++r) {                                  \
      const int y = BORDER(in_y[r] + at_y, in_h), x = BORDER(in_x[r] + at_x, in_w);     \
      const bool inside = u < filter_h && (uint)y < (uint)in_h && (uint)x < (uint)in_w; \
      const int pixel_at = FROM_CORNER ? 0 : (y * in_w + x) * in_c;                     \
      COPY_TO(to[r] + fill * STAGE, src + (from[r] + pixel_at + at), inside);           \
    }                                                                                   \
    ADVANCE(0);                                                                         \
    fill = fill + 1 == STAGES ? 0 : fill + 1;                                           \
  } while (0)
#endif

// Reads this warp's operands of a part of stage `use` into the set f.
#define READ(f, part)                                                                           \
  do {                                                                                          \
    const uint part_at = WARPS_K == 1 ? (uint)(part) : (uint)((part) * WARPS_K + warp_k);       \
    _Pragma("unroll") for (int n = 0; n < NB / 2; ++n) {                                        \
      b[f][n] = tile[use * (STAGE / 16) + right_at + part_at * (TN * 2) + n * 32];              \
    }                                                                                           \
    _Pragma("unroll") for (int m = 0; m < MB; ++m) {                                            \
      LDMATRIX_X4(a[f][m], ((left_at + use * STAGE) ^ (part_at * 32)) + m * (16 * STEP_BYTES)); \
      ROUND(a[f][m]);                                                                           \
    }                                                                                           \
  } while (0)
#if MMA_TYPE == 1
#define ROUND(v) v = (uint4)(to_tf32(v.s0), to_tf32(v.s1), to_tf32(v.s2), to_tf32(v.s3))
#else
#define ROUND(v)
#endif

#if PAIRS
// Products of all pixels' blocks with the two blocks of channels n, of which `first` and `second` are words of two
// parts; a sum is not needed soon again.
#define PAIRS_ADD_ALL(a, first, second)                            \
  _Pragma("unroll") for (int m = 0; m < MB; ++m) {                 \
    PAIRS_ADD(sum[m][2 * n], (a)[m], (first).s0, (second).s0);     \
    PAIRS_ADD(sum[m][2 * n + 1], (a)[m], (first).s1, (second).s1); \
  }
#endif

#if !QUANTIZED
// Four aligned elements.
float4 wide_float(__global const float *p) { return *(__global const float4 *)p; }
float4 wide_half(__global const half *p) {
  const uint2 bits = *(__global const uint2 *)p;
  return (float4)(from_halves(bits.s0), from_halves(bits.s1));
}
// CHANNEL4_AT of aligned channels.
#if BIAS
#define WIDE_BIAS4_AT(o) CLGPU_CAT(wide_, BIAS_T)(bias + (o))
#else
#define WIDE_BIAS4_AT(o) (float4)(0.0f)
#endif
#if SCALED
#define WIDE_OWN4_AT(o) scaled4(WIDE_BIAS4_AT(o), vload4(0, weight_scales + (o)))
#else
#define WIDE_OWN4_AT(o) WIDE_BIAS4_AT(o)
#endif
#if ACT == 14
#define WIDE_CHANNEL4_AT(o) sloped4(WIDE_OWN4_AT(o), CLGPU_CAT(wide_, SLOPES_T)(slopes + (o)))
#else
#define WIDE_CHANNEL4_AT(o) WIDE_OWN4_AT(o)
#endif
#endif
#include "common/mma_wide.cl"

// A lane ends its sums in steps of 2 * BLOCKS neighbours, MB * 2 pixels for each BLOCKS blocks of channels.
#define LANE_STEPS (NB / BLOCKS * MB * 2)
#define SUM4_OF(t, j)                                                              \
  (((t) % 2 == 0) ? SUM4_HALF_OF(sum[(t) % (MB * 2) / 2], SUM_BLOCK(t, j), s0, s1) \
                  : SUM4_HALF_OF(sum[(t) % (MB * 2) / 2], SUM_BLOCK(t, j), s2, s3))
#define SUM_BLOCK(t, j) ((t) / (MB * 2) * BLOCKS + 2 * (j))
#define SUM4_HALF_OF(sums, n, a, b) \
  ((MMA_SUM4_T)((sums)[n].a, (sums)[n].b, (sums)[(n) + 1].a, (sums)[(n) + 1].b))

// The sums of bit s, if that is k. No loop does this, so that no compiler keeps all sums in memory for it.
#define PICK_SUM(k)                                \
  if ((k) < LANE_STEPS * (BLOCKS / 2) && s == (k)) \
    last = SUM4_OF((k) / (BLOCKS / 2) % LANE_STEPS, (k) % (BLOCKS / 2));
#if BY_FLOATS && LANE_STEPS * (BLOCKS / 2) > 32
#error "TM * TN and the warps leave a lane more than 32 fours of sums"
#endif
#define PICK_SUMS(k)  \
  do {                \
    PICK_SUM(k)       \
    PICK_SUM((k) + 1) \
    PICK_SUM((k) + 2) \
    PICK_SUM((k) + 3) \
    PICK_SUM((k) + 4) \
    PICK_SUM((k) + 5) \
    PICK_SUM((k) + 6) \
    PICK_SUM((k) + 7) \
  } while (0)

// The residual of the next steps is read before it is needed, because what is stored between may not be overtaken.
#define FETCHES (RESIDUAL && WIDE && (BY_FLOATS || !QUANTIZED))
#if FETCHES
#define FETCHED_MOST (32 / (BLOCKS * (int)sizeof(RESIDUAL_T) / 2))  // 32 registers
#define FETCHED_AT_ONCE (LANE_STEPS < FETCHED_MOST ? LANE_STEPS : FETCHED_MOST)
#define FETCHED_QUAD(t, j) CLGPU_CAT(wide_quad_, RESIDUAL_T)(fetched[(t) % FETCHED_AT_ONCE], j)
#define FETCH(t)                                                                                 \
  do {                                                                                           \
    const int to_pixel = first_pixel + (t) % (MB * 2) * 8, to_n = (t) / (MB * 2) * (BLOCKS * 8); \
    if (ends && to_pixel < pixels && first_channel + to_n < group_out)                           \
      fetched[(t) % FETCHED_AT_ONCE] = CLGPU_CAT(                                                \
          load_wide_, RESIDUAL_T)(residual + RESULT_AT(to_pixel, first_o + to_n, out_c));        \
  } while (0)
#else
#define FETCHED_QUAD(t, j) 0
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void tensor_gemm(
    __global const SRC_T *src, __global const SRC_T *packed,
#if FILL
    int outside,
#endif
    BIAS_PARAM RESIDUAL_PARAM RESULT_PARAM
#if SPLIT
        __global MMA_SUM4_T *sums,
    volatile __global int *counters, int splits, int split_steps,
#endif
    int pixels, int panels, int steps, int group_in, int group_out, int src_group, int dst_group,
    int in_h, int in_w, int in_c, int out_h, int out_w, int out_c, int filter_h, int filter_w,
    int stride_h, int stride_w, int dilation_h, int dilation_w, int top, int left, int w_mul,
    int w_shift, int h_mul, int h_shift, int filter_mul, int filter_shift) {
  // Stages: TM rows of src, then TN * STEP_BYTES bytes of packed.
#if WGMMA
  __local uint4 tile[STAGES * STAGE / 16] __attribute__((aligned(1024)));
#else
  LOCAL_LINES(uint4, tile, STAGES * STAGE / 16);
#endif

  const int item = get_local_id(0);
  const int lane = item % 32, warp = item / 32;
  const int warp_m = warp % WARPS_M, warp_n = warp / WARPS_M % WARPS_N;
  const int warp_k = warp / (WARPS_M * WARPS_N);
  const int tile_m = (int)get_group_id(0) / panels;
  const int panel = (int)get_group_id(0) - tile_m * panels;
#if SPLIT
  const int group = (int)get_group_id(2) / splits, split = (int)get_group_id(2) % splits;
  const int begin = split * split_steps, count = min(split_steps, steps - begin);
#else
  const int group = get_group_id(2);
  const int begin = 0, count = steps;
#endif
  src += group * src_group;
  const uint base = local_address(tile);
  __global const uint4 *right =
      (__global const uint4 *)packed +
      (size_t)((group * panels + panel) * steps + begin) * (TN * STEP_BYTES / 16) + item;

  // Needs no arithmetic, so it starts before everything else.
#pragma unroll
  for (int s = 0; s < AHEAD; ++s) {
    if (s < count) COPY_RIGHT(s, s);
  }
  OPERANDS_READY();

  // This item copies the bytes column * COPY .. of ROWS pixels.
  const int column = item % COLUMNS;
  uint to[ROWS];
  int in_y[ROWS], in_x[ROWS], from[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int row = item / COLUMNS + r * APART;
    to[r] = base + row * STEP_BYTES + (((column * PIECE / 16) ^ SWIZZLE(row)) * 16) +
            column * PIECE % 16;
    const int pixel = tile_m * TM + row;
    const int line = QUOTIENT(pixel, w_mul, w_shift);
    const int image = QUOTIENT(line, h_mul, h_shift);
    in_x[r] = (pixel - line * out_w) * stride_w - left;
    in_y[r] = (line - image * out_h) * stride_h - top;
    from[r] =
        (FROM_CORNER ? (image * in_h + in_y[r]) * in_w + in_x[r] : image * in_h * in_w) * in_c;
    in_y[r] = pixel < pixels ? in_y[r] : INT_MIN / 2;
  }
  // Channel and filter tap of the next copy.
  int tap[TAPS], i0[TAPS];
#pragma unroll
  for (int j = 0; j < TAPS; ++j) {
    const int k0 = begin * TK + column * (PIECE / BYTES) + j;
    tap[j] = k0 / group_in;
    i0[j] = k0 - tap[j] * group_in;
  }
  const int step_taps = TK / group_in, step_i = TK - step_taps * group_in;

#if !WGMMA
  // Positions of this lane's operands in a stage.
  const int row = warp_m * (TM / WARPS_M) + lane % 16;
  const uint left_at = base + row * STEP_BYTES + ((lane / 16) ^ SWIZZLE(row)) * 16;
  const int right_at = (TM * STEP_BYTES + warp_n * (NB / 2) * 512) / 16 + lane;
#endif

  MMA_SUM4_T sum[MB][NB];
#pragma unroll
  for (int m = 0; m < MB; ++m) {
#pragma unroll
    for (int n = 0; n < NB; ++n) sum[m][n] = (MMA_SUM4_T)(0);
  }

#if WGMMA
  int fill = 0, use = 0;  // stages
#pragma unroll
  for (int s = 0; s < AHEAD; ++s) {
    if (s < count) COPY_LEFT();
    COPIES_COMMIT();
  }
  PREFETCH_RESIDUAL();
  // Operands of this warp and its three neighbours.
  const ulong left_rows = WGMMA_OPERAND(base + warp_m / 4 * (64 * STEP_BYTES));
  const ulong right_rows = WGMMA_OPERAND(base + (TM + warp_n * WGMMA_N) * STEP_BYTES);
  for (int step = 0; step < count; ++step) {
    COPIES_WAIT(AHEAD - 1);
    WGMMA_SHOW();
    if (!BEHIND) WGMMA_WAIT(0);
    barrier(CLK_LOCAL_MEM_FENCE);  // this stage has arrived, the one to be filled is free
    WGMMA_FENCE();
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      const int at = use * (STAGE / 16) + part * 2;
      WGMMA_ADD(sum[0], left_rows + at, right_rows + at);
    }
    WGMMA_COMMIT();
    if (BEHIND) WGMMA_WAIT(1);
    use = use + 1 == STAGES ? 0 : use + 1;
    if (step + AHEAD < count) {
      COPY_RIGHT(step + AHEAD, fill);
      COPY_LEFT();
    }
    COPIES_COMMIT();
  }
  WGMMA_WAIT(0);
#else
  int fill = 0, use = 0;  // stages
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < count) COPY_LEFT();
    COPIES_COMMIT();
  }
  PREFETCH_RESIDUAL();
  COPIES_WAIT(STAGES - 2);
  barrier(CLK_LOCAL_MEM_FENCE);
  // Operands of two parts: one is read while the other is multiplied.
  uint4 a[2][MB], b[2][NB / 2];
#if PAIRS
  uint4 firsts[MB], rests[MB], factors[NB / 2];  // of two parts, and the weights of the first one
#endif
  READ(0, 0);
  for (int step = 0; step < count; ++step) {
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      if (part < PARTS - 1) {
        READ((part + 1) % 2, part + 1);
      } else {
        COPIES_WAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);  // the next stage has arrived, this one is free
        use = use + 1 == STAGES ? 0 : use + 1;
        if (step + 1 < count) READ((part + 1) % 2, 0);
      }
      if (part == 0) {
        if (step + STAGES - 1 < count) {
          COPY_RIGHT(step + STAGES - 1, fill);
          COPY_LEFT();
        }
        COPIES_COMMIT();
      }
#if PAIRS
      // The second part of two completes the operands.
#pragma unroll
      for (int m = 0; m < MB; ++m) {
        const uint4 v = a[part % 2][m];
        const uint2 high = (uint2)(to_bfloats(v.s0, v.s2), to_bfloats(v.s1, v.s3));
        const uint2 low = (uint2)(rests_of(v.s0, v.s2, high.s0), rests_of(v.s1, v.s3, high.s1));
        if (part % 2 == 0) {
          firsts[m].s01 = high;
          rests[m].s01 = low;
        } else {
          firsts[m].s23 = high;
          rests[m].s23 = low;
        }
      }
#pragma unroll
      for (int n = 0; n < NB / 2; ++n) {
        if (part % 2 == 0) {
          factors[n] = b[0][n];
        } else {
          // Small products first.
          PAIRS_ADD_ALL(rests, factors[n].s02, b[1][n].s02);
          PAIRS_ADD_ALL(firsts, factors[n].s13, b[1][n].s13);
          PAIRS_ADD_ALL(firsts, factors[n].s02, b[1][n].s02);
        }
      }
#else
#pragma unroll
      for (int m = 0; m < MB; ++m) {
#pragma unroll
        for (int n = 0; n < NB / 2; ++n) {
          MMA(sum[m][2 * n], a[part % 2][m], b[part % 2][n].s0, b[part % 2][n].s1);
          MMA(sum[m][2 * n + 1], a[part % 2][m], b[part % 2][n].s2, b[part % 2][n].s3);
        }
      }
#endif
    }
  }
#endif

#if WARPS_K > 1
  // The first of the warps that share the depth adds the sums of the others.
  __local MMA_SUM4_T *shared_sums = (__local MMA_SUM4_T *)tile;
#pragma unroll
  for (int w = 1; w < WARPS_K; ++w) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const int at = item % (ITEMS / WARPS_K);
#pragma unroll
    for (int m = 0; m < MB; ++m) {
#pragma unroll
      for (int n = 0; n < NB; ++n) {
        if (warp_k == w) shared_sums[(m * NB + n) * (ITEMS / WARPS_K) + at] = sum[m][n];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int m = 0; m < MB; ++m) {
#pragma unroll
      for (int n = 0; n < NB; ++n) {
        if (warp_k == 0) sum[m][n] += shared_sums[(m * NB + n) * (ITEMS / WARPS_K) + at];
      }
    }
  }
#endif

  bool ends = warp_k == 0;
#if SPLIT
  // Every group writes its sums; the last one to finish adds them all, in order.
  const int tile_id = group * (int)get_num_groups(0) + (int)get_group_id(0);
  sums += (size_t)tile_id * splits * (TM * TN / 4) + item;
  if (warp_k == 0) {
#pragma unroll
    for (int m = 0; m < MB; ++m) {
#pragma unroll
      for (int n = 0; n < NB; ++n) {
        sums[split * (TM * TN / 4) + (m * NB + n) * (ITEMS / WARPS_K)] = sum[m][n];
      }
    }
  }
  FENCE_DEVICE();
  barrier(CLK_LOCAL_MEM_FENCE);
  __local int *is_last = (__local int *)tile;
  if (item == 0) {
    const int before = atomic_inc(&counters[tile_id]);
    *is_last = before == splits - 1;
    if (before == splits - 1) counters[tile_id] = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  ends = ends && *is_last;
  FENCE_DEVICE();
  if (ends) {
#pragma unroll
    for (int m = 0; m < MB; ++m) {
#pragma unroll
      for (int n = 0; n < NB; ++n) sum[m][n] = (MMA_SUM4_T)(0);
    }
#pragma unroll 2
    for (int s = 0; s < splits; ++s) {
#pragma unroll
      for (int m = 0; m < MB; ++m) {
#pragma unroll
        for (int n = 0; n < NB; ++n) {
          sum[m][n] += sums[s * (TM * TN / 4) + (m * NB + n) * (ITEMS / WARPS_K)];
        }
      }
    }
  }
#endif

  // Lane 4 * g + q has rows g and g + 8 of each block and 2 * BLOCKS channels from q * 2 * BLOCKS on.
  const int first_pixel = tile_m * TM + warp_m * (TM / WARPS_M) + lane / 4;
  const int first_channel =
      panel * TN + warp_n * (TN / WARPS_N) + lane % 4 * (2 * BLOCKS);  // in the group
  const int first_o = group * dst_group + first_channel;
#if FETCHES
  WIDE_T(RESIDUAL_T) fetched[FETCHED_AT_ONCE];
#pragma unroll
  for (int t = 0; t < FETCHED_AT_ONCE; ++t) FETCH(t);
#endif
#if BY_FLOATS
  // Sums that are left to integers, a bit for four, and the last of them.
  uint near = 0;
  MMA_SUM4_T last = (MMA_SUM4_T)(0);
#endif
#pragma unroll
  for (int n = 0; n < NB; n += BLOCKS) {
    const int left_over = ends ? group_out - (first_channel + n * 8) : 0;
    const int o = first_o + n * 8;
    CHANNEL4_T b[BLOCKS / 2];
#if BY_FLOATS
    REAL_CHANNEL4_T real[BLOCKS / 2];
#endif
#pragma unroll
    for (int j = 0; j < BLOCKS / 2; ++j) {
#if BY_FLOATS
      b[j] = CHANNEL4_ALIGNED_AT(left_over > 4 * j ? o + 4 * j : 0);
      real[j] = REAL_CHANNEL4(b[j]);
#elif QUANTIZED
      b[j] = CHANNEL4_AT(left_over > 4 * j ? o + 4 * j : 0);
#elif WIDE
      b[j] = WIDE_CHANNEL4_AT(left_over > 0 ? o + 4 * j : 0);
#else
      if (left_over > 4 * j + 3) {
        b[j] = CHANNEL4_AT(o + 4 * j);
      } else {
        b[j] = CHANNEL4_SOME(o + 4 * j, left_over - 4 * j);
      }
#endif
    }
#pragma unroll
    for (int i = 0; i < MB * 2; ++i) {
      const int pixel = first_pixel + i * 8, t = n / BLOCKS * (MB * 2) + i;
      if (pixel < pixels && left_over > 0) {
        MMA_SUM4_T v[BLOCKS / 2];
#pragma unroll
        for (int j = 0; j < BLOCKS / 2; ++j) v[j] = SUM4_OF(t, j);
        const int at = RESULT_AT(pixel, o, out_c);
#if BY_FLOATS
        uint undecided = 0;
#pragma unroll
        for (int j = 0; j < BLOCKS / 2; ++j) {
          float off;
          const MMA_SUM4_T exact = v[j];
          v[j] = BY_FLOATS4(exact, b[j], real[j], FETCHED_QUAD(t, j), &off);
          if (IS_NEAR(off)) {
            undecided |= 1u << j;
            last = exact;
          }
        }
        if (undecided == 0) {
          CLGPU_CAT(store_wide_, DST_T)(dst + at, v);
        } else {
          near |= undecided << (t * (BLOCKS / 2));
#pragma unroll
          for (int j = 0; j < BLOCKS / 2; ++j)
            if ((undecided >> j & 1) == 0) STORE4_ALIGNED(DST_T, dst, at + 4 * j, v[j]);
        }
#elif WIDE
#pragma unroll
        for (int j = 0; j < BLOCKS / 2; ++j) {
#if QUANTIZED
          v[j] = FINISH_SUM4_ALIGNED(v[j], b[j], at + 4 * j);
#else
          v[j] = FINISH_SUM4_WITH(v[j], b[j], at + 4 * j, FETCHED_QUAD(t, j));
#endif
        }
        CLGPU_CAT(store_wide_, DST_T)(dst + at, v);
#else
#pragma unroll
        for (int j = 0; j < BLOCKS / 2; ++j) {
          const int some = left_over - 4 * j, to_j = at + 4 * j;
#if QUANTIZED
#define STORE_ONE(i, sum) \
  STORE(DST_T, dst, to_j + (i), FINISH_SUM(sum, CHANNEL_AT(o + 4 * j + (i)), to_j + (i)))
          if (some > 3) {
            STORE4(DST_T, dst, to_j, FINISH_SUM4(v[j], b[j], to_j));
          } else {
            if (some > 0) STORE_ONE(0, v[j].s0);
            if (some > 1) STORE_ONE(1, v[j].s1);
            if (some > 2) STORE_ONE(2, v[j].s2);
          }
#else
          if (some > 3) {
            STORE4(DST_T, dst, to_j, FINISH_SUM4(v[j], b[j], to_j));
          } else {
            v[j] = SUM_LANE4(v[j], b[j], to_j);
            if (some > 0) STORE(DST_T, dst, to_j, FINISH_SUM_LANE(v[j].s0, b[j], 0, to_j));
            if (some > 1) STORE(DST_T, dst, to_j + 1, FINISH_SUM_LANE(v[j].s1, b[j], 1, to_j + 1));
            if (some > 2) STORE(DST_T, dst, to_j + 2, FINISH_SUM_LANE(v[j].s2, b[j], 2, to_j + 2));
          }
#endif
        }
#endif
      }
#if FETCHES
      if (t + FETCHED_AT_ONCE < LANE_STEPS) FETCH(t + FETCHED_AT_ONCE);
#endif
    }
  }
#if BY_FLOATS
  // Few are left, so all share this code.
  for (bool again = false; near != 0; again = true) {
    const int s = 31 - (int)clz(near), t = s / (BLOCKS / 2), j = s % (BLOCKS / 2);
    const int pixel = first_pixel + t % (MB * 2) * 8;
    const int o = first_o + t / (MB * 2) * (BLOCKS * 8) + 4 * j, at = RESULT_AT(pixel, o, out_c);
    near ^= 1u << s;
    if (again) {
      PICK_SUMS(0);
      PICK_SUMS(8);
      PICK_SUMS(16);
      PICK_SUMS(24);
    }
    const CHANNEL4_T c = CHANNEL4_ALIGNED_AT(o);
    STORE4_ALIGNED(DST_T, dst, at, BY_INTEGERS4(last, c, LOAD4_ALIGNED(RESIDUAL_T, residual, at)));
  }
#endif
}

// hybrid.cl - int8 sums to floats, as in TFLite's hybrid kernels; part of common/epilogue.cl
//
//   channels     a table of ints, [5][channel_pitch]: for each output channel the sum of its weights and
//                the bits of their scale. kernels/requantize/channels.cl writes it
//   row_factors  [rows, 2]: the bits of a row's scale, and its zero point; a row has row_elements elements
//                of dst; the first row begins at row_first
//
// VALUE1(sum, own, at)    (sum - row zero * own.start) * (row scale * own.scale) + own.bias, before
//                         residual and activation
// ROW_ZERO(row)           the zero point, for kernels that subtract it themselves because their sums do
//                         not include all weights of a channel
//
// Numerics  as written, each operation rounded to float
#include "common/types.cl"

#define SCALES_PARAM                                                                               \
  __global const int *channels, int channel_pitch, __global const int *row_factors, int row_first, \
      int row_elements,
#define ROW_ZERO(row) row_factors[2 * (row) + 1]

#define HYBRID_OF(N, I, F, READ)                                                            \
  typedef struct {                                                                          \
    I start;                                                                                \
    F scale, bias;                                                                          \
  } hybrid##N##_t;                                                                          \
  static inline hybrid##N##_t hybrid_at##N(__global const int *channels, int pitch, F bias, \
                                           int o) {                                         \
    hybrid##N##_t c;                                                                        \
    c.start = READ(channels + o);                                                           \
    c.scale = as_##F(READ(channels + pitch + o));                                           \
    c.bias = bias;                                                                          \
    return c;                                                                               \
  }                                                                                         \
  static inline F hybrid_sum##N(I sum, hybrid##N##_t c, __global const int *factors) {      \
    _Pragma("OPENCL FP_CONTRACT OFF") const F scale = c.scale * as_float(factors[0]);       \
    return convert_##F(sum - c.start * factors[1]) * scale + c.bias;                        \
  }
#define HYBRID_READ1(p) (*(p))
#define HYBRID_READ4(p) vload4(0, p)
#define HYBRID_READ8(p) vload8(0, p)
#define HYBRID_READ16(p) vload16(0, p)
HYBRID_OF(1, int, float, HYBRID_READ1)
HYBRID_OF(4, int4, float4, HYBRID_READ4)
HYBRID_OF(8, int8, float8, HYBRID_READ8)
HYBRID_OF(16, int16, float16, HYBRID_READ16)

#define ROW_OF(at) (row_factors + 2 * (((at) - row_first) / row_elements))
#define OWN1_T hybrid1_t
#define OWN4_T hybrid4_t
#define OWN8_T hybrid8_t
#define OWN16_T hybrid16_t
#define OWN1_AT(o) hybrid_at1(channels, channel_pitch, BIAS_AT(o), o)
#define OWN4_AT(o) hybrid_at4(channels, channel_pitch, BIAS4_AT(o), o)
#define OWN8_AT(o) hybrid_at8(channels, channel_pitch, BIAS8_AT(o), o)
#define OWN16_AT(o) hybrid_at16(channels, channel_pitch, BIAS16_AT(o), o)
#define OWN4_SOME(o, n) hybrid_at4(channels, channel_pitch, SOME4(BIAS_AT, o, n), o)
#define VALUE1(sum, own, at) hybrid_sum1(sum, own, ROW_OF(at))
#define VALUE4(sum, own, at) hybrid_sum4(sum, own, ROW_OF(at))
#define VALUE8(sum, own, at) hybrid_sum8(sum, own, ROW_OF(at))
#define VALUE16(sum, own, at) hybrid_sum16(sum, own, ROW_OF(at))
